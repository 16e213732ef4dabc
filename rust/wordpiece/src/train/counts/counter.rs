//! Counts the words of blocks: blocks are distributed over threads, each thread counts into its own table, and the
//! tables are added up.
//!
//! The text is processed in chunks of 64 MiB. At the end of each chunk the tables of the threads are merged into one,
//! and the bound on distinct words is applied to it. Chunks end at fixed positions in the text, so the result does not
//! depend on the number of threads.
//!
//! # Cost
//!
//! Memory is one table of all distinct words, one table of the distinct words of a chunk for each thread, and a few
//! blocks for each thread. With one thread nothing is sent anywhere.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use wordpiece_parallel::{Cancellation, InstructionSet, fork_join};

use super::super::progress::{Monitor, Progress, Stage};
use super::block_source::{BlockSource, ByteBlock};
use super::hash_table::WordCountTable;
use super::word_counts::WordCounts;
use crate::error::{Error, Result, TrainingError};
use crate::fast::words::{WordBuffer, WordFinder};
use crate::normalize::{BertNormalizer, Normalized};
use crate::split::PreTokenizer;

/// The number of bytes that are normalized at a time, so that the normalized text stays in the first-level cache.
const PIECE_BYTES: usize = 4096;

/// The number of bytes of text after which the bound on distinct words is applied. It affects the result, so it is
/// fixed.
const CHUNK_BYTES: u64 = 64 << 20;

/// What to do with bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidBytes {
    /// Return an error.
    #[default]
    Refuse,
    /// Replace each maximal invalid part by U+FFFD, which the normalizer removes when it cleans text.
    Replace,
    /// Skip the line that has them.
    SkipLine,
}

/// Options of [`count()`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOptions {
    /// The normalizer that is applied before text is split into words.
    pub normalizer: BertNormalizer,
    /// What to do with bytes that are not UTF-8.
    pub invalid_bytes: InvalidBytes,
    /// If there are more distinct words than this after 64 MiB of text, or at its end, the rarest are dropped until at most half as
    /// many are left. This bounds the memory, and makes counts too small by at most [`Counted::undercount`].
    pub max_distinct_words: Option<usize>,
    /// The number of threads; 0 means 1. It does not affect the result.
    pub threads: usize,
}

/// The counted words, and what else was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The words.
    pub words: WordCounts,
    /// The number of texts: lines of files, or items.
    pub texts: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of invalid parts that were replaced.
    pub replaced: u64,
    /// The number of lines that were skipped because they are not UTF-8.
    pub skipped: u64,
    /// The number of words that were dropped to stay below the bound; a word that is dropped twice counts twice.
    pub dropped: u64,
    /// An upper bound on how much the count of any word is too small because the word was dropped before.
    pub undercount: u64,
}

/// Counts the words of all blocks.
///
/// `observer` is called about every 50 milliseconds and returns false to stop.
///
/// # Errors
///
/// The errors of [`BlockSource::next_block`]; [`TrainingError::NotUtf8`] for the first invalid byte, if those are
/// refused; [`TrainingError::Interrupted`]; [`TrainingError::EndlessWord`] for a file that is not text.
pub fn count(
    blocks: &mut dyn BlockSource,
    options: &CountOptions,
    observer: &mut dyn FnMut(Progress) -> bool,
) -> Result<Counted> {
    let mut monitor = Monitor::new(observer);
    monitor.begin(Stage::Counting, blocks.progress().map(|(_, total)| total))?;
    let context = CountContext::new(*options);
    let mut tables: Vec<WordCountTable> = (0..options.threads.max(1)).map(|_| WordCountTable::default()).collect();
    let mut all = WordCountTable::default();
    let mut counted = Counted::default();
    loop {
        let mut chunk = ChunkReader {
            blocks: &mut *blocks,
            monitor: &mut monitor,
            lines_may_break: options.invalid_bytes != InvalidBytes::SkipLine,
            bytes_before: counted.bytes,
            length: 0,
            bytes_read: 0,
        };
        let text_counts = context.count_chunk(&mut chunk, &mut tables)?;
        let is_last = chunk.length < CHUNK_BYTES;
        counted.texts += text_counts.texts;
        counted.replaced += text_counts.replaced;
        counted.skipped += text_counts.skipped;
        counted.bytes += text_counts.bytes;
        if all.len() == 0 {
            std::mem::swap(&mut all, &mut tables[0]);
        }
        for table in &mut tables {
            all.merge(table);
            // Cleared tables keep their size, which the next chunk will need again.
            table.clear();
            monitor.check()?;
        }
        if let Some(most) = options.max_distinct_words
            && all.len() > most
        {
            let (count, words) = all.drop_rarest(most / 2);
            counted.undercount += count;
            counted.dropped += words as u64;
        }
        if is_last {
            drop(tables);
            counted.words = all.into_counts();
            return Ok(counted);
        }
    }
}

