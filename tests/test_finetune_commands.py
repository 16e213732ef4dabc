"""Fine-tuning by the command: models whose tokenizers are not WordPiece, killed and gone on with; and any naming of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from killed_runs import finish_after_kills
from model_files import MODELS
from wordpiece_bert import tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.families import family_of
from wordpiece_bert.cli import main
from wordpiece_bert.finetune import model_for

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "import sys\nfrom wordpiece_bert.cli import main\nif code := main(sys.argv[1:]):\n    sys.exit(code)"


def table_of(folder: Path) -> str:
    lines = ["text\tlabel", *(f"a fine film {i}\tgood" for i in range(8)), *(f"dull {i}\tbad" for i in range(8))]
    (folder / "table.tsv").write_text("\n".join(lines))
    return str(folder / "table.tsv")


@pytest.mark.parametrize("name", ["rerank_modernbert", "st_deberta", "st_jina", "st_neobert", "st_nomic", "st_gte"])
def test_the_command_trains_a_model_of_any_family(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    output, train = str(tmp_path / "trained"), table_of(tmp_path)
    arguments = ["finetune", "--task", "classify", "--model", str(MODELS / name), "--train", train, "-o", output]
    assert main([*arguments, "--epochs", "2", "--batch-size", "4"]) == 0
    found = tasks.classify(output, ["a fine film", "dull"])
    assert {one[0]["label"] for one in found} <= {"good", "bad"}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["roberta_seqcls", "st_xlmr"])
def test_a_killed_command_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    model, train = str(MODELS / name), table_of(tmp_path)

    def arguments(folder: str) -> list[str]:
        steps = ["--epochs", "4", "--batch-size", "4", "--save-steps", "1", "--resume", "-q"]
        output = str(tmp_path / folder)
        return [COMMAND, "finetune", "--task", "classify", "--model", model, "--train", train, "-o", output, *steps]

    finish_after_kills(arguments("whole"), arguments("killed"), [0.4, 0.5])
    for file in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    found = tasks.classify(tmp_path / "killed", ["a fine film"])
    assert found == tasks.classify(tmp_path / "whole", ["a fine film"])


#: Files with the names that programs gave to weights over the years, joined tensors, and forms that only names tell.
FILES = ("variant_original_names", "gte_old_names", "nomic_old_config", "jina_qk_norm", "neobert_model", "st_roberta")


@pytest.mark.parametrize("name", FILES)
def test_a_head_is_put_on_the_encoder_of_any_file(name: str) -> None:
    base: Any = AutoModel.base_from_pretrained(MODELS / name, "numpy")
    ids = [[2, 7, 9, 3]]
    expected = base(ids).last_hidden_state
    for kind in {"MaskedLM", "SequenceClassification"} & set(family_of(base.config).heads):
        labels = None if kind == "MaskedLM" else ["good", "fair", "bad"]
        model: Any = model_for(MODELS / name, kind, labels=labels, backend="numpy")  # type: ignore[arg-type]
        np.testing.assert_array_equal(model.base_model(ids).last_hidden_state, expected)
        assert np.isfinite(model(ids).logits).all()
