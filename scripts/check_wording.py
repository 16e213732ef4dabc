"""Count phrases that are slow to read in comments and documents: "those of", "that of the", "is no" and a noun.

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
DOCTEST = re.compile(r"^ *>>>(?:.*\S.*\n?)*", re.M)
DEFINITIONS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def of_python(source: str) -> dict[int, str]:
    """Return the lines of comments and docstrings, without the examples."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = {token.start[0]: token.string.lstrip("#:") for token in tokens if token.type == tokenize.COMMENT}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node):
            first, last = node.body[0].lineno, node.body[0].end_lineno
            text = "".join(source.splitlines(keepends=True)[first - 1 : last])
            text = DOCTEST.sub(lambda example: "\n" * example[0].count("\n"), text)
            found |= dict(enumerate(text.splitlines(), first))
    return found


def of_rust(source: str) -> dict[int, str]:
    """Return the lines of comments."""
    lines = enumerate(source.splitlines(), 1)
    return {number: found[1] for number, line in lines if (found := re.search(r"(?:^|\s)//[/!]?(.*)", line))}


def of_markdown(source: str) -> dict[int, str]:
    """Return the lines outside of blocks of code; the code within a line is one word."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1", lambda code: "\n" * code[0].count("\n"), source, flags=re.M | re.S)
    return dict(enumerate(re.sub(r"`[^`\n]+`", "code", text).splitlines(), 1))


def main() -> int:
    """Print the number of phrases of each folder, and return 1 where there are too many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="also print each place")
    parser.add_argument("--limit", type=int, default=60, help="how many phrases may stand (60)")
    arguments = parser.parse_args()
    counts = collections.Counter()
    for suffix, prose in ((".py", of_python), (".pyi", of_python), (".rs", of_rust), (".md", of_markdown)):
        listed = subprocess.run(["git", "ls-files", "-z", f"*{suffix}"], capture_output=True, text=True, check=True)
        for path in map(Path, filter(None, listed.stdout.split("\0"))):
            lines = prose(path.read_text(encoding="utf-8"))
            # Code between two comments is a bar, so that a phrase may break over lines, but not over code.
            text = "\n".join(lines.get(number, "|") for number in range(1, max(lines, default=0) + 1))
            for found in PHRASE.finditer(text):
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
