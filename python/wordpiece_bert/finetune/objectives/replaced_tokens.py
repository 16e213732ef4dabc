"""Replaced-token detection, the objective of ELECTRA.

Source: Clark et al., "ELECTRA" (2020), section 2, and Google's released code. A small generator learns the masked
tokens and draws one from its softmax at each of them; the discriminator learns which tokens of the text differ from
the original. The loss is L_generator + 50 · L_discriminator: the mean cross entropy of the masked tokens, and the mean
binary cross entropy of all visible ones. No gradient passes through the drawing. Generator and discriminator share the
embeddings: the tables of words, positions and types, and their norm; the generator's decoder is the word table too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint.names import drawn_weights
from wordpiece_bert.bert.families.electra import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining
from wordpiece_bert.bert.heads.parts import masked_lm_names
from wordpiece_bert.bert.inputs import check_labels
from wordpiece_bert.bert.losses import binary_cross_entropy
from wordpiece_bert.bert.parts import layout_of
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.memory import row_sizes
from wordpiece_bert.finetune.network import Gradients, Network, refuse_int8
from wordpiece_bert.finetune.objectives.examples import (
    ExamplesObjective,
    Sums,
    collated,
    metrics_of_words,
)
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.finetune.token_heads import DiscriminatorTraining, MaskedLMTraining
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.heads import HeadInputs
    from wordpiece_bert.finetune.network import Parameters
    from wordpiece_bert.finetune.passes import PassOptions

#: λ of the paper: the weight of the discriminator's loss beside the generator's.
DISCRIMINATOR_WEIGHT = 50.0
#: The generator's folder in the discriminator's, and the prefix of its parameters beside the discriminator's.
_GENERATOR = "generator"
#: Tokens whose probabilities are computed at once: 63 MB for a vocabulary of 30,522.
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class ElectraPair:
    """A generator and a discriminator that share their embeddings.

    Attributes
    ----------
    generator : ElectraForMaskedLM
        Predicts masked tokens. Its embeddings are the discriminator's as soon as both are trained.
    discriminator : ElectraForPreTraining
        Detects replaced tokens.

    Raises
    ------
    ConfigError
        A model has another class, or the sizes of the embeddings differ.

    Examples
    --------
    >>> from wordpiece_bert.bert import ElectraConfig
    >>> from wordpiece_bert.finetune.objectives import new_pair
    >>> pair = new_pair(
    ...     ElectraConfig(
    ...         vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128
    ...     )
    ... )
    >>> pair.generator.config.hidden_size, pair.discriminator.config.hidden_size
    (16, 64)
    """

    generator: ElectraForMaskedLM
    discriminator: ElectraForPreTraining

    def __post_init__(self) -> None:
        for name, kind in (("generator", ElectraForMaskedLM), ("discriminator", ElectraForPreTraining)):
            if not isinstance(getattr(self, name), kind):
                raise ConfigError(f"the {name} must be {kind.__name__}, not {type(getattr(self, name)).__name__}")
        _check_shared(self.generator.config, self.discriminator.config)

    @classmethod
    @completed_by(FITTING)
    def from_pretrained(
        cls, name: str | os.PathLike[str], backend: str = "rust", *, download: bool = False, seed: int = 42
    ) -> Self:
        """Load the discriminator of a folder and the generator in its folder ``generator``.

        What the folder lacks is drawn: a head of the discriminator, and a generator as `new_pair` makes it.

        Returns
        -------
        ElectraPair
            Generator and discriminator.

        Raises
        ------
        ConfigError
            It is not an ELECTRA model.

        Examples
        --------
        A folder that has no generator gets a new one, of a quarter of the width:

        >>> from wordpiece_bert.bert import ElectraConfig, ElectraForPreTraining
        >>> from wordpiece_bert.finetune.objectives import ElectraPair
        >>> config = ElectraConfig(
        ...     vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128
        ... )
        >>> ElectraForPreTraining.from_config(config).save_pretrained("discriminator")
        >>> ElectraPair.from_pretrained("discriminator").generator.config.hidden_size
        16
        """
        folder = find_model(name, download=download)
        kind = read_config(folder).model_type
        if kind != "electra":
            raise ConfigError(f"{folder}: replaced tokens are detected by an ELECTRA, not by a model of type {kind!r}")
        discriminator: Any = model_for(folder, "PreTraining", seed=seed, backend=backend)
        if (Path(folder) / _GENERATOR).is_dir():
            return cls(ElectraForMaskedLM.from_pretrained(Path(folder) / _GENERATOR, backend), discriminator)
        return cls(_new_generator(generator_config(discriminator.config), discriminator, seed + 1), discriminator)


def _check_shared(generator: BertConfig, discriminator: BertConfig) -> None:
    for size in ("vocab_size", "embedding_size", "max_position_embeddings", "type_vocab_size"):
        one, other = getattr(generator, size), getattr(discriminator, size)
        if one != other:
            raise ConfigError(
                f"generator and discriminator share their embeddings, but {size} is {one} for the generator and "
                f"{other} for the discriminator"
            )


def generator_config(config: ElectraConfig) -> ElectraConfig:
    """Return the sizes of a generator: a quarter of the discriminator's width and heads, in as many layers.

    At least one head is left, and heads keep their width.

    Parameters
    ----------
    config : ElectraConfig
        The sizes of the discriminator.
    """
    heads = max(1, config.num_attention_heads // 4)
    hidden = config.hidden_size // config.num_attention_heads * heads
    intermediate = max(1, config.intermediate_size * hidden // config.hidden_size)
    return replace(config, hidden_size=hidden, num_attention_heads=heads, intermediate_size=intermediate)


@completed_by(FITTING)
def new_pair(
    config: ElectraConfig, generator: ElectraConfig | None = None, *, seed: int = 42, backend: str = "rust"
) -> ElectraPair:
    """Return an ELECTRA with weights drawn for pre-training: N(0, initializer_range²), biases 0, norms 1.

    Parameters
    ----------
    config : ElectraConfig
        The sizes of the discriminator.
    generator : ElectraConfig, optional
        The sizes of the generator; by default a quarter of the width and the heads.

    Returns
    -------
    ElectraPair
        Generator and discriminator.

    Raises
    ------
    ConfigError
        The sizes of the embeddings differ.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from wordpiece_bert.bert import ElectraConfig
    >>> from wordpiece_bert.finetune.objectives import new_pair
    >>> config = ElectraConfig(
    ...     vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128
    ... )
    >>> pair = new_pair(
    ...     config, generator=replace(config, hidden_size=32, num_attention_heads=2)
    ... )
    >>> pair.generator.config.hidden_size, pair.discriminator.config.hidden_size
    (32, 64)
    """
    discriminator = ElectraForPreTraining.from_config(config, seed=seed, backend=backend)
    return ElectraPair(_new_generator(generator or generator_config(config), discriminator, seed + 1), discriminator)


def _new_generator(config: ElectraConfig, discriminator: ElectraForPreTraining, seed: int) -> ElectraForMaskedLM:
    _check_shared(config, discriminator.config)
    weights = drawn_weights(layout_of(ElectraForMaskedLM, config), config, seed)
    own = dict(discriminator.named_parameters())
    weights |= {name: own[name] for name in weights.keys() & own.keys() if _is_shared(name)}
    return ElectraForMaskedLM(config, weights, backend=discriminator.backend, source="new weights")


def _is_shared(name: str) -> bool:
    """Whether a parameter is one of the embeddings; the projection from their width is each encoder's own."""
    return name.startswith("electra.embeddings.")


