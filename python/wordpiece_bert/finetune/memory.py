"""Whether a batch fits into memory, checked before a training starts rather than found out by the kernel's killer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert.plan.parts import Attention, Convolution, Mlp
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.batches import Dataset, batches_of_epoch, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.plan.parts import Residual
    from wordpiece_bert.finetune.arguments import TrainingArguments

#: Batches of the first epoch that are looked at.
_BATCHES = 50
_PROC, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def check_memory(
    config: BertConfig,
    trained: int,
    dataset: Dataset,
    args: TrainingArguments,
    sizes_of: Callable[[Sequence[Any]], tuple[int, int]],
) -> None:
    """Check that the largest of the first batches fits into the memory that is free.

    Parameters
    ----------
    config : BertConfig
        The sizes of the encoder.
    trained : int
        How many numbers are trained.
    dataset : Dataset
        The rows.
    args : TrainingArguments
        The batch size, and whether activations are computed again.
    sizes_of : callable
        From rows to their number of tokens, and the number of those for which a masked-language head computes scores.

    Raises
    ------
    InputError
        It does not fit; the message has the sizes. Nothing is checked where the system does not tell what is free.
    """
    free = available_memory()
    if free is None:
        return
    largest = rows = labelled = 0
    for numbers in islice(batches_of_epoch(dataset, args, 0), _BATCHES):
        tokens, with_scores = sizes_of(rows_of(dataset, numbers))
        if tokens > largest:
            largest, rows, labelled = tokens, len(numbers), with_scores
    needed = needed_memory(
        config, trained, largest, gradient_checkpointing=args.gradient_checkpointing, labelled=labelled
    )
    if needed > free:
        remedies = "a smaller per_device_train_batch_size (with gradient_accumulation_steps)"
        if not args.gradient_checkpointing:
            remedies += " or gradient_checkpointing=True"
        raise InputError(
            f"a batch of {rows} rows and {largest:,} tokens needs about {needed / 1e9:.2f} GB for its activations and "
            f"gradients, but {free / 1e9:.2f} GB are free: use {remedies}"
        )


def needed_memory(
    config: BertConfig, trained: int, tokens: int, *, gradient_checkpointing: bool = False, labelled: int = 0
) -> int:
    """Return about how many bytes one step takes besides parameters and moments: float32 activations and gradients.

    Parameters
    ----------
    config : BertConfig
        The sizes of the encoder.
    trained : int
        How many numbers are trained; each has a gradient.
    tokens : int
        The tokens of the batch.
    gradient_checkpointing : bool, default False
        Whether only the input of each layer is kept.
    labelled : int, default 0
        The tokens for which a masked-language head computes the scores of the vocabulary.
    """
    plan = config.plan()
    H = config.hidden_size
    layers = [_kept_of_layer(config, layer) for layer in plan.layers]
    kept = len(layers) * H + max(layers, default=0) if gradient_checkpointing else sum(layers)
    kept += max((_in_backward_pass(config, residual) for _, residual in plan.bodies()), default=0)
    kept += sum(H for _ in plan.embeddings.then) + (H if plan.last else 0)
    relatives = {body.relative for _, residual in plan.bodies() if isinstance(body := residual.body, Attention)}
    for relative in relatives - {None}:
        assert relative is not None, "taken out"
        # The gradients of the projected relative positions, at most 2K, of every 128 tokens.
        terms = sum(term is not None for term in (relative.keys, relative.queries))
        kept += terms * 2 * relative.span * H // 128
    scores = 3 * labelled * config.vocab_size  # logits, their logarithms and their gradient
    return 4 * (trained + tokens * kept + scores)


def _kept_of_layer(config: BertConfig, layer: tuple[Residual, ...]) -> int:
    """Return how many numbers of a token a layer keeps for its backward pass."""
    H = config.hidden_size
    # The input of the layer, if a body and not a norm reads it, and what each norm has standardized.
    kept = H if layer and layer[0].before is None else 0
    for residual in layer:
        norms = (residual.before, residual.after, residual.again)
        kept += H * sum(norm is not None for norm in norms)
        body = residual.body
        if isinstance(body, Attention):  # queries, keys, values and the context; queries and keys standardized
            kept += _width(config, body.query.outputs) * (4 if body.norms is None else 6)
        elif isinstance(body, Mlp):
            kept += sum(_width(config, dense.outputs) for dense in body.inner)
        elif isinstance(body, Convolution):
            kept += 2 * H  # its input, and what it has before the activation
    return kept


def _in_backward_pass(config: BertConfig, residual: Residual) -> int:
    """Return how many numbers of a token there are while the gradient goes back through a sub-layer."""
    H, body = config.hidden_size, residual.body
    if isinstance(body, Mlp):
        return 10 * H + 6 * sum(_width(config, dense.outputs) for dense in body.inner)
    if isinstance(body, Convolution):
        return (4 + 2 * body.width) * H  # the neighbours of each token, and their gradients
    return 4 * H + 6 * _width(config, body.query.outputs)


def _width(config: BertConfig, size: str | int) -> int:
    return int(getattr(config, size)) if isinstance(size, str) else size


def available_memory() -> int | None:
    """Return how many bytes this process can still have, by the kernel and by its control group; None if unknown."""
    lines = _read(_PROC).splitlines()
    limits = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limit, used = _read(_CGROUP / "memory.max").strip(), _read(_CGROUP / "memory.current").strip()
    if limit.isdecimal() and used.isdecimal():
        # Pages of files that the kernel can drop count as used.
        dropped = [
            int(line.split()[1]) for line in _read(_CGROUP / "memory.stat").splitlines() if "inactive_file" in line
        ]
        limits.append(max(0, int(limit) - int(used) + sum(dropped[:1])))
    return min(limits, default=None)


def row_sizes(rows: Sequence[Any], *, scores: bool) -> tuple[int, int]:
    """Return the tokens of rows with ``input_ids``, and with `scores` how many labels of them count; 0 for other rows.

    Parameters
    ----------
    rows : sequence
        The rows of a data set.
    scores : bool
        Whether the head computes scores of the vocabulary for labelled tokens.
    """
    if not all(isinstance(row, Mapping) and "input_ids" in row for row in rows):
        return 0, 0
    tokens = sum(
        int(np.sum(row["attention_mask"])) if "attention_mask" in row else np.asarray(row["input_ids"]).size
        for row in rows
    )
    labelled = sum(int((np.asarray(row["labels"]) != IGNORED).sum()) for row in rows if "labels" in row)
    return tokens, labelled if scores else 0


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
