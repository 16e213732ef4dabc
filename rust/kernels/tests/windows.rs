//! Attention with a window, on every instruction set and in both types of products, against attention to the keys that a
//! query sees, one query at a time, in float64.

mod common;

use common::{Random, matrix, numbers, wide};
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::attention::{
    AttentionInputs, AttentionScratch, AttentionWeights, RelativeBias, ScoreBias, attention,
};
use wordpiece_kernels::{Execution, Matrix, reference};
use wordpiece_parallel::testing::{instruction_sets, skips_exhaustive_test};
use wordpiece_parallel::thread_pool;

/// One sequence: its numbers, its positions, and how many rows may be attended to.
struct Case {
    qkv: [Vec<f32>; 3],
    bias: Vec<f32>,
    positions: Vec<u32>,
    keys: usize,
    heads: usize,
    size: usize,
    window: usize,
}

impl Case {
    fn new(heads: usize, size: usize, positions: Vec<u32>, keys: usize, window: usize) -> Case {
        let mut random = Random((positions.len() * 100 + size + window % 1000) as u64);
        let count = positions.len() * heads * size;
        let most = positions.iter().copied().max().unwrap_or(0) as usize;
        let bias = random.numbers(heads * (2 * most + 1));
        Case { qkv: [(); 3].map(|()| random.numbers(count)), bias, positions, keys, heads, size, window }
    }

    /// Returns the context of the rows in a range and, for all rows, the weights.
    fn run(
        &self,
        execution: Execution,
        bfloat16: bool,
        with_bias: bool,
        first: usize,
        last: usize,
        weights: Option<&mut [f32]>,
    ) -> Vec<f32> {
        let (hidden, rows) = (self.heads * self.size, self.positions.len());
        let [q, k, v] = self.qkv.each_ref().map(|x| matrix(x, rows, hidden));
        let length = self.length();
        // A row of queries is alone, but all keys are there: they must be the first rows of the inputs.
        let positions: Vec<u32> =
            self.positions[..self.keys].iter().chain(&self.positions[first..last]).copied().collect();
        let queries: Vec<f32> = self.qkv[0][..self.keys * hidden]
            .iter()
            .chain(&self.qkv[0][first * hidden..last * hidden])
            .copied()
            .collect();
        let alone = first > 0 || last < rows;
        let query = matrix(&queries, positions.len(), hidden);
        let bias = RelativeBias { bias: &self.bias, max_distance: length - 1 };
        let inputs = AttentionInputs {
            queries: if alone { query.view() } else { q.view() },
            keys: k.view().rows(0..self.keys),
            values: v.view().rows(0..self.keys),
            heads: self.heads,
            size: self.size,
            positions: if alone { &positions } else { &self.positions },
            window: Some(self.window),
            relative_bias: with_bias.then_some(ScoreBias::Distances(bias)),
            relative_scores: None,
            bfloat16,
        };
        let all = inputs.queries.len();
        let mut out = Matrix::default();
        let to = weights.map(|to| AttentionWeights { to, length });
        attention(execution, inputs, &mut AttentionScratch::default(), out.reshape(all, hidden).view_mut(), to);
        let context = numbers(&out, all, hidden);
        if alone { context[self.keys * hidden..].to_vec() } else { context }
    }

    fn length(&self) -> usize {
        self.positions.iter().copied().max().unwrap_or(0) as usize + 1
    }

    /// Returns what the definition gives for each row of each head: it attends to the keys in its window.
    fn expected(&self, with_bias: bool) -> Vec<ExpectedRow> {
        let length = self.length() as i64;
        let window = self.window.min(1 << 40) as i64;
        let mut rows = Vec::new();
        for head in 0..self.heads {
            let part = |x: &[f32], row: usize| wide(self.part(x, head, row));
            for (row, position) in self.positions.iter().enumerate() {
                let distance = |key: usize| i64::from(self.positions[key]) - i64::from(*position);
                let seen: Vec<usize> = (0..self.keys).filter(|key| distance(*key).abs() <= window).collect();
                let of_keys = |x: &[f32]| -> Vec<f64> { seen.iter().flat_map(|key| part(x, *key)).collect() };
                let bias = |_: usize, key: usize| {
                    let index = length - 1 + distance(seen[key]) + head as i64 * (2 * length - 1);
                    if with_bias { f64::from(self.bias[index as usize]) } else { 0.0 }
                };
                let (q, k, v) = (part(&self.qkv[0], row), of_keys(&self.qkv[1]), of_keys(&self.qkv[2]));
                let (context, weights) = reference::attention(&q, &k, &v, self.size, bias);
                let context = if seen.is_empty() { vec![0.0; self.size] } else { context };
                rows.push(ExpectedRow { seen, context, weights });
            }
        }
        rows
    }

