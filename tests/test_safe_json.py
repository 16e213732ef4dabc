"""Strict JSON, and paths that stay in their folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert._internal.safe_json import MAX_DEPTH, inside, parse_json, quoted
from wordpiece_bert.errors import ConfigError


@pytest.mark.parametrize("name", ["", "1_Pooling", "a/b", "./a", "a//b", "..a", "a."])
def test_plain_relative_paths_stay_inside(name: str) -> None:
    folder = Path("/models/one")
    assert inside(folder, name, "modules.json", ConfigError).is_relative_to(folder)


@pytest.mark.parametrize("name", ["..", "a/../..", "/etc", "//etc", "..\\x", "C:x", "C:\\x", "a\0b", "a/..", "../one"])
def test_paths_that_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^modules\.json: the path .* leaves the model folder"):
        inside(Path("/models/one"), name, "modules.json", ConfigError)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_counted_before_it_is_parsed(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    value = parse_json(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH, "x", ConfigError)
    for _ in range(MAX_DEPTH):
        value = value[0] if isinstance(value, list) else value["a"]
    assert value == 1
    with pytest.raises(ConfigError, match="nested 65 levels"):
        parse_json(opening * (MAX_DEPTH + 1) + b"1" + closing * (MAX_DEPTH + 1), "x", ConfigError)


def test_brackets_in_strings_do_not_count() -> None:
    text = ['"[' * 100, "\\", '\\"[[[', "]" * 100]
    assert parse_json(json.dumps(text).encode(), "x", ConfigError) == text


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 300_000, b'"' * 300_001, b'"' + b"\\" * 300_001])
def test_unterminated_strings_are_refused_in_linear_time(text: bytes) -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        parse_json(text, "x", ConfigError)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values, st.booleans())
def test_valid_json_is_parsed_as_by_python(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert parse_json(text, "x", ConfigError) == json.loads(text)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ 019eu-', max_size=60).map(str.encode))
def test_any_bytes_yield_a_value_or_the_error(data: bytes) -> None:
    try:
        value = parse_json(data, "x", ConfigError)
    except ConfigError as error:
        message = str(error)
    else:
        assert value == json.loads(data.removeprefix(b"\xef\xbb\xbf"))
        return
    assert message.startswith("x: ")


def test_untrusted_text_is_shown_escaped_and_short() -> None:
    assert quoted("a\n\x1b[31mé") == "'a\\n\\x1b[31m\\xe9'"
    assert len(quoted("x" * 10_000)) == 80
