"""Loading of the parts of a multi-vector encoder: the encoder, its own projection, the tokenizer with its markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.log import tell
from wordpiece_bert.bert.auto import base_class, load_base
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.bert.checkpoint.files import open_tensors
from wordpiece_bert.bert.engines import choose_dtype
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.quantized import joined_tensors
from wordpiece_bert.bert.stored_tensor import loaded
from wordpiece_bert.errors import CheckpointError, ConfigError
from wordpiece_bert.sentence.activations import identity
from wordpiece_bert.sentence.folders.modules import Dense
from wordpiece_bert.sentence.rows import with_lowercase
from wordpiece_bert.tokenizer.added_token import AddedToken
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, tokenizer_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.loading import Loading
    from wordpiece_bert.sentence.folders.multi_vector import MultiVectorFolder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter


def load_encoder(folder: MultiVectorFolder, loading: Loading) -> tuple[BertModel, tuple[Dense, ...]]:
    """Load the encoder, and the projection that its file has, if the folder is one of ColBERT's own code.

    Raises
    ------
    CheckpointError
        The weights are malformed, do not fit the configuration, or lack the projection.
    """
    home = folder.transformer
    if not folder.own_projection:
        return load_base(home, loading), ()
    base = base_class(home)
    assert issubclass(base, BertModel)
    config = base.config_class.from_folder(home)
    file = find_weights(home)
    chosen = choose_dtype(loading.backend, loading.dtype, loading.instructions)
    rows = loading.calibration_rows(home, config) if chosen == "int8" else None
    with open_tensors(file) as tensors:
        weight = tensors.pop("linear.weight", None)
        if weight is None or weight.ndim != 2 or weight.shape[1] != config.hidden_size or not len(weight):
            found = None if weight is None else list(weight.shape)
            raise CheckpointError(
                f"{file}: linear.weight, the projection, must have shape [d, {config.hidden_size}], not {found}"
            )
        matrix = np.ascontiguousarray(widen(loaded(weight)))
        projection = Dense(matrix, np.zeros(len(matrix), np.float32), identity)
        weights = joined_tensors(tensors, str(file))
        model = base(
            *(config, weights),
            backend=loading.backend,
            dtype=loading.dtype,
            source=str(file),
            calibrate=rows,
            instructions=loading.instructions,
        )
    tell("loaded %s and its projection from %s: %s", base.__name__, file, model.engine)
    return model, (projection,)


def marked_tokenizer(folder: MultiVectorFolder, word_splitter: WordSplitter | None = None) -> AnyTokenizer:
    """Load the tokenizer; markers that its vocabulary has become special tokens, which it does not split.

    A marker is a token with the space after it, as PyLate adds it, or without, as in ColBERT's vocabulary.
    """
    tokenizer = tokenizer_of(folder.transformer, word_splitter=word_splitter)
    known: list[str] = []
    for marker in folder.markers:
        for form in (marker, *marker.split(None, 1)[:1]):
            if form.strip() and tokenizer.token_to_id(form) is not None:
                if tokenizer.encode(form, add_special_tokens=False, truncation=False, padding=False).tokens != [form]:
                    known.append(form)
                break
    if isinstance(tokenizer, SubwordTokenizer):
        tokenizer = tokenizer.with_special_tokens(known) if known else tokenizer
    elif known:
        tokenizer = tokenizer.with_added_tokens([AddedToken(form, normalized=False, special=True) for form in known])
    return with_lowercase(tokenizer) if folder.do_lower_case else tokenizer


def token_ids(folder: MultiVectorFolder, tokenizer: AnyTokenizer) -> tuple[npt.NDArray[np.int64], int]:
    """Return the ids that are left out, and the id that queries are filled up with.

    Raises
    ------
    ConfigError
        Queries are filled up with a token that the tokenizer does not have.
    """
    skipped = [tokenizer.token_to_id(word) for word in folder.mask.skiplist_words]
    filling = tokenizer.mask_token_id
    if folder.expansion is not None:
        token = folder.expansion.token
        filling = filling if token is None else tokenizer.token_to_id(token)
        if filling is None:
            name = "a mask token" if token is None else repr(token)
            raise ConfigError(
                f"{folder.transformer}: queries are filled up with {name}, which the tokenizer does not have"
            )
    return np.array([index for index in skipped if index is not None], np.int64), filling or 0
