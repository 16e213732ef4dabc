"""Write the cases: run each through the reference implementation and keep everything it answers.

    python make_cases.py            # needs tokenizers, of the version below; writes *.toml beside this file
    python make_cases.py --check    # compares instead, and exits 1 when a file would change

A case says what it is in the words of README.md. Where this project differs from the reference on purpose, the case has
`differs` and its answer is written down here by hand; what the reference did is kept in `reference`.
"""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from case_files import Case, tokenizer_json  # noqa: E402

VERSION = "0.23.3"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*"abcdefgh"]

# Vocabularies that several cases use. A file holds those that its cases name.
VOCABS = {
    "small": [
        *[*SPECIAL, *LETTERS, "##a", "##b", "##s", "hello", "world", "i", "##\u0307", "e\u0301", "\u1100", "##\u1161"],
        *["\u4e2d", ".", "'", "$", "[", "]", "mask", "ss", "\u03c3", "##\u03c3", "\u00df", "\u2e43"],
    ],
    "letters": [*SPECIAL, *LETTERS],
    "ab": ["[UNK]", "a", "b", "ab", "ba", "##a", "##b", "##ab", "##aba", "abab", "##bb"],
}

# The words of a sentence that courses tokenize with bert-base-uncased, and a few more, with the ids of that vocabulary.
BERT_BASE_UNCASED = {
    "[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103, "'": 1005, ",": 1010, ".": 1012, "t": 1056,
    "the": 1996, "this": 2023, "one": 2028, "we": 2057, "our": 2256, "let": 2292, "next": 2279, "won": 2180, "alone": 2894,
    "buy": 4965, "friends": 2814, "analysis": 4106, "propose": 16599, "i": 1045, "una": 14477,
    "##ffa": 20961, "##ble": 3468, "a": 1037, "b": 1038,
}  # fmt: skip

CASES: dict[str, list[Case]] = {}


def case(topic: str, shows: str, **fields: object) -> None:
    """Add a case. `text`, `pair`, `words` and `pair_words` make its one input; `special=False` adds no special tokens."""
    name = "".join(ch if ch.isalnum() and ch.isascii() else " " for ch in shows.lower().replace("'", ""))
    new: Case = {"name": "_".join(name.split()), "shows": shows}
    new.setdefault("vocab", "small")
    if "text" in fields or "words" in fields:
        one = {"text": fields.pop("words", None) or fields.pop("text", None)}
        if "pair" in fields or "pair_words" in fields:
            one["pair"] = fields.pop("pair_words") if "pair_words" in fields else fields.pop("pair")
        if one["text"] is None:
            one["text"] = ""
        fields["inputs"] = [one]
    if fields.pop("special", True) is False:
        fields["add_special_tokens"] = False
    new.update(fields)
    if "vocab_txt" in new:
        del new["vocab"]
    assert all(new["name"] != other["name"] for other in CASES.get(topic, [])), new["name"]
    CASES.setdefault(topic, []).append(new)


def bert(**options: bool) -> dict[str, Any]:
    return {"type": "BertNormalizer", **options}


def added(*contents: str, **flags: bool) -> list[dict[str, Any]]:
    return [{"content": content, **flags} for content in contents]


REGISTERED = added(*SPECIAL, special=True)
NO = {"special": False}

# A case is a line, however long.
# fmt: off

# --- cleaning ---------------------------------------------------------------------------------------------------------
case("clean", "VT, FF, NEL are removed, so words join", text="a\x0bb\x0cb\x85b", **NO)
case("clean", "with cleaning off they are white space", text="a\x0bb\x0cb\x85b", normalizer=bert(clean_text=False), **NO)
case("clean", "soft hyphen, ZWJ, NUL, U+FFFD and a tag vanish inside a word", text="a\u00adb\u200db\x00b\ufffdb\U000e0001b", **NO)
case("clean", "the same characters are kept without cleaning", text="a\u00adb", normalizer=bert(clean_text=False), vocab=[*SPECIAL, "a", "##\u00ad", "##b"], **NO)
case("clean", "private use and the byte order mark vanish", text="\ufeffa\ue000b\U0010fffdb", **NO)
case("clean", "U+08E2, a format character only since Unicode 9, is kept", text="a\u08e2b", **NO)
case("clean", "unassigned characters and noncharacters are kept", text="a\u0378b \uffff \U0010ffff", **NO)
case("clean", "a hole at the start of the text", text="\u00ad\u00ad a", **NO)
case("clean", "a hole at the end of a word is not part of it", text="a\u00ad\u00ad b\u200b", **NO)
case("clean", "a hole inside a piece is part of it", text="he\u00adl\u200blo", **NO)
case("clean", "tab, line feed and carriage return are spaces", text="a\tb\nc\rd\r\ne", **NO)
case("clean", "no-break, ideographic and line separators are spaces", text="a\u00a0b\u3000a\u2028b", **NO)
case("clean", "only removed characters: nothing but special tokens", text="\u00ad\u200b \t", post_processor="bert")
case("clean", "U+180E is a format character in Unicode 8, not a space", text="a\u180eb", **NO)
case("clean", "bidirectional controls vanish", text="\u202aa\u202c \u2066b\u2069", **NO)

# --- ideographs -------------------------------------------------------------------------------------------------------
case("cjk", "an ideograph is its own word and has its own offsets", text="a\u4e2db", **NO)
case("cjk", "off: glued to its neighbours", text="a\u4e2db", normalizer=bert(handle_chinese_chars=False), **NO)
case("cjk", "U+2B820 is in the gap, U+2B920 is not", text="a\U0002b820b a\U0002b920b", **NO)
case("cjk", "kana and Hangul are no ideographs", text="a\u3042b \u30a2b", **NO)
case("cjk", "ideographs beside each other, without spaces between", text="\u4e2d\u4e2da\u4e2d", **NO)
case("cjk", "the last of a block and the first after it", text="a\u4dbfb a\u4dc0b a\u9fffb a\ua000b", vocab=[*SPECIAL, "a", "b", "\u4dbf", "\u9fff"], **NO)
case("cjk", "a compatibility ideograph is set apart, then decomposed", text="a\uf900", vocab=[*SPECIAL, "a", "\u8c48", "\uf900"], **NO)
case("cjk", "a compatibility ideograph stays when accents do", text="a\uf900", normalizer=bert(strip_accents=False), vocab=[*SPECIAL, "a", "\u8c48", "\uf900"], **NO)

