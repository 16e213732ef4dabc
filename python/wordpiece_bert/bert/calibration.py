"""The rows of tokens that a model is run over before it is quantized, to see how large the inputs of its layers are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.errors import InputError, MissingPackageError, ModelNotFoundError
from wordpiece_bert.tokenizer.pretrained import words_found_by
from wordpiece_bert.tokenizer.subword import tokenizer_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

#: Texts of many kinds and in many languages, written for this package.
TEXTS = (
    "The bridge was closed for repairs, so the bus took the long way around the harbour.",
    "How many litres of water does a household use on an ordinary day?",
    "In 1911 the expedition reached the pole after a march of eight weeks over the ice.",
    "Add the flour, two eggs and a pinch of salt; stir until the dough is smooth, then let it rest for half an hour.",
    "The committee rejected the proposal by nine votes to four, but asked for a second report before the summer.",
    "Return the index of the first element that is greater than the limit, or -1 if there is none.",
    "My order arrived with a broken lid. I would like a replacement or my money back, please.",
    "Prices rose by 2.4 % in March, the smallest increase since the autumn of last year.",
    "She plays the cello in a quartet that meets on Thursdays above the bakery.",
    "The enzyme binds to the receptor and slows the reaction, which lowers the pressure of the blood.",
    "Terms: payment within 30 days of the date of the invoice; interest of 5 % a year is charged on late payments.",
    "Best phone I have owned so far!!! battery lasts two days, camera is ok :)",
    "The court held that the contract was void, because one of the parties had been misled about its object.",
    "A triangle with sides of 3, 4 and 5 has a right angle.",
    "http://example.org/docs/install.html#step-2 explains how to set the path on Windows 10.",
    "Goal in the 89th minute! The home team wins 2-1 and moves up to third place.",
    "Die Straßenbahn fährt sonntags nur alle zwanzig Minuten, deshalb nehmen viele das Fahrrad.",
    "Quelle est la différence entre un lac et un étang ?",
    "El mercado abre a las ocho y cierra cuando ya no queda pescado fresco.",
    "Il treno per Torino parte dal binario sette con dieci minuti di ritardo.",
    "W zimie rzeka zamarza i dzieci jeżdżą po niej na łyżwach.",
    "Библиотека закрыта в понедельник, но книги можно вернуть через ящик у входа.",
    "图书馆每周一闭馆，但可以把书放进门口的箱子里。",
    "駅前の小さな店で、毎朝焼きたてのパンを売っています。",
    "도서관은 월요일에 문을 닫습니다.",
    "المكتبة مغلقة يوم الاثنين، لكن يمكن إعادة الكتب.",
    "पुस्तकालय सोमवार को बंद रहता है।",
    "Havalar ısınınca köyün bütün çocukları derede yüzmeye gider.",
    "De molen draait alleen als de wind uit het westen komt.",
    "word",
    "yes, no, maybe",
    "Table 3: mean temperature (°C) and rainfall (mm) by month, 1991–2020.",
)

#: The longest row of tokens that is used of a text.
_LONGEST_ROW = 256


def check_texts(texts: Sequence[str] | None, dtype: str) -> None:
    """Refuse a value of ``calibrate`` that has no texts or that does nothing.

    Raises
    ------
    InputError
        `dtype` is not ``"int8"``, there is not text, or one is not a string.
    """
    if texts is None:
        return
    if dtype != "int8":
        raise InputError(f"calibrate is for dtype='int8', not {dtype!r}: leave it out")
    listed = hasattr(texts, "__len__") and hasattr(texts, "__getitem__")
    if isinstance(texts, str | bytes | Mapping) or not listed:
        raise InputError(f"calibrate must be a list of texts, not {type(texts).__name__}")
    if len(texts) == 0:
        raise InputError("calibrate has no texts: pass a few dozen, or leave it out for those of the package")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"calibrate[{index}] must be a string, not {type(text).__name__}")


def calibration_rows(
    folder: str | os.PathLike[str],
    config: BertConfig,
    texts: Sequence[str] | None,
    *,
    word_splitter: WordSplitter | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Return the rows of ids of texts, by the tokenizer of a model folder.

    Parameters
    ----------
    folder
        The model folder.
    config
        Its configuration.
    texts
        The texts; by default `TEXTS`, or `random_rows` if the folder has no tokenizer, or one whose words another
        program finds and there is no `word_splitter`.
    word_splitter
        What finds the words of a text, if the tokenizer needs it.

    Raises
    ------
    ModelNotFoundError, MissingPackageError, TokenizerFormatError
        Texts were given, and the tokenizer cannot be loaded.
    InputError
        The tokenizer splits texts itself, and there is a `word_splitter`.
    """
    if texts is None and word_splitter is None and words_found_by(Path(folder)) is not None:
        return random_rows(config)
    try:
        tokenizer = tokenizer_of(folder, word_splitter=word_splitter)
    except (ModelNotFoundError, MissingPackageError):
        if texts is not None:
            raise
        return random_rows(config)
    longest_row = min(_LONGEST_ROW, config.usual_longest_row)
    texts = TEXTS if texts is None else list(texts)
    batch = tokenizer.encode_batch(texts, truncation=True, max_length=longest_row, padding=False)
    rows = [np.asarray(row, np.int64) for row in np.split(batch.ids, batch.row_offsets[1:-1])]
    return [row for row in rows if len(row) and row.max() < config.vocab_size] or random_rows(config)


def random_rows(config: BertConfig) -> list[npt.NDArray[np.int64]]:
    """Return rows of random ids, the same for each vocabulary size: for a model whose tokenizer is not known."""
    random = np.random.default_rng(0)
    length = min(32, config.usual_longest_row)
    return list(random.integers(0, config.vocab_size, (len(TEXTS), length)))
