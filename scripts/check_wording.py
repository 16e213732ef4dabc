"""Count phrases that are slow to read in comments and documents: ``those of``, ``that of the``, ``is no`` and a noun.

The noun said again is quicker ("the weights come from the checkpoint"), and so is "is not a word". Read are comments
and docstrings of Python, comments of Rust, and Markdown outside of code, in the files that ``git ls-files`` lists.

Usage: ``check_wording.py [--list] [--limit 60]``, in the root of the repository.
"""

import argparse
import ast
import collections
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

#: Plain English: "there is no file", "is no longer", "is no larger than", "is no more costly than".
FINE = r"longer\b|need\b|way\b|such\b|different\b|(?:\w+er|more|less|worse)\s+(?:\w+\s+)?than\b"
PHRASE = re.compile(rf"\b(?:those\s+of\b|that\s+of\s+the\b|(?<!there\s)is\s+no\s+(?!{FINE})(?=[\w`'\"]))", re.I)
DEFINITIONS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
#: Examples and blocks of code.
CODE = re.compile(r"^ *>>>(?:.*\S.*\n?)*|^ *(?P<fence>```+|~~~+)(?:.*\n)*?.*(?P=fence)", re.M)


def prose(text: str, first: int = 1) -> dict[int, str]:
    """Return the lines of a text by number, without the code in it."""
    text = CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    return dict(enumerate(text.splitlines(), first))


def of_python(source: str) -> dict[int, str]:
    """Return the lines of comments and docstrings by number."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = {token.start[0]: token.string.lstrip("#:") for token in tokens if token.type == tokenize.COMMENT}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node):
            first, last = node.body[0].lineno, node.body[0].end_lineno
            found |= prose("".join(source.splitlines(keepends=True)[first - 1 : last]), first)
    return found


def of_rust(source: str) -> dict[int, str]:
    """Return the lines of comments by number."""
    lines = enumerate(source.splitlines(), 1)
    return {number: found[1] for number, line in lines if (found := re.search(r"(?:^|\s)//[/!]?(.*)", line))}


def main() -> int:
    """Print the number of phrases of each folder, and return 1 where there are too many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="also print each place")
    parser.add_argument("--limit", type=int, default=60, help="how many phrases may stand (60)")
    arguments = parser.parse_args()
    readers = {".py": of_python, ".pyi": of_python, ".rs": of_rust, ".md": prose}
    names = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0")
    counts = collections.Counter()
    for path in map(Path, names):
        if path.suffix in readers and path.is_file():
            lines = readers[path.suffix](path.read_text(encoding="utf-8"))
            # Code between two comments is a bar: a phrase may break over lines, but not over code.
            text = "\n".join(lines.get(number, "|") for number in range(1, max(lines, default=0) + 1))
            for found in PHRASE.finditer(re.sub(r"`[^`\n]+`", lambda code: "x" * len(code[0]), text)):
                number = text.count("\n", 0, found.start()) + 1
                counts["/".join(path.parts[:-1][:3]) or "."] += 1
                if arguments.list:
                    print(f"{path}:{number}: {lines[number].strip()}")
    for folder, count in sorted(counts.items()):
        print(f"{count:5} {folder}")
    total = counts.total()
    print(f"{total:5} in all")
    if total > arguments.limit:
        print(f"{total} phrases are above the limit of {arguments.limit} (--limit); --list shows them", file=sys.stderr)
    return int(total > arguments.limit)


if __name__ == "__main__":
    sys.exit(main())
