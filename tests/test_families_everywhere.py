"""Each family of encoders on every path: commands, the server, inspection, saving, dtypes, pickles and static models."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from serve_client import Client
from wordpiece_bert import CrossEncoder, SentenceEncoder, distill_static, inspect, tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.cli import main
from wordpiece_bert.evaluation import EmbeddingSimilarityEvaluator
from wordpiece_bert.sentence import semantic_search
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.filterwarnings("ignore")

QUERY = "a city"
TEXTS = ["the city by night", "a dog in the park", "night"]
#: The folder of each family's tokenizer; its encoder is a folder of sentence-transformers, or the family's own files.
TOKENIZERS = {
    "modernbert": "st_modernbert_mean",
    "deberta": "st_deberta",
    "jina": "st_jina",
    "neobert": "st_neobert",
    "ernie": "st_ernie",
    "camembert": "st_xlmr",
    "xlmr_xl": "st_xlmr",
    "data2vec": "st_xlmr",
}
HEADS = ("seqcls", "token_cls", "masked_lm", "question_answering")
WITH_HEADS = [(name, head) for name in TOKENIZERS for head in HEADS if (MODELS / f"{name}_{head}").is_dir()]
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def folder_of(name: str, head: str, parent: Path) -> Path:
    """Return a folder with a model of a family and a tokenizer whose ids it has."""
    folder = parent / f"{name}_{head}"
    if not folder.is_dir():
        shutil.copytree(MODELS / f"{name}_{head}", folder)
        for file in TOKENIZER_FILES:
            if (MODELS / TOKENIZERS[name] / file).is_file():
                shutil.copy(MODELS / TOKENIZERS[name] / file, folder)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


def served(folder: Path, use: Callable[[Client], None]) -> None:
    client = Client(create_app({"m": load_model(str(folder))}, ServerSettings()))
    try:
        use(client)
    finally:
        client.close()


def equal(found: Any, expected: Any) -> None:
    """Compare answers whose numbers may differ in the last digits."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            equal(one, other)
    else:
        assert found == (pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_an_encoder_is_the_same_everywhere(
    name: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(name, "model", home)
    encoder = SentenceEncoder(folder)
    expected = encoder.encode(TEXTS)
    assert np.isfinite(expected).all()
    for other in (SentenceEncoder(folder, backend="numpy"), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_allclose(other.encode(TEXTS), expected, rtol=0, atol=1e-5)

    encoder.save_pretrained(tmp_path / "saved")
    np.testing.assert_array_equal(SentenceEncoder(tmp_path / "saved").encode(TEXTS), expected)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    command = ["embed", str(tmp_path / "texts.txt"), "-m", str(folder), "-o", str(tmp_path / "v.npy"), "-q"]
    assert main(command) == 0
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, rtol=0, atol=1e-6)
    capsys.readouterr()
    assert main(["info", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"]["layers"] == AutoModel.from_pretrained(folder).config.encoder_layers

    def ask(client: Client) -> None:
        np.testing.assert_allclose(client.post("/embed", inputs=TEXTS, normalize=False), expected, rtol=0, atol=1e-6)
        data = client.post("/v1/embeddings", input=TEXTS, model="m")["data"]
        norms = np.linalg.norm(expected, axis=1, keepdims=True)
        found = np.array([one["embedding"] for one in data])
        np.testing.assert_allclose(found / np.linalg.norm(found, axis=1, keepdims=True), expected / norms, atol=1e-5)

    served(folder, ask)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_commands_say_what_the_library_says(
    name: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(name, "model", home)
    encoder = SentenceEncoder(folder)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")

    def run(*command: str) -> str:
        assert main([*command, "-m", str(folder), "-q"]) == 0
        return capsys.readouterr().out

    hits = semantic_search(encoder.encode([QUERY]), encoder.encode(TEXTS), top_k=3)[0]
    found = json.loads(run("search", str(texts), "--query", QUERY, "-k", "3", "--json"))["hits"]
    assert [hit["text"] for hit in found] == [TEXTS[hit["corpus_id"]] for hit in hits]
    assert [hit["score"] for hit in found] == pytest.approx([hit["score"] for hit in hits], abs=1e-5)

    first, scores = [QUERY] * len(TEXTS), [0.0, 0.5, 1.0]
    rows = [f"{one}\t{other}\t{score}" for one, other, score in zip(first, TEXTS, scores, strict=True)]
    table = tmp_path / "pairs.tsv"
    table.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    (measured,) = json.loads(run("evaluate", str(table), "--json"))["results"]
    assert measured["metrics"] == pytest.approx(EmbeddingSimilarityEvaluator(first, TEXTS, scores)(encoder), abs=1e-6)

    run("distill", "-o", str(tmp_path / "static"), "--pca-dims", "8")
    np.testing.assert_array_equal(
        SentenceEncoder(tmp_path / "static").encode(TEXTS), distill_static(folder, pca_dims=8).encode(TEXTS)
    )
    run("inspect", TEXTS[0], "-o", str(tmp_path / "page.html"))
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_trace_ends_in_the_models_states_and_pages_are_made(name: str, home: Path) -> None:
    folder = folder_of(name, "model", home)
    loaded = tasks.load(folder)
    encoding = loaded.tokenizer.encode(TEXTS[0], truncation=False, padding=False)
    model: Any = loaded.model
    states = model([encoding.ids], token_type_ids=[encoding.token_type_ids]).last_hidden_state[0]
    trace = inspect.trace(loaded, TEXTS[0])
    assert trace.tokens == list(encoding.tokens)
    np.testing.assert_allclose(trace.hidden_states[-1], states, rtol=0, atol=1e-5)
    np.testing.assert_allclose(trace.attentions.sum(axis=-1), 1, atol=1e-5)
    for view in (inspect.attention(trace), inspect.tokens(loaded.tokenizer, TEXTS[0])):
        assert "<html" in view.to_html()


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_static_model_is_made_and_loaded(name: str, home: Path, tmp_path: Path) -> None:
    static = distill_static(folder_of(name, "model", home), pca_dims=None)
    static.save_pretrained(tmp_path)
    np.testing.assert_array_equal(SentenceEncoder(tmp_path).encode(TEXTS), static.encode(TEXTS))
    assert static.encode(TEXTS).any(axis=1).all()


@pytest.mark.parametrize(("name", "head"), WITH_HEADS)
def test_a_head_is_the_same_in_the_library_and_in_the_server(name: str, head: str, home: Path, tmp_path: Path) -> None:
    folder = folder_of(name, head, home)
    loaded = tasks.load(folder)
    loaded.model.save_pretrained(tmp_path / "saved")
    for file in TOKENIZER_FILES:
        if (folder / file).is_file():
            shutil.copy(folder / file, tmp_path / "saved")
    again = tasks.load(tmp_path / "saved")
    assert type(again.model) is type(loaded.model)
    if head == "question_answering":
        answer = tasks.question_answering(loaded, "the city", TEXTS[1])
        assert tasks.question_answering(again, "the city", TEXTS[1]) == answer
        return
    if head == "seqcls":
        expected: Any = tasks.classify(loaded, TEXTS, top_k=None)
        assert tasks.classify(again, TEXTS, top_k=None) == expected
        with_head: Any = loaded.model
        if with_head.config.num_labels == 1:
            scores = CrossEncoder(folder).predict([(TEXTS[0], text) for text in TEXTS])
            served(
                folder,
                lambda client: np.testing.assert_allclose(
                    [one["score"] for one in client.post("/rerank", query=TEXTS[0], texts=TEXTS)],
                    np.sort(scores)[::-1],
                    rtol=0,
                    atol=1e-6,
                ),
            )
            return
        path, inputs = "/predict", [[text] for text in TEXTS]
    elif head == "token_cls":
        expected = tasks.ner(loaded, TEXTS, aggregation_strategy="none")
        assert tasks.ner(again, TEXTS, aggregation_strategy="none") == expected
        served(folder, lambda client: equal(client.post("/models/m", inputs=TEXTS), tasks.ner(loaded, TEXTS)))
        return
    else:
        masked = [f"{text} {loaded.tokenizer.mask_token}" for text in TEXTS]
        expected = tasks.fill_mask(loaded, masked, top_k=2)
        assert tasks.fill_mask(again, masked, top_k=2) == expected
        # NeoBERT was published with this head, and is an encoder all the same: its folders are served as vectors.
        answers: Any = tasks.fill_mask(loaded, masked)
        if name == "neobert":
            answers = SentenceEncoder(folder).encode(masked, normalize_embeddings=True).tolist()
        served(folder, lambda client: equal(client.post("/models/m", inputs=masked), answers))
        return

    def ask(client: Client) -> None:
        for row, wanted in zip(client.post(path, inputs=inputs), expected, strict=True):
            found = {one["label"]: one["score"] for one in row}
            assert found == pytest.approx({one["label"]: one["score"] for one in wanted}, abs=1e-6)

    served(folder, ask)
