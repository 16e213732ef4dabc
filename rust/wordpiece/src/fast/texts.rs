//! The fast path for several short texts at once.
//!
//! For a short text, the fixed cost of a lookup exceeds the cost of its words: keys are read in groups, and the first
//! lines are not prefetched in time. So texts are normalized into one buffer until it holds a chunk; their words are
//! looked up together, and the pieces are divided at the ends of the texts.
//!
//! A text never shares a word with the next one: the buffer is closed after each, which ends the last word. Only whole texts
//! are gathered, so a chunk is exceeded by less than one text, and the ids of a text do not depend on its neighbours.

use wordpiece_parallel::checkpoint;

use super::engine::{CHUNK, FastPath, FastState};
use super::spans::number_words;
use super::text_pieces::{PieceFields, TextPieces};
use crate::inputs::pieces::Pieces;
use crate::matcher::Matcher;

impl FastPath {
    /// Tokenizes texts that contain no added token, up to the first that only the pipeline can tokenize; returns how
    /// many it has done. `write` is called with the number of each text and its pieces, in order.
    pub fn tokenize_texts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        fields: PieceFields,
        matcher: &Matcher,
        state: &mut FastState,
        mut write: impl FnMut(usize, TextPieces<'_>),
    ) -> usize {
        let mut done = 0;
        state.begin_texts(fields);
        for text in texts {
            if !self.gather(text, state) {
                break;
            }
            if state.buffer.text().len() >= CHUNK {
                checkpoint();
                done += self.look_up_gathered(done, fields, matcher, state, &mut write);
                state.begin_texts(fields);
            }
        }
        done + self.look_up_gathered(done, fields, matcher, state, &mut write)
    }

    /// Appends the words of a text to the words of the texts before it. Returns false, and appends nothing, if only the
    /// pipeline can tokenize the text.
    fn gather(&self, text: &str, state: &mut FastState) -> bool {
        let before = state.buffer.lengths();
        state.buffer.origin = 0;
        if self.normalizer.normalize(text, 0, text.len(), &mut state.buffer).is_none() {
            state.buffer.restore(before);
            return false;
        }
        state.buffer.close();
        state.text_ends.push(state.buffer.ends().len());
        true
    }

    /// Looks up the words of all gathered texts, of which the first has number `first`, and writes their pieces;
    /// returns the number of texts.
    fn look_up_gathered(
        &self,
        first: usize,
        fields: PieceFields,
        matcher: &Matcher,
        state: &mut FastState,
        write: &mut impl FnMut(usize, TextPieces<'_>),
    ) -> usize {
        if state.text_ends.is_empty() {
            return 0;
        }
        let mut bounds = state.buffer.take_words();
        state.pieces.clear();
        // Only the list that the lookup writes: taking all of them out costs more than a short text.
        let mut ids = std::mem::take(&mut state.pieces.ids);
        // SAFETY: these are the words of the buffer, which was closed after each text.
        unsafe { self.look_up(&mut bounds, matcher, state, &mut ids, true) };
        let FastState { buffer, counts, text_ends, pieces: Pieces { words, spans, .. }, .. } = state;
        if fields.word_ids {
            number_words(text_ends, counts, words);
        }
        if fields.spans {
            // SAFETY: as above.
            unsafe { self.token_lengths.push_spans(buffer, &bounds, counts, &ids, spans) };
        }
        let (mut word, mut piece) = (0, 0);
        for (i, &end) in text_ends.iter().enumerate() {
            let range = piece..piece + counts[word..end].iter().sum::<u32>() as usize;
            let word_ids = if fields.word_ids { &words[range.clone()] } else { &[] };
            let spans = if fields.spans { &mut spans[range.clone()] } else { &mut [] };
            write(first + i, TextPieces { ids: &ids[range.clone()], word_ids, spans });
            (word, piece) = (end, range.end);
        }
        state.buffer.put_words_back(bounds);
        state.pieces.ids = ids;
        state.text_ends.len()
    }
}

impl FastState {
    /// Empties the buffers for texts that are looked up together.
    fn begin_texts(&mut self, fields: PieceFields) {
        self.buffer.reset(fields.spans, 0);
        self.text_ends.clear();
    }
}
