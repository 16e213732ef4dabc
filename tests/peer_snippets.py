"""The cases of tests/data/peers/sentence_transformers.toml: run by sentence-transformers, by this package, and as a table.

For this package only the imports of a case are changed, unless it says what else. The results of sentence-transformers are
recorded beside the cases, so that they are compared where it is not installed, too.

Usage, in the root of the repository: ``python tests/peer_snippets.py --table`` writes the table into
docs/coming-from/sentence-transformers.md; ``--record``, where sentence-transformers is installed, writes its results.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "data" / "peers" / "sentence_transformers.toml"
RECORDED = CASES.with_suffix(".json")
PAGE = ROOT / "docs" / "coming-from" / "sentence-transformers.md"
BEGIN, END = "<!-- table of calls: python tests/peer_snippets.py --table -->", "<!-- end of the table -->"

#: Where each name is that sentence-transformers has, and what it is called there if the name differs.
MODULES = {
    "SentenceTransformer": "from wordpiece_bert import SentenceEncoder as SentenceTransformer",
    "SimilarityFunction": "from wordpiece_bert.util import SimilarityFunction",
}
#: The modules that the others correspond to.
FROM = {
    "sentence_transformers": "wordpiece_bert",
    "sentence_transformers.util": "wordpiece_bert.util",
    "sentence_transformers.quantization": "wordpiece_bert.util",
    "sentence_transformers.sentence_transformer.evaluation": "wordpiece_bert.evaluation",
}


class Case(NamedTuple):
    """A case of the file."""

    page: str
    yours: str
    code: str
    ours: str = "the same"
    changed: str = ""
    reason: str = ""
    refused: str = ""
    #: Whether the code needs PyTorch on both sides, and other packages on theirs.
    tensors: bool = False
    packages: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name of the case in the file of results."""
        return f"{self.page}: {self.yours}"

    @property
    def own_code(self) -> str:
        """The code for this package."""
        return self.changed or with_own_imports(self.code)


def cases() -> list[Case]:
    with CASES.open("rb") as file:
        return [Case(**{**one, "packages": tuple(one.get("packages", ()))}) for one in tomllib.load(file)["case"]]


def with_own_imports(code: str) -> str:
    """Change the imports of sentence-transformers to imports of this package, and nothing else."""

    def changed(found: re.Match[str]) -> str:
        names = [name.strip() for name in found[2].split(",")]
        plain = [name for name in names if name not in MODULES]
        lines = [MODULES[name] for name in names if name in MODULES]
        return "\n".join([*lines, *([f"from {FROM[found[1]]} import {', '.join(plain)}"] if plain else [])])

    return re.sub(r"^from (sentence_transformers[\w.]*) import (.+)$", changed, code, flags=re.MULTILINE)


def make_models(folder: Path) -> dict[str, str]:
    """Return the folders that the cases name; the folders of toys are made."""
    from tiny_models import make_all
    from wordpiece_bert.hub import find_model

    made = make_all(folder)
    return {"dense": str(find_model("minilm")), **{name: str(made / name) for name in ("ranker", "splade", "colbert")}}


def run(code: str, models: dict[str, str]) -> Any:
    """Run the code of a case, and return its result as numbers, texts, lists and dicts."""
    names: dict[str, Any] = dict(models)
    exec(compile(code, "case", "exec"), names)
    return plain(names["result"])


def plain(value: Any) -> Any:
    """Convert what both packages return to what JSON has; arrays, tensors and sparse vectors to lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if getattr(value, "is_sparse", False):
        value = value.to_dense()
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    array = np.asarray(value)
    return [plain(item) for item in array] if array.ndim else round(float(array), 6)


def equal(found: Any, expected: Any) -> bool:
    """Whether two results are equal: numbers to 2e-5, everything else exactly."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(found) == list(expected) and all(equal(found[key], expected[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(equal, found, expected))
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return abs(found - expected) <= 2e-5 * max(1.0, abs(expected))
    return bool(found == expected)


def table() -> str:
    """Return the table of all cases, a part for each page."""
    lines = []
    for page in dict.fromkeys(case.page for case in cases()):
        lines += ["", f"From the page `{page}`:", ""]
        lines += ["| yours | ours |", "|---|---|"]
        for case in cases():
            if case.page == page:
                ours = case.ours if case.ours == "the same" else f"`{case.ours}`"
                lines.append(f"| `{case.yours}` | {ours}{f': {case.reason}' if case.reason else ''} |")
    return "\n".join([BEGIN, *lines, "", END])


def write_results(results: dict[str, Any]) -> None:
    """Write the results of sentence-transformers, a line for each case."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the table, or the results of sentence-transformers."""
    if arguments == ["--table"]:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text[: text.index(BEGIN)] + table() + text[text.index(END) + len(END) :], encoding="utf-8")
        return 0
    if arguments != ["--record"]:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(Path(folder))
        results = {}
        for case in cases():
            if not case.reason:
                results[case.key] = run(case.code, models)
    write_results(results)
    return 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]
    raise SystemExit(main(sys.argv[1:]))
