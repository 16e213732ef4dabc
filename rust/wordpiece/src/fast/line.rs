//! Lines of the word table: two keys and their values in one cache line of 64 bytes.
//!
//! The layout is fixed (`repr(C)`), because [`Primitives::find`](super::primitives::Primitives::find) returns the
//! distance of a value from the start of its line, which the lookup loop adds to a pointer.

use super::key::{LINE_BYTES, WordKey};

/// Number of ids that a value holds itself.
pub(super) const INLINE_IDS: usize = 3;

/// The ids of a word, or where they are stored.
///
/// All 16 bytes are initialised data, so a lookup may copy a complete value into the output as four numbers and keep
/// the first `count` of them.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct LineValue {
    /// The ids; if `count` is [`STORED`]: the position of the entry in the store, the number of its ids, and the number
    /// of bytes of its word there (0 if the key holds the word).
    pub ids: [u32; INLINE_IDS],
    /// Number of ids, 1 to 3; 0 if the slot is free; [`STORED`] if the ids are in the store.
    pub count: u8,
    /// Only used in the first value of a line: bit `i` is set if a word that belongs to this line was put into the line
    /// of step `i` of `WordTable::lines_of`.
    pub elsewhere: u8,
    /// Keeps the size at 16 bytes without padding.
    pub unused: u16,
}

/// The `count` of a value whose ids, or whose word, do not fit into the line.
pub(super) const STORED: u8 = u8::MAX;

/// The key of a slot that no word occupies: a zero byte followed by another byte is the key of no word.
pub(super) const FREE_KEY: WordKey = WordKey { low: 0, high: 1 };

/// The value of a slot that no word occupies.
pub(super) const FREE_VALUE: LineValue = LineValue { ids: [0; INLINE_IDS], count: 0, elsewhere: 0, unused: 0 };

/// A cache line of the table: two slots for words.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct TableLine {
    /// The keys of its two slots; [`FREE_KEY`] in a free one.
    pub keys: [WordKey; 2],
    /// Their values, in the same order.
    pub values: [LineValue; 2],
}

impl TableLine {
    /// A line with two free slots.
    pub const EMPTY: TableLine = TableLine { keys: [FREE_KEY; 2], values: [FREE_VALUE; 2] };

    /// Puts a word into the first free slot; there must be one.
    pub fn push(&mut self, key: WordKey, value: LineValue) {
        let i = usize::from(self.values[0].count != 0);
        debug_assert!(self.values[i].count == 0);
        (self.keys[i], self.values[i]) = (key, LineValue { elsewhere: 0, ..value });
    }
}

/// Distance of the first value from the start of its line, in bytes.
pub(super) const VALUES_OFFSET: usize = std::mem::offset_of!(TableLine, values);

const _: () = assert!(size_of::<TableLine>() as u64 == LINE_BYTES);
const _: () = assert!(size_of::<LineValue>() == 16);
