"""The calls of `SentenceEncoder` for queries and for documents: `encode` with the model's prompt for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from wordpiece_bert.sentence.arguments import role_prompt_name
from wordpiece_bert.sentence.base import VectorEncoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.sentence.arguments import OutputValue, Texts, Vectors
    from wordpiece_bert.sentence.windows import Combination

__all__ = ["QueryAndDocumentCalls"]


class QueryAndDocumentCalls(VectorEncoder):
    """`encode_query` and `encode_document`, over the `encode` and the `prompts` of the class that has them."""

    if TYPE_CHECKING:
        encode: Callable[..., Any]

    @overload
    def encode_query(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: Literal[False] = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Vectors: ...

    @overload
    def encode_query(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = ...,
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = ...,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any: ...

    def encode_query(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any:
        """Turn queries into vectors: `SentenceEncoder.encode`, by default with the model's prompt for them.

        Parameters
        ----------
        texts
            A text, a list or another iterable of texts, an array, or an Arrow column.
        prompt_name
            The name of the model's prompt to put before each text; by default ``query``, if the model has it.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        batch_size
            The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
            ignores it for sentence vectors: it runs texts without padding, in bounded memory.
        show_progress_bar
            Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
        output_value
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling. None
            for both and the ids: for each text a dict of ``input_ids`` and ``attention_mask`` [tokens],
            ``token_embeddings`` [tokens, H] and ``sentence_embedding`` [d].
        precision
            ``"float32"``, or ``"int8"``, ``"uint8"``, ``"binary"``, ``"ubinary"`` as in `quantize_embeddings`; the
            8-bit ranges are those of the returned vectors.
        convert_to_numpy
            Whether sentence vectors are one array [n, d], rather than a list of arrays [d].
        convert_to_tensor
            Whether to return tensors of PyTorch, which share the memory of the arrays.
        device
            None or ``"cpu"``: the model is always on the CPU.
        normalize_embeddings
            Whether to scale the vectors to length 1, after `truncate_dim`.
        truncate_dim
            How many of the first numbers of each vector to keep; by default the model's setting, or all.
        pool
            None. sentence-transformers passes texts to a pool of processes; here one process uses all CPUs, see
            `threads`.
        sentences, inputs
            Other names of `texts`, of sentence-transformers.
        return_truncated
            Whether to also return which texts were truncated to `max_seq_length`.
        windows
            None truncates texts that are too long. ``"mean"`` and ``"max"`` split them into windows instead, each with
            the prompt, and combine the vectors of the windows element by element. If the model normalizes its vectors,
            the result is normalized again.
        stride
            How many tokens a window shares with the one before.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for a single text, [0, d] for an empty list; with `precision`
            of another dtype and width. For token embeddings a list of float32 arrays [tokens, H], or one such array.
        array
            Only with `return_truncated`: bool [n], or one bool for a single text.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated, and `return_truncated` is false. The message has their number and the index of the
            first.
        """
        prompt_name = role_prompt_name("query", prompt, prompt_name, self.prompts)
        return self.encode(
            texts=texts,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            pool=pool,
            sentences=sentences,
            inputs=inputs,
            return_truncated=return_truncated,
            windows=windows,
            stride=stride,
        )

    @overload
    def encode_document(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: Literal[False] = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Vectors: ...

    @overload
    def encode_document(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = ...,
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = ...,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any: ...

    def encode_document(
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = False,
        windows: Combination | None = None,
        stride: int = 0,
    ) -> Any:
        """Turn documents into vectors: `SentenceEncoder.encode`, by default with the model's prompt for them.

        Parameters
        ----------
        texts
            A text, a list or another iterable of texts, an array, or an Arrow column.
        prompt_name
            The name of the model's prompt to put before each text; by default the first of ``document``,
            ``passage`` and ``corpus`` that the model has.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        batch_size
            The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
            ignores it for sentence vectors: it runs texts without padding, in bounded memory.
        show_progress_bar
            Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
        output_value
            ``"sentence_embedding"``, or ``"token_embeddings"`` for the vectors of all tokens, before the pooling. None
            for both and the ids: for each text a dict of ``input_ids`` and ``attention_mask`` [tokens],
            ``token_embeddings`` [tokens, H] and ``sentence_embedding`` [d].
        precision
            ``"float32"``, or ``"int8"``, ``"uint8"``, ``"binary"``, ``"ubinary"`` as in `quantize_embeddings`; the
            8-bit ranges are those of the returned vectors.
        convert_to_numpy
            Whether sentence vectors are one array [n, d], rather than a list of arrays [d].
        convert_to_tensor
            Whether to return tensors of PyTorch, which share the memory of the arrays.
        device
            None or ``"cpu"``: the model is always on the CPU.
        normalize_embeddings
            Whether to scale the vectors to length 1, after `truncate_dim`.
        truncate_dim
            How many of the first numbers of each vector to keep; by default the model's setting, or all.
        pool
            None. sentence-transformers passes texts to a pool of processes; here one process uses all CPUs, see
            `threads`.
        sentences, inputs
            Other names of `texts`, of sentence-transformers.
        return_truncated
            Whether to also return which texts were truncated to `max_seq_length`.
        windows
            None truncates texts that are too long. ``"mean"`` and ``"max"`` split them into windows instead, each with
            the prompt, and combine the vectors of the windows element by element. If the model normalizes its vectors,
            the result is normalized again.
        stride
            How many tokens a window shares with the one before.

        Returns
        -------
        array or list of arrays
            float32 [n, d] in the order of the texts, [d] for a single text, [0, d] for an empty list; with `precision`
            of another dtype and width. For token embeddings a list of float32 arrays [tokens, H], or one such array.
        array
            Only with `return_truncated`: bool [n], or one bool for a single text.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were truncated, and `return_truncated` is false. The message has their number and the index of the
            first.
        """
        prompt_name = role_prompt_name("document", prompt, prompt_name, self.prompts)
        return self.encode(
            texts=texts,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            pool=pool,
            sentences=sentences,
            inputs=inputs,
            return_truncated=return_truncated,
            windows=windows,
            stride=stride,
        )
