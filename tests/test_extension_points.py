"""What comes in kinds is an entry in a table: a toy of each kind is added here, from outside the package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import small_tokenizer
from model_files import sentence_folder
from random_models import LossOnly, random_model
from small_corpus import write_corpus
from tiny_models import make_reviews, make_sentences
from wordpiece_bert import SentenceEncoder, Tokenizer, inspect, tasks
from wordpiece_bert._internal.choices import VIEWS
from wordpiece_bert._internal.drawing import Drawing
from wordpiece_bert.bert import AutoModel, BertConfig, BertForNextSentencePrediction, BertModel, functional, poolings
from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
from wordpiece_bert.bert.engines.packing import DensePacker
from wordpiece_bert.bert.family_table import FAMILIES, Family, Training, register
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.bert.heads.parts import score_layers
from wordpiece_bert.bert.plan.building import layer_name
from wordpiece_bert.bert.plan.interpreter import Interpreter, Step, Value, kept
from wordpiece_bert.bert.plan.parts import Dense, Norm, Plan, Residual
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError, InputError
from wordpiece_bert.finetune import (
    PretrainingRows,
    PretrainingTrainer,
    Trainer,
    TrainingArguments,
    model_for,
    pad_collate,
)
from wordpiece_bert.finetune.engines import RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.losses import CosineSimilarityLoss
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.objectives import (
    OBJECTIVES,
    Columns,
    ExamplesObjective,
    HeadObjective,
    Objective,
    Tables,
    objective_class,
)
from wordpiece_bert.finetune.objectives import register as register_objective
from wordpiece_bert.finetune.objectives.examples import collated
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.finetune.problem import ModelProblem
from wordpiece_bert.finetune.sentences import SentenceProblem
from wordpiece_bert.finetune.sequence_heads import SequenceHead
from wordpiece_bert.inspect import View
from wordpiece_bert.inspect.kinds import KINDS, Kind
from wordpiece_bert.inspect.kinds import register as register_view
from wordpiece_bert.pretraining import Masking, PretrainingDataset

# --- a family of models: BERT under other names of weights and settings, without token types


@dataclass(frozen=True, kw_only=True)
class ToyConfig(BertConfig):
    model_type: str = "toy"
    toy_dropout: float = 0.25

    _names_in_file: ClassVar[Mapping[str, str]] = {"hidden_size": "width"}


class ToyModel(BertModel):
    config_class = ToyConfig
    _prefix = "toy."

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        del config
        return name.replace("encoder.layer.", "blocks.")


class ToyForSequenceClassification(SequenceClassification):
    _base_model_class = ToyModel
    _reads_pooler = True


TOY = Family(
    model_type="toy",
    module=__name__,
    name="Toy",
    heads=("SequenceClassification",),
    other_types=("toy_v0",),
    training=Training(sequence_rate=("toy_dropout",)),
)


@pytest.fixture
def toy_family() -> Iterator[None]:
    register(TOY)
    yield
    del FAMILIES["toy"]


def as_toy(folder: Path) -> Path:
    """Turn a folder with a BERT into one with a toy model of the same numbers."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "toy", "architectures": ["ToyForSequenceClassification"], "width": config["hidden_size"]}
    if "id2label" not in config:
        config["architectures"] = ["ToyModel"]
    del config["hidden_size"]
    tensors = read_tensors(folder / "model.safetensors")
    write_safetensors(
        folder / "model.safetensors",
        {
            name.replace("bert.", "toy.").replace("encoder.layer.", "blocks."): np.asarray(array)
            for name, array in tensors.items()
        },
    )
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.usefixtures("toy_family")
def test_a_family_is_loaded_by_every_way_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_reviews(tmp_path / "bert")
    folder = as_toy(make_reviews(tmp_path / "toy"))
    texts = ["a wonderful film", "boring actors"]
    expected = tasks.classify(str(tmp_path / "bert"), texts)
    assert tasks.classify(str(folder), texts) == expected
    model: Any = AutoModel.from_pretrained(folder, "numpy")
    assert type(model) is ToyForSequenceClassification
    with pytest.warns(CheckpointWarning, match="2 tensors are not used: 'classifier"):
        assert type(AutoModel.base_from_pretrained(folder)) is ToyModel
    model.save_pretrained(tmp_path / "saved")
    again: Any = AutoModel.from_pretrained(tmp_path / "saved")
    for (one, weight), (other, loaded) in zip(model.named_parameters(), again.named_parameters(), strict=True):
        assert one == other
        np.testing.assert_array_equal(weight, loaded)
    assert any(name.startswith("toy.blocks.0.") for name, _ in again.named_parameters())
    assert main(["info", str(folder)]) == 0
    assert "toy" in capsys.readouterr().out


