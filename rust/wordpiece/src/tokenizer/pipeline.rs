//! The tokenizer and its pipeline, which turns a text into pieces.
//!
//! A text is divided at added tokens first. Each part between them takes the fast path if the tokenizer has one that
//! accepts the part. Otherwise the part is normalized, divided at normalized added tokens, and split into words, each
//! of which is matched. Both paths append the same pieces.
//!
//! Everything a step writes to is in an [`EncodeScratch`], so a text allocates only what its result needs. Cost is
//! linear in the length of the text, except for patterns of the definition (regular expressions can take longer).

use wordpiece_parallel::{InstructionSet, ScratchGuard, ScratchPool, checkpoint};

use super::input::Text;
use super::options::{EncodeOptions, RequestedFields};
use crate::added::{AddedToken, AddedTokens, Segment};
use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::fast::{self, FastPath, FastState, NormalizedTokens, PartOutcome, PartRequest};
use crate::inputs::layout::Layouts;
use crate::inputs::pieces::Pieces;
use crate::inputs::{Padding, Truncation};
use crate::matcher::Matcher;
use crate::normalize::{Normalized, Normalizer};
use crate::offsets::{Span, convert};
use crate::scratch::EncodeScratch;
use crate::split::PreTokenizer;

/// Matching the words of a text can be interrupted after this many of them.
const WORDS_PER_CHECKPOINT: usize = 256;

/// Tokenizing a text can be interrupted after this many segments, as well as within each.
const SEGMENTS_PER_CHECKPOINT: usize = 256;

/// A WordPiece tokenizer. It is immutable, so threads can share it.
///
/// A clone starts with empty caches.
///
/// ```
/// use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
///
/// let vocab = Vocab::new([("[UNK]", 0), ("token", 1), ("##izer", 2)])?;
/// let tokenizer = Tokenizer::new(Definition::bert(vocab))?;
/// assert_eq!(tokenizer.encode_ids(&Input::single("Tokenizer, token"), &EncodeOptions::default())?, [1, 2, 0, 1]);
/// # Ok::<(), wordpiece::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokenizer {
    /// The definition that the tokenizer was created from.
    pub(super) definition: Definition,
    /// Finds added tokens in raw and in normalized text.
    pub(super) added: AddedTokens,
    /// The post-processor, laid out for single texts and pairs.
    pub(super) layouts: Layouts,
    /// Divides words into pieces.
    pub(super) matcher: Matcher,
    /// The id of words that have no pieces.
    unk_id: u32,
    /// `None` if the definition has no fast path, or if it is switched off.
    pub(super) fast: Option<FastPath>,
    /// Scratch buffers between calls. They also contain the threads' word tables.
    scratch: ScratchPool<EncodeScratch>,
}

/// Builds the search for the added tokens of a definition.
fn added_tokens(definition: &Definition) -> Result<AddedTokens> {
    let normalize = |text: &str| match &definition.normalizer {
        Some(normalizer) => normalizer.normalized(text),
        None => Ok(text.to_owned()),
    };
    AddedTokens::new(&definition.vocab, normalize, &definition.added_tokens, &definition.fixed_ids)
}

impl Tokenizer {
    /// Creates a tokenizer from a definition.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with a definition: an empty vocabulary, an unknown token or special tokens that are
    /// not in it, added tokens that normalize to nothing, templates that do not fit. Encoding does not find further
    /// faults.
    pub fn new(definition: Definition) -> Result<Tokenizer> {
        let vocab = &definition.vocab;
        if vocab.is_empty() {
            return Err(Error::EmptyVocab);
        }
        let unk_id = vocab.id(&definition.unk_token).ok_or_else(|| definition.missing_unk())?;
        let added = added_tokens(&definition)?;
        let layouts = Layouts::new(definition.post_processor.as_ref())?;
        let matcher =
            Matcher::new(vocab.iter(), &definition.continuing_subword_prefix, definition.max_input_chars_per_word);
        let fast = FastPath::new(&definition, unk_id, added.searches_normalized(), InstructionSet::detect());
        Ok(Tokenizer { added, layouts, matcher, unk_id, fast, definition, scratch: ScratchPool::default() })
    }

