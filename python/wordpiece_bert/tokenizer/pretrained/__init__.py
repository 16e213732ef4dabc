"""Reads and writes the tokenizer files of a model folder.

`load_folder` reads a folder for `Tokenizer.from_pretrained`, and `write_folder` writes one for
`Tokenizer.save_pretrained`. A folder may describe its tokenizer in up to five files. They are used as follows:

- ``tokenizer.json`` is used as it is. (transformers' ``BertTokenizer`` reads little more than the vocabulary from it,
  and takes the rest from ``tokenizer_config.json``, where ``do_lower_case`` defaults to True: it silently lower-cases
  the texts of a cased tokenizer.) If ``tokenizer_config.json`` contradicts it, there is a warning.
- If there is no ``tokenizer.json``, ``vocab.txt`` is used with the options of ``tokenizer_config.json``, as
  ``BertTokenizer`` does.
- Special and added tokens come from ``tokenizer_config.json``. If it has no ``added_tokens_decoder``, the tokens of
  ``special_tokens_map.json`` and ``added_tokens.json`` are added, with the precedence of transformers 5.23.
"""

from wordpiece_bert.tokenizer.pretrained.folder_contents import (
    SPECIAL_TOKEN_ROLES,
    AddedTokenFields,
    FolderSettings,
    LoadedFolder,
    Side,
    VocabFile,
    WordRules,
)
from wordpiece_bert.tokenizer.pretrained.folder_reading import load_folder, moved_tokens, words_found_by
from wordpiece_bert.tokenizer.pretrained.folder_writing import write_folder

__all__ = [
    "SPECIAL_TOKEN_ROLES",
    "AddedTokenFields",
    "FolderSettings",
    "LoadedFolder",
    "Side",
    "VocabFile",
    "WordRules",
    "load_folder",
    "moved_tokens",
    "words_found_by",
    "write_folder",
]
