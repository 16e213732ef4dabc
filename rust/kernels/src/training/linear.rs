//! The backward pass of a dense layer whose weight is not packed: the dense layer of a head.

use wordpiece_parallel::map_with;

use super::parameters::write;
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use crate::arch::{self, Kernel, MAX_TILE_ROWS, Simd};
use crate::execution::Execution;
use crate::matrix::{Matrix, PANEL, Row, View, panels};
use crate::tile::{Tile, tiles};

/// Panels of outputs whose weights are packed at a time, so that they stay in the cache: 512 outputs.
const PACKED_PANELS: usize = 16;

/// The gradients of y = x·Wᵀ + b, row by row.
pub struct LinearGradients<'a> {
    /// dx = dy·W [rows, in].
    pub x: &'a mut [f32],
    /// dW = dyᵀ·x [out, in].
    pub weight: &'a mut [f32],
    /// db = Σ dy `[out]`.
    pub bias: &'a mut [f32],
}

/// Computes the gradients of a dense layer, for the gradient `dy` [rows, out] of its result, its input `x` [rows, in] and its
/// weight [out, in].
///
/// # Panics
///
/// If the shapes do not agree.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::{LinearGradients, linear_backward};
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let (mut dx, mut dw, mut db) = ([0.0; 2], [0.0; 2], [0.0; 1]);
/// let to = LinearGradients { x: &mut dx, weight: &mut dw, bias: &mut db };
/// linear_backward(execution, &[10.0], &[1.0, 2.0], &[3.0, 4.0], to);
/// assert_eq!((dx, dw, db), ([30.0, 40.0], [10.0, 20.0], [10.0]));
/// ```
pub fn linear_backward(execution: Execution, dy: &[f32], x: &[f32], weight: &[f32], to: LinearGradients<'_>) {
    let outputs = to.bias.len();
    let inputs = weight.len() / outputs.max(1);
    let rows = dy.len() / outputs.max(1);
    assert!(weight.len() == outputs * inputs && to.weight.len() == weight.len());
    assert!(dy.len() == rows * outputs && x.len() == rows * inputs && to.x.len() == x.len());
    let (mut dy_by_panels, mut x_by_panels, mut dx) = (Matrix::default(), Matrix::default(), Matrix::default());
    dy_by_panels.fill_rows(rows, outputs, dy);
    x_by_panels.fill_rows(rows, inputs, x);
    let (dy, x) = (dy_by_panels.view(), x_by_panels.view());
    let parts = vec![[dy, x]];
    weight_gradients(execution, vec![WeightGradient { parts, inputs, to: to.weight, add: false }], false);
    let mut sums = vec![Row::ZERO; panels(outputs)];
    add_column_sums(execution, dy, &mut sums);
    write(&sums, to.bias, false);
    let each_panel = dx.reshape(rows, inputs).view_mut().each_panel();
    map_with(each_panel.into_iter().enumerate().collect(), execution.pool, Vec::new, |packed, (panel, out)| {
        arch::run(execution.instruction_set, InputPanel { dy, weight, inputs, panel, packed, out });
    });
    for (row, to) in to.x.chunks_exact_mut(inputs.max(1)).enumerate() {
        dx.copy_row(row, to);
    }
}

/// One panel of the columns of dx.
struct InputPanel<'a> {
    dy: View<'a>,
    weight: &'a [f32],
    inputs: usize,
    panel: usize,
    /// The columns of the weight for a block of outputs.
    packed: &'a mut Vec<Row>,
    out: &'a mut [Row],
}

impl Kernel for InputPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let InputPanel { dy, weight, inputs, panel, packed, out } = self;
        out.fill(Row::ZERO);
        let columns = panel * PANEL..(panel * PANEL + PANEL).min(inputs);
        for (block, outputs) in weight.chunks(PACKED_PANELS * PANEL * inputs).enumerate() {
            packed.clear();
            packed.extend(outputs.chunks_exact(inputs).map(|weights| {
                let mut row = Row::ZERO;
                row.0[..columns.len()].copy_from_slice(&weights[columns.clone()]);
                row
            }));
            let first = block * PACKED_PANELS;
            let a = dy.panels(first..first + panels(packed.len()));
            for tile in tiles(out.len(), S::TILE_ROWS) {
                let mut sums = [Row::ZERO; MAX_TILE_ROWS];
                let sums = &mut sums[..tile.len()];
                simd.run_tile(Tile::new(a.rows(tile.clone()), packed, sums));
                for (to, sum) in out[tile].iter_mut().zip(sums) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(to, at, simd.add(simd.load(to, at), simd.load(sum, at)));
                    }
                }
            }
        }
    }
}
