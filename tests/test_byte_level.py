"""`ByteLevel`, the pre-tokenizer and the decoder: equal to the ones of `tokenizers`."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import wordpiece_bert as wb
from wordpiece_bert.errors import TokenizerFormatError

tokenizers = pytest.importorskip("tokenizers")
ALPHABET = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
# Every byte begins a word and continues it, so that no word is unknown; a few longer pieces cross characters.
LONGER = ["Ġthe", "##Ã©", "Ġð", "##ĺĢ", "it", "ĠĠ", "##ĠĠ", "'s", "##Ìģ", "ä¸Ń", "Ġa"]
VOCAB = {
    token: i for i, token in enumerate(["[UNK]", "[CLS]", "[SEP]", *ALPHABET, *(f"##{c}" for c in ALPHABET), *LONGER])
}

BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
NORMALIZERS: list[Any] = [
    None,
    BERT | {"strip_accents": None, "lowercase": True},
    BERT | {"strip_accents": False, "lowercase": False},
    {"type": "Lowercase"},
    {"type": "NFKC"},
    {"type": "NFD"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
    {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True}]},
    {"type": "Prepend", "prepend": "é "},
    {"type": "Replace", "pattern": {"String": "a"}, "content": " "},
]
BEFORE: list[Any] = [
    {"type": "BertPreTokenizer"},
    {"type": "Whitespace"},
    {"type": "WhitespaceSplit"},
    {"type": "Punctuation", "behavior": "MergedWithNext"},
    {"type": "Digits", "individual_digits": True},
    {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "MergedWithPrevious", "invert": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
]
ADDED = [
    {"id": len(VOCAB), "content": "<e>", "normalized": False, "lstrip": False, "rstrip": True},
    {"id": len(VOCAB) + 1, "content": "aé", "normalized": True, "lstrip": True, "rstrip": False},
]
TEXTS = st.one_of(
    st.text(
        st.sampled_from("aBt'sreld  \n\t\u00a0\u3000é1½٣.!中\u0301\u0323\U0001f600\u200d\U0001d400İ가<e>"), max_size=30
    ),
    st.lists(
        st.sampled_from(["it's", " don't", "  ", "the", " 12", "é", " \U0001f600", "<e>", "aé", "\r\n"]), max_size=12
    ).map("".join),
    strategies.texts,
)
byte_levels = st.fixed_dictionaries(
    {"type": st.just("ByteLevel"), "add_prefix_space": st.booleans(), "trim_offsets": st.booleans()},
    optional={"use_regex": st.booleans()},
)
pre_tokenizers = st.one_of(
    byte_levels,
    st.lists(st.one_of(byte_levels, st.sampled_from(BEFORE)), max_size=3).map(
        lambda steps: {"type": "Sequence", "pretokenizers": steps}
    ),
)


def tokenizer_json(**parts: Any) -> str:
    added = {"single_word": False, "special": False}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [added | token for token in ADDED],
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": VOCAB,
            },
        }
        | parts
    )


@functools.cache
def both(text: str) -> tuple[wb.Tokenizer, tokenizers.Tokenizer]:
    return wb.Tokenizer.from_json(text), tokenizers.Tokenizer.from_str(text)


@given(TEXTS, st.sampled_from(NORMALIZERS), pre_tokenizers)
def test_encodings_equal_those_of_tokenizers(text: str, normalizer: Any, pre_tokenizer: Any) -> None:
    ours, theirs = both(tokenizer_json(normalizer=normalizer, pre_tokenizer=pre_tokenizer))
    encoding, expected = ours.encode(text), theirs.encode(text)
    assert encoding.tokens == expected.tokens
    assert encoding.ids == expected.ids
    assert encoding.offsets == expected.offsets
    assert encoding.word_ids == expected.word_ids
    assert ours.encode_ids(text).tolist() == expected.ids
    assert ours.decode(encoding.ids) == theirs.decode(expected.ids)


@given(st.lists(st.one_of(st.sampled_from(sorted(VOCAB)), st.sampled_from(["<e>", "aé"])), max_size=12))
def test_decoding_equals_that_of_tokenizers(tokens: list[str]) -> None:
    # Also bytes that are not UTF-8, and added tokens, whose characters do not stand for bytes.
    decoder = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    word_piece = {"type": "WordPiece", "prefix": "##", "cleanup": False}
    for chosen in (decoder, {"type": "Sequence", "decoders": [word_piece, decoder]}):
        ours, theirs = both(tokenizer_json(decoder=chosen))
        ids = [theirs.token_to_id(token) for token in tokens]
        assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("pre_tokenizer", [True, False])
def test_files_are_read_and_written_as_by_tokenizers(pre_tokenizer: bool) -> None:
    component = {"type": "ByteLevel", "add_prefix_space": pre_tokenizer, "trim_offsets": not pre_tokenizer}
    ours, theirs = both(tokenizer_json(pre_tokenizer=component))
    assert json.loads(ours.to_json()) == json.loads(theirs.to_str())


def test_a_missing_field_is_named() -> None:
    with pytest.raises(TokenizerFormatError, match='pre_tokenizer: the field "add_prefix_space" is missing'):
        wb.Tokenizer.from_json(tokenizer_json(pre_tokenizer={"type": "ByteLevel", "trim_offsets": True}))
    with pytest.raises(TokenizerFormatError, match='post_processor: "ByteLevel" is not supported'):
        wb.Tokenizer.from_json(tokenizer_json(post_processor={"type": "ByteLevel"}))
