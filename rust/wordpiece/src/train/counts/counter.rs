//! Texts → counts: blocks are handed to threads, each with a table of its own, and the tables are added up.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use super::super::{Progress, Stage, Watch};
use super::WordCounts;
use super::blocks::{Block, Blocks};
use super::table::Table;
use crate::error::{Error, Result, TrainingError};
use crate::fast::InstructionSet;
use crate::fast::words::{Space, WordFinder};
use crate::normalize::{BertNormalizer, Normalized};
use crate::split::PreTokenizer;

/// Bytes normalized at a time: what comes out stays in the cache nearest to the core.
const PIECE: usize = 4096;

/// Bytes of text between two looks at the bound on distinct words. The outcome depends on it, so it is fixed.
const CHUNK: u64 = 64 << 20;

/// What happens to bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadBytes {
    /// They are an error.
    #[default]
    Refuse,
    /// Each longest part that is wrong becomes U+FFFD, which cleaning then removes.
    Replace,
    /// The line in which they stand is left out.
    Skip,
}

/// How words are counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOptions {
    /// What is done to a text before it is split into words, which is done as BERT does.
    pub normalizer: BertNormalizer,
    /// What happens to bytes that are not UTF-8.
    pub bad_bytes: BadBytes,
    /// When more distinct words than this are known at the end of 64 MiB of text, the rarest are dropped until half as
    /// many are left.
    pub max_distinct_words: Option<usize>,
    /// Threads to count on; 0 is taken as 1. The answer does not depend on it.
    pub threads: usize,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The words.
    pub words: WordCounts,
    /// Texts read: lines of files, or items.
    pub texts: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Parts that were not UTF-8 and were replaced.
    pub replaced: u64,
    /// Lines that were not UTF-8 and were skipped.
    pub skipped: u64,
    /// Words dropped because there were too many distinct ones; a word that came back and was dropped again counts twice.
    pub dropped: u64,
    /// By how much the count of a word can be too small, at most, because it was dropped before.
    pub undercount: u64,
}

/// Counts the words of all blocks.
///
/// # Errors
///
/// What reading says, text that is not UTF-8 where that is refused, or [`TrainingError::Interrupted`].
pub fn count(
    blocks: &mut dyn Blocks,
    options: &CountOptions,
    observer: &mut dyn FnMut(Progress) -> bool,
) -> Result<Counted> {
    let mut watch = Watch::new(observer);
    watch.begin(Stage::Counting, blocks.progress().map(|(_, total)| total))?;
    let shared = Shared { options: *options, finder: WordFinder::new(options.normalizer, InstructionSet::detect()) };
    let mut tables: Vec<Table> = (0..options.threads.max(1)).map(|_| Table::default()).collect();
    let mut all = Table::default();
    let mut counted = Counted::default();
    loop {
        let (length, tally) = shared.chunk(blocks, &mut tables, &mut watch, counted.bytes)?;
        counted.texts += tally.texts;
        counted.replaced += tally.replaced;
        counted.skipped += tally.skipped;
        counted.bytes += tally.bytes;
        if all.len() == 0 {
            std::mem::swap(&mut all, &mut tables[0]);
        }
        for table in &mut tables {
            all.merge(table);
            // A table is as large as the words of a chunk need, and so it stays.
            table.clear();
            watch.pause()?;
        }
        if let Some(most) = options.max_distinct_words
            && all.len() > most
        {
            let (count, words) = all.drop_rarest(most / 2);
            counted.undercount += count;
            counted.dropped += words as u64;
        }
        if length < CHUNK {
            drop(tables);
            counted.words = all.into_counts();
            return Ok(counted);
        }
    }
}

/// What was met besides words.
#[derive(Debug, Default)]
struct Tally {
    texts: u64,
    bytes: u64,
    replaced: u64,
    skipped: u64,
}

/// What all threads read.
struct Shared {
    options: CountOptions,
    /// The fast way, for the options that it knows.
    finder: Option<WordFinder>,
}

/// Blocks in numbered order, to a thread and back again when they are empty.
#[derive(Clone)]
struct Queue {
    /// Owned by the threads alone: when the last of them ends, nothing can be sent any more.
    full: Arc<Mutex<Receiver<(u64, Block)>>>,
    empty: Sender<Block>,
}

