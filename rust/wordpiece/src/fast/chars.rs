//! What a character that is not ASCII becomes: one look into a table made for the options of a tokenizer.

use crate::normalize::{BertNormalizer, Normalized};
use crate::unicode::{self, CharClass};

/// What a character becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    /// Bytes inside a word, no more than the character has; none where it is removed.
    Inside,
    /// A space.
    Space,
    /// A word of its own, of no more bytes than the character has.
    Word,
    /// Bytes inside a word, more than the character has.
    Longer,
    /// A word of its own with spaces around it that somebody will look at.
    Ideograph,
    /// A Hangul syllable, taken apart.
    Hangul,
    /// What this table cannot say: canonical ordering may move it, or it becomes more bytes than fit.
    Other,
}

impl Kind {
    /// Whether it can be written where the character stood.
    #[inline(always)]
    pub fn fits(self) -> bool {
        self <= Kind::Word
    }
}

/// The bytes that fit into an entry.
const FITS: usize = 6;

/// Kind, number of bytes, bytes: eight bytes in all.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    pub kind: Kind,
    pub len: u8,
    /// The bytes that the character becomes, and zeros.
    pub bytes: [u8; FITS],
}

/// The characters that have an entry: the Basic Multilingual Plane.
const TABLE: usize = 1 << 16;

/// The table for the options of a tokenizer.
#[derive(Debug, Clone)]
pub(super) struct Chars {
    options: BertNormalizer,
    exact_text: bool,
    /// What there is to do for each character: a byte where an entry has eight, so that the characters of a script stay in
    /// the nearest cache.
    plans: Box<[Plan; TABLE]>,
    entries: Vec<Entry>,
}

/// What there is to do for a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Plan {
    /// Nothing: it stays as it is inside a word.
    Inside = 0,
    /// It stays as it is, a word of its own.
    Word = 1,
    /// Its entry says.
    Look = 2,
}

impl Chars {
    /// Asks the normalizer about every character once. `exact_text`: the spaces around ideographs count.
    pub fn new(options: BertNormalizer, exact_text: bool) -> Chars {
        let mut form = Normalized::default();
        let entry = |code| match char::from_u32(code) {
            Some(c) => make(&options, exact_text, c, &mut form),
            None => Entry { kind: Kind::Other, len: 0, bytes: [0; FITS] },
        };
        let entries: Vec<Entry> = (0..TABLE as u32).map(entry).collect();
        let mut plans = vec![Plan::Look; TABLE];
        for (code, (plan, entry)) in plans.iter_mut().zip(&entries).enumerate() {
            let same = char::from_u32(code as u32)
                .is_some_and(|c| c.encode_utf8(&mut [0; 4]).as_bytes() == &entry.bytes[..entry.len as usize]);
            match entry.kind {
                Kind::Inside if same => *plan = Plan::Inside,
                Kind::Word if same => *plan = Plan::Word,
                _ => {}
            }
        }
        let plans = plans.try_into().expect("as many as the table has");
        Chars { options, exact_text, plans, entries }
    }

    /// Whether letters become lower case.
    pub fn lowercase(&self) -> bool {
        self.options.lowercase
    }

    /// What there is to do for a character of the Basic Multilingual Plane.
    #[inline(always)]
    pub fn plan(&self, code: u16) -> Plan {
        self.plans[code as usize]
    }

    /// What a character becomes.
    #[inline(always)]
    pub fn get(&self, c: char) -> Entry {
        match self.entries.get(c as usize) {
            Some(entry) => *entry,
            None => make(&self.options, self.exact_text, c, &mut Normalized::default()),
        }
    }
}

fn make(options: &BertNormalizer, exact_text: bool, c: char, form: &mut Normalized) -> Entry {
    let class = unicode::class(c);
    let entry = |kind, text: &str| {
        let mut bytes = [0; FITS];
        let longer = text.len() > c.len_utf8();
        let kind = match kind {
            Kind::Inside if longer => Kind::Longer,
            Kind::Word if longer => Kind::Other,
            kind => kind,
        };
        match text.len() {
            n if n <= FITS => {
                bytes[..n].copy_from_slice(text.as_bytes());
                Entry { kind, len: n as u8, bytes }
            }
            _ => Entry { kind: Kind::Other, len: 0, bytes },
        }
    };
    if class.contains(CharClass::REMOVED) {
        return entry(Kind::Inside, "");
    }
    if class.contains(CharClass::WHITESPACE) {
        return entry(Kind::Space, " ");
    }
    let strip = options.strips_accents();
    if strip && unicode::is_hangul_syllable(c) {
        return entry(Kind::Hangul, "");
    }
    let plain = CharClass::CHANGES_IN_LOWERCASE | CharClass::DECOMPOSES | CharClass::REORDERS;
    if !class.intersects(plain | CharClass::NONSPACING_MARK | CharClass::PUNCTUATION | CharClass::CJK) {
        return entry(Kind::Inside, c.encode_utf8(&mut [0; 4]));
    }
    // The ideograph alone, without the spaces around it.
    BertNormalizer { tokenize_chinese_chars: false, ..*options }.normalize(c.encode_utf8(&mut [0; 4]), 0, false, form);
    let mut parts = form.text.chars();
    let (first, more) = (parts.next(), parts.next().is_some());
    let reorders = strip && form.text.chars().any(|part| unicode::combining_class(part) != 0);
    let splits = form.text.chars().any(|part| {
        unicode::class(part).intersects(CharClass::PUNCTUATION | CharClass::WHITESPACE | CharClass::REMOVED)
    });
    match first {
        _ if reorders || (splits && more) => entry(Kind::Other, ""),
        None => entry(Kind::Inside, ""),
        Some(_) if options.tokenize_chinese_chars && class.contains(CharClass::CJK) => {
            let kind = if exact_text { Kind::Ideograph } else { Kind::Word };
            entry(if splits { Kind::Other } else { kind }, &form.text)
        }
        Some(_) if splits => entry(Kind::Word, &form.text),
        Some(_) => entry(Kind::Inside, &form.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_characters_are_left_to_the_pipeline() {
        for options in [
            BertNormalizer::default(),
            BertNormalizer { strip_accents: Some(false), ..BertNormalizer::default() },
            BertNormalizer { lowercase: false, ..BertNormalizer::default() },
        ] {
            let chars = Chars::new(options, false);
            let others = (128..TABLE as u32).filter_map(char::from_u32).filter(|&c| chars.get(c).kind == Kind::Other);
            assert!(others.count() < 260, "{options:?}");
        }
    }
}
