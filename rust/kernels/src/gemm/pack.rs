//! Weights in the form in which tiles read them: by panels of 32 outputs, within a panel by input.

use crate::arch::{InstructionSet, Kernel, Simd};
use crate::matrix::{HalfRow, PANEL, PairRow, Row, View, panels};
use crate::numbers::{Numbers, bf16_to_f32, f16_to_f32, f32_to_bf16};

/// The weights [N, K] of one or more dense layers with the same input, packed once.
///
/// Those in 16 bits stay so; a panel is widened when it is used, once for all rows of a task.
pub struct Packed {
    rows: Rows,
    k: usize,
    panels: usize,
}

enum Rows {
    F32(Vec<Row>),
    F16(Vec<HalfRow>),
    Bf16(Vec<HalfRow>),
    Pairs(Vec<PairRow>),
}

/// One panel of packed weights, as it is multiplied.
#[derive(Clone, Copy)]
pub enum PanelRows<'a> {
    /// float32, K rows.
    F32(&'a [Row]),
    /// bfloat16 to be multiplied as such, ⌈K/2⌉ rows.
    Pairs(&'a [PairRow]),
}

impl Packed {
    /// Packs weights as [`Packed::new`], rounded to bfloat16, to be multiplied with numbers that are so too.
    ///
    /// # Panics
    ///
    /// If the length of a weight is no multiple of `k`.
    pub fn pairs(weights: &[Numbers<'_>], k: usize) -> Packed {
        let mut rows = Vec::new();
        let mut line = vec![0.0; k];
        for weight in weights {
            assert!(weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
            for n in 0..weight.len() / k {
                if n % PANEL == 0 {
                    rows.resize(rows.len() + k.div_ceil(2), PairRow([0; PANEL]));
                }
                weight.read(n * k, &mut line);
                let start = rows.len() - k.div_ceil(2);
                for (pair, row) in line.chunks(2).zip(&mut rows[start..]) {
                    let second = pair.get(1).map_or(0, |x| f32_to_bf16(*x));
                    row.0[n % PANEL] = u32::from(f32_to_bf16(pair[0])) | u32::from(second) << 16;
                }
            }
        }
        let panels = weights.iter().map(|weight| panels(weight.len() / k.max(1))).sum();
        Packed { rows: Rows::Pairs(rows), k, panels }
    }

    /// Whether rows must be rounded to bfloat16 before they are multiplied.
    pub fn is_pairs(&self) -> bool {
        matches!(self.rows, Rows::Pairs(_))
    }

    /// Packs the weights of some dense layers, each [N, K] with as many rows as there are; the outputs of each begin a panel.
    ///
    /// # Panics
    ///
    /// If the length of a weight is no multiple of `k`, or the types differ.
    pub fn new(weights: &[Numbers<'_>], k: usize) -> Packed {
        let rows = match weights.first() {
            None | Some(Numbers::F32(_)) => Rows::F32(pack(weights, k, Row::ZERO)),
            Some(Numbers::F16(_)) => Rows::F16(pack(weights, k, HalfRow::ZERO)),
            Some(Numbers::Bf16(_)) => Rows::Bf16(pack(weights, k, HalfRow::ZERO)),
        };
        let panels = weights.iter().map(|weight| panels(weight.len() / k.max(1))).sum();
        Packed { rows, k, panels }
    }

    /// How many inputs there are.
    pub fn k(&self) -> usize {
        self.k
    }

    /// How many panels of outputs there are.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// One panel; `widened` is where one of 16 bits that is multiplied as float32 is widened to.
    #[inline]
    pub fn panel<'a>(&'a self, path: InstructionSet, panel: usize, widened: &'a mut Vec<Row>) -> PanelRows<'a> {
        let range = panel * self.k..(panel + 1) * self.k;
        let (rows, is_bf16) = match &self.rows {
            Rows::F32(rows) => return PanelRows::F32(&rows[range]),
            Rows::Pairs(rows) => {
                let pairs = self.k.div_ceil(2);
                return PanelRows::Pairs(&rows[panel * pairs..][..pairs]);
            }
            Rows::F16(rows) => (rows, false),
            Rows::Bf16(rows) => (rows, true),
        };
        widened.resize(self.k, Row::ZERO);
        path.run(Widen { rows: &rows[range], is_bf16, to: widened });
        PanelRows::F32(widened)
    }

    /// Gives back the weights [N, K] whose outputs begin with panel `first`, as they were packed; `n` is N.
    pub fn unpack(&self, first: usize, n: usize) -> Unpacked {
        match &self.rows {
            Rows::F32(rows) => Unpacked::F32(unpack(&rows[first * self.k..], self.k, n)),
            Rows::F16(rows) => Unpacked::F16(unpack(&rows[first * self.k..], self.k, n)),
            Rows::Bf16(rows) => Unpacked::Bf16(unpack(&rows[first * self.k..], self.k, n)),
            Rows::Pairs(rows) => {
                let pairs = self.k.div_ceil(2);
                let weight = |n: usize, k: usize| {
                    let pair = rows[(first + n / PANEL) * pairs + k / 2].0[n % PANEL];
                    if k.is_multiple_of(2) { pair as u16 } else { (pair >> 16) as u16 }
                };
                Unpacked::Bf16((0..n).flat_map(|n| (0..self.k).map(move |k| weight(n, k))).collect())
            }
        }
    }
}

/// Weights [N, K] in the type in which they are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Unpacked {
    /// float32.
    F32(Vec<f32>),
    /// float16, as its bits.
    F16(Vec<u16>),
    /// bfloat16, as its bits.
    Bf16(Vec<u16>),
}

/// Rows of a panel, whatever their type.
trait PanelRow: Copy {
    type Number: Copy + Default;

    fn numbers(&mut self) -> &mut [Self::Number; PANEL];
    fn of<'a>(weights: Numbers<'a>) -> &'a [Self::Number];
}

impl PanelRow for Row {
    type Number = f32;

    fn numbers(&mut self) -> &mut [f32; PANEL] {
        &mut self.0
    }

    fn of<'a>(weights: Numbers<'a>) -> &'a [f32] {
        match weights {
            Numbers::F32(x) => x,
            _ => panic!("weights of different types"),
        }
    }
}

