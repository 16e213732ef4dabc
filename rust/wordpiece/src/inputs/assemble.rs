//! Assembles rows from a layout, pieces, and windows.
//!
//! A text that is too long becomes several windows, and a pair of texts can need every combination of their windows. A
//! [`WindowedInput`] knows the windows of each text; a [`WindowChoice`] picks one per text slot, which determines one
//! row. The kept row picks window 0 everywhere; the others overflow from it, nested as in `tokenizers` 0.23.3. Rows are
//! written to a [`RowSink`], which is either an [`Encoding`] or the flat arrays of a batch.
//!
//! Cost: proportional to the tokens of the rows that are written. The number of rows of
//! a pair is the product of the numbers of windows of its texts.

use std::ops::Range;

use super::encoding::{Encoding, set_sequence};
use super::layout::{KnownSequences, Layout, Slot};
use super::pieces::Pieces;
use super::trim::trim_offsets;
use super::truncate::{Side, Truncation};
use super::window::windows;
use wordpiece_parallel::checkpoint;

use crate::error::Result;
use crate::memory;
use crate::vocab::Vocab;

/// Writing a row can be interrupted after this many of its tokens.
const TOKENS_PER_CHECKPOINT: usize = 1024;

/// The number of bytes that an [`Encoding`] needs for each token, roughly: its lists, and a short text for each.
const ENCODING_TOKEN_BYTES: usize = 96;

/// The size of an [`Encoding`] without its tokens, roughly, in tokens.
const ENCODING_TOKENS: usize = 8;

/// One input, divided into windows: everything needed to write its row and the rows that overflow from it.
pub(crate) struct WindowedInput<'a> {
    pub layout: &'a Layout,
    /// The pieces of the first and of the second text. Without a second text, both are the first.
    pub pieces: [&'a Pieces; 2],
    /// The windows of each text as ranges of its pieces, the kept one first.
    pub windows: [Vec<Range<usize>>; 2],
}

/// For each text slot of the layout, in order, the number of the window that a row shows there.
pub(crate) type WindowChoice = Vec<u32>;

/// A row and the rows that overflow from it, nested as in the reference.
struct OverflowTree {
    choice: WindowChoice,
    overflow: Vec<OverflowTree>,
}

