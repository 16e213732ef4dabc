"""Views, pages and pictures of `wordpiece_bert.inspect`, hostile texts, and the command."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from inspect_fixtures import VOCAB, blanks, folders, reviews, some_attention, tok
from page_reader import decoded
from wordpiece_bert import inspect
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.packed_page import page_file

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.inspect import View
    from wordpiece_bert.tasks import Loaded


HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ]]> & \" ' `${1}` \u2028 \u202e"


def all_views(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer, text: str = "the film is [MASK]") -> list[View]:
    trace = inspect.trace(blanks, text)
    vectors = np.eye(3, 8, dtype=np.float32)
    return [
        inspect.tokens(tok, text, "the cafe", beside=blanks.tokenizer),
        inspect.attention(trace),
        inspect.attention(trace, layer=0, head=0, token=1),
        inspect.neurons(trace),
        inspect.patterns(trace),
        inspect.predictions(blanks, text),
        inspect.logit_lens(blanks, text),
        inspect.saliency(reviews, text),
        inspect.saliency(reviews, text, method="gradient"),
        inspect.saliency(reviews, text, method="integrated_gradients"),
        inspect.similarity(vectors, [text, "b", "c"]),
        inspect.token_similarity(trace, trace),
        inspect.embedding_map(vectors, [text, "b", "c"], groups=["x", text, "x"]),
        inspect.positions(blanks.model),
    ]


def test_every_view_has_every_format(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer, tmp_path: Path) -> None:
    for number, view in enumerate(all_views(reviews, blanks, tok)):
        svg = view.save(tmp_path / f"{number}.svg").read_text(encoding="utf-8")
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert view.save(tmp_path / f"{number}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        values = json.loads(view.save(tmp_path / f"{number}.json").read_text(encoding="utf-8"))
        assert set(values) == {"kind", "title", "data", "arrays"}
        for name, array in view.arrays.items():
            np.testing.assert_array_equal(np.array(values["arrays"][name], np.float32), array)
        assert view.save(tmp_path / f"{number}.html").stat().st_size > 10_000
        shown = view._repr_html_()
        assert "<svg" in shown
        assert "<script" not in shown
        assert 'sandbox="allow-scripts allow-downloads allow-modals"' in view.frame()._repr_html_()


def test_the_page_allows_nothing_remote(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer) -> None:
    page = inspect.page(*all_views(reviews, blanks, tok)).to_html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["script-src"])
    assert rules["img-src"] == "data:"
    without_names = page.replace("http://www.w3.org/2000/svg", "")  # the name of a format, which nobody fetches
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", without_names)


def test_hostile_texts_stay_texts(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer) -> None:
    names = [HOSTILE, "</title>", "\x00\x1f", "a" * 1000]
    view = inspect.attention(some_attention(4), names, layer=0, token=0, title=HOSTILE)
    others = all_views(reviews, blanks, tok, f"the film {HOSTILE} is")
    page = inspect.page(view, *others, title=HOSTILE).to_html()
    # One script that runs, one of content and one for each part; nothing of the texts is markup.
    scripts = re.findall(r"<script[^>]*>", page)
    assert all(
        one in {"<script>", '<script type="application/json" id="content">'} or "text/plain" in one for one in scripts
    )
    assert scripts.count("<script>") == 1
    assert "<img" not in page
    assert "<!--" not in page
    content, _ = decoded(page)
    assert content["title"] == HOSTILE
    assert content["views"][0]["data"]["tokens"] == names
    for one in [view, *others]:
        ET.fromstring(one.to_svg())
        assert "<img" not in one._repr_html_()
        frame, script = one.frame()._repr_html_().split("<script>")
        assert script.removesuffix("</script>") == page_file("frame.js")
        assert frame.count("<") == frame.count(">") == 2


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_any_tokens_survive(names: list[str]) -> None:
    view = inspect.attention(some_attention(len(names)), names, layer=0)
    content, _ = decoded(view.to_html())
    assert content["views"][0]["data"]["tokens"] == names
    ET.fromstring(view.to_svg())


#: Texts of any characters of Python, lone surrogates among them.
ANY_TEXT = st.text(st.characters(), max_size=8)


@given(st.lists(ANY_TEXT, min_size=2, max_size=2), ANY_TEXT)
def test_every_format_takes_any_text(names: list[str], title: str) -> None:
    view = inspect.similarity(np.eye(2), names, title=title)
    page = inspect.page(view, title=title)
    for text in (view.to_html(), view.to_svg(), view._repr_html_(), page.to_html(), page._repr_html_()):
        text.encode("utf-8")
    # JSON has no half of a pair alone, but an escape for it; two escapes that follow each other are one character.
    joined = [text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for text in (title, *names)]
    for text in (view.to_json(), page.to_json()):
        values = json.loads(text.encode("utf-8"))
        values = values if "kind" in values else values["views"][0]
        assert [values["title"], *values["data"]["rows"]] == joined
    content, _ = decoded(page.to_html())
    assert content["views"][0]["data"]["rows"] == joined[1:]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"a"])
def test_values_that_json_lacks_are_refused(value: Any) -> None:
    view = inspect.View("similarity", "", {"rows": ["a"], "columns": ["a"], "value": value}, {"similarity": np.eye(1)})
    for written in (view.to_json, view.to_html, inspect.page(view).to_json):
        with pytest.raises(InputError, match="must be values of JSON"):
            written()


def test_files_and_pages_are_checked(tmp_path: Path) -> None:
    view = inspect.similarity(np.eye(2), ["a", "b"])
    with pytest.raises(InputError, match=r"must end in one of \.html"):
        view.save(tmp_path / "view.pdf")
    with pytest.raises(InputError, match=r"must end in one of \.html, \.json"):
        inspect.page(view).save(tmp_path / "page.svg")
    with pytest.raises(InputError, match="at least one view"):
        inspect.page()
    with pytest.raises(InputError, match=r"views\[0\]"):
        inspect.page("view")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_png_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"wordpiece-bert\[plot\]"):
        inspect.similarity(np.eye(2), ["a", "b"]).save(tmp_path / "view.png")


def test_encodings_and_batches_show_themselves(tok: wb.Tokenizer) -> None:
    shown = tok.encode("the cafe")._repr_html_()
    assert "<td>cafe</td><td>10</td><td>4–8</td>" in shown
    wild = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "<", "b", ">"]).encode("<b>")._repr_html_()
    assert "<td>&lt;</td>" in wild
    assert "<b>" not in wild
    batch = tok.encode_batch(["the cafe"] * 12)
    assert "first 10 rows" in batch._repr_html_()
    assert "2 × 4" in tok(["the cafe", "the"], padding=True)._repr_html_()
    assert "list" in tok(["the cafe", "the"], return_tensors=None)._repr_html_()
    long = tok.encode("the " * 500)._repr_html_()
    assert "the first 100" in long


def test_command_writes_a_page(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["inspect", "[MASK] is the capital of france", "-m", str(folders / "words"), "-o", str(out)]) == 0
    content, _ = decoded(out.read_text(encoding="utf-8"))
    kinds = [view["kind"] for view in content["views"]]
    assert kinds == ["tokens", "attention", "neurons", "patterns", "predictions", "lens", "saliency", "positions"]
    assert "tokens, attention, neurons" in capsys.readouterr().err
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(VOCAB), encoding="utf-8")
    assert (
        main(["inspect", "the cafe", "-m", str(vocab), "--beside", str(folders / "reviews"), "-o", str(out), "-q"]) == 0
    )
    content, _ = decoded(out.read_text(encoding="utf-8"))
    assert [len(view["data"]["tokenizers"]) for view in content["views"]] == [2]


@pytest.mark.parametrize("length", [4, 6, 1000])
def test_command_cuts_every_view_at_the_same_length(folders: Path, tmp_path: Path, length: int) -> None:
    """Every view of a text has the tokens of the trace, also the views of another model."""
    out, text = tmp_path / "page.html", "the capital of france is a wonderful city of the film"
    for name in ("words", "reviews"):
        command = ["inspect", text, "-m", str(folders / name), "-o", str(out), "--max-length", str(length), "-q"]
        assert main(command) == 0
        content, _ = decoded(out.read_text(encoding="utf-8"))
        shown = {view["kind"]: view["data"].get("tokens") for view in content["views"]}
        del shown["positions"]
        shown["patterns"] = shown["attention"]  # it has no tokens
        shown["tokens"] = [row["token"] for row in content["views"][0]["data"]["tokenizers"][0]["tokens"]]
        assert set(shown) >= ({"predictions", "lens"} if name == "words" else {"saliency"})
        expected = inspect.trace(folders / name, text, max_length=length).tokens
        assert len(expected) == min(length, 13)
        assert all(tokens == expected for tokens in shown.values())


def test_command_chooses_the_method_of_saliency(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    command = ["inspect", "a dull film", "-o", str(out), "--views", "saliency"]
    for chosen in ([], ["--saliency", "input_x_gradient"]):
        assert main([*command, "-m", str(folders / "reviews"), *chosen]) == 0
        content, _ = decoded(out.read_text(encoding="utf-8"))
        assert [view["data"]["method"] for view in content["views"]] == [chosen[-1] if chosen else "occlusion"]
    capsys.readouterr()
    chosen = ["--views", "tokens", "--saliency", "gradient"]
    assert main(["inspect", "a", "-m", str(folders / "words"), "-o", str(out), *chosen]) == 2
    assert "no view saliency" in capsys.readouterr().err


def test_command_refuses_views_that_the_model_lacks(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["-o", str(tmp_path / "page.html")]
    assert main(["inspect", "a", "-m", str(folders / "reviews"), "--views", "lens", *out]) == 2
    assert "does not allow lens" in capsys.readouterr().err
    assert main(["inspect", "a", "-m", str(folders / "reviews"), "--views", "nothing", *out]) == 2
    assert "not one of tokens" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
