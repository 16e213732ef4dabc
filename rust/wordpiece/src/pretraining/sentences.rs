//! Cuts a line into sentences.
//!
//! A sentence ends after a run of `. ! ? … 。 ！ ？` and the closing quotes and brackets behind it, if white space follows
//! (not needed after `。！？`) and the next character is not lower case. A lone full stop after an initial or an
//! abbreviation ends nothing.
//!
//! The rule has no dictionary but a list of English abbreviations: `"No."` ends no sentence, and `U.S. Army` is cut.

use std::collections::BTreeSet;
use std::ops::Range;

/// What a sentence can end with.
const TERMINATORS: &[char] = &['.', '!', '?', '…', '。', '！', '？'];
/// Terminators that need no white space behind them.
const WIDE_TERMINATORS: &[char] = &['。', '！', '？'];
/// What may stand between a terminator and the end of its sentence.
const CLOSERS: &[char] = &['"', '\'', ')', ']', '}', '»', '”', '’', '」', '』', '）', '】'];
/// What may stand before an abbreviation.
const OPENERS: &[char] = &['"', '\'', '(', '[', '{', '«', '“', '‘', '「', '『', '（', '【'];

/// The abbreviations that end no sentence unless others are given, in lower case and without the last full stop.
pub const ABBREVIATIONS: [&str; 29] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "e.g", "i.e", "cf", "al", "inc", "ltd", "co",
    "corp", "no", "vol", "fig", "eq", "pp", "gen", "col", "lt", "sgt", "rev", "hon",
];

/// Cuts lines into sentences.
///
/// ```
/// use wordpiece::pretraining::SentenceSplitter;
///
/// let splitter = SentenceSplitter::default();
/// let sentences = splitter.split("Mr. Ito left. It rained.");
/// assert_eq!(sentences.collect::<Vec<_>>(), ["Mr. Ito left.", "It rained."]);
/// ```
#[derive(Debug, Clone)]
pub struct SentenceSplitter {
    /// In lower case, without the last full stop.
    abbreviations: BTreeSet<String>,
    /// The length of the longest in bytes.
    longest: usize,
}

impl Default for SentenceSplitter {
    fn default() -> Self {
        SentenceSplitter::new(ABBREVIATIONS.into_iter())
    }
}

impl SentenceSplitter {
    /// Creates a splitter with other abbreviations than [`ABBREVIATIONS`]. A full stop at the end of one is ignored.
    pub fn new<'a>(abbreviations: impl Iterator<Item = &'a str>) -> SentenceSplitter {
        let abbreviations = abbreviations.map(|word| word.strip_suffix('.').unwrap_or(word).to_lowercase());
        let abbreviations: BTreeSet<String> = abbreviations.filter(|word| !word.is_empty()).collect();
        let longest = abbreviations.iter().map(String::len).max().unwrap_or(0);
        SentenceSplitter { abbreviations, longest }
    }

    /// Returns the sentences of a line, trimmed; none if it is blank.
    pub fn split<'t>(&self, line: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = 0..line.len();
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let end = self.next_end(line, rest.clone());
                let sentence = line[rest.start..end].trim();
                rest.start = end;
                if !sentence.is_empty() {
                    return Some(sentence);
                }
            }
            None
        })
    }

    /// Returns where the sentence ends that begins at the start of a range of the line.
    fn next_end(&self, line: &str, range: Range<usize>) -> usize {
        let mut at = range.start;
        while let Some(found) = find_terminator(&line.as_bytes()[at..range.end]) {
            let start = at + found;
            // A byte that may begin a terminator can begin another character.
            let Some(length) = line[start..].chars().next().filter(|c| !TERMINATORS.contains(c)).map(char::len_utf8)
            else {
                let end = start + line[start..].len() - line[start..].trim_start_matches(TERMINATORS).len();
                let closed = line.len() - line[end..].trim_start_matches(CLOSERS).len();
                if self.ends_sentence(line, start..end, closed) {
                    return closed;
                }
                at = closed;
                continue;
            };
            at = start + length;
        }
        range.end
    }

    /// Returns whether a sentence ends at `closed`, behind a run of terminators and its closers.
    fn ends_sentence(&self, line: &str, run: Range<usize>, closed: usize) -> bool {
        let following = &line[closed..];
        let next = following.trim_start();
        let has_space = next.len() < following.len() || following.is_empty();
        let wide = line[run.clone()].ends_with(WIDE_TERMINATORS);
        if !(has_space || wide) || next.starts_with(char::is_lowercase) {
            return false;
        }
        line[run.clone()] != *"." || !self.is_abbreviation(&line[..run.start])
    }

    /// Returns whether a text ends with an initial or an abbreviation.
    fn is_abbreviation(&self, before: &str) -> bool {
        let start = before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(i, c)| i + c.len_utf8());
        let word = before[start..].trim_start_matches(OPENERS);
        let mut chars = word.chars();
        match (chars.next(), chars.next()) {
            (Some(initial), None) if initial.is_uppercase() => true,
            // Most sentences end with a word that is longer than any abbreviation. (In lower case a word of ASCII is as long
            // as before, others may be shorter.)
            _ if word.is_ascii() && word.len() > self.longest => false,
            _ => self.abbreviations.contains(&word.to_lowercase()),
        }
    }
}

