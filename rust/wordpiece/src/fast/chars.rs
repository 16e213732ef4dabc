//! The normalized forms of non-ASCII characters, in a table that is built once for the options of a normalizer.
//!
//! The table is filled by calling the pipeline's normalizer once for each character of the Basic Multilingual Plane, so
//! the two cannot disagree. It takes 576 KiB, and all tokenizers with the same options share it.

use std::sync::OnceLock;

use crate::normalize::{BertNormalizer, Normalized};
use crate::unicode::{self, CharClass};

/// The kind of a character's normalized form. The scan handles the kinds up to `Word` in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum CharKind {
    /// Bytes inside a word, no more than the character has; none if it is removed.
    Inside,
    /// A space.
    Space,
    /// A complete word, of no more bytes than the character has.
    Word,
    /// Bytes inside a word, more than the character has.
    Longer,
    /// A complete word with spaces around it that added tokens can match.
    Ideograph,
    /// A Hangul syllable, which is decomposed by arithmetic.
    Hangul,
    /// Something the table does not hold: canonical ordering may move it, or it becomes more bytes than an entry has.
    Other,
}

impl CharKind {
    /// Returns whether the result can be written over the character.
    #[inline(always)]
    pub fn fits(self) -> bool {
        self <= CharKind::Word
    }
}

/// Number of bytes that an entry holds.
const ENTRY_BYTES: usize = 6;

/// The normalized form of a character, in eight bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct CharEntry {
    /// The kind of the bytes.
    pub kind: CharKind,
    /// Number of `bytes` that are used, at most 6.
    pub len: u8,
    /// The UTF-8 bytes that the character becomes, then zeros. Without the spaces around an ideograph.
    pub bytes: [u8; ENTRY_BYTES],
}

/// Number of characters of the Basic Multilingual Plane.
const TABLE_LEN: usize = 1 << 16;

/// How many characters have an entry in the table. Miri takes minutes for all of them; there, the entries of the others are
/// worked out where they occur, as those beyond the plane are.
const ENTRIES: usize = if cfg!(miri) { 0x300 } else { TABLE_LEN };

/// The table for the options of a tokenizer.
#[derive(Debug)]
pub(super) struct CharTable {
    /// The options that the entries were made for.
    options: BertNormalizer,
    /// Whether spaces are written around ideographs; see [`CharTable::new`].
    exact_text: bool,
    /// The action for each character: one byte where an entry has eight, so that the characters of a script stay in
    /// the first-level cache.
    actions: Box<[CharAction; TABLE_LEN]>,
    /// The entry of each character, by code point; surrogates, which no text contains, are `Other`.
    entries: Vec<CharEntry>,
}

/// The action for a character. The scan computes with the values of the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CharAction {
    /// Keep it, as part of a word.
    KeepInside = 0,
    /// Keep it, as a complete word.
    KeepWord = 1,
    /// Replace it by its entry.
    Replace = 2,
}

/// The tables that have been built, by options: building one takes longer than everything else about a small tokenizer.
static TABLES: [OnceLock<CharTable>; 32] = [const { OnceLock::new() }; 32];

impl CharTable {
    /// Returns the table of these options, which are as in [`CharTable::new`]. It is kept until the process ends.
    pub fn shared(options: BertNormalizer, exact_text: bool) -> &'static CharTable {
        let BertNormalizer { clean_text, tokenize_chinese_chars, lowercase, .. } = options;
        let switches = [clean_text, tokenize_chinese_chars, options.strips_accents(), lowercase, exact_text];
        let index = switches.iter().fold(0, |index, &switch| 2 * index + usize::from(switch));
        TABLES[index].get_or_init(|| CharTable::new(options, exact_text))
    }

    /// Calls the normalizer for every character once. `exact_text`: whether the spaces around ideographs are needed,
    /// because added tokens are searched for in the normalized text.
    fn new(options: BertNormalizer, exact_text: bool) -> CharTable {
        let mut form = Normalized::default();
        let entry = |code| match char::from_u32(code) {
            Some(c) => make_entry(&options, exact_text, c, &mut form),
            None => CharEntry { kind: CharKind::Other, len: 0, bytes: [0; ENTRY_BYTES] },
        };
        let entries: Vec<CharEntry> = (0..ENTRIES as u32).map(entry).collect();
        let mut actions = vec![CharAction::Replace; TABLE_LEN];
        for (code, (action, entry)) in actions.iter_mut().zip(&entries).enumerate() {
            let is_same = char::from_u32(code as u32)
                .is_some_and(|c| c.encode_utf8(&mut [0; 4]).as_bytes() == &entry.bytes[..entry.len as usize]);
            match entry.kind {
                CharKind::Inside if is_same => *action = CharAction::KeepInside,
                CharKind::Word if is_same => *action = CharAction::KeepWord,
                _ => {}
            }
        }
        let actions = actions.try_into().expect("one for each character of the table");
        CharTable { options, exact_text, actions, entries }
    }

    /// Returns whether letters become lower case.
    pub fn lowercase(&self) -> bool {
        self.options.lowercase
    }

    /// Returns what to do with a character of the Basic Multilingual Plane.
    #[inline(always)]
    pub fn action(&self, code: u16) -> CharAction {
        self.actions[code as usize]
    }

    /// Returns what a character becomes; beyond the Basic Multilingual Plane by calling the normalizer.
    #[inline(always)]
    pub fn get(&self, c: char) -> CharEntry {
        match self.entries.get(c as usize) {
            Some(entry) => *entry,
            None => make_entry(&self.options, self.exact_text, c, &mut Normalized::default()),
        }
    }
}