# --- accents and lower case -------------------------------------------------------------------------------------------
E_A = [*SPECIAL, "e", "##a"]
case("accents", "precomposed, decomposed at the end, decomposed inside", text="\u00e9 e\u0301 e\u0301a", vocab=E_A, **NO)
case("accents", "lower case off implies accents kept", text="\u00c9", normalizer=bert(lowercase=False), vocab=[*SPECIAL, "E", "\u00c9"], **NO)
case("accents", "lower case off, accents off", text="\u00c9", normalizer=bert(lowercase=False, strip_accents=True), vocab=[*SPECIAL, "E", "\u00c9"], **NO)
case("accents", "accents kept: nothing is decomposed, e and U+0301 stay two", text="e\u0301 \u00e9", normalizer=bert(strip_accents=False), **NO)
case("accents", "a mark at the beginning: offsets start after it", text="\u0301a", **NO)
case("accents", "only marks: nothing left", text="\u0301 \u0316\u0301", post_processor="bert")
case("accents", "Hangul comes apart into jamo that share offsets", text="\uac00a", **NO)
case("accents", "Hangul with a tail is three jamo", text="\uac01", vocab=[*SPECIAL, "\u1100", "##\u1161", "##\u11a8"], **NO)
case("accents", "Hangul stays when accents do", text="\uac01", vocab=[*SPECIAL, "\uac01"], normalizer=bert(strip_accents=False), **NO)
case("accents", "a spacing mark is kept", text="\u0915\u093e", vocab=[*SPECIAL, "\u0915", "##\u093e"], **NO)
case("accents", "an enclosing mark is kept", text="a\u20dd", vocab=[*SPECIAL, "a", "##\u20dd"], **NO)
case("accents", "a mark newer than Unicode 8 is kept", text="a\u1df6 a\u08d4", vocab=[*SPECIAL, "a", "##\u1df6", "##\u08d4"], **NO)
case("accents", "marks change places; the ranges stay in order", text="e\u0301\u0316a", normalizer={"type": "NFD"}, vocab=[*SPECIAL, "e", "##\u0316", "##\u0301", "##a"], **NO)
case("accents", "a mark that decomposes among marks that change places", text="a\u0301\u0f73b", normalizer={"type": "NFD"}, vocab=[*SPECIAL, "a", "##\u0f71", "##\u0f72", "##\u0301", "##b"], **NO)
case("accents", "a composition exclusion decomposes too", text="\u0958", vocab=[*SPECIAL, "\u0915"], **NO)
case("accents", "fullwidth letters and ligatures are not folded", text="\uff21 \ufb01", vocab=[*SPECIAL, "\uff41", "\ufb01", "fi", "a"], **NO)
case("accents", "dotted capital I", text="\u0130", **NO)
case("accents", "dotted capital I with accents kept: two characters, one range", text="\u0130", normalizer=bert(strip_accents=False), **NO)
case("accents", "dotted capital I inside a word", text="a\u0130b", normalizer=bert(strip_accents=False), vocab=[*SPECIAL, "a", "##i", "##\u0307", "##b", "##i\u0307b"], **NO)
case("accents", "no final sigma", text="\u03a3\u03a3", **NO)
case("accents", "capital sharp s becomes one character", text="\u1e9e", **NO)
case("accents", "letters that changed case after Unicode 8: Cherokee, Georgian, Garay", text="\u13a0 \u1c90 \U00010d50", vocab=[*SPECIAL, "\uab70", "\u10d0", "\U00010d70"], **NO)
case("accents", "Kelvin and Angstrom signs", text="\u212a \u212b", normalizer=bert(strip_accents=False), vocab=[*SPECIAL, "k", "\u00e5"], **NO)

# --- punctuation and words --------------------------------------------------------------------------------------------
case("words", "ASCII symbols count as punctuation", text="a$b a`b a~b a^b", **NO)
case("words", "each punctuation character is a word", text="a...b''", **NO)
case("words", "U+2E43, punctuation since Unicode 9, is none", text="a\u2e43b", **NO)
case("words", "currency and math signs outside ASCII are no punctuation", text="a\u20acb a\u00d7b", **NO)
case("words", "punctuation outside ASCII", text="a\u2010b a\u3001b a\u00b7b", vocab=[*SPECIAL, "a", "b", "\u2010", "\u3001", "\u00b7"], **NO)
case("words", "white space of every kind, at the ends too", text=" \u1680a \u2003 b\u205f", **NO)
case("words", "no text", text="", post_processor="bert")

