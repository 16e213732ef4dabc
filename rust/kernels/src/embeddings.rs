//! Embedding tables, as wide as they are stored.

use crate::matrix::{PANEL, ViewMut};

/// Numbers of a table or of a weight, in the type in which they are kept.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// float32.
    F32(&'a [f32]),
    /// float16, as its bits.
    F16(&'a [u16]),
    /// bfloat16, as its bits.
    Bf16(&'a [u16]),
}

impl Numbers<'_> {
    /// How many there are.
    pub fn len(self) -> usize {
        match self {
            Numbers::F32(x) => x.len(),
            Numbers::F16(x) | Numbers::Bf16(x) => x.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Widens those from `start` on, exactly.
    pub fn read(self, start: usize, to: &mut [f32]) {
        let range = start..start + to.len();
        match self {
            Numbers::F32(x) => to.copy_from_slice(&x[range]),
            Numbers::F16(x) => widen(&x[range], to, f16_to_f32),
            Numbers::Bf16(x) => widen(&x[range], to, |bits| f32::from_bits(u32::from(bits) << 16)),
        }
    }
}

fn widen(from: &[u16], to: &mut [f32], f: impl Fn(u16) -> f32) {
    for (to, bits) in to.iter_mut().zip(from) {
        *to = f(*bits);
    }
}

/// IEEE 754 half precision.
fn f16_to_f32(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, (bits >> 10) & 0x1f, u32::from(bits & 0x3ff));
    match exponent {
        // Subnormal: fraction · 2⁻²⁴, exact in float32.
        0 => f32::from_bits(sign | (fraction as f32 * 2f32.powi(-24)).to_bits()),
        0x1f => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (u32::from(exponent) + 112) << 23 | fraction << 13),
    }
}

/// Adds up rows of tables and writes them into row `to` of a matrix, padding columns included.
pub fn sum_rows(parts: &[(Numbers<'_>, usize)], columns: usize, line: &mut [f32], to: usize, out: &mut ViewMut<'_>) {
    let (sum, part) = line.split_at_mut(columns);
    for (i, (table, row)) in parts.iter().enumerate() {
        if i == 0 {
            table.read(row * columns, sum);
        } else {
            table.read(row * columns, &mut part[..columns]);
            for (sum, x) in sum.iter_mut().zip(&*part) {
                *sum += x;
            }
        }
    }
    for (p, from) in sum.chunks(PANEL).enumerate() {
        let row = &mut out.panel(p)[to].0;
        row[..from.len()].copy_from_slice(from);
        row[from.len()..].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::f16_to_f32;

    #[test]
    fn half_precision_is_widened_exactly() {
        for (bits, x) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x8400, -6.103_515_6e-5),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(f16_to_f32(bits), x);
        }
        assert!(f16_to_f32(0x7e00).is_nan() && f16_to_f32(0xfc00) == f32::NEG_INFINITY);
        assert_eq!(f16_to_f32(0x8000).to_bits(), (-0.0f32).to_bits());
    }
}
