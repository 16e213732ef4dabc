//! Grouping of sequences into tasks.

use super::inputs::Sequence;

/// The most rows of a task, unless one sequence has more: enough that reading the weights costs little compared with
/// using them, few enough that a task's activations stay in the second-level cache.
const TASK_ROWS: usize = 192;

/// Returns how many rows, which are tokens, the sequences of a task have.
pub(super) fn rows_of(task: &[Sequence<'_>]) -> usize {
    task.iter().map(|sequence| sequence.tokens.len()).sum()
}

/// Groups consecutive sequences into tasks for `threads` threads.
///
/// Each thread gets about four tasks, which evens out their loads, unless that leaves a task too few rows.
pub(super) fn group_into_tasks<'a>(sequences: Vec<Sequence<'a>>, threads: usize) -> Vec<Vec<Sequence<'a>>> {
    let task_rows = rows_of(&sequences).div_ceil(4 * threads).clamp(TASK_ROWS / 3, TASK_ROWS);
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
