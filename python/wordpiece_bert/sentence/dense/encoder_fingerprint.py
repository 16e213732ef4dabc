"""The fingerprint of an encoder's vectors, and its comparison with a file's fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.numerics import IDS, VECTORS
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.arguments import role_prompt_name
from wordpiece_bert.sentence.dense.model_contents import model_digests
from wordpiece_bert.sentence.folders.modules import Normalize
from wordpiece_bert.sentence.parts import prompt_of, settings_of, source_of
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint, TextsDigest, VectorsDigest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.encoder_base import VectorEncoder
    from wordpiece_bert.tokenizer.corpus.vector_files import StoredVectors


def fingerprint_of(
    encoder: SentenceEncoder, texts: TextsDigest | None, *, prompt: str, normalize: bool | None = False
) -> Fingerprint:
    """Return the fingerprint of the vectors that an encoder computes for texts.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder.
    texts
        The digest of the texts; None not to compare them.
    prompt : str
        What is put before each text.
    normalize : bool, default False
        Whether the vectors are scaled to length 1, if the model does not do that; None not to compare it.
    """
    source, folder, dtype = source_of(encoder), settings_of(encoder), encoder.engine.dtype
    calibration = dict(source.options).get("calibrate") if source is not None and dtype == "int8" else None
    if normalize is not None and folder.truncate_dim is None:
        ends_normalized = bool(folder.modules) and isinstance(folder.modules[-1], Normalize)
        is_scaled = not folder.modules and getattr(folder, "least_length", None) is not None
        normalize = normalize or ends_normalized or is_scaled
    return Fingerprint(
        model=model_digests(encoder),
        dtype=dtype,
        calibration=None if calibration is None else _digest_of(calibration).hexdigest(),
        prompt=prompt,
        max_seq_length=encoder.max_seq_length,
        normalized=normalize,
        dimension=encoder.dimension,
        texts=None if texts is None else texts.hexdigest(),
        count=None if texts is None else texts.count,
        instructions=encoder.engine.instructions,
        numerics=VECTORS[dtype],
        ids=IDS,
    )


def _digest_of(texts: Iterable[str]) -> TextsDigest:
    digest = TextsDigest()
    digest.add(list(texts))
    return digest


def default_prompt(encoder: VectorEncoder) -> str:
    """Return what `encode` puts before each text unless it is told otherwise."""
    return prompt_of(encoder)


def document_prompt(encoder: VectorEncoder) -> str:
    """Return what `encode_document` puts before each text unless it is told otherwise."""
    return prompt_of(encoder, name=role_prompt_name("document", None, None, encoder.prompts))


def check_fingerprint(
    path: Path,
    stored: StoredVectors,
    expected: Fingerprint,
    *,
    allow_stale: bool,
    option: str,
    warn: Callable[[str], Any],
) -> None:
    """Compare the fingerprint of a file of vectors with the expected one.

    Parameters
    ----------
    path : Path
        The file.
    stored
        What it has.
    expected
        The fingerprint of the vectors that are needed.
    allow_stale : bool
        Whether a difference is a warning instead of an error.
    option : str
        How `allow_stale` is given, for the message.
    warn : callable
        Called with the message of a warning.

    Raises
    ------
    InputError
        The fingerprints differ; the message says in what.
    """
    if stored.record is None:
        warn(f"{path} has no fingerprint, so it is not known which texts and which model its vectors are of")
        return
    try:
        found = Fingerprint.from_json(stored.record, str(path))
    except InputError as cause:
        what = str(cause)
    else:
        digest = VectorsDigest()
        digest.append(stored.vectors)
        changed = found.vectors != digest.hexdigest(stored.vectors.shape[1])
        differences = ["the vectors, which were changed after they were computed"] * changed + found.differences(
            expected
        )
        if not differences:
            return
        what = f"{path} does not have the vectors that are needed; what differs: {'; '.join(differences)}"
        if found.library != expected.library:
            what += f" (it was written by wordpiece-bert {found.library}, this is {expected.library})"
    if allow_stale:
        warn(what)
        return
    raise InputError(f"{what}. Make the vectors again, or use these all the same with {option}")
