//! Where rows begin and end in an array that has the rows of a batch one after the other.

use std::ops::Range;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error;

/// Returns the items of each row, by the array of where rows begin and the last one ends, int64 [rows + 1].
///
/// Buffers are allocated by these numbers, so they are compared with the `items` that there are before anything is.
///
/// # Errors
///
/// InputError if there are no numbers, one is less than the one before it, or the array does not have the items.
pub fn rows(name: &str, offsets: &PyReadonlyArray1<'_, i64>, items: usize) -> PyResult<Vec<Range<usize>>> {
    // Copied: another process may write to the memory of a file between a check and the use of what was checked.
    let numbers = offsets.as_slice()?.to_vec();
    let [first, .., last] = *numbers else {
        return match *numbers {
            [0] => Ok(Vec::new()),
            _ => Err(error::input(format!(
                "{name} has {} numbers; it begins with 0 and has one more for each row",
                numbers.len()
            ))),
        };
    };
    // If numbers are sorted, and the first and the last are places, all are places.
    if first < 0 || !numbers.is_sorted() || usize::try_from(last).is_ok_and(|last| last > items) {
        return Err(error::input(format!(
            "{name} runs from {first} to {last} for {items} items; it begins at 0 or later, never decreases and ends at \
             {items} at most"
        )));
    }
    Ok(numbers.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect())
}

/// Returns where rows begin and the last one ends.
pub fn ends(rows: &[Range<usize>]) -> Vec<usize> {
    let first = rows.first().map_or(0, |row| row.start);
    std::iter::once(first).chain(rows.iter().map(|row| row.end)).collect()
}

/// Returns how many tokens of a row may be attended to: what was asked for, within the row.
pub fn keys(asked: i64, tokens: usize) -> usize {
    usize::try_from(asked).unwrap_or(0).min(tokens)
}