    /// Returns the same tokenizer with its fast path on another instruction set, or (`None`) without the fast path.
    /// Results are the same; tests and benchmarks compare them.
    ///
    /// A definition that has no fast path has none afterwards either: see [`Tokenizer::instruction_set`].
    pub fn with_instruction_set(mut self, instruction_set: Option<InstructionSet>) -> Tokenizer {
        self.fast = instruction_set
            .and_then(|set| FastPath::new(&self.definition, self.unk_id, self.added.searches_normalized(), set));
        // The word tables of threads belong to the fast path that created them.
        self.scratch = ScratchPool::default();
        self
    }

    /// Returns the instruction set that the fast path uses; `None` without a fast path. Of a CPU with AVX-512 but
    /// without VBMI2 that is AVX2.
    pub fn instruction_set(&self) -> Option<InstructionSet> {
        self.fast.as_ref().map(FastPath::instruction_set)
    }

    /// Returns the instruction sets of this CPU that the fast path has code for, the best last.
    pub fn instruction_sets() -> Vec<InstructionSet> {
        fast::instruction_sets()
    }

    /// Returns the most bytes that the words cached between texts can use, for each thread at work.
    pub fn memory_bytes_per_thread(&self) -> usize {
        if self.fast.is_some() { FastPath::MAX_STATE_BYTES } else { 0 }
    }

    /// Returns the definition that the tokenizer was created from.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns a tokenizer with additional added tokens; this one is not changed.
    ///
    /// # Errors
    ///
    /// A token that normalizes to nothing, or more tokens than an automaton can hold.
    pub fn with_added_tokens(&self, tokens: Vec<AddedToken>) -> Result<Tokenizer> {
        let mut definition = self.definition.clone();
        definition.added_tokens.extend(tokens);
        let added = added_tokens(&definition)?;
        let exact_text = added.searches_normalized();
        let fast = self.instruction_set().and_then(|set| FastPath::new(&definition, self.unk_id, exact_text, set));
        Ok(Tokenizer { definition, added, fast, ..self.clone() })
    }

    /// Returns the same tokenizer with other settings for truncation and padding, which the core does not apply itself.
    pub fn with_settings(&self, truncation: Option<Truncation>, padding: Option<Padding>) -> Tokenizer {
        let mut other = self.clone();
        other.definition.truncation = truncation;
        other.definition.padding = padding;
        other
    }