# --- WordPiece --------------------------------------------------------------------------------------------------------
case("wordpiece", "the longest piece first, not the fewest pieces", text="aba abab abba babab", vocab="ab", **NO)
case("wordpiece", "no going back: the longest piece can make a word unknown", text="abb", vocab=["[UNK]", "ab", "a", "##bb"], **NO)
case("wordpiece", "one bad position makes the whole word unknown", text="helloz", **NO)
case("wordpiece", "a bad beginning makes the whole word unknown", text="zhello hello", **NO)
case("wordpiece", "exactly 100 characters pass", text="a" * 100, vocab=[*SPECIAL, "a" * 100], **NO)
case("wordpiece", "101 characters are unknown", text="a" * 101, vocab=[*SPECIAL, "a" * 101], **NO)
case("wordpiece", "the limit counts normalized characters", text="\u00e9\u00e9\u00e9 \u00e9\u00e9\u00e9\u00e9", normalizer=bert(strip_accents=False), model={"max_input_chars_per_word": 3}, vocab=[*SPECIAL, "\u00e9\u00e9\u00e9", "##\u00e9"], **NO)
case("wordpiece", "a limit of 0 makes every word unknown", text="a b", model={"max_input_chars_per_word": 0}, **NO)
case("wordpiece", "jamo count, not syllables", text="\uac01\uac01", model={"max_input_chars_per_word": 5}, vocab=[*SPECIAL, "\u1100", "##\u1161", "##\u11a8", "##\u1100"], **NO)
case("wordpiece", "an empty prefix", text="aab", model={"continuing_subword_prefix": ""}, **NO)
case("wordpiece", "another prefix", text="aab", model={"continuing_subword_prefix": "@@"}, vocab=[*SPECIAL, "a", "@@a", "@@b", "##a"], **NO)
case("wordpiece", "a prefix that is in the text too", text="##a ##", vocab=[*SPECIAL, "#", "##", "##a", "##b", "a"], **NO)
case("wordpiece", "the empty token and the bare prefix are never produced", text="ab", vocab=[*SPECIAL, "", "##", "a", "##b"], **NO)
case("wordpiece", "an unknown token of another name", text="zz a", model={"unk_token": "<oov>"}, vocab=["<oov>", "a"], **NO)
case("wordpiece", "ids with gaps", text="a b ab", vocab={"[UNK]": 7, "a": 3, "##b": 1000, "b": 4_000_000_000}, **NO)
case("wordpiece", "without words the text is one, spaces included", text="a b", pre_tokenizer="none", vocab=["[UNK]", "a b", "a", "##b"], **NO)
case("wordpiece", "pieces of several bytes", text="\u0430\u0431\u0431 \u4e2d\u0430", vocab=["[UNK]", "\u0430", "##\u0431", "##\u0431\u0431", "\u4e2d"], **NO)
case("wordpiece", "outside the Basic Multilingual Plane, offsets count code points", text="\U0001f600a b", vocab=["[UNK]", "\U0001f600", "##a", "b"], **NO)

# --- added tokens -----------------------------------------------------------------------------------------------------
case("added", "[SEP] in the text is the real one when it is registered", text="a [SEP] b", added_tokens=REGISTERED, post_processor="bert")
case("added", "not registered: split like any text", text="[MASK]", **NO)
case("added", "found exactly as written, also inside words", text="[mask] hello[MASK]world", added_tokens=REGISTERED, **NO)
case("added", "left to the model on request", text="[MASK]", added_tokens=REGISTERED, encode_special_tokens=True, **NO)
case("added", "left to the model on request, but only special ones", text="[MASK]<x>", added_tokens=REGISTERED + added("<x>", normalized=False), encode_special_tokens=True, **NO)
case("added", "a normalized token: its text is the normalized form", text="in NEW York", added_tokens=added("New York"), **NO)
case("added", "a normalized ideograph token carries its spaces", text="a\u4e2d\u56fdb", added_tokens=added("\u4e2d\u56fd"), **NO)
case("added", "a normalized token is found through removed characters", text="x\u00ady", added_tokens=added("xy"), **NO)
case("added", "a token that is not normalized is not found through them", text="x\u00ady xy", added_tokens=added("xy", normalized=False), **NO)
case("added", "lstrip and rstrip: the spaces are part of token and offsets", text="hello  <m>  <m> \t world", added_tokens=added("<m>", lstrip=True, rstrip=True, normalized=False), **NO)
case("added", "lstrip alone", text="a \u3000<m> b", added_tokens=added("<m>", lstrip=True, normalized=False), **NO)
case("added", "rstrip up to the end", text="a <m> \n ", added_tokens=added("<m>", rstrip=True, normalized=False), **NO)
case("added", "rstrip, then a token for a space: they overlap", text="a<m> b", added_tokens=[*added("<m>", rstrip=True, normalized=False), *added(" ", normalized=False)], **NO)
case("added", "leftmost, then longest", text="abcd", added_tokens=added("ab", "abc", "bcd"), **NO)
case("added", "leftmost wins over longest", text="abcd", added_tokens=added("ab", "bcd", "d"), **NO)
case("added", "single_word: underscore and marks are word characters", text="he hello _he he-he", added_tokens=added("he", single_word=True), **NO)
case("added", "single_word in the original text", text="he e\u0301he he\u0301 he", added_tokens=added("he", single_word=True, normalized=False), **NO)
case("added", "a refused match still takes its text", text="xab b", added_tokens=[*added("ab", single_word=True), *added("b", normalized=False), *added("xb")], **NO)
case("added", "a refused longer match hides a shorter token", text="abx", added_tokens=[*added("ab", single_word=True), *added("a")], **NO)
case("added", "the edge of a part is the edge of a word", text="[MASK]he", added_tokens=REGISTERED + added("he", single_word=True), **NO)
case("added", "tokens at both ends and nothing else", text="[CLS][SEP]", added_tokens=REGISTERED, **NO)
case("added", "original tokens come before normalized ones", text="ab", added_tokens=[*added("a"), *added("ab", normalized=False)], **NO)
case("added", "a token with a capital that is normalized is found in any case", text="FOO foo Foo", added_tokens=added("Foo"), **NO)
case("added", "a token with a capital that is not is found as it is", text="FOO foo Foo", added_tokens=added("Foo", normalized=False), **NO)
case("added", "an added token longer than the limit of a word", text="aaaa", model={"max_input_chars_per_word": 2}, added_tokens=added("aaaa"), **NO)
case("added", "an existing token keeps its id", added_tokens=added("hello", "zz"), lookup={"token_to_id": ["hello", "zz", "a"], "id_to_token": [16, 35], "no_token": [36]})
case("added", "empty content is ignored", added_tokens=added("", "zz"), lookup={"token_to_id": ["zz"], "id_to_token": [35]}, text="a zz", **NO)
case("added", "a content given again takes the new flags and keeps its id", added_tokens=[*added("zz", normalized=False), *added("zz", normalized=False, special=True), *added("yy")], lookup={"token_to_id": ["zz", "yy"], "id_to_token": [35, 36]}, text="zz yy", decode={"ids": [35, 36, 5]}, **NO)
case("added", "continuing pieces as added tokens", text="hellos ##s", added_tokens=added("##s", special=True), **NO)

