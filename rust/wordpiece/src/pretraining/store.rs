//! Token stores: the ids of a corpus with the bounds of its sentences and documents, as flat arrays.
//!
//! A [`StoreBuilder`] takes blocks of texts, divides them into documents and sentences, tokenizes the sentences, and
//! returns what they add to the arrays of a shard. A shard ends after a document; with its end comes the position of the
//! next one, from which another builder resumes. The caller writes the arrays.
//!
//! # Cost
//!
//! Tokenizing dominates. Memory is bounded by a block of texts and its ids.

use wordpiece_parallel::Workers;

use super::documents::{DividedBlock, DocumentEnd, DocumentRule, Documents, document_id};
use super::sentences::SentenceSplitter;
use crate::batch::Columns;
use crate::error::{Error, Result};
use crate::files::TextBlock;
use crate::tokenizer::{EncodeOptions, Input, Tokenizer};

/// How a token store is built.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The number of each file in the whole list, from which document ids derive.
    pub file_numbers: Vec<u64>,
    /// What a document is.
    pub documents: DocumentRule,
    /// Cuts lines into sentences; without it a line is a sentence.
    pub splitter: Option<SentenceSplitter>,
    /// A shard ends after the document with which it has this many tokens.
    pub shard_tokens: u64,
}

/// What a store has, or what was left out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Documents with tokens.
    pub documents: u64,
    /// Documents without tokens, left out.
    pub documents_empty: u64,
    /// Sentences with tokens.
    pub sentences: u64,
    /// Sentences without tokens, left out.
    pub sentences_empty: u64,
    /// Tokens.
    pub tokens: u64,
    /// Texts that could not be read.
    pub skipped: u64,
    /// Bytes of text of all sentences.
    pub bytes: u64,
}

/// Where the documents after a shard begin, and what was counted before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The index of the file in the list of this run.
    pub input: usize,
    /// How many documents of it were read, empty ones included.
    pub documents: u64,
    /// What was counted, without the texts of this file that could not be read.
    pub counts: StoreCounts,
}

/// What some texts add to the arrays of a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorePart {
    /// The ids of sentences, one after the other.
    pub ids: Vec<u32>,
    /// Where each sentence ends, in tokens of the shard.
    pub sentence_ends: Vec<i64>,
    /// Where each document ends, in sentences of the shard.
    pub document_ends: Vec<i64>,
    /// The id of each document.
    pub document_ids: Vec<u64>,
    /// The position after the shard, if it is complete.
    pub next: Option<Position>,
}

/// Builds a token store; see the [module](self).
#[derive(Debug)]
pub struct StoreBuilder {
    options: StoreOptions,
    documents: Documents,
    /// The tokens and sentences of the open shard; `None` before its first sentence.
    open: Option<(u64, u64)>,
    /// What was counted, without `skipped`.
    counts: StoreCounts,
    /// Texts that could not be read, of files in which a document may still end: file by file, ascending.
    skipped: Vec<(usize, u64)>,
    /// Where the last document ended: the index of its file, and its number there.
    last_end: (usize, u64),
    /// Sentences of the open document that have tokens.
    sentences_of_document: u64,
    first_input: usize,
}

impl StoreBuilder {
    /// Begins with the first document.
    #[must_use]
    pub fn new(options: StoreOptions) -> StoreBuilder {
        StoreBuilder {
            documents: Documents::new(options.documents, options.file_numbers.clone()),
            options,
            open: None,
            counts: StoreCounts::default(),
            skipped: Vec::new(),
            last_end: (0, 0),
            sentences_of_document: 0,
            first_input: 0,
        }
    }

    /// Begins with the document at a position that an earlier builder has returned, in place of the first.
    pub fn resume(&mut self, from: Position) {
        self.documents.resume(from.input, from.documents);
        self.counts = from.counts;
        self.last_end = (from.input, from.documents);
        self.first_input = from.input;
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        StoreCounts { skipped: self.counts.skipped + self.skipped.iter().map(|(_, n)| n).sum::<u64>(), ..self.counts }
    }

    /// Adds the texts of a block. Its file 0 is the input where the builder began, and the others follow it. `input` is
    /// the index in the whole list of a block's only file, where the block does not know it. `ids` are the ids of the
    /// documents. Returns what the open shard gets, and each one after it.
    ///
    /// # Errors
    ///
    /// The error of a text that cannot be tokenized, with its location. The builder is of no use afterwards.
    pub fn add(
        &mut self,
        block: &TextBlock,
        input: Option<usize>,
        ids: Option<&[u64]>,
        tokenizer: &Tokenizer,
        pool: Option<Workers>,
    ) -> Result<Vec<StorePart>> {
        let input_of = |file: usize| input.unwrap_or(self.first_input + file);
        for &(file, count) in block.skipped_by_file() {
            self.skipped.push((input_of(file as usize), count));
        }
        let mut divided = DividedBlock::default();
        let by_value = self.options.documents == DocumentRule::Value;
        for (i, text) in block.texts().enumerate() {
            let read_id = || block.id(i).filter(|_| by_value).map(document_id);
            let id = ids.map_or_else(read_id, |ids| ids.get(i).copied());
            let splitter = self.options.splitter.as_ref();
            self.documents.push((i, text), input_of(block.file(i)), id, splitter, &mut divided);
        }
        self.tokenize(&divided, Some(block), tokenizer, pool)
    }

