"""Hypothesis strategies: texts and vocabularies over tiny alphabets, and texts over all of Unicode.

Bugs of a WordPiece matcher show in words that the vocabulary almost covers. With an alphabet of two or three letters
nearly every word is like that, with all of Unicode hardly any. So there are texts of both kinds, and a vocabulary is
generated from the alphabet of its texts.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Each has characters for one rule: order of marks, gaps, ideographs, case mappings that change the length, ...
ALPHABETS = [
    "ab",
    "abc ",
    "aA b",
    "ab\u0301\u0316e",  # marks that are reordered
    "a\u00e9\u0130\u1e9e\u03a3",  # case and decomposition change lengths
    "a\u4e2d\uf900 b",  # ideographs, one of which decomposes
    "\uac00\u1100\u1161\u11a8a",  # Hangul
    "a.-'$ b",
    "a\u00ad\u200b\ufeffb ",  # removed by cleaning
    "\u0f73\u0f71\u0f75\u0301\u0344a",  # marks that decompose
    "a1\u00bd\u0663 ",
    "a_\u0301b\u200d-",  # word characters
    "\t\n\x0b\x85 a\u3000",
    "#a b",
    "[]SEPMASK a",
    "\U0001f600\U00020000a\U000e0001",
]

scalars = st.characters(exclude_categories=["Cs"])
# Mostly relevant characters: letters with case and marks, punctuation, spaces, controls.
interesting = st.one_of(
    st.integers(0, 0x24F).map(chr),
    st.integers(0x300, 0x36F).map(chr),
    st.integers(0x1E00, 0x206F).map(chr),
    st.integers(0x3000, 0x30FF).map(chr),
    st.integers(0xAC00, 0xAC40).map(chr),
    scalars,
)
unicode_texts = st.text(st.one_of(interesting, st.sampled_from("ab \u0301")), max_size=40)


def texts_over(alphabet: str, max_size: int = 24) -> st.SearchStrategy[str]:
    """Texts over the characters of an alphabet."""
    return st.text(st.sampled_from(alphabet), max_size=max_size)


texts = st.one_of(st.sampled_from(ALPHABETS).flatmap(texts_over), unicode_texts)


@st.composite
def vocabularies(draw: st.DrawFn, alphabet: str, prefix: str = "##") -> list[str]:
    """The special tokens and a few pieces of one to four characters, in a random order."""
    letters = st.sampled_from(alphabet.replace(" ", "") + alphabet.lower().replace(" ", ""))
    pieces = draw(st.lists(st.tuples(st.text(letters, min_size=1, max_size=4), st.booleans()), max_size=12))
    tokens = dict.fromkeys(SPECIAL)
    tokens.update(dict.fromkeys(prefix + piece if inner else piece for piece, inner in pieces))
    return draw(st.permutations(list(tokens)))


normalizers = st.fixed_dictionaries(
    {"type": st.just("BertNormalizer")},
    optional={
        "clean_text": st.booleans(),
        "handle_chinese_chars": st.booleans(),
        "strip_accents": st.booleans(),
        "lowercase": st.booleans(),
    },
)

other_normalizers = st.sampled_from(
    [
        "none",
        {"type": "NFD"},
        {"type": "NFC"},
        {"type": "NFKC"},
        {"type": "NFKD"},
        {"type": "Lowercase"},
        {"type": "StripAccents"},
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]},
        {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {
                    "type": "BertNormalizer",
                    "clean_text": True,
                    "handle_chinese_chars": True,
                    "strip_accents": None,
                    "lowercase": True,
                },
            ],
        },
    ]
)

pre_tokenizers = st.sampled_from(
    [
        "none",
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        *(
            {"type": "Punctuation", "behavior": b}
            for b in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")
        ),
        {"type": "Digits", "individual_digits": True},
        {"type": "Digits", "individual_digits": False},
        *(
            {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
            for prefix, regex in ((True, True), (False, True), (True, False))
        ),
        {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}],
        },
    ]
)

sides = st.sampled_from(["left", "right"])


@st.composite
def added_tokens(draw: st.DrawFn, alphabet: str, vocab: list[str]) -> list[dict[str, Any]]:
    """Added tokens over the alphabet and from the vocabulary, without duplicates."""
    contents = st.one_of(texts_over(alphabet, 3).filter(bool), st.sampled_from(SPECIAL), st.sampled_from(vocab))
    flags = {name: st.booleans() for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
    token = st.fixed_dictionaries({"content": contents}, optional=flags)
    return draw(st.lists(token, max_size=4, unique_by=lambda token: token["content"]))


def padding() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "length": st.integers(0, 16),
            "pad_to_multiple_of": st.sampled_from([1, 3, 4, 8]),
            "direction": sides,
            "pad_id": st.integers(0, 4),
            "pad_type_id": st.integers(0, 2),
        },
    )


@st.composite
def truncation(draw: st.DrawFn, added: int) -> dict[str, Any]:
    """Truncation that leaves room for `added` special tokens, with a stride that fits."""
    room = draw(st.integers(0, 8))
    return {
        "max_length": added + room,
        "stride": draw(st.integers(0, max(0, room // 2 - 1))),  # half, because both texts of a pair may be truncated
        "strategy": draw(st.sampled_from(["longest_first", "longest_first", "only_first", "only_second"])),
        "direction": draw(sides),
    }


TEMPLATES: list[Any] = [
    None,
    "bert",
    {"single": ["[CLS]:0", "$A:0", "[SEP]:0"], "pair": ["[CLS]:0", "$A:0", "[SEP]:0", "$B:1", "[SEP]:1"]},
    {"single": ["[CLS]:9", "$A:8", "[SEP]:7"], "pair": ["[CLS]:5", "$A:3", "[SEP]:6", "$B:4", "[SEP]:7"]},
    {"single": ["$A:0", "[SEP]:0"], "pair": ["$B:1", "[SEP]:2", "$A:0"]},
]
ADDED_BY = [0, 3, 3, 3, 1]  # the largest number of special tokens that each adds to a text or a pair


@st.composite
def cases(draw: st.DrawFn, *, other_components: bool = False, windows: bool = True) -> dict[str, Any]:
    """A complete case in the schema of data/cases/README.md: a tokenizer, its options and a batch of texts."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    prefix = draw(st.sampled_from(["##", "##", "##", "", "_"]))
    vocab = draw(vocabularies(alphabet, prefix))
    case: dict[str, Any] = {"vocab": vocab, "model": {"continuing_subword_prefix": prefix}}
    if draw(st.booleans()):
        case["model"]["max_input_chars_per_word"] = draw(st.integers(0, 8))
    case["normalizer"] = draw(st.one_of(normalizers, other_normalizers) if other_components else normalizers)
    if other_components and draw(st.booleans()):
        case["pre_tokenizer"] = draw(pre_tokenizers)
    template = draw(st.integers(0, len(TEMPLATES) - 1))
    if TEMPLATES[template] is not None:
        case["post_processor"] = TEMPLATES[template]
    if draw(st.booleans()):
        case["added_tokens"] = draw(added_tokens(alphabet, vocab))
    if windows and draw(st.booleans()):
        case["truncation"] = draw(truncation(ADDED_BY[template]))
    if draw(st.booleans()):
        case["padding"] = draw(padding())
    case["add_special_tokens"] = draw(st.booleans())

    contents = [token["content"] for token in case.get("added_tokens", [])] or ["[SEP]"]
    piece = st.one_of(
        texts_over(alphabet, 8), st.sampled_from(contents), st.sampled_from([" ", "\u3000"]), unicode_texts
    )
    text = st.lists(piece, max_size=5).map("".join)
    whole = st.lists(text, max_size=4) if draw(st.integers(0, 5)) == 0 else text
    one = st.fixed_dictionaries({"text": whole}, optional={"pair": whole})
    case["inputs"] = draw(st.lists(one, min_size=1, max_size=3))
    return case
