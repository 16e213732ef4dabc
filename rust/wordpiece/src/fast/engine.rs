//! The fast path for one text: normalize a chunk, look its words up, repeat.
//!
//! A text is read in chunks of a few KiB, so that everything a chunk needs — its bytes, the bounds of its words, their
//! ids — stays in the first-level cache. A word that is still open at the end of a chunk is moved to the start of the
//! next one. Word ids and spans are computed after the lookup, for all words of a chunk at once, and only if they are
//! requested.
//!
//! Only a word that is not in the table is expensive: the pipeline's matcher divides it into pieces, and the table
//! remembers them for its next occurrence.
//!
//! # Soundness
//!
//! The unsafe code here relies on two properties of a [`NormalizedBuffer`]: its text is valid UTF-8 between the bounds
//! of words, and its words are not empty, do not overlap and are in order. The buffer is written by the normalizer of
//! this folder and by nothing else.

use wordpiece_parallel::{InstructionSet, checkpoint};

use super::buffer::{NormalizedBuffer, WordBounds};
use super::dispatch;
use super::key::{GROUP, WORD_BYTES, WordKey};
use super::normalizer::FastNormalizer;
use super::spans::{TokenLengths, push_word_ids};
use super::table::look_up::{LookupOutput, WordRanges};
use super::table::store::{self, WordTable};
use crate::added::Segment;
use crate::definition::Definition;
use crate::inputs::pieces::Pieces;
use crate::matcher::{Matcher, PendingPieces, within_limit};
use crate::normalize::Normalizer;
use crate::offsets::Span;
use crate::split::PreTokenizer;

/// Number of bytes of a text that are normalized before their words are looked up: the buffers of a chunk stay in the
/// first-level cache.
pub(super) const CHUNK: usize = 4096;

/// Largest id of a vocabulary that has a fast path: the lengths of tokens are a list by id.
const MAX_ID: u32 = 1 << 24;

/// The fast path of a tokenizer: everything that does not change. Threads share it, each with its own [`FastState`]. The
/// table of characters is that of all tokenizers of the same options.
#[derive(Debug, Clone)]
pub(crate) struct FastPath {
    /// Normalizes text and finds the bounds of words.
    pub(super) normalizer: FastNormalizer,
    /// How far each piece reaches, for spans.
    pub(super) token_lengths: TokenLengths,
    /// The id of words that have no pieces.
    unk_id: u32,
}

/// The state that a thread keeps between texts: its word table, and scratch buffers.
#[derive(Debug)]
pub(crate) struct FastState {
    /// The cached words, at first the words of the vocabulary.
    pub(super) table: WordTable,
    /// The normalized text of the chunk, or of the texts that are looked up together.
    pub(super) buffer: NormalizedBuffer,
    /// Scratch space of matching a word that is not in the table.
    pub(super) pending: PendingPieces,
    /// The number of pieces of each word that was looked up last; not kept if only ids are requested.
    pub(super) counts: Vec<u32>,
    /// For texts that are looked up together, the number of words up to the end of each.
    pub(super) text_ends: Vec<usize>,
    /// The pieces of texts that are looked up together.
    pub(super) pieces: Pieces,
    /// A text divided at normalized added tokens.
    segments: Vec<Segment>,
    /// The words between two added tokens.
    cut_words: WordBounds,
}

impl FastState {
    /// Returns the state of a new thread, with the complete words of the vocabulary: 2 MB for BERT's 30,522 tokens. To copy
    /// a table that the tokenizer keeps takes half as long, but a process that encodes one text would fill it, too.
    #[cold]
    pub fn new(definition: &Definition) -> FastState {
        let (prefix, limit) = (definition.continuing_subword_prefix.as_str(), definition.max_input_chars_per_word);
        let is_word = |token: &str| token.len() <= WORD_BYTES && !token.contains('\0') && within_limit(token, limit);
        let mut table = WordTable::new(definition.vocab.len());
        for (token, id) in definition.vocab.iter() {
            // Continuations are left out: their prefix is punctuation, which is split off; else the matcher decides.
            if is_word(token) && (prefix.is_empty() || !token.starts_with(prefix)) {
                table.fill(token.as_bytes(), id);
            }
        }
        FastState {
            table,
            buffer: NormalizedBuffer::default(),
            pending: PendingPieces::default(),
            counts: Vec::new(),
            text_ends: Vec::new(),
            pieces: Pieces::default(),
            segments: Vec::new(),
            cut_words: WordBounds::default(),
        }
    }

