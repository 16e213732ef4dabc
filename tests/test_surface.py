"""The public interface: exports, stubs and the reference documentation have the same names."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import warnings
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import make_models
import pytest

import wordpiece_bert as wb
from model_files import sentence_folder
from wordpiece_bert import _core, corpus, pretraining
from wordpiece_bert._internal.lazy import in_full
from wordpiece_bert._internal.peer_names import PeerName
from wordpiece_bert.cli.program import COMMANDS
from wordpiece_bert.errors import MissingPackageError
from wordpiece_bert.sentence.encoder_base import FromPretrained
from wordpiece_bert.tokenizer.option_types import EncodeOptions
from wordpiece_bert.training import options as training_options

ROOT = Path(__file__).parent.parent
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.rst"))


def importable(name: str) -> bool:
    """Whether a module can be imported here: modules of integrations need the package that they are for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of other packages
            importlib.import_module(name)
    except MissingPackageError:
        return False
    return True


def listed_names() -> dict[str, list[str]]:
    """The names that the pages of the reference list for each module: summaries, data, and names from elsewhere."""
    found: dict[str, list[str]] = {}
    for page in REFERENCE:
        _, *parts = re.split(r"^\.\. currentmodule:: ([\w.]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for module, text in zip(parts[::2], parts[1::2], strict=True):
            summaries = re.findall(r"^   (\w+)$", text, re.MULTILINE)
            data = re.findall(r"^\.\. py:data:: (\w+)$", text, re.MULTILINE)
            assert module not in found, module
            found[module] = [*summaries, *data, *(name for name, _ in same_names(text))]
    return found


def same_names(text: str) -> list[tuple[str, str]]:
    """The names of a text that another module has too, and where they are described."""
    return re.findall(r":obj:`(\w+)\s+<(wordpiece_bert[\w.]*)>`", text)


LISTED_NAMES = listed_names()
DOCUMENTED = list(LISTED_NAMES)
MODULES = [name for name in DOCUMENTED if importable(name)]

#: Top-level modules without a leading underscore that are not for users, and where users find what they define.
IMPLEMENTATION = {
    "wordpiece_bert.cli": "the command wordpiece-bert",
    "wordpiece_bert.search": "exported by wordpiece_bert.sentence and wordpiece_bert.util",
    "wordpiece_bert.tokenizer": "exported by wordpiece_bert",
    "wordpiece_bert.vectors": "exported by wordpiece_bert.sentence",
}


def modules_of_the_package() -> list[str]:
    """All modules whose path has no part with a leading underscore."""
    walked = [module.name for module in pkgutil.walk_packages(wb.__path__, "wordpiece_bert.")]
    return ["wordpiece_bert", *(name for name in walked if not any(part.startswith("_") for part in name.split(".")))]


def imported_modules(code: str) -> set[str]:
    """The modules of this package that a program imports, and those that it imports names from."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            # `from package import module` imports a module, too.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= (inner & set(modules_of_the_package())) or {node.module or ""}
    return {name for name in modules if name.partition(".")[0] == "wordpiece_bert"}


def members(cls: type) -> set[str]:
    """The public methods and attributes that a class of this package defines itself or inherits from one that does."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("wordpiece_bert"):
            absent = {name for name, value in vars(base).items() if isinstance(value, PeerName)}
            names |= {*vars(base), *getattr(base, "__annotations__", {})} - absent
    return {name for name in names if not name.startswith("_")}


def public_classes() -> list[tuple[str, str]]:
    """The public classes that are not errors, by module and name."""
    found = []
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) and not issubclass(value, Exception):
                found.append((module, name))
    return found


def test_the_reference_has_every_public_module() -> None:
    modules = modules_of_the_package()
    assert set(DOCUMENTED) <= set(modules)
    top_level = {name for name in modules if name.count(".") <= 1}
    assert top_level - set(DOCUMENTED) == set(IMPLEMENTATION)


