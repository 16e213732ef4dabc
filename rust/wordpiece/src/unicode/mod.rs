//! What a character is: class, lower case, canonical decomposition.
//!
//! Three versions of Unicode hold at once, because the reference implementation mixes them and ids must be equal to its:
//!
//! | question | answer from |
//! |---|---|
//! | removed by cleaning, punctuation, nonspacing mark | Unicode 8.0 |
//! | canonical decomposition, combining class, combining mark | Unicode 9.0 |
//! | word character (`\w`) | Unicode 16.0 |
//! | lower case, number | Unicode 17.0 |
//!
//! So nothing here asks the standard library, whose answers change with the compiler. The tables are measured, code point
//! by code point, on the reference implementation (`measure_char_classes.py` writes `char_classes.json`) and turned into
//! Rust by `generate.py`.
//!
//! Each table has two stages: the high bits of a code point choose a block, the low bits an entry in it; equal blocks are
//! kept once, and an index ends after the last code point that has anything to say. All yes-or-no questions are answered
//! by one load, [`class`]; ask that once per character where several answers are needed.
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

/// The versions of Unicode that decide which words a text has: those of categories, normalization and lower case.
pub const VERSIONS: &str = "8.0, 9.0, 17.0";

/// A set of properties of a character: what [`class`] answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharClass(u16);

impl CharClass {
    /// White_Space of Unicode. Words end here.
    pub const WHITESPACE: Self = Self(tables::WHITESPACE);
    /// Removed by cleaning: U+0000, U+FFFD, and Cc, Cf and Co of Unicode 8.0 except tab, line feed, carriage return.
    /// U+000B, U+000C and U+0085 are in this class and in [`CharClass::WHITESPACE`]; cleaning comes first.
    pub const REMOVED: Self = Self(tables::REMOVED);
    /// The 32 ASCII symbols, and P* of Unicode 8.0. Each is a word of its own.
    pub const PUNCTUATION: Self = Self(tables::PUNCTUATION);
    /// Set apart by spaces as an ideograph. Kana and Hangul are not, and neither is U+2B820–U+2B91F.
    pub const CJK: Self = Self(tables::CJK);
    /// Mn of Unicode 8.0: dropped after decomposition when BERT strips accents.
    pub const NONSPACING_MARK: Self = Self(tables::NONSPACING_MARK);
    /// Mn, Mc, Me of Unicode 9.0: dropped by the normalizer `StripAccents`.
    pub const COMBINING_MARK: Self = Self(tables::COMBINING_MARK);
    /// `\w` of Unicode 16.0: Alphabetic, M*, Nd, Pc and the joiners.
    pub const WORD: Self = Self(tables::WORD);
    /// Nd, Nl, No of Unicode 17.0.
    pub const NUMERIC: Self = Self(tables::NUMERIC);
    /// [`lowercase`] gives something else.
    pub const CHANGES_IN_LOWERCASE: Self = Self(tables::CHANGES_IN_LOWERCASE);
    /// [`decompose`] gives something, Hangul syllables included.
    pub const DECOMPOSES: Self = Self(tables::DECOMPOSES);
    /// [`combining_class`] is not 0: canonical ordering may move it.
    pub const REORDERS: Self = Self(tables::REORDERS);

    /// The class of a letter that has no property at all.
    pub const NONE: Self = Self(0);

