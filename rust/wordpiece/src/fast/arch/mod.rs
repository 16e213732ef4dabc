//! Instruction sets: what each does in its own way, and the choice between them.
//!
//! The loops ([`super::scan`], [`super::table`]) are written once, over a small trait; each instruction set is a type that
//! can be had only where the CPU has it. All give the same answers as [`scalar`], whose code is the definition.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::buffer::Buffer;
use super::scan::{Masks, Source};
use super::table::{Found, GROUP, Group, Key, Miss, Place, Table, VALUES_AT, Value, Words, read_keys};

/// One instruction set.
///
/// # Safety
///
/// The methods may only be called on a CPU that has it; a value of the type is the proof.
pub(super) unsafe trait Isa: Copy {
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
    #[inline(always)]
    unsafe fn positions(self, mut mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        let mut written = 0;
        // Eight at a time, needed or not: the number of rounds is easier to guess than the number of bits.
        while written < n {
            for i in 0..8 {
                // SAFETY: the caller allows to write 64 numbers, and `written` is a multiple of 8 below that.
                unsafe { to.add(written + i).write(base.wrapping_add(mask.trailing_zeros())) };
                mask &= mask.wrapping_sub(1);
            }
            written += 8;
        }
        n
    }

    /// Writes `base`, `base` + 1, … and `base` + 1, `base` + 2, …: 64 numbers each.
    ///
    /// # Safety
    ///
    /// 64 numbers can be written at both.
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32);

    /// Moves the bytes whose bit is set to the front of a block, and those bits of other masks with them.
    ///
    /// # Safety
    ///
    /// 64 bytes can be read and written at `text`.
    #[inline(always)]
    unsafe fn squeeze(self, kept: u64, text: *mut u8, masks: [u64; 3]) -> [u64; 3] {
        let mut to = [0; 3];
        let (mut rest, mut n) = (kept, 0);
        while rest != 0 {
            let i = rest.trailing_zeros() as usize;
            // SAFETY: the caller allows 64 bytes; `n` never passes `i`.
            unsafe { text.add(n).write(text.add(i).read()) };
            for (to, mask) in to.iter_mut().zip(masks) {
                *to |= (mask >> i & 1) << n;
            }
            n += 1;
            rest &= rest - 1;
        }
        to
    }

    /// Moves the numbers whose bit is set to the front.
    ///
    /// # Safety
    ///
    /// 64 numbers can be read and written at `list`.
    #[inline(always)]
    unsafe fn squeeze_numbers(self, kept: u64, list: *mut u32) {
        let (mut rest, mut n) = (kept, 0);
        while rest != 0 {
            // SAFETY: the caller allows 64 numbers; `n` never passes the bit.
            unsafe { list.add(n).write(list.add(rest.trailing_zeros() as usize).read()) };
            n += 1;
            rest &= rest - 1;
        }
    }

    /// Reads the keys of the words `text[starts[i]..ends[i]]` and where their lines stand; a bit is set for each word
    /// that is too long for a key, whose key and line may be anything.
    ///
    /// # Safety
    ///
    /// From each start on 16 bytes can be read.
    #[inline(always)]
    unsafe fn keys(
        self,
        text: *const u8,
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        place: Place,
        group: &mut Group,
    ) -> u32 {
        // SAFETY: the caller's.
        unsafe { read_keys(text, starts, ends, place, group) }
    }

    /// Where in a line with these keys the value of one of them stands, in bytes; 0 where it is neither.
    ///
    /// # Safety
    ///
    /// Only the CPU.
    #[inline(always)]
    unsafe fn find(self, keys: &[Key; 2], key: &Key) -> usize {
        // Which of the two it is cannot be guessed: chosen by arithmetic.
        let second = usize::from(keys[1].is(*key));
        let there = usize::from(keys[0].is(*key)) | second;
        there * (VALUES_AT + second * size_of::<Value>())
    }
}

/// For each answer of comparing the four halves of two keys with those of one, what [`Isa::find`] says.
#[cfg(target_arch = "x86_64")]
const VALUE_AT: [u8; 256] = {
    let mut at = [0; 256];
    let mut equal = 0;
    while equal < 256 {
        if equal & 0b0011 == 0b0011 {
            at[equal] = VALUES_AT as u8;
        } else if equal & 0b1100 == 0b1100 {
            at[equal] = (VALUES_AT + size_of::<Value>()) as u8;
        }
        equal += 1;
    }
    at
};

/// The instruction sets, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
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

impl InstructionSet {
    /// All paths of this machine, the best last.
    pub fn all_available() -> Vec<InstructionSet> {
        #[cfg(target_arch = "x86_64")]
        let simd = [avx2::Avx2::new().map(InstructionSet::Avx2), avx512::Avx512::new().map(InstructionSet::Avx512)];
        #[cfg(target_arch = "aarch64")]
        let simd = [neon::Neon::new().map(InstructionSet::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let simd: [Option<InstructionSet>; 0] = [];
        std::iter::once(InstructionSet::Scalar).chain(simd.into_iter().flatten()).collect()
    }

    /// The best path of this machine.
    pub fn detect() -> InstructionSet {
        InstructionSet::all_available().pop().unwrap_or(InstructionSet::Scalar)
    }

    /// Its name, as tests and benchmarks print it.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(_) => "neon",
        }
    }

    /// Scans a text up to the first character that does not fit where it stands, into `buffer`; returns where it stopped.
    pub(super) fn scan(self, source: Source<'_>, buffer: &mut Buffer) -> usize {
        match self {
            InstructionSet::Scalar => scalar::scan(source, buffer),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(isa) => isa.scan(source, buffer),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(isa) => isa.scan(source, buffer),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(isa) => isa.scan(source, buffer),
        }
    }

    /// Appends the ids of words in order; `miss` does so for a word that is not in its line of the table.
    pub(super) fn look_up(self, table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
        match self {
            InstructionSet::Scalar => scalar::look_up(table, words, found, miss),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(isa) => isa.look_up(table, words, found, miss),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(isa) => isa.look_up(table, words, found, miss),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(isa) => isa.look_up(table, words, found, miss),
        }
    }
}
