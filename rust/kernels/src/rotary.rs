//! Rotary position embeddings (Su et al. 2021): queries and keys are rotated by angles that grow with their position.
//!
//! The pair of columns j and j + d/2 of a head is rotated by p·ω_j at position p. Frequencies and angles are float32, as in
//! transformers; cosines and sines are computed in float64, by plain arithmetic: the C libraries of systems differ.

use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::matrix::{Matrix, PANEL, ViewMut, panels};

/// The cosines and sines of the angles of all rows, [rows, d/2] each.
#[derive(Default)]
pub struct Rotation {
    cos: Matrix,
    sin: Matrix,
}

impl Rotation {
    /// Computes the angles of rows with these positions, `frequencies` being ω.
    pub fn fill(&mut self, positions: &[u32], frequencies: &[f32]) {
        let (rows, half) = (positions.len(), frequencies.len());
        let mut cos = self.cos.reshape(rows, half).view_mut();
        let mut sin = self.sin.reshape(rows, half).view_mut();
        for (p, frequencies) in frequencies.chunks(PANEL).enumerate() {
            let rows = cos.panel(p).iter_mut().zip(sin.panel(p)).zip(positions);
            for ((cos, sin), position) in rows {
                for ((cos, sin), frequency) in cos.0.iter_mut().zip(&mut sin.0).zip(frequencies) {
                    let angle = f64::from(*position as f32 * frequency);
                    let (of_cos, of_sin) = cos_sin(angle);
                    (*cos, *sin) = (of_cos as f32, of_sin as f32);
                }
            }
        }
    }
}

/// Returns the cosine and the sine of an angle, within 4e-16 up to a million.
fn cos_sin(x: f64) -> (f64, f64) {
    /// π/2 in parts, the first two with so few bits that n times them is exact.
    const HALF_PI: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    let n = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
    let r = x - n * HALF_PI[0] - n * HALF_PI[1] - n * HALF_PI[2]; // at most π/4
    let square = r * r;
    // The Taylor series, whose next terms are below 3e-18.
    let (mut cos, mut sin) = (1.0, 1.0);
    for k in (1..=8).rev() {
        let k = f64::from(2 * k);
        cos = 1.0 - square / (k * (k - 1.0)) * cos;
        sin = 1.0 - square / (k * (k + 1.0)) * sin;
    }
    let sin = r * sin;
    match n as i64 & 3 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// Rotates all heads of each row of `x`, in place: (u, v) becomes (u·cos − v·sin, v·cos + u·sin), where u is the first and
/// v the second half of a head. Head h has the columns h·d to (h + 1)·d, and d is `size`.
///
/// # Panics
///
/// If the shapes do not agree, or `size` is odd.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::rotary::{Rotation, rotate};
/// use wordpiece_kernels::{InstructionSet, Matrix};
///
/// let mut x = Matrix::default();
/// x.fill_rows(2, 2, &[3.0, 4.0, 3.0, 4.0]); // two rows of one head of two columns
/// let mut rotation = Rotation::default();
/// rotation.fill(&[0, 1], &[std::f32::consts::FRAC_PI_2]); // a quarter turn from one position to the next
/// rotate(InstructionSet::detect(), &rotation, 1, 2, &mut x.view_mut());
/// let mut row = [0.0; 2];
/// x.copy_row(0, &mut row);
/// assert_eq!(row, [3.0, 4.0]);
/// x.copy_row(1, &mut row);
/// assert!((row[0] + 4.0).abs() < 1e-6 && (row[1] - 3.0).abs() < 1e-6);
/// ```
pub fn rotate(instruction_set: InstructionSet, by: &Rotation, heads: usize, size: usize, x: &mut ViewMut<'_>) {
    let (cos, sin) = (by.cos.view(), by.sin.view());
    assert!(size.is_multiple_of(2) && cos.len() == x.len() && sin.len() == x.len());
    assert!(x.is_empty() || cos.width() == panels(size / 2));
    arch::run(instruction_set, Rotate { by, heads, size, x });
}

struct Rotate<'a, 'x> {
    by: &'a Rotation,
    heads: usize,
    size: usize,
    x: &'a mut ViewMut<'x>,
}

impl Kernel for Rotate<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Rotate { by, heads, size, x } = self;
        let (cos, sin, half, rows) = (by.cos.view(), by.sin.view(), size / 2, x.len());
        // Vectors of columns lie within panels: LANES divides PANEL.
        let step = if half.is_multiple_of(S::LANES) { S::LANES } else { 1 };
        for head in 0..heads {
            for j in (0..half).step_by(step) {
                let (u, v) = (head * size + j, head * size + j + half);
                let (cos, sin, at) = (cos.panel(j / PANEL), sin.panel(j / PANEL), j % PANEL);
                for row in 0..rows {
                    let (cos, sin) = (&cos[row], &sin[row]);
                    if step == 1 {
                        let (cos, sin) = (cos.0[at], sin.0[at]);
                        let (a, b) = (x.panel(u / PANEL)[row].0[u % PANEL], x.panel(v / PANEL)[row].0[v % PANEL]);
                        x.panel(u / PANEL)[row].0[u % PANEL] = a * cos - b * sin;
                        x.panel(v / PANEL)[row].0[v % PANEL] = b * cos + a * sin;
                        continue;
                    }
                    let (cos, sin) = (simd.load(cos, at), simd.load(sin, at));
                    let a = simd.load(&x.panel(u / PANEL)[row], u % PANEL);
                    let b = simd.load(&x.panel(v / PANEL)[row], v % PANEL);
                    let to_u = simd.sub(simd.mul(a, cos), simd.mul(b, sin));
                    let to_v = simd.add(simd.mul(b, cos), simd.mul(a, sin));
                    simd.store(&mut x.panel(u / PANEL)[row], u % PANEL, to_u);
                    simd.store(&mut x.panel(v / PANEL)[row], v % PANEL, to_v);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cos_sin;

    #[test]
    fn cosines_and_sines_are_those_of_the_library_to_its_last_bits() {
        // The functions of Miri are off by some units in the last place, at random.
        let (count, most) = if cfg!(miri) { (100, 2e-15) } else { (200_000, 4e-16) };
        for i in 0..count {
            let x = f64::from(i) * 0.0123 * f64::from(1 + i % 400);
            let (cos, sin) = cos_sin(x);
            assert!((cos - x.cos()).abs() < most && (sin - x.sin()).abs() < most, "{x}: {cos}, {sin}");
        }
        assert_eq!(cos_sin(0.0), (1.0, 0.0));
    }
}
