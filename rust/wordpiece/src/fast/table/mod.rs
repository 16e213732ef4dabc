//! The word table: the ids of a word in one memory access.
//!
//! A word is a key of 16 bytes ([`WordKey`](super::key::WordKey)). Two keys and their values fill a cache line
//! ([`TableLine`](super::line::TableLine)), so a lookup reads one line, compares two keys and has up to three ids. All
//! complete words of the vocabulary are in the table from the start, so the first pass over a text already hits; words
//! of several pieces are added when they first occur.
//!
//! A word whose own line is full is put into the adjacent line or into one of two further lines, and its own line
//! records that. The table doubles when half of its slots are taken, up to a limit ([`store::MAX_BYTES`]); from then on
//! new words replace old ones. Forgetting a word costs time, never correctness: it is matched again.
//!
//! [`store`] holds the table and everything that changes it; [`look_up`] the loop that reads it.

pub(super) mod look_up;
pub(super) mod store;
