"""Optimizers, schedules, sentence losses and heads on frozen features: equal to the reference programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordpiece_bert.errors import InputError, NonFiniteError
from wordpiece_bert.finetune import (
    AdamW,
    LogisticRegression,
    Ridge,
    clip_grad_norm_,
    decayed,
    get_constant_schedule,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
    losses,
)

DATA = Path(__file__).parent / "data" / "training"
OPTIMIZER: dict[str, Any] = json.loads((DATA / "optimizer" / "optimizer.json").read_text())
LOSSES: dict[str, Any] = json.loads((DATA / "sentence_losses" / "losses.json").read_text())["losses"]
HEADS: dict[str, Any] = json.loads((DATA / "frozen_heads" / "heads.json").read_text())


def arrays(file: str) -> dict[str, Any]:
    with np.load(DATA / file) as stored:
        return {name: stored[name] for name in stored.files}


# --- optimizer


@pytest.mark.parametrize("name", OPTIMIZER["variants"])
def test_ten_steps_equal_those_of_the_reference(name: str) -> None:
    stored, options = arrays("optimizer/steps.npz"), OPTIMIZER["variants"][name]
    parameters = {key.removeprefix("start."): a.copy() for key, a in stored.items() if key.startswith("start.")}
    optimizer = AdamW(parameters, betas=tuple(options.pop("betas")), **options)
    rates = np.broadcast_to(stored["learning_rate"], 10)
    for step in range(10):
        optimizer.step({key: stored[f"gradient.{key}"][step] for key in parameters}, lr=float(rates[step]))
        for key, parameter in parameters.items():
            assert np.abs(parameter - stored[f"{name}.after.{key}"][step]).max() < 1e-6, (key, step)


def test_an_optimizer_continues_from_its_state_with_the_same_bits() -> None:
    random = np.random.default_rng(0)
    gradients = [{"w": random.standard_normal((3, 4)).astype(np.float32)} for _ in range(6)]
    whole = {"w": np.ones((3, 4), np.float32)}
    optimizer = AdamW(whole, lr=0.1)
    for gradient in gradients:
        optimizer.step(gradient)
    part = {"w": np.ones((3, 4), np.float32)}
    first = AdamW(part, lr=0.1)
    for gradient in gradients[:3]:
        first.step(gradient)
    second = AdamW(part, lr=0.1)
    second.load_state_dict(first.state_dict())
    for gradient in gradients[3:]:
        second.step(gradient)
    assert np.array_equal(whole["w"], part["w"])


def test_a_parameter_without_a_gradient_stays_and_one_with_zeros_decays() -> None:
    parameters = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    AdamW(parameters, lr=0.1, weight_decay=0.5).step({"b": np.zeros(2, np.float32)})
    assert parameters["a"].tolist() == [1, 1]
    assert np.allclose(parameters["b"], 0.95)


@pytest.mark.parametrize("case", OPTIMIZER["clip_grad_norm"])
def test_clipping_equals_that_of_torch(case: dict[str, Any]) -> None:
    gradients = [np.array(g, np.float32) for g in case["gradients"]]
    assert clip_grad_norm_(gradients, case["max_norm"]) == pytest.approx(case["total_norm"], rel=1e-6, abs=1e-9)
    for gradient, clipped in zip(gradients, case["clipped"], strict=True):
        assert np.allclose(gradient, np.array(clipped, np.float32), rtol=1e-6, atol=1e-7)


def test_a_gradient_that_is_not_finite_is_named_and_nothing_changes() -> None:
    gradients = {"good": np.full(3, 5, np.float32), "bad": np.array([1, np.inf], np.float32)}
    with pytest.raises(NonFiniteError, match="the gradient of bad"):
        clip_grad_norm_(gradients, 1.0)
    assert gradients["good"].tolist() == [5, 5, 5]


@pytest.mark.parametrize("case", OPTIMIZER["linear_schedule"])
def test_the_linear_schedule_equals_that_of_transformers(case: dict[str, Any]) -> None:
    factor = get_linear_schedule_with_warmup(case["num_warmup_steps"], case["num_training_steps"])
    assert [factor(step) for step in range(len(case["factor"]))] == pytest.approx(case["factor"])


def test_the_other_schedules() -> None:
    assert [get_constant_schedule()(k) for k in (0, 99)] == [1, 1]
    assert [get_constant_schedule_with_warmup(4)(k) for k in (0, 1, 4, 99)] == [0, 0.25, 1, 1]
    cosine = get_cosine_schedule_with_warmup(2, 10)
    assert [cosine(k) for k in (0, 1, 2, 6, 10, 11)] == pytest.approx([0, 0.5, 1, 0.5, 0, 0])


def test_the_names_that_decay_are_those_of_transformers() -> None:
    for model, names in OPTIMIZER["decayed"].items():
        folder = DATA / "gradients" / model
        if not folder.exists():
            continue
        from wordpiece_bert.bert.checkpoint import find_weights, read_tensors

        stored = [name for name in read_tensors(find_weights(folder)) if decayed(name)]
        assert set(names) <= set(stored), model


@pytest.mark.parametrize(
    "options", [{"lr": -1}, {"lr": math.nan}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}, {"eps": -1e-8}]
)
def test_wrong_options_of_the_optimizer_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        AdamW({"w": np.ones(2, np.float32)}, **options)


def test_gradients_that_fit_no_parameter_are_refused() -> None:
    optimizer = AdamW({"w": np.ones(2, np.float32)})
    with pytest.raises(InputError, match="no parameter 'v'"):
        optimizer.step({"v": np.ones(2, np.float32)})
    with pytest.raises(InputError, match=r"shape \[3\]"):
        optimizer.step({"w": np.ones(3, np.float32)})


# --- losses


def make_loss(options: dict[str, Any], dimension: int) -> Any:
    options = dict(options)
    kind, inner = options.pop("loss"), options.pop("inner", None)
    if inner is not None:
        options["loss"] = make_loss(inner, dimension)
    if kind == "SoftmaxLoss":
        options["embedding_dimension"] = dimension
    return getattr(losses, kind)(**options)


def columns_of(stored: dict[str, Any], prefix: str) -> list[Any]:
    return [stored[name] for name in sorted(stored) if name.startswith(f"{prefix}embeddings_")]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_equal_those_of_sentence_transformers(name: str) -> None:
    stored = arrays("sentence_losses/embeddings.npz")
    columns = columns_of(stored, f"{name}.in.")
    loss = make_loss(LOSSES[name], columns[0].shape[1])
    classifier = f"{name}.in.classifier."
    if state := {key.removeprefix(f"{name}.in."): a for key, a in stored.items() if key.startswith(classifier)}:
        loss.load_state_dict(state)
    found = loss.value_and_grad(columns, stored.get(f"{name}.in.labels"))
    assert found.loss == pytest.approx(float(stored[f"{name}.out.loss"]), rel=1e-5, abs=1e-6)
    for gradient, expected in zip(found.embeddings, columns_of(stored, f"{name}.grad."), strict=True):
        assert np.abs(gradient - expected).max() <= 1e-5 * np.abs(expected).max()
    for key, gradient in found.gradients.items():
        assert np.abs(gradient - stored[f"{name}.grad.{key}"]).max() < 1e-5
    assert found.gradients.keys() == loss.state_dict().keys()


@pytest.mark.parametrize("name", LOSSES)
def test_losses_against_central_differences_on_other_shapes(name: str) -> None:
    count = 3 if "triplet" in name or "hard" in name else 2
    random = np.random.default_rng(5)
    columns = [random.standard_normal((7, 18)) for _ in range(count)]
    loss = make_loss(LOSSES[name], 18)
    if "hardness_mode" in LOSSES[name]:
        pytest.skip("the added cosines are constants for the gradient")
    labels = {
        "softmax": random.integers(0, 3, 7),
        "contrastive": random.integers(0, 2, 7),
    }.get(name.split("_")[0], random.random(7))
    found = loss.value_and_grad(columns, labels)
    for column, gradient in zip(columns, found.embeddings, strict=True):
        direction = random.standard_normal(column.shape)
        values = []
        for sign in (1, -1):
            column += sign * 1e-5 * direction
            values.append(loss.value_and_grad(columns, labels).loss)
            column -= sign * 1e-5 * direction
        expected = (values[0] - values[1]) / 2e-5
        assert (gradient * direction).sum() == pytest.approx(expected, rel=2e-3, abs=2e-4)


@pytest.mark.parametrize(
    ("make", "columns", "labels", "message"),
    [
        (lambda: losses.CosineSimilarityLoss(), 3, [1.0] * 4, "takes 2 columns, not 3"),
        (lambda: losses.TripletLoss(), 2, None, "takes 3 columns, not 2"),
        (lambda: losses.CosineSimilarityLoss(), 2, None, "needs labels"),
        (lambda: losses.CosineSimilarityLoss(), 2, [1.0, math.nan, 0, 0], r"labels\[1\]"),
        (lambda: losses.CoSENTLoss(), 2, [1.0], r"numbers \[4\]"),
        (lambda: losses.SoftmaxLoss(6, 2), 2, [0, 1, 2, 0], r"labels\[2\] is 2"),
        (lambda: losses.SoftmaxLoss(5, 2), 2, [0, 1, 1, 0], "6 dimensions"),
        (lambda: losses.MatryoshkaLoss(losses.CoSENTLoss(), [8]), 2, [0, 1, 1, 0], "6 dimensions"),
        (lambda: losses.MultipleNegativesRankingLoss(scale=0), 2, None, "scale"),
        (lambda: losses.MultipleNegativesRankingLoss(directions=["doc_to_query"]), 2, None, "query_to_doc"),
        (lambda: losses.TripletLoss(distance_metric="dot"), 3, None, "dot"),
        (lambda: losses.ContrastiveLoss(margin=-1), 2, None, "margin"),
        (lambda: losses.MatryoshkaLoss(losses.CoSENTLoss(), [2, 4], [1.0]), 2, None, "matryoshka_weights"),
    ],
)
def test_wrong_arguments_of_losses_are_refused(make: Any, columns: int, labels: Any, message: str) -> None:
    random = np.random.default_rng(0)
    vectors = [random.standard_normal((4, 6)).astype(np.float32) for _ in range(columns)]
    with pytest.raises(InputError, match=message):
        make().value_and_grad(vectors, labels)


# --- heads on frozen features


@pytest.mark.parametrize("name", HEADS)
def test_frozen_heads_equal_those_of_scikit_learn(name: str) -> None:
    stored, options = arrays("frozen_heads/heads.npz"), HEADS[name]
    if "alpha" in options:
        targets = stored["two_values" if "two" in name else "value"]
        ridge = Ridge(alpha=options["alpha"]).fit(stored["x"], targets)
        assert np.abs(ridge.coef_ - stored[f"{name}.coef"]).max() < 1e-4
        assert np.abs(ridge.intercept_ - stored[f"{name}.intercept"]).max() < 1e-4
        assert np.abs(ridge.predict(stored["new"]) - stored[f"{name}.prediction"]).max() < 1e-4
        return
    labels = stored["binary" if name.startswith("binary") else "labels"]
    head = LogisticRegression(**options["settings"]).fit(stored["x"], labels)
    assert np.abs(head.coef_ - stored[f"{name}.coef"]).max() < 1e-4
    assert np.abs(head.intercept_ - stored[f"{name}.intercept"]).max() < 1e-4
    assert np.abs(head.predict_proba(stored["new"]) - stored[f"{name}.probability"]).max() < 1e-4


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("rows", [30, 400])
def test_the_gradient_vanishes_at_the_solution(classes: int, rows: int) -> None:
    random = np.random.default_rng(classes)
    x = random.standard_normal((rows, 50)) * 3
    y = random.integers(0, classes, rows)
    head = LogisticRegression(C=2.0).fit(x, y)
    residual = head.predict_proba(x) - np.eye(classes)[y]
    if classes == 2:
        residual = residual[:, 1:]
    assert np.abs(2.0 * residual.T @ x + head.coef_).max() < 1e-5
    assert np.abs(residual.sum(axis=0)).max() < 1e-6


def test_labels_may_be_strings_and_classes_that_separate_are_fitted() -> None:
    x = np.array([[0.0], [1.0], [10.0], [11.0]], np.float32)
    head = LogisticRegression(C=1e6).fit(x, ["no", "no", "yes", "yes"])
    assert head.predict([[0.5], [10.5]]).tolist() == ["no", "yes"]
    assert head.score(x, np.array(["no", "no", "yes", "yes"])) == 1.0


def test_ridge_with_more_features_than_rows() -> None:
    random = np.random.default_rng(1)
    x, y = random.standard_normal((5, 20)), random.standard_normal(5)
    wide = Ridge(alpha=0.5).fit(x, y)
    centred = x - x.mean(axis=0)
    gradient = centred.T @ (centred @ wide.coef_ - (y - y.mean())) + 0.5 * wide.coef_
    assert np.abs(gradient).max() < 1e-10
    # Equal columns beside which alpha vanishes: the solution of least norm, as scikit-learn's.
    np.testing.assert_allclose(Ridge(alpha=1).fit([[0, 0], [1e9, 1e9], [2e9, 2e9]], [0, 1, 2]).coef_, [5e-10, 5e-10])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LogisticRegression(C=0), "C"),
        (lambda: LogisticRegression(class_weight="equal"), "equal"),  # type: ignore[arg-type]
        (lambda: LogisticRegression().fit([[1.0], [2.0]], [1, 1]), "at least two classes"),
        (lambda: LogisticRegression().fit([[1.0], [math.nan]], [0, 1]), r"X\[1, 0\] is nan"),
        (lambda: LogisticRegression().fit([[1.0], [2.0]], [0.5, 1.0]), "is a fraction"),
        (lambda: LogisticRegression().fit([[1.0], [2.0]], [0, 1, 1]), "one label for each row"),
        (lambda: LogisticRegression().predict([[1.0]]), "call fit first"),
        (lambda: LogisticRegression().fit([[1.0], [2.0]], [0, 1]).predict([[1.0, 2.0]]), "fitted with 1"),
        (lambda: Ridge(alpha=-1), "alpha"),
        (lambda: Ridge().fit([[1.0], [2.0]], [math.inf, 0]), "infinite"),
        (lambda: Ridge().fit(["a"], [1.0]), "numbers"),
    ],
)
def test_wrong_arguments_of_frozen_heads_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
