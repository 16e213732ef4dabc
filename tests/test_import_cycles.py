"""The lint of the package's imports: it finds cycles of every kind of import, and imports of floors above."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_imports.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the source archive has no scripts")

#: Ways in which the module toy.b imports toy.a, which imports toy.b.
WAYS = {
    "at the top": "from toy import a",
    "a name of it": "from toy.a import NAME",
    "relative": "from .a import NAME",
    "in a function": "def f():\n    import toy.a",
    "for types only": "if TYPE_CHECKING:\n    from toy.a import NAME",
    "by its full name": "import importlib\nimportlib.import_module('toy.a')",
    "by the package's name": "HERE = 'toy'\nNAMES = {'x': f'{HERE}.a'}\nimport_module(NAMES['x'])",
    "by a name in the package": "NAMES = {'x': 'a'}\nimport_module(f'toy.{NAMES[0]}')",
    "by a relative name": "PLACES = ('.a',)\nimport_module('toy' + PLACES[0])",
}


def check_imports() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_imports", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cycles_of(folder: Path, second: str) -> list[list[str]]:
    lint = check_imports()
    package = folder / "toy"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from toy.b import OTHER\n")
    (package / "b.py").write_text(second)
    files = lint.modules(package)
    assert set(files) == {"toy", "toy.a", "toy.b"}
    graph = {module: lint.imported(module, file, files) for module, file in files.items()}
    found: list[list[str]] = lint.cycles(graph)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_import_counts(way: str, tmp_path: Path) -> None:
    assert cycles_of(tmp_path, WAYS[way]) == [["toy.a", "toy.b"]]


@pytest.mark.parametrize("second", ["", "NAMES = {'x': 'a', 'y': 'toy.a'}", "'''As toy.a.'''\nimport_module('json')"])
def test_what_is_no_import_does_not_count(second: str, tmp_path: Path) -> None:
    assert cycles_of(tmp_path, second) == []


def test_cycles_of_several_modules_are_one_group() -> None:
    graph = {"a": {"b"}, "b": {"c", "e"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}}
    assert check_imports().cycles(graph) == [["a", "b", "c"], ["e", "f"]]


@pytest.mark.parametrize(
    ("module", "used", "right"),
    [
        ("toy.roof.x", "toy.left.y", True),
        ("toy.left.y", "toy.roof.x", False),
        ("toy.left.y", "toy.right", False),
        ("toy.cellar", "toy.well.z", True),
        ("toy.well.z", "toy.cellar", True),
        ("toy.left", "toy.roof.named", True),
        ("toy.left", "toy.roof.named.within", False),
        ("toy.left.y", "toy.roof.named", False),
        ("toy.left.y", "toy.left.z", True),
        ("toy", "toy.roof", True),
        ("toy._core", "toy.roof", True),
    ],
)
def test_a_room_imports_what_is_below_it(module: str, used: str, right: bool) -> None:
    contract = {"layers": ["roof", "left | right", "cellar : well"], "ignore_imports": ["toy.left -> toy.roof.*"]}
    assert check_imports().upwards({module: {used}}, contract) == ([] if right else [(module, used)])


def test_the_package_has_no_cycles() -> None:
    done = subprocess.run([sys.executable, SCRIPT], cwd=SCRIPT.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "no cycles among" in done.stdout