impl PanelRow for HalfRow {
    type Number = u16;

    fn numbers(&mut self) -> &mut [u16; PANEL] {
        &mut self.0
    }

    fn of<'a>(weights: Numbers<'a>) -> &'a [u16] {
        match weights {
            Numbers::F16(x) | Numbers::Bf16(x) => x,
            Numbers::F32(_) => panic!("weights of different types"),
        }
    }
}

fn pack<R: PanelRow>(weights: &[Numbers<'_>], k: usize, zero: R) -> Vec<R> {
    let mut rows = Vec::with_capacity(weights.iter().map(|w| panels(w.len() / k.max(1)) * k).sum());
    for weight in weights.iter().map(|weight| R::of(*weight)) {
        assert!(weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
        for outputs in weight.chunks(PANEL * k) {
            let start = rows.len();
            rows.resize(start + k, zero);
            pack_rows(outputs, &mut rows[start..]);
        }
    }
    rows
}

fn pack_rows<R: PanelRow>(outputs: &[R::Number], to: &mut [R]) {
    let k = to.len();
    // Some inputs of all outputs at a time, so that what is written stays in the cache.
    const INPUTS: usize = 16;
    for (block, to) in to.chunks_mut(INPUTS).enumerate() {
        for (n, weights) in outputs.chunks_exact(k).enumerate() {
            for (weight, row) in weights[block * INPUTS..].iter().zip(to.iter_mut()) {
                row.numbers()[n] = *weight;
            }
        }
    }
}

fn unpack<R: PanelRow>(rows: &[R], k: usize, n: usize) -> Vec<R::Number> {
    let mut weights = vec![R::Number::default(); n * k];
    for (outputs, panel) in weights.chunks_mut(PANEL * k).zip(rows.chunks(k)) {
        for (n, weights) in outputs.chunks_exact_mut(k).enumerate() {
            for (weight, row) in weights.iter_mut().zip(panel) {
                *weight = { *row }.numbers()[n];
            }
        }
    }
    weights
}

/// Packs up to 32 outputs [n, K] into K rows; columns from n on are left.
pub fn pack_panel(outputs: &[f32], to: &mut [Row]) {
    pack_rows(outputs, to);
}

/// Rounds the first `k` columns of rows to bfloat16; those behind them become 0.
pub struct Round<'a> {
    pub x: View<'a>,
    pub k: usize,
    pub to: &'a mut [HalfRow],
}

impl Kernel for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (p, to) in self.to.chunks_mut(self.x.len().max(1)).enumerate() {
            let there = (self.k - p * PANEL).min(PANEL);
            for (from, to) in self.x.panel(p).iter().zip(to) {
                for (x, to) in from.0.iter().zip(&mut to.0) {
                    *to = f32_to_bf16(*x);
                }
                to.0[there..].fill(0);
            }
        }
    }
}

/// Widens a panel. Plain loops: with the instructions of a path the compiler makes vectors of them.
struct Widen<'a> {
    rows: &'a [HalfRow],
    is_bf16: bool,
    to: &'a mut [Row],
}

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (from, to) in self.rows.iter().zip(self.to) {
            if self.is_bf16 {
                to.0 = from.0.map(bf16_to_f32);
            } else {
                to.0 = from.0.map(f16_to_f32);
            }
        }
    }
}