@pytest.mark.usefixtures("toy_family")
def test_a_family_is_an_encoder_of_sentences(tmp_path: Path) -> None:
    make_sentences(tmp_path / "bert")
    folder = as_toy(make_sentences(tmp_path / "toy"))
    texts = ["to bake bread", "a bicycle"]
    expected = SentenceEncoder.from_pretrained(tmp_path / "bert").encode(texts)
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(folder).encode(texts), expected)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    assert main(["embed", "-m", str(folder), str(tmp_path / "texts.txt"), "-o", str(tmp_path / "v.npy"), "-q"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), expected)


@pytest.mark.usefixtures("toy_family")
@pytest.mark.parametrize("backend", ["numpy", "rust"])
def test_a_family_is_trained_with_its_own_dropout(tmp_path: Path, backend: str) -> None:
    folder = as_toy(make_reviews(tmp_path / "toy"))
    model = model_for(folder, "SequenceClassification", backend=backend)
    rows = [{"input_ids": [1, 5, 6, 2], "labels": 0}, {"input_ids": [1, 9, 2], "labels": 1}] * 4
    args = TrainingArguments(str(tmp_path / "run"), max_steps=2, per_device_train_batch_size=4, save_strategy="no")
    trainer = Trainer(model, args, rows)
    trainer.train()
    before, after = dict(model.named_parameters()), dict(trainer.model.named_parameters())
    assert any(not np.array_equal(before[name], after[name]) for name in before if ".blocks.0." in name)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"toy_dropout": 2.0}))
    with pytest.raises(ConfigError, match="toy_dropout must be"):
        Trainer(model_for(folder, "SequenceClassification", backend=backend), args, rows).train()


def test_without_its_entry_the_family_is_refused(tmp_path: Path) -> None:
    folder = as_toy(make_reviews(tmp_path / "toy"))
    with pytest.raises(ConfigError, match="model_type is 'toy'; supported are bert, albert, "):
        AutoModel.from_pretrained(folder)


# --- a kind of layer, in NumPy alone: a gate of each column over a dense layer


@dataclass(frozen=True)
class Highway:
    """y = σ(W_gate·x + b) ⊙ (W·x + b)."""

    gate: Dense
    value: Dense
    dropout: str = ""

    site: ClassVar[str] = "output"
    reads_first: ClassVar[bool] = False


def highway(steps: Interpreter, part: Highway, layer: int, x: Value) -> Step:
    """The step of a `Highway`, [..., H] -> [..., H]."""
    del layer
    gate, value = steps.dense(part.gate, x), steps.dense(part.value, x)
    open_ = functional.sigmoid(gate.y.now)
    y = kept(open_ * value.y.now)
    if not steps.keeps:
        return Step(y, None)

    def back(dy: Any) -> Any:
        to_gate = gate.backward(dy * value.y.now * open_ * (1 - open_))
        return to_gate + value.backward(dy * open_)

    return Step(y, back)


@dataclass(frozen=True, kw_only=True)
class HighwayConfig(ToyConfig):
    model_type: str = "highway"

    def _plan(self) -> Plan:
        plan = super()._plan()

        def added(layer: int) -> Residual:
            name = f"{layer_name(layer)}.highway"
            body: Any = Highway(Dense(f"{name}.gate"), Dense(f"{name}.value"))
            return Residual(body, before=Norm(f"{name}.norm", self.layer_norm_eps))

        return replace(plan, layers=tuple((*layer, added(i)) for i, layer in enumerate(plan.layers)))


class HighwayModel(ToyModel):
    config_class = HighwayConfig


class HighwayForSequenceClassification(SequenceClassification):
    _base_model_class = HighwayModel
    _reads_pooler = True


HIGHWAY = replace(TOY, model_type="highway", name="Highway", other_types=())
SMALL: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 20}


