//! Token stores: the ids of a corpus with the bounds of its sentences and documents, as flat arrays in files.
//!
//! A [`TokenStoreWriter`] takes blocks of texts, divides them into documents and sentences, tokenizes the sentences, and
//! writes shards of four `.npy` files each. A shard ends after a document, and then a line of `journal.jsonl` says what
//! the shard has and where the next one begins. `index.json` comes last. A writer that is created for a folder with a
//! journal resumes after its last line whose shard is intact, and the folder ends up with the bytes that one run would have
//! written. Only one writer may be at work in a folder; the caller sees to that.
//!
//! # Cost
//!
//! Tokenizing dominates. Ids are narrowed and written as they come; memory is bounded by a block of texts and its ids.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wordpiece_parallel::Workers;

use super::documents::{DividedBlock, DocumentEnd, DocumentRule, Documents, document_id};
use super::journal::{self, is_intact, opened, sealed};
use super::npy::{FileEntry, NpyWriter, PART, PartFile, sync_folder, write_error};
use super::sentences::SentenceSplitter;
use crate::batch::Columns;
use crate::error::{Error, Result};
use crate::files::TextBlock;
use crate::tokenizer::{EncodeOptions, Input, Tokenizer};

const INDEX: &str = "index.json";
const JOURNAL: &str = "journal.jsonl";
/// The value of `format` in an index.
const FORMAT: &str = "wordpiece-bert tokens";

/// How a token store is built.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The identity of the tokenizer, for the index.
    pub fingerprint: String,
    /// The number of ids, for the index.
    pub vocab_size: usize,
    /// What the index records of the call: a JSON object. A run resumes only if it is equal.
    pub recorded: String,
    /// The number of each file in the whole list, from which document ids derive.
    pub file_numbers: Vec<u64>,
    /// What a document is.
    pub documents: DocumentRule,
    /// Cuts lines into sentences; without it a line is a sentence.
    pub splitter: Option<SentenceSplitter>,
    /// Whether ids are written as 16 bits.
    pub narrow: bool,
    /// A shard ends after the document with which it has this many tokens.
    pub shard_tokens: u64,
}

/// What a store has, or what was left out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// One file of a shard, as the index lists it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct IndexedFile {
    name: String,
    bytes: u64,
    crc32: String,
}

impl From<FileEntry> for IndexedFile {
    fn from(entry: FileEntry) -> IndexedFile {
        IndexedFile { name: entry.name, bytes: entry.bytes, crc32: format!("{:08x}", entry.crc32) }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ShardFiles {
    ids: IndexedFile,
    sentence_offsets: IndexedFile,
    document_offsets: IndexedFile,
    document_ids: IndexedFile,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ShardEntry {
    tokens: u64,
    sentences: u64,
    documents: u64,
    files: ShardFiles,
}

/// Where the documents after a shard begin, and what was counted before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// The index of the file in the list of this run.
    input: usize,
    /// How many documents of it were read, empty ones included.
    documents: u64,
    /// What was counted, without the texts of this file that could not be read.
    counts: StoreCounts,
}

/// The first line of a journal.
#[derive(Serialize, Deserialize, PartialEq)]
struct JournalHeader {
    format: String,
    version: u32,
    dtype: String,
    tokenizer: String,
    vocab_size: usize,
    options: Value,
}

/// Each other line of a journal.
#[derive(Serialize, Deserialize)]
struct JournalLine {
    shard: ShardEntry,
    next: Position,
}

/// The content of `index.json`.
#[derive(Serialize, Deserialize)]
struct Index {
    #[serde(flatten)]
    header: JournalHeader,
    counts: StoreCounts,
    shards: Vec<ShardEntry>,
}

/// [`Index`] while it is written.
#[derive(Serialize)]
struct IndexRef<'a> {
    #[serde(flatten)]
    header: &'a JournalHeader,
    counts: StoreCounts,
    shards: &'a [ShardEntry],
}

/// Returns the name of a file of a shard.
fn shard_file(number: usize, what: &str) -> String {
    format!("{number:05}.{what}.npy")
}

/// The four files of the shard that is being written.
struct OpenShard {
    ids: NpyWriter,
    sentence_offsets: NpyWriter,
    document_offsets: NpyWriter,
    document_ids: NpyWriter,
    tokens: u64,
    sentences: u64,
    documents: u64,
}

impl OpenShard {
    fn create(folder: &Path, number: usize, narrow: bool) -> Result<OpenShard> {
        let name = |what: &str| shard_file(number, what);
        let ids = name("ids");
        let mut shard = OpenShard {
            ids: if narrow { NpyWriter::create::<u16>(folder, &ids)? } else { NpyWriter::create::<u32>(folder, &ids)? },
            sentence_offsets: NpyWriter::create::<i64>(folder, &name("sentence_offsets"))?,
            document_offsets: NpyWriter::create::<i64>(folder, &name("document_offsets"))?,
            document_ids: NpyWriter::create::<u64>(folder, &name("document_ids"))?,
            tokens: 0,
            sentences: 0,
            documents: 0,
        };
        shard.sentence_offsets.extend(std::iter::once(0_i64))?;
        shard.document_offsets.extend(std::iter::once(0_i64))?;
        Ok(shard)
    }

