//! The pipeline, one text: added tokens, normalize, split, match. It alone calls the steps; no step calls another.

use crate::added::{AddedToken, AddedTokens, Segment};
use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::fast::{self, End, Fast, FoundText, InstructionSet, Order};
use crate::inputs::assemble::WindowedInput;
use crate::inputs::layout::{Layout, Layouts};
use crate::inputs::pieces::Pieces;
use crate::inputs::{Encoding, Padding, Truncation};
use crate::matcher::Matcher;
use crate::normalize::{Normalized, Normalizer};
use crate::offsets::{OffsetUnit, Span, convert};
use crate::scratch::{Lent, Pool, Scratch};
use crate::split::PreTokenizer;

/// A text, or the words of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text<'a> {
    /// A text as it is.
    Raw(&'a str),
    /// A text that was split into words before: word ids are their indices, offsets refer to each word.
    Words(Vec<&'a str>),
}

impl Text<'_> {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Text::Raw(text) => text.len(),
            Text::Words(words) => words.iter().map(|word| word.len()).sum(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What becomes one row: a text, or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input<'a> {
    /// The first text.
    pub first: Text<'a>,
    /// The second; an empty one is one.
    pub second: Option<Text<'a>>,
}

impl<'a> Input<'a> {
    /// A single text.
    pub fn single(text: &'a str) -> Input<'a> {
        Input { first: Text::Raw(text), second: None }
    }

    /// A pair of texts.
    pub fn pair(first: &'a str, second: &'a str) -> Input<'a> {
        Input { first: Text::Raw(first), second: Some(Text::Raw(second)) }
    }

    /// The number of bytes of both texts.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.as_ref().map_or(0, Text::len)
    }

    /// Whether there is nothing in them.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How texts are encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether the special tokens of the post-processor are put around the texts.
    pub add_special_tokens: bool,
    /// Cutting rows to a length.
    pub truncation: Option<Truncation>,
    /// Filling rows up to a length.
    pub padding: Option<Padding>,
    /// What offsets count.
    pub offset_unit: OffsetUnit,
    /// Whether special tokens that stand in a text are taken for text.
    pub encode_special_tokens: bool,
    /// Whether an [`Encoding`] brings the rows that truncation cut off it. Those of a pair are as many as the windows of
    /// one text times those of the other.
    pub overflow: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        EncodeOptions {
            add_special_tokens: true,
            truncation: None,
            padding: None,
            offset_unit: OffsetUnit::Char,
            encode_special_tokens: false,
            overflow: true,
        }
    }
}

/// A WordPiece tokenizer. Nothing ever changes one; threads share it.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    definition: Definition,
    added: AddedTokens,
    layouts: Layouts,
    matcher: Matcher,
    unk_id: u32,
    fast: Option<Fast>,
    pool: Pool,
}

impl Tokenizer {
    /// Makes a definition ready. Everything that can be wrong with one is found here, not at the first odd text.
    pub fn new(definition: Definition) -> Result<Tokenizer> {
        let vocab = &definition.vocab;
        if vocab.is_empty() {
            return Err(Error::EmptyVocab);
        }
        let unk_id = vocab
            .id(&definition.unk_token)
            .ok_or_else(|| Error::MissingUnk { unk_token: definition.unk_token.clone() })?;
        let added = AddedTokens::new(vocab, definition.normalizer.as_ref(), &definition.added_tokens)?;
        let layouts = Layouts::new(definition.post_processor.as_ref())?;
        let matcher =
            Matcher::new(vocab.iter(), &definition.continuing_subword_prefix, definition.max_input_chars_per_word);
        let fast = Fast::new(&definition, unk_id, added.searches_normalized(), InstructionSet::detect());
        Ok(Tokenizer { added, layouts, matcher, unk_id, fast, definition, pool: Pool::default() })
    }