impl Shared {
    /// Counts blocks until there are none or a chunk is full; returns its length.
    fn chunk(
        &self,
        blocks: &mut dyn Blocks,
        tables: &mut [Table],
        watch: &mut Watch<'_>,
        before: u64,
    ) -> Result<(u64, Tally)> {
        let lines_may_break = self.options.bad_bytes != BadBytes::Skip;
        let (mut length, mut read) = (0, 0);
        if let [table] = tables {
            let mut worker = Worker::new(self, table);
            let mut block = Block::default();
            while length < CHUNK && blocks.next(&mut block, lines_may_break, &mut || watch.look())? {
                length += block.bytes.len() as u64;
                read += block.size;
                worker.block(&block)?;
                watch.done(blocks.progress().map_or(before + read, |(done, _)| done));
                watch.pause()?;
            }
            return Ok((length, worker.tally));
        }
        let (to_threads, full) = sync_channel::<(u64, Block)>(tables.len());
        let (empty, from_threads) = channel();
        let queue = Queue { full: Arc::new(Mutex::new(full)), empty };
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let start = |table| {
                let (queue, failed) = (queue.clone(), &failed);
                scope.spawn(move || self.work(table, queue, failed))
            };
            let threads: Vec<_> = tables.iter_mut().map(start).collect();
            drop(queue);
            let mut given = 0u64;
            let mut fed = || -> Result<()> {
                while length < CHUNK && !failed.load(Ordering::Relaxed) {
                    let mut block: Block = from_threads.try_recv().unwrap_or_default();
                    if !blocks.next(&mut block, lines_may_break, &mut || watch.look())? {
                        break;
                    }
                    length += block.bytes.len() as u64;
                    read += block.size;
                    // It is refused when all threads have ended, each with an error.
                    if to_threads.send((given, block)).is_err() {
                        break;
                    }
                    given += 1;
                    watch.done(blocks.progress().map_or(before + read, |(done, _)| done));
                    watch.pause()?;
                }
                Ok(())
            };
            let fed = fed();
            drop(to_threads);
            let mut tally = Tally::default();
            let mut first: Option<(u64, Error)> = None;
            for thread in threads {
                match thread.join() {
                    Ok((one, None)) => {
                        tally.texts += one.texts;
                        tally.bytes += one.bytes;
                        tally.replaced += one.replaced;
                        tally.skipped += one.skipped;
                    }
                    Ok((_, Some(error))) => {
                        if first.as_ref().is_none_or(|known| error.0 < known.0) {
                            first = Some(error);
                        }
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            // What stands first in the text is told, whichever thread met it.
            match first {
                Some((_, error)) => Err(error),
                None => fed.map(|()| (length, tally)),
            }
        })
    }

    /// What a thread does; stops at an error, which it returns with the number of the block.
    fn work(&self, table: &mut Table, queue: Queue, failed: &AtomicBool) -> (Tally, Option<(u64, Error)>) {
        let mut worker = Worker::new(self, table);
        loop {
            // Not held while a block is counted: the guard is gone at the end of this line.
            let next = queue.full.lock().expect("no thread panics while it waits").recv();
            let Ok((number, block)) = next else { return (worker.tally, None) };
            if let Err(error) = worker.block(&block) {
                failed.store(true, Ordering::Relaxed);
                return (worker.tally, Some((number, error)));
            }
            // Nobody may want it any more.
            let _ = queue.empty.send(block);
        }
    }
}

/// A thread at work.
struct Worker<'a> {
    shared: &'a Shared,
    table: &'a mut Table,
    tally: Tally,
    space: Space,
    normalized: Normalized,
    words: Vec<Range<usize>>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared, table: &'a mut Table) -> Worker<'a> {
        let (space, normalized) = (Space::default(), Normalized::default());
        Worker { shared, table, tally: Tally::default(), space, normalized, words: Vec::new() }
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        self.tally.texts += block.texts;
        self.tally.bytes += block.size;
        match (simdutf8::compat::from_utf8(&block.bytes), self.shared.options.bad_bytes) {
            (Ok(text), _) => self.text(text),
            (Err(error), BadBytes::Refuse) => return Err(not_utf8(block, error.valid_up_to())),
            (Err(_), BadBytes::Replace) => {
                self.tally.replaced +=
                    block.bytes.utf8_chunks().filter(|part| !part.invalid().is_empty()).count() as u64;
                let text: Cow<'_, str> = String::from_utf8_lossy(&block.bytes);
                self.text(&text);
            }
            (Err(_), BadBytes::Skip) => {
                for line in block.bytes.split_inclusive(|&byte| byte == b'\n') {
                    match std::str::from_utf8(line) {
                        Ok(line) => self.text(line),
                        Err(_) => self.tally.skipped += 1,
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts the words of a text, cut where white space is: no word crosses it, and no character looks beyond it.
    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let white = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes.len() - at {
                rest if rest <= PIECE => bytes.len(),
                _ => match bytes[at..at + PIECE].iter().rposition(white) {
                    Some(last) => at + last + 1,
                    None => bytes[at..].iter().position(white).map_or(bytes.len(), |first| at + first + 1),
                },
            };
            self.piece(&text[at..end]);
            at = end;
        }
    }

    fn piece(&mut self, text: &str) {
        if let Some(finder) = &self.shared.finder
            && let Some(words) = finder.find(text, &mut self.space)
        {
            self.table.count(words);
            return;
        }
        self.shared.options.normalizer.normalize(text, 0, false, &mut self.normalized);
        self.words.clear();
        self.words.push(0..self.normalized.text.len());
        PreTokenizer::Bert.split(&mut self.normalized, &mut self.words).expect("BERT's splitter refuses nothing");
        for word in &self.words {
            self.table.add(&self.normalized.text.as_bytes()[word.clone()], 1);
        }
    }
}

fn not_utf8(block: &Block, at: usize) -> Error {
    let lines = block.bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
    Error::Training(TrainingError::NotUtf8 {
        file: block.name.to_string(),
        line: block.line + lines + 1,
        offset: block.offset + at as u64,
        byte: block.bytes[at],
        utf16: block.utf16,
    })
}
