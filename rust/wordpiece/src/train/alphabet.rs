//! The alphabet that `bpe` and `likelihood` start from, and the segmentation of words into it.
//!
//! A character is in the vocabulary in up to two forms: plain (`c`), where it begins a word, and as a continuation
//! (`##c`), where it does not. The order of the tokens is fixed: plain forms by ascending code point, then continuation
//! forms by ascending code point. (In `tokenizers` the latter are in the order of a randomly seeded hash map.)

use super::counts::WordCounts;
use super::progress::Monitor;
use super::symbols::SymbolWords;
use super::trained::DroppedChars;
use super::vocab_builder::{CONTINUATION_PREFIX, LongestMatch, VocabBuilder};
use crate::error::Result;
use crate::matcher::{Matcher, PendingPieces};

/// A map from characters, in pages of 256. A text uses few pages, and a lookup costs two loads and no hashing.
#[derive(Debug)]
struct CharMap<T> {
    /// For each page, 1 plus its index in `values` (in pages); 0 if the page is absent. 4,352 entries.
    pages: Vec<u16>,
    values: Vec<T>,
}

impl<T: Copy + Default> CharMap<T> {
    fn new() -> CharMap<T> {
        CharMap { pages: vec![0; (char::MAX as usize >> 8) + 1], values: Vec::new() }
    }

    /// Returns the value of a character, the default if it was never set.
    #[inline]
    fn get(&self, c: char) -> T {
        match self.pages[c as usize >> 8] {
            0 => T::default(),
            page => self.values[(usize::from(page) - 1) << 8 | c as usize & 255],
        }
    }

    #[inline]
    fn get_mut(&mut self, c: char) -> &mut T {
        let page = &mut self.pages[c as usize >> 8];
        if *page == 0 {
            self.values.resize(self.values.len() + 256, T::default());
            *page = (self.values.len() >> 8) as u16;
        }
        &mut self.values[(usize::from(*page) - 1) << 8 | c as usize & 255]
    }

    /// Returns all characters of the pages that are present, ascending, with their values.
    fn iter(&self) -> impl Iterator<Item = (char, T)> {
        let present = (0..self.pages.len() as u32).filter(|&page| self.pages[page as usize] > 0);
        present.flat_map(|page| (page << 8)..(page + 1) << 8).filter_map(char::from_u32).map(|c| (c, self.get(c)))
    }
}

/// How a character is used in the words.
#[derive(Debug, Clone, Copy, Default)]
struct CharUse {
    /// How often it occurs, at any position of a word; 0 if it does not.
    weight: u64,
    /// Whether it occurs after the first position of a word.
    continues: bool,
}

/// The characters of the words, and which of them are kept.
#[derive(Debug)]
pub(super) struct Alphabet {
    uses: CharMap<CharUse>,
    /// The kept characters, ascending.
    kept: Vec<char>,
    pub dropped: DroppedChars,
}