    /// Frees the scratch buffers if one huge text has made them larger than `max_bytes` in all. The word table
    /// is kept: it has its own limit, [`FastPath::MAX_STATE_BYTES`].
    pub fn trim(&mut self, max_bytes: usize) {
        if self.scratch_bytes() > max_bytes {
            self.buffer = NormalizedBuffer::default();
            self.pending = PendingPieces::default();
            self.counts = Vec::new();
            self.text_ends = Vec::new();
            self.pieces = Pieces::default();
            self.segments = Vec::new();
            self.cut_words = WordBounds::default();
        }
    }

    /// Returns the size of the memory that the scratch buffers hold, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        let FastState { table: _, buffer, pending, counts, text_ends, pieces, segments, cut_words } = self;
        buffer.capacity_bytes()
            + pending.capacity_bytes()
            + size_of::<u32>() * counts.capacity()
            + size_of::<usize>() * text_ends.capacity()
            + pieces.capacity_bytes()
            + size_of::<Segment>() * segments.capacity()
            + cut_words.capacity_bytes()
    }
}

/// A request to tokenize a part of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartRequest {
    /// Position of the part in the text, in bytes: spans are relative to the text.
    pub base: u32,
    /// Whether spans are requested.
    pub spans: bool,
    /// Whether word ids are requested.
    pub word_ids: bool,
    /// The word id of all pieces, if the text was split into words before.
    pub given_word: Option<u32>,
    /// The number of words of the text before the part.
    pub first_word: u32,
    /// The rest of the part may be skipped once the output has this many pieces, those before the part included;
    /// `usize::MAX` for all. A few more may be appended.
    pub limit: usize,
}

/// The outcome of tokenizing a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartOutcome {
    /// Its pieces were appended, all or up to the limit.
    Done {
        /// The number of words of the text up to the end of the part.
        words: u32,
    },
    /// Only the pipeline can tokenize the part. Nothing was appended.
    Refused,
}

/// The operations on added tokens in normalized text that the fast path needs.
pub(crate) trait NormalizedTokens {
    /// Divides a normalized text at the tokens that are found in it. No segment is empty, and each begins and ends between
    /// characters; the caller panics otherwise.
    fn cut(&self, text: &str, segments: &mut Vec<Segment>);

    /// Appends a token that was found, with the text that matched it, its span, and the number of words before it.
    fn push(&self, token: usize, text: &str, span: Span, word: u32, out: &mut Pieces);
}

/// The lengths of the output's lists before a part was appended, so that a part that is refused leaves no trace.
struct PiecesLengths {
    ids: usize,
    words: usize,
    spans: usize,
}

impl PiecesLengths {
    fn of(pieces: &Pieces) -> PiecesLengths {
        PiecesLengths { ids: pieces.ids.len(), words: pieces.words.len(), spans: pieces.spans.len() }
    }

    /// Removes what was appended since.
    fn restore(self, pieces: &mut Pieces) {
        pieces.ids.truncate(self.ids);
        pieces.words.truncate(self.words);
        pieces.spans.truncate(self.spans);
    }
}

impl FastPath {
    /// The word table of a thread never uses more than this many bytes.
    pub const MAX_STATE_BYTES: usize = store::MAX_BYTES;

    /// Returns the fast path of a tokenizer; `None` unless it has BERT's normalizer, with cleaning, and BERT's
    /// pre-tokenizer, and no huge ids. `exact_text`: whether added tokens are searched for in the normalized text.
    pub fn new(
        definition: &Definition,
        unk_id: u32,
        exact_text: bool,
        instruction_set: InstructionSet,
    ) -> Option<FastPath> {
        let (Some(Normalizer::Bert(bert)), Some(PreTokenizer::Bert)) =
            (&definition.normalizer, &definition.pre_tokenizer)
        else {
            return None;
        };
        let vocab = &definition.vocab;
        let max_id = vocab.max_id().filter(|&id| id <= MAX_ID)?;
        let normalizer = FastNormalizer::new(*bert, exact_text, instruction_set)?;
        let token_lengths = TokenLengths::new(vocab.iter(), max_id, &definition.continuing_subword_prefix);
        Some(FastPath { normalizer, token_lengths, unk_id })
    }

    /// Returns the instruction set in use.
    pub fn instruction_set(&self) -> InstructionSet {
        self.normalizer.instruction_set()
    }

