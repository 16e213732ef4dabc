//! Matrices stored by panels of 32 columns.
//!
//! Panel 0 of all rows comes first, then panel 1 of all rows. So the result of a tile, a few rows of one panel, is one
//! run of memory; an attention head of 32 columns is one panel; and threads that compute different columns write to
//! different slices. The last panel may have *padding columns* beyond the last column of the matrix. Functions that
//! fill a matrix set them to 0; functions that read one document whether they need that.

use std::ops::Range;

use crate::numbers::GROUP;

/// How many columns a panel has.
pub const PANEL: usize = 32;

/// One row of one panel, float32: two cache lines.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row(pub [f32; PANEL]);

impl Row {
    /// 32 zeros.
    pub const ZERO: Row = Row([0.0; PANEL]);
}

/// Adds each number of `from` to the number of `to` at the same place, as far as both have rows.
pub(crate) fn add_rows(from: &[Row], to: &mut [Row]) {
    for (to, from) in to.iter_mut().zip(from) {
        to.0.iter_mut().zip(from.0).for_each(|(to, x)| *to += x);
    }
}

/// One row of one panel in 16 bits, bfloat16 as bits: one cache line.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalfRow(pub [u16; PANEL]);

impl HalfRow {
    /// 32 zeros.
    pub const ZERO: HalfRow = HalfRow([0; PANEL]);

    /// Returns columns 2i and 2i + 1, the first in the lower half.
    #[inline(always)]
    pub fn pair(&self, i: usize) -> u32 {
        u32::from(self.0[2 * i]) | u32::from(self.0[2 * i + 1]) << 16
    }

    /// Returns columns 4i to 4i + 3, the first in the lowest bits.
    #[inline(always)]
    pub fn two_pairs(&self, i: usize) -> u64 {
        u64::from(self.pair(2 * i)) | u64::from(self.pair(2 * i + 1)) << 32
    }
}

/// Two rows of a panel of bfloat16 weights, for the inputs 2k and 2k + 1: for each output a pair of bits, the first in
/// the lower half.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairRow(pub [u32; PANEL]);

/// One row of one group of int8 numbers, two panels wide: one cache line. A matrix of inputs of quantized layers.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByteRow(pub [u8; GROUP]);

impl ByteRow {
    /// 64 zeros.
    pub const ZERO: ByteRow = ByteRow([0; GROUP]);

    /// Returns columns 4i to 4i + 3, the first in the lowest byte.
    #[inline(always)]
    pub fn quad(&self, i: usize) -> u32 {
        u32::from_le_bytes([self.0[4 * i], self.0[4 * i + 1], self.0[4 * i + 2], self.0[4 * i + 3]])
    }

    /// Returns columns 8i to 8i + 7, the first in the lowest byte.
    #[inline(always)]
    pub fn two_quads(&self, i: usize) -> u64 {
        u64::from(self.quad(2 * i)) | u64::from(self.quad(2 * i + 1)) << 32
    }
}

/// One row of one group of int8 numbers, widened to 16 bits: the first and third of each quad, then the second and fourth,
/// the first in the lower half.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordRow(pub [[u32; GROUP / 4]; 2]);

impl WordRow {
    /// 64 zeros.
    pub const ZERO: WordRow = WordRow([[0; GROUP / 4]; 2]);
}

/// Four rows of a panel of int8 weights, for the inputs 4k to 4k + 3: for each output the four numbers.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuadRow(pub [[i8; 4]; PANEL]);

impl QuadRow {
    /// 128 zeros.
    pub const ZERO: QuadRow = QuadRow([[0; 4]; PANEL]);
}

/// One row of one panel of int32 numbers.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumRow(pub [i32; PANEL]);

impl SumRow {
    /// 32 zeros.
    pub const ZERO: SumRow = SumRow([0; PANEL]);
}

/// Returns the number of panels that hold `columns` columns.
///
/// # Examples
///
/// ```
/// assert_eq!(wordpiece_kernels::panels(384), 12);
/// assert_eq!(wordpiece_kernels::panels(33), 2); // of the second panel 31 columns are padding
/// ```
pub const fn panels(columns: usize) -> usize {
    columns.div_ceil(PANEL)
}

/// Returns a vector as rows, one for each panel of 32 numbers, with zeros after the last number.
///
/// # Examples
///
/// ```
/// let rows = wordpiece_kernels::pad_to_panels(&[1.0; 33]);
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows[1].0[..2], [1.0, 0.0]);
/// ```
pub fn pad_to_panels(x: &[f32]) -> Vec<Row> {
    x.chunks(PANEL)
        .map(|x| {
            let mut row = Row::ZERO;
            row.0[..x.len()].copy_from_slice(x);
            row
        })
        .collect()
}

