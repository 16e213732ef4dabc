//! Properties of characters: classes, lower case, canonical decomposition.
//!
//! The bottom of the pipeline: it imports nothing. `tokenizers` 0.23.3 mixes several versions of Unicode, and ids must equal
//! its ids, so this module does the same:
//!
//! | property | Unicode version |
//! |---|---|
//! | removed by cleaning, punctuation, nonspacing mark | Unicode 8.0 |
//! | canonical decomposition, combining class, combining mark | Unicode 9.0 |
//! | word character (`\w`), letter (`\p{L}`), number in GPT-2's pattern (`\p{N}`) | Unicode 16.0 |
//! | lower case, number | Unicode 17.0 |
//!
//! The standard library is not used, because its answers change with the compiler. The tables were measured on `tokenizers`,
//! code point by code point (`measure_char_classes.py` writes `char_classes.json`), and `generate.py` turns them into Rust.
//!
//! # Tables
//!
//! Each table has two stages: the high bits of a code point select a block, the low bits an entry in the block. Equal blocks
//! are stored once, and an index ends after the last code point with an entry that is not 0.
//!
//! # Cost
//!
//! A lookup is two dependent loads. [`class`] returns all boolean properties in one lookup; where several are needed, call
//! it once. All tables together take about 110 KB, of which ordinary text touches little.
//!
//! # Example
//!
//! ```
//! use wordpiece::unicode::{class, lowercase, CharClass};
//!
//! let what = class('\u{3000}'); // ideographic space
//! assert!(what.contains(CharClass::WHITESPACE));
//! assert!(!what.intersects(CharClass::PUNCTUATION | CharClass::CJK));
//! assert!(lowercase('Σ').eq(['σ']));
//! ```

#[rustfmt::skip]
mod tables;

use std::ops::{BitOr, Deref};

/// The versions of Unicode that determine the words of a text: of categories, of decomposition and of lower case.
pub const VERSIONS: &str = "8.0, 9.0, 17.0";

/// A set of boolean properties of a character, as returned by [`class`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharClass(u16);