def test_documents_and_examples_import_only_documented_modules() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    programs = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")}
    for page in pages:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        programs[page.relative_to(ROOT).as_posix()] = "\n".join(blocks)
    assert "docs/how-to/search.md" in programs
    for name, program in programs.items():
        assert imported_modules(program) <= set(DOCUMENTED), name


@pytest.mark.parametrize("name", MODULES)
def test_the_reference_lists_the_public_names(name: str) -> None:
    module = importlib.import_module(name)
    names = LISTED_NAMES[name]
    assert len(names) == len(set(names))
    assert set(names) == {one for one in module.__all__ if f"{name}.{one}" not in DOCUMENTED}


def test_a_name_that_the_reference_describes_elsewhere_is_the_same() -> None:
    found = [same for page in REFERENCE for same in same_names(page.read_text(encoding="utf-8"))]
    assert found
    for name, target in found:
        module, _, attribute = target.rpartition(".")
        assert attribute == name
        assert attribute in LISTED_NAMES[module]


#: Imports one module in a fresh process and prints what ``dir`` lists without an underscore, and the modules in it.
LISTED = """
import importlib, json, sys, types
module = importlib.import_module(sys.argv[1])
names = [name for name in dir(module) if not name.startswith("_")]
print(json.dumps([names, [name for name in names if isinstance(getattr(module, name), types.ModuleType)]]))
"""


def packages() -> list[str]:
    """The public packages, and all others that import their names when they are first used."""
    inner = [f"wordpiece_bert.bert.{name}" for name in ("heads", "families")]
    return [name for name in [*MODULES, *inner] if hasattr(importlib.import_module(name), "__path__")]