/// A view of consecutive rows and panels of a matrix, to be read.
///
/// Panel `p` of row `r` is `data[p * stride + r]`.
pub struct View<'a, R = Row> {
    data: &'a [R],
    /// How many rows the matrix has: the distance of a panel from the next.
    stride: usize,
    /// How many rows the view has.
    rows: usize,
}

impl<R> Clone for View<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for View<'_, R> {}

impl<'a, R> View<'a, R> {
    /// Views a matrix of `rows` rows whose panels are `data`.
    ///
    /// # Panics
    ///
    /// If `data` is not a whole number of panels.
    pub fn new(data: &'a [R], rows: usize) -> View<'a, R> {
        assert!(rows == 0 || data.len().is_multiple_of(rows), "{} panel rows in {rows} rows", data.len());
        View { data, stride: rows, rows }
    }

    /// Returns the rows in `range`.
    ///
    /// # Panics
    ///
    /// If the range reaches beyond the last row.
    pub fn rows(self, range: Range<usize>) -> View<'a, R> {
        assert!(range.start <= range.end && range.end <= self.rows);
        View { data: self.data.get(range.start..).unwrap_or(&[]), stride: self.stride, rows: range.len() }
    }

    /// Returns the panels in `range`.
    ///
    /// # Panics
    ///
    /// If the range begins beyond the last panel.
    pub fn panels(self, range: Range<usize>) -> View<'a, R> {
        // A view that begins at row r > 0 has its last panel end r rows before a whole stride.
        let end = (range.end * self.stride).min(self.data.len());
        View { data: &self.data[range.start * self.stride..end], ..self }
    }

    /// Returns the number of rows.
    pub fn len(self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(self) -> bool {
        self.rows == 0
    }

    /// Returns panel `panel` of all rows, one run of memory.
    #[inline(always)]
    pub fn panel(self, panel: usize) -> &'a [R] {
        &self.data[panel * self.stride..][..self.rows]
    }

    /// Returns the number of panels.
    pub fn width(self) -> usize {
        match self.stride {
            0 => 0,
            stride => self.data.len().div_ceil(stride),
        }
    }
}

/// A view of consecutive rows of a matrix, to be written; laid out as [`View`].
pub struct ViewMut<'a> {
    data: &'a mut [Row],
    /// How many rows the matrix has: the distance of a panel from the next.
    stride: usize,
    /// How many rows the view has.
    rows: usize,
}

impl<'a> ViewMut<'a> {
    /// Views a matrix of `rows` rows whose panels are `data`.
    ///
    /// # Panics
    ///
    /// If `data` is not a whole number of panels.
    pub fn new(data: &'a mut [Row], rows: usize) -> ViewMut<'a> {
        assert!(rows == 0 || data.len().is_multiple_of(rows), "{} panel rows in {rows} rows", data.len());
        ViewMut { data, stride: rows, rows }
    }

    /// Returns the rows in `range`.
    ///
    /// # Panics
    ///
    /// If the range reaches beyond the last row.
    pub fn rows(&mut self, range: Range<usize>) -> ViewMut<'_> {
        assert!(range.start <= range.end && range.end <= self.rows);
        let rows = range.len();
        ViewMut { data: self.data.get_mut(range.start..).unwrap_or(&mut []), stride: self.stride, rows }
    }

    /// Returns the panels in `range`.
    ///
    /// # Panics
    ///
    /// If the range begins beyond the last panel.
    pub fn panels(&mut self, range: Range<usize>) -> ViewMut<'_> {
        let end = (range.end * self.stride).min(self.data.len()); // as in `View::panels`
        ViewMut { data: &mut self.data[range.start * self.stride..end], stride: self.stride, rows: self.rows }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns panel `panel` of all rows, one run of memory.
    #[inline(always)]
    pub fn panel(&mut self, panel: usize) -> &mut [Row] {
        &mut self.data[panel * self.stride..][..self.rows]
    }

