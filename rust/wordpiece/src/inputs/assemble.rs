//! Writing rows: a layout, the pieces of its texts, and which window of each text the row shows.

use std::ops::Range;

use super::encoding::Encoding;
use super::layout::{Layout, Sequences, Slot};
use super::pad::Padding;
use super::pieces::Pieces;
use super::truncate::{Side, Truncation};
use super::window::windows;
use crate::error::Result;
use crate::vocab::Vocab;

/// The texts of a row, cut into windows: everything needed to write it and its overflow.
pub(crate) struct Rows<'a> {
    pub layout: &'a Layout,
    pub pieces: [&'a Pieces; 2],
    /// The windows of each text, the kept one first.
    pub windows: [Vec<Range<usize>>; 2],
}

/// Which window of the text in each text slot a row shows.
pub(crate) type Picks = Vec<u32>;

/// A row and the rows that overflow from it, as the reference nests them.
struct Tree {
    picks: Picks,
    overflow: Vec<Tree>,
}

impl<'a> Rows<'a> {
    /// Cuts the texts. Errors where `truncation` cannot be kept.
    pub fn new(
        layout: &'a Layout,
        first: &'a Pieces,
        second: Option<&'a Pieces>,
        truncation: Option<&Truncation>,
    ) -> Result<Rows<'a>> {
        let lengths = [first.len(), second.map_or(0, Pieces::len)];
        let (targets, stride, side) = match truncation {
            None => (lengths, 0, Side::Right),
            Some(truncation) => {
                let targets = truncation.targets(lengths[0], second.map(Pieces::len), layout.added)?;
                ([targets.0, targets.1], truncation.stride, truncation.side)
            }
        };
        let cut = |i: usize| windows(lengths[i], targets[i], stride, side);
        Ok(Rows { layout, pieces: [first, second.unwrap_or(first)], windows: [cut(0), cut(1)] })
    }

    /// Whether anything was cut off.
    pub fn truncated(&self) -> bool {
        self.windows.iter().any(|windows| windows.len() > 1)
    }

    /// The number of tokens that the row would have if nothing were cut off.
    pub fn n_tokens(&self) -> usize {
        let texts = self.text_slots().map(|which| {
            // The kept window and the others cover the text without a hole, in order or in reverse.
            let starts = self.windows[which].iter().map(|window| window.start).min();
            let ends = self.windows[which].iter().map(|window| window.end).max();
            ends.unwrap_or(0) - starts.unwrap_or(0)
        });
        texts.sum::<usize>() + self.layout.added
    }

    fn text_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.layout.slots.iter().filter_map(|slot| match slot {
            Slot::Text { which, .. } => Some(*which),
            Slot::Special { .. } => None,
        })
    }

    /// The row that is kept.
    pub fn kept(&self) -> Picks {
        self.text_slots().map(|_| 0).collect()
    }

    /// The rows that overflow from it, without those nested in them, in the reference's order.
    pub fn overflow(&self) -> Vec<Picks> {
        let mut kept: Picks = Vec::new();
        let mut rows: Vec<Picks> = Vec::new();
        for which in self.text_slots() {
            let n = self.windows[which].len() as u32;
            let moved = rows.iter().flat_map(|row| (0..n).map(|window| extended(row, window)));
            let of_kept = (1..n).map(|window| extended(&kept, window));
            rows = moved.chain(of_kept).collect();
            kept.push(0);
        }
        rows
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree { picks: Vec::new(), overflow: Vec::new() };
        for which in self.text_slots() {
            tree = tree.with_windows(self.windows[which].len() as u32);
        }
        tree
    }

    /// Writes one row.
    pub fn write(&self, picks: &[u32], sink: &mut impl Sink) {
        let mut picks = picks.iter();
        for slot in &self.layout.slots {
            match slot {
                Slot::Special { ids, tokens, type_id } => sink.special(ids, tokens, *type_id),
                Slot::Text { which, type_id, window_type_id } => {
                    let pick = *picks.next().expect("a window for each text slot");
                    let (type_id, known) = match (pick, self.layout.sequences) {
                        (0, sequences) => (*type_id, sequences != Sequences::Unknown),
                        (_, sequences) => (*window_type_id, sequences == Sequences::Known),
                    };
                    let range = self.windows[*which][pick as usize].clone();
                    sink.text(*which, known, self.pieces[*which], range, type_id);
                }
            }
        }
    }

    /// The row that is kept, with everything known about it and, with `overflow`, all its overflow.
    pub fn encoding(&self, vocab: &Vocab, overflow: bool) -> Encoding {
        let n_tokens = self.n_tokens();
        let tree = if overflow { self.tree() } else { Tree { picks: self.kept(), overflow: Vec::new() } };
        self.tree_encoding(&tree, vocab, n_tokens)
    }

    fn tree_encoding(&self, tree: &Tree, vocab: &Vocab, n_tokens: usize) -> Encoding {
        let mut builder = EncodingBuilder { encoding: Encoding::default(), vocab, trim: self.layout.trim_offsets };
        self.write(&tree.picks, &mut builder);
        let mut encoding = builder.encoding;
        encoding.attention_mask = vec![1; encoding.ids.len()];
        encoding.truncated = self.truncated();
        encoding.n_tokens = n_tokens;
        encoding.overflowing = tree.overflow.iter().map(|tree| self.tree_encoding(tree, vocab, n_tokens)).collect();
        encoding
    }
}

