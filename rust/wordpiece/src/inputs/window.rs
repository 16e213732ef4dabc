//! Windows: the ranges of a truncated text that the kept row and its overflow contain.

use std::ops::Range;

use super::truncate::Side;

/// Divides `length` tokens into windows of `target` tokens of which adjacent ones share `stride`; the kept one is
/// first.
///
/// Truncation on the right starts at the beginning of the text and moves forward, truncation on the left starts at the
/// end and moves backward; the last window can be shorter. A text that fits has one window. If nothing may remain
/// (`target` 0), the kept window is empty and the second one is the entire text, as in the reference.
///
/// `stride` must be less than `target` unless the text fits or `target` is 0.
#[allow(clippy::single_range_in_vec_init, reason = "a list with one range is meant, not the numbers in the range")]
pub(crate) fn windows(length: usize, target: usize, stride: usize, side: Side) -> Vec<Range<usize>> {
    if target >= length {
        return vec![0..length];
    }
    if target == 0 {
        return vec![0..0, 0..length];
    }
    let step = target - stride;
    let mut windows = Vec::with_capacity(length / step + 1);
    let mut at = 0;
    loop {
        // `at` counts from the side that is kept.
        let window = match side {
            Side::Right => at..length.min(at + target),
            Side::Left => (length - at).saturating_sub(target)..length - at,
        };
        let last = match side {
            Side::Right => window.end == length,
            Side::Left => window.start == 0,
        };
        windows.push(window);
        if last {
            return windows;
        }
        at += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_share_the_stride_and_end_at_the_edge() {
        assert_eq!(windows(5, 3, 1, Side::Right), [0..3, 2..5]);
        assert_eq!(windows(6, 4, 1, Side::Left), [2..6, 0..3]);
        assert_eq!(windows(5, 2, 0, Side::Left), [3..5, 1..3, 0..1]);
        assert_eq!(windows(5, 5, 4, Side::Right), [0..5; 1]);
        assert_eq!(windows(3, 0, 0, Side::Right), [0..0, 0..3]);
        assert_eq!(windows(0, 0, 0, Side::Right), [0..0; 1]);
    }
}
