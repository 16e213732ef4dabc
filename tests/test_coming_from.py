"""The tables of the pages for those who come from another library: each line of both columns is run.

A row's columns are their code and ours; code stands in backticks, what else is said does not. Ours is run everywhere, theirs
where their library is installed, and the results are compared where they can be.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import make_models
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "coming-from"

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

SAMPLE = "Alan Turing lived in London, a great city."
#: The names that the lines of all pages use.
COMMON = """
from pathlib import Path
texts = ["She baked bread.", "The capital of Poland"]
query = "bread"
ids = [2, 48, 51, 3]
files = ["examples/texts/sentences.txt"]
folder = "saved"
"""
OURS = "import wordpiece_bert as wb\nfrom wordpiece_bert import bert, finetune, tasks\n"


@dataclass
class Page:
    """What the lines of a page need besides the names of `COMMON`, and which results are not compared."""

    #: The package that their lines need.
    package: str
    #: Code before each of our lines, and before each of theirs.
    ours: str
    theirs: str = ""
    #: Code before the lines of a row, by a part of our line: before both, and before ours or theirs alone.
    both_of: dict[str, str] = field(default_factory=dict)
    ours_of: dict[str, str] = field(default_factory=dict)
    theirs_of: dict[str, str] = field(default_factory=dict)
    #: By a part of our line, why the results of a row are not compared.
    different: dict[str, str] = field(default_factory=dict)


NAMES = {
    "SparseEncoder": 'name = "models/splade"',
    "MultiVectorEncoder": 'name = "models/colbert"',
    "CrossEncoder": 'name = "models/ranker"',
}
PAGE = {
    "tokenizers": Page(
        "tokenizers",
        'tok = wb.Tokenizer.from_file("tokenizer.json")\ntext = Path("tokenizer.json").read_text()',
        "from tokenizers import Tokenizer, BertWordPieceTokenizer\nfrom tokenizers.trainers import WordPieceTrainer\n"
        'tok = Tokenizer.from_file("tokenizer.json")\ntext = Path("tokenizer.json").read_text()',
        different={"train_vocab": "their trainer is given no special tokens here; compared in test_training.py"},
    ),
    "transformers": Page(
        "transformers",
        'name, text = "models/reviews", "A wonderful film!"\ntok = wb.Tokenizer.from_pretrained(name)\n'
        "rows = [[2, 48, 51, 3]]",
        'name, text = "models/reviews", "A wonderful film!"\nfrom transformers import AutoTokenizer\n'
        "tok = AutoTokenizer.from_pretrained(name)\nrows = [[2, 48, 51, 3]]",
        both_of={
            "fill_mask": 'name, text = "models/words", "The capital of France is [MASK]."',
            "ner": 'name, text = "models/entities", "Ada Lovelace lived in London"',
            "Trainer": 'rows = [{"input_ids": [2, 7, 3], "labels": 1}]',
        },
        ours_of={
            "model(": "model = bert.AutoModel.from_pretrained(name)\ninputs = tok(texts, padding=True)",
            "Trainer": "model = bert.AutoModel.from_pretrained(name)",
        },
        theirs_of={
            "model(": "import torch\nfrom transformers import AutoModelForSequenceClassification as AutoModel\n"
            'model = AutoModel.from_pretrained(name)\ninputs = tok(texts, padding=True, return_tensors="pt")',
            "AutoModel": "import torch\nfrom transformers import AutoModel",
            "tasks": "import torch\nfrom transformers import pipeline",
        },
        different={
            "Trainer": "objects; compared in test_finetune_torch.py",
            "fill_mask(": "the words after the first have equal scores here; compared in test_torch_programs.py",
            "ner(": "the same entities, with the type of their scores; compared in test_torch_programs.py",
        },
    ),
    "sentence-transformers": Page(
        "sentence_transformers",
        'name = "models/sentences"\nmodel = wb.SentenceEncoder(name)\na = b = model.encode(texts)',
        "from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder\n"
        'name = "models/sentences"\nmodel = SentenceTransformer(name)\na = b = model.encode(texts)',
        both_of=NAMES,
        ours_of={
            "SentenceTrainer": "from wordpiece_bert.finetune.losses import CoSENTLoss\nloss = CoSENTLoss()\n"
            'args = finetune.TrainingArguments("out")\nrows = [{"a": "bread", "b": "dough", "label": 1.0}]',
        },
        different={
            "SentenceTrainer": "objects; compared in test_finetune_torch.py",
            'precision="int8"': "components that are equal in both texts have no range; see test_peer_snippets.py",
        },
    ),
    "fastembed": Page("fastembed", 'name = "models/sentences"\nmodel = wb.SentenceEncoder(name)', both_of=NAMES),
    "model2vec": Page(
        "model2vec",
        'folder, name = "models/static", "models/sentences"\nmodel = wb.SentenceEncoder(folder)',
        "from model2vec import StaticModel\n"
        'folder, name = "models/static", "models/sentences"\nmodel = StaticModel.from_pretrained(folder)',
        both_of={"save_pretrained": 'folder = "saved"'},
        different={"distill_static": "principal components have no sign; compared in test_distill.py"},
    ),
    "tensorflow-text": Page(
        "tensorflow_text",
        'tok = wb.Tokenizer.from_vocab("vocab.txt")\nvocab = Path("vocab.txt").read_text().split()\n'
        "batch = tok.encode_batch(texts)",
    ),
}


class Row(NamedTuple):
    """A row of a table: the code of both columns."""

    page: str
    theirs: list[str]
    ours: list[str]

    @property
    def line(self) -> str:
        return "; ".join(self.ours)


def rows(name: str) -> list[Row]:
    """The rows of the first table of a page."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    table = re.search(r"^\|.*\|\n\|[-|]+\|\n((?:\|.*\|\n)+)", text, re.MULTILINE)
    assert table, name
    found = []
    for line in table[1].splitlines():
        theirs, ours = (re.findall(r"`([^`]+)`", cell) for cell in re.split(r" \| ", line.strip("| ")))
        same = " | the same" in line
        found.append(Row(name, theirs, [", ".join(theirs)] if same else [part for part in ours if is_code(part)]))
    return found