# --- special tokens around the text -----------------------------------------------------------------------------------
ODD = {"single": ["[CLS]:9", "$A:8", "[SEP]:7"], "pair": ["[CLS]:5", "$A:3", "[SEP]:6", "$B:4", "[SEP]:7"]}
STANDARD = {"single": ["[CLS]:0", "$A:0", "[SEP]:0"], "pair": ["[CLS]:0", "$A:0", "[SEP]:0", "$B:1", "[SEP]:1"]}
MANY = {
    "single": ["<s>:0", "$A:0"],
    "pair": ["<s>:0", "$A:0", "<s>:1", "$B:1"],
    "special_tokens": {"<s>": {"ids": [2, 3, 4], "tokens": ["x", "y", "z"]}},
}
for post, name in (("bert", "BERT's"), (STANDARD, "the standard template")):
    case("template", f"one text, {name}", text="hello world", post_processor=post)
    case("template", f"a pair, {name}", text="hello", pair="worlds a", post_processor=post)
    case("template", f"a pair without special tokens, {name}", text="hello", pair="worlds a", post_processor=post, **NO)
    case("template", f"two empty texts, {name}", text="", pair="", post_processor=post)
case("template", "an empty second text", text="a", pair="", post_processor="bert")
case("template", "an empty first text", text="", pair="a", post_processor="bert")
case("template", "nothing around it: types 0 and 1", text="a", pair="b c")
case("template", "nothing around one text", text="a b")
case("template", "unusual types", text="a b", pair="c", post_processor=ODD)
case("template", "the types of a template hold without special tokens", text="a b", post_processor=ODD, **NO)
case("template", "windows fall back to types 0 and 1", text="a b c", post_processor=ODD, truncation={"max_length": 4})
case("template", "windows of a pair fall back to types 0 and 1", text="a b c", pair="d e f", post_processor=ODD, truncation={"max_length": 7})
case("template", "one special token of several ids", text="a", pair="b", post_processor=MANY)
case("template", "several ids count for the length", text="a b c", post_processor=MANY, truncation={"max_length": 5})
case("template", "the first text twice", text="a b", post_processor={**STANDARD, "single": ["$A:0", "[SEP]:0", "$A:1"]})
case("template", "the first text twice, cut", text="a b c", post_processor={**STANDARD, "single": ["$A:0", "[SEP]:0", "$A:1"]}, truncation={"max_length": 3})
case("template", "the first text left out", text="a", pair="b", post_processor={**STANDARD, "pair": ["[CLS]:0", "$B:1"]})
case("template", "the second text first", text="a", pair="b", post_processor={**STANDARD, "pair": ["$B:0", "[SEP]:0", "$A:1"]})
case("template", "special tokens side by side", text="a", post_processor={**STANDARD, "single": ["[CLS]:0", "[CLS]:1", "$A:0", "[SEP]:2", "[SEP]:3"]})

# --- truncation -------------------------------------------------------------------------------------------------------
A8 = "a b c d e f g h"


def cut(shows: str, max_length: int, text: str = A8, topic: str = "truncation", **fields: object) -> None:
    """A case of truncation with BERT's special tokens, unless said otherwise."""
    options = {key: fields.pop(key) for key in ("stride", "strategy", "direction") if key in fields}
    fields = {"vocab": "letters", "post_processor": "bert", **fields}
    case(topic, shows, text=text, truncation={"max_length": max_length, **options}, **fields)


cut("short enough: nothing happens", 10)
cut("one too many", 9)
cut("left", 5, direction="left")
cut("a tie: the odd token goes to the second text", 8, "a b c d", pair="e f g h")
cut("the odd token goes to the longer text", 6, "a b c d e", pair="f g h")
cut("the odd token goes to the longer text, the second", 6, "a b c", pair="d e f g h")
cut("only the longer text is cut", 6, "a", pair="c d e f")
cut("only the longer text is cut, the first", 6, "c d e f", pair="a")
cut("both are cut when the shorter is over half", 7, "a b c d", pair="e f g h a")
cut("an empty second text", 4, "a b c d", pair="")
cut("only_first", 7, "a b c d", pair="e f", strategy="only_first")
cut("only_second", 7, "a b", pair="c d e f", strategy="only_second")
cut("only_first, one text", 5, strategy="only_first")
cut("only_first leaves the last token of the first text", 6, "a b c", pair="d e", strategy="only_first")
cut("only_first too short", 6, "a", pair="c d e f", strategy="only_first", error="InputError", names=["too short"])
cut("only_second too short", 6, "a b c d", pair="e", strategy="only_second", error="InputError", names=["too short"])
cut("only_first where all of it would have to go", 5, "a b", pair="c d", strategy="only_first", error="InputError", names=["too short"])
cut("only_second without a second text", 4, "a b c", strategy="only_second", error="InputError", names=["second"])
cut("only_second without a second text, short enough", 5, "a b c", strategy="only_second")
cut("room for no token: all of it in one window", 2, "a b")
cut("room for no token of either text", 3, "a b", pair="c")
cut("room for one token of a pair", 4, "a b", pair="c d")
cut("without special tokens the whole length is the text's", 2, "a b c", **NO)
cut("without special tokens, a pair", 4, "a b c", pair="d e f", **NO)
cut("without a post-processor", 3, "a b c d", post_processor=None)
cut("a word may be cut between its pieces", 4, "hellosss", vocab="small")
cut("left, a pair", 7, "a b c", pair="d e f", direction="left")
cut("left, only_second", 6, "a b", pair="c d e", direction="left", strategy="only_second")

