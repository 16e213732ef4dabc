"""Attention weights, gradients with respect to inputs, and heads that are off: random models of transformers in torch."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import wordpiece_bert as wb
from wordpiece_bert import inspect, tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.sentence.dense.parts import encoder_of
from wordpiece_bert.sentence.dense.transformer import TransformerBody
from wordpiece_bert.sentence.folders.modules import Pooling, SentenceFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

LAYERS, NODES = 3, 12
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}


class Family(NamedTuple):
    """How transformers names a family's sizes, and the layer of the encoder whose columns belong to heads."""

    output: str  # with the number of the layer
    options: dict[str, Any]


BERT_OUTPUT = "encoder.layer.{}.attention.output.dense"
FAMILIES = {
    "Bert": Family(BERT_OUTPUT, {}),
    "Electra": Family(BERT_OUTPUT, {"embedding_size": 10}),
    "Albert": Family("encoder.albert_layer_groups.0.albert_layers.0.attention.dense", {"embedding_size": 10}),
    "MPNet": Family("encoder.layer.{}.attention.attn.o", {}),
    "DistilBert": Family("transformer.layer.{}.attention.out_lin", {"n_layers": LAYERS, "hidden_dim": 20}),
    "ModernBert": Family(
        "layers.{}.attn.Wo",
        {
            "local_attention": 4,
            "global_attn_every_n_layers": 2,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "cls_token_id": 2,
            "sep_token_id": 3,
        },
    ),
    "DebertaV2": Family(
        BERT_OUTPUT,
        {
            "type_vocab_size": 0,
            "relative_attention": True,
            "position_buckets": 8,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
        },
    ),
}
TEXT, PAIR = "w5 w6 [MASK] w9", "w8 w21 w30"
#: Heads of models, the options of `attribute`, and the number that they name.
HEADS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "SequenceClassification": ({"label": 1}, lambda out: out.logits[:, 1]),
    "TokenClassification": ({"token": 2, "label": 1}, lambda out: out.logits[:, 2, 1]),
    "QuestionAnswering": ({"answer": (6, 8)}, lambda out: out.start_logits[:, 6] + out.end_logits[:, 8]),
    "MaskedLM": ({"label": "w7"}, lambda out: out.logits[:, 3, 7]),
}
every_family = pytest.mark.parametrize("name", FAMILIES)
every_head = pytest.mark.parametrize("head", HEADS)


class Both(NamedTuple):
    """One model of random weights, in torch with 64 bits and here."""

    theirs: Any
    ours: tasks.Loaded
    heads: int


def models(name: str, head: str, folder: Path, seed: int = 0) -> Both:
    torch.manual_seed(seed)
    heads, size = [(2, 12), (4, 6), (3, 8)][seed % 3]
    sizes = SIZES | {"hidden_size": heads * size, "num_attention_heads": heads}
    if name == "DistilBert":
        sizes |= {"dim": heads * size, "n_heads": heads}
    labels = {} if head == "ForQuestionAnswering" else {"num_labels": 3}
    config = getattr(transformers, f"{name}Config")(**(sizes | labels | FAMILIES[name].options))
    config._attn_implementation = "eager"  # the others return no attention weights
    theirs = getattr(transformers, name + head)(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in theirs.named_parameters():
            is_norm = parameter.ndim == 1 and parameter_name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.3 + is_norm)
    theirs.save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = wb.Tokenizer.from_vocab([*special, *(f"w{i}" for i in range(5, 60))])
    return Both(theirs.double(), tasks.Loaded(AutoModel.from_pretrained(folder), tokenizer), heads)


def run(theirs: Any, vectors: Any, types: list[int], **options: Any) -> Any:
    """What a model of torch returns for word vectors, [n, S, E]."""
    if getattr(theirs.config, "type_vocab_size", 0):
        options["token_type_ids"] = torch.tensor([types] * len(vectors))
    return theirs(inputs_embeds=vectors, attention_mask=torch.ones(vectors.shape[:2], dtype=torch.long), **options)