    /// The same tokenizer on a given instruction set, or (`None`) without the fast path: for tests and benchmarks.
    #[doc(hidden)]
    pub fn on_path(mut self, path: Option<InstructionSet>) -> Tokenizer {
        self.fast =
            path.and_then(|path| Fast::new(&self.definition, self.unk_id, self.added.searches_normalized(), path));
        self
    }

    /// The instruction set of the fast path, `None` for a tokenizer that has none.
    pub fn path(&self) -> Option<InstructionSet> {
        self.fast.as_ref().map(Fast::instruction_set)
    }

    /// The bytes that words remembered between texts may take, for each thread at work.
    pub fn memory_bytes_per_thread(&self) -> usize {
        if self.fast.is_some() { Fast::MEMORY_BYTES } else { 0 }
    }

    /// What the tokenizer is made of.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The added tokens with their ids, in the order in which they were added.
    pub fn added_tokens(&self) -> impl ExactSizeIterator<Item = (u32, &AddedToken)> {
        self.added.iter()
    }

    /// A tokenizer with more added tokens; this one stays as it is.
    pub fn with_added_tokens(&self, tokens: Vec<AddedToken>) -> Result<Tokenizer> {
        let mut definition = self.definition.clone();
        definition.added_tokens.extend(tokens);
        let added = AddedTokens::new(&definition.vocab, definition.normalizer.as_ref(), &definition.added_tokens)?;
        let path = self.path();
        let exact_text = added.searches_normalized();
        let fast = path.and_then(|path| Fast::new(&definition, self.unk_id, exact_text, path));
        Ok(Tokenizer { definition, added, fast, ..self.clone() })
    }