# --- windows ----------------------------------------------------------------------------------------------------------
cut("no stride", 5, topic="windows")
cut("stride 1", 5, "a b c d e", stride=1, topic="windows")
cut("stride 2, the last window is short", 5, stride=2, topic="windows")
cut("the last window ends where the text ends", 5, "a b c d e f g", stride=1, topic="windows")
cut("left, stride 1", 6, "a b c d e f", stride=1, direction="left", topic="windows")
cut("left: the last window is the short one", 4, "a b c d e", direction="left", topic="windows")
cut("left, stride 2", 5, stride=2, direction="left", topic="windows")
cut("nested windows of a pair", 6, "a b c", pair="d e f", topic="windows")
cut("nested windows of a pair, with stride", 7, "a b c d", pair="e f g", stride=1, topic="windows")
cut("nested windows of a pair, left", 6, "a b c", pair="d e f", direction="left", topic="windows")
cut("windows of one text of a pair", 6, "a b c d", pair="e f", strategy="only_first", topic="windows")
cut("windows of the second text of a pair, with stride", 7, "a", pair="b c d e f", strategy="only_second", stride=2, topic="windows")
cut("windows without special tokens", 3, "a b c d", stride=1, topic="windows", **NO)
cut("windows without a post-processor: of a pair, all but the kept have sequence 0", 3, "a b c", pair="d e f", post_processor=None, topic="windows")
cut("windows of one text without a post-processor", 3, "a b c d", post_processor=None, topic="windows")
cut("windows keep words and offsets", 4, "hellos \u00e9a \u4e2d.", vocab=[*VOCABS["small"], "e"], topic="windows")
cut("windows are padded to the length of the kept one", 5, "a b c d e", padding={}, topic="windows")
cut("windows are padded to a fixed length", 4, "a b c", padding={"length": 6}, topic="windows")
cut("nested windows are padded", 6, "a b c", pair="d e f", padding={"length": 8, "direction": "left"}, topic="windows")

# --- padding ----------------------------------------------------------------------------------------------------------
BATCH = [{"text": "a"}, {"text": "a b c"}, {"text": ""}]
case("padding", "to the longest of the batch", vocab="letters", inputs=BATCH, padding={}, post_processor="bert")
case("padding", "to the longest, left", vocab="letters", inputs=BATCH, padding={"direction": "left"}, post_processor="bert")
case("padding", "to a multiple", vocab="letters", inputs=BATCH, padding={"pad_to_multiple_of": 4}, post_processor="bert")
case("padding", "one text alone to a multiple", vocab="letters", text="a b c", padding={"pad_to_multiple_of": 4}, post_processor="bert")
case("padding", "one text alone: nothing to do", vocab="letters", text="a b c", padding={}, post_processor="bert")
case("padding", "a fixed length", vocab="letters", text="a", pair="b", padding={"length": 8}, post_processor="bert")
case("padding", "left, its own id, token and type, a multiple above the fixed length", text="a", post_processor="bert", padding={"direction": "left", "pad_id": 7, "pad_type_id": 3, "pad_token": "XX", "length": 5, "pad_to_multiple_of": 4})
case("padding", "shorter than the encoding: nothing is cut", vocab="letters", text="a b c", padding={"length": 2}, post_processor="bert")
case("padding", "no post-processor: padding has sequence 0", vocab="letters", text="a", padding={"length": 3})
case("padding", "no post-processor, a pair: padding has no sequence", vocab="letters", text="a", pair="b", padding={"length": 4})
case("padding", "no post-processor, left", vocab="letters", text="a", pair="b", padding={"length": 4, "direction": "left"})
case("padding", "the longest counts after truncation", vocab="letters", inputs=BATCH, padding={}, truncation={"max_length": 4}, post_processor="bert")
case("padding", "texts and pairs in one batch", vocab="letters", inputs=[{"text": "a b"}, {"text": "a", "pair": "b c"}, {"text": "a", "pair": ""}], padding={}, post_processor="bert")
case("padding", "without special tokens", vocab="letters", inputs=BATCH, padding={}, post_processor="bert", **NO)

# --- input that is already split --------------------------------------------------------------------------------------
case("presplit", "offsets start again in every word, ids are input numbers, an empty word is skipped", words=["hellos", "a b", "", "\u0130"], post_processor="bert")
case("presplit", "a pair of word lists", words=["a"], pair_words=["b", "a"], post_processor="bert")
case("presplit", "an added token inside a word", words=["x[SEP]", "b"], added_tokens=REGISTERED, post_processor="bert")
case("presplit", "a word that is punctuated is one word", words=["a.", "b"], post_processor="bert")
case("presplit", "a word that becomes nothing leaves a gap in the numbers", words=["\u0301", "a", " ", "b"], post_processor="bert")
case("presplit", "cut, with windows", words=["hellos", "a", "b"], truncation={"max_length": 4, "stride": 1}, post_processor="bert")
case("presplit", "a batch, padded", inputs=[{"text": ["a"]}, {"text": ["a", "hellos"]}, {"text": ["b"], "pair": ["c"]}], padding={}, post_processor="bert")
case("presplit", "ideographs in words", words=["\u4e2d\u4e2da", "b"], **NO)

# --- decoding ---------------------------------------------------------------------------------------------------------


def decode(shows: str, tokens: list[str], **fields: object) -> None:
    """A case of decoding that gives tokens, not ids."""
    vocab = ["[UNK]", *dict.fromkeys(token for token in tokens if token != "[UNK]")]
    options = {"skip_special_tokens": False} if fields.pop("keep", False) else {}
    case("decode", shows, vocab=vocab, decode={"ids": [vocab.index(token) for token in tokens], **options}, **fields)