/// Counts of texts, bytes and invalid lines.
#[derive(Debug, Default)]
struct TextCounts {
    texts: u64,
    bytes: u64,
    replaced: u64,
    skipped: u64,
}

impl TextCounts {
    fn add(&mut self, other: &TextCounts) {
        self.texts += other.texts;
        self.bytes += other.bytes;
        self.replaced += other.replaced;
        self.skipped += other.skipped;
    }
}

/// Reads the blocks of one chunk and reports progress.
struct ChunkReader<'a, 'm> {
    blocks: &'a mut dyn BlockSource,
    monitor: &'a mut Monitor<'m>,
    lines_may_break: bool,
    /// The number of bytes read before this chunk.
    bytes_before: u64,
    /// The number of bytes of text in this chunk so far.
    length: u64,
    /// The number of bytes read for this chunk so far.
    bytes_read: u64,
}

impl ChunkReader<'_, '_> {
    /// Replaces the content of `block` by the next block; returns false at the end of the chunk or of the text.
    fn next_block(&mut self, block: &mut ByteBlock) -> Result<bool> {
        let ChunkReader { blocks, monitor, lines_may_break, .. } = self;
        if self.length >= CHUNK_BYTES || !blocks.next_block(block, *lines_may_break, &mut || monitor.report())? {
            return Ok(false);
        }
        self.length += block.bytes.len() as u64;
        self.bytes_read += block.size;
        Ok(true)
    }

    fn report_progress(&mut self) -> Result<()> {
        let done = self.blocks.progress().map_or(self.bytes_before + self.bytes_read, |(done, _)| done);
        self.monitor.set_done(done);
        self.monitor.check()
    }
}

/// Settings that all threads read.
struct CountContext {
    options: CountOptions,
    /// Finds words without the general pipeline, if it supports the options.
    finder: Option<WordFinder>,
}

/// Full blocks with their numbers on the way to the threads, and empty ones on the way back.
#[derive(Clone)]
struct BlockQueue {
    /// Owned only by the threads: once the last of them has ended, sending fails.
    full: Arc<Mutex<Receiver<(u64, ByteBlock)>>>,
    empty: Sender<ByteBlock>,
}

impl CountContext {
    fn new(options: CountOptions) -> CountContext {
        CountContext { options, finder: WordFinder::new(options.normalizer, InstructionSet::detect()) }
    }

    /// Counts the words of a chunk, with one thread for each table.
    ///
    /// # Errors
    ///
    /// If several blocks have errors, the error of the first one in the text, whichever thread found it.
    fn count_chunk(&self, chunk: &mut ChunkReader<'_, '_>, tables: &mut [WordCountTable]) -> Result<TextCounts> {
        if let [table] = tables {
            let mut counter = BlockCounter::new(self, table);
            let mut block = ByteBlock::default();
            while chunk.next_block(&mut block)? {
                counter.count_block(&block)?;
                chunk.report_progress()?;
            }
            return Ok(counter.text_counts);
        }
        let (to_threads, full) = sync_channel::<(u64, ByteBlock)>(tables.len());
        let (empty, from_threads) = channel();
        let queue = BlockQueue { full: Arc::new(Mutex::new(full)), empty };
        let items: Vec<_> = tables.iter_mut().map(|table| (table, queue.clone())).collect();
        drop(queue);
        // Owns the sender: when it returns, by an error or a panic too, the threads run out of blocks and end.
        let feed = move |cancellation: &Cancellation| -> Result<()> {
            let mut number = 0;
            while !cancellation.is_cancelled() {
                let mut block: ByteBlock = from_threads.try_recv().unwrap_or_default();
                // Sending fails if all threads have ended, each with an error.
                if !chunk.next_block(&mut block)? || to_threads.send((number, block)).is_err() {
                    break;
                }
                number += 1;
                chunk.report_progress()?;
            }
            Ok(())
        };
        let count = |(table, queue), cancellation: &Cancellation| self.count_queue(table, queue, cancellation);
        let (fed, results) = fork_join(items, count, feed);
        let mut text_counts = TextCounts::default();
        let mut first_error: Option<(u64, Error)> = None;
        for result in results {
            match result {
                Ok(counts) => text_counts.add(&counts),
                Err(error) if first_error.as_ref().is_none_or(|first| error.0 < first.0) => first_error = Some(error),
                Err(_) => {}
            }
        }
        match first_error {
            Some((_, error)) => Err(error),
            None => fed.map(|()| text_counts),
        }
    }

