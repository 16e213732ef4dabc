"""Results that do not fit memory, memory that is kept, threads, and arguments that the compiled core must refuse."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from processes import printed
from wordpiece_bert import _core
from wordpiece_bert.errors import InputError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and counts of Linux")

PROGRAM = """
import re, resource

import numpy as np
import wordpiece_bert as wb

tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "a", "the", "cat"])


def status(name):
    with open("/proc/self/status") as lines:
        return int(next(re.findall(r"\\d+", line)[0] for line in lines if line.startswith(name + ":")))


def error(call):
    try:
        call()
    except wb.WordPieceError as error:
        print(type(error).__name__, error)
    else:
        print("no error")
"""


def run(body: str) -> list[str]:
    """Run the program above with `body` after it, and return the lines that it prints."""
    return printed(PROGRAM + dedent(body), seconds=120)


LIMITED = "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"


@LINUX
@pytest.mark.parametrize(
    "call",
    [
        "tok.encode_batch(texts, padding=True)",
        "tok.encode_batch(texts, padding=True, threads=2)",
        "tok(texts, padding=True)",
        "tok.encodings(texts, padding=True)",
        "tok.encode_batch(texts, padding=True, return_offsets=True, return_word_ids=True)",
    ],
)
def test_a_padded_batch_that_does_not_fit_memory_is_an_error(call: str) -> None:
    (line,) = run(LIMITED + f"texts = ['a'] * 20_000 + ['a ' * 200_000]\nerror(lambda: {call})")
    assert line.startswith("InputError 20001 rows of up to 200002 tokens need ")
    assert line.endswith(
        "cannot be allocated; encode fewer texts at a time, or pass truncation=True with a smaller max_length"
    )


@LINUX
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "tok.encode_batch(['a'] * 1000, padding='max_length', max_length=2**24)",
            "1000 rows of up to 16777216 tokens",
        ),
        ("tok.encodings(['a'] * 10, padding='max_length', max_length=2**24)", "10 rows of up to 16777216 tokens"),
        (
            "tok.encode_batch(['a ' * 100_000], truncation=True, max_length=50_000, stride=49_997,"
            " return_overflowing_tokens=True)",
            "item 0: ",
        ),
        ("tok.encode('a ' * 100_000, truncation=True, max_length=50_000, stride=49_997).overflowing", ""),
    ],
)
def test_a_row_or_its_windows_that_do_not_fit_memory_are_an_error(call: str, message: str) -> None:
    (line,) = run(LIMITED + f"error(lambda: {call})")
    assert line.startswith(f"InputError {message}")
    assert "cannot be allocated" in line


@LINUX
def test_hidden_states_attention_weights_and_products_that_do_not_fit_memory_are_errors() -> None:
    lines = run("""
        from wordpiece_bert import _core
        from wordpiece_bert.bert import BertConfig
        from wordpiece_bert.bert.checkpoint import bert_shapes

        config = BertConfig(vocab_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                            intermediate_size=32, max_position_embeddings=2048)
        sizes = lambda shape: [getattr(config, size) if isinstance(size, str) else size for size in shape]
        model = wb.BertModel(config, {n: np.zeros(sizes(s), np.float32) for n, s in bert_shapes(config).items()})
        ids = np.ones((1000, 2048), np.int64)
        x = np.ones((100_000, 1), np.float32)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        error(lambda: model(ids, output_attentions=True))
        error(lambda: _core.dense(x, x, x[:, 0].copy(), "identity"))
    """)
    assert lines[0].startswith(
        "InputError attention weights of 1000 rows, [1000, 2, 2048, 2048], need 33554432000 bytes"
    )
    assert lines[1].startswith("InputError the outputs of a dense layer of 100000 rows, [100000, 100000], need")


@LINUX
def test_memory_of_a_huge_text_is_given_back() -> None:
    (kept,) = run("""
        tok.encode_ids("the cat")
        before = status("VmRSS")
        ids = tok.encode_ids("[MASK]" * 2_000_000)
        del ids
        print(status("VmRSS") - before)
    """)
    assert int(kept) < 16_000, "kB"


@LINUX
def test_calls_with_different_numbers_of_threads_share_them() -> None:
    new, processors = run("""
        import os
        before = status("Threads")
        texts = ["the cat " * 40] * 2000
        expected = tok.encode_batch(texts, threads=1).ids
        for threads in range(2, 33):
            assert np.array_equal(tok.encode_batch(texts, threads=threads).ids, expected)
        print(status("Threads") - before)
        print(len(os.sched_getaffinity(0)))
    """)
    assert int(new) == min(32, int(processors)) - 1


@LINUX
@pytest.mark.parametrize("suffix", ["npy", "jsonl", "arrow"])
def test_files_of_many_empty_texts_are_padded_in_blocks_of_bounded_size(suffix: str, tmp_path: Path) -> None:
    if suffix == "arrow":
        pytest.importorskip("pyarrow")
    texts, rows = (24_000, 2048) if suffix != "jsonl" else (2_500, 2048)
    (tmp_path / "x.txt").write_text("\n" * texts)
    lines = run(f"""
        import os
        {"import pyarrow, pyarrow.parquet" if suffix == "arrow" else ""}
        os.chdir({str(tmp_path)!r})
        tok.encode_ids("the cat")
        before = status("VmHWM")
        done = tok.encode_files("x.txt", "x.{suffix}", padding="max_length", truncation=True, max_length={rows})
        print(done.rows, done.tokens)
        print(status("VmHWM") - before)
    """)
    assert lines[0] == f"{texts} {texts * rows}"
    # All rows at once are 197 MB of ids, of which NumPy or Arrow would make further copies.
    assert int(lines[1]) < (140_000 if suffix != "jsonl" else 800_000), "kB"


def test_a_divided_block_gives_the_rows_locations_and_numbers_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("".join(f"the cat {'a ' * (i % 7)}\n" for i in range(200)))
    reader = _core.TextReader([tmp_path / "x.txt"], "\n", [], "strict", None)
    block = reader.next_block()
    assert block is not None
    texts = block.texts()
    for least, copies, most in [(1, 1, 10**9), (10, 1, 100), (1, 3, 50), (1, 1, 1)]:
        parts = block.parts(least, copies, most)
        assert [text for part in parts for text in part.texts()] == texts
        assert sum(map(len, parts)) == len(block)
        assert sum(part.bytes for part in parts) == block.bytes
        places = [part.location(i) for part in parts for i in range(len(part))]
        assert places == [block.location(i) for i in range(len(block))]
        for part in parts:
            sizes = [max(least, copies * len(text)) for text in part.texts()]
            assert sum(sizes) <= most or len(sizes) == 1
    with pytest.raises(InputError, match="text 2 of a block of 2"):
        block.parts(10, 1, 30)[0].location(2)


def test_arrays_by_columns_are_refused_instead_of_read_as_their_transpose() -> None:
    square = np.arange(4, dtype=np.float32).reshape(2, 2)
    bias = np.zeros(2, np.float32)
    expected = square @ square.T
    np.testing.assert_array_equal(_core.dense(square, square, bias, "identity"), expected)
    for x, weight in [(np.asfortranarray(square), square), (square, np.asfortranarray(square))]:
        with pytest.raises(InputError, match=r"an array \[2, 2\] is not stored row by row"):
            _core.dense(x, weight, bias, "identity")
    weight = ((np.asfortranarray(square), "float32"), bias)
    with pytest.raises(InputError, match="not stored row by row"):
        _core.PackedDense(["dense"], [weight], "float32")


def test_validity_of_arrow_strings_is_any_byte_but_zero() -> None:
    data, ends = np.frombuffer(b"abc", np.uint8), np.array([1, 2, 3])
    block = _core.TextBlock.from_arrow("x", 0, [(data, ends, np.array([1, 0, 2], np.uint8))], "skip")
    assert block.texts() == ["a", "c"]
    with pytest.raises(TypeError):  # a bool array can hold bytes that are not a Rust bool
        _core.TextBlock.from_arrow("x", 0, [(data, ends, np.array([True, False, True]))], "skip")  # type: ignore[list-item]


def test_a_subinterpreter_refuses_the_import_and_says_why() -> None:
    program = """
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import wordpiece_bert._core  # the first interpreter that imports it is the only one that can
        code = '''
        import sys
        sys.path[:] = PATH
        try:
            import wordpiece_bert._core
        except ImportError as error:
            print(error, flush=True)
        else:
            print("imported", flush=True)
        '''
        interpreters.run_string(interpreters.create(), textwrap.dedent(code).replace("PATH", repr(sys.path)))
        print(wordpiece_bert.Tokenizer.from_vocab(["[UNK]"]).encode_ids("x").tolist())
    """
    program = "import textwrap\n" + dedent(program)
    message = (
        "wordpiece_bert does not work in subinterpreters, and neither does NumPy: use threads or processes instead"
    )
    assert printed(program, seconds=60) == [message, "[0]"]


@LINUX
@pytest.mark.parametrize("algorithm", ["bpe", "likelihood", "top_down"])
@pytest.mark.parametrize("letters", ["a", "abcdefgh"])
def test_training_on_one_huge_word_takes_a_few_times_its_size(algorithm: str, letters: str, tmp_path: Path) -> None:
    path = tmp_path / "word.txt"
    path.write_bytes(
        np.frombuffer(letters.encode(), np.uint8)[np.random.default_rng(0).integers(0, len(letters), 1 << 23)]
    )
    (times,) = run(f"""
        import warnings
        from wordpiece_bert.training import train_vocab

        warnings.simplefilter("ignore")  # the vocabulary is too small
        before = status("VmHWM")
        vocab = train_vocab({str(path)!r}, 40, algorithm={algorithm!r})
        print((status("VmHWM") - before) * 1024 / (1 << 23))
    """)
    # Four bytes for each symbol, one for the text of the word, and what reading it took.
    assert float(times) < 8
