//! Reading on a background thread, so that the caller does not wait for the disk or for decompression.

use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::reader::TextReader;
use super::text_block::TextBlock;
use crate::error::{Error, Result};

/// How many finished blocks may wait in the channel; one more is being filled meanwhile.
const READY_BLOCKS: usize = 1;

/// A [`TextReader`] that runs on a background thread.
///
/// Memory is bounded by three blocks: the one being filled, the one waiting, and the one the caller holds. Dropping the
/// value ends the thread as soon as it has finished its present block; the drop itself does not wait.
#[derive(Debug)]
pub struct ReadAhead {
    blocks: Receiver<Result<Option<TextBlock>>>,
    /// The process that started the thread: after a fork the thread exists in the parent only.
    process: u32,
    done: bool,
}

/// The result of waiting for a block.
#[derive(Debug)]
pub enum NextBlock {
    /// The next block.
    Ready(TextBlock),
    /// There are no more texts.
    Done,
    /// The time is up and no block is ready yet; the caller may check for signals and wait again.
    TimedOut,
}

impl ReadAhead {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// [`Error::NoThread`] if the operating system refuses to start a thread.
    pub fn start(mut reader: TextReader) -> Result<ReadAhead> {
        let (sender, blocks) = sync_channel(READY_BLOCKS);
        let work = move || {
            loop {
                let mut block = TextBlock::default();
                let next = reader.next_block(&mut block).map(|more| more.then_some(block));
                let last = !matches!(next, Ok(Some(_)));
                // Sending fails once the receiver has been dropped, which is the signal to stop.
                if sender.send(next).is_err() || last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("wordpiece-files".to_owned()).spawn(work);
        thread.map_err(|error| Error::NoThread { message: error.to_string() })?;
        Ok(ReadAhead { blocks, process: process::id(), done: false })
    }

    /// Waits at most `timeout` for the next block.
    ///
    /// After the last block and after an error, every further call returns [`NextBlock::Done`].
    ///
    /// # Errors
    ///
    /// The error of [`TextReader::next_block`], or [`Error::NoThread`] in a process forked after
    /// [`start`](ReadAhead::start).
    ///
    /// # Panics
    ///
    /// Panics if the background thread has panicked.
    pub fn next(&mut self, timeout: Duration) -> Result<NextBlock> {
        if self.done {
            return Ok(NextBlock::Done);
        }
        if self.process != process::id() {
            // The thread exists only in the parent; waiting for it would never end.
            self.done = true;
            return Err(Error::NoThread { message: "this reader belongs to the process before the fork".to_owned() });
        }
        let next = match self.blocks.recv_timeout(timeout) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => return Ok(NextBlock::TimedOut),
            Err(RecvTimeoutError::Disconnected) => panic!("the thread that reads files has panicked"),
        };
        self.done = !matches!(next, Ok(Some(_)));
        Ok(next?.map_or(NextBlock::Done, NextBlock::Ready))
    }
}