/// Works out the entry of a character by its classes and, if it changes, by calling the normalizer. `form` is a scratch
/// buffer.
///
/// A character is `Other` if its neighbours matter (canonical ordering), if it becomes several words, or a word longer
/// than itself: nothing here can express that, and less than one character in 200 is of these kinds.
fn make_entry(options: &BertNormalizer, exact_text: bool, c: char, form: &mut Normalized) -> CharEntry {
    let class = unicode::class(c);
    let entry = |kind, text: &str| {
        let mut bytes = [0; ENTRY_BYTES];
        let longer = text.len() > c.len_utf8();
        let kind = match kind {
            CharKind::Inside if longer => CharKind::Longer,
            CharKind::Word if longer => CharKind::Other,
            kind => kind,
        };
        match text.len() {
            n if n <= ENTRY_BYTES => {
                bytes[..n].copy_from_slice(text.as_bytes());
                CharEntry { kind, len: n as u8, bytes }
            }
            _ => CharEntry { kind: CharKind::Other, len: 0, bytes },
        }
    };
    if class.contains(CharClass::REMOVED) {
        return entry(CharKind::Inside, "");
    }
    if class.contains(CharClass::WHITESPACE) {
        return entry(CharKind::Space, " ");
    }
    let strip = options.strips_accents();
    if strip && unicode::is_hangul_syllable(c) {
        return entry(CharKind::Hangul, "");
    }
    let plain = CharClass::CHANGES_IN_LOWERCASE | CharClass::DECOMPOSES | CharClass::REORDERS;
    if !class.intersects(plain | CharClass::NONSPACING_MARK | CharClass::PUNCTUATION | CharClass::CJK) {
        return entry(CharKind::Inside, c.encode_utf8(&mut [0; 4]));
    }
    // Of an ideograph without the spaces around it.
    BertNormalizer { tokenize_chinese_chars: false, ..*options }.normalize(c.encode_utf8(&mut [0; 4]), 0, false, form);
    let mut parts = form.text.chars();
    let (first, more) = (parts.next(), parts.next().is_some());
    let reorders = strip && form.text.chars().any(|part| unicode::combining_class(part) != 0);
    let splits = form.text.chars().any(|part| {
        unicode::class(part).intersects(CharClass::PUNCTUATION | CharClass::WHITESPACE | CharClass::REMOVED)
    });
    match first {
        _ if reorders || (splits && more) => entry(CharKind::Other, ""),
        None => entry(CharKind::Inside, ""),
        Some(_) if options.tokenize_chinese_chars && class.contains(CharClass::CJK) => {
            let kind = if exact_text { CharKind::Ideograph } else { CharKind::Word };
            entry(if splits { CharKind::Other } else { kind }, &form.text)
        }
        Some(_) if splits => entry(CharKind::Word, &form.text),
        Some(_) => entry(CharKind::Inside, &form.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "looks at 65,000 characters")]
    fn few_characters_are_left_to_the_pipeline() {
        for options in [
            BertNormalizer::default(),
            BertNormalizer { strip_accents: Some(false), ..BertNormalizer::default() },
            BertNormalizer { lowercase: false, ..BertNormalizer::default() },
        ] {
            let chars = CharTable::shared(options, false);
            let others =
                (128..TABLE_LEN as u32).filter_map(char::from_u32).filter(|&c| chars.get(c).kind == CharKind::Other);
            assert!(others.count() < 260, "{options:?}");
        }
    }
}