/// Returns the first byte that may begin a terminator.
fn find_terminator(bytes: &[u8]) -> Option<usize> {
    // The three of ASCII, and the lead bytes of the others (U+2026, U+3002, U+FF01 and U+FF1F).
    let may_begin =
        |byte: u8| (byte == b'.') | (byte == b'!') | (byte == b'?') | (byte == 0xE2) | (byte == 0xE3) | (byte == 0xEF);
    // Of complete blocks only whether they have one, in bytes and without branches: the compiler makes vectors of that.
    let has_none = |block: &&[u8; BLOCK]| block.iter().fold(0, |any, &byte| any | u8::from(may_begin(byte))) == 0;
    let skipped = BLOCK * bytes.as_chunks().0.iter().take_while(has_none).count();
    Some(skipped + bytes[skipped..].iter().position(|&byte| may_begin(byte))?)
}

/// Number of bytes of a block in which a terminator is looked for.
const BLOCK: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_the_rule() {
        let splitter = SentenceSplitter::default();
        let cases: [(&str, &[&str]); 9] = [
            ("It rained . the river rose.", &["It rained . the river rose."]),
            (
                "Mr. Ito met J. R. Aalto at 5 p.m. in Rome. They left.",
                &["Mr. Ito met J. R. Aalto at 5 p.m. in Rome.", "They left."],
            ),
            ("She said \"No.\" Then she went.", &["She said \"No.\" Then she went."]),
            ("What?! Yes... maybe. OK", &["What?!", "Yes... maybe.", "OK"]),
            ("雨だ。川が。「はい。」そう", &["雨だ。", "川が。", "「はい。」", "そう"]),
            ("One.Two. Three", &["One.Two.", "Three"]),
            ("(First.) “Third?” Fourth", &["(First.)", "“Third?”", "Fourth"]),
            ("... ", &["..."]),
            (" \t ", &[]),
        ];
        for (line, sentences) in cases {
            assert_eq!(splitter.split(line).collect::<Vec<_>>(), sentences, "{line:?}");
        }
    }

    #[test]
    fn terminators_are_found_at_every_place_of_a_block() {
        for byte in *b".!?\xE2\xE3\xEF" {
            for at in 0..100 {
                let mut bytes = [b'a'; 100];
                assert_eq!(find_terminator(&bytes[..at]), None);
                bytes[at] = byte;
                bytes[99] = byte;
                assert_eq!(find_terminator(&bytes), Some(at));
            }
        }
    }

    #[test]
    fn other_abbreviations_replace_the_list() {
        let splitter = SentenceSplitter::new(["Abs."].into_iter());
        assert_eq!(splitter.split("Siehe Abs. Zwei. Mr. Ito").collect::<Vec<_>>(), ["Siehe Abs. Zwei.", "Mr.", "Ito"]);
        // The Kelvin sign has three bytes, and one in lower case.
        let splitter = SentenceSplitter::new(["k"].into_iter());
        assert_eq!(splitter.split("(\u{212a}. Zwei. (k. Ito").collect::<Vec<_>>(), ["(\u{212a}. Zwei.", "(k. Ito"]);
    }
}
