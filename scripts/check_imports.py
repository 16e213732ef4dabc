"""Check that the modules of the Python package import each other without cycles, and no room one on a floor above it.

All imports count: those at the top, those within functions, those for types only (``if TYPE_CHECKING``), and those by
name: where a module calls ``importlib.import_module`` or ``lazy_names``, each of its strings that names a module of the
package, in full or relative to the package that it gives, is an import. So is what the extension imports, in Rust and
in its stub. The floors are in import-linter's table in ``pyproject.toml``; it checks them too, for statements alone.

Usage: ``check_imports.py``, in the root of the repository.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path("python/wordpiece_bert")
EXTENSION, EXTENSION_SOURCES = "wordpiece_bert._core", Path("rust/python/src")

# The functions whose arguments, or tables near them, name modules; in Rust, their beginnings.
BY_NAME = {"import_module", "lazy_names"}
BY_NAME_IN_RUST = re.compile(r'\bimport(?:_exception!)?\(\s*"?(wordpiece_bert[\w.]*)')


def modules(folder: Path) -> dict[str, Path]:
    """Return the file of each module of a package; a stub counts where there is no source."""
    found = {}
    for pattern in ("*.pyi", "*.py"):
        for file in folder.rglob(pattern):
            parts = [folder.name, *file.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(module: str, file: Path, known: Iterable[str]) -> set[str]:
    """Return the modules of the package that a module imports."""
    tree = ast.parse(file.read_bytes())
    known = set(known)
    found = set(_statements(module, file, tree, known))
    if any(isinstance(node, ast.Call) and _last_name(node.func) in BY_NAME for node in ast.walk(tree)):
        found |= set(_by_name(module, tree, known))
    if module == EXTENSION:
        found |= {
            name for source in EXTENSION_SOURCES.rglob("*.rs") for name in BY_NAME_IN_RUST.findall(source.read_text())
        }
    return found - {module}


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other (Tarjan's strongly connected components), largest first."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        path.append(module)
        for used in sorted(graph.get(module, ())):
            if used not in order:
                visit(used)
                low[module] = min(low[module], low[used])
            elif used in path:
                low[module] = min(low[module], order[used])
        if low[module] == order[module]:
            start = path.index(module)
            group = sorted(path[start:])
            del path[start:]
            if len(group) > 1:
                groups.append(group)

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted(groups, key=len, reverse=True)


def upwards(graph: dict[str, set[str]], contract: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the imports of a room from a floor above it, or beside it, that a contract of import-linter forbids."""
    floors = {room: floor for floor in contract["layers"] for room in re.split(r"[ |:]+", floor)}
    allowed = [line.split(" -> ") for line in contract.get("ignore_imports", ())]

    def forbidden(module: str, used: str) -> bool:
        above, below = (floors.get(f"{name}.".split(".")[1]) for name in (module, used))
        if not above or not below or module.split(".")[1] == used.split(".")[1]:
            return False
        order = contract["layers"].index(below) - contract["layers"].index(above)
        if order > 0 or (order == 0 and ":" in above):
            return False
        return not any(_fits(module, first) and _fits(used, second) for first, second in allowed)

    return [(module, used) for module in sorted(graph) for used in sorted(graph[module]) if forbidden(module, used)]


def _fits(module: str, pattern: str) -> bool:
    """Return whether a name is meant by a pattern of import-linter: `*` is one part of it, `**` any number."""
    expression = re.escape(pattern).replace(r"\*\*", r".+").replace(r"\*", r"[^.]+")
    return re.fullmatch(expression, module) is not None


def _statements(module: str, file: Path, tree: ast.AST, known: set[str]) -> Iterator[str]:
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                if f"{base}.{alias.name}" in known:
                    yield f"{base}.{alias.name}"
                elif base in known:
                    yield base


def _by_name(module: str, tree: ast.Module, known: set[str]) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    texts: set[str] = set()
    packages = {module}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            text = _joined(node, constants)
            texts.add(text)
            packages.add(text.rpartition(".")[0])
    # A constant that only begins the names of modules is none of them.
    for text in texts - set(constants.values()):
        name = text.replace("-", "_")
        relative = {module.partition(".")[0] + name} if name.startswith(".") else set()
        yield from ({name} | {f"{package}.{name}" for package in packages} | relative) & known


def _joined(node: ast.JoinedStr, constants: dict[str, str]) -> str:
    """Return the beginning of an f-string, as far as it is known."""
    text = ""
    for value in node.values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
        elif (
            isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name) and value.value.id in constants
        ):
            text += constants[value.value.id]
        else:
            break
    return text


def _last_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def main() -> None:
    """Print the cycles and the imports upwards, and exit with status 1 if there are any."""
    files = modules(PACKAGE)
    graph = {module: imported(module, file, files) for module, file in files.items()}
    groups = cycles(graph)
    for group in groups:
        print(f"{len(group)} modules import each other in a cycle:")
        for module in group:
            print(f"    {module} imports {', '.join(sorted(graph[module] & set(group)))}")
    if not groups:
        print(f"no cycles among {len(graph)} modules")
    contracts = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    wrong = [pair for contract in contracts if "layers" in contract for pair in upwards(graph, contract)]
    for module, used in wrong:
        print(f"{module} imports {used}, which is on a floor above it or beside it")
    sys.exit(bool(groups or wrong))


if __name__ == "__main__":
    main()
