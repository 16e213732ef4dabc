//! Quantization to int8: weights once, by output and group of 64 inputs; inputs on the fly, by row and group.
//!
//! A group of numbers x is stored as q = round(x·127/m), ties to even, for its greatest magnitude m, with the scale m·(1/127).
//!
//! Input j of a layer is multiplied by a factor fⱼ before it is quantized, and the weights of input j are divided by fⱼ.
//! That leaves the product as it is. With fⱼ = √(rms(Wⱼ)/rms(Xⱼ)), the root mean squares of the weights and of the values of
//! input j, the few inputs that are much larger than the others in their group do not use up its range (SmoothQuant, Xiao et
//! al. 2022, which has maxima instead).
//!
//! An input with the factor 0 is not quantized: it is multiplied in float32 by its weights, which stay as they are. So the
//! few inputs that some token has many times larger than all others (such as one column of the vector of `[CLS]`) take no
//! digits from their group.

use crate::arch::{Kernel, Simd};
use crate::matrix::{ByteRow, PANEL, QuadRow, Row, SumRow, View, pad_to_panels, panels};
use crate::numbers::{GROUP, Numbers};
use crate::tile::QUADS;

/// The largest magnitude of a quantized number. −128 is not used.
const MOST: f32 = 127.0;

/// Returns how many groups K inputs have.
pub const fn groups(k: usize) -> usize {
    k.div_ceil(GROUP)
}

/// A weight [N, K] as int8 numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuantizedWeight {
    /// The numbers [N, K], from −127 to 127.
    pub values: Vec<i8>,
    /// The scale of each group [N, ⌈K/64⌉].
    pub scales: Vec<f32>,
    /// The weights of the inputs whose factor is 0, [N, n] for n of them; their numbers in `values` are 0.
    pub columns: Vec<f32>,
}

impl QuantizedWeight {
    /// Quantizes a weight [N, K], the column of each input divided by its factor, or kept as it is if that is 0.
    ///
    /// # Errors
    ///
    /// The index of the first number that is not finite, or not finite after the division.
    ///
    /// # Panics
    ///
    /// If the length of the weight is not a multiple of the number of factors.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::gemm::QuantizedWeight;
    /// use wordpiece_kernels::numbers::Numbers;
    ///
    /// let weight = QuantizedWeight::new(Numbers::F32(&[1.27, -0.5, 0.0]), &[1.0; 3]).unwrap();
    /// assert_eq!(weight.values, [127, -50, 0]);
    /// assert_eq!(weight.scales, [0.01]);
    /// assert_eq!(QuantizedWeight::new(Numbers::F32(&[1.0, f32::NAN]), &[1.0; 2]), Err(1));
    ///
    /// let weight = QuantizedWeight::new(Numbers::F32(&[1.27, -0.5, 0.01]), &[1.0, 0.0, 1.0]).unwrap();
    /// assert_eq!((weight.values, weight.columns), (vec![127, 0, 1], vec![-0.5]));
    /// ```
    pub fn new(weight: Numbers<'_>, factors: &[f32]) -> Result<QuantizedWeight, usize> {
        let k = factors.len();
        assert!(weight.is_empty() || weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
        let mut quantized = QuantizedWeight {
            values: Vec::with_capacity(weight.len()),
            scales: Vec::with_capacity(weight.len() / k.max(1) * groups(k)),
            columns: Vec::new(),
        };
        let mut line = vec![0.0; k];
        for start in (0..weight.len()).step_by(k.max(1)) {
            weight.read(start, &mut line);
            for (j, (x, factor)) in line.iter_mut().zip(factors).enumerate() {
                if *factor != 0.0 {
                    *x /= factor;
                } else if x.is_finite() {
                    quantized.columns.push(std::mem::take(x));
                } else {
                    return Err(start + j);
                }
            }
            for group in line.chunks(GROUP) {
                let most = f32::from_bits(group.iter().fold(0, |most, x| most.max(magnitude_bits(*x))));
                if !most.is_finite() {
                    return Err(start + line.iter().position(|x| !x.is_finite()).unwrap_or(0));
                }
                let (scale, inverse) = scale_of(most);
                quantized.scales.push(scale);
                quantized.values.extend(group.iter().map(|x| rounded(x * inverse)));
            }
        }
        Ok(quantized)
    }

    /// Returns the numbers [N, K] as float32, each multiplied by its scale and the factor of its input, or its weight if that
    /// is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::gemm::QuantizedWeight;
    /// use wordpiece_kernels::numbers::Numbers;
    ///
    /// let (weight, factors) = ([1.27, -0.5], [1.0, 0.5]);
    /// let quantized = QuantizedWeight::new(Numbers::F32(&weight), &factors).unwrap();
    /// for (widened, x) in quantized.widen(&factors).iter().zip(weight) {
    ///     assert!((widened - x).abs() < 0.01);
    /// }
    /// ```
    pub fn widen(&self, factors: &[f32]) -> Vec<f32> {
        let k = factors.len();
        let rows = self.values.chunks(k.max(1)).zip(self.scales.chunks(groups(k).max(1)));
        let number = |(j, q): (usize, &i8), scales: &[f32]| f32::from(*q) * scales[j / GROUP] * factors[j];
        let mut widened: Vec<f32> =
            rows.flat_map(|(row, scales)| row.iter().enumerate().map(move |x| number(x, scales))).collect();
        let kept = unquantized(factors);
        for (row, columns) in widened.chunks_mut(k.max(1)).zip(self.columns.chunks(kept.len().max(1))) {
            for (j, x) in kept.iter().zip(columns) {
                row[*j] = *x;
            }
        }
        widened
    }
}

/// Returns the inputs whose factor is 0.
fn unquantized(factors: &[f32]) -> Vec<usize> {
    factors.iter().enumerate().filter(|(_, factor)| **factor == 0.0).map(|(j, _)| j).collect()
}

/// The bits of |x|, which have the order of the magnitudes; infinity and NaN are the largest.
#[inline(always)]
fn magnitude_bits(x: f32) -> u32 {
    x.to_bits() & 0x7fff_ffff
}

/// Rounds a number from −127 to 127, ties to even. Unlike `round_ties_even`, this is vectorized on every CPU.
#[inline(always)]
fn rounded(x: f32) -> i8 {
    /// 1.5·2²³: the sum has no bits for fractions, so the addition rounds, and its lowest byte is the lowest byte of
    /// the integer.
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT).to_bits() as i8
}

