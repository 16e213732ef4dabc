"""What Python passes cannot break the process: texts that are none, shapes, memory that others write to, lost files, forks.

Where a fault would end the process, the code runs in one of its own.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vector_folders
import wordpiece_bert as wb
from processes import TESTS, printed
from small_tokenizer import tokenizer
from wordpiece_bert import _core
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.pretraining import build_examples, build_token_store
from wordpiece_bert.sentence import MultiVectors

pyarrow = pytest.importorskip("pyarrow")


def run(code: str, *arguments: object, seconds: float = 120) -> str:
    """Run code in a process of its own, which must end well; return what it prints."""
    return "\n".join(printed(code, *arguments, seconds=seconds, cwd=TESTS))


# --- texts


def bad(*numbers: int) -> str:
    """A str with numbers that need not be characters, as NumPy makes it."""
    return str(np.array(numbers, np.uint32).view(f"<U{len(numbers)}").tolist()[0])


#: 0x20AC01 gets four bytes that are not UTF-8, and 0x1010041 gets the bytes of U+10041; and one after characters of
#: each width.
TEXTS = {
    (0x20AC01, 1): bad(0x61, 0x20AC01),
    (0x1010041, 1): bad(0x61, 0x1010041),
    (0x110000, 73): bad(*b"x" * 70, 0xE9, 0x4E2D, 0x1F600, 0x110000, 0x62),
}
TOK = tokenizer()

CALLS: dict[str, Callable[[str], object]] = {
    "call": lambda text: TOK(text),
    "batch": lambda text: TOK(["a", text]),
    "pair": lambda text: TOK("a", text),
    "pairs": lambda text: TOK(["a"], [text]),
    "words": lambda text: TOK(["a", text], is_split_into_words=True),
    "encode": lambda text: TOK.encode(text),
    "ids": lambda text: TOK.encode_ids(text),
    "encodings": lambda text: TOK.encode_batch([text], threads=2),
    "array": lambda text: TOK(np.array(["a", text])),
    "array of objects": lambda text: TOK(np.array(["a", text], object)),
    "token": lambda text: TOK.token_to_id(text),
    "tokens": lambda text: TOK.convert_tokens_to_string([text]),
    "words of a text": lambda text: TOK._inner.words(text),
    "added token": lambda text: TOK.with_added_tokens([text]),
    "list": lambda text: wb.Tokenizer.from_vocab(["[UNK]", text, text]),
    "dict": lambda text: wb.Tokenizer.from_vocab({"[UNK]": 0, text: 1}),
    "unk_token": lambda text: wb.Tokenizer.from_vocab(["[UNK]"], unk_token=text),
    "prefix": lambda text: wb.Tokenizer.from_vocab(["[UNK]"], continuing_subword_prefix=text),
    "json": lambda text: _core.Tokenizer.from_json(text),
    "counts": lambda text: wb.WordCounts.from_texts([text]),
    "special token": lambda text: wb.train_vocab(["a b"], 50, special_tokens=["[UNK]", text]),
    "alphabet": lambda text: wb.train_vocab(["a b"], 50, initial_alphabet=[text]),
    "padding": lambda text: TOK._inner.with_settings(None, {**TOK.with_padding()._inner.padding, "pad_token": text}),
    "metric": lambda text: _core.search_floats(*[np.ones((1, 2), np.float32)] * 2, text, 1, None, None),
    "activation": lambda text: _core.dense(*[np.ones((2, 2), np.float32)] * 2, np.ones(2, np.float32), text),
    "instruction set": lambda text: TOK._inner.with_instruction_set(text),
    "column": lambda text: _core.TextReader([None], "\n", [], "strict", None, columns=[text]),
    "errors": lambda text: _core.TextReader([None], "\n", [], text, None),
    "separator": lambda text: _core.TextReader([None], text, [], "strict", None),
    "place": lambda text: _core._panic(b"", text),
    "document": lambda text: _core.text_document_id(text),
    "sentences": lambda text: _core.split_sentences(text, None),
    "abbreviations": lambda text: _core.split_sentences("a", [text]),
    "name of a column": lambda text: wb.ArrowTable(
        {text: np.arange(2, dtype=np.uint32)}, np.arange(3)
    ).__arrow_c_schema__(),
}


@pytest.mark.parametrize(("number", "place"), TEXTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_number_that_is_no_character_is_refused_wherever_a_str_is_taken(call: str, number: int, place: int) -> None:
    with pytest.raises(WordPieceError, match=rf"the number {number:#x} at position {place}, which is not a character"):
        CALLS[call](TEXTS[number, place])


def test_characters_of_every_width_are_taken(tmp_path: Path) -> None:
    for text in ["", "a", "é", "中", "\U0001f600", "\U0010ffff", "a" * 31 + "é中\U0001f600" * 40]:
        token = text or "[PAD]"
        tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]", *{token} - {"[PAD]"}], lowercase=False)
        assert tok.id_to_token(tok.token_to_id(token)) == token
        assert tok.encode(text).tokens == tok.encode(np.array([text]).tolist()[0]).tokens


def test_messages_show_objects_whose_repr_is_no_text() -> None:
    class Odd:
        def __repr__(self) -> str:
            return bad(0x61, 0x20AC01)

    with pytest.raises(InputError, match="Odd a�"):
        TOK.encode(Odd())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a�"):
        wb.set_num_threads(Odd())  # type: ignore[arg-type]


# --- shapes and sizes


@pytest.mark.parametrize("width", [0, 1, 3])
def test_pairs_of_offsets_have_two_numbers(width: int) -> None:
    offsets = np.zeros((4, width), np.int64)
    table = wb.ArrowTable({"offsets": offsets}, np.array([0, 4]))
    for export in (table.__arrow_c_schema__, table.__arrow_c_array__, table.__arrow_c_stream__):
        with pytest.raises(InputError, match=rf"offsets is an array of int64 \[4, {width}\].*\[tokens, 2\]"):
            export()


def test_rows_that_change_after_an_export_do_not_lead_out_of_it() -> None:
    row_offsets = np.array([0, 2, 3])
    column = pyarrow.array(wb.ArrowTable({"ids": np.arange(3, dtype=np.uint32)}, row_offsets))
    row_offsets[:] = 10**9
    assert column.to_pylist() == [{"ids": [0, 1]}, {"ids": [2]}]


def test_offsets_outside_of_the_vectors_are_refused_before_memory_is_allocated() -> None:
    vectors = np.ones((3, 2), np.float32)
    for ends in ([0, 2**31], [0, 2**62], [-1, 3], [0, 2, 1], [0, 4], []):
        wrong = (vectors, np.array(ends, np.int64))
        right = (vectors, np.array([0, 3]))
        for queries, documents in ((wrong, right), (right, wrong)):
            for score in (_core.maxsim, _core.maxsim_pairwise):
                with pytest.raises(InputError, match="offsets"):
                    score(queries, documents, 1)


def test_an_array_of_strings_with_numbers_beyond_unicode_is_an_input_error() -> None:
    odd = np.array([0x61, 0x61, 0x110000, 0x61], np.uint32).view("<U1")
    for texts in (odd[::2], odd.reshape(2, 2), odd.byteswap().view(odd.dtype.newbyteorder()), [odd]):
        with pytest.raises(InputError, match="not a character"):
            tokenizer().encode_batch(texts)
    for numbers in ([0x61, 0x110000], [0xD800, 0x20AC01]):
        texts = np.array(numbers, np.uint32).view("<U1")
        with pytest.raises(InputError, match=f"item 1 of .* has the number {numbers[1]:#x} at position 0, which"):
            tokenizer().encode_batch(texts)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit of memory")
def test_an_array_of_strings_for_which_there_is_no_memory_is_an_input_error() -> None:
    code = """
        import resource
        import numpy as np
        from small_tokenizer import tokenizer
        from wordpiece_bert.errors import InputError
        tok = tokenizer()
        tok("a")
        texts = np.zeros(1 << 26, "<U16")  # 4 GB, of which no page exists
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20), -1))
        try:
            tok.encode_batch(texts)
        except InputError as error:
            print(error)
    """
    assert "an array of 67108864 strings of up to 16 characters, for which there is not enough memory" in run(code)


def test_windows_of_a_template_of_many_texts_are_counted_before_they_are_made() -> None:
    """Rows are nested in each other, five texts hundreds of times as often as two."""
    content = json.loads(tokenizer().to_json())
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    template = {"type": "TemplateProcessing", "single": [piece] * 5, "pair": [piece], "special_tokens": {}}
    tok = wb.Tokenizer.from_json(json.dumps(content | {"post_processor": template}))
    assert len(tok.encode("a a", truncation=True, max_length=1).overflowing) == 31
    with pytest.raises(InputError, match=r"3200000 rows of up to 5 tokens need \d{13} bytes of memory"):
        _ = tok.encode("a " * 20, truncation=True, max_length=1).overflowing


# --- memory that others write to


def test_arrow_texts_that_change_while_they_are_encoded_do_no_harm() -> None:
    """All that is ever written is UTF-8, so a check before the texts are used finds nothing; what is read is halves."""
    code = """
        import threading
        import numpy as np
        import pyarrow as pa
        import wordpiece_bert as wb
        from small_tokenizer import tokenizer
        from wordpiece_bert.errors import InputError
        rows, size = 40, 600
        text = bytearray(b"a, !" * (rows * size // 4))
        ends = np.arange(rows + 1, dtype=np.int32) * size
        column = pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(text))
        stop = threading.Event()
        def write():
            at = np.frombuffer(text, np.uint8)
            forms = ["a, !" * 3, "中" * 4, "é" * 6, "\U0001f600" * 3, "각" * 4, "x" * 12]
            forms = [np.frombuffer(form.encode() * (len(text) // 12), np.uint8) for form in forms]
            while not stop.is_set():
                for form in forms:
                    at[:] = form
        thread = threading.Thread(target=write)
        thread.start()
        tok = tokenizer()
        done = refused = 0
        try:
            for i in range(300):
                for call in (
                    lambda: tok.encode_batch(column, threads=1 + i % 2, return_offsets=True),
                    lambda: tok(column),
                    lambda: wb.WordCounts.from_texts(column),
                ):
                    try:
                        call()
                        done += 1
                    except InputError:
                        refused += 1
        finally:
            stop.set()
            thread.join()
        print(done + refused)
    """
    assert run(code).strip() == "900"


def test_a_block_is_made_of_the_bytes_that_were_checked() -> None:
    code = """
        import threading
        import numpy as np
        from wordpiece_bert import _core
        from wordpiece_bert.errors import InputError
        data = np.full(1 << 20, 0x61, np.uint8)
        ends = np.arange(1, 257) * (1 << 12)
        stop = threading.Event()
        def write():
            while not stop.is_set():
                data[:] = 0xFF
                data[:] = 0x61
        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(100):
                try:
                    block = _core.TextBlock.from_arrow("x", 0, [(data, ends, None)], "strict")
                    for text in block.texts():
                        text.encode()
                except InputError:
                    pass
        finally:
            stop.set()
            thread.join()
    """
    run(code)


# --- files that others shorten


def refused(code: str, *arguments: object) -> None:
    """Run code that shortens a file and then uses it."""
    out = run("from wordpiece_bert.errors import InputError\n" + textwrap.dedent(code), *arguments)
    assert "another program has shortened it" in out, out


def test_search_in_a_folder_of_vectors_whose_file_was_shortened_is_an_input_error(tmp_path: Path) -> None:
    rows: Any = {f"text {i}": (f"text {i}", None) for i in range(2000)}
    vector_folders.write(tmp_path / "vectors", rows)
    code = """
        import os, sys
        import numpy as np
        from pathlib import Path
        from wordpiece_bert.sentence import open_vectors
        folder = open_vectors(sys.argv[1])
        query = np.ones((1, 12), np.float32)
        folder.search_vectors(query)
        for file in Path(sys.argv[1]).rglob("*.parquet"):
            os.truncate(file, 4096)
        for use in (lambda: folder.search_vectors(query), lambda: list(folder.batches())):
            try:
                use()
            except InputError as error:
                print(error)
    """
    refused(code, tmp_path / "vectors")


def test_search_in_a_mapped_array_whose_file_was_shortened_is_an_input_error(tmp_path: Path) -> None:
    code = """
        import os, sys
        import numpy as np
        from wordpiece_bert import util
        from wordpiece_bert.sentence import quantize_embeddings, semantic_search, similarity
        np.save(sys.argv[1], np.ones((5000, 16), np.float32))
        corpus = np.load(sys.argv[1], mmap_mode="r")[1000:]
        query = np.ones((1, 16), np.float32)
        semantic_search(query, corpus)
        os.truncate(sys.argv[1], 4096)
        for use in (
            lambda: semantic_search(query, corpus),
            lambda: semantic_search(corpus, query),
            lambda: similarity(query, corpus),
            lambda: quantize_embeddings(corpus, "int8"),
            lambda: util.normalize_embeddings(corpus),
            lambda: util.paraphrase_mining_embeddings(corpus),
            lambda: util.community_detection(corpus),
        ):
            try:
                use()
            except InputError as error:
                assert "another program has shortened it" in str(error), error
            else:
                sys.exit("it was read")
        print("another program has shortened it")
    """
    refused(code, tmp_path / "corpus.npy")


def test_token_vectors_whose_file_was_shortened_are_an_input_error(tmp_path: Path) -> None:
    MultiVectors(np.ones((5000, 8), np.float32), np.arange(5001)).save(tmp_path / "many")
    code = """
        import os, sys
        from wordpiece_bert.sentence import MultiVectors, maxsim
        many = MultiVectors.load(sys.argv[1])
        one = many[0]
        maxsim([one], many)
        other = MultiVectors.load(sys.argv[1])
        os.truncate(sys.argv[1] + "/vectors.npy", 4096)
        for a, b in (([one.copy() * 0], many), (other, [one]), ([one], other)):
            try:
                maxsim(a, b)
            except InputError as error:
                assert "another program has shortened it" in str(error), error
            else:
                sys.exit("it was compared")
        print("another program has shortened it")
    """
    refused(code.replace("one = many[0]", "one = many[0].copy()"), tmp_path / "many")


def test_tokens_and_rows_for_pre_training_whose_file_was_shortened_are_an_input_error(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat.\na cat sat.\n\n" * 6000)
    store = build_token_store(tokenizer(), text, tmp_path / "store")
    build_examples(store, tmp_path / "rows", tokenizer(), objective="sop", max_length=16)
    code = """
        import os, sys
        from pathlib import Path
        from wordpiece_bert.pretraining import PretrainingDataset, TokenStore
        def use():
            [shard] = store.shards
            shard.document_ids
            for number in range(shard.documents):
                shard.document(number)
            dataset.batch(range(len(dataset)))
        for file in sorted(Path(sys.argv[1]).glob("*/*.npy")):
            content = file.read_bytes()
            assert len(content) > 4096, file
            store, dataset = (opened(file.parents[1] / name) for opened, name in
                              ((TokenStore, "store"), (PretrainingDataset, "rows")))
            use()
            os.truncate(file, 4096)
            for call in (use, use):
                try:
                    call()
                except InputError as error:
                    assert str(error).startswith(f"{file}: has 4,096 bytes"), error
                else:
                    sys.exit(f"{file} was read")
            try:
                (TokenStore if file.parent.name == "store" else PretrainingDataset)(file.parent).verify()
            except InputError as error:
                assert f"{file}: 4,096 bytes, but " in str(error), error
            else:
                sys.exit(f"{file} was opened")
            file.write_bytes(content)
        print("another program has shortened it")
    """
    refused(code, tmp_path)


def test_maps_are_found_behind_any_view(tmp_path: Path) -> None:
    from wordpiece_bert._internal.mapped_files import map_of, require_whole

    np.save(tmp_path / "a.npy", np.arange(10_000.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for view in (
        mapped,
        mapped[5:],
        np.asarray(mapped)[::2],
        np.frombuffer(memoryview(mapped)),
        mapped.reshape(100, -1).T,
    ):
        require_whole(view)
        found = map_of(view)
        assert found is not None
        assert found[1] == (tmp_path / "a.npy").stat().st_size
    require_whole(np.arange(3))
    assert map_of(np.arange(3)) is None


# --- processes


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


@needs_fork
def test_a_child_that_a_signal_handler_forks_during_a_threaded_call_ends_with_an_error() -> None:
    code = """
        import os, signal, sys, time
        from small_tokenizer import tokenizer
        from wordpiece_bert.errors import InputError
        tok = tokenizer()
        texts = ["cat sat on the mat, " * 300] * 3000
        expected = tok.encode_batch(texts, threads=2).ids
        children = []
        def fork(*_):
            if not children and os.getpid() == parent:
                pid = os.fork()
                if pid:
                    children.append(pid)
        parent = os.getpid()
        signal.signal(signal.SIGALRM, fork)
        signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
        try:
            while not children and os.getpid() == parent:
                found = tok.encode_batch(texts, threads=2).ids
        except InputError as error:
            assert os.getpid() != parent and "forked" in str(error), error
            tok.encode_batch(texts[:100], threads=2)  # with threads of its own
            os._exit(7)
        if os.getpid() != parent:
            os._exit(8)  # between two calls, or on the main thread alone
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert (found == expected).all()
        for _ in range(600):
            pid, status = os.waitpid(children[0], os.WNOHANG)
            if pid:
                break
            time.sleep(0.05)
        else:
            os.kill(children[0], signal.SIGKILL)
            sys.exit("the child hangs")
        print(os.waitstatus_to_exitcode(status))
    """
    assert int(run(code)) in (7, 8)


@needs_fork
def test_a_child_that_is_forked_while_a_thread_trains_a_vocabulary_trains_and_tokenizes() -> None:
    code = """
        import os, signal, sys, threading, time
        from small_tokenizer import tokenizer
        from wordpiece_bert.training import train_vocab
        texts = ["the cat number %d sat on mat %d" % (n, n * n) for n in range(4000)]
        tok, stop, trained = tokenizer(), threading.Event(), []
        def result():
            return train_vocab(texts, 500, threads=2).tokens, tok.encode_batch(texts, threads=2).ids.tolist()
        def train():
            while not stop.is_set():
                trained.append(result())
        expected = result()
        thread = threading.Thread(target=train)
        thread.start()
        for number in range(6):
            time.sleep(0.005 * number)
            pid = os.fork()
            if not pid:
                os._exit(7 if result() == expected else 1)
            for _ in range(600):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    break
                time.sleep(0.05)
            else:
                os.kill(pid, signal.SIGKILL)
                stop.set()
                sys.exit("the child hangs")
            assert os.waitstatus_to_exitcode(status) == 7, status
        stop.set()
        thread.join()
        print(all(one == expected for one in trained))
    """
    assert run(code).strip() == "True"


@needs_fork
def test_a_child_that_is_forked_while_a_name_is_imported_can_import_it() -> None:
    code = """
        import os, signal, sys, threading, time
        import wordpiece_bert as wb
        began = threading.Event()
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "wordpiece_bert.tokenizer.tokenizer" and threading.current_thread() is not threading.main_thread():
                    began.set()
                    time.sleep(0.5)
        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=lambda: wb.Tokenizer)
        thread.start()
        began.wait()
        pid = os.fork()
        if not pid:
            wb.Tokenizer
            os._exit(7)
        thread.join()
        for _ in range(400):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            time.sleep(0.05)
        else:
            os.kill(pid, signal.SIGKILL)
            sys.exit("the child hangs")
        print(os.waitstatus_to_exitcode(status))
    """
    assert run(code).strip() == "7"


# --- expressions and ids


def test_an_expression_that_takes_too_many_steps_is_an_error_that_names_it() -> None:
    import json

    definition = json.loads(tokenizer().to_json())
    definition["pre_tokenizer"] = {
        "type": "Split", "pattern": {"Regex": "(?=(a+)+b)a"}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip
    tok = wb.Tokenizer.from_json(json.dumps(definition))
    assert tok.encode("aaa").tokens
    with pytest.raises(InputError, match=r"the pattern \"\(\?=\(a\+\)\+b\)a\" failed on this text: it takes more than"):
        tok.encode("a" * 100_000)


_DOUBLED = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit of memory")
@pytest.mark.parametrize(
    ("options", "normalizer", "text"),
    [({"padding": 1 << 20}, None, "cat " * 4000), ({}, {"type": "Sequence", "normalizers": [_DOUBLED] * 40}, "cat")],
    ids=["padded windows", "replacements"],
)
def test_memory_that_a_file_asks_for_is_an_error_where_it_cannot_be_had(
    options: dict[str, int], normalizer: Any, text: str, tmp_path: Path
) -> None:
    import json

    tok = tokenizer()
    if options:
        tok = tok.with_truncation(max_length=3).with_padding("max_length", max_length=options["padding"])
    definition = json.loads(tok.to_json())
    definition["normalizer"] = normalizer or definition["normalizer"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
    code = """
        import resource, sys
        import wordpiece_bert as wb
        from wordpiece_bert.errors import WordPieceError
        wb.Tokenizer.from_vocab(["[UNK]"]).encode("a")
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), -1))
        try:
            _ = wb.Tokenizer.from_file(sys.argv[1]).encode(sys.argv[2]).overflowing
        except WordPieceError as error:
            print("refused", error)
    """
    assert run(code, tmp_path / "tokenizer.json", text).startswith("refused ")


def test_an_id_whose_successor_does_not_fit_32_bits_is_refused_on_loading() -> None:
    import json

    definition = json.loads(tokenizer().to_json())
    definition["model"]["vocab"]["far"] = 2**32 - 1
    with pytest.raises(WordPieceError, match='"far" has the id 4294967295; the largest id is 4294967294'):
        wb.Tokenizer.from_json(json.dumps(definition))
    with pytest.raises(WordPieceError, match='"far" has the id 4294967295; the largest id is 4294967294'):
        wb.Tokenizer.from_vocab({"[UNK]": 0, "far": 2**32 - 1})
