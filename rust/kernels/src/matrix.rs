//! Matrices stored by panels of 32 columns.

use std::ops::Range;

/// Columns of a panel.
pub const PANEL: usize = 32;

/// One row of one panel: two cache lines.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row(pub [f32; PANEL]);

impl Row {
    /// 32 zeros.
    pub const ZERO: Row = Row([0.0; PANEL]);
}

/// One row of one panel in 16 bits: one cache line.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalfRow(pub [u16; PANEL]);

impl HalfRow {
    /// 32 zeros.
    pub const ZERO: HalfRow = HalfRow([0; PANEL]);

    /// Columns 2i and 2i + 1, the first in the lower half.
    #[inline(always)]
    pub fn pair(&self, i: usize) -> u32 {
        u32::from(self.0[2 * i]) | u32::from(self.0[2 * i + 1]) << 16
    }
}

/// Two rows of a panel of weights in bfloat16, of inputs 2k and 2k + 1: for each output a pair, the first in the lower half.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairRow(pub [u32; PANEL]);

/// How many panels hold so many columns.
pub const fn panels(columns: usize) -> usize {
    columns.div_ceil(PANEL)
}

/// Some rows of a matrix: panel `p` of row `r` is `data[p * stride + r]`.
pub struct View<'a, R = Row> {
    data: &'a [R],
    stride: usize,
    rows: usize,
}

impl<R> Clone for View<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for View<'_, R> {}

impl<'a, R> View<'a, R> {
    /// All rows of a matrix with `rows` rows.
    pub fn new(data: &'a [R], rows: usize) -> View<'a, R> {
        assert!(rows == 0 || data.len().is_multiple_of(rows), "{} panel rows in {rows} rows", data.len());
        View { data, stride: rows, rows }
    }

    /// Some of the rows.
    pub fn rows(self, range: Range<usize>) -> View<'a, R> {
        assert!(range.start <= range.end && range.end <= self.rows);
        View { data: self.data.get(range.start..).unwrap_or(&[]), stride: self.stride, rows: range.len() }
    }

    /// Some of the panels.
    pub fn panels(self, range: Range<usize>) -> View<'a, R> {
        // The rows may begin within the first panel: the last panel ends before a whole stride.
        let end = (range.end * self.stride).min(self.data.len());
        View { data: &self.data[range.start * self.stride..end], ..self }
    }

    /// How many rows there are.
    pub fn len(self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.rows == 0
    }

    /// One panel of all rows.
    #[inline(always)]
    pub fn panel(self, panel: usize) -> &'a [R] {
        &self.data[panel * self.stride..][..self.rows]
    }

    /// How many panels there are.
    pub fn width(self) -> usize {
        match self.stride {
            0 => 0,
            stride => self.data.len().div_ceil(stride),
        }
    }
}

/// Some rows of a matrix, to be written; as [`View`].
pub struct ViewMut<'a> {
    data: &'a mut [Row],
    stride: usize,
    rows: usize,
}

impl<'a> ViewMut<'a> {
    /// All rows of a matrix with `rows` rows.
    pub fn new(data: &'a mut [Row], rows: usize) -> ViewMut<'a> {
        assert!(rows == 0 || data.len().is_multiple_of(rows), "{} panel rows in {rows} rows", data.len());
        ViewMut { data, stride: rows, rows }
    }

    /// Some of the rows.
    pub fn rows(&mut self, range: Range<usize>) -> ViewMut<'_> {
        assert!(range.start <= range.end && range.end <= self.rows);
        let rows = range.len();
        ViewMut { data: self.data.get_mut(range.start..).unwrap_or(&mut []), stride: self.stride, rows }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// One panel of all rows.
    #[inline(always)]
    pub fn panel(&mut self, panel: usize) -> &mut [Row] {
        &mut self.data[panel * self.stride..][..self.rows]
    }

    /// The panels one after the other, each with its number; to be shared among threads.
    pub fn each_panel(self) -> Vec<&'a mut [Row]> {
        match self.rows {
            0 => Vec::new(),
            rows => self.data.chunks_mut(self.stride).map(|panel| &mut panel[..rows]).collect(),
        }
    }

    /// The same rows, to be read.
    pub fn as_view(&self) -> View<'_> {
        View { data: self.data, stride: self.stride, rows: self.rows }
    }
}

/// A matrix that owns its numbers, and keeps its memory when its shape changes.
#[derive(Default)]
pub struct Matrix {
    data: Vec<Row>,
    rows: usize,
    len: usize,
}

impl Matrix {
    /// Gives it another shape. What the numbers are then is not told; those of the padding columns are written by all that
    /// fill a matrix.
    pub fn reshape(&mut self, rows: usize, columns: usize) -> &mut Matrix {
        self.rows = rows;
        self.len = rows * panels(columns);
        if self.data.len() < self.len {
            self.data.resize(self.len, Row::ZERO);
        }
        self
    }

    /// All of it, to be read.
    pub fn view(&self) -> View<'_> {
        View::new(&self.data[..self.len], self.rows)
    }

    /// All of it, to be written.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::new(&mut self.data[..self.len], self.rows)
    }

    /// The panels of all rows, one run of memory.
    pub fn data(&self) -> &[Row] {
        &self.data[..self.len]
    }

    /// The panels of all rows, one run of memory.
    pub fn data_mut(&mut self) -> &mut [Row] {
        &mut self.data[..self.len]
    }

    /// Takes rows whose columns stand side by side, `rows` by `columns`; padding columns become 0.
    pub fn fill_rows(&mut self, rows: usize, columns: usize, from: &[f32]) {
        self.reshape(rows, columns);
        for (row, from) in from.chunks_exact(columns.max(1)).enumerate() {
            for (panel, from) in from.chunks(PANEL).enumerate() {
                let to = &mut self.data[panel * rows + row].0;
                to[..from.len()].copy_from_slice(from);
                to[from.len()..].fill(0.0);
            }
        }
    }

    /// Copies one row to where all its columns stand side by side.
    pub fn copy_row(&self, row: usize, to: &mut [f32]) {
        let rows = self.data()[row.min(self.len)..].iter().step_by(self.rows.max(1));
        for (to, from) in to.chunks_mut(PANEL).zip(rows) {
            to.copy_from_slice(&from.0[..to.len()]);
        }
    }
}