/// Returns the scale of a group whose greatest magnitude is `most`, and what its numbers are multiplied by; both are 0 for
/// numbers that are too small for the second.
#[inline(always)]
fn scale_of(most: f32) -> (f32, f32) {
    let inverse = MOST / most;
    if inverse == f32::INFINITY { (0.0, 0.0) } else { (most * (1.0 / MOST), inverse) }
}

/// The packed int8 weights of dense layers with the same input.
pub(super) struct PackedBytes {
    /// For each panel of outputs, [`QUADS`] rows for each group of inputs, 0 beyond the last input.
    quads: Vec<QuadRow>,
    /// For each panel of outputs, a row for each group of inputs.
    scales: Vec<Row>,
    /// As `scales`: −128 times the sum of the weights.
    sums: Vec<SumRow>,
    /// What each input is multiplied by, by panels; 0 beyond the last.
    factors: Vec<Row>,
    /// The inputs that are not quantized.
    unquantized: Vec<usize>,
    /// For each panel of outputs, a row of weights for each of `unquantized`.
    columns: Vec<Row>,
}

/// One panel of packed int8 weights.
#[derive(Clone, Copy)]
pub struct BytePanel<'a> {
    /// [`QUADS`] rows for each group.
    pub quads: &'a [QuadRow],
    /// A row for each group.
    pub scales: &'a [Row],
    /// A row for each group: −128 times the sum of the weights.
    pub sums: &'a [SumRow],
    /// The weights of each input that is not quantized.
    pub columns: &'a [Row],
}

