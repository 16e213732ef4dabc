"""How far float32 is from float64: ours with both engines beside torch, over the same rows of ids.

The reference is the model of transformers in float64. Compared with it are our engines, and torch in float32 with its usual
attention and with the one that transformers writes out ("eager"), on one thread. torch gets each row alone, so that nothing
is padded. The error of a text is the largest difference of a number, as a fraction of the largest number of the same vector;
of the vectors of its tokens, the worst counts. Beside the model itself, models of its shape with random weights magnify
rounding: the larger the weights, the more.

This file is also the program that runs torch, in an interpreter that may have nothing but torch, transformers and NumPy. So
what needs this package is imported by functions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wordpiece_bert import RaggedBatch

Numbers = npt.NDArray[np.floating[Any]]

#: Standard deviations of the weights of random models.
DEVIATIONS = (0.25, 1.0)

#: torch's ways of computing: number type and attention. The first is the reference.
KINDS = {"float64": "sdpa", "torch": "sdpa", "torch eager": "eager"}
OURS = ("rust", "numpy")
#: Whose distance to float64 ours may not exceed.
USUAL = "torch"

#: Rows that are compared at once.
GROUP = 64


class States(NamedTuple):
    """What an engine computes for some rows."""

    #: The last hidden states, [tokens, H], one row after the other.
    tokens: Numbers
    #: Their means by row, as the engine computes them, [rows, H].
    means: Numbers


class Distances(NamedTuple):
    """A statistic of the errors of texts."""

    median: float
    percentile_99: float
    greatest: float


def run(options: argparse.Namespace, texts: list[str]) -> tuple[str, dict[str, Any]]:
    """Compare all engines over the models.

    Parameters
    ----------
    options
        The options of the command: `model`, `longest`, the most tokens of a row, and `torch`, a Python interpreter.
    texts
        The texts.

    Returns
    -------
    str
        A section of the report.
    dict
        The figures by model, kind of vector and engine.
    """
    from wordpiece_bert import Tokenizer
    from wordpiece_bert.hub import find_model

    folder = find_model(options.model)
    longest = min(options.longest, _config(folder).usual_longest_row)
    # Sorted, because the NumPy engine pads the rows of a group.
    by_length = sorted(texts, key=len)
    tokenizer = Tokenizer.from_pretrained(folder)
    rows = tokenizer.encode_batch(by_length, truncation=True, max_length=longest, padding=False)
    with tempfile.TemporaryDirectory() as place:
        models = {options.model: folder}
        for deviation in DEVIATIONS:
            models[f"random, deviation {deviation:g}"] = random_model(folder, Path(place) / f"{deviation:g}", deviation)

        def compare(model: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
            return _of_model(model, rows, options.torch)

        # Nothing is timed, so the models may run side by side.
        with ThreadPoolExecutor(len(models)) as pool:
            results = list(pool.map(compare, models.values()))
        found = {title: by_kind for title, (by_kind, _) in zip(models, results, strict=True)}
        lines = [
            *results[0][1],
            f"- {len(rows)} rows of at most {longest} tokens, {rows.lengths.mean():.0f} on average",
        ]
        for title, by_kind in found.items():
            lines += ["", f"### {title}", "", *_table(by_kind)]
    return "\n".join(lines), found


def random_model(like: Path, folder: Path, deviation: float) -> Path:
    """Write a model of another one's shape whose weights have this standard deviation, weights of norms about 1."""
    from wordpiece_bert.bert import AutoModel
    from wordpiece_bert.bert.parts import layout_of

    model = AutoModel.base_from_pretrained(like, "numpy")
    random, weights = np.random.default_rng(0), {}
    for name, sizes in layout_of(type(model), model.config).base.items():
        shape = [getattr(model.config, size) if isinstance(size, str) else size for size in sizes]
        weights[name] = random.standard_normal(shape, np.float32) * np.float32(deviation)
        if len(shape) == 1 and name.endswith("weight"):
            weights[name] += 1
    type(model)(model.config, weights, backend="numpy").save_pretrained(folder)
    return folder


