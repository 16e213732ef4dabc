"""What all kinds of served models share: options of a request, limits, answers, and the description of a model."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from wordpiece_bert.sentence.arguments import ROLE_PROMPTS
from wordpiece_bert.sentence.parts import prompt_of
from wordpiece_bert.serve.batching import Batcher
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.fields import TokenRows
from wordpiece_bert.serve.recent_results import RecentResults
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.encoder_base import Encoder
    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

# Texts of more characters in all are tokenized in a thread, so that they do not hold up the event loop.
_INLINE_CHARACTERS = 1 << 14
# Characters that a text may have for a tokenizer of the package `tokenizers`: up to 500 bytes for each.
_SUBWORD_CHARACTERS = 1 << 17
# Numbers in an answer, which take 16 MB and about 100 MB as JSON.
_MOST_NUMBERS = 1 << 22

Item = TypeVar("Item")


class Answer(NamedTuple):
    """The results of a request."""

    #: A result for each row: an array [n, ...], or a list of n.
    values: Any
    #: Whether each text was truncated, [n].
    truncated: npt.NDArray[np.bool_]
    #: The number of tokens of all rows.
    tokens: int


class Options(NamedTuple):
    """How the texts of a request are read."""

    #: Whether texts that are too long are truncated; else the request is refused.
    truncate: bool = True
    #: The name of the model's prompt to put before each text.
    prompt_name: str | None = None
    #: What the texts are, ``"query"`` or ``"document"``, or another purpose that a model may have a prompt for.
    role: str | None = None
    #: The longest row in tokens, if it is shorter than the model's.
    max_length: int | None = None
    #: The field that says on which side long texts are cut, and the side; None for the side of the tokenizer.
    side: tuple[str, Literal["left", "right"]] | None = None

    def task(self, usual: str | None) -> str | None:
        """Return the task of encoders that treat queries and documents differently, which a prompt's name chooses, too.

        `usual` is the name of the server's prompt, which counts where the request names none.
        """
        named = self.role or self.prompt_name or usual
        return named if named in ("query", "document") else None


#: The options of a request that names none.
USUAL = Options()


class Served:
    """A model behind a queue.

    Parameters
    ----------
    name : str
        The name for requests.
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    settings : ServerSettings
        The limits.
    metrics : Metrics
        Counts batches and tokens.
    within : Served, optional
        The model whose queue the rows go through, if it is another model's.
    """

    #: What the model does, for messages and the list of models.
    kind: ClassVar[str]

    def __init__(
        self,
        name: str,
        tokenizer: AnyTokenizer,
        settings: ServerSettings,
        metrics: Metrics,
        within: Served | None = None,
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.settings = settings
        self.metrics = metrics
        self.batcher: Batcher = Batcher(self._run, settings, metrics, name) if within is None else within.batcher
        self.recent: RecentResults = RecentResults(settings, metrics, name) if within is None else within.recent

    async def _results(self, rows: Any, lengths: npt.NDArray[np.int64], key: Hashable = None) -> Any:
        """Return the results of rows: recent ones that are kept, the others through the queue."""
        return await self.recent.results(self.batcher.submit, rows, lengths, key)

    def _run(self, key: Any, parts: Sequence[Part]) -> Any:
        """Compute a batch in the thread of the model: a result for each row, in order."""
        raise NotImplementedError

    @property
    def longest_row(self) -> int | None:
        """The longest row in tokens; None for no limit."""
        raise NotImplementedError

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Return what the list of models says of it."""
        return {
            "kind": self.kind,
            "dtype": self.engine.dtype,
            "max_input_length": None if self.longest_row == sys.maxsize else self.longest_row,
            "max_batch_tokens": self.settings.batch_tokens,
            "max_request_tokens": self.settings.max_tokens,
            "max_client_batch_size": self.settings.max_items,
        }

    async def _counted(self, texts: Sequence[str], longest_row: int | None) -> RaggedBatch:
        """Return the tokens of texts, truncated; refuse too many in all."""
        self.check_characters(texts)
        most = self.settings.max_tokens
        # Of a longer text than the limit no more tokens are made.
        max_length = most + 1 if longest_row is None else longest_row
        rows: RaggedBatch = await self.tokenized(
            lambda: self.tokenizer.encode_batch(
                texts, truncation=True, max_length=max_length, stride=0, padding=False, threads=1
            ),
            sum(map(len, texts)),
        )
        check_tokens(len(rows.ids), most)
        empty = np.flatnonzero(rows.lengths == 0)
        if len(empty):
            raise RequestError(400, f"text {empty[0]} has no token", code="empty_text")
        return rows

    async def tokenized(self, tokenize: Callable[[], Item], characters: int) -> Item:
        """Tokenize texts: short ones at once, unless a thread may have the tokenizer, and long ones in a thread."""
        takes_turns = isinstance(self.tokenizer, SubwordTokenizer)
        return await tokenized(tokenize, _INLINE_CHARACTERS + 1 if takes_turns else characters)

    def check_characters(self, texts: Iterable[str]) -> None:
        """Refuse texts that would take a tokenizer of the package ``tokenizers`` more memory than a request may."""
        if not isinstance(self.tokenizer, SubwordTokenizer):
            return
        for index, text in enumerate(texts):
            if len(text) > _SUBWORD_CHARACTERS:
                message = (
                    f"text {index} has {len(text)} characters, more than the limit of {_SUBWORD_CHARACTERS} for a text "
                    f"where the tokenizer is not WordPiece, as that of the model {self.name!r}: send its beginning"
                )
                raise RequestError(400, message, code="text_too_long")

    def texts_of(self, given: Sequence[Item] | TokenRows, why: str) -> list[Item]:
        """Return the texts of a request; refuse token ids, with the reason why this model takes none."""
        if isinstance(given, TokenRows):
            message = f"the model {self.name!r} takes texts, not token ids: {why}"
            raise RequestError(400, message, code="token_ids")
        return list(given)

    def refuse_max_length(self, options: Options) -> None:
        """Refuse a limit of a request for the length of rows, where the model's own is the only one."""
        if options.max_length is not None:
            # The field is one of two; of those who send Cohere's, none reads `param`.
            length = self.described()["max_input_length"]
            own = "without a limit" if length is None else f"{length} tokens"
            message = (
                "truncate_prompt_tokens (or max_tokens) is not served: the length of rows is that of the model "
                f"{self.name!r}, {own}"
            )
            raise RequestError(400, message, param="truncate_prompt_tokens", code="not_served")

    def check_truncated(
        self, truncated: npt.NDArray[np.bool_], options: Options, longest_row: int | None = None
    ) -> None:
        """Refuse truncated texts unless truncation is allowed, and another side of it than the tokenizer's."""
        if options.side is not None and options.side[1] != self.tokenizer.truncation_side:
            field, side = options.side
            reason = f"texts of the model {self.name!r} are cut at their {'end' if side == 'left' else 'start'}"
            raise RequestError(400, f"{field} on the {side} is not served: {reason}", param=field, code="not_served")
        if not options.truncate and truncated.any():
            first = int(truncated.argmax())
            message = (
                f"text {first} has more than the model's {longest_row or self.longest_row} tokens "
                f'({int(truncated.sum())} such texts); shorten it, or allow truncation with "truncate": true'
            )
            raise RequestError(400, message, code="text_too_long")

    def check_numbers(self, numbers: int, most: int | None = None, what: str = "the answer has") -> None:
        """Refuse an answer, or what it is made of, with more numbers than the server makes for a request."""
        most = _MOST_NUMBERS if most is None else most
        if numbers > most:
            message = f"{what} {numbers} numbers, more than the server's limit of {most}"
            raise RequestError(400, f"{message}: send fewer or shorter texts", code="answer_too_large")

    async def close(self) -> None:
        """End the work."""
        await self.batcher.close()


def prefix_of(encoder: Encoder, settings: ServerSettings, options: Options = USUAL) -> str:
    """Return what is put before each text: the prompt that a request names, or its role's, or the server's."""
    if options.prompt_name is not None:
        return prompt_of(encoder, name=options.prompt_name)
    if options.role is not None:
        names = ROLE_PROMPTS.get(options.role, (options.role,))
        found = next((encoder.prompts[name] for name in names if name in encoder.prompts), None)
        # An empty prompt, as sentence-transformers writes by default, does not replace the text that a server is given.
        if found or (found is not None and settings.prompt is None):
            return found
    return prompt_of(encoder, settings.prompt, settings.prompt_name)


async def tokenized(tokenize: Callable[[], Item], characters: int) -> Item:
    """Tokenize texts: short ones at once, long ones in a thread."""
    return await asyncio.to_thread(tokenize) if characters > _INLINE_CHARACTERS else tokenize()


def check_tokens(tokens: int, most: int) -> None:
    """Refuse a request that has more tokens in all than the server allows."""
    if tokens > most:
        message = f"the request has more than the server's limit of {most} tokens"
        raise RequestError(400, message, code="too_many_tokens")
