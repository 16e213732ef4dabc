"""What a process imports before it asks for an array, and what happens when NumPy cannot be had then.

Each test runs a process of its own: NumPy is imported once in a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

import pytest

import wordpiece_bert as wb
from wordpiece_bert._internal.parameters import cleaned

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "new", "york", "##er"]
START = f"""
import sys
import wordpiece_bert as wb
tok = wb.Tokenizer.from_vocab({VOCAB!r})
"""
#: An import of NumPy that fails, as where it is not installed.
WITHOUT_NUMPY = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
sys.meta_path.insert(0, Nothing())
"""


def run(program: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "PanicException" not in done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    wb.Tokenizer.from_vocab(VOCAB).with_truncation(max_length=4).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "call",
    [
        "tok",
        "wb.Tokenizer.from_file(sys.argv[1] + '/tokenizer.json')",
        "wb.Tokenizer.from_pretrained(sys.argv[1])",
        "wb.Tokenizer.from_vocab(sys.argv[1] + '/vocab.txt')",
        "[getattr(tok.encode('New Yorker', 'new'), n) for n in ('ids', 'tokens', 'offsets', 'word_ids', 'attention_mask')]",
        "tok.encode('New Yorker', truncation=True, max_length=4, padding='max_length').overflowing",
        "tok.encode(['new', 'Yorker'], is_split_into_words=True).ids",
        "tok.encodings(['new', ('new', 'york')])",
        "wb.Tokenizer.from_file(sys.argv[1] + '/tokenizer.json').encodings(['new york new york'])",
        "(tok.tokenize('New Yorker'), tok.decode([2, 5, 6, 7, 3]), tok.decode_batch([[2, 5], [6]]), tok.count_tokens)",
        "(tok.convert_ids_to_tokens([5, 6]), tok.convert_ids_to_tokens(5), tok.convert_tokens_to_ids(['new']))",
        "(tok.get_vocab(), tok.added_tokens, tok.all_special_ids, tok.to_json(), tok.fingerprint, repr(tok), tok == tok)",
        "tok.with_added_tokens(['[NAME]'], special=True).save_pretrained(sys.argv[1] + '/again')",
        "__import__('copy').deepcopy(tok), __import__('pickle').loads(__import__('pickle').dumps(tok)) == tok",
        "wb.train_vocab(['new york new yorker'], vocab_size=30)",
    ],
)
def test_calls_without_arrays_do_not_import_numpy(call: str, model: Path) -> None:
    assert run(
        f"{START}\nfrom warnings import simplefilter; simplefilter('ignore')\n{call}\nprint('numpy' in sys.modules)",
        str(model),
    ) == ["False"]


def test_what_takes_long_to_import_and_is_not_used_is_not_imported() -> None:
    # Python itself may import some: a .pth file of another package does.
    names = ("numpy", "inspect", "logging", "dataclasses", "json", "pathlib")
    program = f"{START}\ntok.encode('New Yorker')\nprint([name for name in {names} if name in sys.modules])"
    assert run(program) == run(f"import sys\nprint([name for name in {names} if name in sys.modules])")