def errors(states: States, exact: States, ends: npt.NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Return the errors of rows, of the vectors of tokens and of their means; row i is the tokens ends[i] to ends[i + 1]."""
    of_tokens, of_means = (
        np.abs(found.astype(np.float64) - right).max(axis=1) / np.abs(right).max(axis=1)
        for found, right in zip(states, exact, strict=True)
    )
    return np.maximum.reduceat(of_tokens, ends[:-1]), of_means


def statistics(of_texts: Numbers) -> Distances:
    """Return what is reported of the errors of texts."""
    return Distances(float(np.median(of_texts)), float(np.percentile(of_texts, 99)), float(of_texts.max()))


def _config(folder: Path) -> Any:
    from wordpiece_bert.bert.auto import read_config

    return read_config(folder)


def _of_model(folder: Path, rows: RaggedBatch, python: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the statistics of one model by kind of vector and engine, and what the engines are."""
    from benchmarks.process import Engine
    from wordpiece_bert.bert import AutoModel

    ours: dict[str, Any] = {backend: AutoModel.base_from_pretrained(folder, backend, "float32") for backend in OURS}
    engines = [*(f"ours {backend}" for backend in OURS), *list(KINDS)[1:]]
    parts: dict[str, list[tuple[Numbers, Numbers]]] = {engine: [] for engine in engines}
    # A path that is absolute is not looked for among the programs of engines.
    with (
        Engine("torch", 1, str(Path(__file__).resolve()), python) as torch,
        tempfile.TemporaryDirectory() as place,
        ThreadPoolExecutor(1) as beside,
    ):
        file = Path(place) / "states.npz"
        torch.ask(do="load", folder=str(folder))
        for start in range(0, len(rows), GROUP):
            part = slice(start, min(start + GROUP, len(rows)))
            offsets = rows.row_offsets[part.start : part.stop + 1]
            ends, each = offsets - offsets[0], np.split(rows.ids[offsets[0] : offsets[-1]], offsets[1:-1] - offsets[0])
            answer = beside.submit(torch.ask, do="states", rows=[row.tolist() for row in each], path=str(file))
            states = {f"ours {backend}": _of_ours(model, rows, part) for backend, model in ours.items()}
            answer.result()
            with np.load(file) as read:
                states |= {kind: States(read[f"{kind} tokens"], read[f"{kind} means"]) for kind in KINDS}
            for engine in engines:
                parts[engine].append(errors(states[engine], states["float64"], ends))
    found: dict[str, dict[str, Any]] = {}
    for number, kind in enumerate(("hidden states", "means")):
        of_texts = {engine: np.concatenate([one[number] for one in of_parts]) for engine, of_parts in parts.items()}
        found[kind] = {engine: statistics(one)._asdict() for engine, one in of_texts.items()}
    return found, [f"- ours: {ours['rust'].engine}", f"- torch {torch.version}"]


def _of_ours(model: Any, rows: RaggedBatch, part: slice) -> States:
    """Return what one of our engines computes for some rows."""
    tokens, ends = model.token_states(rows, part)
    if model.takes_rows:
        return States(tokens, model.pooled(rows, part, ["mean"]))
    # The NumPy engine pools in this way as well, and would run the encoder again.
    means = [model.pool(x[None], np.ones((1, len(x)), bool), "mean") for x in np.split(tokens, ends[1:-1])]
    return States(tokens, np.concatenate(means))


def _table(by_kind: dict[str, dict[str, Any]]) -> list[str]:
    """Return the lines of a model's table, and whether ours is as near as torch."""
    from benchmarks import report

    names = {"median": "median", "percentile_99": "99th percentile", "greatest": "largest"}
    header = ["engine", *(f"{kind}, {name}" for kind in by_kind for name in names.values())]
    engines = next(iter(by_kind.values()))
    cells = [[one, *(f"{of_kind[one][name]:.2e}" for of_kind in by_kind.values() for name in names)] for one in engines]
    lines = [*report.markdown(header, cells), ""]
    for kind, of_kind in by_kind.items():
        ours, usual = of_kind[f"ours {OURS[0]}"], of_kind[USUAL]
        for name in ("median", "percentile_99"):
            lowest = min(of_kind, key=lambda engine: of_kind[engine][name])
            verdict = "reached" if ours[name] <= usual[name] else "NOT reached"
            share = f"ours rust is {ours[name] / usual[name]:.2f} of {USUAL}'s" if usual[name] else "exact"
            lines.append(f"- {kind}, {names[name]}: {share}, at most 1: {verdict}; the lowest is that of {lowest}")
    return lines


# --- the program that runs torch


class Torch:
    """The models of one folder, by kind."""

    def version(self) -> str:
        """Import torch, and return the versions."""
        os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
        import torch
        import transformers

        self.torch = torch
        torch.set_num_threads(1)
        return f"{torch.__version__}, transformers {transformers.__version__}"

    def load(self, folder: Path) -> None:
        """Load a model in each kind."""
        from transformers import AutoModel

        def load(kind: str, attention: str) -> Any:
            dtype = self.torch.float64 if kind == "float64" else self.torch.float32
            return AutoModel.from_pretrained(folder, dtype=dtype, attn_implementation=attention).eval()

        self.models = {kind: load(kind, attention) for kind, attention in KINDS.items()}

    def states(self, rows: Sequence[list[int]], path: Path) -> None:
        """Write the last hidden states of rows and their means, of each kind, to a file .npz."""
        arrays: dict[str, Any] = {}
        with self.torch.inference_mode():
            for kind, model in self.models.items():
                states = [model(input_ids=self.torch.tensor([row])).last_hidden_state[0] for row in rows]
                arrays[f"{kind} tokens"] = self.torch.cat(states).numpy()
                arrays[f"{kind} means"] = self.torch.stack([x.mean(0) for x in states]).numpy()
        np.savez(path, **arrays)


def serve(torch: Torch) -> None:
    """Answer requests until the input ends, as `engines/model_worker.py`."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            match request["do"]:
                case "pin":
                    # Nothing is timed: this process may run on any core.
                    answer = {"version": torch.version()}
                case "load":
                    torch.load(Path(request["folder"]))
                case "states":
                    torch.states(request["rows"], Path(request["path"]))
        except ImportError as error:
            answer = {"missing": f"not installed: {error}"}
        except Exception as error:  # noqa: BLE001 - torch may raise anything; the driver reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(Torch())