def is_code(part: str) -> bool:
    """Whether backticks hold a statement, and not only the name of a class or an argument."""
    return bool(re.search(r"[(.]", part)) or "import" in part


ROWS = [row for name in PAGE for row in rows(name)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models.make_all(tmp_path_factory.mktemp("made") / "models")


@pytest.fixture
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the models and texts of the examples, a vocabulary and a file of a tokenizer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(models)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("vocab.txt", "tokenizer.json"):
        (tmp_path / name).write_bytes((models / "reviews" / name).read_bytes())


def chosen(table: dict[str, str], line: str) -> str:
    """The value of the first part that a line has; empty if it has none."""
    return next((value for part, value in table.items() if part in line), "")


def installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def value_of(code: str, session: dict[str, Any]) -> Any:
    """Run statements; gives the value of the last one, None if it has none."""
    *first, last = ast.parse(code).body
    exec(compile(ast.Module(first, []), "line", "exec"), session)
    if not isinstance(last, ast.Expr):
        return exec(compile(ast.Module([last], []), "line", "exec"), session)
    return eval(compile(ast.Expression(last.value), "line", "eval"), session)


def result_of(row: Row, code: str, before: str) -> Any:
    """Run a line after others; where ours makes another tokenizer, and theirs changes it, gives the tokenizer."""
    session: dict[str, Any] = {}
    exec(f"{COMMON}\n{before}", session)
    value = value_of(code, session)
    return comparable(session["tok"] if row.line.startswith("tok = ") else value)


def comparable(value: Any) -> Any:
    """Numbers and strings for what a line returns; None for an object that cannot be compared."""
    kind = type(value).__name__
    if kind.endswith(("Tokenizer", "TokenizerFast", "TokenizersBackend")):
        if hasattr(value, "encode_batch"):
            return [one.ids for one in map(value.encode, (SAMPLE, "bread"))]
        return [value(text)["input_ids"] for text in (SAMPLE, "bread")]
    if hasattr(value, "last_hidden_state"):
        return comparable(value.last_hidden_state)
    if hasattr(value, "logits"):
        return comparable(value.logits)
    if hasattr(value, "input_ids"):
        return comparable(value["input_ids"])
    if hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(value, "ids"):
        return list(value.ids)
    if hasattr(value, "detach"):
        return value.detach().numpy().tolist()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    return value if isinstance(value, str | int | float) else None


def near(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return all(near(a[name], b[name]) for name in a.keys() & b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return a == pytest.approx(b, abs=1e-4)
    return bool(a == b)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.page}: {row.line}")
def test_lines_run_and_give_what_theirs_give(row: Row) -> None:
    page = PAGE[row.page]
    assert row.ours, f"{row.page}: no code for {row.theirs}"
    both = chosen(page.both_of, row.line)
    before = "\n".join((OURS, page.ours, both, chosen(page.ours_of, row.line)))
    found = [result_of(row, line, before) for line in row.ours]
    if chosen(page.different, row.line):
        return
    before = "\n".join((page.theirs, both, chosen(page.theirs_of, row.line)))
    if not page.theirs or not installed(page.package, *re.findall(r"^import (\w+)$", before, re.MULTILINE)):
        return
    same = row.ours == [", ".join(row.theirs)]
    expected = result_of(row, row.ours[0] if same else "\n".join(row.theirs), before)
    if found[0] is not None and expected is not None:
        assert near(found[0], expected), (found[0], expected)


def test_values_are_compared() -> None:
    assert near([1, {"a": 0.5, "b": 1}], [1, {"a": 0.50001, "c": 2}])
    for other in ([1, {"a": 0.51}], [2, {"a": 0.5}], [1], "1"):
        assert not near([1, {"a": 0.5}], other)


def test_every_page_has_a_table() -> None:
    assert set(PAGE) == {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert len(ROWS) > 40
