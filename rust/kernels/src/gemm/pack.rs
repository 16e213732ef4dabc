//! Packed weights: the order in which tiles read them, by panels of 32 outputs and within a panel by input.
//!
//! Packing transposes each panel once, so that a tile loads whole vectors of outputs for one input, in the order of memory.
//! It takes as much memory as the weights, rounded up to whole panels for each layer.

use super::int8::{BytePanel, PackedBytes, QuantizedWeight};
use crate::arch::TileUnit;
use crate::matrix::{PANEL, PairRow, Row, panels};
use crate::numbers::{Numbers, bf16_to_f32, f32_to_bf16};
use crate::tile::Ahead;

/// The weights [N, K] of one or more dense layers with the same input, packed once.
///
/// # Examples
///
/// Two layers with 2 inputs; the second begins at the second panel.
///
/// ```
/// use wordpiece_kernels::gemm::{PackedWeights, UnpackedWeights};
/// use wordpiece_kernels::numbers::Numbers;
///
/// let first = Numbers::F32(&[1.0, 2.0, 3.0, 4.0]); // [2, 2]
/// let second = Numbers::F32(&[5.0, 6.0]); // [1, 2]
/// let packed = PackedWeights::new(&[first, second], 2);
/// assert_eq!(packed.panels(), 2);
/// assert_eq!(packed.unpack(1, 1), UnpackedWeights::F32(vec![5.0, 6.0]));
/// ```
pub struct PackedWeights {
    rows: PackedRows,
    /// K, the number of inputs.
    k: usize,
    /// The number of panels of outputs of all layers.
    panels: usize,
    /// Whether the weights were rounded to bfloat16, so that float32 rows unpack as such.
    is_rounded: bool,
}

/// The rows of all panels, one panel after the other: K rows for each, or 16·⌈K/32⌉ rows of pairs.
enum PackedRows {
    F32(Vec<Row>),
    Pairs(Vec<PairRow>),
    Bytes(PackedBytes),
}