PLAIN = {"type": "WordPiece", "prefix": "##", "cleanup": False}
decode("pieces are joined", ["hello", "##s", "world"])
decode("the first token keeps its prefix", ["##s", "hello", "##s"])
decode("only one prefix goes", ["a", "####b"])
decode("clean-up works on each token alone", ["it", "'", "s", ".", "do", "not"])
decode("clean-up sees the head of a token", ["a", ".net", "'s", "n't", "do not"])
decode("clean-up, every rule", ["a", ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"])
decode("no clean-up", ["a", ".", "?", "n't", "##b"], decoder=PLAIN)
decode("another prefix", ["a", "@@b", "##c"], decoder={"type": "WordPiece", "prefix": "@@", "cleanup": True})
decode("no decoder: spaces between all", ["a", "##b", "."], decoder="none")
case("decode", "special tokens that are only in the vocabulary are kept", decode={"ids": [2, 16, 3]})
case("decode", "registered ones are skipped, ids without a token vanish", decode={"ids": [2, 16, 99999, 17, 3]}, added_tokens=REGISTERED)
case("decode", "registered ones are kept on request", decode={"ids": [2, 16, 17, 3], "skip_special_tokens": False}, added_tokens=REGISTERED)
case("decode", "a token after a skipped one counts as the first", decode={"ids": [2, 15, 16]}, added_tokens=REGISTERED)
case("decode", "an added token comes back in its normalized form", decode={"ids": [16, 35]}, added_tokens=added("New York"))
case("decode", "nothing", decode={"ids": []})
case("decode", "only special tokens", decode={"ids": [2, 3]}, added_tokens=REGISTERED)

# --- vocab.txt --------------------------------------------------------------------------------------------------------
case("vocab_txt", "one token a line", vocab_txt="[UNK]\na\n##b\n")
case("vocab_txt", "the last line may lack its line feed", vocab_txt="[UNK]\na\n##b")
case("vocab_txt", "CRLF, spaces at the end, a blank line, a duplicate, a byte order mark", vocab_txt="\ufeffa\r\nb \n\nc\u3000\n d\nb\n[UNK]\n", differs="D7")
case("vocab_txt", "two blank lines: the last one has the id", vocab_txt="[UNK]\n\nb\n\n", differs="D7")
case("vocab_txt", "line ends of Unicode end no line", vocab_txt="a\u2028b\nc\x85d\ne\rf\n[UNK]\n")
case("vocab_txt", "white space at the end goes, of every kind", vocab_txt="[UNK]\na\t\nb\u00a0\u2003\nc\x0b\n", differs="D7")
case("vocab_txt", "only the last carriage return ends the line, the others are white space", vocab_txt="[UNK]\na\r\r\nb\n", differs="D7")

# --- other components -------------------------------------------------------------------------------------------------
SEQUENCE = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]}
case("components", "no normalizer", text="A a\u00ad\u4e2d \u00e9", normalizer="none", vocab=["[UNK]", "A", "a", "##\u00ad", "##\u4e2d", "\u00e9"], **NO)
case("components", "Lowercase alone", text="\u00c9\u0130\u03a3", normalizer={"type": "Lowercase"}, vocab=["[UNK]", "\u00e9", "##i", "##\u0307", "##\u03c3"], **NO)
case("components", "StripAccents does not decompose", text="\u00e9 e\u0301", normalizer={"type": "StripAccents"}, vocab=["[UNK]", "e", "\u00e9"], **NO)
case("components", "StripAccents drops spacing and enclosing marks too", text="\u0915\u093ea\u20dd", normalizer={"type": "StripAccents"}, vocab=["[UNK]", "\u0915", "##a"], **NO)
case("components", "NFD, Lowercase, StripAccents", text="\u00c9a \uac00", normalizer=SEQUENCE, vocab=["[UNK]", "e", "##a", "\u1100", "##\u1161"], **NO)
case("components", "Strip", text=" \u3000a b \t", normalizer={"type": "Strip", "strip_left": True, "strip_right": True}, pre_tokenizer="none", vocab=["[UNK]", "a b"], **NO)
case("components", "Strip left", text=" a ", normalizer={"type": "Strip", "strip_left": True, "strip_right": False}, pre_tokenizer="none", vocab=["[UNK]", "a", "a "], **NO)
case("components", "Whitespace: words, and runs of other signs", text="a_1--\u0301b \u20ac\u20ac.", pre_tokenizer={"type": "Whitespace"}, normalizer="none", vocab=["[UNK]", "a_1", "--", "\u0301b", "\u20ac\u20ac."], **NO)
case("components", "WhitespaceSplit", text="a.b\u3000c\x85d", pre_tokenizer={"type": "WhitespaceSplit"}, normalizer="none", vocab=["[UNK]", "a.b", "c", "d"], **NO)
for behavior in ("Isolated", "Removed", "Contiguous"):
    case("components", f"Punctuation, {behavior}", text="a..b c", pre_tokenizer={"type": "Punctuation", "behavior": behavior}, vocab=["[UNK]", "a", ".", "..", "b c"], **NO)
case("components", "Digits in runs", text="a12\u00bdb", pre_tokenizer={"type": "Digits", "individual_digits": False}, vocab=["[UNK]", "a", "12\u00bd", "b"], **NO)
case("components", "Digits one by one", text="a12\u0663b", pre_tokenizer={"type": "Digits", "individual_digits": True}, vocab=["[UNK]", "a", "1", "2", "\u0663", "b"], **NO)
case("components", "pre-tokenizers in sequence", text="a1 b", pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}]}, vocab=["[UNK]", "a", "1", "b"], **NO)

