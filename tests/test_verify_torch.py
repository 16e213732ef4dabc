"""`verify_model` beside sentence-transformers, transformers, model2vec and ONNX Runtime themselves.

`make test-torch` installs them; without torch these tests are skipped.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import sentence_folder, write_safetensors
from tiny_models import make_all
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import InputError
from wordpiece_bert.verify import verify_model

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
transformers: Any = pytest.importorskip("transformers")

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "examples" / "texts" / "sentences.txt"
PEERS = {
    "sentence-transformers": ("sentences", "splade", "colbert", "ranker", "m3"),
    "transformers": ("sentences", "ranker", "reviews", "entities", "answers", "words", "m3"),
    "model2vec": ("static",),
    "onnx": ("sentences", "ranker", "reviews", "entities", "answers", "words"),
}
CASES = [(reference, name) for reference, names in PEERS.items() for name in names]
CLASSES = {
    "sentences": "AutoModel",
    "ranker": "AutoModelForSequenceClassification",
    "reviews": "AutoModelForSequenceClassification",
    "entities": "AutoModelForTokenClassification",
    "answers": "AutoModelForQuestionAnswering",
    "words": "AutoModelForMaskedLM",
}
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_all(tmp_path_factory.mktemp("models"))


def export(folder: Path, class_name: str) -> None:
    """Write the graph of a folder's model as torch exports it."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    found = getattr(transformers, class_name).from_pretrained(str(folder), attn_implementation="eager").eval()
    ends = ["start_logits", "end_logits"]
    outputs = ["last_hidden_state"] if class_name == "AutoModel" else ends if "Question" in class_name else ["logits"]

    class Exported(torch.nn.Module):  # type: ignore[misc]  # of an Any
        def __init__(self) -> None:
            super().__init__()
            self.model = found

        def forward(self, ids: Any, mask: Any, types: Any) -> Any:
            out = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types)
            return tuple(out[name] for name in outputs)

    (folder / "onnx").mkdir()
    one = torch.ones((2, 5), dtype=torch.int64)
    axes = {key: {0: "batch", 1: "length"} for key in [*INPUTS, *outputs]}
    if outputs == ["logits"] and "Sequence" in class_name:
        axes["logits"] = {0: "batch"}
    torch.onnx.export(
        Exported(),
        (one, one, torch.zeros_like(one)),
        str(folder / "onnx" / "model.onnx"),
        input_names=INPUTS,
        output_names=outputs,
        dynamic_axes=axes,
        dynamo=False,
    )


@pytest.fixture
def folder(reference: str, name: str, models: Path, tmp_path: Path) -> Path:
    """A copy of a model, with a graph if the reference is one."""
    if reference in ("sentence-transformers", "model2vec"):
        pytest.importorskip(reference.replace("-", "_"))
    copy = tmp_path / name
    shutil.copytree(models / name, copy)
    if reference == "onnx":
        export(copy, CLASSES[name])
    return copy


@pytest.mark.filterwarnings("ignore")  # of the exporter
@pytest.mark.parametrize(("reference", "name"), CASES)
def test_each_kind_of_model_passes_beside_each_reference(reference: str, name: str, folder: Path) -> None:
    report = verify_model(folder, TEXTS, reference=reference)
    assert report.passed, report
    assert report.reference.startswith("onnxruntime" if reference == "onnx" else reference)
    if name != "static":
        assert verify_model(folder, TEXTS, reference=reference, dtype="int8").passed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("reference", "name"), CASES)
def test_each_reference_with_other_weights_fails(
    reference: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    file = next(other.rglob("*.safetensors"))
    random = np.random.default_rng(0)
    noisy = {key: np.float32(x + random.normal(0, 0.5, x.shape)) for key, x in read_tensors(file).items()}
    write_safetensors(file, noisy)
    if reference == "onnx":
        shutil.move(folder / "onnx", other / "onnx")
        assert not verify_model(other, TEXTS, reference=reference).passed
        return
    if reference == "transformers":
        kind = getattr(transformers, CLASSES.get(name, "AutoModel"))
    else:
        package = pytest.importorskip(reference.replace("-", "_"))
        classes = {"splade": "SparseEncoder", "colbert": "MultiVectorEncoder", "ranker": "CrossEncoder"}
        kind = getattr(package, "StaticModel" if name == "static" else classes.get(name, "SentenceTransformer"))
    if reference == "sentence-transformers":
        init = kind.__init__
        monkeypatch.setattr(kind, "__init__", lambda self, _, **options: init(self, str(other), **options))
    else:
        load = kind.from_pretrained
        monkeypatch.setattr(kind, "from_pretrained", lambda _, **options: load(str(other), **options))
    report = verify_model(folder, TEXTS, reference=reference)
    assert not report.passed
    assert report.reference.startswith(reference)


def test_a_prompt_that_is_not_pooled_and_a_dimension_that_is_cut_are_the_models(tmp_path: Path) -> None:
    folder = sentence_folder("sentence_no_prompt_pooling", tmp_path)
    file = folder / "config_sentence_transformers.json"
    settings = json.loads(file.read_text()) | {"default_prompt_name": "query", "truncate_dim": 7}
    file.write_text(json.dumps(settings))
    report = verify_model(folder, TEXTS, reference="transformers", max_texts=9)
    assert report.passed, report


def test_the_default_is_the_best_that_takes_the_model(models: Path) -> None:
    pytest.importorskip("sentence_transformers")
    assert verify_model(models / "sentences", TEXTS).reference.startswith("sentence-transformers ")
    assert verify_model(models / "reviews", TEXTS).reference.startswith("transformers ")


def test_what_a_reference_raises_is_an_error_with_the_folder(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    shutil.copytree(models / "sentences", tmp_path / "other")
    (tmp_path / "other" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(InputError, match=r"onnx cannot run .*model\.onnx: "):
        verify_model(tmp_path / "other", TEXTS, reference="onnx")