    /// Appends the pieces of a part of a text that contains no added token.
    ///
    /// With a limit, not much more of the part is read than the limit needs, so a long text that is truncated costs no
    /// more than what is kept of it.
    pub fn tokenize(
        &self,
        part: &str,
        request: PartRequest,
        matcher: &Matcher,
        state: &mut FastState,
        out: &mut Pieces,
    ) -> PartOutcome {
        let before = PiecesLengths::of(out);
        let mut at = 0;
        let mut words = request.first_word;
        state.buffer.reset(request.spans, request.base);
        loop {
            // With a small limit, read only as much text as will probably reach it.
            let missing = request.limit.saturating_sub(out.ids.len());
            let end = part.len().min(at + CHUNK.min(missing.saturating_mul(8).max(256)));
            let Some(stopped) = self.normalizer.normalize(part, at, end, &mut state.buffer) else {
                before.restore(out);
                return PartOutcome::Refused;
            };
            at = stopped;
            checkpoint();
            if at == part.len() {
                state.buffer.close();
            }
            words += self.match_buffer(request, words, matcher, state, out);
            if at == part.len() || out.ids.len() >= request.limit {
                return PartOutcome::Done { words };
            }
            state.buffer.keep_open_word();
        }
    }

    /// Appends the pieces of a part of a text that contains no raw added token, but may contain normalized ones, which
    /// `tokens` finds and appends. The limit of the request is not used.
    ///
    /// The part is normalized as one chunk, because a token can match anywhere in it. A token may begin or end inside a
    /// word, which is then divided there; each side is matched as a word, as in the pipeline.
    pub fn tokenize_around(
        &self,
        part: &str,
        request: PartRequest,
        matcher: &Matcher,
        state: &mut FastState,
        out: &mut Pieces,
        tokens: &impl NormalizedTokens,
    ) -> PartOutcome {
        state.buffer.reset(request.spans, request.base);
        if self.normalizer.normalize(part, 0, part.len(), &mut state.buffer).is_none() {
            return PartOutcome::Refused;
        }
        state.buffer.close();
        let text = state.buffer.text_str();
        let mut segments = std::mem::take(&mut state.segments);
        tokens.cut(text, &mut segments);
        // What follows without checks relies on it, and any type can implement the trait.
        let is_segment = |segment: &Segment| text.get(segment.range.clone()).is_some_and(|text| !text.is_empty());
        assert!(segments.iter().all(is_segment), "a segment is empty, or not between characters of the text");
        let mut words = request.first_word;
        if segments.iter().all(|segment| segment.added_token.is_none()) {
            words += self.match_buffer(request, words, matcher, state, out);
            state.segments = segments;
            return PartOutcome::Done { words };
        }
        let mut cut_words = std::mem::take(&mut state.cut_words);
        let mut next = 0;
        for Segment { added_token, range } in &segments {
            if let Some(token) = added_token {
                let span = state.buffer.span(range.start, range.end);
                tokens.push(*token, &state.buffer.text_str()[range.clone()], span, words, out);
                words += 1;
                continue;
            }
            next += words_in_range(&state.buffer, next, range.start as u32..range.end as u32, &mut cut_words);
            // SAFETY: these are words of the buffer, which is closed, cut where a segment begins or ends: between characters,
            // and as the segment is not empty and each word overlaps it, no part is empty.
            words += unsafe { self.match_words(request, words, &mut cut_words, matcher, state, out) };
        }
        (state.cut_words, state.segments) = (cut_words, segments);
        PartOutcome::Done { words }
    }

    /// Appends the pieces of the closed words of the buffer, of which the first has number `first`; returns how many
    /// words there are.
    fn match_buffer(
        &self,
        request: PartRequest,
        first: u32,
        matcher: &Matcher,
        state: &mut FastState,
        out: &mut Pieces,
    ) -> u32 {
        let mut words = state.buffer.take_words();
        // An open word has begun and not ended.
        let open = words.starts.get(words.ends.len()).copied();
        words.starts.truncate(words.ends.len());
        // SAFETY: these are the closed words of the buffer.
        let n = unsafe { self.match_words(request, first, &mut words, matcher, state, out) };
        words.starts.extend(open);
        state.buffer.put_words_back(words);
        n
    }

