"""The tokenizer of the package ``tokenizers`` for the files that ours was loaded from, and its rows as arrays."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.parts import core_of
from wordpiece_bert.errors import MissingPackageError, TokenizerFormatError
from wordpiece_bert.tokenizer.pretrained.folder_contents import TOKENIZER_FILE, VOCAB_FILE
from wordpiece_bert.tokenizer.shared_core import package_errors, read_core

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

#: An array for each field, with an entry for each token of all rows; ``lengths`` and ``texts`` have one for each row:
#: its tokens, and the index of its text.
Columns = dict[str, "npt.NDArray[Any]"]


def load_peer(source: Path, ours: Tokenizer) -> tuple[Any, str]:
    """Load a tokenizer with the package ``tokenizers``, and return it with a line that says how.

    Parameters
    ----------
    source : pathlib.Path
        A folder with ``tokenizer.json`` or ``vocab.txt``, or one of these files.
    ours : Tokenizer
        What this package made of the source. The options for a ``vocab.txt`` are taken from it, and the tokens that
        only other files of the folder add.

    Raises
    ------
    MissingPackageError
        ``tokenizers`` is not installed.
    TokenizerFormatError
        It cannot read the file.
    """
    try:
        import tokenizers
    except ImportError as cause:
        raise MissingPackageError(
            "a tokenizer is verified with the package tokenizers: pip install 'wordpiece-bert[tokenizers]'"
        ) from cause
    file = source if source.is_file() else source / TOKENIZER_FILE
    if not file.is_file():
        file = source / VOCAB_FILE
    with package_errors(TokenizerFormatError, lambda: f"{file}: the package tokenizers cannot read it"):
        peer = read_core(file.read_text("utf-8"), file) if file.suffix == ".json" else _of_vocab(tokenizers, file, ours)
    known = peer.get_added_tokens_decoder()
    for index, token in sorted(ours.added_tokens.items()):
        if index not in known:
            flags = {name: getattr(token, name) for name in ("single_word", "lstrip", "rstrip", "normalized")}
            added = tokenizers.AddedToken(token.content, special=token.special, **flags)
            (peer.add_special_tokens if token.special else peer.add_tokens)([added])
    peer.no_truncation()
    peer.no_padding()
    return peer, f"tokenizers {tokenizers.__version__}, from {file.name}"


def _of_vocab(tokenizers: Any, file: Path, ours: Tokenizer) -> Any:
    normalizer = core_of(ours).bert_normalizer
    assert normalizer is not None, "a vocab.txt is always read with one"
    made = tokenizers.BertWordPieceTokenizer(
        str(file),
        clean_text=normalizer.clean_text,
        handle_chinese_chars=normalizer.tokenize_chinese_chars,
        strip_accents=normalizer.strip_accents,
        lowercase=normalizer.lowercase,
    )
    return tokenizers.Tokenizer.from_str(made.to_str())  # without the class around it, which lacks some calls


def padded_windows(peer: Any, ours: Tokenizer, max_length: int, stride: int) -> bool:
    """Set truncation to windows, and padding to `max_length` if there is a token for it; return whether there is."""
    peer.enable_truncation(max_length, stride=stride, direction=ours.truncation_side)
    if ours.pad_token is None:
        return False
    index = ours.token_to_id(ours.pad_token)
    peer.enable_padding(direction=ours.padding_side, length=max_length, pad_id=index, pad_token=ours.pad_token)
    return True


def peer_rows(encodings: list[Any]) -> Columns:
    """Return whole rows as arrays."""
    return {
        **_rows(encodings, [1] * len(encodings)),
        "ids": _numbers(one.ids for one in encodings),
        "offsets": _offsets(encodings),
        "word ids": _numbers([-1 if word is None else word for word in one.word_ids] for one in encodings),
        "special tokens mask": _numbers(one.special_tokens_mask for one in encodings),
    }


def peer_windows(encodings: list[Any]) -> Columns:
    """Return the rows of texts and their further windows as arrays."""
    further = [one.overflowing for one in encodings]
    rows = [row for one, more in zip(encodings, further, strict=True) for row in (one, *more)]
    return {
        **_rows(rows, [1 + len(more) for more in further]),
        "ids": _numbers(one.ids for one in rows),
        "token type ids": _numbers(one.type_ids for one in rows),
        "attention mask": _numbers(one.attention_mask for one in rows),
        "special tokens mask": _numbers(one.special_tokens_mask for one in rows),
        "offsets": _offsets(rows),
    }


def _rows(rows: list[Any], counts: list[int]) -> Columns:
    return {"lengths": _numbers([list(map(len, rows))]), "texts": np.repeat(np.arange(len(counts)), counts)}


def _numbers(rows: Iterable[list[int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), np.int64)


def _offsets(rows: list[Any]) -> npt.NDArray[np.int64]:
    numbers = chain.from_iterable(chain.from_iterable(one.offsets for one in rows))
    return np.fromiter(numbers, np.int64).reshape(-1, 2)
