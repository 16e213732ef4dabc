"""Encoders whose tokenizer needs a function that finds the words of a text: all classes, beside texts split before."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS, copied, make_japanese, sentence_folder, split_words, with_tokenizer
from wordpiece_bert import tasks
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, TokenizerFormatError
from wordpiece_bert.sentence import M3Encoder
from wordpiece_bert.sentence.encoder_loading import load_encoder

TEXTS = ["吾輩は猫である。", "東京都に行った", "", "名前はまだ無い12"]
#: The same, as the function of the tests splits them.
SPLIT = ["吾輩 は 猫 である 。", "東京都 に 行 った", "", "名前 はまだ 無 い 12"]


def split_pairs(texts: list[str]) -> list[tuple[str, str]]:
    return [(texts[0], text) for text in texts]


def arrays(vectors: Any) -> list[Any]:
    """The numbers of the outputs of an encoder."""
    if hasattr(vectors, "sparse"):
        return [vectors.dense, vectors.sparse.toarray(), vectors.colbert.vectors]
    return [getattr(vectors, "vectors", vectors.toarray() if hasattr(vectors, "toarray") else vectors)]


class Kind(NamedTuple):
    """A class, how a folder of it is made, and a call."""

    cls: Any
    make: Callable[[Path], Path]
    call: Callable[[Any, list[str]], list[Any]]


def sparse_router(parent: Path) -> Path:
    """An inference-free encoder: the tokenizers of both routes need the function."""
    folder = copied("splade_inference_free", parent)
    for part in ("document_0_Transformer", "query_0_SparseStaticEmbedding"):
        make_japanese(folder / part)
    return folder


def of_texts(encoder: Any, texts: list[str]) -> list[Any]:
    return arrays(encoder.encode(texts))


def of_queries(encoder: Any, texts: list[str]) -> list[Any]:
    return arrays(encoder.encode_query(texts)) + arrays(encoder.encode_document(texts))


KINDS = {
    "dense": Kind(wb.SentenceEncoder, lambda parent: copied("sentence_plain_folder", parent), of_texts),
    "cross": Kind(
        wb.CrossEncoder,
        lambda parent: with_tokenizer("cross_encoder_score", parent),
        lambda encoder, texts: [encoder.predict(split_pairs(texts))],
    ),
    "sparse": Kind(wb.SparseEncoder, lambda parent: copied("splade_sum", parent), of_texts),
    "sparse without a model for queries": Kind(wb.SparseEncoder, sparse_router, of_queries),
    "multi-vector": Kind(wb.MultiVectorEncoder, lambda parent: copied("colbert_st", parent), of_queries),
    "M3": Kind(M3Encoder, lambda parent: copied("m3_colbert_dim", parent), of_texts),
}


def japanese(kind: Kind, parent: Path) -> Path:
    """A folder of a kind whose tokenizer needs the function."""
    folder = kind.make(parent)
    return folder if (folder / "router_config.json").is_file() else make_japanese(folder)


def without_splitter(kind: Kind, parent: Path) -> Path:
    """The same folder with BERT's own rules, which split at white space: for texts that are split already."""
    folder = japanese(kind, parent)
    for file in folder.rglob("tokenizer_config.json"):
        rules = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "tokenize_chinese_chars": False}
        file.write_text(json.dumps(rules | {"model_max_length": 512}))
    return folder


def made(parent: Path, name: str) -> Path:
    parent = parent / name
    parent.mkdir()
    return parent


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", KINDS)
def test_vectors_and_scores_equal_those_of_texts_that_were_split_before(
    name: str, backend: str, tmp_path: Path
) -> None:
    kind = KINDS[name]
    encoder = kind.cls(japanese(kind, tmp_path), backend, word_splitter=split_words)
    plain = kind.cls(without_splitter(kind, made(tmp_path, "plain")), backend)
    assert [encoder.tokenizer.tokenize(text) for text in TEXTS] == [plain.tokenizer.tokenize(text) for text in SPLIT]
    expected = kind.call(plain, SPLIT)
    for loaded in (encoder, pickle.loads(pickle.dumps(encoder))):
        for found, right in zip(kind.call(loaded, TEXTS), expected, strict=True):
            assert np.array_equal(found, right)
            assert right.any()
    assert not np.array_equal(kind.call(plain, TEXTS)[0], expected[0])  # without splitting, most words are unknown