impl Alphabet {
    /// Counts the characters of the words and keeps the `limit` most frequent; on a tie, the smaller code point.
    ///
    /// The first characters of the strings of `initial` rank above all others, whether they occur or not. `characters`
    /// is the number of characters of all words, for the report of what was dropped.
    pub fn new(
        words: &WordCounts,
        characters: u64,
        initial: &[String],
        limit: Option<usize>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Alphabet> {
        let mut uses: CharMap<CharUse> = CharMap::new();
        for (word, n) in words.iter() {
            for (at, c) in word.char_indices() {
                let char_use = uses.get_mut(c);
                char_use.weight += n;
                char_use.continues |= at > 0;
            }
            monitor.step()?;
        }
        let initial: Vec<char> = initial.iter().filter_map(|text| text.chars().next()).collect();
        let mut ranked: Vec<(bool, u64, char)> = uses.iter().map(|(c, char_use)| (false, char_use.weight, c)).collect();
        ranked.retain(|(_, weight, c)| *weight > 0 && !initial.contains(c));
        ranked.extend(initial.iter().map(|&c| (true, uses.get(c).weight, c)));
        ranked.sort_unstable_by_key(|&(initial, weight, c)| (!initial, std::cmp::Reverse(weight), c));
        ranked.dedup();
        let limit = limit.unwrap_or(usize::MAX).min(ranked.len());
        let dropped: Vec<char> = ranked[limit..].iter().filter(|(_, weight, _)| *weight > 0).map(|one| one.2).collect();
        let mut kept: Vec<char> = ranked[..limit].iter().map(|one| one.2).collect();
        kept.sort_unstable();
        let mut alphabet = Alphabet { uses, kept, dropped: DroppedChars::default() };
        alphabet.dropped = alphabet.describe_dropped(words, dropped, characters, monitor)?;
        Ok(alphabet)
    }

    /// Counts how much of the words the dropped characters affect.
    fn describe_dropped(
        &self,
        words: &WordCounts,
        chars: Vec<char>,
        of_characters: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<DroppedChars> {
        let mut is_dropped: CharMap<bool> = CharMap::new();
        chars.iter().for_each(|&c| *is_dropped.get_mut(c) = true);
        let occurrences = chars.iter().map(|&c| self.uses.get(c).weight).sum();
        let mut affected_words = 0;
        for (word, n) in words.iter().filter(|_| !chars.is_empty()) {
            if word.chars().any(|c| is_dropped.get(c)) {
                affected_words += u128::from(n);
            }
            monitor.step()?;
        }
        Ok(DroppedChars { chars, occurrences, of_characters, words: affected_words, of_words: words.total() })
    }

    /// Appends the plain forms of the kept characters, then the continuation forms of the characters that occur after
    /// the first position of a word, if their plain form is in the vocabulary; each group in ascending order.
    pub fn append_to(&self, vocab: &mut VocabBuilder) {
        for &c in &self.kept {
            vocab.add(c.encode_utf8(&mut [0; 4]));
        }
        for (c, _) in self.uses.iter().filter(|(_, char_use)| char_use.continues) {
            if vocab.id(c.encode_utf8(&mut [0; 4])).is_some() {
                vocab.add(&format!("{CONTINUATION_PREFIX}{c}"));
            }
        }
    }

    /// Segments the words into their characters.
    ///
    /// Whether a character continues a word depends on its position in the original word. Characters that are not in
    /// the vocabulary are removed: without `x`, `xab` becomes `##a ##b`.
    pub fn segment_characters(
        &self,
        words: &WordCounts,
        vocab: &VocabBuilder,
        monitor: &mut Monitor<'_>,
    ) -> Result<SymbolWords> {
        // The ids of the plain and the continuation form of each character. A character without its plain form is not
        // in the alphabet, even if a special token happens to have the text of its continuation form.
        let mut forms: CharMap<[Option<u32>; 2]> = CharMap::new();
        for (c, _) in self.uses.iter().filter(|(_, char_use)| char_use.weight > 0) {
            if let Some(plain) = vocab.id(c.encode_utf8(&mut [0; 4])) {
                *forms.get_mut(c) = [Some(plain), vocab.id(&format!("{CONTINUATION_PREFIX}{c}"))];
            }
        }
        let mut segmented = SymbolWords::with_capacity_for(words);
        for (word, n) in words.iter() {
            segmented.push(word.char_indices().filter_map(|(at, c)| forms.get(c)[usize::from(at > 0)]), n)?;
            monitor.step()?;
        }
        Ok(segmented)
    }

    /// Segments the words by longest match with a vocabulary that includes the alphabet.
    ///
    /// Characters that are not in the vocabulary are removed first. That happens in few words: only those that the
    /// matcher cannot segment are segmented slowly.
    pub fn segment_longest_match(
        &self,
        words: &WordCounts,
        vocab: &VocabBuilder,
        monitor: &mut Monitor<'_>,
    ) -> Result<SymbolWords> {
        let matcher = Matcher::new(vocab.texts().iter().map(String::as_str).zip(0..), CONTINUATION_PREFIX, usize::MAX);
        let is_in_vocab = |c: char| vocab.id(c.encode_utf8(&mut [0; 4])).is_some();
        let (longest_match, mut scratch) = (LongestMatch::new(vocab), PendingPieces::default());
        let mut segmented = SymbolWords::with_capacity_for(words);
        for (word, n) in words.iter() {
            monitor.step()?;
            let matched =
                segmented.push_if(n, |list| matcher.each_piece(word, &mut scratch, |piece| list.push(piece.id)))?;
            if matched {
                continue;
            }
            segmented.push_if(n, |list| {
                let mut at = 0;
                while let Some(c) = word[at..].chars().next() {
                    let piece = if is_in_vocab(c) { longest_match.longest(&word[at..], at > 0) } else { None };
                    at += piece.map_or(c.len_utf8(), |(len, _)| len);
                    list.extend(piece.map(|(_, id)| id));
                }
                true
            })?;
        }
        Ok(segmented)
    }
}