    /// Checks scratch buffers out of the tokenizer's pool.
    pub(crate) fn scratch(&self) -> ScratchGuard<'_, EncodeScratch> {
        self.scratch.check_out()
    }

    /// Replaces `out` by the pieces of one text, stopping after `limit` of them or a few more.
    pub(super) fn tokenize(
        &self,
        text: &Text<'_>,
        options: &EncodeOptions,
        fields: RequestedFields,
        limit: usize,
        scratch: &mut EncodeScratch,
        out: &mut Pieces,
    ) -> Result<()> {
        out.clear();
        let mut run = TextRun { options, fields, given_word: None, words: 0, limit, out };
        match text {
            Text::Raw(text) => {
                if let Some(prefix) = self.sufficient_prefix(text, limit) {
                    self.tokenize_raw(prefix, scratch, &mut run)?;
                    if run.is_full() {
                        return Ok(());
                    }
                    run.out.clear();
                    run.words = 0;
                }
                self.tokenize_raw(text, scratch, &mut run)
            }
            Text::Words(words) => {
                for (word, i) in words.iter().zip(0..) {
                    if run.is_full() {
                        break;
                    }
                    run.given_word = Some(i);
                    self.tokenize_raw(word, scratch, &mut run)?;
                }
                Ok(())
            }
        }
    }

    /// Returns a prefix of a long text that very probably has `limit` pieces, so that the rest need not be searched for
    /// added tokens. It ends at a space, which neither a word nor an added token crosses; `None` if a token might, or
    /// if the text is too short to be worth it.
    ///
    /// Only the last piece of the prefix may differ from the piece of the text, and that one is dropped: `limit` is one
    /// more than a row can keep.
    fn sufficient_prefix<'t>(&self, text: &'t str, limit: usize) -> Option<&'t str> {
        // English has five bytes for each piece, ideographs have three: 16 allow for texts with fewer pieces.
        let n = limit.checked_mul(16)?;
        if text.len() / 4 < n || self.fast.is_none() || self.added.contain_spaces() {
            return None;
        }
        let end = n + text.as_bytes()[n..2 * n].iter().position(|&byte| byte == b' ')?;
        text.get(..end)
    }

    /// Appends the pieces of a raw text: of the added tokens in it, and of the parts between them. Converts their spans
    /// to the unit of the options at the end.
    fn tokenize_raw(&self, text: &str, scratch: &mut EncodeScratch, run: &mut TextRun<'_>) -> Result<()> {
        // Positions in a text are 32-bit.
        if text.len() >= u32::MAX as usize {
            return Err(Error::TextTooLong { bytes: text.len() });
        }
        let from = run.out.len();
        let mut segments = std::mem::take(&mut scratch.raw_segments);
        self.added.cut_raw(text, run.options.encode_special_tokens, &mut segments);
        let mut done = Ok(());
        for (number, Segment { added_token, range }) in segments.iter().enumerate() {
            if run.is_full() || done.is_err() {
                break;
            }
            if number % SEGMENTS_PER_CHECKPOINT == 0 {
                checkpoint();
            }
            match added_token {
                Some(token) => {
                    let span = Span { start: range.start as u32, end: range.end as u32 };
                    run.push_added(self.added.id(*token), &text[range.clone()], span);
                }
                None => done = self.tokenize_part(&text[range.clone()], range.start as u32, scratch, run),
            }
        }
        scratch.raw_segments = segments;
        done?;
        if run.fields.spans {
            convert(text, run.options.offset_unit, &mut run.out.spans[from..]);
        }
        Ok(())
    }

    /// Appends the pieces of a part of a text, from byte `base` on, that contains no raw added token.
    fn tokenize_part(&self, part: &str, base: u32, scratch: &mut EncodeScratch, run: &mut TextRun<'_>) -> Result<()> {
        if let Some(fast) = &self.fast
            && self.tokenize_fast(fast, part, base, scratch, run)
        {
            return Ok(());
        }
        let pre_tokenizer = self.definition.pre_tokenizer.as_ref();
        let aligned = run.fields.spans || pre_tokenizer.is_some_and(PreTokenizer::needs_spans);
        let mut normalized = std::mem::take(&mut scratch.normalized);
        match &self.definition.normalizer {
            Some(Normalizer::Bert(bert)) => bert.normalize(part, base, aligned, &mut normalized),
            Some(normalizer) => {
                normalized.reset(part, base, aligned);
                normalizer.apply(&mut normalized)?;
            }
            None => normalized.reset(part, base, aligned),
        }
        if self.added.searches_normalized() {
            let mut segments = std::mem::take(&mut scratch.normalized_segments);
            self.added.cut_normalized(&normalized.text, run.options.encode_special_tokens, &mut segments);
            for Segment { added_token, range } in &segments {
                match added_token {
                    Some(token) => {
                        let span = normalized.span(range.start, range.end);
                        run.push_added(self.added.id(*token), &normalized.text[range.clone()], span);
                    }
                    // A copy, because a pre-tokenizer may rewrite what it splits.
                    None => self.tokenize_normalized(&mut normalized.slice(range.clone()), scratch, run)?,
                }
            }
            scratch.normalized_segments = segments;
        } else {
            self.tokenize_normalized(&mut normalized, scratch, run)?;
        }
        scratch.normalized = normalized;
        Ok(())
    }

    /// Appends the pieces of a part on the fast path. Returns false, and appends nothing, if only the pipeline can.
    fn tokenize_fast(
        &self,
        fast: &FastPath,
        part: &str,
        base: u32,
        scratch: &mut EncodeScratch,
        run: &mut TextRun<'_>,
    ) -> bool {
        let TextRun { options, fields, given_word, words, limit, out } = run;
        let request = PartRequest {
            base,
            spans: fields.spans,
            word_ids: fields.word_ids,
            given_word: *given_word,
            first_word: *words,
            limit: *limit,
        };
        let state = scratch.fast.get_or_insert_with(|| Box::new(FastState::new(&self.definition)));
        let outcome = if self.added.searches_normalized() {
            let skip_special = options.encode_special_tokens;
            let tokens = AddedInPart { added: &self.added, skip_special, fields: *fields, given_word: *given_word };
            fast.tokenize_around(part, request, &self.matcher, state, out, &tokens)
        } else {
            fast.tokenize(part, request, &self.matcher, state, out)
        };
        match outcome {
            PartOutcome::Done { words: n } => *words = n,
            PartOutcome::Refused => return false,
        }
        true
    }

    /// Splits a normalized text and appends the pieces of its words.
    fn tokenize_normalized(
        &self,
        text: &mut Normalized,
        scratch: &mut EncodeScratch,
        run: &mut TextRun<'_>,
    ) -> Result<()> {
        scratch.words.clear();
        if !text.text.is_empty() {
            scratch.words.push(0..text.text.len());
        }
        if let Some(pre_tokenizer) = &self.definition.pre_tokenizer {
            pre_tokenizer.split(text, &mut scratch.words)?;
        }
        for (number, range) in scratch.words.iter().enumerate() {
            if number % WORDS_PER_CHECKPOINT == 0 {
                checkpoint();
            }
            let word = run.next_word();
            if !self.matcher.match_word(&text.text[range.clone()], &mut scratch.word_pieces) {
                run.push(self.unk_id, word, text.span(range.start, range.end));
                continue;
            }
            let mut start = range.start;
            for piece in &scratch.word_pieces.pieces {
                let end = start + piece.len as usize;
                run.push(piece.id, word, text.span(start, end));
                start = end;
            }
        }
        Ok(())
    }
}

