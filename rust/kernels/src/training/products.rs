//! The gradients of weights, dW = dYᵀ·X.
//!
//! In bfloat16, both factors are rounded and laid out in pairs of tokens, where a block needs them; sums are float32.
//!
//! The tokens of a batch lie in several parts, one for each task. A block of dW, up to 128 outputs by 384 inputs, is
//! computed by one thread, which adds the products of all parts, first to last: the division of the sums depends on the
//! batch only, so the bits do not depend on the number of threads.

use std::ops::Range;

use wordpiece_parallel::map_with;

use crate::arch::{self, Kernel, Simd};
use crate::execution::Execution;
use crate::matrix::{PANEL, PairRow, Row, View, panels};
use crate::rounding::round_pairs;
use crate::tile::{OuterTile, PairOuterTile, tiles};

/// Panels of outputs and of inputs of a block of dW: 200 kB of sums, which stay in the second-level cache.
const BLOCK: [usize; 2] = [4, 12];

/// The gradient of one weight.
pub struct WeightGradient<'a> {
    /// dY [rows, out] and X [rows, in] of each part; their padding columns are not used.
    pub parts: Vec<[View<'a>; 2]>,
    /// in, the number of columns of the weight.
    pub inputs: usize,
    /// dW [out, in], row by row.
    pub to: &'a mut [f32],
    /// Whether dW is added to `to`; otherwise it overwrites it.
    pub add: bool,
}

/// Computes the gradients of weights; the threads share their blocks. With `bf16`, both factors are rounded to bfloat16.
///
/// # Panics
///
/// If a part has fewer columns than the weight, or its factors differ in rows.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::{WeightGradient, weight_gradients};
/// use wordpiece_kernels::{Execution, InstructionSet, Matrix};
///
/// let (mut dy, mut x) = (Matrix::default(), Matrix::default());
/// dy.fill_rows(2, 1, &[1.0, 10.0]); // 2 tokens, 1 output
/// x.fill_rows(2, 2, &[1.0, 2.0, 3.0, 4.0]); // 2 tokens, 2 inputs
/// let mut dw = [0.0; 2];
/// let gradient = WeightGradient { parts: vec![[dy.view(), x.view()]], inputs: 2, to: &mut dw, add: false };
/// weight_gradients(Execution::on_this_thread(InstructionSet::detect()), vec![gradient], false);
/// assert_eq!(dw, [31.0, 42.0]);
/// ```
pub fn weight_gradients(execution: Execution, gradients: Vec<WeightGradient<'_>>, bf16: bool) {
    let mut parts = Vec::with_capacity(gradients.len());
    let mut targets = Vec::with_capacity(gradients.len());
    for WeightGradient { parts: own, inputs, to, add } in gradients {
        parts.push(own);
        targets.push((inputs, to, add));
    }
    let mut blocks = Vec::new();
    for (parts, (inputs, to, add)) in parts.iter().zip(targets) {
        blocks.extend(blocks_of(parts, inputs, to, add));
    }
    map_with(blocks, execution.pool, <(Vec<Row>, [Vec<PairRow>; 2])>::default, |(sums, pairs), block| {
        sums.clear();
        sums.resize(block.outputs.len() * block.inputs.len() * PANEL, Row::ZERO);
        if bf16 {
            arch::run(execution.instruction_set, SumOfPairProducts { block: &block, sums, pairs });
        } else {
            arch::run(execution.instruction_set, SumOfProducts { block: &block, sums });
        }
        block.write(sums);
    });
}

/// A block of dW.
struct Block<'a, 'p> {
    parts: &'p [[View<'a>; 2]],
    /// Panels of outputs.
    outputs: Range<usize>,
    /// Panels of inputs.
    inputs: Range<usize>,
    /// For each output, its columns of dW.
    to: Vec<&'a mut [f32]>,
    add: bool,
}

/// Divides dW into blocks.
fn blocks_of<'a, 'p>(parts: &'p [[View<'a>; 2]], inputs: usize, to: &'a mut [f32], add: bool) -> Vec<Block<'a, 'p>> {
    let outputs = to.len() / inputs.max(1);
    let mut blocks = Vec::new();
    for first in (0..panels(outputs)).step_by(BLOCK[0]) {
        for column in (0..panels(inputs)).step_by(BLOCK[1]) {
            let outputs = first..(first + BLOCK[0]).min(panels(outputs));
            let inputs = column..(column + BLOCK[1]).min(panels(inputs));
            blocks.push(Block { parts, outputs, inputs, to: Vec::new(), add });
        }
    }
    let blocks_of_row = panels(inputs).div_ceil(BLOCK[1]);
    for (output, row) in to.chunks_exact_mut(inputs.max(1)).enumerate() {
        let first = output / (BLOCK[0] * PANEL) * blocks_of_row;
        for (block, part) in blocks[first..].iter_mut().zip(row.chunks_mut(BLOCK[1] * PANEL)) {
            block.to.push(part);
        }
    }
    blocks
}

