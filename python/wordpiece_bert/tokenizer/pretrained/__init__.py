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

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.pretrained.folder_contents import AddedTokenFields as AddedTokenFields
    from wordpiece_bert.tokenizer.pretrained.folder_contents import LoadedFolder as LoadedFolder
    from wordpiece_bert.tokenizer.pretrained.folder_contents import VocabFile as VocabFile
    from wordpiece_bert.tokenizer.pretrained.folder_contents import WordRules as WordRules
    from wordpiece_bert.tokenizer.pretrained.folder_reading import load_folder as load_folder
    from wordpiece_bert.tokenizer.pretrained.folder_reading import model_kind as model_kind
    from wordpiece_bert.tokenizer.pretrained.folder_reading import moved_tokens as moved_tokens
    from wordpiece_bert.tokenizer.pretrained.folder_reading import words_found_by as words_found_by
    from wordpiece_bert.tokenizer.pretrained.folder_writing import write_folder as write_folder
    from wordpiece_bert.tokenizer.pretrained.kept_settings import SPECIAL_TOKEN_ROLES as SPECIAL_TOKEN_ROLES
    from wordpiece_bert.tokenizer.pretrained.kept_settings import FolderSettings as FolderSettings

# The module of each name, imported when the name is first used.
_MODULES = {
    "SPECIAL_TOKEN_ROLES": "kept_settings",
    "AddedTokenFields": "folder_contents",
    "FolderSettings": "kept_settings",
    "LoadedFolder": "folder_contents",
    "VocabFile": "folder_contents",
    "WordRules": "folder_contents",
    "load_folder": "folder_reading",
    "model_kind": "folder_reading",
    "moved_tokens": "folder_reading",
    "words_found_by": "folder_reading",
    "write_folder": "folder_writing",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
