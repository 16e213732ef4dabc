//! ASCII, 64 bytes at a time: lower case, and where words begin and end.
//!
//! The loop is written once, over a small trait; each instruction set is a type that can be had only where the CPU has
//! it, and says how one block is classified and how a bit mask becomes a list of positions. All give the same answer as
//! [`scalar`], whose code is the definition.
//!
//! A block becomes three masks, a bit for each byte: `word` (letters, digits and all else that makes words), `punct`
//! (each a word of its own) and `odd` (bytes that this scan leaves to others: not ASCII, or removed by cleaning); what is
//! in none of them is white space. A word begins where `word` follows something else, and at each `punct`; it ends where
//! `word` is followed by something else, and after each `punct`. Two shifts and a few ands say so for 64 bytes at once,
//! without a branch; a carry of one bit leads from block to block.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::buffer::Buffer;

/// Bytes classified at a time.
pub(super) const BLOCK: usize = 64;

/// The classes of 64 bytes, the first in the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    pub word: u64,
    pub punct: u64,
    pub odd: u64,
}

/// One instruction set.
///
/// # Safety
///
/// The methods may only be called on a CPU that has it; a value of the type is the proof.
unsafe trait Isa: Copy {
    /// Classifies the `n ≤ 64` bytes at `from` and writes them to `to`, white space as spaces and, when `LOWER`, upper
    /// case as lower. Bits from `n` on are 0.
    ///
    /// # Safety
    ///
    /// `n` bytes can be read at `from`, 64 can be written at `to`.
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> Masks;

    /// Writes `base` plus the index of each bit of `mask`, in order, and returns their number.
    ///
    /// # Safety
    ///
    /// 64 numbers can be written at `to`.
    unsafe fn positions(self, mask: u64, base: u32, to: *mut u32) -> usize;

    /// Writes `base`, `base` + 1, … and `base` + 1, `base` + 2, …: 64 numbers each.
    ///
    /// # Safety
    ///
    /// 64 numbers can be written at both.
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32);
}

/// The instruction sets, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Everywhere.
    Scalar,
    /// x86-64 with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// x86-64 with AVX-512 BW, VL, VBMI and VBMI2.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    /// 64-bit Arm.
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Path {
    /// All paths of this machine, the best last.
    pub fn all_available() -> Vec<Path> {
        #[cfg(target_arch = "x86_64")]
        let simd = [avx2::Avx2::new().map(Path::Avx2), avx512::Avx512::new().map(Path::Avx512)];
        #[cfg(target_arch = "aarch64")]
        let simd = [neon::Neon::new().map(Path::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let simd: [Option<Path>; 0] = [];
        std::iter::once(Path::Scalar).chain(simd.into_iter().flatten()).collect()
    }

    /// The best path of this machine.
    pub fn detect() -> Path {
        Path::all_available().pop().unwrap_or(Path::Scalar)
    }

    /// Its name, as tests and benchmarks print it.
    pub fn name(self) -> &'static str {
        match self {
            Path::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Path::Neon(_) => "neon",
        }
    }

    /// Scans `text[at..end]` up to the first odd byte, into `buffer`; returns where it stopped.
    pub(super) fn scan(self, text: &[u8], at: usize, end: usize, lower: bool, buffer: &mut Buffer) -> usize {
        assert!(at <= end && end <= text.len());
        match self {
            Path::Scalar => scalar::scan(text, at, end, lower, buffer),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(isa) => isa.scan(text, at, end, lower, buffer),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(isa) => isa.scan(text, at, end, lower, buffer),
            #[cfg(target_arch = "aarch64")]
            Path::Neon(isa) => isa.scan(text, at, end, lower, buffer),
        }
    }
}

/// The loop. Inlined into a function of each instruction set, so that its intrinsics are.
///
/// # Safety
///
/// As for `isa`; and `at <= end <= text.len()`.
#[inline(always)]
unsafe fn scan_with<I: Isa>(isa: I, text: &[u8], at: usize, end: usize, lower: bool, buffer: &mut Buffer) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match (lower, buffer.aligned) {
            (false, false) => scan_loop::<I, false, false>(isa, text, at, end, buffer),
            (false, true) => scan_loop::<I, false, true>(isa, text, at, end, buffer),
            (true, false) => scan_loop::<I, true, false>(isa, text, at, end, buffer),
            (true, true) => scan_loop::<I, true, true>(isa, text, at, end, buffer),
        }
    }
}