class ReplacedTokens(ExamplesObjective[ElectraPair]):
    """Replaced tokens: a generator of masked tokens, and a discriminator that detects what it has replaced.

    An evaluation has ``eval_loss``, L_generator + 50 · L_discriminator; ``eval_mlm_loss``, ``eval_perplexity`` and
    ``eval_mlm_accuracy`` of the generator; and of the discriminator ``eval_replaced_loss``, ``eval_replaced_accuracy``
    over all visible tokens, and ``eval_replaced_f1`` of those that are replaced. The draws are the same each time.

    Parameters
    ----------
    weight : float, default 50.0
        The weight of the discriminator's loss.
    """

    off_scale: ClassVar[tuple[str, ...]] = ("eval_perplexity", "eval_mlm_loss", "eval_replaced_loss")

    def __init__(self, weight: float = DISCRIMINATOR_WEIGHT) -> None:
        self.weight = weight

    def new_config(self, sizes: Mapping[str, Any]) -> ElectraConfig:
        """Return the configuration of a new discriminator, whose embeddings are as wide as its layers."""
        return ElectraConfig(**{"embedding_size": sizes["hidden_size"], **sizes})

    def config_from_file(self, file: str | os.PathLike[str]) -> ElectraConfig:
        """Read the configuration of a new discriminator."""
        return ElectraConfig.from_file(file)

    def new_model(self, config: Any, *, pairs: bool = False, seed: int = 42, backend: str = "rust") -> ElectraPair:
        """Return generator and discriminator with random weights, as `new_pair`."""
        del pairs
        return new_pair(config, seed=seed, backend=backend)

    def load_model(
        self, name: str | os.PathLike[str], *, pairs: bool = False, seed: int = 42, download: bool = False
    ) -> ElectraPair:
        """Load a discriminator and its generator, as `ElectraPair.from_pretrained`."""
        del pairs
        return ElectraPair.from_pretrained(name, seed=seed, download=download)

    def problem(self, model: ElectraPair) -> PairProblem:
        """Return the loss and the parameters of a pair."""
        if not isinstance(model, ElectraPair):
            raise ConfigError(f"replaced tokens need an ElectraPair, not {type(model).__name__}")
        return PairProblem(model, self.weight)

    def measured(self, model: ElectraPair, batches: Iterable[Mapping[str, Any]], seed: int) -> dict[str, float]:
        """Return the losses, the accuracies and F1."""
        words, detected = Sums(), _Detected()
        generator = model.generator
        for number, batch in enumerate(batches):
            labels = _labels_of(batch, generator.config.vocab_size)
            inputs = batch["attention_mask"], batch["token_type_ids"]
            chosen = labels != IGNORED
            x = generator.base_model(batch["input_ids"], *inputs).last_hidden_state
            with np.errstate(under="ignore"):
                logits = generator.predict(x[chosen])  # [n, V]
            words.add(logits, labels[chosen])
            ids = sampled(logits, KeyedDropout(seed, number).uniform("sample", *np.nonzero(chosen)))
            corrupted, replaced = _corrupted(batch["input_ids"], labels, ids, np.nonzero(chosen))
            visible = np.asarray(batch["attention_mask"]) != 0
            detected.add(model.discriminator(corrupted, *inputs).logits[visible], replaced[visible])
        return {
            "eval_loss": words.loss + self.weight * detected.loss,
            **metrics_of_words(words),
            "eval_replaced_loss": detected.loss,
            "eval_replaced_accuracy": detected.accuracy,
            "eval_replaced_f1": detected.f1,
        }

    def shown(self, metrics: Mapping[str, float]) -> str:
        """Return the generator's perplexity, and how well replaced tokens are detected."""
        return (
            f"the generator's perplexity {metrics['eval_perplexity']:.2f}; {metrics['eval_replaced_accuracy']:.1%} of "
            f"tokens right, F1 of replaced ones {metrics['eval_replaced_f1']:.3f}"
        )