fn extended(picks: &[u32], window: u32) -> Picks {
    let mut picks = picks.to_vec();
    picks.push(window);
    picks
}

impl Tree {
    /// The row continued by a text of `n` windows, the first kept and the others overflowing from it.
    fn with_windows(&self, n: u32) -> Tree {
        let mut overflow = Vec::new();
        for row in &self.overflow {
            overflow.push(row.with_windows(n));
            overflow.extend((1..n).map(|window| row.with_window(window)));
        }
        overflow.extend((1..n).map(|window| self.with_window(window)));
        Tree { picks: extended(&self.picks, 0), overflow }
    }

    /// The row continued by one window that nothing overflows from.
    fn with_window(&self, window: u32) -> Tree {
        let overflow = self.overflow.iter().map(|row| row.with_window(window)).collect();
        Tree { picks: extended(&self.picks, window), overflow }
    }
}

/// What rows are written to: it is told each place of the row in turn.
pub(crate) trait Sink {
    /// Special tokens.
    fn special(&mut self, ids: &[u32], tokens: &[String], type_id: u32);
    /// Pieces of a text; `known` says whether they are known to come from it.
    fn text(&mut self, which: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32);
}

struct EncodingBuilder<'a> {
    encoding: Encoding,
    vocab: &'a Vocab,
    trim: Option<bool>,
}

impl Sink for EncodingBuilder<'_> {
    fn special(&mut self, ids: &[u32], tokens: &[String], type_id: u32) {
        let row = &mut self.encoding;
        row.ids.extend_from_slice(ids);
        row.tokens.extend_from_slice(tokens);
        row.type_ids.resize(row.ids.len(), type_id);
        row.word_ids.resize(row.ids.len(), None);
        row.offsets.resize(row.ids.len(), (0, 0));
        row.special_tokens_mask.resize(row.ids.len(), 1);
    }

    fn text(&mut self, which: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32) {
        let row = &mut self.encoding;
        let start = row.ids.len();
        row.ids.extend_from_slice(&pieces.ids[range.clone()]);
        row.type_ids.resize(row.ids.len(), type_id);
        row.special_tokens_mask.resize(row.ids.len(), 0);
        row.word_ids.extend(pieces.words[range.clone()].iter().map(|&word| Some(word)));
        for (index, i) in range.enumerate() {
            let text = pieces.own_text(i).or_else(|| self.vocab.token(pieces.ids[i])).unwrap_or_default();
            let span = pieces.spans[i];
            row.offsets.push(match self.trim {
                None => (span.start, span.end),
                Some(prefix_space) => trimmed(text, index, (span.start, span.end), prefix_space),
            });
            row.tokens.push(text.to_owned());
        }
        if known {
            set_sequence(&mut row.sequence_ranges, which as u32, start..row.ids.len());
        }
    }
}

/// Notes where a text stands; of a text that stands in a row twice, the last place counts.
pub(crate) fn set_sequence(ranges: &mut Vec<(u32, Range<usize>)>, sequence: u32, range: Range<usize>) {
    ranges.retain(|(id, _)| *id != sequence);
    ranges.push((sequence, range));
}

/// Roberta's offsets: without the white space (or `Ġ`) at the ends of the token, but for one space at the start of the
/// text that a pre-tokenizer may have put there.
pub(crate) fn trimmed(text: &str, index: usize, (start, end): (u32, u32), prefix_space: bool) -> (u32, u32) {
    let blank = |c: &char| *c == 'Ġ' || crate::unicode::is_whitespace(*c);
    let mut leading = text.chars().take_while(blank).count() as u32;
    let trailing = text.chars().rev().take_while(blank).count() as u32;
    let (mut start, mut end) = (start, end);
    if leading > 0 {
        if (index == 0 || start == 0) && prefix_space && leading == 1 {
            leading = 0;
        }
        start = (start + leading).min(end);
    }
    if trailing > 0 && end >= trailing {
        end = (end - trailing).max(start);
    }
    (start, end)
}

impl Encoding {
    /// Fills the row, and the rows that overflow from it, up to `target` tokens.
    pub fn pad(&mut self, target: usize, padding: &Padding) {
        for row in &mut self.overflowing {
            row.pad(target, padding);
        }
        let n = target.saturating_sub(self.len());
        if n == 0 {
            return;
        }
        let at = if padding.side == Side::Left { 0 } else { self.len() };
        fill(&mut self.ids, at, n, padding.id);
        fill(&mut self.type_ids, at, n, padding.type_id);
        fill(&mut self.tokens, at, n, padding.token.clone());
        fill(&mut self.word_ids, at, n, None);
        fill(&mut self.offsets, at, n, (0, 0));
        fill(&mut self.special_tokens_mask, at, n, 1);
        fill(&mut self.attention_mask, at, n, 0);
        if padding.side == Side::Left {
            for (_, range) in &mut self.sequence_ranges {
                *range = range.start + n..range.end + n;
            }
        }
    }
}

fn fill<T: Clone>(list: &mut Vec<T>, at: usize, n: usize, value: T) {
    list.splice(at..at, std::iter::repeat_n(value, n));
}