    /// Are all properties of `other` among these?
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is any property of `other` among these?
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together, where `|` cannot stand (constants).
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set as a number, a bit for each property in the order of the constants above: for tables made from this one.
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

/// Reads a two-stage table; 0 beyond its end.
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

/// All properties of a character, in one load.
#[inline]
#[must_use]
pub fn class(c: char) -> CharClass {
    CharClass(look_up!(c, CLASS_INDEX, CLASS_BLOCKS, CLASS_SHIFT))
}

/// Is it White_Space?
#[inline]
#[must_use]
pub fn is_whitespace(c: char) -> bool {
    class(c).contains(CharClass::WHITESPACE)
}

/// Is it removed by cleaning? See [`CharClass::REMOVED`].
#[inline]
#[must_use]
pub fn is_removed_by_clean(c: char) -> bool {
    class(c).contains(CharClass::REMOVED)
}

/// Is it a word of its own? See [`CharClass::PUNCTUATION`].
#[inline]
#[must_use]
pub fn is_punctuation(c: char) -> bool {
    class(c).contains(CharClass::PUNCTUATION)
}

/// Is it set apart as an ideograph? See [`CharClass::CJK`].
#[inline]
#[must_use]
pub fn is_cjk(c: char) -> bool {
    class(c).contains(CharClass::CJK)
}

/// Is it dropped when BERT strips accents? See [`CharClass::NONSPACING_MARK`].
#[inline]
#[must_use]
pub fn is_nonspacing_mark(c: char) -> bool {
    class(c).contains(CharClass::NONSPACING_MARK)
}

/// Is it dropped by `StripAccents`? See [`CharClass::COMBINING_MARK`].
#[inline]
#[must_use]
pub fn is_combining_mark(c: char) -> bool {
    class(c).contains(CharClass::COMBINING_MARK)
}

/// Is it part of a word in the sense of `\w`? See [`CharClass::WORD`].
#[inline]
#[must_use]
pub fn is_word(c: char) -> bool {
    class(c).contains(CharClass::WORD)
}

/// Is it a number? See [`CharClass::NUMERIC`].
#[inline]
#[must_use]
pub fn is_numeric(c: char) -> bool {
    class(c).contains(CharClass::NUMERIC)
}

/// Canonical combining class: 0 stays in its place, others are sorted by it within a run.
#[inline]
#[must_use]
pub fn combining_class(c: char) -> u8 {
    look_up!(c, COMBINING_INDEX, COMBINING_BLOCKS, COMBINING_SHIFT)
}

/// The one or two characters of a lower-case mapping: an iterator, made by [`lowercase`].
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

/// Lower case of a character by itself: Σ is always σ, and only İ (U+0130) becomes two, `i` and U+0307.
#[inline]
#[must_use]
pub fn lowercase(c: char) -> Lowercase {
    Lowercase { first: Some(simple_lowercase(c)), second: if c == '\u{130}' { Some('\u{307}') } else { None } }
}

/// The first character of [`lowercase`]: all of it, but for İ (U+0130).
#[inline]
#[must_use]
pub fn simple_lowercase(c: char) -> char {
    let step = tables::LOWER_STEPS[look_up!(c, LOWER_INDEX, LOWER_BLOCKS, LOWER_SHIFT) as usize];
    // Every step of the table ends on a character; the fallback is never taken, and costs no panic path.
    char::from_u32((c as u32).wrapping_add_signed(step)).unwrap_or(c)
}

/// A full canonical decomposition, two to four characters (one for singletons): a slice of `char`, made by [`decompose`].
#[derive(Clone, Copy, Debug)]
pub struct Decomposition(Parts);

#[derive(Clone, Copy, Debug)]
enum Parts {
    Table(&'static [char]),
    /// A Hangul syllable: lead, vowel, and tail if the length is 3.
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

/// Full canonical decomposition (NFD) of a character by itself, `None` where it is its own.
///
/// The marks in it are in canonical order; those of the text around it are for the caller to sort in, by
/// [`combining_class`].
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

#[inline]
pub(crate) fn is_hangul_syllable(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// Chapter 3.12 of the Unicode Standard: 19 leads × 21 vowels × 28 tails, the first tail being none.
#[inline]
fn decompose_hangul(syllable: char) -> Decomposition {
    const VOWELS: u32 = 21;
    const TAILS: u32 = 28;
    let index = syllable as u32 - 0xac00;
    let jamo = |base: u32, n: u32| char::from_u32(base + n).unwrap_or(syllable);
    let tail = index % TAILS;
    Decomposition(Parts::Hangul(
        [jamo(0x1100, index / (VOWELS * TAILS)), jamo(0x1161, index / TAILS % VOWELS), jamo(0x11a7, tail)],
        if tail == 0 { 2 } else { 3 },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    fn decomposed(c: char) -> String {
        decompose(c).map_or_else(|| c.to_string(), |d| d.iter().collect())
    }

    #[test]
    fn a_class_bit_says_the_same_as_the_table_it_speaks_of() {
        for c in all() {
            let lower: String = lowercase(c).collect();
            assert_eq!(class(c).contains(CharClass::CHANGES_IN_LOWERCASE), lower != c.to_string(), "{c:?}");
            assert_eq!(class(c).contains(CharClass::DECOMPOSES), decompose(c).is_some(), "{c:?}");
            assert_eq!(class(c).contains(CharClass::REORDERS), combining_class(c) != 0, "{c:?}");
        }
    }

    #[test]
    fn whitespace_is_the_25_characters_of_white_space() {
        let found: Vec<char> = all().filter(|&c| is_whitespace(c)).collect();
        assert_eq!(found.len(), 25);
        // White_Space has not changed since Unicode 6.3, so here the standard library may be asked.
        assert!(found.iter().all(|c| c.is_whitespace()));
    }

    #[test]
    fn cleaning_removes_by_unicode_8() {
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
    fn punctuation_is_ascii_symbols_and_unicode_8() {
        for c in '\0'..='\u{7f}' {
            assert_eq!(is_punctuation(c), c.is_ascii_punctuation(), "{c:?}");
        }
        assert!(['¡', '·', '\u{2010}', '“', '、', '！', '\u{2e42}'].into_iter().all(is_punctuation));
        // Symbols outside ASCII are not; U+2E43 is punctuation only since Unicode 9.0.
        assert!(!['€', '×', '´', '¢', '\u{2e43}', '～'].into_iter().any(is_punctuation));
    }

    #[test]
    fn ideographs_begin_and_end_where_the_reference_says() {
        let edges = [
            ('\u{3400}', '\u{4dbf}'),
            ('\u{4e00}', '\u{9fff}'),
            ('\u{f900}', '\u{faff}'),
            ('\u{20000}', '\u{2a6df}'),
            ('\u{2a700}', '\u{2b81f}'),
            ('\u{2b920}', '\u{2ceaf}'),
            ('\u{2f800}', '\u{2fa1f}'),
        ];
        for c in all() {
            assert_eq!(is_cjk(c), edges.iter().any(|&(first, last)| (first..=last).contains(&c)), "{c:?}");
        }
    }

    #[test]
    fn marks_are_of_two_versions() {
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
    fn lowercase_is_one_character_but_for_one() {
        let two: Vec<char> = all().filter(|&c| lowercase(c).len() == 2).collect();
        assert_eq!(two, ['\u{130}']);
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
    fn lowercase_of_lowercase_changes_nothing() {
        for c in all() {
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
        assert_eq!(decomposed('ﬁ'), "ﬁ"); // compatibility only
        for c in all() {
            let Some(parts) = decompose(c) else { continue };
            assert!(!parts.is_empty() && parts.len() <= 4, "{c:?}");
            assert!(parts.iter().all(|&p| decompose(p).is_none()), "{c:?}");
            let ordered =
                parts.windows(2).all(|w| combining_class(w[1]) == 0 || combining_class(w[0]) <= combining_class(w[1]));
            assert!(ordered, "{c:?}");
        }
    }

    #[test]
    fn hangul_is_taken_apart_by_arithmetic() {
        assert_eq!(decomposed('\u{ac00}'), "\u{1100}\u{1161}");
        assert_eq!(decomposed('\u{ac01}'), "\u{1100}\u{1161}\u{11a8}");
        assert_eq!(decomposed('\u{d7a3}'), "\u{1112}\u{1175}\u{11c2}");
        assert_eq!(decomposed('\u{d7a4}'), "\u{d7a4}");
        assert_eq!(decomposed('\u{abff}'), "\u{abff}");
    }

    #[test]
    fn a_mark_that_decomposes_leaves_marks_alone() {
        // So that asking before the decomposition and after it gives the same answer.
        for c in all().filter(|&c| is_nonspacing_mark(c)) {
            assert!(decomposed(c).chars().all(is_nonspacing_mark), "{c:?}");
        }
    }
}