@pytest.mark.parametrize("name", KINDS)
def test_what_is_wrong_is_refused(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    folder = japanese(kind, tmp_path)
    for make in (kind.cls, kind.cls.from_pretrained):
        with pytest.raises(
            TokenizerFormatError,
            match=r"'word_tokenizer_type' is 'mecab'.*Pass word_splitter=f, where f\(text\) returns the list of its "
            r"words, to Tokenizer\.from_pretrained, tasks\.load or the encoder",
        ):
            make(folder)
        with pytest.raises(InputError, match=r"word_splitter must be a function .*, not 'mecab'"):
            make(folder, word_splitter="mecab")
        with pytest.raises(InputError, match=r"word_splitter is for tokenizers whose words another program finds"):
            make(without_splitter(kind, made(tmp_path, make.__name__)), word_splitter=split_words)
    with pytest.raises(InputError, match=r"word_splitter must return a list of str, not tuple.*for the text"):
        kind.call(kind.cls(folder, word_splitter=lambda text: tuple(split_words(text))), TEXTS)
    with pytest.raises(InputError, match=r"word_splitter must return a list of str, but item 0 is 3, for the text"):
        kind.call(kind.cls(folder, word_splitter=lambda _: [3]), TEXTS)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(kind.cls(folder, word_splitter=lambda text: split_words(text)))


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].cls not in (wb.CrossEncoder, M3Encoder)])
def test_the_encoder_of_any_folder_takes_the_function(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    folder = japanese(kind, tmp_path)
    if kind.cls is wb.SparseEncoder or kind.cls is wb.MultiVectorEncoder:
        assert (folder / "config_sentence_transformers.json").is_file()
    encoder = load_encoder(folder, word_splitter=split_words)
    assert type(encoder) is kind.cls
    for found, right in zip(
        kind.call(encoder, TEXTS), kind.call(kind.cls(folder, word_splitter=split_words), TEXTS), strict=True
    ):
        assert np.array_equal(found, right)
    with pytest.raises(TokenizerFormatError, match="Pass word_splitter=f"):
        load_encoder(folder)


@pytest.mark.parametrize("name", [name for name in KINDS if "without" not in name])
def test_the_texts_of_a_calibration_are_split(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    folder = japanese(kind, tmp_path)
    seen: list[str] = []

    def splitter(text: str) -> list[str]:
        seen.append(text)
        return split_words(text)

    encoder = kind.cls(folder, dtype="int8", calibrate=TEXTS, word_splitter=splitter)
    assert {text for text in TEXTS if text} <= set(seen)
    plain = kind.cls(without_splitter(kind, made(tmp_path, "plain")), dtype="int8", calibrate=SPLIT)
    assert all(map(np.array_equal, kind.call(encoder, TEXTS), kind.call(plain, SPLIT)))


def test_a_model_of_a_task_is_calibrated_with_the_function(tmp_path: Path) -> None:
    folder = make_japanese(copied("bert_seqcls_single", tmp_path))
    source = tasks.load(folder, dtype="int8", calibrate=TEXTS, word_splitter=split_words)
    assert source.model.engine.dtype == "int8"


def test_static_models_refuse_the_function() -> None:
    for cls in (wb.SentenceEncoder, load_encoder):
        with pytest.raises(InputError, match="word_splitter must be None for a static model"):
            cls(MODELS / "static_m2v", word_splitter=split_words)


def test_a_saved_encoder_gives_the_same_vectors(tmp_path: Path) -> None:
    encoder = wb.SentenceEncoder(japanese(KINDS["dense"], tmp_path), word_splitter=split_words)
    encoder.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "tokenizer.json").exists()
    again = wb.SentenceEncoder(tmp_path / "saved", word_splitter=split_words)
    assert np.array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(TokenizerFormatError, match="Pass word_splitter=f"):
        wb.SentenceEncoder(tmp_path / "saved")


def test_lower_case_of_a_folder_comes_before_the_words(tmp_path: Path) -> None:
    """sentence-transformers puts texts into lower case before the tokenizer has them."""
    folder = make_japanese(sentence_folder("sentence_mean_normalize", tmp_path))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": true}')
    seen: list[str] = []

    def splitter(text: str) -> list[str]:
        seen.append(text)
        return split_words(text)

    encoder = wb.SentenceEncoder(folder, word_splitter=splitter)
    seen.clear()
    found = encoder.encode(["ABCは猫[MASK]ＡＢＣ"])
    assert seen == ["abcは猫", "abc"]
    assert np.array_equal(found, encoder.encode(["abcは猫[MASK]abc"]))
    encoder.save(tmp_path / "saved")
    again = wb.SentenceEncoder(tmp_path / "saved", word_splitter=splitter)
    assert np.array_equal(again.encode(["ABCは猫[MASK]ＡＢＣ"]), found)
    assert not json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())["do_lower_case"]


