//! Grouping of sequences into tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::inputs::Sequence;

/// How many rows are computed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowsTogether {
    /// The most rows of a task, unless one sequence has more: enough that reading the weights costs little compared with
    /// using them, few enough that a task's activations stay in the second-level cache.
    task: usize,
    /// The rows that go through both halves of a feed-forward network at a time, so that what lies between stays in the
    /// cache.
    pub feed_forward: usize,
}

impl RowsTogether {
    /// Vectors use a weight for so long that reading it hardly counts.
    const BY_VECTORS: RowsTogether = RowsTogether { task: 192, feed_forward: 56 };

    /// Tile registers use weights faster than the third-level cache has them: what lies between may leave the cache rather
    /// than that all weights are read for each few rows.
    const BY_TILE_REGISTERS: RowsTogether = RowsTogether { task: 512, feed_forward: 512 };

    /// Returns those for weights of which tile registers multiply most, or vectors.
    pub fn of(by_tile_registers: bool) -> RowsTogether {
        if by_tile_registers { RowsTogether::BY_TILE_REGISTERS } else { RowsTogether::BY_VECTORS }
    }
}

/// Returns how many rows, which are tokens, the sequences of a task have.
pub(super) fn rows_of(task: &[Sequence<'_>]) -> usize {
    task.iter().map(|sequence| sequence.tokens.len()).sum()
}

/// Sequences in tasks.
pub(super) struct Tasks<'a> {
    /// The tasks of which the threads share each panel, one after the other.
    pub shared: Vec<Vec<Sequence<'a>>>,
    /// The tasks of which each is computed by one thread, the longest first.
    pub apart: Vec<Vec<Sequence<'a>>>,
}

impl<'a> Tasks<'a> {
    /// Divides sequences evenly among threads: each gets about four tasks, unless that leaves a task too few rows, and what
    /// is more than a quarter longer than the share of a thread is computed by all of them.
    pub fn new(sequences: Vec<Sequence<'a>>, threads: usize, together: RowsTogether) -> Tasks<'a> {
        let most = together.task;
        let is_too_long = |rows: usize, all: usize| threads > 1 && 4 * threads * rows > 5 * all;
        let all = rows_of(&sequences);
        let (mut shared, sequences): (Vec<_>, Vec<_>) =
            sequences.into_iter().partition(|sequence| is_too_long(sequence.tokens.len(), all));
        let mut left = rows_of(&sequences);
        let rows = if threads == 1 { most } else { left.div_ceil(4 * threads).clamp(most / 3, most) };
        let each = if rows < most { (left / (threads * rows)).max(1) } else { left.div_ceil(threads * rows).max(1) };
        let mut apart = in_even_groups(sequences, threads * each);
        apart.sort_by_key(|task| Reverse(rows_of(task)));
        while let Some(rows) = apart.first().map(|task| rows_of(task)).filter(|rows| is_too_long(*rows, left)) {
            shared.append(&mut apart.remove(0));
            left -= rows;
        }
        Tasks { shared: in_groups_of(shared, most), apart }
    }
}

/// Groups sequences into so many groups of about equal rows, or fewer: the longest first, each into the group with the fewest.
fn in_even_groups(mut sequences: Vec<Sequence<'_>>, count: usize) -> Vec<Vec<Sequence<'_>>> {
    sequences.sort_by_key(|sequence| Reverse(sequence.tokens.len()));
    let mut groups: Vec<Vec<Sequence<'_>>> = (0..count.min(sequences.len())).map(|_| Vec::new()).collect();
    let mut fewest: BinaryHeap<_> = (0..groups.len()).map(|group| Reverse((0, group))).collect();
    for sequence in sequences {
        let Reverse((rows, group)) = fewest.pop().expect("there are groups, as there are sequences");
        fewest.push(Reverse((rows + sequence.tokens.len(), group)));
        groups[group].push(sequence);
    }
    groups
}

/// Groups consecutive sequences into groups of at most so many rows, or one sequence.
fn in_groups_of<'a>(sequences: Vec<Sequence<'a>>, most: usize) -> Vec<Vec<Sequence<'a>>> {
    let mut groups: Vec<Vec<Sequence<'_>>> = Vec::new();
    let mut rows = usize::MAX;
    for sequence in sequences {
        if rows.saturating_add(sequence.tokens.len()) > most {
            groups.push(Vec::new());
            rows = 0;
        }
        rows += sequence.tokens.len();
        groups.last_mut().expect("the first sequence pushed a group").push(sequence);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of the sequences of each task.
    fn tasks(lengths: &[usize], threads: usize) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut start = 0;
        let sequences = lengths.iter().map(|length| {
            start += length;
            Sequence { tokens: start - length..start, keys: *length, ..Sequence::default() }
        });
        let Tasks { shared, apart } = Tasks::new(sequences.collect(), threads, RowsTogether::BY_VECTORS);
        let lengths = |tasks: Vec<Vec<Sequence<'_>>>| {
            tasks.iter().map(|task| task.iter().map(|sequence| sequence.tokens.len()).collect()).collect()
        };
        (lengths(shared), lengths(apart))
    }

    #[test]
    fn few_sequences_are_divided_evenly() {
        assert_eq!(tasks(&[17; 4], 2), (vec![], vec![vec![17; 2]; 2]));
        assert_eq!(tasks(&[17; 8], 2), (vec![], vec![vec![17; 4]; 2]));
        assert_eq!(tasks(&[17; 8], 1), (vec![], vec![vec![17; 8]]));
        assert_eq!(tasks(&[128; 2], 2), (vec![], vec![vec![128]; 2]));
    }

    #[test]
    fn sequences_of_several_lengths_are_divided_evenly() {
        let (shared, apart) = tasks(&[20, 29, 46, 15, 60, 31, 71, 18], 2);
        let mut rows: Vec<usize> = apart.iter().map(|task| task.iter().sum()).collect();
        rows.sort_unstable();
        assert_eq!((shared, rows), (vec![], vec![66, 71, 75, 78]));
    }

    #[test]
    fn what_cannot_be_divided_evenly_is_shared() {
        assert_eq!(tasks(&[128], 2), (vec![vec![128]], vec![]));
        assert_eq!(tasks(&[17; 3], 2), (vec![vec![17; 3]], vec![]));
        assert_eq!(tasks(&[512, 40, 40], 2), (vec![vec![512]], vec![vec![40]; 2]));
        assert_eq!(tasks(&[300, 200, 10], 16), (vec![vec![300], vec![200], vec![10]], vec![]));
    }

    #[test]
    fn tasks_of_many_sequences_have_few_enough_rows_and_are_as_many_for_each_thread() {
        for threads in [1, 2, 3, 8] {
            let (shared, apart) = tasks(&[20; 1000], threads);
            assert!(shared.is_empty() && apart.len().is_multiple_of(threads));
            assert!(apart.iter().all(|task| (64..=200).contains(&(20 * task.len()))));
        }
    }

    #[test]
    fn every_sequence_is_in_one_task() {
        for threads in 1..5 {
            for lengths in [vec![], vec![0], vec![1], vec![0, 0, 5], vec![9, 300, 1, 1, 40, 700, 2], vec![64; 33]] {
                let (shared, apart) = tasks(&lengths, threads);
                let mut found: Vec<usize> = shared.into_iter().chain(apart).flatten().collect();
                let mut expected = lengths;
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }
}
