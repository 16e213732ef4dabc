//! The rows of one input.
//!
//! Tokenizing yields the pieces of each text; the layout and the truncation divide them into rows. A row becomes an
//! [`Encoding`] here, a list of ids, or part of the arrays of a [batch](crate::batch).

use std::ops::Range;

use super::input::Input;
use super::options::{EncodeOptions, RequestedFields};
use super::pipeline::Tokenizer;
use crate::error::Result;
use crate::fast::PieceFields;
use crate::inputs::assemble::{RowSink, WindowedInput};
use crate::inputs::layout::{Layout, Slot};
use crate::inputs::pieces::Pieces;
use crate::inputs::{Encoding, Side};
use crate::memory;
use crate::scratch::EncodeScratch;

impl Tokenizer {
    /// Encodes one text or pair, with everything that is known about the result.
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
    ///
    /// # Errors
    ///
    /// A truncation or padding that cannot be kept, a text of 4 GiB or more, and errors of the tokenizer's patterns.
    pub fn encode(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<Encoding> {
        let mut encoding = self.encode_unpadded(input, options, &mut self.scratch())?;
        if let Some(padding) = &options.padding {
            let target = padding.target(encoding.len())?;
            memory::check(encoding.rows(), target, padding.token_bytes())?;
            encoding.pad(target, padding);
        }
        Ok(encoding)
    }

    /// Encodes one text or pair, ids only: the same as by [`Tokenizer::encode`], on the shortest path.
    ///
    /// # Errors
    ///
    /// As for [`Tokenizer::encode`].
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let tokenizer = Tokenizer::new(Definition::bert(Vocab::new([("[UNK]", 0), ("york", 1), ("##er", 2)])?))?;
    /// assert_eq!(tokenizer.encode_ids(&Input::single("Yorker?"), &EncodeOptions::default())?, [1, 2, 0]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn encode_ids(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<Vec<u32>> {
        let fields = RequestedFields::default();
        let mut scratch = self.scratch();
        if options.padding.is_none()
            && let Some(plain) = self.plain_layout(options, fields)
            && let Some(text) = plain.text_of(input)
        {
            let mut ids = Vec::new();
            let (texts, skip_special) = (std::iter::once(text), options.encode_special_tokens);
            let done = self.tokenize_plain(texts, PieceFields::default(), skip_special, &mut scratch, |_, pieces| {
                let n = pieces.ids.len().min(plain.budget);
                ids.reserve_exact(n + plain.added);
                push_special_ids(plain.before, &mut ids);
                ids.extend_from_slice(&pieces.ids[..n]);
                push_special_ids(plain.after, &mut ids);
            });
            if done == 1 {
                // A plain text is short.
                scratch.put_back();
                return Ok(ids);
            }
        }
        let rows = self.rows(input, options, fields, &mut scratch)?;
        let mut row = IdRow(Vec::new());
        rows.write(&rows.kept(), &mut row);
        let IdRow(mut ids) = row;
        if let Some(padding) = &options.padding {
            let target = padding.target(ids.len())?;
            let n = target.saturating_sub(ids.len());
            let at = if padding.side == Side::Left { 0 } else { ids.len() };
            memory::try_reserve(&mut ids, n, 1, target)?;
            ids.splice(at..at, std::iter::repeat_n(padding.id, n));
        }
        Ok(ids)
    }

    /// Encodes one text or pair without padding.
    pub(crate) fn encode_unpadded(
        &self,
        input: &Input<'_>,
        options: &EncodeOptions,
        scratch: &mut EncodeScratch,
    ) -> Result<Encoding> {
        let fields = RequestedFields { word_ids: true, spans: true, texts: true, all_pieces: true };
        let rows = self.rows(input, options, fields, scratch)?;
        rows.encoding(&self.definition.vocab, options.overflow)
    }

    /// Tokenizes the texts of an input and divides them into the windows of its rows.
    ///
    /// Where only the kept row is requested, tokenizing stops when it has enough pieces, and starts again without a
    /// limit in the rare cases where the true lengths decide.
    pub(crate) fn rows<'s>(
        &'s self,
        input: &Input<'_>,
        options: &EncodeOptions,
        fields: RequestedFields,
        scratch: &'s mut EncodeScratch,
    ) -> Result<WindowedInput<'s>> {
        let layout = self.layout(input, options)?;
        let texts = fields.texts || (fields.spans && layout.trim_offsets.is_some());
        let fields = RequestedFields { texts, ..fields };
        let second = input.second.as_ref();
        let truncation = options.truncation.as_ref();
        let budget = truncation.map_or(usize::MAX, |truncation| truncation.max_length.saturating_sub(layout.added));
        let limits = match truncation {
            Some(truncation) if !fields.all_pieces => truncation.limits(budget, second.is_some()),
            _ => [usize::MAX; 2],
        };
        self.tokenize_both(input, options, fields, limits, scratch)?;
        let lengths = [scratch.first.len(), second.map_or(0, |_| scratch.second.len())];
        // If both texts are longer than a row, an odd token goes to the longer one, so the lengths matter after all.
        // And an error reports the true lengths.
        let is_tie = second.is_some() && budget % 2 == 1 && lengths.iter().all(|&length| length > budget);
        let is_error =
            || truncation.is_some_and(|it| it.targets(lengths[0], second.map(|_| lengths[1]), layout.added).is_err());
        if limits != [usize::MAX; 2] && (is_tie || is_error()) {
            self.tokenize_both(input, options, fields, [usize::MAX; 2], scratch)?;
        }
        WindowedInput::new(layout, &scratch.first, second.map(|_| &scratch.second), truncation)
    }

    /// Tokenizes the texts of an input into `scratch.first` and `scratch.second`, each up to its limit of pieces.
    fn tokenize_both(
        &self,
        input: &Input<'_>,
        options: &EncodeOptions,
        fields: RequestedFields,
        limits: [usize; 2],
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let mut first = std::mem::take(&mut scratch.first);
        let mut second = std::mem::take(&mut scratch.second);
        let mut done = self.tokenize(&input.first, options, fields, limits[0], scratch, &mut first);
        if let (Ok(()), Some(text)) = (&done, &input.second) {
            done = self.tokenize(text, options, fields, limits[1], scratch, &mut second);
        }
        (scratch.first, scratch.second) = (first, second);
        done
    }

    /// Returns the layout of an input's rows, and checks the truncation. The limits of a single text are checked for
    /// every input, the limits of a pair when it has to be truncated.
    fn layout(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<&Layout> {
        if let Some(truncation) = &options.truncation {
            truncation.check(self.layouts.get(false, options.add_special_tokens).added)?;
        }
        Ok(self.layouts.get(input.second.is_some(), options.add_special_tokens))
    }
}

/// Appends the ids of the special tokens of some slots.
fn push_special_ids(slots: &[Slot], ids: &mut Vec<u32>) {
    for slot in slots {
        if let Slot::Special { ids: special, .. } = slot {
            ids.extend_from_slice(special);
        }
    }
}

/// A row of which only the ids are written; everything else is ignored.
struct IdRow(Vec<u32>);

impl RowSink for IdRow {
    fn special(&mut self, ids: &[u32], _tokens: &[String], _type_id: u32) {
        self.0.extend_from_slice(ids);
    }

    fn text(&mut self, _text: usize, _known: bool, pieces: &Pieces, range: Range<usize>, _type_id: u32) {
        self.0.extend_from_slice(&pieces.ids[range]);
    }
}
