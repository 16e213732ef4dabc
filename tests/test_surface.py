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

import pytest

import wordpiece_bert as wb
from model_files import sentence_folder
from wordpiece_bert import _core, corpus
from wordpiece_bert._internal.peer_names import PeerName
from wordpiece_bert.errors import MissingPackageError
from wordpiece_bert.options import EncodeOptions
from wordpiece_bert.training import options as training_options

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def importable(name: str) -> bool:
    """Whether a module can be imported here: those of integrations need the package that they are for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of other packages
            importlib.import_module(name)
    except MissingPackageError:
        return False
    return True


DOCUMENTED = re.findall(r"^## (wordpiece_bert[\w.]*)$", REFERENCE, re.MULTILINE)
MODULES = [name for name in DOCUMENTED if importable(name)]

#: Top-level modules without a leading underscore that are not for users, and where users find what they define.
IMPLEMENTATION = {
    "wordpiece_bert.added_token": "exported by wordpiece_bert",
    "wordpiece_bert.arrow": "exported by wordpiece_bert",
    "wordpiece_bert.batch": "exported by wordpiece_bert",
    "wordpiece_bert.cli": "the command wordpiece-bert",
    "wordpiece_bert.map_function": "methods of wordpiece_bert.Tokenizer",
    "wordpiece_bert.options": "methods of wordpiece_bert.Tokenizer",
    "wordpiece_bert.padding": "methods of wordpiece_bert.Tokenizer",
    "wordpiece_bert.pretrained": "methods of wordpiece_bert.Tokenizer",
    "wordpiece_bert.subword": "the tokenizers of SentenceEncoder, CrossEncoder and wordpiece_bert.tasks",
    "wordpiece_bert.tokenizer": "exported by wordpiece_bert",
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


def section(title: str, level: int, text: str = REFERENCE) -> str:
    """The text under a heading, up to the next heading of its level or above."""
    found = re.search(
        rf"^{'#' * level} {re.escape(title)}\n(.*?)(?=^#{{1,{level}}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/reference.md has no heading {title!r}"
    return found[1]


def bullets(text: str) -> list[str]:
    """The names in the code at the start of list items; an item may have several."""
    items = re.findall(r"^- ((?:`[^`]+`(?:, )?)+)", text, re.MULTILINE)
    return [re.match(r"[\w.]+", code)[0] for item in items for code in re.findall(r"`([^`]+)`", item)]  # type: ignore[index]


def documented(module: str) -> list[str]:
    """The names that the reference documents for a module: headings, and list items before the first heading."""
    text = section(module, 2)
    return bullets(text.partition("\n### ")[0]) + re.findall(r"^### (\w+)$", text, re.MULTILINE)


def members(cls: type) -> set[str]:
    """The public methods and attributes that a class of this package defines itself or inherits from one that does."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("wordpiece_bert"):
            absent = {name for name, value in vars(base).items() if isinstance(value, PeerName)}
            names |= {*vars(base), *getattr(base, "__annotations__", {})} - absent
    return {name for name in names if not name.startswith("_")}


def described_classes() -> list[tuple[str, str]]:
    """The classes with a heading, whose section must name all their members."""
    found = []
    for module in MODULES:
        for name in re.findall(r"^### (\w+)$", section(module, 2), re.MULTILINE):
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) and not issubclass(value, Exception):
                found.append((module, name))
    return found


def test_the_reference_has_every_public_module() -> None:
    modules = modules_of_the_package()
    assert len(DOCUMENTED) == len(set(DOCUMENTED))
    assert set(DOCUMENTED) <= set(modules)
    top_level = {name for name in modules if name.count(".") <= 1}
    assert top_level - set(DOCUMENTED) == set(IMPLEMENTATION)
    for name in set(modules) - set(DOCUMENTED):
        assert not importable(name) or hasattr(importlib.import_module(name), "__all__"), f"{name} has no __all__"


def test_documents_and_examples_import_only_documented_modules() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    programs = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")}
    for page in pages:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        programs[page.name] = "\n".join(blocks)
    assert "guide.md" in programs
    for name, program in programs.items():
        assert imported_modules(program) <= set(DOCUMENTED), name


@pytest.mark.parametrize("name", MODULES)
def test_all_equals_the_documented_names(name: str) -> None:
    module = importlib.import_module(name)
    names = documented(name)
    assert len(names) == len(set(names))
    assert set(names) == set(module.__all__)