/// One panel of packed weights, as it is multiplied.
#[derive(Clone, Copy)]
pub enum WeightPanel<'a> {
    /// float32, K rows.
    F32(&'a [Row]),
    /// bfloat16 to be multiplied as such, 16·⌈K/32⌉ rows, 0 beyond the last input.
    Pairs(&'a [PairRow]),
    /// int8.
    Bytes(BytePanel<'a>),
}

impl PackedWeights {
    /// Packs float32 weights of dense layers, each [N, K]; N may differ between layers. The outputs of each layer begin at a
    /// panel.
    ///
    /// # Panics
    ///
    /// If the length of a weight is not a multiple of `k`, or a weight is not float32.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::gemm::{PackedWeights, UnpackedWeights};
    /// use wordpiece_kernels::numbers::Numbers;
    ///
    /// let (first, second) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]); // [2, 2] and [1, 2]
    /// let packed = PackedWeights::new(&[Numbers::F32(&first), Numbers::F32(&second)], 2);
    /// assert_eq!((packed.k(), packed.panels()), (2, 2)); // each begins at a panel
    /// assert!(matches!(packed.unpack(1, 1), UnpackedWeights::F32(weight) if weight == second));
    /// ```
    pub fn new(weights: &[Numbers<'_>], k: usize) -> PackedWeights {
        let rows = PackedRows::F32(pack(weights, k));
        let panels = weights.iter().map(|weight| panels(weight.len() / k.max(1))).sum();
        PackedWeights { rows, k, panels, is_rounded: false }
    }

    /// Packs weights as [`PackedWeights::new`], rounded to bfloat16, to be multiplied by float32 inputs.
    ///
    /// They are stored as float32: in 16 bits, each panel would have to be widened whenever it is used.
    ///
    /// # Panics
    ///
    /// If the length of a weight is not a multiple of `k`.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::gemm::{PackedWeights, UnpackedWeights};
    /// use wordpiece_kernels::numbers::{Numbers, f32_to_bf16};
    ///
    /// let packed = PackedWeights::rounded(&[Numbers::F32(&[3.14159])], 1);
    /// assert!(matches!(packed.unpack(0, 1), UnpackedWeights::Bf16(bits) if bits == [f32_to_bf16(3.14159)]));
    /// ```
    pub fn rounded(weights: &[Numbers<'_>], k: usize) -> PackedWeights {
        let mut rows = Vec::with_capacity(rows_of(weights, k, k));
        let mut numbers = Vec::new();
        for weight in weights {
            numbers.resize(weight.len(), 0.0);
            weight.read(0, &mut numbers);
            for x in &mut numbers {
                *x = bf16_to_f32(f32_to_bf16(*x));
            }
            rows.extend(pack(&[Numbers::F32(&numbers)], k));
        }
        let panels = weights.iter().map(|weight| panels(weight.len() / k.max(1))).sum();
        PackedWeights { rows: PackedRows::F32(rows), k, panels, is_rounded: true }
    }

    /// Packs weights as [`PackedWeights::new`], rounded to bfloat16, to be multiplied by inputs that are rounded as well.
    ///
    /// # Panics
    ///
    /// If the length of a weight is not a multiple of `k`.
    pub fn bf16_pairs(weights: &[Numbers<'_>], k: usize) -> PackedWeights {
        let mut rows = Vec::with_capacity(rows_of(weights, k, pair_rows(k)));
        let mut line = vec![0.0; k];
        for weight in weights {
            assert!(weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
            for n in 0..weight.len() / k {
                if n % PANEL == 0 {
                    rows.resize(rows.len() + pair_rows(k), PairRow([0; PANEL]));
                }
                weight.read(n * k, &mut line);
                let start = rows.len() - pair_rows(k);
                for (pair, row) in line.chunks(2).zip(&mut rows[start..]) {
                    let second = pair.get(1).map_or(0, |x| f32_to_bf16(*x));
                    row.0[n % PANEL] = u32::from(f32_to_bf16(pair[0])) | u32::from(second) << 16;
                }
            }
        }
        let panels = weights.iter().map(|weight| panels(weight.len() / k.max(1))).sum();
        PackedWeights { rows: PackedRows::Pairs(rows), k, panels, is_rounded: true }
    }

    /// Packs int8 weights, the values [N, K], scales [N, ⌈K/64⌉] and columns [N, n] of [`QuantizedWeight`]s; `factors` `[K]`
    /// are those with which all were quantized, n of them 0.
    ///
    /// # Panics
    ///
    /// If the numbers of values, scales, columns and factors do not agree.
    pub fn int8(weights: &[(&[i8], &[f32], &[f32])], factors: &[f32]) -> PackedWeights {
        let k = factors.len();
        let panels = weights.iter().map(|weight| panels(weight.0.len() / k.max(1))).sum();
        PackedWeights { rows: PackedRows::Bytes(PackedBytes::new(weights, factors)), k, panels, is_rounded: false }
    }

    /// Returns what the inputs of int8 weights are multiplied by before they are quantized, by panels, 0 for those that are
    /// not quantized and beyond the last; `None` for weights of another type.
    pub fn factors(&self) -> Option<&[Row]> {
        match &self.rows {
            PackedRows::Bytes(bytes) => Some(bytes.factors()),
            _ => None,
        }
    }

    /// Returns the inputs of int8 weights that are not quantized.
    pub(super) fn unquantized(&self) -> &[usize] {
        match &self.rows {
            PackedRows::Bytes(bytes) => bytes.unquantized(),
            _ => &[],
        }
    }

    /// Whether the weights are multiplied as bfloat16, by inputs that must be rounded to it.
    pub fn is_bf16_pairs(&self) -> bool {
        matches!(self.rows, PackedRows::Pairs(_))
    }

    /// Whether these tile registers can multiply the weights.
    pub fn are_multiplied_by(&self, tiles: Option<TileUnit>) -> bool {
        match self.rows {
            PackedRows::Pairs(_) => tiles.is_some(),
            PackedRows::Bytes(_) => tiles.is_some_and(TileUnit::multiplies_bytes),
            _ => false,
        }
    }

    /// Returns K, the number of inputs.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Returns the number of panels of outputs.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// Returns one panel as it is multiplied.
    #[inline]
    pub fn panel(&self, panel: usize) -> WeightPanel<'_> {
        match &self.rows {
            PackedRows::F32(rows) => WeightPanel::F32(&rows[panel * self.k..][..self.k]),
            PackedRows::Pairs(rows) => {
                let pairs = pair_rows(self.k);
                WeightPanel::Pairs(&rows[panel * pairs..][..pairs])
            }
            PackedRows::Bytes(bytes) => WeightPanel::Bytes(bytes.panel(panel)),
        }
    }

    /// Returns the memory of a panel, to be prefetched; nothing beyond the last panel.
    pub(super) fn memory_of(&self, panel: usize) -> Ahead {
        fn part<R>(rows: &[R], panel: usize, len: usize) -> Ahead {
            Ahead::of(rows.get(panel * len..(panel + 1) * len).unwrap_or(&[]))
        }
        match &self.rows {
            PackedRows::F32(rows) => part(rows, panel, self.k),
            PackedRows::Pairs(rows) => part(rows, panel, pair_rows(self.k)),
            PackedRows::Bytes(bytes) if panel < self.panels => Ahead::of(bytes.panel(panel).quads),
            PackedRows::Bytes(_) => Ahead::NOTHING,
        }
    }

    /// Returns the weights [N, K] of the layer whose outputs begin at panel `first_panel`, bit for bit as they were packed;
    /// `n` is N.
    pub fn unpack(&self, first_panel: usize, n: usize) -> UnpackedWeights {
        match &self.rows {
            PackedRows::F32(rows) if self.is_rounded => {
                let numbers = unpack(&rows[first_panel * self.k..], self.k, n);
                UnpackedWeights::Bf16(numbers.into_iter().map(f32_to_bf16).collect())
            }
            PackedRows::F32(rows) => UnpackedWeights::F32(unpack(&rows[first_panel * self.k..], self.k, n)),
            PackedRows::Bytes(bytes) => UnpackedWeights::Int8(bytes.unpack(first_panel, n, self.k)),
            PackedRows::Pairs(rows) => {
                let pairs = pair_rows(self.k);
                let weight = |n: usize, k: usize| {
                    let pair = rows[(first_panel + n / PANEL) * pairs + k / 2].0[n % PANEL];
                    if k.is_multiple_of(2) { pair as u16 } else { (pair >> 16) as u16 }
                };
                UnpackedWeights::Bf16((0..n).flat_map(|n| (0..self.k).map(move |k| weight(n, k))).collect())
            }
        }
    }
}

/// Returns how many rows all panels of weights [N, K] have together, if each has `rows`.
fn rows_of(weights: &[Numbers<'_>], k: usize, rows: usize) -> usize {
    weights.iter().map(|weight| panels(weight.len() / k.max(1)) * rows).sum()
}

/// Returns how many rows of pairs a panel of `k` inputs has: whole tiles of 16, which are whole panels of inputs.
fn pair_rows(k: usize) -> usize {
    panels(k) * PANEL / 2
}

/// Weights [N, K], row by row, in the type in which they are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum UnpackedWeights {
    /// float32.
    F32(Vec<f32>),
    /// bfloat16, as its bits.
    Bf16(Vec<u16>),
    /// int8 with scales.
    Int8(QuantizedWeight),
}

/// Packs float32 weights [N, K] one after the other, each beginning at a panel; columns beyond the last output are 0.
///
/// # Panics
///
/// If a weight is of another type, or its length is not a multiple of `k`.
fn pack(weights: &[Numbers<'_>], k: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(rows_of(weights, k, k));
    for weight in weights {
        let Numbers::F32(weight) = weight else { panic!("weights that are not float32") };
        assert!(weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
        for outputs in weight.chunks(PANEL * k) {
            let start = rows.len();
            rows.resize(start + k, Row::ZERO);
            pack_panel(outputs, &mut rows[start..]);
        }
    }
    rows
}

/// Reverses [`pack`] for the first layer in `rows`, which has `n` outputs.
fn unpack(rows: &[Row], k: usize, n: usize) -> Vec<f32> {
    let mut weights = vec![0.0; n * k];
    for (outputs, panel) in weights.chunks_mut(PANEL * k).zip(rows.chunks(k)) {
        for (n, weights) in outputs.chunks_exact_mut(k).enumerate() {
            for (weight, row) in weights.iter_mut().zip(panel) {
                *weight = row.0[n];
            }
        }
    }
    weights
}

/// Packs up to 32 outputs [n, K] into the first n columns of K rows; the other columns keep what they hold.
pub(super) fn pack_panel(outputs: &[f32], to: &mut [Row]) {
    /// Inputs that are written for all outputs before the next: few enough that their rows stay in the cache.
    const INPUTS: usize = 16;
    let k = to.len();
    for (block, to) in to.chunks_mut(INPUTS).enumerate() {
        for (n, weights) in outputs.chunks_exact(k).enumerate() {
            for (weight, row) in weights[block * INPUTS..].iter().zip(to.iter_mut()) {
                row.0[n] = *weight;
            }
        }
    }
}
