"""The options of rows, checked, and the core's builder for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_choice, checked_probability, whole_number
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining.masking import Masking, checked_seed
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert.pretraining.store import StoreShard

__all__ = ["LONGEST_ROW", "OBJECTIVES", "RowOptions"]

OBJECTIVES = ("nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text")
_PAIRS = ("nsp", "sop")
#: The longest row; positions are stored in 32 bits.
LONGEST_ROW = 1 << 24


@dataclass(frozen=True)
class RowOptions:
    """The arguments of `build_examples` that decide what rows are made."""

    objective: str
    max_length: int
    short_seq_prob: float
    min_sentences: int
    #: The length of packed rows; None if rows are not packed.
    packing: int | None
    packing_window: int
    max_sequences_per_row: int | None
    dupe_factor: int
    masking: Masking | None
    seed: int
    cls_id: int
    sep_id: int
    pad_id: int

    @classmethod
    def checked(
        cls,
        tokenizer: Tokenizer,
        *,
        objective: str,
        max_length: int,
        short_seq_prob: float,
        min_sentences: int,
        packing: bool | int,
        packing_window: int,
        max_sequences_per_row: int | None,
        dupe_factor: int,
        masking: Masking | None,
        seed: int,
    ) -> RowOptions:
        """Check the arguments of `build_examples`.

        Raises
        ------
        InputError
            An argument is out of range.
        ConfigError
            The tokenizer has no [CLS] or no [SEP] token.
        """
        check_instance("tokenizer", tokenizer, Tokenizer)
        checked_choice("objective", objective, OBJECTIVES)
        least, meaning = (5, "[CLS] A [SEP] B [SEP]") if objective in _PAIRS else (3, "[CLS] A [SEP]")
        max_length = whole_number("max_length", max_length, least, LONGEST_ROW, meaning=meaning)
        if masking is not None:
            check_instance("masking", masking, Masking)
        cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        missing = [token for token, number in (("[CLS]", cls_id), ("[SEP]", sep_id)) if number is None]
        if cls_id is None or sep_id is None:
            raise ConfigError(
                f"the tokenizer has no {' and no '.join(missing)} token, with which rows begin and end: "
                f"add BERT's with with_added_tokens({missing!r}, special=True)"
            )
        limit = tokenizer.model_max_length
        if limit is not None and max_length > limit:
            message = f"max_length={max_length} is more than the tokenizer's model_max_length, {limit}"
            warn(message)
        return cls(
            objective=objective,
            max_length=max_length,
            short_seq_prob=checked_probability("short_seq_prob", short_seq_prob),
            min_sentences=whole_number("min_sentences", min_sentences, 1),
            packing=_checked_packing(packing, max_length),
            packing_window=whole_number("packing_window", packing_window, 1),
            max_sequences_per_row=None
            if max_sequences_per_row is None
            else whole_number("max_sequences_per_row", max_sequences_per_row, 1, others="or None"),
            dupe_factor=whole_number("dupe_factor", dupe_factor, 1),
            masking=masking,
            seed=checked_seed(seed),
            cls_id=cls_id,
            sep_id=sep_id,
            pad_id=tokenizer.pad_token_id or 0,
        )

    @property
    def row_length(self) -> int:
        """The largest number of tokens of a row."""
        return self.max_length if self.packing is None else self.packing

    @property
    def narrow_places(self) -> bool:
        """Whether positions in a row are stored in 16 bits."""
        return self.row_length < 1 << 16

    def recorded(self) -> dict[str, Any]:
        """Return the arguments as the index records them."""
        return {
            "objective": self.objective,
            "max_length": self.max_length,
            "short_seq_prob": self.short_seq_prob,
            "min_sentences": self.min_sentences,
            "packing": self.packing,
            "packing_window": self.packing_window,
            "max_sequences_per_row": self.max_sequences_per_row,
            "dupe_factor": self.dupe_factor,
            "masking": None if self.masking is None else self.masking._options,
            "seed": self.seed,
        }

    def builder(self, shard: StoreShard, pass_number: int, threads: int | None) -> _core.ExampleBuilder:
        """Return the rows of one pass over one shard."""
        arrays = (shard.ids, shard.sentence_offsets, shard.document_offsets, shard.document_ids)
        return self.builder_of(arrays, pass_number, threads)

    def builder_of(
        self, arrays: tuple[Any, Any, Any, Any], pass_number: int, threads: int | None
    ) -> _core.ExampleBuilder:
        """Return the rows of one pass over a shard with these arrays: ids, offsets of sentences and documents, ids."""
        packing = None
        if self.packing is not None:
            packing = (self.packing, self.packing_window, self.max_sequences_per_row)
        return _core.ExampleBuilder(
            *arrays,
            objective=self.objective,
            max_length=self.max_length,
            short_seq_prob=self.short_seq_prob,
            min_sentences=self.min_sentences,
            seed=self.seed,
            pass_number=pass_number,
            cls_id=self.cls_id,
            sep_id=self.sep_id,
            packing=packing,
            masking=None if self.masking is None else self.masking._rules,
            threads=threads,
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
