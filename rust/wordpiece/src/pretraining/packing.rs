//! Packs sequences into rows: longest first, each into the row with the least room that holds it.

use std::collections::BTreeSet;

/// Packs sequences of these lengths into rows of `room` tokens; returns the sequences of each row, in the order in which
/// they were placed.
///
/// Longest first; of equal lengths the one with the smaller number first. Each goes into an open row that has room for
/// it and fewer than `max_sequences`: the row with the least room, and of equal ones the one opened first. If there is
/// none, it goes into a new row. This is the longest-pack-first of Krell et al., "Efficient Sequence Packing without
/// Cross-contamination" (2021).
///
/// ```
/// use wordpiece::pretraining::pack;
///
/// assert_eq!(pack(&[5, 9, 3, 3, 8, 2, 10, 1, 4], 10, None), [vec![6], vec![1, 7], vec![4, 5], vec![0, 8], vec![2, 3]]);
/// ```
#[must_use]
pub fn pack(lengths: &[u32], room: usize, max_sequences: Option<usize>) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
    let most = max_sequences.unwrap_or(usize::MAX);
    let mut rows: Vec<Vec<usize>> = Vec::new();
    // The room that is left in open rows, each with its number.
    let mut open: BTreeSet<(usize, usize)> = BTreeSet::new();
    for sequence in order {
        let length = lengths[sequence] as usize;
        let found = open.range((length, 0)..).next().copied();
        let (left, row) = match found {
            Some(entry) => {
                open.remove(&entry);
                entry
            }
            None => {
                rows.push(Vec::new());
                (room, rows.len() - 1)
            }
        };
        rows[row].push(sequence);
        if rows[row].len() < most && left > length {
            open.insert((left - length, row));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::pack;

    #[test]
    fn a_limit_of_sequences_closes_rows() {
        let rows = pack(&[3; 7], 10, Some(2));
        assert_eq!(rows, [vec![0, 1], vec![2, 3], vec![4, 5], vec![6]]);
        assert!(pack(&[], 10, None).is_empty());
    }

    #[test]
    fn every_sequence_is_placed_once_and_rows_are_not_overfull() {
        let lengths: Vec<u32> = (0..500_u32).map(|i| 1 + i * 7919 % 64).collect();
        let rows = pack(&lengths, 64, None);
        let mut placed: Vec<usize> = rows.concat();
        placed.sort_unstable();
        assert!(placed.into_iter().eq(0..500));
        for row in &rows {
            assert!(row.iter().map(|&i| lengths[i]).sum::<u32>() <= 64);
        }
    }
}