    /// Ends the last file. Returns what the last shard gets.
    ///
    /// # Errors
    ///
    /// [`Error::NoTokens`] if no document has a token.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> Result<Vec<StorePart>> {
        let mut divided = DividedBlock::default();
        self.documents.go_to(self.options.file_numbers.len(), &mut divided);
        let mut parts = self.tokenize(&divided, None, tokenizer, None)?;
        if self.open.take().is_some() {
            let (input, documents) = self.last_end;
            let mut last = parts.pop().unwrap_or_default();
            last.next = Some(Position { input, documents, counts: self.counts });
            parts.push(last);
        }
        for (_, count) in self.skipped.drain(..) {
            self.counts.skipped += count;
        }
        if self.counts.tokens == 0 { Err(Error::NoTokens) } else { Ok(parts) }
    }

    /// Tokenizes the sentences of a block; returns them with the documents that end among them.
    fn tokenize(
        &mut self,
        divided: &DividedBlock<'_>,
        block: Option<&TextBlock>,
        tokenizer: &Tokenizer,
        pool: Option<Workers>,
    ) -> Result<Vec<StorePart>> {
        let inputs: Vec<Input<'_>> = divided.sentences.iter().map(|text| Input::single(text)).collect();
        let options = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
        let encoded = tokenizer.encode_batch::<u32>(&inputs, &options, &Columns::default(), pool);
        let mut rows = encoded.map_err(|error| match (error, block) {
            (Error::AtIndex { index, error }, Some(block)) => {
                error.at_location(block.location(divided.origins[index] as usize))
            }
            (error, _) => error,
        })?;
        let bound = |sentence: usize| rows.row_offsets[sentence] as usize;
        let mut parts = Vec::new();
        let mut part = StorePart::default();
        // Ids up to here are in parts; the ids of a block lie one after the other, so they are taken together.
        let mut taken = 0;
        let mut sentence = 0;
        let last = DocumentEnd { sentences: divided.sentences.len(), id: 0, input: usize::MAX, number: 0 };
        for end in divided.ends.iter().chain([&last]) {
            while sentence < end.sentences {
                let tokens = bound(sentence + 1) - bound(sentence);
                self.push_sentence(tokens as u64, divided.sentences[sentence].len() as u64, &mut part);
                sentence += 1;
            }
            if end.input == usize::MAX {
                break;
            }
            self.end_document(end, &mut part);
            if self.open.is_some_and(|(tokens, _)| tokens >= self.options.shard_tokens) {
                let upto = bound(sentence);
                part.ids.extend_from_slice(&rows.ids[taken..upto]);
                taken = upto;
                part.next = Some(Position { input: end.input, documents: end.number, counts: self.counts });
                parts.push(std::mem::take(&mut part));
                self.open = None;
            }
        }
        if self.open.is_some() {
            part.ids = if taken == 0 { std::mem::take(&mut rows.ids) } else { rows.ids[taken..].to_vec() };
            parts.push(part);
        }
        Ok(parts)
    }

    fn push_sentence(&mut self, tokens: u64, bytes: u64, part: &mut StorePart) {
        self.counts.bytes += bytes;
        if tokens == 0 {
            self.counts.sentences_empty += 1;
            return;
        }
        let (shard_tokens, sentences) = self.open.get_or_insert((0, 0));
        *shard_tokens += tokens;
        *sentences += 1;
        part.sentence_ends.push(*shard_tokens as i64);
        self.sentences_of_document += 1;
        self.counts.sentences += 1;
        self.counts.tokens += tokens;
    }

    fn end_document(&mut self, end: &DocumentEnd, part: &mut StorePart) {
        while let Some(&(_, count)) = self.skipped.first().filter(|(input, _)| *input < end.input) {
            self.counts.skipped += count;
            self.skipped.remove(0);
        }
        self.last_end = (end.input, end.number);
        match (self.open, std::mem::take(&mut self.sentences_of_document)) {
            (Some((_, sentences)), of_document) if of_document > 0 => {
                self.counts.documents += 1;
                part.document_ends.push(sentences as i64);
                part.document_ids.push(end.id);
            }
            _ => self.counts.documents_empty += 1,
        }
    }
}
