//! Pairs of segments: next-sentence prediction as in the paper on BERT, sentence order as in that on ALBERT.
//!
//! A segment is always some consecutive sentences, so it is one range of the shard's ids; cutting narrows the range.
//!
//! A row is `[CLS] A [SEP] B [SEP]`. Sentences are taken until they reach the target length, which is nearly always all the
//! room of a row, and are divided at a random place into A and the text that follows it. For the next sentence, B is that text
//! or, with probability ½, a segment of another document; what was not used then begins the next row, so that no sentence is
//! lost. For the order of sentences, B is always that text, and both are exchanged with probability ½.
//!
//! All draws of a document come from a generator of its own, keyed by seed, pass and document: rows do not depend on threads,
//! on blocks, or on other documents but for the segments that are taken from them.

use std::ops::Range;

use super::block::RowBlock;
use super::options::{Objective, RowOptions};
use super::shard::StoreShard;
use crate::pretraining::random::{Draws, Key, Stream};

/// The pairs of a document, of which some may have been made.
#[derive(Debug)]
pub(super) struct DocumentPairs {
    document: usize,
    /// The sentence with which the next pair begins.
    at: usize,
    /// How many rows were made.
    ordinal: u64,
    draws: Draws,
}

impl DocumentPairs {
    /// Begins with the first sentence of a document.
    pub fn new(shard: &StoreShard<'_>, document: usize, options: &RowOptions) -> DocumentPairs {
        let id = shard.document_ids[document];
        let draws = Draws::new(Key::new(options.seed, Stream::Pairs, options.pass, id, 0));
        DocumentPairs { document, at: shard.sentences_of(document).0, ordinal: 0, draws }
    }

    /// Appends rows until a block has about `tokens` tokens; returns false at the end of the document.
    pub fn fill(&mut self, shard: &StoreShard<'_>, options: &RowOptions, tokens: usize, out: &mut RowBlock) -> bool {
        let last = shard.sentences_of(self.document).1;
        while self.at < last && out.ids.len() < tokens {
            self.push_next(shard, last, options, out);
        }
        self.at < last
    }

    /// Makes the pair that begins with the sentence `at`, and appends it unless it has to be dropped.
    fn push_next(&mut self, shard: &StoreShard<'_>, last: usize, options: &RowOptions, out: &mut RowBlock) {
        let (at, draws) = (self.at, &mut self.draws);
        let room = options.max_length - 3;
        let least = if options.objective == Objective::Sop { 2 } else { options.min_sentences };
        let short = draws.unit() < options.short_seq_prob;
        let target = if short { 2 + draws.below(room as u64 - 1) as usize } else { room };
        out.counts.short_targets += u64::from(short);
        let mut end = at;
        while end < last && (shard.start(end) - shard.start(at) < target || end - at < least) {
            end += 1;
        }
        let k = end - at;
        let split = if k == 1 { 1 } else { 1 + draws.below(k as u64 - 1) as usize };
        let a = shard.start(at)..shard.start(at + split);
        let rest = shard.start(at + split)..shard.start(end);
        let pair = match options.objective {
            Objective::Sop if k == 1 => None,
            Objective::Sop => Some(if draws.unit() < 0.5 { (rest, a, true) } else { (a, rest, false) }),
            _ => {
                let random = shard.documents() > 1 && (k == 1 || draws.unit() < 0.5);
                if random {
                    let b = random_segment(shard, self.document, target as i64 - a.len() as i64, draws);
                    out.counts.lone_sentences += u64::from(k == 1);
                    end = at + split;
                    Some((a, b, true))
                } else {
                    (k > 1).then_some((a, rest, false))
                }
            }
        };
        self.at = end;
        let Some((a, b, label)) = pair else {
            out.counts.rows_dropped += 1;
            return;
        };
        let second = push_pair(shard, (a, b), options, room, draws, out);
        out.pair_labels.push(u8::from(label));
        out.end_row(second, (shard.document_ids[self.document], self.ordinal));
        self.ordinal += 1;
    }
}

/// Returns a segment of another document of the shard, of `wanted` tokens or more where it has as many.
fn random_segment(shard: &StoreShard<'_>, document: usize, wanted: i64, draws: &mut Draws) -> Range<usize> {
    let mut other = draws.below(shard.documents() as u64 - 1) as usize;
    if other >= document {
        other += 1;
    }
    let (first, last) = shard.sentences_of(other);
    let begin = first + draws.below((last - first) as u64) as usize;
    let start = shard.start(begin);
    let mut end = begin + 1;
    while end < last && ((shard.start(end) - start) as i64) < wanted {
        end += 1;
    }
    start..shard.start(end)
}

/// Cuts two segments to `room` tokens and appends them with their special tokens; returns the place of the second one.
fn push_pair(
    shard: &StoreShard<'_>,
    (a, b): (Range<usize>, Range<usize>),
    options: &RowOptions,
    room: usize,
    draws: &mut Draws,
    out: &mut RowBlock,
) -> u32 {
    let (cut_a, cut_b) = cuts(a.len(), b.len(), room);
    out.counts.tokens_cut += (cut_a + cut_b) as u64;
    let mut cut = |segment: Range<usize>, cuts: usize| {
        let front = draws.coins(cuts);
        segment.start + front..segment.end - (cuts - front)
    };
    let a = cut(a, cut_a);
    let b = cut(b, cut_b);
    let second = a.len() as u32 + 2;
    out.ids.push(options.cls_id);
    out.push_ids(shard.ids, a);
    out.ids.push(options.sep_id);
    out.push_ids(shard.ids, b);
    out.ids.push(options.sep_id);
    second
}

/// Returns how many tokens are cut off segments of `a` and `b` tokens, one at a time off the longer one, off the second
/// where they are equal, until both fit into `room`.
fn cuts(a: usize, b: usize, room: usize) -> (usize, usize) {
    let excess = (a + b).saturating_sub(room);
    let first = excess.min(a.abs_diff(b));
    let rest = excess - first;
    let (of_a, of_b) = if a > b { (first, 0) } else { (0, first) };
    (of_a + rest / 2, of_b + rest.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::cuts;

    #[test]
    fn cuts_equal_one_token_at_a_time() {
        for (a, b, room) in (0..12).flat_map(|a| (0..12).flat_map(move |b| (2..14).map(move |room| (a, b, room)))) {
            let (mut left_a, mut left_b) = (a, b);
            while left_a + left_b > room {
                if left_a > left_b { left_a -= 1 } else { left_b -= 1 }
            }
            assert_eq!(cuts(a, b, room), (a - left_a, b - left_b), "{a} {b} {room}");
        }
    }
}