@pytest.fixture
def toy_layer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(Interpreter.STEPS, Highway, highway)
    register(HIGHWAY)
    yield
    del FAMILIES["highway"]


def highway_model() -> Any:
    config = HighwayConfig(num_hidden_layers=2, max_position_embeddings=16, **SMALL)
    return random_model(HighwayForSequenceClassification, config, "numpy")


@pytest.mark.usefixtures("toy_layer")
def test_a_kind_of_layer_runs_and_is_saved(tmp_path: Path) -> None:
    model = highway_model()
    out = model.base_model([[2, 7, 9]])
    model.save_pretrained(tmp_path)
    assert "toy.blocks.1.highway.gate.weight" in read_tensors(tmp_path / "model.safetensors")
    again: Any = AutoModel.from_pretrained(tmp_path, "numpy")
    np.testing.assert_array_equal(again([[2, 7, 9]]).logits, model([[2, 7, 9]]).logits)
    changed = {name: 0 * x if ".highway.value." in name else x for name, x in model.named_parameters()}
    without = type(model)(model.config, changed, backend="numpy").base_model([[2, 7, 9]]).last_hidden_state
    assert np.abs(without - out.last_hidden_state).max() > 0.01
    tensors = dict(read_tensors(tmp_path / "model.safetensors"))
    del tensors["toy.blocks.1.highway.norm.bias"]
    write_safetensors(tmp_path / "model.safetensors", {name: np.asarray(array) for name, array in tensors.items()})
    with pytest.raises(CheckpointError, match=r"1 of \d+ weights are missing: 'toy.blocks.1.highway.norm.bias'"):
        AutoModel.from_pretrained(tmp_path, "numpy")


@pytest.mark.usefixtures("toy_layer")
def test_gradients_of_a_kind_of_layer_against_central_differences() -> None:
    model = highway_model()
    network, random = Network(model), np.random.default_rng(2)
    parameters: Any = {name: array.astype(np.float64) for name, array in model.named_parameters()}
    batch = {"input_ids": np.array([[2, 7, 9], [2, 4, 0]]), "attention_mask": [[1, 1, 1], [1, 1, 0]], "labels": [0, 1]}
    for checkpointing in (False, True):
        options = PassOptions(gradient_checkpointing=checkpointing)
        gradients = compute(network, parameters, batch, options).gradients
        assert gradients.keys() == parameters.keys()
        for name, gradient in gradients.items():
            direction = random.standard_normal(gradient.shape)
            losses = [
                compute(
                    network, {**parameters, name: parameters[name] + step * direction}, batch, engine=LossOnly()
                ).loss
                for step in (1e-5, -1e-5)
            ]
            expected = (losses[0] - losses[1]) / 2e-5
            assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-4, abs=1e-7), name


@pytest.mark.usefixtures("toy_layer")
def test_the_kernels_refuse_a_kind_of_layer_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = highway_model()
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(DensePacker, "pack", lambda *_, **__: pytest.fail("packed before the plan was checked"))
    for dtype in ("float32", "int8"):
        with pytest.raises(InputError, match="the kernels have no part Highway: load the model with backend='numpy'"):
            AutoModel.from_pretrained(tmp_path, "rust", dtype)
    with pytest.raises(InputError, match="the kernels have no part Highway"):
        compute(
            Network(model),
            dict(model.named_parameters()),
            {"input_ids": [[2, 7]], "labels": [0]},
            engine=RustTraining(),
        )


# --- a pooling: the median of the tokens, which has no kernel and no gradient


def median(x: Any, counted: Any, visible: Any) -> Any:
    assert (counted <= visible).all()
    return np.stack([np.median(row[mask], axis=0) for row, mask in zip(x, counted, strict=True)])


@pytest.fixture
def toy_pooling() -> Iterator[None]:
    poolings.register(poolings.PoolingKind(name="median", formula=median))
    yield
    del poolings.POOLINGS["median"]


def with_pooling(folder: Path, modes: Any) -> Path:
    """Let the folder of an encoder name ways of pooling."""
    file = folder / "1_Pooling" / "config.json"
    config = json.loads(file.read_text())
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    file.write_text(json.dumps({"word_embedding_dimension": width, "pooling_mode": modes, "include_prompt": False}))
    return folder


