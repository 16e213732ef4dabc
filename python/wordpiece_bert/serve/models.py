"""The models of a server by name, each behind a queue of its kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, TokenClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder
from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds.dense import dense_model
from wordpiece_bert.serve.kinds.heads import HeadModel, head_of
from wordpiece_bert.serve.kinds.m3 import M3Model
from wordpiece_bert.serve.kinds.outputs import Classifies, MakesSparse, MakesTokenVectors, MakesVectors
from wordpiece_bert.serve.kinds.sequences import SequenceModel
from wordpiece_bert.serve.kinds.served_model import Served
from wordpiece_bert.serve.kinds.tokens import MaskModel, TokenModel
from wordpiece_bert.serve.kinds.vector_models import MultiVectorModel, SparseModel
from wordpiece_bert.serve.settings import ServerSettings
from wordpiece_bert.tasks.task_loading import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.serve.metrics import Metrics

#: What a server takes as a model.
AnyModel: TypeAlias = (
    "SentenceEncoder | SparseEncoder | MultiVectorEncoder | M3Encoder | CrossEncoder | Loaded | FrozenClassifier "
    "| StaticClassifier"
)

Kind = TypeVar("Kind", bound=Served)

#: What the kinds are for, in messages.
_MEANINGS = {
    MakesVectors: "a sentence encoder, which makes vectors",
    MakesSparse: "a sparse encoder",
    MakesTokenVectors: "a sentence encoder or a multi-vector encoder, which have vectors of tokens",
    Classifies: "a classifier of texts",
    TokenModel: "a token classifier",
    MaskModel: "a masked-language model",
}


class Models:
    """The models of a server by name.

    Parameters
    ----------
    models : mapping
        The models by name.
    settings : ServerSettings
        The limits.
    of_models : mapping
        Settings of single models by name, instead of `settings`.
    metrics : Metrics
        Counts batches and tokens.

    Raises
    ------
    InputError
        There is no model, or one is of no kind that the server has.
    """

    def __init__(
        self,
        models: Mapping[str, AnyModel],
        settings: ServerSettings,
        of_models: Mapping[str, ServerSettings],
        metrics: Metrics,
    ) -> None:
        check_instance("models", models, Mapping, "a dict of names and encoders")
        if not models:
            raise InputError("a server needs a model: give a dict of names and encoders")
        check_instance("model_settings", of_models, Mapping, "a dict of names and ServerSettings")
        for name in models:
            check_instance("a name in models", name, str)
        for name, own in of_models.items():
            check_instance(f"model_settings[{name!r}]", own, ServerSettings)
            if name not in models:
                raise InputError(f"model_settings has {name!r}, which is no name in models: {', '.join(models)}")
        self._models: dict[str, Served] = {}
        for name, model in models.items():
            try:
                name.encode()
            except UnicodeEncodeError as cause:
                raise InputError(
                    f"models has the name {name!r}, which is not Unicode: give the model another name"
                ) from cause
            self._models[name] = _served(name, model, of_models.get(name, settings), metrics)

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return list(self._models)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._models.values())

    def of_kind(self, kind: type[Kind], name: str | None) -> Kind:
        """Return the model of a kind that has a name; without a name, the first."""
        found = self.find(name, (kind,), _MEANINGS[kind])
        assert isinstance(found, kind)
        return found

    def ranker(self, name: str | None) -> SequenceModel | MultiVectorModel:
        """Return the model that ranks and has a name; without a name, the first cross encoder, else another."""
        meaning = "a cross encoder or a multi-vector encoder, which rank"
        if name is None:
            rankers = [model for model in self if isinstance(model, SequenceModel) and model.ranks]
            if rankers:
                return rankers[0]
            found = self.find(None, (MultiVectorModel,), meaning)
        else:
            found = self.find(name, (SequenceModel, MultiVectorModel), meaning)
        assert isinstance(found, SequenceModel | MultiVectorModel)
        return found

    def find(self, name: str | None, kinds: tuple[type[Served], ...] = (Served,), meaning: str = "a model") -> Served:
        """Return the model of one of some kinds that has a name; without a name, the first.

        Raises
        ------
        RequestError
            With status 404: there is no model of the name. With status 400: it is of another kind.
        """
        served = ", ".join(map(repr, self._models))
        if name is not None and name not in self._models:
            message = f"no model {name!r:.200}; this server has {served}"
            raise RequestError(404, message, param="model", code="model_not_found")
        for model in self._models.values() if name is None else [self._models[name]]:
            if isinstance(model, kinds):
                return model
        what = "this server has no model that is" if name is None else f"the model {name!r} is not"
        raise RequestError(400, f"{what} {meaning}; the models are {served}", param="model")

    async def close(self) -> None:
        """End the work of all models."""
        await asyncio.gather(*(model.close() for model in self))


def _served(name: str, model: object, settings: ServerSettings, metrics: Metrics) -> Served:
    """Put a model behind a queue."""
    if isinstance(model, SentenceEncoder):
        return dense_model(name, model, settings, metrics)
    if isinstance(model, SparseEncoder):
        return SparseModel(name, model, settings, metrics)
    if isinstance(model, MultiVectorEncoder):
        return MultiVectorModel(name, model, settings, metrics)
    if isinstance(model, M3Encoder):
        return M3Model(name, model, settings, metrics)
    if isinstance(model, CrossEncoder):
        return SequenceModel(name, model, settings, metrics)
    if isinstance(model, Loaded) and isinstance(model.model, TokenClassification):
        return TokenModel(name, model, settings, metrics)
    if isinstance(model, Loaded) and isinstance(model.model, MaskedLM | BertForPreTraining):
        return MaskModel(name, model, settings, metrics)
    head = head_of(model)
    if head is not None:
        if not head.labels:
            raise InputError(f"models[{name!r}] is a FrozenClassifier that is not fitted yet: call fit first")
        return HeadModel(name, head, settings, metrics)
    given = type(model.model if isinstance(model, Loaded) else model).__name__
    raise InputError(
        f"models[{name!r}] must be a sentence, sparse, multi-vector, M3 or cross encoder, a FrozenClassifier, a "
        f"StaticClassifier, or what tasks.load returns for a token classifier or a masked-language model, not {given}"
    )
