//! Epilogues: bias, then activation, residual or gate, applied to a tile of a product while it is in the first-level cache.
//!
//! A separate pass over the result would load and store it again, from a slower cache.

use std::ops::Range;

use crate::activation::{self, Activation};
use crate::arch::Simd;
use crate::matrix::{PANEL, Row, View};

/// The operations that complete a product x·Wᵀ.
#[derive(Clone, Copy)]
pub enum Epilogue<'a> {
    /// x·Wᵀ + b.
    Bias,
    /// activation(x·Wᵀ + b).
    Activation(Activation),
    /// x·Wᵀ + b + r, for a residual r of the shape of the result.
    Residual(View<'a>),
    /// (x·Wᵀ + b) ⊙ g, for a gate g of the shape of the result.
    Gate(View<'a>),
}

impl Epilogue<'_> {
    /// Applies it to `out`, the sums of the rows `rows` and panel `panel` of the product; `bias` is the bias of the
    /// panel.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(self, simd: S, bias: &Row, panel: usize, rows: Range<usize>, out: &mut [Row]) {
        match self {
            Epilogue::Bias => add_bias(simd, bias, out),
            Epilogue::Activation(activation) => {
                add_bias(simd, bias, out);
                activation::apply_with(simd, activation, out);
            }
            Epilogue::Residual(residual) => {
                add_bias(simd, bias, out);
                add_rows(simd, &residual.panel(panel)[rows], out);
            }
            Epilogue::Gate(gate) => {
                add_bias(simd, bias, out);
                multiply_rows(simd, &gate.panel(panel)[rows], out);
            }
        }
    }
}

/// Adds a bias to each row.
#[inline(always)]
fn add_bias<S: Simd>(simd: S, bias: &Row, out: &mut [Row]) {
    for row in out {
        for at in (0..PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.add(simd.load(row, at), simd.load(bias, at)));
        }
    }
}

/// Adds rows to rows.
#[inline(always)]
fn add_rows<S: Simd>(simd: S, x: &[Row], out: &mut [Row]) {
    for (row, x) in out.iter_mut().zip(x) {
        for at in (0..PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.add(simd.load(row, at), simd.load(x, at)));
        }
    }
}

/// Multiplies rows by rows.
#[inline(always)]
fn multiply_rows<S: Simd>(simd: S, x: &[Row], out: &mut [Row]) {
    for (row, x) in out.iter_mut().zip(x) {
        for at in (0..PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.mul(simd.load(row, at), simd.load(x, at)));
        }
    }
}
