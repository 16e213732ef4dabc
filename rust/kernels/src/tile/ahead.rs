//! Memory that is read soon, requested while a tile is computed.
//!
//! Models are larger than the caches, so each panel of weights comes from memory. A CPU that reads it when the first tile
//! needs it waits at every page, because it detects regular accesses within a page only. So the tiles of one panel request
//! the next one, a little with each row of weights: in bursts between tiles, the requests would wait for each other.

use std::ops::Range;

use wordpiece_parallel::prefetch;

use super::meanwhile::Meanwhile;

/// How many bytes a request loads.
const LINE: usize = 64;

/// Memory that is read soon. Copies do not share how much of it was requested.
#[derive(Clone, Copy)]
pub struct Ahead {
    next: *const u8,
    lines: usize,
}

impl Ahead {
    /// No memory.
    pub const NOTHING: Ahead = Ahead { next: std::ptr::null(), lines: 0 };

    /// Returns the memory of a slice.
    pub fn of<R>(memory: &[R]) -> Ahead {
        Ahead { next: memory.as_ptr().cast(), lines: size_of_val(memory) / LINE }
    }

    /// Returns the part of it that is requested while rows `rows` of `all` rows are computed.
    #[inline(always)]
    pub(crate) fn part(self, rows: &Range<usize>, all: usize) -> Ahead {
        let first = self.lines * rows.start / all;
        let end = self.lines * rows.end / all;
        Ahead { next: self.next.wrapping_add(first * LINE), lines: end - first }
    }

    /// Requests the next line, if one is left.
    #[inline(always)]
    pub(super) fn request_line(&mut self) {
        if self.lines > 0 {
            prefetch(self.next);
            self.next = self.next.wrapping_add(LINE);
            self.lines -= 1;
        }
    }

    /// Requests as much memory as a row of a panel of float32 weights takes, or what is left.
    #[inline(always)]
    pub(super) fn request_row(&mut self) {
        self.request_line();
        self.request_line();
    }
}

impl Meanwhile for Ahead {
    #[inline(always)]
    fn do_part(&mut self, steps: usize) {
        for _ in 0..self.lines.div_ceil(steps) {
            self.request_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, LINE};
    use crate::tile::tiles;

    #[test]
    fn the_parts_of_all_tiles_are_the_whole_and_each_line_is_requested_once() {
        let memory = [0_u8; 100 * LINE];
        for rows in 1..40 {
            let mut next = memory.as_ptr();
            for tile in tiles(rows, 14) {
                let mut part = Ahead::of(&memory).part(&tile, rows);
                while part.lines > 0 {
                    assert_eq!(part.next, next);
                    part.request_line();
                    next = next.wrapping_add(LINE);
                }
                part.request_row();
                assert_eq!(part.next, next, "a request beyond the part");
            }
            assert_eq!(next, memory.as_ptr_range().end);
        }
    }
}