    fn push_ids(&mut self, ids: &[u32], narrow: bool) -> Result<()> {
        match narrow {
            true => self.ids.extend(ids.iter().map(|&id| id as u16)),
            false => self.ids.extend(ids.iter().copied()),
        }
    }

    fn push_sentence(&mut self, tokens: u64) -> Result<()> {
        self.tokens += tokens;
        self.sentences += 1;
        self.sentence_offsets.extend(std::iter::once(self.tokens as i64))
    }

    fn end_document(&mut self, id: u64) -> Result<()> {
        self.documents += 1;
        self.document_offsets.extend(std::iter::once(self.sentences as i64))?;
        self.document_ids.extend(std::iter::once(id))
    }

    fn finish(self) -> Result<ShardEntry> {
        let files = ShardFiles {
            ids: self.ids.finish()?.into(),
            sentence_offsets: self.sentence_offsets.finish()?.into(),
            document_offsets: self.document_offsets.finish()?.into(),
            document_ids: self.document_ids.finish()?.into(),
        };
        Ok(ShardEntry { tokens: self.tokens, sentences: self.sentences, documents: self.documents, files })
    }
}

/// Builds a token store; see the [module](self).
pub struct TokenStoreWriter {
    folder: PathBuf,
    options: StoreOptions,
    header: JournalHeader,
    shards: Vec<ShardEntry>,
    open: Option<OpenShard>,
    documents: Documents,
    /// What was counted, without `skipped`.
    counts: StoreCounts,
    /// Texts that could not be read, of files in which a document may still end: file by file, ascending.
    skipped: Vec<(usize, u64)>,
    /// Where the last document ended: the index of its file, and its number there.
    last_end: (usize, u64),
    /// Sentences of the open document that were written.
    sentences_of_document: u64,
    first_input: usize,
    finished: bool,
    /// An error or an interruption has left this half-way.
    broken: bool,
}

impl std::fmt::Debug for TokenStoreWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenStoreWriter")
            .field("folder", &self.folder)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl TokenStoreWriter {
    /// Begins a store in a folder, which is created, or resumes with the one that an earlier run began there.
    ///
    /// # Errors
    ///
    /// [`Error::StoreConflict`] if the folder has something else, or a store begun with other options;
    /// [`Error::FileUnreadable`] if it cannot be read or written.
    pub fn new(folder: &Path, options: StoreOptions) -> Result<TokenStoreWriter> {
        let recorded: Value = serde_json::from_str(&options.recorded).unwrap_or(Value::Null);
        let header = JournalHeader {
            format: FORMAT.to_owned(),
            version: 1,
            dtype: if options.narrow { "uint16" } else { "uint32" }.to_owned(),
            tokenizer: options.fingerprint.clone(),
            vocab_size: options.vocab_size,
            options: recorded,
        };
        fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
        let mut writer = TokenStoreWriter {
            folder: folder.to_owned(),
            documents: Documents::new(options.documents, options.file_numbers.clone()),
            options,
            header,
            shards: Vec::new(),
            open: None,
            counts: StoreCounts::default(),
            skipped: Vec::new(),
            last_end: (0, 0),
            sentences_of_document: 0,
            first_input: 0,
            finished: false,
            broken: false,
        };
        let index = folder.join(INDEX);
        if index.exists() {
            let read = journal::read(&index)?.ok_or_else(|| writer.conflict("format"))?;
            let found: Index = serde_json::from_slice(&read).map_err(|_| writer.conflict("format"))?;
            writer.check_header(&found.header)?;
            writer.counts = found.counts;
            writer.shards = found.shards;
            writer.finished = true;
            writer.remove_leftovers()?;
            return Ok(writer);
        }
        writer.read_journal()?;
        Ok(writer)
    }

    /// Returns whether the store is complete, so that there is nothing to add.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the index of the first file of the list whose blocks are needed.
    #[must_use]
    pub fn first_input(&self) -> usize {
        self.first_input
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        StoreCounts { skipped: self.counts.skipped + self.skipped.iter().map(|(_, n)| n).sum::<u64>(), ..self.counts }
    }

    fn conflict(&self, key: &str) -> Error {
        Error::StoreConflict { folder: self.folder.display().to_string(), key: key.to_owned() }
    }

    /// Checks that a store was begun by the same call as this one.
    fn check_header(&self, found: &JournalHeader) -> Result<()> {
        let own = &self.header;
        let fields = [
            ("format", found.format == own.format && found.version == own.version),
            ("tokenizer", found.tokenizer == own.tokenizer && found.vocab_size == own.vocab_size),
            ("dtype", found.dtype == own.dtype),
        ];
        if let Some((key, _)) = fields.into_iter().find(|(_, equal)| !equal) {
            return Err(self.conflict(key));
        }
        if found.options != own.options {
            let (Some(old), Some(new)) = (found.options.as_object(), own.options.as_object()) else {
                return Err(self.conflict("options"));
            };
            let differs = |key: &&String| old.get(*key) != new.get(*key);
            let key = old.keys().chain(new.keys()).find(differs).map_or("options", String::as_str);
            return Err(self.conflict(key));
        }
        Ok(())
    }

    /// Reads the journal of an earlier run, if there is one, and begins one otherwise.
    fn read_journal(&mut self) -> Result<()> {
        let path = self.folder.join(JOURNAL);
        let journal = match path.exists() {
            true => journal::read(&path)?.ok_or_else(|| self.conflict("format"))?,
            false => Vec::new(),
        };
        // A run that was killed may have written a part of the last line.
        let mut lines = journal.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let Some(first) = lines.next() else {
            self.remove_leftovers()?;
            let header = serde_json::to_vec(&self.header).map_err(|_| self.conflict("options"))?;
            fs::write(&path, sealed(&header)).map_err(|error| write_error(&path, &error))?;
            return sync_folder(&self.folder);
        };
        let header = opened(first).and_then(|object| serde_json::from_slice::<JournalHeader>(&object).ok());
        self.check_header(&header.ok_or_else(|| self.conflict("format"))?)?;
        let mut whole = first.len();
        let mut position = Position::default();
        for line in lines {
            let read = opened(line).and_then(|object| serde_json::from_slice::<JournalLine>(&object).ok());
            let Some(read) = read.filter(|read| self.follows(read)) else { break };
            whole += line.len();
            position = read.next;
            self.shards.push(read.shard);
        }
        self.remove_leftovers()?;
        let file = OpenOptions::new().write(true).open(&path).map_err(|error| write_error(&path, &error))?;
        file.set_len(whole as u64).map_err(|error| write_error(&path, &error))?;
        self.first_input = position.input;
        self.counts = position.counts;
        self.last_end = (position.input, position.documents);
        self.documents.resume(position.input, position.documents);
        Ok(())
    }

    /// Returns whether a line of the journal has the next shard, and the files of the shard are as they were written.
    fn follows(&self, line: &JournalLine) -> bool {
        let number = self.shards.len();
        let in_order = line.next.input <= self.options.file_numbers.len();
        let files = &line.shard.files;
        let named = [
            ("ids", &files.ids),
            ("sentence_offsets", &files.sentence_offsets),
            ("document_offsets", &files.document_offsets),
            ("document_ids", &files.document_ids),
        ];
        in_order
            && named.into_iter().all(|(what, file)| {
                let name = shard_file(number, what);
                file.name == name && is_intact(&self.folder.join(name), file.bytes, &file.crc32)
            })
    }

    /// Removes the parts that a killed run left.
    fn remove_leftovers(&self) -> Result<()> {
        let entries = fs::read_dir(&self.folder).map_err(|error| write_error(&self.folder, &error))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(&format!(".npy{PART}")) || name == format!("{INDEX}{PART}") {
                fs::remove_file(entry.path()).map_err(|error| write_error(&entry.path(), &error))?;
            }
        }
        Ok(())
    }

