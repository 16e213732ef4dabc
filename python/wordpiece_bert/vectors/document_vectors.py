"""What an encoder makes of documents for a folder of vectors: its layout, and the vectors of texts and chunks."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.numerics import IDS, VECTORS
from wordpiece_bert._internal.recent import Recent
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.encoder_fingerprint import document_prompt, fingerprint_of
from wordpiece_bert.sentence.dense.recent_rows import RECENT_BYTES, recent_vectors
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.folders.content_files import CONTENTS, SETTINGS, FileState
from wordpiece_bert.sentence.folders.contents import file_digest
from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
from wordpiece_bert.sentence.parts import late_vectors, prompt_of, source_of, threads_of
from wordpiece_bert.sentence.source import lasting_name
from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint, TextsDigest
from wordpiece_bert.tokenizer.dividing import token_counts
from wordpiece_bert.vectors.chunking import Chunking, check_room, spans_of, token_borders
from wordpiece_bert.vectors.folder_update import Encoded
from wordpiece_bert.vectors.layout import DENSE, MULTI_VECTOR, PRECISIONS, SPARSE, Layout
from wordpiece_bert.vectors.reloading import loading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert.sentence.encoder_loading import Encoder


def checked_encoder(encoder: object) -> Encoder:
    """Return an argument that is an encoder of dense, sparse or many vectors.

    Raises
    ------
    InputError
        It is something else.
    """
    if isinstance(encoder, SentenceEncoder | SparseEncoder | MultiVectorEncoder):
        return encoder
    raise InputError(
        "encoder must be a SentenceEncoder, a SparseEncoder, a MultiVectorEncoder or the name of a model, not "
        f"{type(encoder).__name__}: {encoder!r:.80}"
    )


def layout_of(
    encoder: Encoder,
    *,
    model: str | None,
    id_column: str,
    text_column: str,
    keep: Sequence[str],
    precisions: Sequence[str],
    chunking: Chunking | None,
    prompt: str | None,
    prompt_name: str | None,
    normalize: bool,
) -> Layout:
    """Return the layout of the vectors that an encoder makes; an `InputError` if arguments do not fit its kind."""
    text = document_text(encoder, prompt, prompt_name)
    kind = kind_of(encoder)
    if kind == DENSE:
        if encoder.similarity_fn_name not in ("cosine", "dot") and set(precisions) != {"float32"}:
            raise InputError(
                f"the precisions int8 and binary are for cosines and inner products; the model compares by "
                f"{encoder.similarity_fn_name}"
            )
    else:
        if tuple(precisions) != ("float32",) or normalize:
            raise InputError("precision and normalize are for dense vectors; the model makes others")
        if chunking is not None and chunking.late:
            raise InputError("late chunking is for models of one vector for a text that pool by the mean")
    source = source_of(encoder)
    if model is None:
        if source is None:
            raise InputError("the encoder was made in memory: pass model, the name or folder that queries are to load")
        model = source.name
    model = lasting_name(model)
    return Layout(
        kind=kind,
        model=model,
        similarity=encoder.similarity_fn_name,
        dimension=encoder.dimension,
        id_column=id_column,
        text_column=text_column,
        keep=tuple(keep),
        precisions=tuple(name for name in PRECISIONS if name in precisions) if kind == DENSE else (),
        chunks=None if chunking is None else chunking.record(),
        settings=_settings(encoder, normalize=normalize),
        fingerprint=contents_of(encoder, text, normalize=normalize),
        loading=loading_of(encoder),
    )


def kind_of(encoder: Encoder) -> str:
    """Return the kind of the vectors that an encoder makes."""
    if isinstance(encoder, SentenceEncoder):
        return DENSE
    return SPARSE if isinstance(encoder, SparseEncoder) else MULTI_VECTOR


def document_text(encoder: Encoder, prompt: str | None, prompt_name: str | None) -> str:
    """Return what is put before each document."""
    if prompt is None and prompt_name is None:
        return document_prompt(encoder)
    return prompt_of(encoder, prompt, prompt_name)


def _settings(encoder: Encoder, *, normalize: bool) -> dict[str, Any]:
    if isinstance(encoder, SparseEncoder):
        return {"max_active_dims": encoder.max_active_dims}
    if isinstance(encoder, MultiVectorEncoder):
        return {"document_length": encoder.document_length}
    return {"normalize": normalize}


def contents_of(encoder: Encoder, prompt: str, *, normalize: bool | None) -> Fingerprint:
    """Return the fingerprint of an encoder's vectors, without the fingerprint of texts."""
    if isinstance(encoder, SentenceEncoder):
        return fingerprint_of(encoder, None, prompt=prompt, normalize=normalize)
    source = source_of(encoder)
    if source is None:
        raise InputError("the encoder was made in memory: save it, and load it from its folder")
    source.check_contents()
    calibrate = dict(source.options).get("calibrate")
    digest = TextsDigest()
    digest.add(list(calibrate or ()))
    return Fingerprint(
        model=folder_digests(Path(source.folder)),
        dtype=str(encoder.engine.dtype),
        calibration=digest.hexdigest() if calibrate is not None and encoder.engine.dtype == "int8" else None,
        prompt=prompt,
        max_seq_length=encoder.max_seq_length or 0,
        normalized=None,
        dimension=encoder.dimension,
        texts=None,
        count=None,
        instructions=encoder.engine.instructions,
        numerics=VECTORS[encoder.engine.dtype],
        ids=IDS,
    )


