"""Encoders and rankers for MTEB, as models that `mteb.evaluate` takes. Needs mteb 2.

mteb's own code reads the texts of a task by PyTorch's loaders, so an evaluation needs PyTorch; the import does not.

Stability: provisional.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.numerics import versions
from wordpiece_bert._internal.parameters import Parameters, completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.named_models import (
    checked_options,
    encoder_of,
    given_model,
    import_package,
)
from wordpiece_bert.integrations.options import GIVEN, NAMED
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.model_contents import model_digests
from wordpiece_bert.sentence.folders.contents import json_digest
from wordpiece_bert.sentence.parts import source_of

_model_meta = import_package("mteb.models.model_meta", "mteb")
_prompt_name = import_package("mteb.models.abs_encoder", "mteb").get_prompt_name

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.encoder_base import Encoder

__all__ = ["WordPieceEncoder", "WordPieceRanker"]

_NAMES = Parameters(
    """
    name : str, optional
        The name under which mteb stores and shows results, ``"organization/model"``. By default the name of a model in
        the Hugging Face cache, and ``"wordpiece-bert/"`` before the name of a folder or a packaged model.
    """
)
_CALL = Parameters(
    """
    inputs : iterable of dict
        Batches with ``text``, a list of str.
    task_metadata : mteb.TaskMetadata
        The task.
    hf_split, hf_subset : str
        The part of the task's data, which changes nothing.
    prompt_type : mteb.types.PromptType, optional
        Whether the texts are queries or documents.
    batch_size : int, default 32
        Rows that go through the model together.
    show_progress_bar : bool, default False
        Whether to show a progress bar.
    """
)


@completed_by(GIVEN, NAMED, _NAMES)
class WordPieceEncoder:
    """A sentence encoder as mteb evaluates it: ``mteb.evaluate(WordPieceEncoder("minilm"), tasks)``.

    mteb keeps results by name and revision. The revision is a digest of the model's contents and settings and of the
    version of its numbers, so that results of another model are never taken for this one's; int8 and bfloat16 have
    results of their own beside it.

    Attributes
    ----------
    model : SentenceEncoder
        The encoder.
    mteb_model_meta : mteb.models.ModelMeta
        What mteb stores of the model.
    """

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] | None = None,
        *,
        model_name: str | os.PathLike[str] | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.model = encoder_of(given_model(model, model_name), dtype=dtype, encoder_options=encoder_options)
        self.mteb_model_meta = _meta(
            self.model,
            name,
            [
                model_digests(self.model) | versions(self.model.engine.dtype),
                self.model.dimension,
                self.model.max_seq_length,
            ],
            embed_dim=self.model.dimension,
            max_tokens=self.model.max_seq_length,
            similarity_fn_name=_model_meta.ScoringFunction(self.model.similarity_fn_name),
        )

    @completed_by(_CALL)
    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        batch_size: int = 32,
        show_progress_bar: bool = False,
        precision: str = "float32",
    ) -> npt.NDArray[Any]:
        """Turn the texts of a task into vectors.

        The prompt is the model's for this task, type of task or type of text, in mteb's order; otherwise the one of
        `SentenceEncoder.encode_query` or `SentenceEncoder.encode_document`, or the default prompt.

        Parameters
        ----------
        precision : str, default "float32"
            The numbers of the vectors, as for `SentenceEncoder.encode`.

        Returns
        -------
        ndarray
            The vectors [n, d], float32 unless `precision` says otherwise.

        Warns
        -----
        TruncationWarning
            Texts were truncated.
        """
        kind = "" if prompt_type is None else prompt_type.value
        calls = {"query": self.model.encode_query, "document": self.model.encode_document}
        return calls.get(kind, self.model.encode)(
            _texts(inputs),
            _prompt_name(dict(self.model.prompts), task_metadata, prompt_type),
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            precision=precision,
        )

    def similarity(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Array:
        """Compare every vector of the first with every vector of the second, by the model's similarity.

        Parameters
        ----------
        embeddings1, embeddings2 : array_like
            Vectors [n, d] and [m, d].

        Returns
        -------
        ndarray of float32
            The similarities [n, m]; a tensor if an argument is one.
        """
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Array:
        """Compare the vectors pair by pair, by the model's similarity.

        Parameters
        ----------
        embeddings1, embeddings2 : array_like
            Vectors [n, d] each.

        Returns
        -------
        ndarray of float32
            The similarities [n]; a tensor if an argument is one.
        """
        return self.model.similarity_pairwise(embeddings1, embeddings2)


@completed_by(NAMED, _NAMES)
class WordPieceRanker:
    """A ranker as mteb evaluates it, on tasks of reranking.

    Parameters
    ----------
    model : CrossEncoder, str or os.PathLike
        The ranker, or its name or folder.

    Attributes
    ----------
    model : CrossEncoder
        The ranker.
    mteb_model_meta : mteb.models.ModelMeta
        What mteb stores of the model.

    Raises
    ------
    InputError
        The ranker has several labels, or the files of its folder can no longer be read.
    """

    def __init__(
        self, model: CrossEncoder | str | os.PathLike[str], *, dtype: str | None = None, name: str | None = None
    ) -> None:
        options = checked_options(model, dtype, None)
        self.model = model if isinstance(model, CrossEncoder) else CrossEncoder.from_pretrained(model, **options)
        if self.model.num_labels != 1:
            raise InputError(f"a ranker has one label; this model has {self.model.num_labels}")
        if (source := source_of(self.model)) is None:
            raise InputError(f"{self.model!r}: the files that it was loaded from are not known")
        contents = source.check_contents()
        self.mteb_model_meta = _meta(
            self.model,
            name,
            [contents, versions(self.model.engine.dtype), self.model.max_length],
            max_tokens=self.model.max_length,
            model_type=["cross-encoder"],
        )

    @completed_by(_CALL)
    def predict(
        self,
        inputs1: Iterable[Mapping[str, Any]],
        inputs2: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        batch_size: int = 32,
        show_progress_bar: bool = False,
    ) -> Array:
        """Score pairs of texts.

        Parameters
        ----------
        inputs1, inputs2 : iterable of dict
            Batches with ``text``, a list of str: the queries, and a document for each.

        Returns
        -------
        ndarray of float32
            The scores [n].

        Warns
        -----
        TruncationWarning
            Pairs were truncated.
        """
        pairs = list(zip(_texts(inputs1), _texts(inputs2), strict=True))
        scores: Array = self.model.predict(pairs, batch_size, show_progress_bar)
        return scores


def _texts(inputs: Iterable[Mapping[str, Any]]) -> list[str]:
    return [text for batch in inputs for text in batch["text"]]


def _meta(model: SentenceEncoder | CrossEncoder, name: str | None, contents: list[object], **values: Any) -> Any:
    """Return what mteb stores of a model; another dtype than float32 is an experiment, with results of its own."""
    prompts, dtype = dict(model.prompts), model.engine.dtype
    return _model_meta.ModelMeta.create_empty(
        {
            "name": _name_of(model) if name is None else _checked_name(name),
            "revision": json_digest([*contents, prompts, model.default_prompt_name])[:40],
            "framework": ["NumPy"],
            "use_instructions": bool(prompts),
            "experiment_kwargs": None if dtype == "float32" else {"dtype": dtype},
            **values,
        }
    )


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or "/" not in name:
        raise InputError(f"name must be 'organization/model', as mteb stores results, not {name!r}")
    return name


def _name_of(model: Encoder) -> str:
    """Return the name of a model that was given without one."""
    source = source_of(model)
    if source is None:
        return f"wordpiece-bert/{type(model).__name__}"
    if Path(source.name).is_dir():
        return f"wordpiece-bert/{Path(source.folder).name}"
    return source.name if "/" in source.name else f"wordpiece-bert/{source.name}"