/// # Safety
///
/// As for [`scan_with`].
#[inline(always)]
unsafe fn scan_loop<I: Isa, const LOWER: bool, const ALIGNED: bool>(
    isa: I,
    text: &[u8],
    mut at: usize,
    end: usize,
    buffer: &mut Buffer,
) -> usize {
    // Whether the byte before is inside a word, and whether it is punctuation.
    let mut in_word = u64::from(buffer.open);
    let mut after_punct = 0u64;
    while at < end {
        let room = buffer.room(BLOCK);
        let n = (end - at).min(BLOCK);
        // SAFETY: `n` bytes follow `at` in the text; the buffer has room for 64 of everything; the caller has the CPU.
        let (masks, n_kept) = unsafe {
            let masks = isa.classify::<LOWER>(text.as_ptr().add(at), n, room.text);
            let n_kept = if masks.odd == 0 { n } else { masks.odd.trailing_zeros() as usize };
            let kept = if n_kept == BLOCK { u64::MAX } else { (1 << n_kept) - 1 };
            let (word, punct) = (masks.word & kept, masks.punct & kept);
            let starts = (word & !(word << 1 | in_word)) | punct;
            let ends = (((word << 1 | in_word) & !word) | (punct << 1 | after_punct)) & kept;
            let n_starts = isa.positions(starts, room.base, room.starts);
            let n_ends = isa.positions(ends, room.base, room.ends);
            if ALIGNED {
                isa.count_up(buffer.unit, room.from, room.to);
            }
            if n_kept > 0 {
                in_word = word >> (n_kept - 1) & 1;
                after_punct = punct >> (n_kept - 1) & 1;
            }
            buffer.advance(n_kept, n_starts, n_ends);
            (masks, n_kept)
        };
        at += n_kept;
        if masks.odd != 0 {
            break;
        }
    }
    if after_punct == 1 {
        buffer.end_word();
    }
    buffer.open = in_word == 1;
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scanned(path: Path, text: &[u8], lower: bool, aligned: bool, open: bool) -> (usize, Buffer) {
        let mut buffer = Buffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        let at = path.scan(text, 0, text.len(), lower, &mut buffer);
        (at, buffer)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn every_path_equals_the_scalar_one(
            text in prop::collection::vec(
                prop_oneof![12 => prop::sample::select(b"aZ09 .,[]_\t\n\r".to_vec()), 1 => any::<u8>()],
                0..300,
            ),
            lower in any::<bool>(),
            aligned in any::<bool>(),
            open in any::<bool>(),
        ) {
            let expected = scanned(Path::Scalar, &text, lower, aligned, open);
            for path in Path::all_available() {
                prop_assert_eq!(&scanned(path, &text, lower, aligned, open), &expected, "{}", path.name());
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_of_a_block() {
        let paths = Path::all_available();
        println!("paths of this machine: {:?}", paths.iter().map(|path| path.name()).collect::<Vec<_>>());
        for byte in 0..=255u8 {
            for length in [1, 63, 64, 65, 130] {
                for place in (0..length).filter(|place| place % 7 == 0 || *place > length - 3) {
                    let mut text = vec![b'A'; length];
                    text[place] = byte;
                    let expected = scanned(Path::Scalar, &text, true, true, false);
                    for &path in &paths {
                        assert_eq!(scanned(path, &text, true, true, false), expected, "{} {byte} {place}", path.name());
                    }
                }
            }
        }
    }
}