def folder_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the weights and of the other files of a model."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in CONTENTS and path.is_file())
    found = {}
    for name, of_weights in (("weights", True), ("configuration", False)):
        digest = hashlib.sha256()
        for path in files:
            if (path.suffix not in SETTINGS) == of_weights:
                digest.update(f"{path.relative_to(folder)} {file_digest(FileState.of(path))}\n".encode())
        found[name] = digest.hexdigest()
    return found


def embedding(
    encoder: Encoder,
    chunking: Chunking | None,
    *,
    prompt: str | None,
    prompt_name: str | None,
    normalize: bool,
    batch_size: int,
) -> Callable[[list[str]], Encoded]:
    """Return what makes the vectors of texts for a folder.

    Raises
    ------
    InputError
        Chunks are longer than the rows of the model.
    """
    options: dict[str, Any] = {"prompt": document_text(encoder, prompt, prompt_name), "batch_size": batch_size}
    recent = Recent(RECENT_BYTES)
    if normalize:
        options["normalize_embeddings"] = True
    if chunking is None:

        def entire(texts: list[str]) -> Encoded:
            with recent_vectors(recent):
                vectors, truncated = encoder.encode_document(texts, return_truncated=True, **options)
            return Encoded(vectors, truncated)

        return entire
    longest_row = _longest_row(encoder)
    room = _room(encoder, longest_row, options["prompt"])
    check_room(chunking, longest_row, longest_row - room)

    def divided(texts: list[str]) -> Encoded:
        threads = threads_of(encoder)
        borders = token_borders(encoder.tokenizer, texts, threads)
        count = None if chunking.late else token_counts(encoder.tokenizer, options["prompt"], threads)
        spans = spans_of(texts, borders, chunking, count)
        owners = np.repeat(np.arange(len(texts)), [len(one) for one in spans])
        places = np.concatenate(spans)
        truncated = np.zeros(len(texts), np.bool_)
        vectors: Any
        if chunking.late:
            assert isinstance(encoder, SentenceEncoder)
            vectors = np.concatenate(late_vectors(encoder, texts, spans, **options))
        else:
            pieces = [texts[i][s:e] for i, (s, e) in zip(owners.tolist(), places.tolist(), strict=True)]
            with recent_vectors(recent):
                vectors, cut = encoder.encode_document(pieces, return_truncated=True, **options)
            truncated[owners[cut]] = True
        return Encoded(vectors, truncated, np.column_stack([owners, places]))

    return divided


def room_of(encoder: Encoder, prompt: str | None, prompt_name: str | None) -> int:
    """Return how many tokens of a document the model takes at most."""
    return _room(encoder, _longest_row(encoder), document_text(encoder, prompt, prompt_name))


def _longest_row(encoder: Encoder) -> int:
    """Return the longest row of an encoder, or the greatest number if there is none."""
    longest_row = encoder.document_length if isinstance(encoder, MultiVectorEncoder) else encoder.max_seq_length
    return longest_row or sys.maxsize


def _room(encoder: Encoder, longest_row: int, prompt: str) -> int:
    """Return how many tokens of text fit into a row after special tokens and the prompt."""
    tokenizer = encoder.tokenizer
    before = tokenizer.encode(prompt, add_special_tokens=False, truncation=False, padding=False).ids if prompt else []
    markers = 1 if isinstance(encoder, MultiVectorEncoder) else 0
    return longest_row - len(before) - markers - tokenizer.num_special_tokens_to_add()