    /// The id of a token, added ones included.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.added.id_of(token).or_else(|| self.definition.vocab.id(token))
    }

    /// The token of an id, added ones included; of a normalized added token its normalized form.
    pub fn id_to_token(&self, id: u32) -> Option<&str> {
        self.added.token(id).or_else(|| self.definition.vocab.token(id))
    }

    /// The number of tokens of the model, and of the added ones that it does not have.
    pub fn vocab_size(&self, with_added_tokens: bool) -> usize {
        let added = || self.added.iter().filter(|(_, token)| self.definition.vocab.id(&token.content).is_none());
        self.definition.vocab.len() + if with_added_tokens { added().count() } else { 0 }
    }

    /// All tokens with their ids, those of the model by id, then the added ones that it does not have.
    pub fn vocab(&self) -> Vec<(&str, u32)> {
        let vocab = &self.definition.vocab;
        let added = self.added.iter().map(|(id, token)| (token.content.as_str(), id));
        vocab.iter().chain(added.filter(|(token, _)| vocab.id(token).is_none())).collect()
    }

    /// Whether an id is that of an added token that decoding leaves out on request.
    pub fn is_special(&self, id: u32) -> bool {
        self.added.is_special(id)
    }

    /// The number of special tokens around one text, or around two.
    pub fn special_tokens_added(&self, pair: bool) -> usize {
        self.layouts.get(pair, true).added
    }

    /// Encodes one text, or two, with everything there is to know about the result.
    ///
    /// ```
    /// use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let tokens = ["[UNK]", "un", "##want", "##ed", "!"];
    /// let vocab = Vocab::new(tokens.iter().zip(0..).map(|(&token, id)| (token, id)))?;
    /// let tokenizer = Tokenizer::new(Definition::bert(vocab))?;
    /// let encoding = tokenizer.encode(&Input::single("Unwanted!"), &EncodeOptions::default())?;
    /// assert_eq!(encoding.tokens, ["un", "##want", "##ed", "!"]);
    /// assert_eq!(encoding.offsets, [(0, 2), (2, 6), (6, 8), (8, 9)]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn encode(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<Encoding> {
        let mut encoding = self.encode_unpadded(input, options, &mut self.scratch())?;
        if let Some(padding) = &options.padding {
            encoding.pad(padding.target(encoding.len())?, padding);
        }
        Ok(encoding)
    }

    /// Space for the steps, on loan.
    pub(crate) fn scratch(&self) -> Lent<'_> {
        self.pool.lend()
    }

    pub(crate) fn encode_unpadded(
        &self,
        input: &Input<'_>,
        options: &EncodeOptions,
        scratch: &mut Scratch,
    ) -> Result<Encoding> {
        let rows = self.rows(input, options, Wanted { words: true, spans: true, texts: true, all: true }, scratch)?;
        Ok(rows.encoding(&self.definition.vocab, options.overflow))
    }

    /// Tokenizes the texts of an input and cuts them: the rows it becomes.
    pub(crate) fn rows<'s>(
        &'s self,
        input: &Input<'_>,
        options: &EncodeOptions,
        wanted: Wanted,
        scratch: &'s mut Scratch,
    ) -> Result<WindowedInput<'s>> {
        let layout = self.layout(input, options)?;
        let wanted = Wanted { texts: wanted.texts || (wanted.spans && layout.trim_offsets.is_some()), ..wanted };
        let second = input.second.as_ref();
        let truncation = options.truncation.as_ref();
        let budget = truncation.map_or(usize::MAX, |truncation| truncation.max_length.saturating_sub(layout.added));
        let enough = match truncation {
            Some(truncation) if !wanted.all => truncation.enough(budget, second.is_some()),
            _ => [usize::MAX; 2],
        };
        self.tokenize_both(input, options, wanted, enough, scratch)?;
        let lengths = [scratch.first.len(), second.map_or(0, |_| scratch.second.len())];
        // Where both texts are longer than a row, an odd token goes to the longer one: then their lengths count after all.
        // And an error is to tell the true lengths.
        let tie = second.is_some() && budget % 2 == 1 && lengths.iter().all(|&length| length > budget);
        let refused =
            || truncation.is_some_and(|it| it.targets(lengths[0], second.map(|_| lengths[1]), layout.added).is_err());
        if enough != [usize::MAX; 2] && (tie || refused()) {
            self.tokenize_both(input, options, wanted, [usize::MAX; 2], scratch)?;
        }
        WindowedInput::new(layout, &scratch.first, second.map(|_| &scratch.second), truncation)
    }

    /// Tokenizes the texts of an input, each up to so many pieces as are enough.
    fn tokenize_both(
        &self,
        input: &Input<'_>,
        options: &EncodeOptions,
        wanted: Wanted,
        enough: [usize; 2],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut first = std::mem::take(&mut scratch.first);
        let mut second = std::mem::take(&mut scratch.second);
        let mut done = self.tokenize(&input.first, options, wanted, enough[0], scratch, &mut first);
        if let (Ok(()), Some(text)) = (&done, &input.second) {
            done = self.tokenize(text, options, wanted, enough[1], scratch, &mut second);
        }
        (scratch.first, scratch.second) = (first, second);
        done
    }

    /// Whether texts can be tokenized together.
    pub(crate) fn has_plain_path(&self) -> bool {
        self.fast.is_some() && !self.added.searches_normalized()
    }

    /// Tokenizes texts together, up to one in which an added token stands or that only the pipeline can do; returns how many
    /// it has done. `found` is called with the number of each text and its pieces.
    pub(crate) fn tokenize_plain<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        wanted: fast::Wanted,
        skip_special: bool,
        scratch: &mut Scratch,
        found: impl FnMut(usize, FoundText<'_>),
    ) -> usize {
        let Some(fast) = &self.fast else { return 0 };
        let texts = texts.take_while(|text| self.added.has_no_raw(text, skip_special));
        let memory = scratch.memory.get_or_insert_with(|| Box::new(fast.memory()));
        fast.tokenize_texts(texts, wanted, &self.matcher, memory, found)
    }

    /// The layout of a row of one text.
    pub(crate) fn single_layout(&self, add_special_tokens: bool) -> &Layout {
        self.layouts.get(false, add_special_tokens)
    }

    pub(crate) fn layout(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<&Layout> {
        // What a single text allows is checked whatever the text; what a pair allows, when it has to be cut.
        if let Some(truncation) = &options.truncation {
            truncation.check(self.layouts.get(false, options.add_special_tokens).added)?;
        }
        Ok(self.layouts.get(input.second.is_some(), options.add_special_tokens))
    }

    /// Tokenizes one text into `out`, up to so many pieces as are enough.
    fn tokenize(
        &self,
        text: &Text<'_>,
        options: &EncodeOptions,
        wanted: Wanted,
        enough: usize,
        scratch: &mut Scratch,
        out: &mut Pieces,
    ) -> Result<()> {
        out.clear();
        let mut run = Run { options, wanted, word: None, words: 0, enough, out };
        match text {
            Text::Raw(text) => {
                if let Some(start) = self.start_of(text, enough) {
                    self.tokenize_raw(start, scratch, &mut run)?;
                    if run.has_enough() {
                        return Ok(());
                    }
                    run.out.clear();
                    run.words = 0;
                }
                self.tokenize_raw(text, scratch, &mut run)
            }
            Text::Words(words) => {
                for (word, i) in words.iter().zip(0..) {
                    if run.has_enough() {
                        break;
                    }
                    run.word = Some(i);
                    self.tokenize_raw(word, scratch, &mut run)?;
                }
                Ok(())
            }
        }
    }

    /// A start of a long text that will hardly have fewer pieces than are enough, so that nobody need search the rest for
    /// added tokens. It ends at white space, which no word crosses and no added token either; `None` where that cannot be
    /// said, or is not worth it. Only the last piece of it may differ from that of the whole text, and that is cut off.
    fn start_of<'t>(&self, text: &'t str, enough: usize) -> Option<&'t str> {
        // English has five bytes a piece, ideographs have three; 16 leave room for words with few.
        let wanted = enough.checked_mul(16)?;
        if text.len() < 4 * wanted || self.fast.is_none() || self.added.cross_spaces() {
            return None;
        }
        let end = wanted + text.as_bytes()[wanted..2 * wanted].iter().position(|&byte| byte == b' ')?;
        text.get(..end)
    }

    /// Tokenizes a raw text.
    fn tokenize_raw(&self, text: &str, scratch: &mut Scratch, run: &mut Run<'_>) -> Result<()> {
        if text.len() >= u32::MAX as usize {
            return Err(Error::TextTooLong { bytes: text.len() });
        }
        let from = run.out.len();
        let mut segments = std::mem::take(&mut scratch.raw_segments);
        self.added.cut_raw(text, run.options.encode_special_tokens, &mut segments);
        let mut done = Ok(());
        for Segment { added_token, range } in &segments {
            if run.has_enough() || done.is_err() {
                break;
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
        if run.wanted.spans {
            convert(text, run.options.offset_unit, &mut run.out.spans[from..]);
        }
        Ok(())
    }

    /// Tokenizes a part of a text, from byte `base` on, in which no raw added token stands.
    fn tokenize_part(&self, part: &str, base: u32, scratch: &mut Scratch, run: &mut Run<'_>) -> Result<()> {
        if let Some(fast) = &self.fast
            && self.tokenize_fast(fast, part, base, scratch, run)
        {
            return Ok(());
        }
        let pre_tokenizer = self.definition.pre_tokenizer.as_ref();
        let aligned = run.wanted.spans || pre_tokenizer.is_some_and(PreTokenizer::needs_spans);
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
                    // A copy, because a pre-tokenizer may rewrite what it is given.
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

    /// Tokenizes a part on the fast path; false, and nothing done, where only the pipeline can.
    fn tokenize_fast(&self, fast: &Fast, part: &str, base: u32, scratch: &mut Scratch, run: &mut Run<'_>) -> bool {
        let Run { options, wanted, word, words, enough, out } = run;
        let order =
            Order { base, spans: wanted.spans, word: *word, first_word: *words, words: wanted.words, enough: *enough };
        let memory = scratch.memory.get_or_insert_with(|| Box::new(fast.memory()));
        let end = if self.added.searches_normalized() {
            let skip_special = options.encode_special_tokens;
            let cut = |text: &str, segments: &mut _| self.added.cut_normalized(text, skip_special, segments);
            let token = |token, text: &str, span, number, out: &mut Pieces| {
                wanted.push_added(self.added.id(token), text, word.unwrap_or(number), span, out);
            };
            fast.tokenize_around(part, order, &self.matcher, memory, out, cut, token)
        } else {
            fast.tokenize(part, order, &self.matcher, memory, out)
        };
        match end {
            End::Done(number) => *words = number,
            End::Refused => return false,
        }
        true
    }

    /// Splits a normalized text and matches its words.
    fn tokenize_normalized(&self, text: &mut Normalized, scratch: &mut Scratch, run: &mut Run<'_>) -> Result<()> {
        scratch.words.clear();
        if !text.text.is_empty() {
            scratch.words.push(0..text.text.len());
        }
        if let Some(pre_tokenizer) = &self.definition.pre_tokenizer {
            pre_tokenizer.split(text, &mut scratch.words)?;
        }
        for range in &scratch.words {
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

    /// Turns ids into text. Ids without a token are passed over, or an error when `strict`.
    ///
    /// `cleanup` overrides what the decoder says about the spaces before punctuation.
    pub fn decode(
        &self,
        ids: &[u32],
        skip_special_tokens: bool,
        cleanup: Option<bool>,
        strict: bool,
    ) -> Result<String> {
        let mut tokens = Vec::with_capacity(ids.len());
        for &id in ids {
            match self.id_to_token(id) {
                Some(_) if skip_special_tokens && self.added.is_special(id) => {}
                Some(token) => tokens.push(token.to_owned()),
                None if strict => return Err(Error::UnknownId { id, vocab_size: self.vocab_size(true) }),
                None => {}
            }
        }
        self.definition.join_tokens(tokens, cleanup)
    }
}

/// What is to be known about pieces beside their ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The words they belong to.
    pub words: bool,
    /// Where they stand.
    pub spans: bool,
    /// The text of added tokens.
    pub texts: bool,
    /// Everything that truncation cuts off, or how much it is.
    pub all: bool,
}

impl Wanted {
    #[inline]
    fn push(self, id: u32, word: u32, span: Span, out: &mut Pieces) {
        out.ids.push(id);
        if self.words {
            out.words.push(word);
        }
        if self.spans {
            out.spans.push(span);
        }
    }

    fn push_added(self, id: u32, text: &str, word: u32, span: Span, out: &mut Pieces) {
        if self.texts {
            out.texts.push((out.len(), text.to_owned()));
        }
        self.push(id, word, span, out);
    }
}

/// One text on its way through the pipeline.
struct Run<'a> {
    options: &'a EncodeOptions,
    wanted: Wanted,
    /// The word id of all pieces, where the text was split before.
    word: Option<u32>,
    /// The number of words so far.
    words: u32,
    /// So many pieces are enough: the rest will be cut off, and nobody asks how many they are.
    enough: usize,
    out: &'a mut Pieces,
}

impl Run<'_> {
    fn next_word(&mut self) -> u32 {
        self.words += 1;
        self.word.unwrap_or(self.words - 1)
    }

    fn push_added(&mut self, id: u32, text: &str, span: Span) {
        let word = self.next_word();
        self.wanted.push_added(id, text, word, span, self.out);
    }

    #[inline]
    fn push(&mut self, id: u32, word: u32, span: Span) {
        self.wanted.push(id, word, span, self.out);
    }

    fn has_enough(&self) -> bool {
        self.out.ids.len() >= self.enough
    }
}
