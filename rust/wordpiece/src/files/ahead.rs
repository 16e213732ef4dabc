//! Reading on a thread of its own, so that nobody waits for a disk or for decompression.

use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::block::Block;
use super::reader::TextReader;
use crate::error::{Error, Result};

/// Blocks that wait to be taken; one more is being filled meanwhile.
const WAITING: usize = 1;

/// A [`TextReader`] at work on a thread of its own, which ends with this.
#[derive(Debug)]
pub struct ReadAhead {
    blocks: Receiver<Result<Option<Block>>>,
    process: u32,
    done: bool,
}

/// What came of waiting for a block.
#[derive(Debug)]
pub enum Next {
    /// A block.
    Block(Block),
    /// There are no more texts.
    Done,
    /// Not yet: whoever waits may look after other things and ask again.
    NotYet,
}

impl ReadAhead {
    /// Starts the thread.
    pub fn start(mut reader: TextReader) -> Result<ReadAhead> {
        let (sender, blocks) = sync_channel(WAITING);
        let work = move || {
            loop {
                let mut block = Block::default();
                let next = reader.next_block(&mut block).map(|more| more.then_some(block));
                let last = !matches!(next, Ok(Some(_)));
                // Nobody listens any more: that is how the thread is told to end.
                if sender.send(next).is_err() || last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("wordpiece-files".to_owned()).spawn(work);
        thread.map_err(|error| Error::NoThread { message: error.to_string() })?;
        Ok(ReadAhead { blocks, process: process::id(), done: false })
    }

    /// Waits a while for the next block. After the last one and after an error it is done.
    ///
    /// # Panics
    ///
    /// When the reading thread has panicked.
    pub fn next(&mut self, wait: Duration) -> Result<Next> {
        if self.done {
            return Ok(Next::Done);
        }
        if self.process != process::id() {
            // The thread stayed with the parent; waiting for it would never end.
            self.done = true;
            return Err(Error::NoThread { message: "this reader belongs to the process before the fork".to_owned() });
        }
        let next = match self.blocks.recv_timeout(wait) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => return Ok(Next::NotYet),
            Err(RecvTimeoutError::Disconnected) => panic!("the thread that reads files has panicked"),
        };
        self.done = !matches!(next, Ok(Some(_)));
        Ok(next?.map_or(Next::Done, Next::Block))
    }
}