# --- the sentence of the literature -----------------------------------------------------------------------------------
SENTENCE = "Our friends won't buy this analysis, let alone the next one we propose."
BERT = {"vocab": BERT_BASE_UNCASED, "post_processor": STANDARD, "added_tokens": REGISTERED}
case("bert_base_uncased", "the sentence", text=SENTENCE, **BERT, **NO)
case("bert_base_uncased", "the sentence with its special tokens", text=SENTENCE, **BERT)
case("bert_base_uncased", "the special tokens in a text", text="[CLS] [MASK] [SEP] [PAD] [UNK]", **BERT, **NO)
case("bert_base_uncased", "padded to 8, the mask is 1 for tokens and 0 for padding", text="the next one", padding={"length": 8}, **BERT)
case("bert_base_uncased", "the second sentence with its [SEP] is segment 1", text="Our friends won't buy this", pair="the next one we propose.", **BERT)
case("bert_base_uncased", "a word of pieces", text="Unaffable", **BERT, **NO)

# --- deliberate differences -------------------------------------------------------------------------------------------


def differs(number: str, shows: str, **fields: object) -> None:
    case("differences", shows, differs=number, **fields)


def d_cut(number: str, shows: str, max_length: int, text: str, names: list[str], **fields: object) -> None:
    cut(shows, max_length, text, topic="differences", differs=number, error="InputError", names=names, **fields)


d_cut("D1", "a stride as large as a window and more is refused", 4, "a", ["3", "2"], stride=3)
d_cut("D1", "a stride too large for the windows of a pair is refused", 7, "a b c", ["2"], pair="d e f", stride=2)
d_cut("D1", "a stride too large is refused though the text is short", 5, "a", ["3"], stride=3)
d_cut("D2", "less room than special tokens is refused", 1, "a b c", ["1", "2"])
d_cut("D2", "less room than the special tokens of a pair is refused", 2, "a b", ["2", "3"], pair="c")
d_cut("D3", "a stride of one window is refused", 4, "a b c", ["2"], stride=2)
differs("D5", "two tokens with one id are refused", vocab={"[UNK]": 0, "a": 5, "b": 5}, text="a", error="VocabError", names=["5"])
differs("D5", "of added tokens with one normalized form the first is found", added_tokens=added("Zz", "zZ", "q"), text="ZZ q", answer=[{"ids": [35, 37], "tokens": ["zz", "q"], "offsets": [[0, 2], [3, 4]]}], **NO)
differs("D8", "in a vocabulary with gaps a free id is refused too if the reference gives another one", vocab={"[UNK]": 0, "a": 1, "b": 3}, added_tokens=[{"content": "z1", "id": 4}], text="a", error="TokenizerFormatError", names=["z1", "4", "3"])
differs("D8", "an added token whose id in the file is not the one it gets is refused", added_tokens=[{"content": "zz", "id": 40}], text="a", error="TokenizerFormatError", names=["zz", "40", "35"])
differs("D8", "an added token of the vocabulary with another id is refused", added_tokens=[{"content": "hello", "id": 17}], text="a", error="TokenizerFormatError", names=["hello", "17", "16"])
differs("D9", "a template that names a missing special token is refused", text="a", post_processor={**STANDARD, "special_tokens": {"[CLS]": {"ids": [2], "tokens": ["[CLS]"]}}}, error="TokenizerFormatError", names=["[SEP]"])
differs("D9", "a template for one text that names the second is refused", text="a", post_processor={**STANDARD, "single": ["$A:0", "$B:0"]}, error="TokenizerFormatError", names=["B"])
differs("D9", "a special token with more ids than tokens is refused", text="a", post_processor={**MANY, "special_tokens": {"<s>": {"ids": [2, 3], "tokens": ["x"]}}}, error="TokenizerFormatError", names=["<s>"])
differs("D10", "a normalizer that is not known is refused by name", text="a", normalizer={"type": "Nmt2"}, error="TokenizerFormatError", names=["Nmt2"])
differs("D10", "a pre-tokenizer that is not known is refused by name", text="a", pre_tokenizer={"type": "Words"}, error="TokenizerFormatError", names=["Words"])
differs("D14", "the unknown token must be in the vocabulary", vocab=["a"], text="zzz", error="VocabError", names=["[UNK]"])
differs("D14", "also where no word is unknown", vocab=["a"], text="a", error="VocabError", names=["[UNK]"])
differs("D14", "also where it has another name", vocab=["[UNK]", "a"], model={"unk_token": "<oov>"}, text="a", error="VocabError", names=["<oov>"])
differs("D14", "a vocabulary without tokens is refused", vocab=[], text="a", error="VocabError", names=["empty"])
differs("D21", "a special token that is normalized is skipped too", added_tokens=[{"content": "Foo", "normalized": True, "special": True}], decode={"ids": [16, 35]}, answer="hello")
differs("D21", "a content given again as it is decodes as it is", added_tokens=[*added("Zz", normalized=True), *added("Zz", normalized=False)], decode={"ids": [35]}, answer="Zz")
differs("D23", "an added token that normalizes to nothing is refused", text="ab\u0301", added_tokens=added("\u0301"), error="InputError", names=["\\u{301}"])
differs("D24", "white space that a token took is not found again from its end", text="a<m>  b", added_tokens=[*added("<m>", rstrip=True, normalized=False), *added(" ", lstrip=True, normalized=False)], answer=[{"ids": [5, 35, 6], "tokens": ["a", "<m>  ", "b"], "offsets": [[0, 1], [1, 6], [6, 7]]}], **NO)


# fmt: on


