"""A model folder -> what its tokenizer is made of, and back.

`load_folder` reads, `write_folder` writes; `Tokenizer.from_pretrained` and `Tokenizer.save_pretrained` are their faces.

A folder may say the same thing in five files. What is followed here, from strongest to weakest:

- ``tokenizer.json`` is taken as it is. transformers' ``BertTokenizer`` takes little more than the vocabulary out of it
  and rebuilds the rest from ``tokenizer_config.json``, whose ``do_lower_case`` is True where nothing is said: a cased
  tokenizer is lower-cased without a word. Here the file counts, and a configuration that contradicts it is warned of.
- without it, ``vocab.txt`` with the options of ``tokenizer_config.json``, as ``BertTokenizer`` reads it;
- special and added tokens from ``tokenizer_config.json``; where that has no ``added_tokens_decoder``, from
  ``special_tokens_map.json`` and ``added_tokens.json`` too, with the priorities of transformers 5.23.
"""

from wordpiece_bert.pretrained.folder import (
    SPECIAL_TOKEN_ROLES,
    AddedTokenFields,
    FolderSettings,
    LoadedFolder,
    Side,
    VocabFile,
)
from wordpiece_bert.pretrained.load import load_folder, moved_tokens
from wordpiece_bert.pretrained.save import write_folder

__all__ = [
    "SPECIAL_TOKEN_ROLES",
    "AddedTokenFields",
    "FolderSettings",
    "LoadedFolder",
    "Side",
    "VocabFile",
    "load_folder",
    "moved_tokens",
    "write_folder",
]