impl RequestedFields {
    /// Appends a piece.
    #[inline]
    fn push(self, id: u32, word: u32, span: Span, out: &mut Pieces) {
        out.ids.push(id);
        if self.word_ids {
            out.words.push(word);
        }
        if self.spans {
            out.spans.push(span);
        }
    }

    /// Appends an added token that matched `text`.
    fn push_added(self, id: u32, text: &str, word: u32, span: Span, out: &mut Pieces) {
        if self.texts {
            out.texts.push((out.len(), text.to_owned()));
        }
        self.push(id, word, span, out);
    }
}

/// The state of one text in the pipeline.
struct TextRun<'a> {
    options: &'a EncodeOptions,
    /// The properties of pieces that are computed.
    fields: RequestedFields,
    /// The word id of all pieces, if the text was split into words before.
    given_word: Option<u32>,
    /// The number of words so far.
    words: u32,
    /// The rest of the text may be skipped once there are this many pieces.
    limit: usize,
    /// The pieces so far.
    out: &'a mut Pieces,
}

impl TextRun<'_> {
    /// Returns the word id of the pieces of the next word.
    fn next_word(&mut self) -> u32 {
        self.words += 1;
        self.given_word.unwrap_or(self.words - 1)
    }

    fn push_added(&mut self, id: u32, text: &str, span: Span) {
        let word = self.next_word();
        self.fields.push_added(id, text, word, span, self.out);
    }

    #[inline]
    fn push(&mut self, id: u32, word: u32, span: Span) {
        self.fields.push(id, word, span, self.out);
    }

    /// Returns whether the limit is reached.
    fn is_full(&self) -> bool {
        self.out.ids.len() >= self.limit
    }
}

/// The normalized added tokens, for the fast path.
struct AddedInPart<'a> {
    added: &'a AddedTokens,
    /// Whether special tokens are treated as ordinary text.
    skip_special: bool,
    fields: RequestedFields,
    given_word: Option<u32>,
}

impl NormalizedTokens for AddedInPart<'_> {
    fn cut(&self, text: &str, segments: &mut Vec<Segment>) {
        self.added.cut_normalized(text, self.skip_special, segments);
    }

    fn push(&self, token: usize, text: &str, span: Span, word: u32, out: &mut Pieces) {
        self.fields.push_added(self.added.id(token), text, self.given_word.unwrap_or(word), span, out);
    }
}
