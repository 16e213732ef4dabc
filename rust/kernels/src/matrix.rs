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

/// How many panels hold so many columns.
pub const fn panels(columns: usize) -> usize {
    columns.div_ceil(PANEL)
}

/// Some rows of a matrix: panel `p` of row `r` is `data[p * stride + r]`.
#[derive(Clone, Copy)]
pub struct View<'a> {
    data: &'a [Row],
    stride: usize,
    rows: usize,
}

impl<'a> View<'a> {
    /// All rows of a matrix with `rows` rows.
    pub fn new(data: &'a [Row], rows: usize) -> View<'a> {
        assert!(rows == 0 || data.len().is_multiple_of(rows), "{} panel rows in {rows} rows", data.len());
        View { data, stride: rows, rows }
    }

    /// Some of the rows.
    pub fn rows(self, range: Range<usize>) -> View<'a> {
        assert!(range.start <= range.end && range.end <= self.rows);
        View { data: self.data.get(range.start..).unwrap_or(&[]), stride: self.stride, rows: range.len() }
    }

    /// Some of the panels.
    pub fn panels(self, range: Range<usize>) -> View<'a> {
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
    pub fn panel(self, panel: usize) -> &'a [Row] {
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
