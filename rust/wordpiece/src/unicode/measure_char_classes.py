r"""Measure the character properties that tokenizers uses, and write char_classes.json next to this file.

    python measure_char_classes.py            # requires the tokenizers wheel; writes char_classes.json
    python measure_char_classes.py --check    # measures again; exits with 1 if the file differs

Every property is measured on the installed wheel, code point by code point, because the wheel mixes several versions
of Unicode and no single table of the Unicode Consortium gives the same answers. Only the *values* of the canonical
combining classes come from Python's unicodedata (the wheel reveals their order, not their values); they never change
once a character is assigned. Takes fifteen seconds. Run generate.py afterwards.

Keys of the file; ranges are inclusive [first, last] code points:

clean_removed     BertNormalizer(clean_text) removes it: NUL, U+FFFD, and Cc, Cf, Co of Unicode 8.0 but not tab, LF, CR
clean_to_space    BertNormalizer(clean_text) turns it into U+0020
cjk               BertNormalizer(handle_chinese_chars) puts spaces around it
mn                BertNormalizer(strip_accents) deletes it: Mn of Unicode 8.0, and characters that decompose into
                  nothing else, which are Mn themselves
punctuation       BertPreTokenizer isolates it: ASCII symbols, and P* of Unicode 8.0
whitespace        BertPreTokenizer drops it: White_Space
word_regex        single_word added tokens do not match before it: \w of the regex crate, Unicode 16.0
numeric           Digits isolates it: Nd, Nl, No, Unicode 17.0
letter_regex      ByteLevel keeps it in the word of a letter: \p{L} of Unicode 16.0
number_regex      ByteLevel keeps it in the word of a digit: \p{N} of Unicode 16.0
combining_mark    StripAccents drops it: Mn, Mc, Me of Unicode 9.0
combining_class   [code point, class] where the class is not 0, Unicode 9.0
lowercase         BertNormalizer(lowercase) turns it into these, Unicode 17.0
nfd               NFD turns it into these, Unicode 9.0; without the Hangul syllables, which follow the arithmetic of
                  chapter 3.12 of the standard
nfd_hangul        the syllables for which that arithmetic was verified: all of them
"""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

HERE = Path(__file__).resolve().parent
PATH = HERE / "char_classes.json"
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]

Ranges = list[list[int]]


def ranges(code_points: Iterable[int]) -> Ranges:
    """Return ascending code points as inclusive [first, last] ranges."""
    found: Ranges = []
    for c in code_points:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def bert(**on: bool) -> Callable[[str], str]:
    """Return the function of a BertNormalizer with only the given options on."""
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**off, **on}).normalize_str


def hangul_parts(c: int) -> str:
    """Return the jamo of a Hangul syllable, by the arithmetic of the standard."""
    index = c - 0xAC00
    lead, vowel, tail = 0x1100 + index // 588, 0x1161 + index % 588 // 28, 0x11A7 + index % 28
    return chr(lead) + chr(vowel) + (chr(tail) if tail != 0x11A7 else "")


def combining_classes(nfd: Callable[[str], str], decomposed: set[int]) -> list[list[int]]:
    """Return every code point whose class is not 0, by how NFD orders it against one character of each known class."""
    representative: dict[int, str] = {}
    for c in SCALARS:
        k = unicodedata.combining(chr(c))
        # A representative must be assigned in the wheel's version of Unicode: NFD then reorders it with another class.
        if k and k not in representative and c not in decomposed:
            other = "\u0301" if k != 230 else "\u0345"  # classes 230 and 240
            if nfd(chr(c) + other) != nfd(other + chr(c)):
                continue
            representative[k] = chr(c)
    classes = sorted(representative)

    def class_of(ch: str) -> int:
        # NFD puts two marks of different classes in one order, whichever order they are given in. It does not reorder
        # marks of the same class, or anything next to a character of class 0.
        low, high = 0, len(classes) - 1
        while low <= high:
            middle = (low + high) // 2
            r = representative[classes[middle]]
            if nfd(r + ch) == ch + r != r + ch:
                high = middle - 1
            elif nfd(ch + r) == r + ch != ch + r:
                low = middle + 1
            elif ch == r or any(
                nfd(representative[k] + ch) != representative[k] + ch
                or nfd(ch + representative[k]) != ch + representative[k]
                for k in (classes[0], classes[-1])
            ):
                return classes[middle]
            else:
                return 0
        raise SystemExit(f"U+{ord(ch):04X} has a combining class that no representative has")

    found = []
    for c in SCALARS:
        # A mark that decomposes never takes part in the ordering; its class is the standard's.
        k = unicodedata.combining(chr(c)) if c in decomposed else class_of(chr(c))
        if k:
            found.append([c, k])
    return found