    /// Appends the pieces of words of the buffer, of which the first has number `first`; returns how many words there
    /// are.
    ///
    /// # Safety
    ///
    /// As for [`FastPath::look_up`].
    unsafe fn match_words(
        &self,
        request: PartRequest,
        first: u32,
        words: &mut WordBounds,
        matcher: &Matcher,
        state: &mut FastState,
        out: &mut Pieces,
    ) -> u32 {
        let n = words.ends.len();
        let from = out.ids.len();
        let count = request.word_ids || request.spans;
        // SAFETY: the contract is the same as this function's.
        unsafe { self.look_up(words, matcher, state, &mut out.ids, count) };
        let FastState { buffer, counts, .. } = state;
        if request.word_ids {
            push_word_ids(request.given_word, first, counts, &mut out.words);
        }
        if request.spans {
            // SAFETY: by the contract of this function the words are words of the buffer, or parts of them.
            unsafe { self.token_lengths.push_spans(buffer, words, counts, &out.ids[from..], &mut out.spans) };
        }
        n as u32
    }

    /// Appends the ids of words of the state's buffer; with `count`, sets its `counts` to their numbers.
    ///
    /// Always inlined: for a text of a few words the call itself is measurable.
    ///
    /// # Safety
    ///
    /// The words are closed words of the buffer, or parts of them that begin and end between characters: not empty, in order,
    /// and without overlap.
    #[inline(always)]
    pub(super) unsafe fn look_up(
        &self,
        words: &mut WordBounds,
        matcher: &Matcher,
        state: &mut FastState,
        ids: &mut Vec<u32>,
        count: bool,
    ) {
        let FastState { table, buffer, pending, counts, .. } = state;
        let n = words.ends.len();
        words.pad::<GROUP>();
        // SAFETY: by the contract the words lie in the buffer's text, are not empty, do not overlap and are in order;
        // `text_with_slack` has 64 bytes after the text.
        let ranges = unsafe { WordRanges::new(buffer.text_with_slack(), &words.starts, &words.ends) };
        let output = LookupOutput { ids, counts, count };
        dispatch::look_up(self.instruction_set(), table, ranges, output, &mut |table, word, key, out| {
            self.match_word(word, key, table, matcher, pending, out);
        });
        words.truncate(n);
    }

    /// Appends the ids of a word that is not in its own line of the table: from another line, or from the matcher. In
    /// the latter case the table stores them.
    #[cold]
    #[inline(never)]
    fn match_word(
        &self,
        word: &[u8],
        key: WordKey,
        table: &mut WordTable,
        matcher: &Matcher,
        pending: &mut PendingPieces,
        out: &mut Vec<u32>,
    ) {
        if table.append_from_other_lines(word, key, out) {
            return;
        }
        // The word is matched while the lines that it may be put into are read from memory.
        table.prefetch_other_lines(key);
        let before = out.len();
        // SAFETY: the buffer holds complete characters, and words begin and end between them: the scan marks all bytes
        // of a character alike, and `tokenize_around` checks that words are cut between characters.
        let text = unsafe { std::str::from_utf8_unchecked(word) };
        if !matcher.each_piece(text, pending, |piece| out.push(piece.id)) {
            out.truncate(before);
            out.push(self.unk_id);
        }
        table.remember(word, key, &out[before..]);
    }
}

/// Sets `cut_words` to the words of a closed buffer in a range of its text, clipped to the range. Words before number
/// `first` are ignored. Returns how many of the others end inside the range.
fn words_in_range(
    buffer: &NormalizedBuffer,
    first: usize,
    range: std::ops::Range<u32>,
    cut_words: &mut WordBounds,
) -> usize {
    cut_words.clear();
    let mut ended = 0;
    let words = buffer.starts().iter().zip(buffer.ends()).skip(first);
    for (&start, &end) in words.take_while(|(start, _)| **start < range.end) {
        if end > range.start {
            cut_words.starts.push(start.max(range.start));
            cut_words.ends.push(end.min(range.end));
        }
        // A word that extends beyond the range may have another part after the token that divides it.
        ended += usize::from(end <= range.end);
    }
    ended
}

