//! Space for the steps, kept from text to text and lent to one thread at a time.

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::added::Segment;
use crate::fast;
use crate::inputs::pieces::Pieces;
use crate::matcher::WordPieces;
use crate::normalize::Normalized;

/// Everything that the steps write to on the way.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub raw_segments: Vec<Segment>,
    pub normalized_segments: Vec<Segment>,
    pub normalized: Normalized,
    pub words: Vec<Range<usize>>,
    pub word_pieces: WordPieces,
    pub first: Pieces,
    pub second: Pieces,
    /// What the fast path remembers; made when a text first needs it.
    pub memory: Option<Box<fast::Memory>>,
}

/// Scratch spaces that wait: as many as threads were ever busy at once, up to the number of places.
///
/// A place is a pointer that is swapped out and in; no lock is ever held, so a process that forks at any moment leaves
/// its child nothing locked.
#[derive(Debug)]
pub(crate) struct Pool {
    places: [AtomicPtr<Scratch>; 64],
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { places: [const { AtomicPtr::new(std::ptr::null_mut()) }; 64] }
    }
}

/// A tokenizer that is copied begins with nothing remembered.
impl Clone for Pool {
    fn clone(&self) -> Pool {
        Pool::default()
    }
}

impl Pool {
    /// Lends a scratch space, a new one where none waits.
    pub fn lend(&self) -> Lent<'_> {
        let waiting = self.places.iter().find_map(|place| {
            // A look first: swapping writes to the cache line, and most places are empty.
            if place.load(Ordering::Relaxed).is_null() {
                return None;
            }
            let taken = place.swap(std::ptr::null_mut(), Ordering::Acquire);
            // SAFETY: pointers in places come from `Box::into_raw` in `drop`; the swap made this one ours alone.
            (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) })
        });
        Lent { scratch: Some(waiting.unwrap_or_default()), pool: self }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for place in &mut self.places {
            let waiting = std::mem::replace(place.get_mut(), std::ptr::null_mut());
            if !waiting.is_null() {
                // SAFETY: as in `lend`; nobody else can see the pool any more.
                drop(unsafe { Box::from_raw(waiting) });
            }
        }
    }
}

/// A scratch space on loan.
pub(crate) struct Lent<'a> {
    scratch: Option<Box<Scratch>>,
    pool: &'a Pool,
}

impl Deref for Lent<'_> {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        self.scratch.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Scratch {
        self.scratch.as_mut().expect("there until it is dropped")
    }
}

/// A scratch space that grew beyond this many bytes with one huge text starts anew.
const KEPT_BYTES: usize = 1 << 22;

impl Scratch {
    fn shrink(&mut self) {
        let bytes = self.normalized.text.capacity()
            + 8 * self.normalized.spans.capacity()
            + 16 * self.words.capacity()
            + self.first.capacity_bytes()
            + self.second.capacity_bytes();
        if bytes > KEPT_BYTES {
            *self = Scratch { memory: self.memory.take(), ..Scratch::default() };
        }
        if let Some(memory) = &mut self.memory {
            memory.shrink(KEPT_BYTES);
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // A panic may have left it half written.
        let Some(mut scratch) = self.scratch.take().filter(|_| !std::thread::panicking()) else { return };
        scratch.shrink();
        let waiting = Box::into_raw(scratch);
        for place in &self.pool.places {
            let empty = std::ptr::null_mut();
            if place.compare_exchange(empty, waiting, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: it was put nowhere.
        drop(unsafe { Box::from_raw(waiting) });
    }
}