def test_prompts_windows_and_ranks(tmp_path: Path) -> None:
    encoder = wb.SentenceEncoder(japanese(KINDS["dense"], tmp_path), word_splitter=split_words)
    plain = wb.SentenceEncoder(without_splitter(KINDS["dense"], made(tmp_path, "plain")))
    options: dict[str, Any] = {"windows": "mean", "stride": 1, "max_length": 5}
    assert np.array_equal(encoder.encode(TEXTS, **options), plain.encode(SPLIT, **options))
    assert np.array_equal(encoder.encode(TEXTS, prompt="猫は"), plain.encode(SPLIT, prompt="猫 は "))
    with pytest.raises(InputError, match="no offsets and no word ids"):
        encoder.encode_tokens(TEXTS)
    with pytest.raises(InputError, match="no offsets and no word ids"):
        encoder.encode_chunks(TEXTS[:1], [[(0, 2)]])
    ranker = wb.CrossEncoder(japanese(KINDS["cross"], tmp_path), word_splitter=split_words)
    ranked = ranker.rank(TEXTS[0], TEXTS)
    found = wb.sentence.retrieve_and_rerank(TEXTS[0], TEXTS, encoder, ranker, top_k=4)
    assert [hit["corpus_id"] for hit in found] == [hit["corpus_id"] for hit in ranked]


def test_special_tokens_have_no_weight_in_sparse_vectors(tmp_path: Path) -> None:
    encoder = M3Encoder(japanese(KINDS["M3"], tmp_path), word_splitter=split_words)
    found = {
        encoder.tokenizer.id_to_token(i) for i in encoder.encode(["吾輩は猫[PAD]☃", "東京都[MASK]"]).sparse.indices
    }
    assert found.isdisjoint({"[CLS]", "[PAD]", "[UNK]"})


@pytest.mark.parametrize("name", ["dense", "sparse", "multi-vector"])
def test_vectors_of_a_folder_are_searched_with_an_encoder_that_has_the_function(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    home = japanese(kind, tmp_path)
    encoder = kind.cls(home, word_splitter=split_words)
    table = pytest.importorskip("pyarrow").table({"id": [0, 1, 2], "text": [TEXTS[0], TEXTS[1], TEXTS[3]]})
    wb.sentence.write_vectors(table, tmp_path / "v", encoder, text_column="text", id_column="id")
    folder = wb.sentence.open_vectors(tmp_path / "v")
    with pytest.raises(TokenizerFormatError, match="Pass word_splitter=f"):
        folder.search(TEXTS[1])
    found = folder.search(TEXTS[1], encoder=kind.cls(home, word_splitter=split_words))
    scores = encoder.similarity(
        encoder.encode_query([TEXTS[1]]), encoder.encode_document(table.column("text").to_pylist())
    )
    assert found[0]["id"] == int(np.argmax(scores))
    settings = json.loads((home / "tokenizer_config.json").read_text())
    (home / "tokenizer_config.json").write_text(json.dumps(settings | {"do_lower_case": True}))
    with pytest.raises(InputError, match="has the vectors of another model; what differs: the "):
        folder.search(TEXTS[1], encoder=kind.cls(home, word_splitter=split_words))


def test_commands_refuse_such_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = japanese(KINDS["dense"], tmp_path)
    (tmp_path / "texts.txt").write_text("猫\n", encoding="utf-8")
    for command in (
        ["embed", str(tmp_path / "texts.txt"), "-m", str(folder), "-o", str(tmp_path / "x.npy")],
        ["serve", str(folder)],
    ):
        assert main(command) != 0
        assert "'word_tokenizer_type' is 'mecab': that program finds the words." in capsys.readouterr().err
