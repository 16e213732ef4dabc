//! The alphabet that `bpe` and `likelihood` start from, and the words cut into it.

use super::symbols::Words;
use super::tokens::{Cutter, JOINER, Tokens};
use super::{Watch, WordCounts};
use crate::error::Result;
use crate::matcher::{Matcher, WordPieces};

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

/// Something about each character, by pages of 256: every text has its few pages, and nothing is hashed.
#[derive(Debug)]
struct Chars<T> {
    /// For each page its number, counted from 1; 0 where it is not there.
    pages: Vec<u16>,
    values: Vec<T>,
}

impl<T: Copy + Default> Chars<T> {
    fn new() -> Chars<T> {
        Chars { pages: vec![0; (char::MAX as usize >> 8) + 1], values: Vec::new() }
    }

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

    /// All characters of all pages that are there, ascending.
    fn iter(&self) -> impl Iterator<Item = (char, T)> {
        let all = (0..self.pages.len() as u32).filter(|&page| self.pages[page as usize] > 0);
        all.flat_map(|page| (page << 8)..(page + 1) << 8).filter_map(char::from_u32).map(|c| (c, self.get(c)))
    }
}

/// One character of the text.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// How often it stands in words, at any place; 0: it was not met.
    weight: u64,
    /// It stands in a word behind its first character.
    continues: bool,
}

/// The characters of the words.
#[derive(Debug)]
pub(super) struct Alphabet {
    seen: Chars<Seen>,
    /// The kept ones, ascending.
    pub kept: Vec<char>,
    pub dropped: DroppedChars,
}

impl Alphabet {
    /// Weighs the characters and keeps the heaviest: those of `initial` first (of each string the first character, seen or
    /// not), then by weight, equal ones by ascending code point.
    pub fn new(
        words: &WordCounts,
        of_characters: u64,
        initial: &[String],
        limit: Option<usize>,
        watch: &mut Watch<'_>,
    ) -> Result<Alphabet> {
        let mut seen: Chars<Seen> = Chars::new();
        for (word, n) in words.iter() {
            for (at, c) in word.char_indices() {
                let one = seen.get_mut(c);
                one.weight += n;
                one.continues |= at > 0;
            }
            watch.step()?;
        }
        let initial: Vec<char> = initial.iter().filter_map(|text| text.chars().next()).collect();
        let mut ranked: Vec<(bool, u64, char)> = seen.iter().map(|(c, one)| (false, one.weight, c)).collect();
        ranked.retain(|(_, weight, c)| *weight > 0 && !initial.contains(c));
        ranked.extend(initial.iter().map(|&c| (true, seen.get(c).weight, c)));
        ranked.sort_unstable_by_key(|&(initial, weight, c)| (!initial, std::cmp::Reverse(weight), c));
        ranked.dedup();
        let cut = limit.unwrap_or(usize::MAX).min(ranked.len());
        let dropped: Vec<char> = ranked[cut..].iter().filter(|one| one.1 > 0).map(|one| one.2).collect();
        let mut kept: Vec<char> = ranked[..cut].iter().map(|one| one.2).collect();
        kept.sort_unstable();
        let mut alphabet = Alphabet { seen, kept, dropped: DroppedChars::default() };
        alphabet.dropped = alphabet.touched(words, dropped, of_characters, watch)?;
        Ok(alphabet)
    }

    fn touched(
        &self,
        words: &WordCounts,
        chars: Vec<char>,
        of_characters: u64,
        watch: &mut Watch<'_>,
    ) -> Result<DroppedChars> {
        let mut is_dropped: Chars<bool> = Chars::new();
        chars.iter().for_each(|&c| *is_dropped.get_mut(c) = true);
        let occurrences = chars.iter().map(|&c| self.seen.get(c).weight).sum();
        let mut words_touched = 0;
        for (word, n) in words.iter().filter(|_| !chars.is_empty()) {
            if word.chars().any(|c| is_dropped.get(c)) {
                words_touched += u128::from(n);
            }
            watch.step()?;
        }
        Ok(DroppedChars { chars, occurrences, of_characters, words: words_touched, of_words: words.total() })
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
        for (c, _) in self.seen.iter().filter(|(_, one)| one.continues) {
            if tokens.id(&text("", c)).is_some() {
                tokens.add(&text(JOINER, c));
            }
        }
    }

    /// Words as the ids of their characters. A character is a continuation by its place in the original word; one that is
    /// not in the vocabulary vanishes.
    pub fn cut(&self, words: &WordCounts, tokens: &Tokens, watch: &mut Watch<'_>) -> Result<Words> {
        // For each character its plain and its continuation form. A continuation whose plain form is not in is not in the
        // alphabet either, even where a special token is called so.
        let mut forms: Chars<[Option<u32>; 2]> = Chars::new();
        for (c, _) in self.seen.iter().filter(|(_, one)| one.weight > 0) {
            if let Some(plain) = tokens.id(c.encode_utf8(&mut [0; 4])) {
                *forms.get_mut(c) = [Some(plain), tokens.id(&format!("{JOINER}{c}"))];
            }
        }
        let mut cut = Words::with_room(words);
        for (word, n) in words.iter() {
            cut.push(word.char_indices().filter_map(|(at, c)| forms.get(c)[usize::from(at > 0)]), n)?;
            watch.step()?;
        }
        Ok(cut)
    }

    /// Words as the ids of their longest pieces under a vocabulary that has the alphabet; characters that are not in it
    /// vanish first.
    pub fn cut_longest(&self, words: &WordCounts, tokens: &Tokens, watch: &mut Watch<'_>) -> Result<Words> {
        let matcher = Matcher::new(tokens.texts().iter().map(String::as_str).zip(0..), JOINER, usize::MAX);
        let plain = |c: char| tokens.id(c.encode_utf8(&mut [0; 4])).is_some();
        let (cutter, mut word_pieces) = (Cutter::new(tokens), WordPieces::default());
        let mut cut = Words::with_room(words);
        for (word, n) in words.iter() {
            watch.step()?;
            if matcher.match_word(word, &mut word_pieces) {
                cut.push(word_pieces.pieces.iter().map(|piece| piece.id), n)?;
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