#: Imports one module in a fresh process and prints what ``dir`` lists without an underscore, and the modules in it.
LISTED = """
import importlib, json, sys, types
module = importlib.import_module(sys.argv[1])
names = [name for name in dir(module) if not name.startswith("_")]
print(json.dumps([names, [name for name in names if isinstance(getattr(module, name), types.ModuleType)]]))
"""


def packages() -> list[str]:
    """The public packages, and all others that import their names when they are first used."""
    inner = [f"wordpiece_bert.bert.{name}" for name in ("heads", "variants")]
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


@pytest.mark.parametrize(("module", "name"), described_classes())
def test_every_public_member_is_documented(module: str, name: str) -> None:
    cls = getattr(importlib.import_module(module), name)
    listed = bullets(section(name, 3, section(module, 2)))
    own = members(cls) - (ADDED_BY_PYDANTIC if f"{module}.".startswith(FRAMEWORKS) else set())
    assert set(listed) == own
    assert len(listed) == len(set(listed))
    for member in own:
        value = inspect.getattr_static(cls, member, None)
        if isinstance(value, property) or inspect.isroutine(value):
            assert getattr(cls, member).__doc__, f"{name}.{member} has no docstring"


def documented_parameters(docstring: str) -> set[str]:
    """The names in the Parameters section of a numpydoc docstring."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", docstring, re.MULTILINE | re.DOTALL)
    names = [line.partition(" : ")[0] for line in (found[1] if found else "").splitlines() if line[:1].strip()]
    return {name.strip().lstrip("*") for line in names for name in line.split(",")}


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
                    if inspect.isroutine(method) and (member == "__call__" or not member.startswith("_")):
                        found[f"{base.__module__}.{base.__name__}.{member}"] = method
    return found


CALLABLES = public_callables()
#: Arguments of tokenizers that have the names of transformers here.
OUR_NAMES = {"is_pretokenized": "is_split_into_words", "sequence": "text", "input": "texts"}


def test_public_callables_are_found() -> None:
    assert len(CALLABLES) > 150
    assert {
        "wordpiece_bert._tokenizer.encoding.EncodingCalls.encode",
        "wordpiece_bert.bert.heads.base.LabelledModel.__call__",
    } <= set(CALLABLES)


#: Frameworks whose base classes wrap methods, or add some, where they are installed.
FRAMEWORKS = tuple(f"wordpiece_bert.integrations.{name}." for name in ("chroma", "haystack", "lancedb", "llama_index"))
#: What pydantic adds to every class.
ADDED_BY_PYDANTIC = {"model_config", "model_post_init"}


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_every_parameter_is_in_the_signature_and_documented(name: str) -> None:
    if name.startswith(FRAMEWORKS):
        pytest.skip("the framework's base class decides the signature")
    value = CALLABLES[name]
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    hidden = [str(parameter) for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD]
    if name.endswith(".set_params"):
        hidden = []  # the protocol of scikit-learn: its names are those of get_params
    assert not hidden, f"{name} hides its options in {hidden[0]}"
    if name.startswith("wordpiece_bert.bert.functional.") and len(parameters) == 1:
        return  # a formula of one array, which its line of documentation states
    named = documented_parameters(inspect.cleandoc(value.__doc__ or ""))
    undocumented = {parameter.name for parameter in parameters} - named
    assert not undocumented, f"the docstring of {name} does not name {sorted(undocumented)}"


#: The modules whose reference has every argument of every function; in the others it may say "...", or nothing.
COMPLETE = (
    "wordpiece_bert",
    "wordpiece_bert.corpus",
    "wordpiece_bert.hub",
    "wordpiece_bert.sentence",
    "wordpiece_bert.tasks",
    "wordpiece_bert.training",
    "wordpiece_bert.training.spark",
)


def signatures_in_the_reference() -> list[tuple[str, str]]:
    """Each signature that the reference writes down, with the heading above it."""
    found = []
    for module in COMPLETE:
        text = section(module, 2)
        for heading in ["", *re.findall(r"^### (\w+)$", text, re.MULTILINE)]:
            under = section(heading, 3, text) if heading else text.partition("\n### ")[0]
            codes = [
                code
                for item in re.findall(r"^- ((?:`[^`]+`(?:, )?)+)", under, re.MULTILINE)
                for code in re.findall(r"`([^`]+)`", item)
            ]
            own = re.findall(rf"^`({heading}\(.*?\))`", under, re.MULTILINE) if heading else []
            found += [(f"{module} {heading}".strip(), code) for code in [*codes, *own] if "(" in code]
    return found


@pytest.mark.parametrize(("where", "code"), signatures_in_the_reference())
def test_signatures_in_the_reference_are_complete_and_true(where: str, code: str) -> None:
    module, _, heading = where.partition(" ")
    owner = importlib.import_module(module)
    under = section(heading, 3, section(module, 2)) if heading else section(module, 2).partition("\n### ")[0]
    if heading and not code.startswith(f"{heading}("):
        owner = getattr(owner, heading)
    parameters = inspect.signature(getattr(owner, code.partition("(")[0])).parameters
    known = {name: one for name, one in parameters.items() if name not in ("self", "cls") and not name.startswith("_")}
    tree = ast.parse(f"def f{code[code.index('(') :].replace('...', '_more=...')}: pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = [*tree.args.posonlyargs, *tree.args.args]
    defaults = dict(
        zip([one.arg for one in arguments][len(arguments) - len(tree.args.defaults) :], tree.args.defaults, strict=True)
    )
    defaults |= {
        one.arg: value for one, value in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True) if value
    }
    written = [one.arg for one in [*arguments, *tree.args.kwonlyargs]]
    shortened = "_more" in written
    for name, default in defaults.items():
        if name != "_more":
            assert ast.literal_eval(default) == known[name].default, f"{code}: the default of {name}"
    missing = known.keys() - set(written) - ({tree.args.vararg.arg} if tree.args.vararg else set())
    if shortened:  # then the options are in a table below
        missing -= set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", under))))
    assert not missing, f"{where}: the reference of {code} has no {sorted(missing)}"
    assert set(written) - {"_more"} <= known.keys(), f"{where}: {code}"


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


def test_every_class_at_the_root_is_described() -> None:
    classes = {name for name in wb.__all__ if inspect.isclass(getattr(wb, name))}
    assert classes <= {name for _, name in described_classes()} | {"WordPieceError"}


def test_the_stub_has_the_names_of_the_binding() -> None:
    tree = ast.parse((ROOT / "python" / "wordpiece_bert" / "_core.pyi").read_text(encoding="utf-8"))
    stubbed = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            stubbed.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            stubbed.add(node.target.id)
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert {name for name in stubbed if not name.startswith("_")} == public


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


LAZY = ("wordpiece_bert", "wordpiece_bert.bert", "wordpiece_bert.bert.heads", "wordpiece_bert.bert.variants")


@pytest.mark.parametrize("package", [*LAZY, "wordpiece_bert.sentence"])
def test_every_name_of_a_lazy_package_is_importable(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module._MODULES) <= set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        if name in module._MODULES:
            assert value is getattr(importlib.import_module(f"{package}.{module._MODULES[name]}"), name)
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
    unused |= {f"wordpiece_bert.bert.variants.{name}" for name in ("albert", "distilbert", "electra", "mpnet")}
    unused |= {f"wordpiece_bert.bert.checkpoint.{name}" for name in ("torch_files", "tensorflow_files", "pickles")}
    unused |= {f"wordpiece_bert.{name}" for name in ("cli", "corpus", "inspect", "pretraining", "tasks", "training")}
    unused |= {f"wordpiece_bert.sentence.{name}" for name in ("cross_encoder", "search")}
    assert not modules & (unused - imported_by("import numpy"))
    strangers = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert strangers == {"numpy", "wordpiece_bert"}


def test_help_of_the_command_loads_neither_numpy_nor_the_extension() -> None:
    for command in ("", "embed", "encode", "train", "count", "report", "info", "serve"):
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


@pytest.mark.parametrize(
    "name", sorted(module.name for module in pkgutil.walk_packages(wb.__path__, "wordpiece_bert."))
)
def test_examples_in_docstrings(name: str) -> None:
    if name.rpartition(".")[2] in ("__main__", "_core"):
        pytest.skip("the entry point and the extension have no examples to run")
    if not importable(name):
        pytest.skip(f"{name} needs a package that is not installed")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(wb.__file__).parent / "py.typed").exists()