class PairProblem:
    """L_generator + weight · L_discriminator as a function of the parameters of both.

    The discriminator's parameters have the names of its checkpoint, the generator's own ones the prefix
    ``generator.``; the shared ones occur once.

    Parameters
    ----------
    pair : ElectraPair
        What to start from.
    weight : float
        The weight of the discriminator's loss.
    """

    averages_tokens = True  # as in the generator's head

    def __init__(self, pair: ElectraPair, weight: float) -> None:
        self.start, self._weight = pair, weight
        refuse_int8(pair.generator)
        refuse_int8(pair.discriminator)
        self._generator, self._discriminator = Network(pair.generator), Network(pair.discriminator)
        self.config, self.backend = pair.discriminator.config, pair.discriminator.backend
        #: The name of each of the generator's parameters among the parameters of both.
        self._names = {
            name: name if _is_shared(name) else f"{_GENERATOR}.{name}"
            for name in self._generator.parameters(pair.generator)
        }
        self._trained_from: tuple[int | None, int | None] = None, None

    def parameters(self) -> Parameters:
        """Return float32 copies of the parameters of both, the shared ones from the discriminator."""
        found = self._discriminator.parameters(self.start.discriminator)
        own = self._generator.parameters(self.start.generator)
        found = {self._names[name]: array for name, array in own.items()} | found
        return {name: array.copy() for name, array in found.items()}

    def freeze(self, frozen: Collection[str]) -> None:
        """Set which parameters are not trained."""
        own = {name for name, joint in self._names.items() if joint in frozen}
        self._trained_from = self._generator.lowest_trained(own), self._discriminator.lowest_trained(frozen)

    def batch(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of a model; labels of pairs are left out."""
        return collated(rows)[0]

    def gradients(
        self, parameters: Parameters, batch: Any, options: PassOptions, engine: TrainingEngine
    ) -> tuple[float, Mapping[str, Array]]:
        """Return loss and gradients; what is drawn depends on the key of dropout."""
        key = options.dropout if isinstance(options.dropout, KeyedDropout) else KeyedDropout(0, 0)
        weights = options.weights
        head = _SamplingHead(self._generator, key)
        first = compute(
            self._generator,
            {name: parameters[joint] for name, joint in self._names.items()},
            batch,
            options._replace(
                dropout=options.dropout and key.of_part(_GENERATOR),
                trained_from=self._trained_from[0],
                weights=weights and weights[:1],
            ),
            engine=engine,
            head=head,
        )
        labels = _labels_of(batch, self.config.vocab_size)
        corrupted, replaced = _corrupted(batch["input_ids"], labels, head.ids, head.places)
        second = compute(
            self._discriminator,
            parameters,
            {**batch, "input_ids": corrupted, "labels": replaced},
            options._replace(trained_from=self._trained_from[1], weights=weights and weights[1:]),
            engine=engine,
            head=DiscriminatorTraining(self._discriminator, self._weight),
        )
        gradient = Gradients(second.gradients)
        for name, array in first.gradients.items():
            gradient.add(self._names[name], array)
        return first.loss + second.loss, gradient

    def model(self, parameters: Parameters) -> ElectraPair:
        """Return a pair with copies of the parameters."""
        own = {name: parameters[joint].copy() for name, joint in self._names.items()}
        rest = {name: parameters[name].copy() for name in self._discriminator.parameters(self.start.discriminator)}
        one, other = self.start.generator, self.start.discriminator
        return ElectraPair(
            ElectraForMaskedLM(one.config, own, backend=one.backend, dtype=one.dtype, instructions=one.instructions),
            ElectraForPreTraining(
                other.config, rest, backend=other.backend, dtype=other.dtype, instructions=other.instructions
            ),
        )

    def write(self, model: ElectraPair, output: AtomicFolder) -> None:
        """Write the discriminator, and the generator into the folder ``generator``."""
        write_files(model.discriminator, output)
        write_files(model.generator, output, _GENERATOR)

    def description(self) -> dict[str, Any]:
        """Return the class and both configurations."""
        configs = {"config": self.config.to_dict(), "generator": self.start.generator.config.to_dict()}
        return {"class": "ElectraPair", **configs, "weight": self._weight}

    def sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        """Return the tokens of rows, and how many of them have scores of the vocabulary."""
        return row_sizes(rows, scores=True)

    def counts(self, batch: Any) -> tuple[int, ...]:
        """Return how many tokens are masked, and how many are visible."""
        labels = _labels_of(batch, self.config.vocab_size)
        return int((labels != IGNORED).sum()), int((np.asarray(batch["attention_mask"]) != 0).sum())

    def check(self, dataset: Dataset, args: TrainingArguments | None) -> None:
        """Masked tokens of any text can be learned."""


class _SamplingHead(MaskedLMTraining):
    """The generator's head, which draws a token at each masked place from the scores of the forward pass."""

    def __init__(self, network: Network, key: KeyedDropout) -> None:
        super().__init__(network, masked_lm_names(ElectraForMaskedLM, network.config))
        self._key = key

    def see(self, given: HeadInputs, chosen: npt.NDArray[np.intp], logits: Array) -> None:
        """Draw the tokens `ids` [n] at `places`, rows and columns [n]."""
        self.places = given.tokens.rows[chosen], given.tokens.columns[chosen]
        self.ids = sampled(logits, self._key.uniform("sample", *self.places))


def sampled(logits: Array, uniform: npt.NDArray[np.float64]) -> Ids:
    """Draw from the softmax of each row: the first id whose cumulative probability exceeds the number of the row.

    Parameters
    ----------
    logits : array
        Scores, [n, V].
    uniform : array of float64
        Numbers from 0 to below 1, [n].

    Returns
    -------
    array of int64
        Ids, [n].
    """
    ids = np.empty(len(logits), np.int64)
    for start in range(0, len(logits), _BLOCK):
        part = slice(start, start + _BLOCK)
        rows = logits[part].astype(np.float64)
        sums = np.cumsum(np.exp(rows - rows.max(axis=1, keepdims=True)), axis=1)  # [block, V]
        ids[part] = (sums <= uniform[part, None] * sums[:, -1:]).sum(axis=1)
    return ids


def _labels_of(batch: Mapping[str, Any], vocab_size: int) -> Ids:
    return check_labels("labels", batch["labels"], np.shape(batch["input_ids"]), vocab_size, IGNORED)


def _corrupted(input_ids: Any, labels: Ids, ids: Ids, places: Any) -> tuple[Ids, Ids]:
    """Return the text with the tokens that were drawn, [B, S], and 1 where they differ from the original, [B, S]."""
    original = np.where(labels == IGNORED, np.asarray(input_ids), labels)
    corrupted = original.copy()
    corrupted[places] = ids
    return corrupted, (corrupted != original).astype(np.int64)


class _Detected(Sums):
    """Binary cross entropy, accuracy and F1 over batches."""

    def __init__(self) -> None:
        super().__init__()
        self._both = self._either = 0

    def add(self, logits: Array, labels: Ids) -> None:
        """Add logits and labels [n]."""
        found = logits > 0
        self._loss += float(binary_cross_entropy(logits, labels.astype(np.float32))) * len(logits)
        self._count += len(logits)
        self._right += int((found == labels).sum())
        self._both += int((found & (labels == 1)).sum())
        self._either += int(found.sum()) + int(labels.sum())

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of replaced tokens."""
        return 2 * self._both / max(self._either, 1)