    /// Splits the view into its panels, in order, which different threads can write to.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::Matrix;
    ///
    /// let mut x = Matrix::default();
    /// x.fill_rows(2, 33, &[0.0; 66]);
    /// let panels = x.view_mut().each_panel();
    /// std::thread::scope(|scope| {
    ///     for (number, rows) in panels.into_iter().enumerate() {
    ///         scope.spawn(move || rows.iter_mut().for_each(|row| row.0[0] = number as f32));
    ///     }
    /// });
    /// let mut row = [0.0; 33];
    /// x.copy_row(1, &mut row);
    /// assert_eq!((row[0], row[32]), (0.0, 1.0));
    /// ```
    pub fn each_panel(self) -> Vec<&'a mut [Row]> {
        match self.rows {
            0 => Vec::new(),
            rows => self.data.chunks_mut(self.stride).map(|panel| &mut panel[..rows]).collect(),
        }
    }
}

/// A matrix that owns its numbers. Its memory only grows: it is kept when the shape changes.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::Matrix;
///
/// let mut matrix = Matrix::default();
/// matrix.fill_rows(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// assert_eq!(matrix.view().panel(0)[1].0[..4], [4.0, 5.0, 6.0, 0.0]); // row 1 and the first padding column
///
/// let mut row = [0.0; 3];
/// matrix.copy_row(1, &mut row);
/// assert_eq!(row, [4.0, 5.0, 6.0]);
/// ```
#[derive(Default)]
pub struct Matrix {
    /// The panels, in the first `len` elements.
    data: Vec<Row>,
    rows: usize,
    /// Rows times panels.
    len: usize,
}

impl Matrix {
    /// Changes the shape. All numbers are unspecified afterwards, also in padding columns.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::Matrix;
    ///
    /// let mut x = Matrix::default();
    /// x.reshape(3, 40);
    /// assert_eq!((x.view().len(), x.view().width()), (3, 2)); // three rows of two panels
    /// ```
    pub fn reshape(&mut self, rows: usize, columns: usize) -> &mut Matrix {
        self.rows = rows;
        self.len = rows * panels(columns);
        if self.data.len() < self.len {
            self.data.resize(self.len, Row::ZERO);
        }
        self
    }

    /// Returns all rows, to be read.
    pub fn view(&self) -> View<'_> {
        View::new(&self.data[..self.len], self.rows)
    }

    /// Returns all rows, to be written.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::new(&mut self.data[..self.len], self.rows)
    }

    /// Returns the panels of all rows, one after the other.
    pub fn data(&self) -> &[Row] {
        &self.data[..self.len]
    }

    /// Returns the panels of all rows, one after the other, to be written.
    pub fn data_mut(&mut self) -> &mut [Row] {
        &mut self.data[..self.len]
    }

    /// Copies a matrix [rows, columns] that is stored row by row, and sets padding columns to 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::Matrix;
    ///
    /// let mut x = Matrix::default();
    /// x.fill_rows(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// let last = x.view().rows(1..2);
    /// assert_eq!(last.panel(0)[0].0[..4], [4.0, 5.0, 6.0, 0.0]);
    /// ```
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

    /// Copies the first `to.len()` columns of row `row` to `to`, which must exist.
    pub fn copy_row(&self, row: usize, to: &mut [f32]) {
        let rows = self.data()[row.min(self.len)..].iter().step_by(self.rows.max(1));
        for (to, from) in to.chunks_mut(PANEL).zip(rows) {
            to.copy_from_slice(&from.0[..to.len()]);
        }
    }
}

/// Adds the first `columns` columns of all rows; others of `from` need not be 0.
pub(crate) fn add_columns(from: View<'_>, mut to: ViewMut<'_>, columns: usize) {
    for panel in 0..panels(columns) {
        let valid = (columns - panel * PANEL).min(PANEL);
        for (to, from) in to.panel(panel).iter_mut().zip(from.panel(panel)) {
            to.0[..valid].iter_mut().zip(from.0).for_each(|(to, x)| *to += x);
        }
    }
}

/// Copies `columns` columns of all rows, from column `first` of one matrix to column `at` of another.
pub(crate) fn copy_columns(from: View<'_>, first: usize, mut to: ViewMut<'_>, at: usize, columns: usize) {
    if [first, at, columns].iter().all(|n| n.is_multiple_of(PANEL)) {
        for panel in 0..columns / PANEL {
            to.panel(at / PANEL + panel).copy_from_slice(from.panel(first / PANEL + panel));
        }
        return;
    }
    for column in 0..columns {
        let (source, target) = (first + column, at + column);
        let rows = from.panel(source / PANEL).iter().zip(to.panel(target / PANEL));
        for (from, to) in rows {
            to.0[target % PANEL] = from.0[source % PANEL];
        }
    }
}
