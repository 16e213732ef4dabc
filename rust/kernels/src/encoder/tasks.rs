//! Grouping of sequences into tasks.

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

/// Groups consecutive sequences into tasks for `threads` threads.
///
/// Each thread gets about four tasks, which evens out their loads, unless that leaves a task too few rows.
pub(super) fn group_into_tasks<'a>(
    sequences: Vec<Sequence<'a>>,
    threads: usize,
    together: RowsTogether,
) -> Vec<Vec<Sequence<'a>>> {
    let most = together.task;
    let task_rows = rows_of(&sequences).div_ceil(4 * threads).clamp(most / 3, most);
    let mut tasks: Vec<Vec<Sequence<'a>>> = Vec::new();
    let mut size = usize::MAX;
    for sequence in sequences {
        if size.saturating_add(sequence.tokens.len()) > task_rows {
            tasks.push(Vec::new());
            size = 0;
        }
        size += sequence.tokens.len();
        tasks.last_mut().expect("the first sequence pushed a task").push(sequence);
    }
    tasks
}