impl CharClass {
    /// White_Space of Unicode. Separates words.
    pub const WHITESPACE: Self = Self(tables::WHITESPACE);
    /// Deleted by cleaning: U+0000, U+FFFD, and Cc, Cf and Co of Unicode 8.0 except tab, line feed, carriage return.
    /// U+000B, U+000C and U+0085 also have [`CharClass::WHITESPACE`]; cleaning comes first.
    pub const REMOVED: Self = Self(tables::REMOVED);
    /// The 32 ASCII symbols, and P* of Unicode 8.0. Each such character is a word.
    pub const PUNCTUATION: Self = Self(tables::PUNCTUATION);
    /// An ideograph that `tokenize_chinese_chars` puts spaces around. Excludes kana, Hangul and U+2B820–U+2B91F.
    pub const CJK: Self = Self(tables::CJK);
    /// Mn of Unicode 8.0: deleted after decomposition when BERT strips accents.
    pub const NONSPACING_MARK: Self = Self(tables::NONSPACING_MARK);
    /// Mn, Mc, Me of Unicode 9.0: deleted by the normalizer `StripAccents`.
    pub const COMBINING_MARK: Self = Self(tables::COMBINING_MARK);
    /// `\w` of Unicode 16.0: Alphabetic, M*, Nd, Pc and the joiners.
    pub const WORD: Self = Self(tables::WORD);
    /// Nd, Nl, No of Unicode 17.0.
    pub const NUMERIC: Self = Self(tables::NUMERIC);
    /// [`lowercase`] differs from the character.
    pub const CHANGES_IN_LOWERCASE: Self = Self(tables::CHANGES_IN_LOWERCASE);
    /// [`decompose`] returns `Some`; includes Hangul syllables.
    pub const DECOMPOSES: Self = Self(tables::DECOMPOSES);
    /// [`combining_class`] is not 0, so canonical ordering can move the character.
    pub const REORDERS: Self = Self(tables::REORDERS);
    /// L* of Unicode 16.0: the letters of GPT-2's pattern.
    pub const LETTER: Self = Self(tables::LETTER);
    /// N* of Unicode 16.0: the numbers of GPT-2's pattern. [`CharClass::NUMERIC`] is of a later version.
    pub const NUMBER: Self = Self(tables::NUMBER);

    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns whether this set contains all properties of `other`.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether this set contains any property of `other`.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union of both sets. Unlike `|`, it can be used in constants.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as a number with one bit per property, in the order of the constants above. For derived tables.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl BitOr for CharClass {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Looks up a character in a two-stage table; 0 beyond its end.
macro_rules! look_up {
    ($c:expr, $index:ident, $blocks:ident, $shift:ident) => {{
        let code = $c as usize;
        match tables::$index.get(code >> tables::$shift) {
            Some(&block) => {
                tables::$blocks[((block as usize) << tables::$shift) | (code & ((1 << tables::$shift) - 1))]
            }
            None => 0,
        }
    }};
}

/// Returns all boolean properties of a character.
#[inline]
#[must_use]
pub fn class(c: char) -> CharClass {
    CharClass(look_up!(c, CLASS_INDEX, CLASS_BLOCKS, CLASS_SHIFT))
}

/// Returns whether a character separates words. See [`CharClass::WHITESPACE`].
#[inline]
#[must_use]
pub fn is_whitespace(c: char) -> bool {
    class(c).contains(CharClass::WHITESPACE)
}

/// Returns whether cleaning deletes a character. See [`CharClass::REMOVED`].
#[inline]
#[must_use]
pub fn is_removed_by_clean(c: char) -> bool {
    class(c).contains(CharClass::REMOVED)
}

/// Returns whether a character is punctuation, and so a word. See [`CharClass::PUNCTUATION`].
#[inline]
#[must_use]
pub fn is_punctuation(c: char) -> bool {
    class(c).contains(CharClass::PUNCTUATION)
}

/// Returns whether a character is isolated as an ideograph. See [`CharClass::CJK`].
#[inline]
#[must_use]
pub fn is_cjk(c: char) -> bool {
    class(c).contains(CharClass::CJK)
}

/// Returns whether BERT's accent stripping deletes a character. See [`CharClass::NONSPACING_MARK`].
#[inline]
#[must_use]
pub fn is_nonspacing_mark(c: char) -> bool {
    class(c).contains(CharClass::NONSPACING_MARK)
}

/// Returns whether `StripAccents` deletes a character. See [`CharClass::COMBINING_MARK`].
#[inline]
#[must_use]
pub fn is_combining_mark(c: char) -> bool {
    class(c).contains(CharClass::COMBINING_MARK)
}

/// Returns whether `\w` matches a character. See [`CharClass::WORD`].
#[inline]
#[must_use]
pub fn is_word(c: char) -> bool {
    class(c).contains(CharClass::WORD)
}

/// Returns whether a character is numeric. See [`CharClass::NUMERIC`].
#[inline]
#[must_use]
pub fn is_numeric(c: char) -> bool {
    class(c).contains(CharClass::NUMERIC)
}

/// Returns the canonical combining class. Canonical ordering sorts each run of characters with other classes than 0 by it.
#[inline]
#[must_use]
pub fn combining_class(c: char) -> u8 {
    look_up!(c, COMBINING_INDEX, COMBINING_BLOCKS, COMBINING_SHIFT)
}

/// The one or two characters of a lower-case mapping, as an iterator. Returned by [`lowercase`].
#[derive(Clone, Debug)]
pub struct Lowercase {
    first: Option<char>,
    second: Option<char>,
}

impl Iterator for Lowercase {
    type Item = char;

    #[inline]
    fn next(&mut self) -> Option<char> {
        self.first.take().or_else(|| self.second.take())
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = usize::from(self.first.is_some()) + usize::from(self.second.is_some());
        (n, Some(n))
    }
}

impl ExactSizeIterator for Lowercase {}

/// Returns the lower case of a character, regardless of context: Σ always becomes σ. Only İ (U+0130) becomes two characters,
/// `i` and U+0307.
#[inline]
#[must_use]
pub fn lowercase(c: char) -> Lowercase {
    Lowercase { first: Some(simple_lowercase(c)), second: if c == '\u{130}' { Some('\u{307}') } else { None } }
}

/// Returns the first character of [`lowercase`], which is the only one except for İ (U+0130).
#[inline]
#[must_use]
pub fn simple_lowercase(c: char) -> char {
    let step = tables::LOWER_STEPS[look_up!(c, LOWER_INDEX, LOWER_BLOCKS, LOWER_SHIFT) as usize];
    // Every step of the table leads to a character, so the fallback is never taken; it avoids a path that panics.
    char::from_u32((c as u32).wrapping_add_signed(step)).unwrap_or(c)
}

/// A full canonical decomposition: a slice of one to four characters. Returned by [`decompose`].
#[derive(Clone, Copy, Debug)]
pub struct Decomposition(Parts);

#[derive(Clone, Copy, Debug)]
enum Parts {
    Table(&'static [char]),
    /// A Hangul syllable: lead, vowel and, if the length is 3, tail.
    Hangul([char; 3], u8),
}

impl Deref for Decomposition {
    type Target = [char];

    #[inline]
    fn deref(&self) -> &[char] {
        match &self.0 {
            Parts::Table(parts) => parts,
            Parts::Hangul(jamo, n) => &jamo[..usize::from(*n)],
        }
    }
}

/// Returns the full canonical decomposition (NFD) of a character, or `None` if it does not decompose.
///
/// The marks of the decomposition are in canonical order. To decompose a text, the caller must also sort each run of marks
/// by [`combining_class`].
#[inline]
#[must_use]
pub fn decompose(c: char) -> Option<Decomposition> {
    if is_hangul_syllable(c) {
        return Some(decompose_hangul(c));
    }
    let n = look_up!(c, DECOMPOSITION_INDEX, DECOMPOSITION_BLOCKS, DECOMPOSITION_SHIFT) as usize;
    if n == 0 {
        return None;
    }
    let start = tables::DECOMPOSITION_STARTS[n] as usize;
    let end = tables::DECOMPOSITION_STARTS[n + 1] as usize;
    Some(Decomposition(Parts::Table(&tables::DECOMPOSITION_PARTS[start..end])))
}

/// Returns whether a character is a precomposed Hangul syllable, which decomposes by arithmetic.
#[inline]
pub(crate) fn is_hangul_syllable(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// Decomposes a Hangul syllable by the arithmetic of section 3.12 of the Unicode Standard: syllables are ordered as 19 leads
/// × 21 vowels × 28 tails, the first of which stands for no tail. Returns the code points, and how many there are.
#[inline]
fn hangul_letters(syllable: char) -> ([u32; 3], u8) {
    const VOWELS: u32 = 21;
    const TAILS: u32 = 28;
    let index = syllable as u32 - 0xac00;
    let tail = index % TAILS;
    let letters = [0x1100 + index / (VOWELS * TAILS), 0x1161 + index / TAILS % VOWELS, 0x11a7 + tail];
    (letters, if tail == 0 { 2 } else { 3 })
}

#[inline]
fn decompose_hangul(syllable: char) -> Decomposition {
    let (letters, n) = hangul_letters(syllable);
    Decomposition(Parts::Hangul(letters.map(|code| char::from_u32(code).unwrap_or(syllable)), n))
}

/// Returns the letters of a Hangul syllable in UTF-8, then other bytes, and the number of bytes that belong to them.
#[inline]
pub(crate) fn decompose_hangul_to_utf8(syllable: char) -> ([u8; 12], usize) {
    let (letters, n) = hangul_letters(syllable);
    let mut utf8 = [0; 12];
    // All letters have three bytes.
    for (bytes, code) in utf8.chunks_exact_mut(3).zip(letters) {
        bytes.copy_from_slice(&[0xE1, 0x80 | (code >> 6 & 0x3F) as u8, 0x80 | (code & 0x3F) as u8]);
    }
    (utf8, 3 * usize::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every character, or a sample where a test that visits all of them takes too long (see
    /// [`wordpiece_parallel::testing::skips_exhaustive_test`]).
    fn all(test: &str) -> impl Iterator<Item = char> {
        let step = if wordpiece_parallel::testing::skips_exhaustive_test(test) { 997 } else { 1 };
        ('\0'..=char::MAX).step_by(step)
    }

    fn decomposed(c: char) -> String {
        decompose(c).map_or_else(|| c.to_string(), |d| d.iter().collect())
    }

    #[test]
    fn letters_of_hangul_in_utf8_are_its_decomposition() {
        for c in all("letters_of_hangul_in_utf8_are_its_decomposition").filter(|&c| is_hangul_syllable(c)) {
            let (utf8, n) = decompose_hangul_to_utf8(c);
            assert_eq!(&utf8[..n], decomposed(c).as_bytes(), "{c:?}");
        }
    }

    #[test]
    fn class_bits_agree_with_the_tables_that_they_summarize() {
        for c in all("class_bits_agree_with_the_tables_that_they_summarize") {
            let lower: String = lowercase(c).collect();
            assert_eq!(class(c).contains(CharClass::CHANGES_IN_LOWERCASE), lower != c.to_string(), "{c:?}");
            assert_eq!(class(c).contains(CharClass::DECOMPOSES), decompose(c).is_some(), "{c:?}");
            assert_eq!(class(c).contains(CharClass::REORDERS), combining_class(c) != 0, "{c:?}");
        }
    }

    #[test]
    fn whitespace_is_the_25_characters_of_white_space() {
        if wordpiece_parallel::testing::skips_exhaustive_test("whitespace_is_the_25_characters_of_white_space") {
            return;
        }
        let found: Vec<char> = ('\0'..=char::MAX).filter(|&c| is_whitespace(c)).collect();
        assert_eq!(found.len(), 25);
        // White_Space has not changed since Unicode 6.3, so the standard library gives the same answers.
        assert!(found.iter().all(|c| c.is_whitespace()));
    }

    #[test]
    fn cleaning_follows_unicode_8() {
        for c in [
            '\0', '\u{1}', '\u{b}', '\u{c}', '\u{7f}', '\u{85}', '\u{ad}', '\u{180e}', '\u{200b}', '\u{200d}',
            '\u{2060}',
        ] {
            assert!(is_removed_by_clean(c), "{c:?}");
        }
        for c in ['\u{feff}', '\u{fffd}', '\u{e000}', '\u{f8ff}', '\u{e0001}', '\u{f0000}', '\u{10fffd}'] {
            assert!(is_removed_by_clean(c), "{c:?}");
        }
        // tab, LF, CR; unassigned in 8.0: U+0378, U+08E2 (Cf since 9.0), U+FFFF and U+10FFFF (never assigned).
        for c in ['\t', '\n', '\r', ' ', '\u{378}', '\u{8e2}', '\u{ffff}', '\u{10ffff}', 'a', '\u{2028}'] {
            assert!(!is_removed_by_clean(c), "{c:?}");
        }
    }

    #[test]
    fn punctuation_is_ascii_symbols_and_p_of_unicode_8() {
        for c in '\0'..='\u{7f}' {
            assert_eq!(is_punctuation(c), c.is_ascii_punctuation(), "{c:?}");
        }
        assert!(['¡', '·', '\u{2010}', '“', '、', '！', '\u{2e42}'].into_iter().all(is_punctuation));
        // Symbols outside ASCII are not; U+2E43 is punctuation only since Unicode 9.0.
        assert!(!['€', '×', '´', '¢', '\u{2e43}', '～'].into_iter().any(is_punctuation));
    }

    #[test]
    fn ideographs_are_the_ranges_of_the_reference() {
        let edges = [
            ('\u{3400}', '\u{4dbf}'),
            ('\u{4e00}', '\u{9fff}'),
            ('\u{f900}', '\u{faff}'),
            ('\u{20000}', '\u{2a6df}'),
            ('\u{2a700}', '\u{2b81f}'),
            ('\u{2b920}', '\u{2ceaf}'),
            ('\u{2f800}', '\u{2fa1f}'),
        ];
        for c in all("ideographs_are_the_ranges_of_the_reference") {
            assert_eq!(is_cjk(c), edges.iter().any(|&(first, last)| (first..=last).contains(&c)), "{c:?}");
        }
    }

    #[test]
    fn marks_follow_two_versions_of_unicode() {
        assert!(is_nonspacing_mark('\u{301}') && is_combining_mark('\u{301}'));
        assert!(!is_nonspacing_mark('\u{93e}') && is_combining_mark('\u{93e}')); // Mc
        assert!(!is_nonspacing_mark('\u{20dd}') && is_combining_mark('\u{20dd}')); // Me
        assert!(!is_nonspacing_mark('\u{8d4}') && is_combining_mark('\u{8d4}')); // Mn since 9.0
        assert!(!is_nonspacing_mark('\u{1df6}') && !is_combining_mark('\u{1df6}')); // Mn since 10.0
        assert_eq!(combining_class('\u{1df6}'), 0);
    }

    #[test]
    fn word_characters_and_numbers() {
        assert!(
            ['a', '_', '0', 'é', '中', '\u{301}', '\u{200d}', '\u{200c}', 'ª', '\u{203f}'].into_iter().all(is_word)
        );
        assert!(![' ', '-', '\'', '½', '€', '\u{ad}'].into_iter().any(is_word));
        assert!(['0', '9', '½', '²', '٣', 'Ⅷ', '〇', '①'].into_iter().all(is_numeric));
        assert!(!['a', '一', '.'].into_iter().any(is_numeric));
    }

    #[test]
    fn lowercase_is_one_character_with_one_exception() {
        let mut other = all("lowercase_is_one_character_with_one_exception").filter(|&c| c != '\u{130}');
        assert_eq!(other.find(|&c| lowercase(c).len() == 2), None);
        assert!(lowercase('\u{130}').eq(['i', '\u{307}']));
        for (c, lower) in
            [('A', 'a'), ('Σ', 'σ'), ('ẞ', 'ß'), ('Å', 'å'), ('\u{212a}', 'k'), ('Ω', 'ω'), ('𐐀', '𐐨'), ('Ꭰ', 'ꭰ')]
        {
            assert!(lowercase(c).eq([lower]), "{c:?}");
        }
        assert!(lowercase('ß').eq(['ß']));
        assert!(lowercase(char::MAX).eq([char::MAX]));
    }

    #[test]
    fn lowercase_is_idempotent() {
        for c in all("lowercase_is_idempotent") {
            let once: String = lowercase(c).collect();
            let twice: String = once.chars().flat_map(lowercase).collect();
            assert_eq!(once, twice, "{c:?}");
        }
    }

    #[test]
    fn decompositions_are_full_and_in_order() {
        assert_eq!(decomposed('é'), "e\u{301}");
        assert_eq!(decomposed('\u{1e69}'), "s\u{323}\u{307}");
        assert_eq!(decomposed('\u{390}'), "\u{3b9}\u{308}\u{301}");
        assert_eq!(decomposed('\u{1f82}'), "\u{3b1}\u{313}\u{300}\u{345}");
        assert_eq!(decomposed('\u{212b}'), "A\u{30a}");
        assert_eq!(decomposed('\u{f900}'), "\u{8c48}"); // a compatibility ideograph is a singleton
        assert_eq!(decomposed('ﬁ'), "ﬁ"); // has only a compatibility decomposition
        for c in all("decompositions_are_full_and_in_order") {
            let Some(parts) = decompose(c) else { continue };
            assert!(!parts.is_empty() && parts.len() <= 4, "{c:?}");
            assert!(parts.iter().all(|&p| decompose(p).is_none()), "{c:?}");
            let ordered =
                parts.windows(2).all(|w| combining_class(w[1]) == 0 || combining_class(w[0]) <= combining_class(w[1]));
            assert!(ordered, "{c:?}");
        }
    }

    #[test]
    fn hangul_decomposes_by_arithmetic() {
        assert_eq!(decomposed('\u{ac00}'), "\u{1100}\u{1161}");
        assert_eq!(decomposed('\u{ac01}'), "\u{1100}\u{1161}\u{11a8}");
        assert_eq!(decomposed('\u{d7a3}'), "\u{1112}\u{1175}\u{11c2}");
        assert_eq!(decomposed('\u{d7a4}'), "\u{d7a4}");
        assert_eq!(decomposed('\u{abff}'), "\u{abff}");
    }

    #[test]
    fn marks_decompose_into_marks() {
        // So a nonspacing mark can be deleted before or after decomposition.
        for c in all("marks_decompose_into_marks").filter(|&c| is_nonspacing_mark(c)) {
            assert!(decomposed(c).chars().all(is_nonspacing_mark), "{c:?}");
        }
    }
}
