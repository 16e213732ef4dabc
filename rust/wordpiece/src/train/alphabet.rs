//! The alphabet that `bpe` and `likelihood` start from, and the words cut into it.

use hashbrown::HashMap;

use super::WordCounts;
use super::symbols::Words;
use super::tokens::{Cutter, JOINER, Tokens};
use crate::error::Result;
use crate::matcher::{Matcher, Walk};

/// What `limit_alphabet` left out, and how much of the text that touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DroppedChars {
    /// The characters, the most frequent first.
    pub chars: Vec<char>,
    /// How often they occur in all words.
    pub occurrences: u64,
    /// The characters of all words.
    pub of_characters: u64,
    /// How many words have one of them.
    pub words: u128,
    /// How many words there are.
    pub of_words: u128,
}

/// One character of the text.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// How often it stands in words, at any place.
    weight: u64,
    /// It stands in a word behind its first character.
    continues: bool,
}

/// The characters of the words.
#[derive(Debug)]
pub(super) struct Alphabet {
    seen: HashMap<char, Seen>,
    /// The kept ones, ascending.
    pub kept: Vec<char>,
    pub dropped: DroppedChars,
}

impl Alphabet {
    /// Weighs the characters and keeps the heaviest: those of `initial` first (of each string the first character, seen or
    /// not), then by weight, equal ones by ascending code point.
    pub fn new(words: &WordCounts, of_characters: u64, initial: &[String], limit: Option<usize>) -> Alphabet {
        let mut seen: HashMap<char, Seen> = HashMap::new();
        for (word, n) in words.iter() {
            for (at, c) in word.char_indices() {
                let one = seen.entry(c).or_default();
                one.weight += n;
                one.continues |= at > 0;
            }
        }
        let initial: Vec<char> = initial.iter().filter_map(|text| text.chars().next()).collect();
        let mut ranked: Vec<(bool, u64, char)> = seen.iter().map(|(&c, one)| (false, one.weight, c)).collect();
        ranked.retain(|(_, _, c)| !initial.contains(c));
        ranked.extend(initial.iter().map(|&c| (true, seen.get(&c).map_or(0, |one| one.weight), c)));
        ranked.sort_unstable_by_key(|&(initial, weight, c)| (!initial, std::cmp::Reverse(weight), c));
        ranked.dedup();
        let cut = limit.unwrap_or(usize::MAX).min(ranked.len());
        let dropped: Vec<char> = ranked[cut..].iter().filter(|one| one.1 > 0).map(|one| one.2).collect();
        let mut kept: Vec<char> = ranked[..cut].iter().map(|one| one.2).collect();
        kept.sort_unstable();
        let mut alphabet = Alphabet { seen, kept, dropped: DroppedChars::default() };
        alphabet.dropped = alphabet.touched(words, dropped, of_characters);
        alphabet
    }

    fn touched(&self, words: &WordCounts, chars: Vec<char>, of_characters: u64) -> DroppedChars {
        let occurrences = chars.iter().map(|c| self.seen[c].weight).sum();
        let has_one = |word: &str| word.chars().any(|c| self.kept.binary_search(&c).is_err());
        let touched = |(word, n): (&str, u64)| if has_one(word) { u128::from(n) } else { 0 };
        let words_touched = if chars.is_empty() { 0 } else { words.iter().map(touched).sum() };
        DroppedChars { chars, occurrences, of_characters, words: words_touched, of_words: words.total() }
    }

    /// Appends the plain forms, ascending, then the continuation forms of those that are in as a plain token and stand
    /// behind the first character of some word, ascending.
    pub fn append_to(&self, tokens: &mut Tokens) {
        let mut form = String::new();
        let mut text = |prefix: &str, c: char| {
            form.clear();
            form.push_str(prefix);
            form.push(c);
            form.clone()
        };
        for &c in &self.kept {
            tokens.add(&text("", c));
        }
        let mut continuing: Vec<char> = self.seen.iter().filter(|(_, one)| one.continues).map(|(&c, _)| c).collect();
        continuing.sort_unstable();
        for c in continuing {
            if tokens.id(&text("", c)).is_some() {
                tokens.add(&text(JOINER, c));
            }
        }
    }

    /// Words as the ids of their characters. A character is a continuation by its place in the original word; one that is
    /// not in the vocabulary vanishes.
    pub fn cut(&self, words: &WordCounts, tokens: &Tokens) -> Result<Words> {
        let forms = |prefix: &str| -> HashMap<char, u32> {
            let id = |&c: &char| Some((c, tokens.id(&format!("{prefix}{c}"))?));
            self.seen.keys().filter_map(id).collect()
        };
        // A continuation whose plain form is not in is not in the alphabet either, even where a special token is called so.
        let plain = forms("");
        let mut continuing = forms(JOINER);
        continuing.retain(|c, _| plain.contains_key(c));
        let mut cut = Words::with_room(words);
        for (word, n) in words.iter() {
            let symbols =
                word.char_indices().filter_map(|(at, c)| if at == 0 { plain.get(&c) } else { continuing.get(&c) });
            cut.push(symbols.copied(), n)?;
        }
        Ok(cut)
    }

    /// Words as the ids of their longest pieces under a vocabulary that has the alphabet; characters that are not in it
    /// vanish first.
    pub fn cut_longest(&self, words: &WordCounts, tokens: &Tokens) -> Result<Words> {
        let matcher = Matcher::new(tokens.texts().iter().map(String::as_str).zip(0..), JOINER, usize::MAX);
        let plain = |c: char| tokens.id(c.encode_utf8(&mut [0; 4])).is_some();
        let (cutter, mut walk) = (Cutter::new(tokens), Walk::default());
        let mut cut = Words::with_room(words);
        for (word, n) in words.iter() {
            if matcher.walk(word, &mut walk) {
                cut.push(walk.entries.iter().map(|entry| entry.id), n)?;
                continue;
            }
            let mut symbols = Vec::new();
            let mut at = 0;
            while let Some(c) = word[at..].chars().next() {
                let found = if plain(c) { cutter.longest(&word[at..], at > 0) } else { None };
                at += found.map_or(c.len_utf8(), |(len, _)| len);
                symbols.extend(found.map(|(_, id)| id));
            }
            cut.push(symbols, n)?;
        }
        Ok(cut)
    }
}
