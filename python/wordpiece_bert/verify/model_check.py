"""`verify_model`: a model and what it is compared with, on the same texts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import checked_choice, finite_number, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import ConfigError, InputError, TruncationWarning
from wordpiece_bert.hub import find_model
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.tokenizer.parameters import READING
from wordpiece_bert.verify.measures import LIMITS, MEASURES, holds
from wordpiece_bert.verify.references import ONNX, OURS, PEERS, is_installed, onnx_file, require
from wordpiece_bert.verify.subjects import subject_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from wordpiece_bert.tokenizer.corpus.text_reader import Errors, Fields, StrPath
    from wordpiece_bert.verify.subjects import Subject


@dataclass(frozen=True)
class Measure:
    """One number of a comparison, and its limit."""

    value: float
    #: The least value that passes; of differences and flips the most.
    limit: float
    passed: bool


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """What `verify_model` found.

    Examples
    --------
    >>> from wordpiece_bert.verify import verify_model
    >>> report = verify_model(
    ...     "minilm", "examples/texts/sentences.txt", dtype="int8", reference="ours"
    ... )
    >>> report.passed, report.measures["lowest_cosine"].value > 0.999
    (True, True)
    """

    #: What kind of model it is, such as ``"sentence encoder"``, and the numbers it was computed in.
    kind: str
    dtype: str
    #: What it was compared with, and the versions.
    reference: str
    #: How many texts or pairs were compared, how many the files have, and how many more could not be read and were
    #: skipped.
    compared: int
    texts: int
    skipped: int
    #: What was measured, by the names of `wordpiece_bert.verify.measures.MEASURES`.
    measures: dict[str, Measure]

    @property
    def passed(self) -> bool:
        """Whether all measures are within their limits."""
        return all(one.passed for one in self.measures.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and whether the model passed, as JSON has them.

        Returns
        -------
        dict
            Numbers, texts, and a dict for each measure.

        Examples
        --------
        >>> from wordpiece_bert.verify import verify_model
        >>> report = verify_model(
        ...     "minilm", "examples/texts/sentences.txt", reference="ours", max_texts=5
        ... )
        >>> report.to_dict()["passed"], report.to_dict()["compared"]
        (True, 5)
        """
        return {"passed": self.passed, **asdict(self)}