def measure() -> dict[str, object]:
    """Measure all properties, in the order of the file."""
    clean, cjk = bert(clean_text=True), bert(handle_chinese_chars=True)
    accents, lower = bert(strip_accents=True), bert(lowercase=True)
    nfd, strip = normalizers.NFD().normalize_str, normalizers.StripAccents().normalize_str
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    digits = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    words = Tokenizer(models.WordPiece({"u": 0}, unk_token="u"))
    words.add_tokens([AddedToken("zz", single_word=True, normalized=False)])

    names = (
        "clean_removed",
        "clean_to_space",
        "cjk",
        "mn",
        "punctuation",
        "whitespace",
        "word_regex",
        "numeric",
        "letter_regex",
        "number_regex",
        "combining_mark",
    )
    seen: dict[str, list[int]] = {name: [] for name in names}
    lowercase: dict[str, list[int]] = {}
    decompositions: dict[str, list[int]] = {}
    decomposed: set[int] = set()
    hangul: list[int] = []
    for c in SCALARS:
        ch = chr(c)
        cleaned = clean(ch)
        if cleaned == "":
            seen["clean_removed"].append(c)
        elif cleaned == " ":
            seen["clean_to_space"].append(c)
        if cjk(ch) != ch:
            seen["cjk"].append(c)
        if accents(ch) == "":
            seen["mn"].append(c)
        if strip(ch) == "":
            seen["combining_mark"].append(c)
        if (small := lower(ch)) != ch:
            lowercase[f"{c:04X}"] = [ord(k) for k in small]
        if (parts := nfd(ch)) != ch:
            decomposed.add(c)
            if 0xAC00 <= c <= 0xD7A3 and parts == hangul_parts(c):
                hangul.append(c)
            else:
                decompositions[f"{c:04X}"] = [ord(k) for k in parts]
        pieces = len(split("a" + ch + "b"))
        if pieces == 3:
            seen["punctuation"].append(c)
        elif pieces == 2:
            seen["whitespace"].append(c)
        if len(digits("a" + ch + "b")) == 3:
            seen["numeric"].append(c)
        if len(byte_level("a" + ch)) == 1:
            seen["letter_regex"].append(c)
        if len(byte_level("1" + ch)) == 1:
            seen["number_regex"].append(c)
        if words.encode("zz" + ch).ids[0] == 0:  # the added token (id 1) did not match, so the text is one unknown word
            seen["word_regex"].append(c)
    about = (
        f"ranges are inclusive code points, measured with tokenizers {tokenizers.__version__} by "
        "measure_char_classes.py, which says what each key means; nfd omits Hangul syllables; "
        "mn includes chars whose whole decomposition is nonspacing marks"
    )
    return {
        "_about": about,
        "_tokenizers": tokenizers.__version__,
        **{name: ranges(found) for name, found in seen.items()},
        "combining_class": combining_classes(nfd, decomposed),
        "lowercase": lowercase,
        "nfd": decompositions,
        "nfd_hangul": ranges(hangul),
    }


def main() -> int:
    lines = (f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in measure().items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if "--check" in sys.argv[1:]:
        same = text == PATH.read_text(encoding="utf-8")
        print("char_classes.json", "agrees with the wheel" if same else "does NOT agree with the wheel")
        return 0 if same else 1
    PATH.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