impl Block<'_, '_> {
    /// Writes the sums [panels of outputs, panels of inputs, 32 outputs] to their place.
    fn write(self, sums: &[Row]) {
        let width = self.inputs.len();
        for (output, to) in self.to.into_iter().enumerate() {
            for (panel, to) in to.chunks_mut(PANEL).enumerate() {
                let from = &sums[(output / PANEL * width + panel) * PANEL + output % PANEL].0;
                if self.add {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                } else {
                    to.copy_from_slice(&from[..to.len()]);
                }
            }
        }
    }
}

struct SumOfProducts<'a, 'b, 'p> {
    block: &'b Block<'a, 'p>,
    sums: &'b mut [Row],
}

impl Kernel for SumOfProducts<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Block { parts, outputs, inputs, .. } = self.block;
        for [dy, x] in *parts {
            let panels = outputs.clone().flat_map(|output| inputs.clone().map(move |input| (output, input)));
            for ((output, input), sums) in panels.zip(self.sums.chunks_exact_mut(PANEL)) {
                let (a, b) = (dy.panel(output), x.panel(input));
                for tile in tiles(PANEL, S::TILE_ROWS) {
                    simd.run_tile(OuterTile { a, first: tile.start, b, out: &mut sums[tile] });
                }
            }
        }
    }
}

struct SumOfPairProducts<'a, 'b, 'p> {
    block: &'b Block<'a, 'p>,
    sums: &'b mut [Row],
    /// Buffers for the panels of a part, of dY and of X.
    pairs: &'b mut [Vec<PairRow>; 2],
}

impl Kernel for SumOfPairProducts<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Block { parts, outputs, inputs, .. } = self.block;
        let [left, right] = self.pairs;
        for [dy, x] in *parts {
            let rows = dy.len().div_ceil(2);
            pair_tokens(simd, *dy, outputs.clone(), left);
            pair_tokens(simd, *x, inputs.clone(), right);
            let width = inputs.len();
            for (n, sums) in self.sums.chunks_exact_mut(PANEL).enumerate() {
                let a = &left[n / width * rows..][..rows];
                let b = &right[n % width * rows..][..rows];
                for tile in tiles(PANEL, S::TILE_ROWS) {
                    simd.run_pair_tile(PairOuterTile { a, first: tile.start, b, out: &mut sums[tile] });
                }
            }
        }
    }
}

/// Rounds panels of `x` to bfloat16, and joins the rows of each two tokens; an odd token is joined with zeros.
#[inline(always)]
fn pair_tokens<S: Simd>(simd: S, x: View<'_>, columns: Range<usize>, to: &mut Vec<PairRow>) {
    let rows = x.len().div_ceil(2);
    to.resize((columns.len() * rows).max(to.len()), PairRow([0; PANEL]));
    for (n, panel) in columns.enumerate() {
        round_pairs(simd, x.panel(panel), &mut to[n * rows..][..rows]);
    }
}

/// Adds the rows of each panel of `x` to a row of `sums`, first to last.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::add_column_sums;
/// use wordpiece_kernels::{Execution, InstructionSet, Matrix, pad_to_panels};
///
/// let mut x = Matrix::default();
/// x.fill_rows(2, 2, &[1.0, 2.0, 3.0, 4.0]);
/// let mut sums = pad_to_panels(&[100.0, 0.0]);
/// add_column_sums(Execution::on_this_thread(InstructionSet::detect()), x.view(), &mut sums);
/// assert_eq!(sums[0].0[..2], [104.0, 6.0]);
/// ```
pub fn add_column_sums(execution: Execution, x: View<'_>, sums: &mut [Row]) {
    arch::run(execution.instruction_set, ColumnSums { x, sums });
}

struct ColumnSums<'a> {
    x: View<'a>,
    sums: &'a mut [Row],
}

impl Kernel for ColumnSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (p, sum) in self.sums.iter_mut().enumerate() {
            for at in (0..PANEL).step_by(S::LANES) {
                let mut total = simd.splat(0.0);
                for row in self.x.panel(p) {
                    total = simd.add(total, simd.load(row, at));
                }
                simd.store(sum, at, simd.add(simd.load(sum, at), total));
            }
        }
    }
}
