"""The settings of a model folder that a tokenizer keeps.

Annotations are evaluated here, and in the other modules with named tuples that ``import Tokenizer`` needs: those that
are strings are compiled one by one, which takes two milliseconds of each process.
"""

from collections.abc import Mapping
from typing import NamedTuple

from wordpiece_bert import _core
from wordpiece_bert.tokenizer.option_types import Side

#: The roles of BERT's special tokens with the tokens that usually have them, in the order of registration.
SPECIAL_TOKEN_ROLES = dict(_core.SPECIAL_TOKEN_ROLES)

#: The inputs of a BERT model.
INPUT_NAMES = ("input_ids", "token_type_ids", "attention_mask")


class FolderSettings(NamedTuple):
    """The settings of a folder besides its tokenizer. `write_folder` writes them."""

    #: Role (a key of SPECIAL_TOKEN_ROLES) -> token, for the roles that the folder has.
    special_tokens: Mapping[str, str]
    #: Maximum length of a row in tokens, special tokens included; None for no limit.
    model_max_length: int | None = None
    #: None if the folder has no setting; then the setting of tokenizer.json applies, or else "right".
    padding_side: Side | None = None
    truncation_side: Side | None = None
    #: The special tokens that the folder names and its extra ones, in the order of transformers; None for all that the
    #: tokenizer marks special.
    listed_special_tokens: tuple[str, ...] | None = None
    #: The arrays that ``tokenizer(...)`` returns by default (DistilBERT has no "token_type_ids").
    model_input_names: tuple[str, ...] = INPUT_NAMES
    #: Whether ``batch_decode`` cleans up texts by default.
    clean_up_tokenization_spaces: bool = False
