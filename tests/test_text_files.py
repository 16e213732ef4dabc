"""Files and folders as documents: `embed --whole` into a folder of vectors, and the part of a file that `search` prints."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wordpiece_bert import SentenceEncoder, open_vectors, write_vectors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.vectors.passages import PASSAGE_TOKENS, best_passages

pytest.importorskip("pyarrow")

FILLER = "The actors in the film was a wonderful story. "
FILES = {
    "docs/a.md": FILLER * 12 + "To bake bread in the oven. " + FILLER * 12,
    "docs/deep/er/b.md": "To repair a bicycle tire.",
    "docs/deep/c.txt": "Flour and water.",
    "docs/empty.md": "",
}

VECTORS = [
    "docs/old/vectors.json",
    "docs/old/part-000000.parquet",
    "docs/new/part-000000.parquet",
    "docs/new/.unfinished/x",
]


@pytest.fixture(autouse=True)
def desk(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").symlink_to(models)
    for name, text in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for name in ("docs/.hidden.md", "docs/.git/config", "docs/old.vectors/vectors.json", *VECTORS):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("not a document")


def embed(*given: str, output: str = "docs.vectors") -> None:
    model = [] if "--update" in given else ["-m", "models/static"]
    assert main(["embed", *given, "--whole", "-o", output, *model, "-q"]) == 0


def ids(folder: str = "docs.vectors") -> list[str]:
    return list(dict.fromkeys(open_vectors(folder).ids()))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["docs"], ["docs/a.md", "docs/empty.md", "docs/deep/c.txt", "docs/deep/er/b.md"]),
        (["docs/**/*.md"], ["docs/a.md", "docs/deep/er/b.md", "docs/empty.md"]),
        (["docs/deep/*"], ["docs/deep/c.txt"]),
        (["./docs/deep/c.txt", "docs//deep", "docs/a.md"], ["docs/deep/c.txt", "docs/deep/er/b.md", "docs/a.md"]),
    ],
)
def test_files_folders_and_patterns_have_their_paths_as_ids(given: Sequence[str], expected: list[str]) -> None:
    embed(*given)
    assert ids() == expected


def test_a_hit_is_the_chunk_that_fits_and_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    embed("docs", "--chunk-tokens", "12")
    hit: Any = open_vectors("docs.vectors").search("bake bread in the oven", top_k=1)[0]
    assert (hit["id"], hit["text"]) == ("docs/a.md", "To bake bread in the oven.")
    assert FILES["docs/a.md"][hit["start"] : hit["end"]] == hit["text"]
    assert main(["search", "docs.vectors", "--query", "bake bread in the oven", "-k", "1"]) == 0
    assert capsys.readouterr().out.endswith("text=To bake bread in the oven.\n\n")


def test_chunks_are_sentences_as_long_as_the_model_takes_unless_the_command_says_otherwise() -> None:
    embed("docs/a.md")
    rows = open_vectors("docs.vectors").search("a", top_k=9)
    assert len(rows) > 1
    assert all(str(row["text"]).endswith(".") for row in rows)
    embed("docs/a.md", "--chunk-tokens", "all", "--keep", "", output="whole.vectors")
    assert len(open_vectors("whole.vectors")) == 1
    assert open_vectors("whole.vectors").columns == ()


def test_an_update_embeds_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    embed("docs")
    Path("docs/deep/c.txt").write_text("A wheel.")
    Path("docs/empty.md").unlink()
    embed("docs", "--update", "--prune", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["new"], facts["changed"], facts["unchanged"], facts["pruned"]) == (0, 1, 2, 1)
    assert "docs/empty.md" not in ids()


def test_an_update_has_the_chunks_of_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for update in ([], ["--update"]):
        embed("docs", "--chunk-tokens", "12", *update)
    for others in (["--chunk-tokens", "all"], ["--chunk-by", "tokens"]):
        assert main(["embed", "docs", "--whole", "--update", "-o", "docs.vectors", *others]) == 2
        assert "chunks of at most 12 tokens, made of sentences" in capsys.readouterr().err


def test_the_library_takes_them_too_and_counts_what_is_left_out() -> None:
    Path("docs/picture.png").write_bytes(b"\x89PNG\xff\xfe")
    Path("docs/packed.md.gz").write_bytes(gzip.compress(b"bread"))
    with pytest.raises(InputError, match=r"docs/picture\.png"):
        write_vectors("docs", "docs.vectors", "models/static", whole=True)
    found = write_vectors(["docs"], "docs.vectors", "models/static", whole=True, errors="skip", keep=["text"])
    assert [*found.skipped] == ["docs/picture.png"]
    assert found.rows == found.plan.new == len(FILES) + 1
    hits = open_vectors("docs.vectors").search("bread", top_k=1)
    assert (hits[0]["id"], hits[0]["text"]) == ("docs/packed.md.gz", "bread")


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8")
def test_a_path_that_is_not_utf8_is_named() -> None:
    name = os.fsdecode(b"docs/\xff.txt")
    Path(name).write_text("a cat")
    with pytest.raises(InputError, match=r"'docs/\\udcff\.txt': the path, .* is not UTF-8"):
        write_vectors("docs", "docs.vectors", "models/static", whole=True)
    found = write_vectors("docs", "docs.vectors", "models/static", whole=True, errors="skip")
    assert (found.rows, [*found.skipped]) == (len(FILES), [name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["docs"], "docs: is no table; give --whole"),
        (["docs/a.md"], "docs/a.md: is no table; give --whole"),
        (["docs", "--whole", "--id-column", "x"], "leave out --text-column and --id-column"),
        (["none/*.md", "--whole"], "none/*.md: there is no file"),
        (["none.md", "--whole"], "none.md"),
    ],
)
def test_mistakes_are_named(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", *options, "-o", "docs.vectors", "-m", "models/static"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("docs.vectors").exists()


@pytest.mark.parametrize("model", ["static", "splade", "colbert"])
def test_search_prints_the_part_of_a_file_that_fits(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("docs/a.md").write_text(FILLER * 3 + "To bake bread in the oven. " * 6 + FILLER * 6)
    asked = [
        "search",
        "docs/a.md",
        "docs/deep/c.txt",
        "--whole",
        "-m",
        f"models/{model}",
        "--query",
        "bake bread",
        "-q",
    ]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = next(line for line in lines if "a.md" in line)
    assert "To bake bread in the oven." in shown
    assert len(shown) < 500
    assert main([*asked, "--json"]) == 0
    hits = {hit["location"]: hit for hit in json.loads(capsys.readouterr().out)["hits"]}
    hit = next(hit for location, hit in hits.items() if "a.md" in location)
    assert hit["text"] == Path("docs/a.md").read_text()
    assert hit["text"][hit["start"] : hit["end"]] == hit["passage"]
    assert all("passage" not in hit for location, hit in hits.items() if "c.txt" in location)


def test_a_folder_without_chunks_shows_the_part_too(capsys: pytest.CaptureFixture[str]) -> None:
    embed("docs/a.md", "--chunk-tokens", "all")
    assert main(["search", "docs.vectors", "--query", "bake bread in the oven"]) == 0
    out = capsys.readouterr().out
    assert "passage=" in out
    assert "text=" not in out
    assert "To bake bread in the oven." in out


def test_the_best_passage_is_that_of_the_most_similar_vector() -> None:
    encoder = SentenceEncoder("models/static")
    texts = [FILES["docs/a.md"], "bread", ""]
    (start, end), *others = best_passages(encoder, "bake bread in the oven", texts)
    assert others == [(0, 5), (0, 0)]
    assert "To bake bread in the oven." in texts[0][start:end]
    assert len(encoder.tokenizer.encode(texts[0][start:end], add_special_tokens=False).ids) <= PASSAGE_TOKENS


def test_a_passage_beyond_what_the_model_reads_counts_where_words_have_found_the_text() -> None:
    encoder = SentenceEncoder("models/sentences")
    text = FILLER * 40 + "To bake bread in the oven. " * 5
    read, entire = (best_passages(encoder, "bake bread", [text], entire=entire)[0] for entire in (False, True))
    assert "bread" not in text[slice(*read)]
    assert "To bake bread in the oven." in text[slice(*entire)]