@pytest.mark.usefixtures("toy_pooling")
@pytest.mark.parametrize("backend", ["numpy", "rust"])
@pytest.mark.parametrize("modes", ["median", ["mean", "median"]])
def test_a_pooling_is_used_from_python_and_from_the_command(
    tmp_path: Path, backend: str, modes: str | list[str]
) -> None:
    folder = with_pooling(sentence_folder("sentence_mean_normalize", tmp_path), modes)
    texts = ["the cat", "a", "it was in the house of the people", "the mat"]
    encoder = SentenceEncoder(folder, backend=backend)
    ids = [encoder.tokenizer.encode(text, truncation=True, max_length=encoder.max_seq_length).ids for text in texts]
    tokens: Any = encoder.encode(texts, output_value="token_embeddings")
    assert [len(one) for one in tokens] == [len(one) for one in ids]
    names = [modes] if isinstance(modes, str) else modes
    pooled = [np.concatenate([getattr(np, mode)(x, axis=0) for mode in names]) for x in tokens]
    expected = np.stack([x / np.linalg.norm(x) for x in pooled])
    vectors = encoder.encode(texts, return_truncated=True)[0]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-6)
    # The tokens of a prompt are left out.
    tokens = encoder.encode(["the cat"], prompt="people ", output_value="token_embeddings")[0]
    lead = len(encoder.tokenizer.encode("people ").ids) - 1
    rest = np.concatenate([getattr(np, mode)(tokens[lead:], axis=0) for mode in names])
    prompted = encoder.encode("the cat", prompt="people ")
    np.testing.assert_allclose(prompted, rest / np.linalg.norm(rest), rtol=0, atol=2e-6)
    encoder.save_pretrained(tmp_path / "saved")
    again = SentenceEncoder(tmp_path / "saved", backend=backend).encode(texts, return_truncated=True)[0]
    np.testing.assert_array_equal(again, vectors)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    assert main(["embed", "-m", str(folder), str(tmp_path / "texts.txt"), "-o", str(tmp_path / "v.npy"), "-q"]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, rtol=0, atol=2e-6)
    with pytest.raises(ConfigError, match="the pooling median cannot be trained here"):
        SentenceProblem(encoder, CosineSimilarityLoss())


def test_without_its_entry_the_pooling_is_refused(tmp_path: Path) -> None:
    folder = with_pooling(sentence_folder("sentence_mean_normalize", tmp_path), "median")
    with pytest.raises(ConfigError, match=r"pooling_mode is \['median'\]; the modes are cls, max, mean, "):
        SentenceEncoder(folder)


# --- an objective on labelled tables: how many letters a text has, with the mean absolute error as its loss


def absolute_error(scores: Any, labels: Any) -> tuple[float, Any]:
    difference = scores[:, 0] - np.asarray(labels, np.float32)
    return float(np.abs(difference).mean()), (np.sign(difference) / len(difference)).astype(np.float32)[:, None]


class AbsoluteError(SequenceHead):
    def __init__(self, network: Any) -> None:
        super().__init__(network, score_layers(network.model_class, network.config), absolute_error)

    def losses(self, output: Any, labels: Any) -> tuple[float, ...]:
        return (absolute_error(output.logits, labels["labels"])[0],)


class Letters(HeadObjective):
    head = "SequenceClassification"
    problem_type = "regression"

    def label_names(self) -> list[str]:
        return ["letters"]

    def rows(self, file: Any, tokenizer: Any, names: Any, longest: int) -> list[dict[str, Any]]:
        table, columns = self.read(file), self.tables.columns
        counts = [float(count) for count in table[columns.label]]
        texts = table[columns.text]
        return [
            {"input_ids": tokenizer.encode_ids(text)[:longest], "labels": n}
            for text, n in zip(texts, counts, strict=True)
        ]

    def metrics(self, found: Any, rows: Any, names: Any) -> dict[str, float]:
        return {"absolute_error": float(np.abs(found.predictions[:, 0] - found.label_ids).mean())}

    def loss_head(self, network: Any) -> AbsoluteError:
        return AbsoluteError(network)


LETTERS = Objective(
    name="letters",
    summary="how many letters a text has",
    reads="tables",
    module=__name__,
    class_name="Letters",
    columns=Columns(label="letters"),
)


