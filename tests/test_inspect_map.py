"""Maps: projections, exact neighbours, and the share of them that a map keeps."""

from __future__ import annotations

import numpy as np
import pytest

from wordpiece_bert import inspect
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect import maps, projections
from wordpiece_bert.inspect.colours import group_mark


def sentences(count: int, groups: int = 5, width: int = 24) -> np.ndarray:
    """Vectors in groups, as vectors of sentences are."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(groups, width))
    return (centres[np.arange(count) % groups] * 2 + rng.normal(size=(count, width))).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"text {i}" for i in range(count)]


def test_a_sample_of_many_texts_has_exact_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sentences(60)
    every = inspect.embedding_map(x, names(60), neighbours=4)
    assert every.data["sampled"] is None
    monkeypatch.setattr(maps, "MOST_EXACT", 30)
    some = inspect.embedding_map(x, names(60), neighbours=4)
    assert some.data["sampled"] == 15  # 15 · 60 pairs are 30 · 30
    asked = np.arange(0, 60, 4)
    for name, other in (("neighbours", -1), ("similarities", 0), ("kept", -1)):
        np.testing.assert_array_equal(some.arrays[name][asked], every.arrays[name][asked])
        assert (np.delete(some.arrays[name], asked, axis=0) == other).all()
    assert some.data["kept"] == pytest.approx(every.arrays["kept"][asked].mean())
    np.testing.assert_array_equal(some.arrays["points"], every.arrays["points"])
    assert "nearest points, in a sample of 15 texts." in some.to_svg()
    assert "nearest points." in every.to_svg()
    monkeypatch.setattr(maps, "MOST_EXACT", 3)
    assert inspect.embedding_map(x, names(60)).data["sampled"] == 1


def test_the_map_keeps_the_directions_of_largest_variance() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 6)) * [9, 4, 0.1, 0.1, 0.1, 0.1]
    view = inspect.embedding_map(x, names(60))
    points, centred = view.arrays["points"], x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(points), np.abs(centred @ axes[:2].T), atol=1e-3)
    assert sum(view.data["explained"]) > 0.99
    custom = inspect.embedding_map(x, names(60), method=lambda v: v[:, :2])
    np.testing.assert_allclose(custom.arrays["points"], x[:, :2], rtol=1e-6)
    assert custom.data["method"] == "<lambda>"
    with pytest.raises(InputError, match="method must be"):
        inspect.embedding_map(x, ["a"] * 60, method="no such")
    with pytest.raises(InputError, match="points in the plane"):
        inspect.embedding_map(x, ["a"] * 60, method=lambda v: v[:, :3])


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_neighbours_are_exact_and_the_kept_share_is_counted(method: str) -> None:
    x = sentences(80)
    view = inspect.embedding_map(x, names(80), method=method, neighbours=7)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T - 9 * np.eye(80)
    order = np.argsort(-cosines, axis=1)[:, :7]
    np.testing.assert_array_equal(view.arrays["neighbours"], order)
    np.testing.assert_allclose(view.arrays["similarities"], np.take_along_axis(cosines, order, axis=1), atol=1e-6)
    points = view.arrays["points"].astype(np.float64)
    distances = np.linalg.norm(points[:, None] - points, axis=-1) + np.diag(np.full(80, np.inf))
    near = np.argsort(distances, axis=1)[:, :7]
    kept = [len(set(a) & set(b)) / 7 for a, b in zip(order, near, strict=True)]
    np.testing.assert_allclose(view.arrays["kept"], kept, atol=1e-6)
    assert view.data["kept"] == pytest.approx(np.mean(kept))
    assert view.data["neighbours"] == 7


def test_equal_vectors_are_neighbours_of_each_other_and_never_of_themselves() -> None:
    x = np.repeat(np.eye(2, 5, dtype=np.float32), [14, 3], axis=0)
    found = inspect.embedding_map(x, names(17)).arrays["neighbours"]
    assert found.shape == (17, 10)
    for i, row in enumerate(found.tolist()):
        assert i not in row
        assert len(set(row)) == 10
        assert all(j < 14 for j in row) or i >= 14
    assert set(found[15, :2].tolist()) == {14, 16}


@pytest.mark.parametrize("scale", [1e-18, 1e15])
def test_tiny_and_huge_planes_are_compared_as_exactly(scale: float) -> None:
    x = sentences(40, width=2)
    of = [inspect.embedding_map(x, names(40), method=lambda v, s=s: v * s).arrays["kept"] for s in (1, scale)]
    np.testing.assert_array_equal(of[0], of[1])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_small_maps(count: int) -> None:
    view = inspect.embedding_map(np.ones((count, 4)), ["x"] * count)
    assert view.arrays["points"].shape == (count, 2)
    assert view.arrays["neighbours"].shape == (count, max(count - 1, 0))
    assert view.data["kept"] == (1.0 if count == 2 else None)
    assert "<svg" in view.to_svg()
    assert view.to_html()
    assert inspect.embedding_map(np.ones((count, 0)), ["x"] * count).data["kept"] is None


def test_numbers_by_name() -> None:
    x = sentences(4)
    assert inspect.embedding_map(x, names(4), numbers=[1, 2, 3, 1900.5]).data["numbers"] == {
        "number": [1, 2, 3, 1900.5]
    }
    view = inspect.embedding_map(x, names(4), numbers={"year": np.arange(4), "length": [0.1] * 4})
    assert view.data["numbers"] == {"year": [0, 1, 2, 3], "length": [0.1] * 4}
    assert view.to_svg().count("<circle") == 4
    for wrong in ([1, 2], [1, 2, 3, np.nan], ["a", "b", "c", "d"], [[1, 2, 3, 4]]):
        with pytest.raises(InputError, match="numbers"):
            inspect.embedding_map(x, names(4), numbers=wrong)
    for count in (0, 1.5):
        with pytest.raises(InputError, match="neighbours must be"):
            inspect.embedding_map(x, names(4), neighbours=count)  # type: ignore[arg-type]


def test_48_groups_look_different() -> None:
    looks = [group_mark(i) for i in range(48)]
    assert len({(colour, tuple(shape)) for colour, shape in looks}) == 48
    view = inspect.embedding_map(sentences(60), names(60), groups=[f"group {i % 45:02}" for i in range(60)])
    picture = view.to_svg()
    assert "group 39<" in picture
    assert "and 5 more groups" in picture


def test_tsne_keeps_more_neighbours_than_principal_components() -> None:
    x = sentences(200, groups=12)
    kept = {method: inspect.embedding_map(x, names(200), method=method).data["kept"] for method in ("pca", "tsne")}
    assert kept["tsne"] > kept["pca"] + 0.1


def test_the_attractions_of_tsne_have_the_perplexity_and_its_gradient_is_that_of_the_divergence() -> None:
    x = sentences(50)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    p = projections._attractions(x).astype(np.float64)
    assert p.sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(p, p.T)
    # The rows before they are made symmetric, from the widths that scikit-learn finds.
    manifold = pytest.importorskip("sklearn.manifold._utils")
    distances = np.maximum(2 - 2 * x @ x.T, 0).astype(np.float32)
    rows = manifold._binary_search_perplexity(distances, 49 / 3, 0)
    np.testing.assert_allclose(p, (rows + rows.T) / 100, atol=2e-6)

    def divergence(points: np.ndarray) -> float:
        near = 1 / (1 + ((points[:, None] - points) ** 2).sum(axis=-1))
        np.fill_diagonal(near, 0)
        q = near / near.sum()
        mask = p > 0
        return float((p[mask] * np.log(p[mask] / q[mask])).sum())

    points = np.random.default_rng(1).normal(size=(50, 2))
    gradient = projections._gradient(points.astype(np.float32), p.astype(np.float32), 1.0)
    for i, axis in ((0, 0), (7, 1), (49, 0)):
        step = np.zeros_like(points)
        step[i, axis] = 1e-5
        expected = (divergence(points + step) - divergence(points - step)) / 2e-5
        assert gradient[i, axis] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_many_texts_are_left_to_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(projections, "MOST_EXACT", 99)
    view = inspect.embedding_map(sentences(100), names(100), method="tsne")
    assert view.data["kept"] > 0.3


@pytest.mark.parametrize("method", ["umap", "tsne"])
@pytest.mark.filterwarnings("ignore::ImportWarning", "ignore::DeprecationWarning")
def test_maps_by_neighbours_separate_groups(method: str) -> None:
    if method == "umap":
        pytest.importorskip("umap", reason="method='umap' needs umap", exc_type=ImportError)
    rng = np.random.default_rng(0)
    groups = [str(i % 3) for i in range(60)]
    vectors = rng.normal(size=(60, 8)) + 20 * np.eye(3, 8)[[int(group) for group in groups]]
    view = inspect.embedding_map(vectors, names(60), groups=groups, method=method)
    points = view.arrays["points"]
    assert points.shape == (60, 2)
    assert view.data["method"] == method
    # A text's nearest neighbour in the plane is of its group, and a second map is the same.
    distances = np.linalg.norm(points[:, None] - points, axis=-1) + np.diag(np.full(60, np.inf))
    assert all(groups[i] == groups[j] for i, j in enumerate(distances.argmin(axis=1)))
    again = inspect.embedding_map(vectors, names(60), method=method)
    np.testing.assert_array_equal(again.arrays["points"], points)
    assert inspect.embedding_map(vectors[:4], list("abcd"), method=method).arrays["points"].shape == (4, 2)
    assert np.isfinite(inspect.embedding_map(np.ones((5, 3)), list("abcde"), method=method).arrays["points"]).all()
    with pytest.raises(InputError, match=f"method='{method}' needs at least 4 texts, not 3; 'pca' takes any number"):
        inspect.embedding_map(vectors[:3], list("abc"), method=method)