    /// Counts blocks of the queue until it is closed. An error comes with the number of its block and cancels the
    /// others.
    fn count_queue(
        &self,
        table: &mut WordCountTable,
        queue: BlockQueue,
        cancellation: &Cancellation,
    ) -> std::result::Result<TextCounts, (u64, Error)> {
        let mut counter = BlockCounter::new(self, table);
        loop {
            // The lock is released at the end of this statement, before the block is counted.
            let next = queue.full.lock().expect("no thread panics while it holds the lock").recv();
            let Ok((number, block)) = next else { return Ok(counter.text_counts) };
            if let Err(error) = counter.count_block(&block) {
                cancellation.cancel();
                return Err((number, error));
            }
            // This fails if the calling thread has stopped reading; then the block is not needed any more.
            let _ = queue.empty.send(block);
        }
    }
}

/// Counts blocks on one thread.
struct BlockCounter<'a> {
    context: &'a CountContext,
    table: &'a mut WordCountTable,
    text_counts: TextCounts,
    /// Scratch buffers of the fast path and of the general pipeline.
    space: WordBuffer,
    normalized: Normalized,
    words: Vec<Range<usize>>,
}

impl<'a> BlockCounter<'a> {
    fn new(context: &'a CountContext, table: &'a mut WordCountTable) -> BlockCounter<'a> {
        let (space, normalized) = (WordBuffer::default(), Normalized::default());
        BlockCounter { context, table, text_counts: TextCounts::default(), space, normalized, words: Vec::new() }
    }

    /// Decodes a block and counts its words.
    fn count_block(&mut self, block: &ByteBlock) -> Result<()> {
        self.text_counts.texts += block.texts;
        self.text_counts.bytes += block.size;
        match (simdutf8::compat::from_utf8(&block.bytes), self.context.options.invalid_bytes) {
            (Ok(_), InvalidBytes::Refuse) if block.utf16 => {
                return Err(not_utf8(block, memchr::memchr(0, &block.bytes).unwrap_or(0)));
            }
            (_, InvalidBytes::SkipLine) if block.utf16 => self.text_counts.skipped += block.texts,
            (Ok(text), _) => self.count_text(text),
            (Err(error), InvalidBytes::Refuse) => return Err(not_utf8(block, error.valid_up_to())),
            (Err(_), InvalidBytes::Replace) => {
                self.text_counts.replaced +=
                    block.bytes.utf8_chunks().filter(|part| !part.invalid().is_empty()).count() as u64;
                let text: Cow<'_, str> = String::from_utf8_lossy(&block.bytes);
                self.count_text(&text);
            }
            (Err(_), InvalidBytes::SkipLine) => {
                for line in block.bytes.split_inclusive(|&byte| byte == b'\n') {
                    match std::str::from_utf8(line) {
                        Ok(line) => self.count_text(line),
                        Err(_) => self.text_counts.skipped += 1,
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts the words of a text in pieces of at most 4 KiB that end after white space. No word spans white space, and
    /// normalization does not look beyond it, so the division has no effect on the words.
    fn count_text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let is_white = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes.len() - at {
                rest if rest <= PIECE_BYTES => bytes.len(),
                _ => match bytes[at..at + PIECE_BYTES].iter().rposition(is_white) {
                    Some(last) => at + last + 1,
                    None => bytes[at..].iter().position(is_white).map_or(bytes.len(), |first| at + first + 1),
                },
            };
            self.count_piece(&text[at..end]);
            at = end;
        }
    }

    /// Counts the words of a piece, on the fast path if possible.
    fn count_piece(&mut self, text: &str) {
        if let Some(finder) = &self.context.finder
            && let Some(words) = finder.find(text, &mut self.space)
        {
            self.table.count(words);
            return;
        }
        self.context.options.normalizer.normalize(text, 0, false, &mut self.normalized);
        self.words.clear();
        self.words.push(0..self.normalized.text.len());
        PreTokenizer::Bert.split(&mut self.normalized, &mut self.words).expect("BERT's pre-tokenizer never fails");
        for word in &self.words {
            self.table.add(&self.normalized.text.as_bytes()[word.clone()], 1);
        }
    }
}

/// Returns the error for the byte at `at` of a block.
fn not_utf8(block: &ByteBlock, at: usize) -> Error {
    let lines = block.bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
    Error::Training(TrainingError::NotUtf8 {
        file: block.name.to_string(),
        line: block.line + lines + 1,
        offset: block.offset + at as u64,
        byte: block.bytes[at],
        utf16: block.utf16,
    })
}