impl<'a> WindowedInput<'a> {
    /// Divides the texts into windows, so that the rows obey `truncation`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Truncation`]: a length below the number of special tokens, a stride that is too large,
    /// or a text that is too short to lose tokens.
    pub fn new(
        layout: &'a Layout,
        first: &'a Pieces,
        second: Option<&'a Pieces>,
        truncation: Option<&Truncation>,
    ) -> Result<WindowedInput<'a>> {
        let lengths = [first.len(), second.map_or(0, Pieces::len)];
        let (targets, stride, side) = match truncation {
            None => (lengths, 0, Side::Right),
            Some(truncation) => {
                let targets = truncation.targets(lengths[0], second.map(Pieces::len), layout.added)?;
                ([targets.0, targets.1], truncation.stride, truncation.side)
            }
        };
        let windows = [0, 1].map(|i| windows(lengths[i], targets[i], stride, side));
        Ok(WindowedInput { layout, pieces: [first, second.unwrap_or(first)], windows })
    }

    /// Returns whether truncation dropped anything.
    pub fn truncated(&self) -> bool {
        self.windows.iter().any(|windows| windows.len() > 1)
    }

    /// Returns the number of tokens that the row would have without truncation.
    pub fn n_tokens(&self) -> usize {
        let texts = self.text_slots().map(|text| {
            // The windows of a text cover it without gaps, in order or in reverse.
            let starts = self.windows[text].iter().map(|window| window.start).min();
            let ends = self.windows[text].iter().map(|window| window.end).max();
            ends.unwrap_or(0) - starts.unwrap_or(0)
        });
        texts.sum::<usize>() + self.layout.added
    }

    /// Returns which text (0 or 1) each text slot of the layout shows.
    fn text_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.layout.slots.iter().filter_map(|slot| match slot {
            Slot::Text { text, .. } => Some(*text),
            Slot::Special { .. } => None,
        })
    }

    /// Returns the choice of the kept row: the first window of every text.
    pub fn kept(&self) -> WindowChoice {
        self.text_slots().map(|_| 0).collect()
    }

    /// Returns the choices of the rows that overflow from the kept one, in the reference's order, without those nested
    /// in them.
    pub fn overflow(&self) -> Vec<WindowChoice> {
        let mut kept: WindowChoice = Vec::new();
        let mut rows: Vec<WindowChoice> = Vec::new();
        for text in self.text_slots() {
            let n = self.windows[text].len() as u32;
            let moved = rows.iter().flat_map(|row| (0..n).map(|window| extended(row, window)));
            let of_kept = (1..n).map(|window| extended(&kept, window));
            rows = moved.chain(of_kept).collect();
            kept.push(0);
        }
        rows
    }

    /// Returns the kept row with all its overflow, nested.
    fn overflow_tree(&self) -> OverflowTree {
        let mut tree = OverflowTree { choice: Vec::new(), overflow: Vec::new() };
        for text in self.text_slots() {
            tree = tree.with_windows(self.windows[text].len() as u32);
        }
        tree
    }

    /// Writes one row to `sink`, slot by slot.
    ///
    /// # Panics
    ///
    /// Panics if `choice` has fewer entries than the layout has text slots, or names a window that does not exist.
    pub fn write(&self, choice: &[u32], sink: &mut impl RowSink) {
        let mut choice = choice.iter();
        for slot in &self.layout.slots {
            match slot {
                Slot::Special { ids, tokens, type_id } => sink.special(ids, tokens, *type_id),
                Slot::Text { text, type_id, window_type_id } => {
                    let window = *choice.next().expect("one window per text slot");
                    let (type_id, known) = match (window, self.layout.known_sequences) {
                        (0, known) => (*type_id, known != KnownSequences::None),
                        (_, known) => (*window_type_id, known == KnownSequences::All),
                    };
                    let range = self.windows[*text][window as usize].clone();
                    sink.text(*text, known, self.pieces[*text], range, type_id);
                }
            }
        }
    }

    /// Returns the kept row as an [`Encoding`], with its overflow if `overflow` is set.
    ///
    /// All lists of `self.pieces` must be filled in.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the overflow cannot be allocated.
    pub fn encoding(&self, vocab: &Vocab, overflow: bool) -> Result<Encoding> {
        let n_tokens = self.n_tokens();
        let tree = match overflow {
            true => {
                let (rows, length) = self.shape();
                // Rows are nested in each other: of k texts, up to 3·5·…·(2k − 1) for each combination of windows.
                let divided = self.text_slots().filter(|&text| self.windows[text].len() > 1);
                let copies = divided.skip(1).zip(1..).fold(1_usize, |n, (_, k)| n.saturating_mul(2 * k + 1));
                let tokens = rows.saturating_mul(copies).saturating_mul(length + ENCODING_TOKENS);
                memory::check_tokens(tokens, rows, length, ENCODING_TOKEN_BYTES)?;
                self.overflow_tree()
            }
            false => OverflowTree { choice: self.kept(), overflow: Vec::new() },
        };
        Ok(self.tree_encoding(&tree, vocab, n_tokens))
    }

    /// Checks that all rows can be allocated, those that overflow included, if each token needs `token_bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn check_memory(&self, token_bytes: usize) -> Result<()> {
        let (rows, length) = self.shape();
        memory::check(rows, length, token_bytes)
    }

    /// Returns the number of combinations of windows, and the length of the longest row.
    fn shape(&self) -> (usize, usize) {
        let (mut rows, mut length) = (1_usize, self.layout.added);
        for text in self.text_slots() {
            rows = rows.saturating_mul(self.windows[text].len());
            length += self.windows[text].iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        }
        (rows, length)
    }

    fn tree_encoding(&self, tree: &OverflowTree, vocab: &Vocab, n_tokens: usize) -> Encoding {
        let mut builder = EncodingBuilder { encoding: Encoding::default(), vocab, trim: self.layout.trim_offsets };
        checkpoint();
        self.write(&tree.choice, &mut builder);
        let mut encoding = builder.encoding;
        encoding.attention_mask = vec![1; encoding.ids.len()];
        encoding.truncated = self.truncated();
        encoding.n_tokens = n_tokens;
        encoding.overflowing = tree.overflow.iter().map(|tree| self.tree_encoding(tree, vocab, n_tokens)).collect();
        encoding
    }
}