impl PackedBytes {
    /// Packs weights that were quantized with the same factors, each beginning at a panel of outputs.
    ///
    /// # Panics
    ///
    /// If the numbers of values, scales and factors do not agree.
    pub(super) fn new(layers: &[(&[i8], &[f32], &[f32])], factors: &[f32]) -> PackedBytes {
        let k = factors.len();
        let unquantized = unquantized(factors);
        let kept = unquantized.len();
        let (groups, rows) = (groups(k), groups(k) * QUADS);
        let count: usize = layers.iter().map(|layer| panels(layer.0.len() / k.max(1))).sum();
        let mut packed = PackedBytes {
            quads: vec![QuadRow::ZERO; count * rows],
            scales: vec![Row::ZERO; count * groups],
            sums: vec![SumRow::ZERO; count * groups],
            factors: pad_to_panels(factors),
            unquantized,
            columns: vec![Row::ZERO; count * kept],
        };
        let mut panel = 0;
        for (values, scales, columns) in layers {
            let n = values.len() / k.max(1);
            let fits = values.len() == n * k && scales.len() == n * groups && columns.len() == n * kept;
            assert!(fits, "{n} outputs, {k} inputs, {kept} of them not quantized");
            for (i, columns) in columns.chunks(kept.max(1)).enumerate() {
                for (row, x) in packed.columns[(panel + i / PANEL) * kept..].iter_mut().zip(columns) {
                    row.0[i % PANEL] = *x;
                }
            }
            for (i, (values, scales)) in values.chunks(k.max(1)).zip(scales.chunks(groups.max(1))).enumerate() {
                let (panel, column) = (panel + i / PANEL, i % PANEL);
                for (row, quad) in packed.quads[panel * rows..].iter_mut().zip(values.chunks(4)) {
                    row.0[column][..quad.len()].copy_from_slice(quad);
                }
                let groups = panel * groups..(panel + 1) * groups;
                for ((sums, to), (group, scale)) in packed.sums[groups.clone()]
                    .iter_mut()
                    .zip(&mut packed.scales[groups])
                    .zip(values.chunks(GROUP).zip(scales.iter()))
                {
                    sums.0[column] = -128 * group.iter().map(|q| i32::from(*q)).sum::<i32>();
                    to.0[column] = *scale;
                }
            }
            panel += panels(n);
        }
        packed
    }

    /// Returns one panel of outputs.
    #[inline]
    pub(super) fn panel(&self, panel: usize) -> BytePanel<'_> {
        let groups = (self.factors.len() * PANEL).div_ceil(GROUP);
        let range = panel * groups..(panel + 1) * groups;
        BytePanel {
            quads: &self.quads[range.start * QUADS..range.end * QUADS],
            scales: &self.scales[range.clone()],
            sums: &self.sums[range],
            columns: &self.columns[panel * self.unquantized.len()..][..self.unquantized.len()],
        }
    }

    /// Returns the weight [N, K] whose outputs begin at panel `first_panel`, as it was packed.
    pub(super) fn unpack(&self, first_panel: usize, n: usize, k: usize) -> QuantizedWeight {
        let mut weight = QuantizedWeight::default();
        for i in 0..n {
            let (panel, column) = (self.panel(first_panel + i / PANEL), i % PANEL);
            weight.values.extend(panel.quads.iter().flat_map(|row| row.0[column]).take(k));
            weight.scales.extend(panel.scales.iter().map(|row| row.0[column]));
            weight.columns.extend(panel.columns.iter().map(|row| row.0[column]));
        }
        weight
    }

    /// The inputs that are not quantized.
    pub(super) fn unquantized(&self) -> &[usize] {
        &self.unquantized
    }

    /// What each input is multiplied by, by panels; 0 beyond the last.
    pub(super) fn factors(&self) -> &[Row] {
        &self.factors
    }
}

/// Quantizes the first `k` columns of `x`, each multiplied by its factor; columns beyond them count as 0.
pub(super) struct QuantizeRows<'a> {
    pub x: View<'a>,
    pub k: usize,
    /// The factors by panels.
    pub factors: &'a [Row],
    /// ⌈K/64⌉ groups of `rows` rows; those beyond the rows of `x` are set to 0.
    pub bytes: &'a mut [ByteRow],
    /// How many rows a group of `bytes` has, at least as many as `x`.
    pub rows: usize,
    /// Whether [`Simd::byte_bias`] is added to the numbers.
    pub is_biased: bool,
    /// The scales of all rows, group by group.
    pub scales: &'a mut [f32],
}

impl Kernel for QuantizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let QuantizeRows { x, k, factors, bytes, rows, is_biased, scales } = self;
        let bias = if is_biased { simd.byte_bias() } else { 0 };
        for group in 0..groups(k) {
            let columns = (k - group * GROUP).min(GROUP);
            let first = group * (GROUP / PANEL);
            let scales = &mut scales[group * x.len()..][..x.len()];
            let (to, beyond) = bytes[group * rows..][..rows].split_at_mut(x.len());
            beyond.fill(ByteRow::ZERO);
            if columns <= PANEL {
                let group = GroupOfRows { x: [x.panel(first)], factors: [&factors[first]], columns };
                to.fill(ByteRow([bias; GROUP]));
                group.quantize::<S, false>(simd, bias, scales, to);
                continue;
            }
            let (x, factors) = ([x.panel(first), x.panel(first + 1)], [&factors[first], &factors[first + 1]]);
            let group = GroupOfRows { x, factors, columns };
            if columns == GROUP {
                group.quantize::<S, true>(simd, bias, scales, to);
            } else {
                group.quantize::<S, false>(simd, bias, scales, to);
            }
        }
    }
}

