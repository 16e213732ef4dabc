//! Texts that are looked up together.

use super::table::{Found as FoundWords, GROUP, Words};
use super::{CHUNK, Fast, MOST_AT_ONCE, Memory, write_words};
use crate::inputs::pieces::Pieces;
use crate::matcher::Matcher;
use crate::offsets::Span;

/// What is wanted of texts beside ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The words that pieces belong to.
    pub words: bool,
    /// Where pieces stand, in bytes.
    pub spans: bool,
}

/// The pieces of a text.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub ids: &'a [u32],
    /// Empty when nobody asked.
    pub words: &'a [u32],
    /// Empty when nobody asked.
    pub spans: &'a mut [Span],
}

impl Fast {
    /// Tokenizes texts in which no added token stands, up to one that only the pipeline can do; returns how many it has
    /// done. `found` is called with the number of each text and its pieces.
    pub fn tokenize_texts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        wanted: Wanted,
        matcher: &Matcher,
        memory: &mut Memory,
        mut found: impl FnMut(usize, Found<'_>),
    ) -> usize {
        let mut done = 0;
        memory.begin(wanted);
        for text in texts {
            if !self.gather(text, memory) {
                break;
            }
            if memory.buffer.text().len() >= CHUNK {
                done += self.look_up_gathered(done, wanted, matcher, memory, &mut found);
                memory.begin(wanted);
            }
        }
        done + self.look_up_gathered(done, wanted, matcher, memory, &mut found)
    }

    /// Puts the words of a text behind those that wait; false, and nothing done, where only the pipeline can.
    fn gather(&self, text: &str, memory: &mut Memory) -> bool {
        let before = memory.buffer.lengths();
        memory.buffer.unit = 0;
        if self.normalize(text, 0, text.len(), &mut memory.buffer).is_none() {
            memory.buffer.restore(before);
            return false;
        }
        memory.buffer.close();
        memory.marks.push(memory.buffer.ends().len());
        true
    }

    /// Looks the words of the texts that wait up; returns how many texts.
    fn look_up_gathered(
        &self,
        first: usize,
        wanted: Wanted,
        matcher: &Matcher,
        memory: &mut Memory,
        found: &mut impl FnMut(usize, Found<'_>),
    ) -> usize {
        if memory.marks.is_empty() {
            return 0;
        }
        let Memory { table, buffer, word_pieces, ids, counts, marks, found: pieces, .. } = memory;
        let (mut starts, mut ends) = buffer.take_words();
        let n = ends.len();
        starts.extend_from_slice(&[0; GROUP]);
        ends.extend_from_slice(&[0; GROUP]);
        pieces.clear();
        // SAFETY: the lists of words are those of this buffer, in order, and all words are closed.
        let words = unsafe { Words::new(buffer.text_with_slack(), &starts, &ends) };
        let to = FoundWords { ids: &mut pieces.ids, counts, count: true };
        self.path.look_up(table, words, to, &mut |table, word, key, out| {
            self.match_word(word, key, table, matcher, word_pieces, ids, out);
        });
        starts.truncate(n);
        ends.truncate(n);
        if wanted.words {
            number_words(marks, counts, &mut pieces.words);
        }
        let Pieces { ids, words, spans, .. } = pieces;
        if wanted.spans {
            self.push_spans(buffer, &starts, &ends, counts, ids, spans);
        }
        let (mut word, mut piece) = (0, 0);
        for (i, &mark) in marks.iter().enumerate() {
            let range = piece..piece + counts[word..mark].iter().sum::<u32>() as usize;
            let words = if wanted.words { &words[range.clone()] } else { &[] };
            let spans = if wanted.spans { &mut spans[range.clone()] } else { &mut [] };
            found(first + i, Found { ids: &ids[range.clone()], words, spans });
            (word, piece) = (mark, range.end);
        }
        buffer.give_words_back(starts, ends);
        marks.len()
    }
}

impl Memory {
    fn begin(&mut self, wanted: Wanted) {
        self.buffer.reset(wanted.spans, 0);
        self.marks.clear();
    }
}

/// The number of each piece's word in its text; `marks` says where the words of a text end.
fn number_words(marks: &[usize], counts: &[u32], words: &mut Vec<u32>) {
    let n: u32 = counts.iter().sum();
    words.resize(n as usize + MOST_AT_ONCE, 0);
    let (mut word, mut at) = (0, 0);
    for &mark in marks {
        at = write_words(0.., &counts[word..mark], words, at);
        word = mark;
    }
    words.truncate(n as usize);
}
