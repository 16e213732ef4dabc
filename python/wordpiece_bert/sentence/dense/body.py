"""What makes the vectors of a `SentenceEncoder`: the interface, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex

from wordpiece_bert._internal.notebook import arrays_text, vectors_html

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.sentence.dense.late_chunking import Chunks
    from wordpiece_bert.sentence.folders.modules import SentenceFolder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: The value of `max_length` that stands for `max_seq_length`.
OF_MODEL: Literal["model"] = "model"
MaxLength = SupportsIndex | Literal["model"] | None


def is_of_model(max_length: object) -> bool:
    """Return whether a `max_length` stands for `max_seq_length`."""
    return isinstance(max_length, str) and max_length == OF_MODEL


@dataclass(frozen=True, eq=False, repr=False)
class TokenVectors:
    """The vectors of the tokens or words of one text.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> found = SentenceEncoder("models/sentences").encode_tokens("The breads")
    >>> found.tokens, found.vectors.shape
    (['[CLS]', 'the', 'bread', '##s', '[SEP]'], (5, 67))
    >>> found.offsets
    [(0, 0), (0, 3), (4, 9), (9, 10), (0, 0)]
    """

    #: float32 [n, H]; of several layers together, as wide as all of them.
    vectors: Array
    #: The (start, end) of each token or word in the text, in characters; (0, 0) for special tokens.
    offsets: list[tuple[int, int]]
    #: The tokens; or the words, as they are in the text.
    tokens: list[str]
    #: Whether the text was truncated.
    truncated: bool

    def __repr__(self) -> str:
        cut = ", truncated" * self.truncated
        return f"TokenVectors({len(self.tokens)} tokens, {arrays_text({'vectors': self.vectors})}{cut})"

    def _repr_html_(self) -> str:
        return vectors_html(repr(self), self.tokens, self.offsets, self.vectors)


@dataclass(frozen=True, kw_only=True)
class Call:
    """How texts are turned into vectors: the arguments of `SentenceEncoder.encode` that a body needs, checked."""

    #: What is put before each text.
    prefix: str = ""
    #: The longest text in tokens: the setting of the encoder, and what the call was given.
    max_seq_length: int
    max_length: MaxLength = OF_MODEL
    batch_size: int = 32
    windows: Any = None
    stride: int = 0
    progress: bool = False


class Body(Protocol):
    """A BERT model with a pooling, or a table of token vectors."""

    @property
    def folder(self) -> SentenceFolder:
        """The settings."""

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer."""

    @property
    def threads(self) -> int | None:
        """The number of threads; None for the default."""

    @property
    def engine(self) -> EngineInfo:
        """How the body computes on this machine."""

    def checked_length(self, name: str, value: object) -> int:
        """Check the longest text in tokens; `name` is the name of the argument."""

    def longest_row(self, call: Call) -> int | None:
        """Return the longest text in tokens of a call; None for no limit."""

    def vectors(self, texts: Any, call: Call) -> tuple[Array, Mask]:
        """Return the vectors of texts, [n, d], after all modules, and which texts were truncated, [n]."""

    def token_vectors(self, texts: Any, call: Call) -> tuple[list[tuple[npt.NDArray[np.int64], Array]], Mask]:
        """Return the ids and vectors of each text's tokens, [tokens] and [tokens, H], and which were truncated."""

    def named_tokens(self, texts: list[str], call: Call) -> list[TokenVectors]:
        """Return the vectors of each text's tokens, with their offsets."""

    def chunk_vectors(self, texts: list[str], chunks: Chunks | Any, call: Call, *, sections: bool) -> list[Array]:
        """Return the vectors of the chunks of each text, [chunks, d]."""

    def write_files(self, output: AtomicFolder, max_seq_length: int) -> None:
        """Write the files of a folder."""

    def described(self, max_seq_length: int) -> str:
        """Describe the encoder, in parentheses after the name of its class."""
