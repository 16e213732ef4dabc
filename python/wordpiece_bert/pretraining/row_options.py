"""The options of rows, checked, and the core's builder for them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_choice, checked_probability, whole_number
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining.masking import Masking, checked_seed
from wordpiece_bert.pretraining.parameters import OBJECTIVES, PAIR_LABELS, Objective
from wordpiece_bert.pretraining.parts import options_of, rules_of
from wordpiece_bert.pretraining.schema import RowSchema
from wordpiece_bert.tokenizer.call_options import LONGEST_ROW
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np

    from wordpiece_bert.pretraining.store import StoreShard


class RowArguments(TypedDict, total=False):
    """The arguments of `build_examples` that decide what rows are made."""

    objective: Objective
    max_length: int
    short_seq_prob: float
    min_sentences: int
    packing: bool | int
    packing_window: int
    max_sequences_per_row: int | None
    dupe_factor: int
    masking: Masking | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """The `RowArguments` of a call, and what `checked` adds of the tokenizer."""

    objective: str = "nsp"
    max_length: int = 128
    short_seq_prob: float = 0.1
    min_sentences: int = 1
    #: After `checked` the length of packed rows; None if rows are not packed.
    packing: int | None = None
    packing_window: int = 4096
    max_sequences_per_row: int | None = None
    dupe_factor: int = 1
    masking: Masking | None = None
    seed: int = 0
    cls_id: int = 0
    sep_id: int = 0
    pad_id: int = 0

    def checked(self, tokenizer: Tokenizer) -> RowOptions:
        """Return the options with everything checked, and with the ids of a tokenizer's special tokens.

        Parameters
        ----------
        tokenizer : Tokenizer
            The tokenizer of the rows.

        Raises
        ------
        InputError
            An argument is out of range.
        ConfigError
            The tokenizer has no [CLS] or no [SEP] token.
        """
        check_instance("tokenizer", tokenizer, Tokenizer)
        checked_choice("objective", self.objective, OBJECTIVES)
        least, meaning = (5, "[CLS] A [SEP] B [SEP]") if self.objective in PAIR_LABELS else (3, "[CLS] A [SEP]")
        max_length = whole_number("max_length", self.max_length, least, LONGEST_ROW, meaning=meaning)
        if self.masking is not None:
            check_instance("masking", self.masking, Masking)
        cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        missing = [token for token, number in (("[CLS]", cls_id), ("[SEP]", sep_id)) if number is None]
        if cls_id is None or sep_id is None:
            raise ConfigError(
                f"the tokenizer has no {' and no '.join(missing)} token, with which rows begin and end: "
                f"add BERT's with with_added_tokens({missing!r}, special=True)"
            )
        most = tokenizer.model_max_length
        if most is not None and max_length > most:
            warn(f"max_length={max_length} is more than the tokenizer's model_max_length, {most}")
        most = self.max_sequences_per_row
        checked = replace(
            self,
            max_length=max_length,
            short_seq_prob=checked_probability("short_seq_prob", self.short_seq_prob),
            min_sentences=whole_number("min_sentences", self.min_sentences, 1),
            packing=_checked_packing(self.packing, max_length),
            packing_window=whole_number("packing_window", self.packing_window, 1),
            max_sequences_per_row=None
            if most is None
            else whole_number("max_sequences_per_row", most, 1, others="or None"),
            dupe_factor=whole_number("dupe_factor", self.dupe_factor, 1),
            seed=checked_seed(self.seed),
            cls_id=cls_id,
            sep_id=sep_id,
            pad_id=tokenizer.pad_token_id or 0,
        )
        _refuse_unused(checked)
        return checked

    @property
    def row_length(self) -> int:
        """The largest number of tokens of a row."""
        return self.max_length if self.packing is None else self.packing

    @property
    def max_predictions(self) -> int | None:
        """The largest number of tokens that are masked in a row."""
        return None if self.masking is None else options_of(self.masking)["max_predictions"]

    def schema(self, ids: np.dtype[Any]) -> RowSchema:
        """Return what columns rows have, for ids of a type."""
        return RowSchema(
            label=PAIR_LABELS.get(self.objective),
            masked=self.masking is not None,
            packed=self.packing is not None,
            ids=ids,
            row_length=self.row_length,
            max_predictions=self.max_predictions,
        )

    def recorded(self) -> dict[str, Any]:
        """Return the arguments as the index records them."""
        of_tokenizer = ("cls_id", "sep_id", "pad_id")
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in of_tokenizer}
        return given | {"masking": None if self.masking is None else options_of(self.masking)}

    def builder(self, shard: StoreShard, pass_number: int, threads: int | None) -> _core.ExampleBuilder:
        """Return the rows of one pass over one shard."""
        return _core.ExampleBuilder(
            shard.ids,
            shard.sentence_offsets,
            shard.document_offsets,
            shard.document_ids,
            self,
            pass_number,
            None if self.masking is None else rules_of(self.masking),
            threads,
        )


def _checked_packing(packing: object, max_length: int) -> int | None:
    if packing is False or packing is None:
        return None
    if packing is True:
        return max_length
    try:
        return whole_number("packing", packing, max_length, LONGEST_ROW)  # type: ignore[arg-type]
    except InputError:
        raise InputError(
            f"packing must be True, False, or a row length of max_length ({max_length}) or more, not {packing!r:.80}"
        ) from None


#: The defaults of the arguments, for the signatures of the functions that take them.
ROW_DEFAULTS = {field.name: field.default for field in fields(RowOptions)} | {"packing": False}


def _refuse_unused(options: RowOptions) -> None:
    """Raise an `InputError` if an option is given that these rows have no use for."""
    pairs, packed = options.objective in PAIR_LABELS, options.packing is not None
    for name, used, what in (
        ("short_seq_prob", pairs, "pairs: objective nsp or sop"),
        ("min_sentences", options.objective == "nsp", "pairs with a next-sentence label: objective nsp"),
        ("packing_window", packed, "packing"),
        ("max_sequences_per_row", packed, "packing"),
    ):
        value = getattr(options, name)
        if not used and value != getattr(RowOptions, name):
            raise InputError(f"{name}={value!r} is for {what}")