# --- running and writing ----------------------------------------------------------------------------------------------
def encoding(found: object) -> dict[str, Any]:
    """One encoding of the reference as the schema has it."""
    fields: dict[str, Any] = {
        "ids": found.ids,
        "tokens": found.tokens,
        "offsets": [list(pair) for pair in found.offsets],
        "word_ids": [-1 if word is None else word for word in found.word_ids],
        "type_ids": found.type_ids,
        "sequence_ids": [-1 if sequence is None else sequence for sequence in found.sequence_ids],
        "attention_mask": found.attention_mask,
        "special_tokens_mask": found.special_tokens_mask,
    }
    if found.overflowing:
        fields["overflowing"] = [encoding(window) for window in found.overflowing]
    return fields


def run(case: Case) -> dict[str, Any]:
    """What the reference answers."""
    import tempfile

    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece

    if "vocab_txt" in case:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vocab.txt"
            path.write_bytes(case["vocab_txt"].encode())
            read = WordPiece.read_file(str(path))
        return {"vocab_read": dict(sorted(read.items(), key=lambda item: item[1]))}
    tokenizer = Tokenizer.from_str(tokenizer_json(case))
    tokenizer.encode_special_tokens = case.get("encode_special_tokens", False)
    found: dict[str, Any] = {}
    if inputs := case.get("inputs"):
        items = [(one["text"], one["pair"]) if "pair" in one else one["text"] for one in inputs]
        encodings = tokenizer.encode_batch(
            items,
            is_pretokenized=isinstance(inputs[0]["text"], list),
            add_special_tokens=case.get("add_special_tokens", True),
        )
        found["encodings"] = [encoding(one) for one in encodings]
    if "decode" in case:
        options = {key: value for key, value in case["decode"].items() if key != "ids"}
        found["decoded"] = tokenizer.decode(case["decode"]["ids"], **options)
    if isinstance(case.get("lookup", {}).get("token_to_id"), list):
        asked = case["lookup"]
        found["lookup"] = {
            "token_to_id": {token: tokenizer.token_to_id(token) for token in asked["token_to_id"]},
            "id_to_token": {str(i): tokenizer.id_to_token(i) for i in asked["id_to_token"]},
            "no_token": [i for i in asked.get("no_token", []) if tokenizer.id_to_token(i) is None],
            "vocab_size": tokenizer.get_vocab_size(),
        }
    return found


def complete(case: Case) -> Case:
    """A case with its answer."""
    by_hand = case.pop("answer", None)
    named = case.get("vocab")
    whole = {**case, "vocab": VOCABS[named]} if isinstance(named, str) else case
    try:
        found = run(whole)
        # Several runs of one case would differ only where the reference leaves the answer to chance, which `differs` has.
        did = short(found)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found, did = {}, f"{type(error).__name__}: {error}"
        assert "error" in case or by_hand is not None, f"{case['name']}: {did}"
    if "differs" not in case:
        if "error" in case:
            assert not found, f"{case['name']}: the reference has no error"
            return {**case, "reference": did}
        return {**case, **found}
    if "error" in case:
        return {**case, "reference": did}
    if "vocab_read" in found:  # the same ids; the difference is a warning
        return {**case, **found}
    assert "ids" not in case
    if isinstance(by_hand, str):
        return {**case, "decoded": by_hand, "reference": did}
    if by_hand is not None:
        return {**case, "encodings": [plain(one) for one in by_hand], "reference": did}
    lookup = {**case["lookup"], "id_to_token": {str(i): token for i, token in case["lookup"]["id_to_token"].items()}}
    return {**case, "lookup": lookup, "reference": did}


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    """An encoding by hand: one text, one token a word, nothing added."""
    n = len(fields["ids"])
    masks = {"attention_mask": [1] * n, "special_tokens_mask": [0] * n}
    return {**fields, "word_ids": list(range(n)), "type_ids": [0] * n, "sequence_ids": [0] * n, **masks}


def short(found: dict[str, Any]) -> str:
    """What the reference did, in a line."""
    if "encodings" in found:
        return "answers " + " / ".join(" ".join(one["tokens"]) for one in found["encodings"])
    return f"answers {found.get('decoded', found)!r}"


def toml(value: object) -> str:
    """A value in TOML, on one line; everything outside ASCII escaped, so that marks and spaces can be seen."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        shown = (
            ch if 32 <= ord(ch) < 127 else f"\\u{ord(ch):04x}" if ord(ch) < 0x10000 else f"\\U{ord(ch):08x}"
            for ch in value
        )
        return '"' + "".join(escaped.get(ch) or seen for ch, seen in zip(value, shown, strict=True)) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return "{ " + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + " }" if value else "{}"


def render(topic: str, cases: list[Case]) -> str:
    """The text of a file."""
    import tokenizers

    assert tokenizers.__version__ == VERSION, f"tokenizers {tokenizers.__version__}; the cases are made with {VERSION}"
    lines = [f"# Made by `python make_cases.py` with tokenizers {VERSION}; README.md has the schema. Do not edit."]
    finished = [complete(dict(one)) for one in cases]
    named = dict.fromkeys(one["vocab"] for one in finished if isinstance(one.get("vocab"), str))
    if named:
        lines += ["", "[vocabs]", *(f"{name} = {toml(VOCABS[name])}" for name in named)]
    for one in finished:
        encodings = one.pop("encodings", [])
        lines += ["", "[[case]]", *(f"{key} = {toml(value)}" for key, value in one.items() if value is not None)]
        for found in encodings:
            lines += ["[[case.encodings]]"]
            lines += [f"{key} = {toml(value)}" for key, value in found.items() if key != "overflowing"]
            if "overflowing" in found:
                windows = ",\n".join("  " + toml(window) for window in found["overflowing"])
                lines += [f"overflowing = [\n{windows},\n]"]
    return "\n".join(lines) + "\n"


def main() -> int:
    stale = []
    for topic, cases in CASES.items():
        path, text = HERE / f"{topic}.toml", render(topic, cases)
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    print(sum(map(len, CASES.values())), "cases;", f"not up to date: {', '.join(stale)}" if stale else "up to date")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