def words(theirs: Any, ids: list[int]) -> Any:
    """The vectors of tokens, [1, S, E]."""
    return theirs.get_input_embeddings().weight[torch.tensor([ids])].detach()


def masked(encoding: Any) -> list[int]:
    """The ids with the mask, 4, in place of every token that is not special."""
    return [i if side is None else 4 for i, side in zip(encoding.ids, encoding.sequence_ids, strict=True)]


def along(score: Callable[[Any], Any], start: Any, end: Any) -> Any:
    """Integrated gradients between word vectors [1, S, E]: the effect of each token, [S]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    points = start + torch.tensor((nodes[:, None, None] + 1) / 2) * (end - start)
    points.requires_grad_()
    [gradient] = torch.autograd.grad(score(points).sum(), points)
    mean = torch.tensordot(torch.tensor(weights / 2), gradient, dims=1)
    return ((end[0] - start[0]) * mean).sum(-1).numpy()


def check(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, atol=2e-5 * max(1.0, float(np.abs(expected).max())), rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
@every_family
def test_attention_weights_equal_those_of_torch(name: str, seed: int, tmp_path: Path) -> None:
    both = models(name, "Model", tmp_path, seed)
    encoding = both.ours.tokenizer.encode(TEXT, PAIR)
    found = inspect.trace(both.ours, TEXT, PAIR)
    with torch.no_grad():
        out = run(
            both.theirs,
            words(both.theirs, encoding.ids),
            encoding.token_type_ids,
            output_attentions=True,
            output_hidden_states=True,
        )
    assert found.attentions.shape == (LAYERS, both.heads, len(encoding), len(encoding))
    check(found.attentions, np.stack([one[0].numpy() for one in out.attentions]))
    check(found.hidden_states, np.stack([one[0].numpy() for one in out.hidden_states]))


@every_head
@every_family
def test_gradients_equal_those_of_torch(name: str, head: str, tmp_path: Path) -> None:
    """Gradient × input and the length of the gradient, at the word vectors and in each layer."""
    both = models(name, f"For{head}", tmp_path)
    options, picked = HEADS[head]
    encoding = both.ours.tokenizer.encode(TEXT, PAIR)
    vectors = words(both.theirs, encoding.ids).requires_grad_()
    out = run(both.theirs, vectors, encoding.token_type_ids, output_hidden_states=True)
    score = picked(out).sum()
    inputs = [vectors, *out.hidden_states]
    gradients = torch.autograd.grad(score, inputs)
    products = [(x * dx).sum(-1)[0].detach().numpy() for x, dx in zip(inputs, gradients, strict=True)]
    lengths = [dx.norm(dim=-1)[0].numpy() for dx in gradients]
    for method, expected in (("input_x_gradient", products), ("gradient", lengths)):
        found = inspect.attribute(both.ours, TEXT, PAIR, method=method, layers=True, **options)  # type: ignore[arg-type]
        assert found.score == pytest.approx(float(score), abs=1e-4)
        check(found.effect, expected[0])
        check(found.layers, np.stack(expected[1:]))
        # Without a sum before the first norm, word vectors are at a right angle to their gradients.
        is_zero = method == "input_x_gradient" and name in ("ModernBert", "DebertaV2")
        assert bool(found.why_zero) == is_zero
        assert np.abs(expected[1 if is_zero else 0]).max() > 1e-3


@every_head
@every_family
def test_integrated_gradients_equal_those_of_torch(name: str, head: str, tmp_path: Path) -> None:
    both = models(name, f"For{head}", tmp_path, seed=1)
    options, picked = HEADS[head]
    encoding = both.ours.tokenizer.encode(TEXT, PAIR)
    found = inspect.attribute(both.ours, TEXT, PAIR, method="integrated_gradients", steps=NODES, **options)

    def score(vectors: Any) -> Any:
        return picked(run(both.theirs, vectors, encoding.token_type_ids))

    start, end = words(both.theirs, masked(encoding)), words(both.theirs, encoding.ids)
    expected = along(score, start, end)
    check(found.effect, expected)
    with torch.no_grad():
        low, high = float(score(start)), float(score(end))
    assert float(found.start[0]) == pytest.approx(low, abs=1e-4)
    assert float(found.gap[0]) == pytest.approx(float(expected.sum()) - (high - low), abs=2e-4)


@every_family
def test_gradients_of_a_cosine_equal_those_of_torch(name: str, tmp_path: Path) -> None:
    both = models(name, "Model", tmp_path, seed=2)
    model, tokenizer = both.ours.model, both.ours.tokenizer
    folder = SentenceFolder(
        transformer=tmp_path,
        pooling=Pooling(("mean",)),
        modules=(),
        max_seq_length=16,
        dimension=model.config.hidden_size,
    )
    body = TransformerBody(model, tokenizer, folder, None)  # type: ignore[arg-type]
    encoder = encoder_of(wb.SentenceEncoder, body)
    texts = (TEXT, "w9 w5 w6 w30 w8")
    encodings = [tokenizer.encode(text) for text in texts]

    def vector(vectors: Any) -> Any:
        return run(both.theirs, vectors, [0] * vectors.shape[1]).last_hidden_state.mean(1)  # [n, H]

    ends = [words(both.theirs, one.ids) for one in encodings]
    with torch.no_grad():
        pooled = [vector(end) for end in ends]
    products, integrated = [], []
    for index, encoding in enumerate(encodings):
        other = pooled[1 - index]

        def score(vectors: Any, other: Any = other) -> Any:
            return torch.nn.functional.cosine_similarity(vector(vectors), other, dim=-1)

        end = ends[index].clone().requires_grad_()
        [gradient] = torch.autograd.grad(score(end).sum(), end)
        products.append((end * gradient).sum(-1)[0].detach().numpy())
        integrated.append(along(score, words(both.theirs, masked(encoding)), ends[index]))
    for method, expected in (("input_x_gradient", products), ("integrated_gradients", integrated)):
        found = inspect.attribute(encoder, *texts, method=method, steps=NODES)  # type: ignore[arg-type]
        check(found.effect, np.concatenate(expected))
        assert found.score == pytest.approx(float(torch.nn.functional.cosine_similarity(*pooled)), abs=1e-5)


def without(theirs: Any, name: str, heads: list[tuple[int, int]], count: int) -> Any:
    """A copy of a model of torch, in whose output layers of attention the columns of some heads are 0."""
    changed = copy.deepcopy(theirs)
    with torch.no_grad():
        for layer, head in heads:
            dense = changed.base_model.get_submodule(FAMILIES[name].output.format(layer))
            size = dense.weight.shape[1] // count
            dense.weight[:, head * size : (head + 1) * size] = 0
    return changed


@every_head
@every_family
def test_heads_that_are_off_equal_columns_of_zeros_in_torch(name: str, head: str, tmp_path: Path) -> None:
    both = models(name, f"For{head}", tmp_path, seed=1)
    encoding = both.ours.tokenizer.encode(TEXT, PAIR)
    last = (LAYERS - 1, both.heads - 1)
    sets: list[Any] = [(0, 0), last, 1, [(0, 1), last]]
    if name == "Albert":  # its layers share their weights, so that in torch a head is off in all of them
        sets = [[(layer, i) for layer in range(LAYERS)] for i in range(both.heads)]
    found = inspect.intervene(both.ours, TEXT, PAIR, heads=sets)

    def said(theirs: Any) -> Any:
        with torch.no_grad():
            out = run(theirs, words(theirs, encoding.ids), encoding.token_type_ids)
        if head == "QuestionAnswering":
            return torch.stack([out.start_logits[0].softmax(-1), out.end_logits[0].softmax(-1)], -1).numpy()
        logits = out.logits[0] if out.logits.ndim == 3 else out.logits
        p = logits.softmax(-1).numpy()
        if head != "MaskedLM":
            return p
        return p[3:4, [both.ours.tokenizer.token_to_id(column) for column in found.columns]]

    before = said(both.theirs)
    check(found.before, before)
    for changed, after in zip(found.heads, found.after, strict=True):
        expected = said(without(both.theirs, name, changed, both.heads))
        check(after, expected)
        assert np.abs(expected - before).max() > 1e-3
