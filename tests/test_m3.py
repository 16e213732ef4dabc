"""`M3Encoder`: BGE-M3's three outputs equal to the reference's, scores, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, reference_vectors
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert.checkpoint.torch_writer import torch_file
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, InputError, ModelNotFoundError, TruncationWarning
from wordpiece_bert.sentence import M3Encoder, MultiVectors, SparseVectors

pytest.importorskip("tokenizers")

FOLDER = MODELS / "m3_colbert_dim"
#: With fewer numbers a token than the model has, and as many.
FOLDERS = ["m3_colbert_dim", "m3_model"]


def encoded(encoder: M3Encoder, texts: list[str], **options: Any) -> Any:
    return encoder.encode(texts, return_truncated=True, **options)[0]


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("batch_size", [1, 32])
@pytest.mark.parametrize("name", FOLDERS)
def test_outputs_equal_the_reference(name: str, backend: str, batch_size: int) -> None:
    reference, arrays = reference_vectors(name)
    encoder = M3Encoder(MODELS / name, backend)
    found, truncated = encoder.encode(reference["texts"], batch_size, return_truncated=True)
    assert truncated.sum() == 1
    np.testing.assert_allclose(found.dense, arrays["dense"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.colbert.vectors, arrays["colbert.values"], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found.colbert.offsets, arrays["colbert.offsets"])
    assert isinstance(found.sparse, SparseVectors)
    assert found.sparse.shape == (len(reference["texts"]), len(encoder.tokenizer.get_vocab()))
    for row, weights in zip(found.sparse.toarray(), reference["lexical"], strict=True):
        assert {str(index) for index in np.flatnonzero(row)} == set(weights)
        np.testing.assert_allclose([row[int(index)] for index in weights], [*weights.values()], rtol=0, atol=1e-5)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", FOLDERS)
def test_scores_equal_the_reference(name: str, backend: str) -> None:
    reference, _ = reference_vectors(name)
    pairs = [(reference["texts"][a], reference["texts"][b]) for a, b in reference["pairs"]]
    encoder = M3Encoder(MODELS / name, backend)
    with pytest.warns(TruncationWarning):
        weighted, equal = encoder.score(pairs, reference["weights"]), encoder.score(pairs)
    for index, scores in enumerate(reference["scores"]):
        for name, expected in scores.items():
            found = equal["colbert+sparse+dense"] if name == "default" else weighted[name]
            assert found.dtype == np.float32
            assert found[index] == pytest.approx(expected, abs=1e-5), name


def test_a_score_does_not_depend_on_the_other_pairs() -> None:
    encoder = M3Encoder(FOLDER)
    pairs = [("the dog", "the old house by the river"), ("river", "water"), ("the dog", ""), ("", "☃")]
    together = encoder.score(pairs)
    for index, pair in enumerate(pairs):
        for name, score in encoder.score([pair]).items():
            assert score.shape == (1,)
            np.testing.assert_allclose(score[0], together[name][index], rtol=0, atol=1e-6)
    assert [score.shape for score in encoder.score([]).values()] == [(0,)] * 5


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "auto"])
def test_other_dtypes_are_close(dtype: str) -> None:
    texts = ["the old house by the river", "a dog", ""]
    exact, found = M3Encoder(FOLDER).encode(texts), M3Encoder(FOLDER, dtype=dtype).encode(texts)
    bound = 0.999 if dtype == "int8" else 0.9999
    assert (np.einsum("ij,ij->i", exact.dense, found.dense) > bound).all()
    assert (np.einsum("ij,ij->i", exact.colbert.vectors, found.colbert.vectors) > bound).all()


def test_the_weight_of_a_token_is_its_greatest_and_special_tokens_have_none() -> None:
    encoder = M3Encoder(FOLDER)
    text = "the river the river the"
    x, _ = encoder._model.token_states(encoder.tokenizer.encode_batch([text]), slice(0, 1))
    weights = encoder._heads.token_weights(x)
    ids = encoder.tokenizer.encode(text).ids
    expected: dict[int, float] = {}
    for index, weight in zip(ids, weights.tolist(), strict=True):
        if weight > 0 and encoder.tokenizer.id_to_token(index) not in ("<s>", "</s>", "<pad>", "<unk>"):
            expected[index] = max(expected.get(index, 0.0), weight)
    found = encoder.encode(text).sparse
    assert dict(zip(found.indices.tolist(), found.values.tolist(), strict=True)) == expected


def test_one_text_and_no_text() -> None:
    encoder = M3Encoder(FOLDER)
    both, one = encoder.encode(["the dog", ""]), encoder.encode("the dog")
    np.testing.assert_array_equal(one.dense, both.dense[0])
    np.testing.assert_array_equal(one.colbert, both.colbert[0])
    assert one.sparse == both.sparse[0]
    assert len(both.colbert[1]) == 1  # the end of the row
    none = encoder.encode([])
    assert (none.dense.shape, none.sparse.shape, len(none.colbert)) == ((0, 32), (0, 185), 0)
    assert isinstance(none.colbert, MultiVectors)
    np.testing.assert_allclose(SentenceEncoder(FOLDER).encode("the dog").shape, one.dense.shape)


def test_copies_pickles_and_settings() -> None:
    encoder = M3Encoder(FOLDER, max_seq_length=7)
    assert copy.deepcopy(encoder) is encoder
    again = pickle.loads(pickle.dumps(encoder))
    assert len(pickle.dumps(encoder)) < 1000
    assert (again.max_seq_length, again.dimension, again.device) == (7, 32, "cpu")
    with pytest.warns(TruncationWarning, match="truncated to 7 tokens"):
        found = again.encode("the old house by the river")
    assert len(found.colbert) == 6
    np.testing.assert_array_equal(encoded(encoder, ["a dog"]).dense, encoded(again, ["a dog"]).dense)
    assert M3Encoder.from_pretrained(FOLDER).max_seq_length == 38
    assert "XLMRobertaModel" in repr(encoder)


def test_a_pickle_is_refused_where_the_heads_differ(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    pickled, of_sentences = pickle.dumps(M3Encoder(folder)), pickle.dumps(SentenceEncoder(folder))
    rng = np.random.default_rng(1)
    weights = {"weight": rng.normal(size=(1, 32)).astype(np.float32), "bias": np.zeros(1, np.float32)}
    (folder / "sparse_linear.pt").write_bytes(torch_file(weights))
    with pytest.raises(InputError, match=r"is not the model of the pickled M3Encoder.*: heads [0-9a-f]{16}, then"):
        pickle.loads(pickled)
    assert pickle.loads(of_sentences).dimension == 32  # which has no heads


def test_folders_without_the_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"sparse_linear\.pt and no colbert_linear\.pt"):
        M3Encoder(MODELS / "st_xlmr")
    shutil.copytree(FOLDER, tmp_path / "model")
    (tmp_path / "model" / "colbert_linear.pt").unlink()
    with pytest.raises(ModelNotFoundError, match=r"has no colbert_linear\.pt"):
        M3Encoder(tmp_path / "model")
    shutil.copy(FOLDER / "colbert_linear.pt", tmp_path / "model" / "sparse_linear.pt")
    shutil.copy(FOLDER / "colbert_linear.pt", tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"sparse_linear\.pt: weight has shape \[12, 32\].*must be \[1, 32\]"):
        M3Encoder(tmp_path / "model")
    shutil.copy(FOLDER / "sparse_linear.pt", tmp_path / "model")
    (tmp_path / "model" / "colbert_linear.pt").write_bytes(b"no file of torch")
    with pytest.raises(CheckpointError, match="colbert_linear"):
        M3Encoder(tmp_path / "model")


@pytest.mark.parametrize("weights", [(1, 1), (0, 0, 1), (1, -1, 1), (1, 1, float("nan")), "abc", (1, 1, True), None])
def test_wrong_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InputError, match="weights must be three finite numbers"):
        M3Encoder(FOLDER).score([("a", "b")], weights)


def test_wrong_pairs_and_texts_are_refused() -> None:
    encoder = M3Encoder(FOLDER)
    for pairs, message in (("ab", "pairs must be"), (["ab"], r"pairs\[0\]"), ([("a", "b"), ("a", 3)], r"pairs\[1\]")):
        with pytest.raises(InputError, match=message):
            encoder.score(pairs)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"texts\[1\]"):
        encoder.encode(["a", 3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="max_seq_length"):
        M3Encoder(FOLDER, max_seq_length=2)


# --- the commands


@pytest.mark.parametrize("outputs", ["dense", "sparse", "colbert"])
def test_a_command_writes_each_output(outputs: str, tmp_path: Path) -> None:
    texts = ["the city by night", "a dog", "the city"]
    file, output = tmp_path / "texts.txt", tmp_path / "vectors.jsonl"
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert main(["embed", str(file), "-m", str(FOLDER), "--outputs", outputs, "-o", str(output), "-q"]) == 0
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    encoder = M3Encoder(FOLDER)
    expected = encoded(encoder, texts)
    assert (encoder.vocabulary_size, encoder.token_dimension) == (185, 12)
    assert len(rows) == 3
    for index, row in enumerate(rows):
        if outputs == "dense":
            vector = np.array(row["vector"]) / np.linalg.norm(row["vector"])
            np.testing.assert_allclose(
                vector, SentenceEncoder(FOLDER).encode(texts, normalize_embeddings=True)[index], atol=1e-6
            )
        elif outputs == "sparse":
            dense = np.zeros(185, np.float32)
            dense[row["indices"]] = row["values"]
            np.testing.assert_allclose(dense, expected.sparse.toarray()[index], atol=1e-6)
        else:
            np.testing.assert_allclose(row["vectors"], expected.colbert[index], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-m", "minilm", "--outputs", "sparse", "-o", "x.jsonl"],
            "it has no sparse_linear.pt and no colbert_linear.pt",
        ),
        (
            ["-m", str(FOLDER), "--outputs", "sparse", "--normalize", "-o", "x.jsonl"],
            "--normalize is for dense vectors",
        ),
        (["-m", str(FOLDER), "--outputs", "colbert", "--normalize", "-o", "x.jsonl"], "have length 1 already"),
        (["-m", str(FOLDER), "--outputs", "colbert", "--prompt", "a ", "-o", "x.jsonl"], "BGE-M3 has no prompts"),
        (["-m", str(FOLDER), "--outputs", "colbert", "-o", "x.vectors"], "a folder of vectors keeps dense ones"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("a city\n")
    assert main(["embed", "texts.txt", *arguments]) != 0
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(("name", "kind"), [("m3_colbert_dim", "Unigram"), ("st_modernbert_mean", "BPE")])
def test_info_shows_a_folder_with_another_tokenizer(name: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(MODELS / name), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tokenizer"]["model"] == kind
    mask = "<mask>" if kind == "Unigram" else "[MASK]"
    assert facts["tokenizer"]["special_tokens"][mask] == (184 if kind == "Unigram" else 296)
    if name == "m3_colbert_dim":
        assert facts["m3_encoder"] == {"outputs": ["dense", "sparse", "colbert"], "token_vector_width": 12}
    else:
        assert "m3_encoder" not in facts
    assert main(["info", str(MODELS / name)]) == 0
    assert "special tokens" in capsys.readouterr().out


@pytest.mark.parametrize("options", [{}, {"backend": "numpy"}, {"dtype": "int8"}])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_saved_folder_gives_the_same_outputs(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    texts = reference_vectors(name)[0]["texts"]
    encoder = M3Encoder(MODELS / name, **options)
    encoder.save_pretrained(tmp_path / "first")
    M3Encoder(tmp_path / "first", **options).save(tmp_path / "second")
    expected = encoded(encoder, texts)
    for folder in (tmp_path / "first", tmp_path / "second"):
        found = encoded(M3Encoder(folder, **options), texts)
        np.testing.assert_array_equal(found.dense, expected.dense)
        np.testing.assert_array_equal(found.colbert.vectors, expected.colbert.vectors)
        np.testing.assert_array_equal(found.sparse.toarray(), expected.sparse.toarray())
    dense = SentenceEncoder(folder, **options).encode(texts, return_truncated=True)[0]  # type: ignore[arg-type]
    np.testing.assert_allclose(dense, expected.dense, rtol=0, atol=1e-6)
    for file in ("sparse_linear.pt", "colbert_linear.pt"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_torch_and_sentence_transformers_load_a_saved_folder(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    peer = pytest.importorskip("sentence_transformers")
    encoder = M3Encoder(FOLDER)
    encoder.save_pretrained(tmp_path)
    for file, first in (("sparse_linear.pt", 1), ("colbert_linear.pt", encoder.token_dimension)):
        found = torch.load(tmp_path / file, map_location="cpu", weights_only=True)
        original = torch.load(FOLDER / file, map_location="cpu", weights_only=True)
        linear = torch.nn.Linear(encoder.dimension, first)
        linear.load_state_dict(found)
        for name, tensor in original.items():
            assert torch.equal(found[name], tensor.float())
    texts = ["the city by night", "a dog"]
    found = peer.SentenceTransformer(str(tmp_path), device="cpu").encode(texts)
    np.testing.assert_allclose(found, encoder.encode(texts).dense, rtol=0, atol=1e-5)
