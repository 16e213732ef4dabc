"""`inspect.trace` of every kind of model that `tasks.load` returns: its queries and keys give its attention."""

from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS
from page_reader import decoded
from wordpiece_bert import inspect, tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.tasks import Loaded

#: Every reference model but those that differ in their files alone.
FOLDERS = [
    folder.name
    for folder in sorted(MODELS.iterdir())
    if (folder / "reference.npz").is_file()
    and (folder / "config.json").is_file()
    and not folder.name.startswith(("static", "m2v", "colbert_stanford"))
]


def loaded(folder: str, **options: Any) -> Loaded:
    """A model, with its own tokenizer if it is not WordPiece, else with one whose words are w0, w1 and so on."""
    model = AutoModel.from_pretrained(MODELS / folder, **options)
    tokenizer: Any
    if folder.startswith("roberta") and (MODELS / folder / "tokenizer.json").is_file():
        pytest.importorskip("tokenizers")
        tokenizer = SubwordTokenizer(MODELS / folder)
    else:
        names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = wb.Tokenizer.from_vocab([*names, *(f"w{i}" for i in range(5, model.config.vocab_size))])
    return tasks.Loaded(model, tokenizer)


@pytest.mark.parametrize("folder", FOLDERS)
def test_queries_and_keys_give_the_attention_of_every_model(folder: str) -> None:
    one = loaded(folder)
    trace = inspect.trace(one, "w5 w6 w7 w9 w8 w5", "w10 w5" if one.model.config.type_vocab_size > 1 else None)
    view = inspect.neurons(trace)
    scores = view.arrays["queries"] @ view.arrays["keys"].swapaxes(-1, -2) / math.sqrt(trace.queries.shape[-1])
    windows = [one.model.config.layer_positions(layer).window for layer in range(len(trace.attentions))]
    narrow = any(window is not None and window < len(trace.tokens) - 1 for window in windows)
    adds = ("deberta-v2", "jina_bert", "mpnet")
    assert ("bias" in view.arrays) == (narrow or one.model.config.model_type in adds)
    found = softmax(scores + view.arrays.get("bias", np.float32(0)))
    np.testing.assert_allclose(found, trace.attentions, atol=2e-6)
    assert trace.value_norms.shape == trace.attentions.shape[:3]
    for shown in (inspect.attention(trace), inspect.patterns(trace), view):
        assert shown.to_html()


@pytest.mark.parametrize("folder", ["bert_model", "ernie_model", "megatron_model", "nomic_model", "mpnet_model"])
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_rounding_is_not_shown_as_a_bias(folder: str, dtype: str) -> None:
    exact, rounded = (
        inspect.neurons(inspect.trace(loaded(folder, dtype=d), "w5 w6 w7 w8")) for d in ("float32", dtype)
    )
    assert ("bias" in rounded.arrays) == (folder == "mpnet_model")
    if "bias" in rounded.arrays:
        np.testing.assert_array_equal(rounded.arrays["bias"], exact.arrays["bias"])


@pytest.mark.parametrize("folder", ["roberta_masked_lm", "roberta_seqcls", "roberta_token_cls"])
def test_the_length_of_projected_values_by_their_definition(folder: str) -> None:
    one = loaded(folder)
    trace = inspect.trace(one, "w5 w6 w7 w8")
    weights = {name.removeprefix("roberta."): array for name, array in one.model.named_parameters()}
    for layer in range(len(trace.attentions)):
        prefix = f"encoder.layer.{layer}.attention"
        v = trace.hidden_states[layer] @ weights[f"{prefix}.self.value.weight"].T + weights[f"{prefix}.self.value.bias"]
        heads = np.split(v, trace.attentions.shape[1], axis=1)
        columns = np.split(weights[f"{prefix}.output.dense.weight"], len(heads), axis=1)
        expected = [np.linalg.norm(values @ part.T, axis=1) for values, part in zip(heads, columns, strict=True)]
        np.testing.assert_allclose(trace.value_norms[layer], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("folder", ["roberta_masked_lm", "roberta_seqcls", "st_roberta", "st_gte"])
def test_a_folder_that_is_not_bert_has_a_page(folder: str, tmp_path: Path) -> None:
    """The command shows every view that the model allows, the tokens of byte-level tokenizers among them."""
    pytest.importorskip("tokenizers")
    out = tmp_path / "page.html"
    command = ["inspect", "the cat sat", "-m", str(MODELS / folder), "--beside", str(MODELS / "sentence_plain_folder")]
    assert main([*command, "-o", str(out), "-q"]) == 0
    content, _ = decoded(out.read_text(encoding="utf-8"))
    kinds = {view["kind"] for view in content["views"]}
    assert {"tokens", "attention", "neurons", "patterns"} <= kinds
    assert ("positions" in kinds) == (folder != "st_gte")
    first, second = content["views"][0]["data"]["tokenizers"]
    assert [row["token"] for row in first["tokens"]] == inspect.trace(MODELS / folder, "the cat sat").tokens
    assert bool(first["sides"]) == (folder == "st_gte")
    assert second["agrees"]
    config = json.loads((MODELS / folder / "config.json").read_text(encoding="utf-8"))
    assert first["vocabulary"] <= config["vocab_size"]


def test_a_model_that_rotates_has_no_table_of_positions() -> None:
    with pytest.raises(InputError, match="no table of positions"):
        inspect.positions(loaded("nomic_model").model)


def test_a_folder_of_roberta_is_traced_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = shutil.copytree(MODELS / "roberta_masked_lm", tmp_path / "model")
    text = "the cat <mask> on the mat"
    assert inspect.trace(folder, text).tokens == tasks.load(folder).tokenizer.encode(text).tokens
    assert inspect.predictions(folder, text, max_length=5).data["truncated"]
    assert len(inspect.logit_lens(folder, text, max_length=5).data["tokens"]) == 5