@completed_by(READING, LOADING)
def verify_model(
    name: str | os.PathLike[str],
    files: StrPath | Iterable[StrPath],
    *,
    dtype: str = "float32",
    reference: str | None = None,
    limits: Mapping[str, float] | None = None,
    max_texts: int = 500,
    calibrate: Sequence[str] | None = None,
    instructions: str | None = None,
    separator: str | None = "\n",
    field: Fields | None = None,
    column: Fields | None = None,
    errors: Errors = "strict",
    download: bool = False,
    threads: int | None = None,
) -> ModelReport:
    """Compare a model with what is installed, or one of its smaller dtypes with float32.

    Of vectors, cosines are compared, the order of the cosines of all pairs of texts, and the ten nearest texts of each
    text; of rankers the scores, the ten best texts for each query and the best one; of classifiers the logits, and
    which label is highest. Texts that are empty or only white space are left out. Where
    scores are ordered, differences below a hundred-thousandth of the largest score, or of 1, count as none.

    Parameters
    ----------
    name : str or os.PathLike
        The model: an encoder, a ranker, or a model with a head for labels, answers or masked words.
    reference : {"sentence-transformers", "transformers", "model2vec", "onnx", "ours"}, optional
        What to compare with: a program, the ONNX file in the model's folder by ONNX Runtime, or this package in
        float32, which is computed by NumPy if `dtype` is float32 too. By default the first of these that is installed
        and takes the model.
    limits : mapping, optional
        Other limits by name: ``lowest_cosine``, ``median_cosine``, ``rank_correlation`` and ``top_10`` (the share of
        the ten nearest) are the least that pass, ``difference`` (of scores, as a share of the largest) and ``flips``
        (the share of texts with another label, tokens with another label, or queries with another best text) the most.
    max_texts : int, default 500
        The most texts or pairs to compare: a random choice of those in the files, the same each time.

    Returns
    -------
    ModelReport
        The measures, and whether they are within the limits of the dtype.

    Raises
    ------
    MissingPackageError
        The reference is not installed.
    InputError
        The files have no text, or the texts do not fit the model; or the reference cannot run the model.
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for the class that loads the model.

    Examples
    --------
    >>> from wordpiece_bert.verify import verify_model
    >>> found = verify_model(
    ...     "models/reviews", "examples/texts/sentences.txt", dtype="int8", reference="ours"
    ... )
    >>> found.kind, sorted(found.measures)
    ('classifier of texts', ['flips', 'lowest_cosine', 'median_cosine'])
    """
    folder = find_model(name, download=download)
    if reference is not None:
        checked_choice("reference", reference, (*PEERS, OURS))
    if limits is not None and not isinstance(limits, Mapping):
        raise InputError(f"limits must be a dict of numbers by name, not {limits!r:.80}")
    for measure, limit in (limits or {}).items():
        finite_number(f"limits[{checked_choice('a key of limits', measure, tuple(MEASURES))!r}]", limit)
    reader = TextReader(files, separator=separator, field=field, column=column, errors=errors)
    texts = _sample(reader, whole_number("max_texts", max_texts, 1))
    if not texts:
        raise InputError(f"{', '.join(reader.files)}: no text to compare")
    subject = subject_of(folder, texts)
    chosen = _reference(subject, folder, reference)
    loading = {"calibrate": calibrate, "instructions": instructions, "threads": threads}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # both are truncated alike
        model = subject.load(dtype=dtype, **loading)
        numbers = getattr(model, "model", model).engine.dtype
        ours = subject.ours(model)
        if chosen == OURS:
            engine = {"backend": "numpy"} if numbers == "float32" else {"backend": "rust", "instructions": instructions}
            try:
                exact = subject.load(dtype="float32", **engine, calibrate=None, threads=threads)
            except ConfigError as cause:
                if numbers != "int8":
                    raise
                raise InputError(
                    f"{folder} has int8 weights and none in float32 to compare them with: verify the model that it was "
                    "quantized from, with dtype='int8'"
                ) from cause
            theirs = subject.ours(exact)
            described = f"float32 of this package, by {'NumPy' if numbers == 'float32' else 'its Rust kernels'}"
        else:
            described = require(chosen)
            theirs = subject.theirs(model, chosen)
    allowed = {**LIMITS[numbers], **(limits or {})}
    found = subject.measures(model, ours, theirs)
    if missing := [measure for measure in limits or {} if measure not in found]:
        message = f"limits has {missing[0]!r}, which is not measured of a {subject.name} and {len(subject.texts)} texts"
        raise InputError(f"{message}: these are {', '.join(found)}")
    return ModelReport(
        kind=subject.name,
        dtype=numbers,
        reference=described,
        compared=len(subject.texts),
        texts=reader.count,
        skipped=reader.skipped_count,
        measures={
            measure: Measure(value, allowed[measure], holds(measure, value, allowed[measure]))
            for measure, value in found.items()
        },
    )


def _reference(subject: Subject, folder: Path, wanted: str | None) -> str:
    """Return what a model is compared with."""
    has_file = onnx_file(folder) is not None
    possible = [one for one in subject.references if one != ONNX or has_file]
    if wanted is None:
        installed = [one for one in possible if is_installed(one)]
        wanted = installed[0] if installed else OURS
        if wanted == OURS and not subject.has_engines:
            require(possible[0])
    elif wanted == OURS and not subject.has_engines:
        raise InputError(f"a {subject.name} has one way of computing: compare it with {' or '.join(possible)}")
    elif wanted == ONNX and not has_file and ONNX in subject.references:
        raise InputError(f"{folder} has no ONNX file, onnx/model.onnx or model.onnx")
    elif wanted != OURS and wanted not in possible:
        raise InputError(
            f"{folder} is a {subject.name}, which is compared with {', '.join([*possible, OURS])}, not {wanted}"
        )
    elif wanted != OURS:
        require(wanted)
    return wanted


def _sample(reader: TextReader, count: int) -> list[Any]:
    """Return so many of the texts that are not blank, each with the same probability, in their order."""
    random = np.random.default_rng(0)
    kept: list[tuple[int, Any]] = []
    seen = 0
    for block in reader:
        for text in block.texts():
            if not "".join(text).strip():
                continue
            seen += 1
            if len(kept) < count:
                kept.append((seen, text))
            elif (place := int(random.integers(seen))) < count:
                kept[place] = seen, text
    return [text for _, text in sorted(kept, key=lambda one: one[0])]