/// Returns `choice` followed by `window`.
fn extended(choice: &[u32], window: u32) -> WindowChoice {
    let mut choice = choice.to_vec();
    choice.push(window);
    choice
}

impl OverflowTree {
    /// Returns the tree continued by a text of `n` windows, of which the first is kept and the others overflow.
    fn with_windows(&self, n: u32) -> OverflowTree {
        let mut overflow = Vec::new();
        for row in &self.overflow {
            overflow.push(row.with_windows(n));
            overflow.extend((1..n).map(|window| row.with_window(window)));
        }
        overflow.extend((1..n).map(|window| self.with_window(window)));
        OverflowTree { choice: extended(&self.choice, 0), overflow }
    }

    /// Returns the tree continued by one window, from which nothing overflows.
    fn with_window(&self, window: u32) -> OverflowTree {
        let overflow = self.overflow.iter().map(|row| row.with_window(window)).collect();
        OverflowTree { choice: extended(&self.choice, window), overflow }
    }
}

/// The destination of a row. [`WindowedInput::write`] calls it once per slot, from left to right.
pub(crate) trait RowSink {
    /// Appends special tokens.
    fn special(&mut self, ids: &[u32], tokens: &[String], type_id: u32);
    /// Appends the pieces in `range` of text 0 or 1; `known` is whether the row records that they come from that text.
    fn text(&mut self, text: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32);
}

/// Writes a row with everything known about it.
struct EncodingBuilder<'a> {
    encoding: Encoding,
    /// Maps ids back to the texts of tokens.
    vocab: &'a Vocab,
    /// As [`Layout::trim_offsets`].
    trim: Option<bool>,
}

impl RowSink for EncodingBuilder<'_> {
    fn special(&mut self, ids: &[u32], tokens: &[String], type_id: u32) {
        let row = &mut self.encoding;
        row.ids.extend_from_slice(ids);
        row.tokens.extend_from_slice(tokens);
        row.type_ids.resize(row.ids.len(), type_id);
        row.word_ids.resize(row.ids.len(), None);
        row.offsets.resize(row.ids.len(), (0, 0));
        row.special_tokens_mask.resize(row.ids.len(), 1);
    }

    fn text(&mut self, text: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32) {
        let row = &mut self.encoding;
        let start = row.ids.len();
        row.ids.extend_from_slice(&pieces.ids[range.clone()]);
        row.type_ids.resize(row.ids.len(), type_id);
        row.special_tokens_mask.resize(row.ids.len(), 0);
        row.word_ids.extend(pieces.words[range.clone()].iter().map(|&word| Some(word)));
        for (index, i) in range.enumerate() {
            if index % TOKENS_PER_CHECKPOINT == 0 {
                checkpoint();
            }
            let token = pieces.own_text(i).or_else(|| self.vocab.token(pieces.ids[i])).unwrap_or_default();
            let span = pieces.spans[i];
            row.offsets.push(match self.trim {
                None => (span.start, span.end),
                Some(prefix_space) => trim_offsets(token, index, (span.start, span.end), prefix_space),
            });
            row.tokens.push(token.to_owned());
        }
        if known {
            set_sequence(&mut row.sequence_ranges, text as u32, start..row.ids.len());
        }
    }
}