@pytest.mark.parametrize("name", packages())
def test_dir_of_a_package_lists_what_is_public(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", LISTED, name], check=True, capture_output=True, encoding="utf-8")
    listed, modules = map(set, json.loads(done.stdout))
    public = {name for name in importlib.import_module(name).__all__ if not name.startswith("_")}
    inner = {one.rpartition(".")[2] for one in MODULES if one.rpartition(".")[0] == name}
    if name == "wordpiece_bert.integrations":  # each of them needs a package of its own, which may be missing
        inner = set()
    assert public | inner <= listed
    assert listed - public - modules == set(), "neither public nor a module"
    if name == "wordpiece_bert":
        assert listed == public | inner


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_every_public_name(name: str) -> None:
    module = importlib.import_module(name)
    assert set(module.__all__) <= set(dir(module))
    assert "lazy_names" not in dir(module)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_and_class_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    for attribute in module.__all__:
        value = getattr(module, attribute)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, attribute


@pytest.mark.parametrize(("module", "name"), public_classes())
def test_every_public_member_has_a_docstring(module: str, name: str) -> None:
    cls = getattr(importlib.import_module(module), name)
    for member in members(cls):
        value = inspect.getattr_static(cls, member, None)
        if isinstance(value, property) or inspect.isroutine(value):
            assert getattr(cls, member).__doc__, f"{name}.{member} has no docstring"


def public_callables() -> dict[str, Any]:
    """Every public function, method and constructor of the package, inherited methods included, by its name."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) and issubclass(value, Exception):
                continue
            if inspect.isroutine(value):
                found[f"{value.__module__}.{name}"] = value
            if not inspect.isclass(value):
                continue
            if "__init__" in vars(value) and not is_dataclass(value):
                found[f"{value.__module__}.{name}"] = value
            for base in value.__mro__:
                methods = vars(base).items() if base.__module__.startswith("wordpiece_bert") else ()
                for member, raw in methods:
                    method = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
                    if isinstance(raw, FromPretrained):
                        method = getattr(base, member)
                    if inspect.isroutine(method) and (member == "__call__" or not member.startswith("_")):
                        found[f"{base.__module__}.{base.__name__}.{member}"] = method
    return found


CALLABLES = public_callables()
#: Arguments of tokenizers that have the names of transformers here.
OUR_NAMES = {"is_pretokenized": "is_split_into_words", "sequence": "text", "input": "texts"}


def test_public_callables_are_found() -> None:
    assert len(CALLABLES) > 150
    assert {
        "wordpiece_bert.tokenizer.encoding_calls.EncodingCalls.encode",
        "wordpiece_bert.bert.heads.head_model.LabelledModel.__call__",
    } <= set(CALLABLES)


#: Frameworks whose base classes wrap methods, or add some, where they are installed.
FRAMEWORKS = tuple(f"wordpiece_bert.integrations.{name}." for name in ("chroma", "haystack", "lancedb", "llama_index"))


def test_defaults_of_the_options_of_training_are_those_of_the_signature() -> None:
    signature = inspect.signature(wb.train_vocab).parameters
    for defaults in (training_options.MERGING, training_options.TOP_DOWN):
        for name, default in defaults.items():
            assert signature[name].default == default, name


def test_typed_dicts_of_options_are_keywords_of_their_functions() -> None:
    for options, functions in (
        (EncodeOptions, (wb.Tokenizer.encode, wb.Tokenizer.encode_batch, wb.Tokenizer.encodings)),
        (corpus.FileOptions, (wb.Tokenizer.encode_files, wb.Tokenizer.iter_files)),
        (wb.training.CountOptions, (wb.WordCounts.from_files, wb.WordCounts.from_texts)),
        (wb.training.TrainOptions, (wb.train_vocab,)),
    ):
        for function in functions:
            assert set(get_type_hints(options)) <= set(inspect.signature(function).parameters)


def test_defaults_of_the_options_of_counting_are_those_of_the_functions_that_have_them() -> None:
    signature = inspect.signature(wb.WordCounts.from_texts).parameters
    for function in (training_options.normalizer_settings, wb.WordCounts._counted):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in signature and parameter.kind is not parameter.VAR_KEYWORD:
                assert signature[name].default == parameter.default, name


def test_functions_of_shared_options_refuse_other_names_under_their_own_name() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "a"])
    vocab = wb.train_vocab(["a b"], 7)
    for call, name in (
        (lambda options: tok.encode_files("in.txt", "out.npy", **options), "Tokenizer.encode_files"),
        (lambda options: tok.iter_files("in.txt", **options), "Tokenizer.iter_files"),
        (lambda options: tok.encodings(["a"], **options), "Tokenizer.encodings"),
        (lambda options: wb.train_vocab(["a"], **options), "train_vocab"),
        (lambda options: wb.WordCounts.from_texts(["a"], **options), "WordCounts.from_texts"),
        (lambda options: vocab.save_pretrained("folder", **options), "Vocab.save_pretrained"),
        (lambda options: pretraining.build_examples("store", "out", tok, **options), "build_examples"),
    ):
        with pytest.raises(TypeError, match=rf"^{re.escape(name)}\(\) got an unexpected keyword argument 'cls_id'$"):
            call({"cls_id": 1})


def test_methods_have_the_name_of_the_class_that_users_know() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]"])
    for method in (tok.encode, tok.encode_files, tok.decode, tok.save, tok.__call__, tok.from_vocab):
        assert method.__qualname__.startswith("Tokenizer.")
    with pytest.raises(TypeError, match=r"^Tokenizer\.encode\(\) got an unexpected keyword argument 'max_lenght'"):
        tok.encode("a", max_lenght=3)  # type: ignore[call-arg]


def test_options_are_in_the_order_of_tokenizers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "##b", "c"])
    peer = tokenizers.Tokenizer.from_str(tok.to_json())
    for method in ("encode", "encode_batch"):
        theirs = [
            OUR_NAMES.get(name, name) for name in inspect.signature(getattr(peer, method)).parameters if name != "self"
        ]
        assert list(inspect.signature(getattr(tok, method)).parameters)[: len(theirs)] == theirs
    for split, special in ((False, True), (False, False), (True, True), (True, False)):
        text, second = (["ab", "c"], ["a"]) if split else ("ab c", "a")
        expected = peer.encode(text, second, split, special)
        assert tok.encode(text, second, split, special).ids == expected.ids
        assert tok.encodings([text], split, special)[0].ids == peer.encode_batch([text], split, special)[0].ids
        assert tok.encode_batch([text], split, special).to_list() == [peer.encode(text, None, split, special).ids]


def test_the_stub_has_the_names_of_the_binding() -> None:
    tree = ast.parse((ROOT / "python" / "wordpiece_bert" / "_core.pyi").read_text(encoding="utf-8"))
    stubbed = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            stubbed.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            stubbed.add(node.target.id)
    public = {name for name in (*vars(_core), *vars(_core._arrays)) if not name.startswith("_")}
    assert {name for name in stubbed if not name.startswith("_")} == public


def test_no_function_of_the_binding_has_more_than_eight_parameters() -> None:
    tree = ast.parse((ROOT / "python" / "wordpiece_bert" / "_core.pyi").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)} - {"self", "cls"}
            assert len(names) <= 8, f"{node.name}, line {node.lineno}"


def imported_by(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before), sep='\\n')"
    return set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout.split()
    )


def test_import_alone_loads_neither_numpy_nor_the_extension() -> None:
    modules = imported_by("import wordpiece_bert")
    assert "wordpiece_bert" in modules
    assert not {name for name in modules if name.partition(".")[0] == "numpy" or name == "wordpiece_bert._core"}


def test_lazy_names_are_the_names_of_their_modules() -> None:
    assert set(wb._MODULES) == set(wb.__all__) <= set(dir(wb))
    for name in wb._SUBMODULES:
        assert getattr(wb, name) is importlib.import_module(f"wordpiece_bert.{name}")
    with pytest.raises(AttributeError, match="no attribute 'tokeniser'"):
        wb.tokeniser  # noqa: B018


LAZY = (
    "wordpiece_bert",
    "wordpiece_bert.bert",
    "wordpiece_bert.bert.heads",
    "wordpiece_bert.bert.families",
    "wordpiece_bert.tokenizer",
    "wordpiece_bert.corpus",
)


@pytest.mark.parametrize("package", [*LAZY, "wordpiece_bert.sentence"])
def test_every_name_of_a_lazy_package_is_importable(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module._MODULES) <= set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        if name in module._MODULES:
            assert value is getattr(importlib.import_module(in_full(package, module._MODULES[name])), name)
    for name in ("tokeniser", "_tokeniser"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(module, name)
    assert not hasattr(module, "__wrapped__")


def test_a_submodule_is_an_attribute_of_its_package() -> None:
    modules = imported_by("import wordpiece_bert; wordpiece_bert.bert.functional.softmax")
    assert "wordpiece_bert.bert.functional" in modules
    assert "wordpiece_bert.bert.model" not in modules


def test_an_import_error_inside_a_submodule_is_not_hidden(tmp_path: Path) -> None:
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from wordpiece_bert._internal.lazy import lazy_names\n__getattr__, __dir__ = lazy_names(globals(), {})\n"
    )
    (package / "broken.py").write_text("import a_module_that_is_not_installed\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import lazy_package; lazy_package.broken"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert "No module named 'a_module_that_is_not_installed'" in result.stderr


def test_a_first_vector_imports_only_what_it_needs(tmp_path: Path) -> None:
    folder = sentence_folder("sentence_mean_normalize", tmp_path)
    modules = imported_by(f"import wordpiece_bert; wordpiece_bert.SentenceEncoder({str(folder)!r}).encode('a b')")
    assert "wordpiece_bert.bert.model" in modules
    unused = {"asyncio", "hashlib", "secrets", "tempfile", "zipfile", "pickle", "ssl", "urllib.request", "uuid"}
    unused |= {f"wordpiece_bert.bert.{name}" for name in ("heads.bert", "heads.kinds", "losses")}
    unused |= {f"wordpiece_bert.bert.families.{name}" for name in ("albert", "distilbert", "electra", "mpnet")}
    unused |= {f"wordpiece_bert.bert.checkpoint.{name}" for name in ("torch_files", "tensorflow_files", "pickles")}
    unused |= {
        f"wordpiece_bert.{name}"
        for name in (
            "cli",
            "corpus",
            "inspect",
            "search",
            "tokenizer.corpus",
            "vectors",
            "pretraining",
            "tasks",
            "training",
        )
    }
    unused |= {f"wordpiece_bert.sentence.{name}" for name in ("cross_encoder", "nearest_rows")}
    assert not modules & (unused - imported_by("import numpy"))
    strangers = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert strangers == {"numpy", "wordpiece_bert"}


def test_help_of_the_command_loads_neither_numpy_nor_the_extension() -> None:
    for command in ("", "embed", "encode", "train", "count", "pretrain", "finetune", "report", "info", "serve"):
        statement = f"""
from contextlib import redirect_stdout, suppress
from io import StringIO
from wordpiece_bert.cli import main
with suppress(SystemExit), redirect_stdout(StringIO()):
    main([*{command.split()}, '--help'])
"""
        modules = imported_by(statement)
        assert "wordpiece_bert.cli.program" in modules
        assert not {name for name in modules if name.partition(".")[0] in ("numpy", "pyarrow")}, command
        assert "wordpiece_bert._core" not in modules


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_needs_no_docstrings(command: str) -> None:
    program = [sys.executable, "-OO", "-m", "wordpiece_bert", command, "--help"]
    with_docstrings, without = (
        subprocess.run(one, capture_output=True, encoding="utf-8", check=True).stdout
        for one in ([one for one in program if one != "-OO"], program)
    )
    assert without == with_docstrings


def test_the_names_load_only_numpy_and_the_extension() -> None:
    modules = imported_by("from wordpiece_bert import *")
    strangers = (
        {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - {"numpy", "wordpiece_bert"}
    )
    assert not strangers
    assert "wordpiece_bert._core" in modules
    assert "wordpiece_bert.cli" not in modules


def test_the_package_root_defines_nothing() -> None:
    for name in wb.__all__:
        value = getattr(wb, name)
        if not isinstance(value, str | ModuleType):
            assert value.__module__ != "wordpiece_bert", f"{name} is defined in __init__.py"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of the examples, a folder each."""
    return make_models.make_all(tmp_path_factory.mktemp("made") / "models")


@pytest.fixture
def in_a_folder_with_models(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").symlink_to(models)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.model
@pytest.mark.usefixtures("in_a_folder_with_models")
@pytest.mark.parametrize(
    "name", sorted(module.name for module in pkgutil.walk_packages(wb.__path__, "wordpiece_bert."))
)
def test_examples_in_docstrings(name: str) -> None:
    if name.rpartition(".")[2] in ("__main__", "_core"):
        pytest.skip("the entry point and the extension have no examples to run")
    if not importable(name):
        pytest.skip(f"{name} needs a package that is not installed")
    # Without the names of the module: a reader has those alone that an example imports.
    for test in doctest.DocTestFinder().find(importlib.import_module(name), globs={}):
        assert doctest.DocTestRunner().run(test).failed == 0


def examples_elsewhere() -> dict[str, Any]:
    """What doctest does not find in a module: methods that others are made from, and what the extension has."""
    classes = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, name in public_classes()}
    compiled = {name: cls for name, cls in classes.items() if cls.__module__ == "wordpiece_bert._core"}
    elsewhere = {
        name: value
        for name, value in CALLABLES.items()
        if getattr(value, "__globals__", {}).get("__name__") != getattr(value, "__module__", "")
    }
    return {name: value for name, value in (compiled | elsewhere).items() if ">>>" in (value.__doc__ or "")}


@pytest.mark.model
@pytest.mark.usefixtures("in_a_folder_with_models")
@pytest.mark.parametrize("name", sorted(examples_elsewhere()))
def test_examples_in_docstrings_that_no_module_has(name: str) -> None:
    # A class is described with its methods, which are cases of their own.
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(examples_elsewhere()[name], name, module=False, globs={})  # type: ignore[arg-type]
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(wb.__file__).parent / "py.typed").exists()