#[cfg(test)]
impl FastPath {
    /// Lowers the limit on the length of normalized text, so that tests reach it.
    pub fn with_max_len(self, max_len: usize) -> FastPath {
        FastPath { normalizer: self.normalizer.with_max_len(max_len), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::BertNormalizer;
    use crate::vocab::Vocab;

    struct NoTokens;

    impl NormalizedTokens for NoTokens {
        fn cut(&self, text: &str, segments: &mut Vec<Segment>) {
            segments.clear();
            segments.push(Segment { added_token: None, range: 0..text.len() });
        }

        fn push(&self, _: usize, _: &str, _: Span, _: u32, _: &mut Pieces) {
            unreachable!("no token is found");
        }
    }

    fn fast_path() -> (FastPath, Matcher, FastState) {
        let definition = Definition {
            normalizer: Some(Normalizer::Bert(BertNormalizer::default())),
            ..Definition::bert(Vocab::new([("[UNK]", 0), ("a", 1), ("##a", 2)]).unwrap())
        };
        let matcher = Matcher::new(definition.vocab.iter(), "##", definition.max_input_chars_per_word);
        let fast = FastPath::new(&definition, 0, false, InstructionSet::detect()).unwrap();
        (fast, matcher, FastState::new(&definition))
    }

    const REQUEST: PartRequest =
        PartRequest { base: 0, spans: true, word_ids: true, given_word: None, first_word: 0, limit: usize::MAX };

    #[test]
    #[cfg_attr(miri, ignore = "reads 200 KB")]
    fn a_text_whose_normalized_form_is_too_long_is_refused_and_leaves_no_trace() {
        let (fast, matcher, mut state) = fast_path();
        let fast = fast.with_max_len(30_000);
        let mut out = Pieces::default();
        // One word of 15,000 bytes, which normalization triples, after some that are appended before it is refused.
        let text = "a aa ".repeat(2000) + &"각".repeat(5000);
        assert_eq!(fast.tokenize(&text, REQUEST, &matcher, &mut state, &mut out), PartOutcome::Refused);
        assert!(out.ids.is_empty() && out.words.is_empty() && out.spans.is_empty());
        let outcome = fast.tokenize_around(&text, REQUEST, &matcher, &mut state, &mut out, &NoTokens);
        assert_eq!(outcome, PartOutcome::Refused);
        assert!(out.ids.is_empty() && out.words.is_empty() && out.spans.is_empty());
        // Chunks of a text without such a word are short enough, however long the text is.
        let outcome = fast.tokenize(&"a aa ".repeat(20_000), REQUEST, &matcher, &mut state, &mut out);
        assert_eq!(outcome, PartOutcome::Done { words: 40_000 });
        assert_eq!((out.ids.len(), out.words.len(), out.spans.len()), (60_000, 60_000, 60_000));
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads 500 KB")]
    fn scratch_buffers_of_a_huge_text_are_freed() {
        let (fast, matcher, mut state) = fast_path();
        let text = "a aa ".repeat(100_000);
        let mut out = Pieces::default();
        fast.tokenize_around(&text, REQUEST, &matcher, &mut state, &mut out, &NoTokens);
        state.segments = (0..100_000).map(|i| Segment { added_token: None, range: i..i + 1 }).collect();
        state.cut_words.pad::<100_000>();
        state.text_ends = vec![0; 100_000];
        let max = 1 << 20;
        assert!(state.scratch_bytes() > max);
        state.trim(max);
        assert!(state.scratch_bytes() <= max, "{} bytes", state.scratch_bytes());
        assert_eq!(state.counts.capacity() + state.segments.capacity() + state.text_ends.capacity(), 0);
    }

    /// Cuts a text at given ranges, whatever they are.
    struct CutAt(Vec<std::ops::Range<usize>>);

    impl NormalizedTokens for CutAt {
        fn cut(&self, _: &str, segments: &mut Vec<Segment>) {
            *segments = self.0.iter().cloned().map(|range| Segment { added_token: Some(0), range }).collect();
        }

        fn push(&self, _: usize, text: &str, _: Span, _: u32, out: &mut Pieces) {
            out.ids.push(text.len() as u32);
        }
    }

    #[test]
    fn segments_that_are_no_texts_are_a_panic() {
        let text = "a 각 aa";
        let cut = |ranges: &[std::ops::Range<usize>]| {
            let ((fast, matcher, mut state), mut out) = (fast_path(), Pieces::default());
            let cut = CutAt(ranges.to_vec());
            let call = || fast.tokenize_around(text, REQUEST, &matcher, &mut state, &mut out, &cut);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_ok().then_some(out.ids)
        };
        // Stripping accents divides a Hangul syllable into its letters: 각 has three, of three bytes each.
        assert_eq!(cut(&[0..2, 2..5, 5..11]), Some(vec![2, 3, 6]));
        let backwards = std::ops::Range { start: 5, end: 2 };
        for wrong in [0..0, 2..3, 3..5, 0..100, usize::MAX - 1..usize::MAX, backwards] {
            assert_eq!(cut(std::slice::from_ref(&wrong)), None, "{wrong:?}");
        }
    }
}
