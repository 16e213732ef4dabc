//! Which parts of a text the windows show.

use std::ops::Range;

use super::truncate::Side;

/// The windows of `length` tokens into `target` each, neighbours sharing `stride`; the first is the one that is kept.
///
/// From the right side they run forward; from the left they run backward from the end. A text that fits has one window,
/// and where nothing may stay the text itself is the second.
#[allow(clippy::single_range_in_vec_init, reason = "one window, not its positions")]
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
        // `at` counts from the side where the text stays.
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