def test_annotations_are_not_compiled_from_strings() -> None:
    # typing does so for named tuples, typed dicts, unions and bounds, in two milliseconds before the first text.
    program = """
import builtins
plain, compiled = builtins.compile, []
def noted(source, *arguments, **options):
    if isinstance(source, str):  # modules without a .pyc are bytes
        compiled.append(source)
    return plain(source, *arguments, **options)
builtins.compile = noted
from wordpiece_bert import Tokenizer
print(compiled)
"""
    assert run(program) == ["[]"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["train", "TEXTS", "--vocab-size", "30", "-o", "OUT.txt"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_without_arrays_do_not_import_numpy(arguments: list[str], model: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("new york\nnew yorker\n", encoding="utf-8")
    words = {"MODEL": str(model), "TEXTS": str(texts)}
    given = [words.get(one, one.replace("OUT", str(tmp_path / "out"))) for one in arguments]
    program = """
    import contextlib, io, json, sys
    from wordpiece_bert.cli import main
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        assert not main(json.loads(sys.argv[1]))
    print("numpy" in sys.modules)
    """
    assert run(dedent(program), json.dumps(given)) == ["False"]


def test_the_first_array_imports_numpy_and_the_stub_names_are_there() -> None:
    program = f"""{START}
from wordpiece_bert import _core
print("numpy" in sys.modules)
print(tok.encode_ids("new york").tolist(), "numpy" in sys.modules)
print(_core.BertEncoder.__module__, "BertEncoder" in vars(_core))
try:
    _core.nothing
except AttributeError as error:
    print(error)
"""
    assert run(program) == [
        "False",
        "[2, 5, 6, 3] True",
        "wordpiece_bert._core True",
        "module 'wordpiece_bert._core' has no attribute 'nothing'",
    ]


@pytest.mark.parametrize(
    "call",
    [
        "tok.encode_ids('new')",
        "tok.encode_batch(['new'])",
        "tok(['new'])",
        "__import__('wordpiece_bert._core')._core.search_floats",
        "__import__('wordpiece_bert._core')._core.BertEncoder",
    ],
)
def test_numpy_that_cannot_be_imported_is_a_typed_error_and_tried_again(call: str) -> None:
    program = f"""{WITHOUT_NUMPY}{START}
for _ in range(2):
    try:
        {call}
    except wb.errors.MissingPackageError as error:
        print(isinstance(error, ImportError), "pip install" in str(error))
print(tok.encode("new york").ids)
sys.meta_path.pop(0)
{call}
print("numpy" in sys.modules)
"""
    assert run(program) == ["True True", "True True", "[2, 5, 6, 3]", "True"]


@pytest.mark.parametrize("where", ["import numpy", "numpy.lib.NumpyVersion"])
@pytest.mark.parametrize("call", ["tok.encode_ids('new')", "tok(['new'])", "_core.dense"])
def test_ctrl_c_during_the_first_array_is_no_panic(where: str, call: str) -> None:
    """NumPy's functions are fetched by Python code, in which Ctrl-C raises."""
    program = f"""{START}
from wordpiece_bert import _core
class Interrupted:
    def __init__(self, *_):
        raise KeyboardInterrupt
if {where!r} == "import numpy":
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "numpy":
                raise KeyboardInterrupt
    sys.meta_path.insert(0, Finder())
else:
    import numpy.lib
    original, numpy.lib.NumpyVersion = numpy.lib.NumpyVersion, Interrupted
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
if {where!r} == "import numpy":
    sys.meta_path.pop(0)
else:
    numpy.lib.NumpyVersion = original
{call}
print(tok.encode_ids("new york").tolist())
"""
    assert run(program) == ["interrupted", "[2, 5, 6, 3]"]


def test_threads_race_to_the_first_array() -> None:
    program = f"""{START}
import threading
sys.setswitchinterval(1e-6)
barrier, found = threading.Barrier(8), []
def work(number):
    barrier.wait()
    found.append(tok.encode_ids("new york").tolist() if number % 2 else tok(["new york"])["input_ids"][0].tolist())
threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(120)
print(found == [[2, 5, 6, 3]] * 8)
"""
    assert run(program) == ["True"]


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_thread_imports_numpy_has_arrays() -> None:
    program = f"""{START}
import os, threading, time
from wordpiece_bert import _core
begun = threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.linalg":
            begun.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=tok.encode_ids, args=["new"])
thread.start()
assert begun.wait(60)
child = os.fork()
if not child:
    os._exit(0 if tok.encode_ids("new york").tolist() == [2, 5, 6, 3] else 1)
thread.join(60)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
print(done == child, status)
"""
    assert run(program) == ["True 0"]


def test_docstrings_lose_their_indentation_as_with_inspect() -> None:
    for name in ("encode", "encode_batch", "decode", "__call__", "iter_files", "from_vocab"):
        text = getattr(wb.Tokenizer, name).__doc__
        assert cleaned(text) == cleandoc(text)
    for text in ("", "One.", "One.\n\n    Two\n      three.\n\n    ", "\n    One.\n\tTwo.\n", "  One.\n  Two."):
        assert cleaned(text) == cleandoc(text)