    /// Adds the texts of a block. Its files are those of the list from [`first_input`](Self::first_input) on; `input` is
    /// their index in the whole list where a block has one file only and does not know it. `ids` are those of documents.
    ///
    /// # Errors
    ///
    /// That of a text that cannot be tokenized, with its location; [`Error::FileUnreadable`] if a file cannot be written.
    /// The writer is of no use afterwards; another one for the folder resumes after the last complete shard.
    pub fn add(
        &mut self,
        block: &TextBlock,
        input: Option<usize>,
        ids: Option<&[u64]>,
        tokenizer: &Tokenizer,
        pool: Option<Workers>,
    ) -> Result<()> {
        self.begin()?;
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
        self.write(&divided, Some(block), tokenizer, pool)?;
        self.broken = false;
        Ok(())
    }

    /// Completes the store: its last shard, then the index. Returns what it has.
    ///
    /// # Errors
    ///
    /// [`Error::NoTokens`] if no document has a token; [`Error::FileUnreadable`] if a file cannot be written.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> Result<StoreCounts> {
        if self.finished {
            return Ok(self.counts);
        }
        self.begin()?;
        let mut divided = DividedBlock::default();
        self.documents.go_to(self.options.file_numbers.len(), &mut divided);
        self.write(&divided, None, tokenizer, None)?;
        let end = self.last_end;
        self.close_shard(end.0, end.1)?;
        for (_, count) in self.skipped.drain(..) {
            self.counts.skipped += count;
        }
        if self.shards.is_empty() {
            return Err(Error::NoTokens);
        }
        let index = IndexRef { header: &self.header, counts: self.counts, shards: &self.shards };
        let mut json = serde_json::to_vec_pretty(&index).map_err(|_| self.conflict("options"))?;
        json.push(b'\n');
        let mut file = PartFile::create(self.folder.join(INDEX))?;
        file.write(&json)?;
        file.finish()?;
        sync_folder(&self.folder)?;
        let journal = self.folder.join(JOURNAL);
        fs::remove_file(&journal).map_err(|error| write_error(&journal, &error))?;
        (self.finished, self.broken) = (true, false);
        Ok(self.counts)
    }

    /// Marks this as half-way until the end of a call.
    fn begin(&mut self) -> Result<()> {
        if self.broken || self.finished {
            return Err(self.conflict("state"));
        }
        self.broken = true;
        Ok(())
    }

    /// Tokenizes the sentences of a block and writes them, with the documents that end among them.
    fn write(
        &mut self,
        divided: &DividedBlock<'_>,
        block: Option<&TextBlock>,
        tokenizer: &Tokenizer,
        pool: Option<Workers>,
    ) -> Result<()> {
        let inputs: Vec<Input<'_>> = divided.sentences.iter().map(|text| Input::single(text)).collect();
        let options = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
        let encoded = tokenizer.encode_batch::<u32>(&inputs, &options, &Columns::default(), pool);
        let rows = encoded.map_err(|error| match (error, block) {
            (Error::AtIndex { index, error }, Some(block)) => {
                error.at_location(block.location(divided.origins[index] as usize))
            }
            (error, _) => error,
        })?;
        let bound = |sentence: usize| rows.row_offsets[sentence] as usize;
        // Ids up to here are written; those of a block lie one after the other, so they are written together.
        let mut written = 0;
        let mut sentence = 0;
        let n = divided.sentences.len();
        let last = DocumentEnd { sentences: n, id: 0, input: usize::MAX, number: 0 };
        for end in divided.ends.iter().chain([&last]) {
            while sentence < end.sentences {
                let tokens = bound(sentence + 1) - bound(sentence);
                self.push_sentence(tokens as u64, divided.sentences[sentence].len() as u64)?;
                sentence += 1;
            }
            if end.input == usize::MAX {
                break;
            }
            self.end_document(end)?;
            let narrow = self.options.narrow;
            if let Some(shard) = self.open.as_mut().filter(|shard| shard.tokens >= self.options.shard_tokens) {
                let upto = bound(sentence);
                shard.push_ids(&rows.ids[written..upto], narrow)?;
                written = upto;
                self.close_shard(end.input, end.number)?;
            }
        }
        if let Some(shard) = &mut self.open {
            shard.push_ids(&rows.ids[written..], self.options.narrow)?;
        }
        Ok(())
    }

    fn push_sentence(&mut self, tokens: u64, bytes: u64) -> Result<()> {
        self.counts.bytes += bytes;
        if tokens == 0 {
            self.counts.sentences_empty += 1;
            return Ok(());
        }
        if self.open.is_none() {
            self.open = Some(OpenShard::create(&self.folder, self.shards.len(), self.options.narrow)?);
        }
        if let Some(shard) = &mut self.open {
            shard.push_sentence(tokens)?;
        }
        self.sentences_of_document += 1;
        self.counts.sentences += 1;
        self.counts.tokens += tokens;
        Ok(())
    }

    fn end_document(&mut self, end: &DocumentEnd) -> Result<()> {
        while let Some(&(input, count)) = self.skipped.first().filter(|(input, _)| *input < end.input) {
            debug_assert!(input < end.input);
            self.counts.skipped += count;
            self.skipped.remove(0);
        }
        self.last_end = (end.input, end.number);
        match (&mut self.open, std::mem::take(&mut self.sentences_of_document)) {
            (Some(shard), sentences) if sentences > 0 => {
                self.counts.documents += 1;
                shard.end_document(end.id)
            }
            _ => {
                self.counts.documents_empty += 1;
                Ok(())
            }
        }
    }

    /// Completes the files of the open shard, if there is one, and records it in the journal.
    fn close_shard(&mut self, input: usize, documents: u64) -> Result<()> {
        let Some(shard) = self.open.take() else { return Ok(()) };
        let entry = shard.finish()?;
        sync_folder(&self.folder)?;
        let next = Position { input, documents, counts: self.counts };
        let line = JournalLine { shard: entry.clone(), next };
        let json = serde_json::to_vec(&line).map_err(|_| self.conflict("options"))?;
        let path = self.folder.join(JOURNAL);
        let appended = OpenOptions::new().append(true).open(&path).and_then(|mut file| {
            file.write_all(&sealed(&json))?;
            file.sync_data()
        });
        appended.map_err(|error| write_error(&path, &error))?;
        self.shards.push(entry);
        Ok(())
    }
}
