//! The scratch buffers of encoding, which the steps write to and which are reused to avoid allocations.
//!
//! A tokenizer has a pool of them; a call checks one out for each thread at work. They also hold
//! the fast path's cache of words, which makes later calls faster and never changes results. After each call, buffers
//! that a huge text has enlarged are freed; every list counts towards the limit.

use std::ops::Range;

use wordpiece_parallel::Scratch;

use crate::added::Segment;
use crate::fast::FastState;
use crate::inputs::pieces::Pieces;
use crate::matcher::WordPieces;
use crate::normalize::Normalized;

/// Everything that the steps write to before a row is assembled. Checked out of a pool by one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct EncodeScratch {
    /// A text divided at raw added tokens.
    pub raw_segments: Vec<Segment>,
    /// A normalized part of a text, divided at normalized added tokens.
    pub normalized_segments: Vec<Segment>,
    /// A part of a text after the normalizer.
    pub normalized: Normalized,
    /// The words of a normalized part, in bytes.
    pub words: Vec<Range<usize>>,
    /// The pieces of one word.
    pub word_pieces: WordPieces,
    /// The pieces of the first text of an input.
    pub first: Pieces,
    /// The pieces of the second text of an input.
    pub second: Pieces,
    /// The state of the fast path; made when a text first needs it.
    pub fast: Option<Box<FastState>>,
}

/// Buffers that one huge text has made larger than this, in bytes, are freed after the call. The pool of a tokenizer keeps
/// up to 64 times as much, if as many threads have used it at once.
const MAX_KEPT_BYTES: usize = 1 << 20;

impl EncodeScratch {
    /// Returns the size of the memory that the buffers hold, in bytes, without the memory of the fast path.
    fn capacity_bytes(&self) -> usize {
        let EncodeScratch { raw_segments, normalized_segments, normalized, words, word_pieces, first, second, fast: _ } =
            self;
        size_of::<Segment>() * (raw_segments.capacity() + normalized_segments.capacity())
            + normalized.capacity_bytes()
            + size_of::<Range<usize>>() * words.capacity()
            + word_pieces.capacity_bytes()
            + first.capacity_bytes()
            + second.capacity_bytes()
    }
}

impl Scratch for EncodeScratch {
    fn trim(&mut self) {
        if self.capacity_bytes() > MAX_KEPT_BYTES {
            *self = EncodeScratch { fast: self.fast.take(), ..EncodeScratch::default() };
        }
        if let Some(fast) = &mut self.fast {
            fast.trim(MAX_KEPT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::added::AddedToken;
    use crate::definition::Definition;
    use crate::normalize::{BertNormalizer, Normalizer};
    use crate::tokenizer::{EncodeOptions, Input, Tokenizer};
    use crate::vocab::Vocab;

    fn tokenizer(normalized: bool) -> Tokenizer {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1), ("##a", 2)]).unwrap();
        let token = AddedToken { normalized, special: false, ..AddedToken::special("x") };
        let normalizer = Some(Normalizer::Bert(BertNormalizer::default()));
        Tokenizer::new(Definition { normalizer, added_tokens: vec![token], ..Definition::bert(vocab) }).unwrap()
    }

    /// Texts that fill different buffers: words, pieces of one word, added tokens before and after normalizing, and
    /// marks that only the pipeline normalizes. Each is long enough that its buffers exceed the limit.
    #[test]
    #[cfg_attr(miri, ignore = "reads 4 MB")]
    fn buffers_of_a_huge_text_are_freed() {
        let n = 1 << 18;
        let texts = ["a ".repeat(n), "x".repeat(n), "a\u{301}\u{323} ".repeat(n / 2)];
        for (tokenizer, text) in [true, false].iter().flat_map(|&it| texts.iter().map(move |text| (it, text))) {
            let tokenizer = self::tokenizer(tokenizer);
            for tokenizer in [tokenizer.clone(), tokenizer.with_instruction_set(None)] {
                tokenizer.encode(&Input::single(text), &EncodeOptions::default()).unwrap();
                let scratch = tokenizer.scratch();
                assert!(scratch.capacity_bytes() <= MAX_KEPT_BYTES, "{} bytes", scratch.capacity_bytes());
                let fast = scratch.fast.as_ref().map_or(0, |fast| fast.scratch_bytes());
                assert!(fast <= MAX_KEPT_BYTES, "{fast} bytes on the fast path");
            }
        }
    }

    /// The list of a text's segments between added tokens can be larger than the text: 32 bytes for each.
    #[test]
    fn segments_count() {
        let mut scratch = EncodeScratch { raw_segments: Vec::with_capacity(1 << 18), ..EncodeScratch::default() };
        scratch.trim();
        assert_eq!(scratch.raw_segments.capacity(), 0);
        scratch.normalized_segments.reserve(1 << 18);
        scratch.trim();
        assert_eq!(scratch.normalized_segments.capacity(), 0);
    }
}