@pytest.fixture
def letters() -> Iterator[None]:
    register_objective(LETTERS)
    yield
    del OBJECTIVES["letters"]


def write_letters(file: Path) -> Path:
    texts = ["a film", "a wonderful film", "boring", "a story of the city", "the oven"] * 4
    file.write_text("".join(f"{json.dumps({'text': t, 'letters': len(t)})}\n" for t in texts), encoding="utf-8")
    return file


@pytest.mark.usefixtures("letters")
def test_an_objective_on_tables_is_trained_in_python(tmp_path: Path) -> None:
    model, train = make_reviews(tmp_path / "model"), write_letters(tmp_path / "train.jsonl")
    tables = Tables(train=train, eval=train, columns=LETTERS.columns)
    args = TrainingArguments(tmp_path / "run", learning_rate=3e-1, max_steps=20, save_strategy="no")
    trainer = objective_class("letters", "tables")(tables).trainer(model, args)
    rows = trainer.train_dataset
    metrics = trainer.evaluate()
    error = metrics["eval_absolute_error"]
    assert metrics["eval_loss"] == pytest.approx(error, rel=1e-5)
    assert trainer.training_step([pad_collate(list(rows))]).loss == pytest.approx(error, rel=0.1)
    trainer.train()
    assert trainer.evaluate()["eval_absolute_error"] < error


@pytest.mark.usefixtures("letters")
def test_an_objective_on_tables_is_trained_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, train = make_reviews(tmp_path / "model"), write_letters(tmp_path / "train.jsonl")
    command = ["finetune", "-m", str(model), "--task", "letters", "--train", str(train), "--eval", str(train)]
    command += ["--epochs", "12", "--learning-rate", "3e-1", "--batch-size", "4", "--warmup", "0", "--json"]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    errors = [one["eval_absolute_error"] for one in json.loads(capsys.readouterr().out)["evaluations"]]
    assert errors[-1] < errors[0]
    saved: Any = AutoModel.from_pretrained(tmp_path / "out")
    assert saved.config.id2label == {0: "letters"}
    with pytest.raises(SystemExit):
        main(["finetune", "--help"])
    assert "letters: how many letters a text has" in " ".join(capsys.readouterr().out.split())


# --- an objective on examples: the label of pairs alone


class PairsOnly(ExamplesObjective[Any]):
    def new_config(self, sizes: Mapping[str, Any]) -> BertConfig:
        return BertConfig(**sizes)

    def new_model(self, config: BertConfig, *, pairs: bool, seed: int = 42, backend: str = "rust") -> Any:
        assert pairs
        return BertForNextSentencePrediction.from_config(config, seed=seed, backend=backend)

    def reads_pairs(self, model: Any) -> bool:
        return True

    def problem(self, model: Any) -> Any:
        def collate(rows: Any) -> dict[str, Any]:
            batch, label = collated(rows)
            del batch["labels"]
            return batch | {"labels": label}

        return ModelProblem(model, collate)

    def measured(self, model: Any, batches: Any, seed: int) -> dict[str, float]:
        found = [(float(model(**batch).loss), len(batch["labels"])) for batch in batches]
        return {"eval_loss": sum(loss * n for loss, n in found) / sum(n for _, n in found)}

    def shown(self, metrics: Any) -> str:
        return f"loss of pairs {metrics['eval_loss']:.3f}"


@pytest.fixture
def pairs_only() -> Iterator[None]:
    register_objective(
        Objective(name="pairs", summary="the label of pairs", reads="examples", module=__name__, class_name="PairsOnly")
    )
    yield
    del OBJECTIVES["pairs"]


