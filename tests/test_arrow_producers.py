"""Arrow columns of producers that break the rules: they are refused with the reason, and released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrow_producer as producer
from arrow_producer import Column, Columns, again, array, ends, schema, strings
from small_tokenizer import tokenizer
from wordpiece_bert.errors import InputError

UTF8, VIEW, LIST = schema(b"u"), schema(b"vu"), schema(b"+l", schema(b"u"))


def view(length: int, *rest: int) -> bytes:
    return ends(length, *rest).ljust(16, b"\0")


def cyclic(*, dictionary: bool = False) -> producer.Schema:
    """A list of a list of itself, or a dictionary of a dictionary of itself."""
    if dictionary:
        made = again(b"i")
        made.dictionary = producer.ctypes.pointer(made)
        return again(b"i", dictionary=made)
    made = again(b"+l", b"u")
    made.children[0] = producer.ctypes.pointer(made)
    return schema(b"+l", made)


LONG = b"longer than twelve bytes"
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no UTF-8": (
        lambda: Column(again(b"u"), strings(b"a", b"ab\xffc")),
        "item 1 is not valid UTF-8 from byte 2 on: repair the column",
    ),
    "no UTF-8, long": (
        lambda: Column(again(b"u"), strings(b"a" * 100 + b"\xe4\xb8" + b"b" * 100)),
        "item 0 is not valid UTF-8 from byte 100 on",
    ),
    "a character in two rows": (
        lambda: Column(again(b"u"), array(2, [None, ends(0, 1, 2), "é".encode()])),
        "item 0 is not valid UTF-8 from byte 0 on",
    ),
    "no UTF-8 in a view": (
        lambda: Column(again(b"vu"), array(1, [None, view(1, 255), ends()])),
        "item 0 is not valid UTF-8",
    ),
    "negative length": (lambda: Column(again(b"u"), strings(b"a", length=-1)), "an array has the length -1"),
    "negative offset": (lambda: Column(again(b"u"), strings(b"a", offset=-1)), "an array has the offset -1"),
    "impossible length": (lambda: Column(again(b"u"), strings(b"a", length=2**62)), "an array has the length 4611"),
    "impossibly many rows": (
        lambda: Column(again(b"n"), array(2**56, [])),
        f"^text has {2**56} rows, which do not fit into memory",
    ),
    "no buffers": (lambda: Column(again(b"u"), strings(b"a", buffers=None)), "an array of 1 rows has no buffer 1"),
    "few buffers": (lambda: Column(again(b"u"), strings(b"a", n_buffers=2)), "an array of 1 rows has no buffer 2"),
    "negative number of buffers": (lambda: Column(again(b"u"), strings(b"a", n_buffers=-3)), "has no buffer 1"),
    "no ends": (lambda: Column(again(b"u"), array(1, [None, None, b"a"])), "an array of 1 rows has no buffer 1"),
    "no bytes": (lambda: Column(again(b"u"), array(1, [None, ends(0, 1), None])), "an array of 1 rows has no buffer 2"),
    "falling ends": (
        lambda: Column(again(b"u"), array(2, [None, ends(0, 2, 1), b"ab"])),
        "item 0 .* from 0 to 2 in a buffer of length 1",
    ),
    "negative end": (
        lambda: Column(again(b"u"), array(1, [None, ends(0, -1), b"ab"])),
        "buffer 2 would have -1 bytes",
    ),
    "negative start": (
        lambda: Column(again(b"u"), array(1, [None, ends(-1, 1), b"ab"])),
        "item 0 .* from -1 to 1 in a buffer of length 1",
    ),
    "negative large end": (
        lambda: Column(again(b"U"), array(2, [None, ends(0, -5, 1, size=8), b"ab"])),
        "item 0 .* from 0 to -5 in a buffer of length 1",
    ),
    "nulls without bits": (
        lambda: Column(again(b"u"), strings(b"a", null_count=1)),
        "does not say which rows they are",
    ),
    "no format": (lambda: Column(again(b"u", format=None), strings(b"a")), "a type has no format"),
    "no text for a format": (lambda: Column(again(b"\xff"), strings(b"a")), "a type has no format"),
    "unknown format": (lambda: Column(again(b"?"), strings(b"a")), 'column of type "\\?" of the C data interface'),
    "list of nothing": (lambda: Column(again(b"+l"), strings(b"a")), "has no item type"),
    "list with children nowhere": (
        lambda: Column(again(b"+l", b"u", children=None), strings(b"a")),
        "has no item type",
    ),
    "list of a strange size": (
        lambda: Column(again(b"+w:-2", b"u"), strings(b"a")),
        'a list type has the format "\\+w:-2"',
    ),
    "list without items": (lambda: Column(again(b"+l", b"u"), array(1, [None, ends(0, 2)])), "an array has no child 0"),
    "list with items nowhere": (
        lambda: Column(again(b"+l", b"u"), array(1, [None, ends(0, 2)], strings(b"a", b"b"), children=None)),
        "an array has no child 0",
    ),
    "list beyond its items": (
        lambda: Column(again(b"+l", b"u"), array(1, [None, ends(0, 2)], strings(b"a"))),
        "item 0 .* from 0 to 2 in a buffer of length 1",
    ),
    "fixed lists beyond their items": (
        lambda: Column(again(b"+w:2", b"u"), array(2, [None], strings(b"a", b"b", b"c"))),
        "item 1 .* lists of 2 have only 3 items",
    ),
    "fixed lists beyond all items": (
        lambda: Column(again(b"+w:9999999999999", b"u"), array(1, [None], strings(b"a"), offset=2**40)),
        "item 0 .* lists of 9999999999999 have only 1 items",
    ),
    "table with types nowhere": (
        lambda: Column(again(b"+s", n_children=1), array(1, [None])),
        "column 0 of a table has no type",
    ),
    "table with less than nothing": (
        lambda: Column(again(b"+s", n_children=-1), array(1, [None])),
        "negative number of columns",
    ),
    "table without columns": (lambda: Column(again(b"+s", b"u"), array(1, [None])), "an array has no child 0"),
    "table with a short column": (
        lambda: Column(again(b"+s", b"u"), array(2, [None], strings(b"a"))),
        "column 0 has 1 rows, but 2 are needed",
    ),
    "dictionary without values": (
        lambda: Column(schema(b"i", dictionary=again(b"u")), array(1, [None, ends(0)])),
        "a dictionary has no values",
    ),
    "dictionary with a high index": (
        lambda: Column(schema(b"i", dictionary=again(b"u")), array(1, [None, ends(1)], dictionary=strings(b"a"))),
        "item 0 .* number 1 of a dictionary of 1",
    ),
    "dictionary with a negative index": (
        lambda: Column(schema(b"c", dictionary=again(b"u")), array(1, [None, b"\xff"], dictionary=strings(b"a"))),
        "item 0 .* number -1 of a dictionary of 1",
    ),
    "dictionary with an index beyond all numbers": (
        lambda: Column(
            schema(b"L", dictionary=again(b"u")), array(1, [None, ends(-1, size=8)], dictionary=strings(b"a"))
        ),
        "item 0 .* number -1 of a dictionary of 1",
    ),
    "dictionary with indices of another type": (
        lambda: Column(schema(b"f", dictionary=again(b"u")), array(1, [None, ends(0)], dictionary=strings(b"a"))),
        'the indices of a dictionary have the format "f"',
    ),
    "dictionary of itself": (
        lambda: Column(cyclic(dictionary=True), array(1, [None, ends(0)])),
        "a dictionary of a dictionary",
    ),
    "list of itself": (lambda: Column(cyclic(), array(1, [None, ends(0)])), "list<list<list<"),
    "view of no buffer": (
        lambda: Column(again(b"vu"), array(1, [None, view(24, 0, 1, 0), LONG, ends(24, size=8)])),
        "item 0 .* in buffer 1 of 1",
    ),
    "view of a negative buffer": (
        lambda: Column(again(b"vu"), array(1, [None, view(24, 0, -1, 0), LONG, ends(24, size=8)])),
        "item 0 .* in buffer -1 of 1",
    ),
    "view beyond its buffer": (
        lambda: Column(again(b"vu"), array(1, [None, view(24, 0, 0, 1), LONG, ends(24, size=8)])),
        "item 0 .* from 1 to 25 in a buffer of length 24",
    ),
    "view of negative length": (
        lambda: Column(again(b"vu"), array(1, [None, view(-1, 0, 0, 0), LONG, ends(24, size=8)])),
        "item 0 .* from 0 to -1 in a buffer of length 24",
    ),
    "views without lengths": (
        lambda: Column(again(b"vu"), array(1, [None, view(24, 0, 0, 0), LONG, None])),
        "an array of 1 rows has no buffer 3",
    ),
    "views with negative lengths": (
        lambda: Column(again(b"vu"), array(1, [None, view(24, 0, 0, 0), LONG, ends(-24, size=8)])),
        "buffer 2 would have -24 bytes",
    ),
    "released type": (
        lambda: Column(again(b"u", release=producer.RELEASE_SCHEMA()), strings(b"a")),
        '"arrow_schema" is empty',
    ),
    "released array": (
        lambda: Column(again(b"u"), strings(b"a", release=producer.RELEASE_ARRAY())),
        '"arrow_array" is empty',
    ),
    "released stream": (
        lambda: Columns(again(b"u"), [], release=producer.RELEASE_STREAM()),
        '"arrow_array_stream" is empty',
    ),
    "stream without functions": (
        lambda: Columns(again(b"u"), [], get_next=producer.GET_NEXT()),
        "a stream lacks its functions",
    ),
    "stream without a type": (lambda: Columns(producer.Schema(), []), "a stream has no type"),
    "stream that fails at once": (lambda: Columns(b"no such file", []), "text cannot be read: .*code 5: no such file"),
    "stream that fails later": (
        lambda: Columns(again(b"u"), [strings(b"a"), b"the disk is gone"]),
        "text cannot be read: .*code 5: the disk is gone",
    ),
    "stream that fails in silence": (
        lambda: Columns(b"x", [], get_last_error=producer.GET_LAST_ERROR()),
        "text cannot be read: .*code 5: no message",
    ),
    "stream with a bad part": (
        lambda: Columns(again(b"u"), [strings(b"a", b"b"), strings(b"c", b"\xff")]),
        "item 3 is not valid UTF-8",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_bad_columns_are_refused_and_released(make: Callable[[], Any], message: str) -> None:
    tok = tokenizer()
    for call in (tok.encode_batch, tok.encodings, lambda column: tok(column, padding=True)):
        column = make()
        with pytest.raises(InputError, match=message):
            call(column)
        if isinstance(column, Columns):
            assert not column.stream.release
        else:
            assert not column.kind.release
            assert not column.column.release or message == '"arrow_schema" is empty'


def test_capsules_of_another_kind_are_refused() -> None:
    class Given:
        def __init__(self, value: object) -> None:
            self.value = value

        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return self.value

    tok = tokenizer()
    kind, column = producer.capsule(schema(b"u"), b"arrow_schema"), producer.capsule(strings(b"a"), b"arrow_array")
    for wrong, message in [
        (None, "must return a tuple of two capsules"),
        ((kind,), "must return a tuple of two capsules"),
        ((kind, column, column), "must return a tuple of two capsules"),
        (("u", column), "a capsule \"arrow_schema\" was expected, not an object of <class 'str'>"),
        ((column, kind), 'a capsule "arrow_schema" was expected, not one with another name'),
        ((kind, 5), 'a capsule "arrow_array" was expected, not an object of'),
    ]:
        with pytest.raises(InputError, match=message):
            tok.encode_batch(Given(wrong))
    good = (producer.capsule(schema(b"u"), b"arrow_schema"), column)
    assert len(tok.encode_batch(Given(good))) == 1
    with pytest.raises(InputError, match='"arrow_schema" is empty: its content was released or has been taken before'):
        tok.encode_batch(Given(good))


def test_valid_columns_of_the_same_producer_are_read() -> None:
    tok = tokenizer()
    long = [LONG.decode(), "short"]
    views = view(24, 0, 0, 0) + view(5, *np.frombuffer(b"short\0\0\0", np.int32).tolist())
    for column, texts in [
        (Column(again(b"u"), strings(b"a", "é".encode())), ["a", "é"]),
        (Column(again(b"vu"), array(2, [None, views, LONG, ends(24, size=8)])), long),
        (Column(again(b"u"), array(0, [None, None, None])), []),  # old producers have no ends where there are no rows
        (Column(again(b"n"), array(0, [])), []),
        (Columns(again(b"u"), [strings(b"a"), strings(), strings(b"b", b"c", null_count=-1)]), ["a", "b", "c"]),
        (
            Column(schema(b"C", dictionary=again(b"u")), array(2, [None, b"\x01\x00"], dictionary=strings(b"a", b"b"))),
            ["b", "a"],
        ),
        (Column(again(b"u"), strings(b"x", b"a", b"b", length=2, offset=1)), ["a", "b"]),
    ]:
        assert tok.encode_batch(column).to_list() == tok.encode_batch(texts).to_list()