    /// Compares context and weights with those expected.
    fn check(&self, context: &[f32], weights: &[f32], expected: &[ExpectedRow], tolerance: f64) {
        let (rows, length) = (self.positions.len(), self.length());
        for (i, expected) in expected.iter().enumerate() {
            let (head, row) = (i / rows, i % rows);
            for (found, expected) in self.part(context, head, row).iter().zip(&expected.context) {
                assert!((f64::from(*found) - expected).abs() <= tolerance, "row {row}: {found}, not {expected}");
            }
            let of_row = &weights[(head * length + self.positions[row] as usize) * length..][..length];
            let total: f64 = of_row.iter().map(|x| f64::from(*x)).sum();
            let mut found = 0.0;
            for (key, p) in expected.seen.iter().zip(&expected.weights) {
                let weight = f64::from(of_row[self.positions[*key] as usize]);
                assert!((weight - p).abs() <= tolerance, "row {row}, key {key}: {weight}, not {p}");
                found += weight;
            }
            assert!((total - found).abs() < 1e-9, "row {row}: 0 beyond the window");
        }
    }

    /// The numbers of one head in one row.
    fn part<'a>(&self, x: &'a [f32], head: usize, row: usize) -> &'a [f32] {
        &x[row * self.heads * self.size + head * self.size..][..self.size]
    }
}

/// What a row of one head must be: the keys that it attends to, the context, and the weights of those keys.
struct ExpectedRow {
    seen: Vec<usize>,
    context: Vec<f64>,
    weights: Vec<f64>,
}

/// Sequences with gaps and masked rows, and windows from one key to all of them.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let masked = |keys: usize, rows: usize, step: u32| -> Vec<u32> {
        // Keys at multiples of `step`, beginning after a stretch of masked positions; the others follow.
        let keys: Vec<u32> = (0..keys as u32).map(|i| 7 + i * step).collect();
        let others = (0..).filter(|i| !keys.contains(i)).take(rows - keys.len());
        keys.iter().copied().chain(others).collect()
    };
    let few = skips_exhaustive_test("windows of attention");
    let lengths: &[(usize, usize)] = match few {
        _ if cfg!(miri) => &[(3, 5)],
        true => &[(33, 70)],
        false => &[(1, 1), (3, 5), (40, 40), (33, 70), (150, 170)],
    };
    for (keys, rows) in lengths {
        for window in [0, 1, 4, 31, 32, 64, usize::MAX] {
            for (heads, size) in [(2, 32), (3, 8), (1, 64)] {
                cases.push(Case::new(heads, size, masked(*keys, *rows, 1 + (window % 2) as u32), *keys, window));
            }
        }
    }
    if !few {
        // Windows over more than one block of 512 keys.
        cases.push(Case::new(1, 32, masked(800, 810, 1), 800, 300));
        cases.push(Case::new(1, 32, masked(800, 810, 1), 800, 600));
    }
    cases
}

#[test]
fn a_query_attends_to_the_keys_of_its_window() {
    let pool = thread_pool(1).expect("the system starts threads");
    for case in cases() {
        let rows = case.positions.len();
        for with_bias in [false, true] {
            let expected = case.expected(with_bias);
            let sets = instruction_sets();
            for &set in &sets {
                for (bfloat16, tiles) in [(false, None), (true, None), (true, Some(TileUnit::Emulated))] {
                    // Emulated products take long, and are the same on all instruction sets.
                    if tiles.is_some() && (rows > 200 || Some(&set) != sets.last()) {
                        continue;
                    }
                    let execution = Execution { tiles, ..Execution::on_this_thread(set) };
                    let mut weights = vec![0.0; case.heads * case.length() * case.length()];
                    let context = case.run(execution, bfloat16, with_bias, 0, rows, Some(&mut weights));
                    case.check(&context, &weights, &expected, if bfloat16 { 0.03 } else { 2e-6 });
                    let shared = Execution { pool: Some(pool), ..execution };
                    assert_eq!(case.run(shared, bfloat16, with_bias, 0, rows, None), context, "{}", set.name());
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_beside_any_others() {
    for case in cases() {
        let (hidden, rows) = (case.heads * case.size, case.positions.len());
        for set in instruction_sets() {
            for bfloat16 in [false, true] {
                let execution = Execution::on_this_thread(set);
                let whole = case.run(execution, bfloat16, true, 0, rows, None);
                for (first, last) in [(0, 1), (rows / 2, rows / 2 + 1), (rows / 3, rows), (rows - 1, rows)] {
                    let part = case.run(execution, bfloat16, true, first, last, None);
                    assert_eq!(part, whole[first * hidden..last * hidden], "{}: rows {first} to {last}", set.name());
                }
            }
        }
    }
}