@pytest.mark.usefixtures("pairs_only")
def test_an_objective_on_examples_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, vocab = write_corpus(tmp_path / "text.txt", 40), tmp_path / "vocab.txt"
    assert main(["train", str(text), "-o", str(vocab), "--vocab-size", "120", "-q"]) == 0
    rows = str(tmp_path / "rows")
    assert main(["pretrain-data", str(text), "-o", rows, "-v", str(vocab), "--max-length", "32", "-q"]) == 0
    command = ["pretrain", rows, "-v", str(vocab), "--hidden-size", "16", "--layers", "1", "--max-steps", "4"]
    assert main([*command, "--eval-steps", "2", "--objective", "pairs", "-o", str(tmp_path / "out")]) == 0
    assert "held out: loss of pairs 0." in capsys.readouterr().err
    saved = AutoModel.from_pretrained(tmp_path / "out")
    assert type(saved) is BertForNextSentencePrediction
    dataset = PretrainingDataset(rows, masking=Masking(Tokenizer.from_vocab(vocab)))
    args = TrainingArguments(tmp_path / "run", max_steps=2, save_strategy="no")
    trainer = PretrainingTrainer(saved, args, PretrainingRows(dataset), objective="pairs")
    assert trainer.train().global_step == 2
    assert set(trainer.evaluate(PretrainingRows(dataset, np.arange(5)))) == {"eval_loss"}


# --- a kind of views: how long each token is, as text and bars


def lengths(tokenizer: Tokenizer, text: str) -> View:
    tokens = tokenizer.tokenize(text)
    return View("lengths", "Lengths", {"tokens": tokens}, {"lengths": np.array([len(t) for t in tokens], np.float32)})


def draw_lengths(title: str, data: Mapping[str, Any], arrays: Mapping[str, Any]) -> Drawing:
    drawing = Drawing(300, 40 + 20 * len(data["tokens"]), title)
    for row, (token, length) in enumerate(zip(data["tokens"], arrays["lengths"], strict=True)):
        drawing.text(10, 40 + 20 * row, f"{token}: {length:.0f}")
    return drawing


LENGTHS = Kind(
    name="lengths",
    label="Length of tokens",
    draw=draw_lengths,
    make=lambda inspected: lengths(inspected.tokenizer, inspected.text),
    allowed=lambda _: True,
)


@pytest.fixture
def toy_view() -> Iterator[None]:
    register_view(LENGTHS)
    yield
    del KINDS["lengths"]


def page_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


@pytest.mark.usefixtures("toy_view")
def test_a_view_is_drawn_and_shown_in_a_page(tmp_path: Path) -> None:
    tokenizer = small_tokenizer.tokenizer()
    view = lengths(tokenizer, "unwanted cat")
    assert "##want: 6" in view.to_svg()
    view.save(tmp_path / "view.svg")
    assert json.loads(view.to_json())["arrays"] == {"lengths": [2.0, 6.0, 4.0, 3.0]}
    first, second = page_of(inspect.page(inspect.tokens(tokenizer, "cat"), view).to_html())["views"]
    assert (first["label"], second["label"]) == ("Tokens", "Length of tokens")
    assert "picture" not in first
    assert second["picture"] == view.to_svg()


@pytest.mark.usefixtures("toy_view")
def test_a_view_with_a_script_is_built_by_it() -> None:
    script = 'builders.lengths = (view) => { view.element = make("p", {}, view.title); view.start = () => {}; };'
    register_view(replace(LENGTHS, script=script))
    page = inspect.page(lengths(small_tokenizer.tokenizer(), "cat")).to_html()
    assert script in page
    assert "picture" not in page_of(page)["views"][0]


@pytest.mark.usefixtures("toy_view")
@pytest.mark.parametrize("chosen", [[], ["--views", "lengths,tokens"]])
def test_the_command_makes_a_view(chosen: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocab, page = tmp_path / "vocab.txt", tmp_path / "page.html"
    vocab.write_text("\n".join(small_tokenizer.TOKENS), encoding="utf-8")
    assert main(["inspect", "unwanted cat", "-m", str(vocab), "-o", str(page), *chosen]) == 0
    assert "tokens, lengths" in "".join(capsys.readouterr())
    assert [view["kind"] for view in page_of(page.read_text(encoding="utf-8"))["views"]] == ["tokens", "lengths"]


def test_without_its_entry_the_view_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = lengths(small_tokenizer.tokenizer(), "cat")
    with pytest.raises(InputError, match="no kind of views 'lengths': there are tokens, attention, "):
        view.to_svg()
    assert main(["inspect", "cat", "-o", str(tmp_path / "page.html"), "--views", "lengths"]) == 2
    assert "--views: 'lengths' is not one of tokens, attention, " in capsys.readouterr().err


def test_the_help_of_the_command_names_the_views_of_the_package() -> None:
    assert tuple(name for name, kind in KINDS.items() if kind.make is not None) == VIEWS
