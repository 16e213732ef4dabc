//! What the tests of the kernels share: numbers, and matrices from and to rows.

#![allow(dead_code, reason = "each file of tests uses a part")]

use wordpiece_kernels::Matrix;

/// A linear congruential generator of numbers from −1 to 1.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn numbers(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

/// Returns the numbers of a matrix [rows, columns], row after row.
pub fn numbers(matrix: &Matrix, rows: usize, columns: usize) -> Vec<f32> {
    let mut x = vec![0.0; rows * columns];
    for (row, to) in x.chunks_mut(columns).enumerate() {
        matrix.copy_row(row, to);
    }
    x
}

/// Returns the matrix of these numbers, which [`numbers`] returns again.
pub fn matrix(x: &[f32], rows: usize, columns: usize) -> Matrix {
    let mut matrix = Matrix::default();
    matrix.fill_rows(rows, columns, x);
    matrix
}

pub fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}