/// The inputs of one group, which has `P` panels, and their factors.
struct GroupOfRows<'a, const P: usize> {
    x: [&'a [Row]; P],
    factors: [&'a Row; P],
    /// How many columns the group has.
    columns: usize,
}

impl<const P: usize> GroupOfRows<'_, P> {
    /// Returns the product of columns `at..at + LANES` of panel `p` of a row and their factors, 0 beyond the last column;
    /// `WHOLE` means that none is.
    #[inline(always)]
    fn scaled<S: Simd, const WHOLE: bool>(&self, simd: S, row: usize, p: usize, at: usize) -> S::V {
        let product = simd.mul(simd.load(&self.x[p][row], at), simd.load(self.factors[p], at));
        if WHOLE {
            return product;
        }
        simd.first(self.columns.saturating_sub(p * PANEL + at), product, simd.splat(0.0))
    }

    /// Writes the scales of all rows and the first `P` panels of their numbers, plus `bias`.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "loops over constant ranges are unrolled")]
    fn quantize<S: Simd, const WHOLE: bool>(self, simd: S, bias: u8, scales: &mut [f32], to: &mut [ByteRow]) {
        /// Rows whose maxima are found before their numbers are rounded: the CPU computes the maxima of several rows at once.
        const ROWS: usize = 16;
        for start in (0..to.len()).step_by(ROWS) {
            let end = to.len().min(start + ROWS);
            let mut inverses = [0.0; ROWS];
            for row in start..end {
                let mut most = simd.splat(0.0);
                for p in 0..P {
                    for at in (0..PANEL).step_by(S::LANES) {
                        most = simd.max_magnitude(most, self.scaled::<S, WHOLE>(simd, row, p, at));
                    }
                }
                (scales[row], inverses[row - start]) = scale_of(simd.greatest_magnitude(most));
            }
            for row in start..end {
                let inverse = simd.splat(inverses[row - start]);
                for p in 0..P {
                    for at in (0..PANEL).step_by(S::LANES) {
                        let scaled = self.scaled::<S, WHOLE>(simd, row, p, at);
                        simd.store_bytes(&mut to[row], p * PANEL + at, simd.mul(scaled, inverse), bias);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{QuantizedWeight, rounded, scale_of};
    use crate::numbers::Numbers;

    #[test]
    fn groups_of_zeros_and_of_tiny_numbers_are_zero() {
        assert_eq!(scale_of(0.0), (0.0, 0.0));
        assert_eq!(scale_of(1e-40), (0.0, 0.0));
        assert_eq!(scale_of(254.0), (2.0, 0.5));
        assert!(scale_of(f32::NAN).0.is_nan());
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_ties_to_even() {
        for i in (-254_000..=254_000).step_by(if cfg!(miri) { 500 } else { 1 }) {
            let x = i as f32 / 2000.0;
            assert_eq!(f32::from(rounded(x)), x.round_ties_even(), "{x}");
            assert_eq!(f32::from(rounded(x.next_up())), x.next_up().clamp(-127.0, 127.0).round_ties_even(), "{x}");
        }
    }

    #[test]
    fn factors_divide_weights_and_widening_undoes_it() {
        let weight = [1.0, 2.0, -4.0, 0.25];
        let quantized = QuantizedWeight::new(Numbers::F32(&weight), &[0.5, 4.0]).unwrap();
        assert_eq!(quantized.values, [127, 32, -127, 1]); // 2 and 0.5; −8 and 0.0625
        for (x, near) in weight.iter().zip(quantized.widen(&[0.5, 4.0])) {
            assert!((x - near).abs() <= 4.0 / 127.0, "{x} {near}");
        }
        assert_eq!(QuantizedWeight::new(Numbers::F32(&[3e38, 1.0]), &[0.1, 1.0]), Err(0));
    }

    #[test]
    fn weights_of_inputs_without_a_factor_stay_as_they_are() {
        let weight = [1.0, 1e30, -4.0, 0.25, -7e-9, 0.5];
        let quantized = QuantizedWeight::new(Numbers::F32(&weight), &[0.5, 0.0, 4.0]).unwrap();
        assert_eq!(quantized.values, [127, 0, -64, 127, 0, 32]);
        assert_eq!(quantized.columns, [1e30, -7e-9]);
        let widened = quantized.widen(&[0.5, 0.0, 4.0]);
        assert_eq!((widened[1], widened[4]), (1e30, -7e-9));
        assert_eq!(QuantizedWeight::new(Numbers::F32(&[1.0, 2.0, f32::NAN, 1.0]), &[0.0, 1.0]), Err(2));
    }
}
