//! The operations that each instruction set implements.

use crate::fast::key::{GROUP, KeyGroup, LineHash, WordKey};
use crate::fast::line::{LineValue, VALUES_OFFSET};

/// Number of bytes that are classified at a time.
pub(in crate::fast) const BLOCK: usize = 64;

/// The classes of the bytes of a block, a bit for each byte, the first in the lowest. A byte is in one class or in
/// none: white space and the later bytes of multi-byte characters are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fast) struct ByteClasses {
    /// ASCII letters and digits.
    pub word: u64,
    /// Other graphic ASCII characters, each of which is a word by itself.
    pub punct: u64,
    /// Bytes that need a closer look: the first bytes of multi-byte characters, and control characters.
    pub odd: u64,
}

/// The operations of one instruction set.
///
/// # Safety
///
/// An implementation may use instructions that not every CPU has, provided that a value of the type exists only on CPUs
/// that have them. All implementations must return what [`Scalar`](super::Scalar) returns, and must write no memory
/// beyond what each method names.
pub(in crate::fast) unsafe trait Primitives: Copy {
    /// Classifies the `n` bytes at `from` and copies them to `to`, white space as spaces and, with `LOWER`, ASCII
    /// capitals as lower case. Bits from `n` on are 0; bytes of `to` from `n` on are arbitrary, but initialised.
    ///
    /// # Safety
    ///
    /// `n ≤ 64`; `n` initialised bytes must be readable at `from`, and 64 writable at `to`. The two must not overlap.
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> ByteClasses;

    /// Writes `base` plus the index of each set bit of `mask`, in ascending order, and returns how many there are.
    ///
    /// # Safety
    ///
    /// 64 numbers must be writable at `to`, however few bits are set.
    #[inline(always)]
    unsafe fn positions(self, mut mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        let mut written = 0;
        // In steps of eight, more than needed: the number of steps is easier to predict than the number of bits.
        while written < n {
            for i in 0..8 {
                // SAFETY: `written` is a multiple of 8 below `n ≤ 64`, so `written + i` is below 64.
                unsafe { to.add(written + i).write(base.wrapping_add(mask.trailing_zeros())) };
                mask &= mask.wrapping_sub(1);
            }
            written += 8;
        }
        n
    }

    /// Writes the 64 numbers from `base` on to `from`, and those from `base` + 1 on to `to`; they wrap around at 2³².
    ///
    /// # Safety
    ///
    /// 64 numbers must be writable at each of `from` and `to`.
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32);

    /// Of 64 bytes, moves the ones whose bit is set in `kept` to the front, and likewise the bits of each mask.
    ///
    /// # Safety
    ///
    /// 64 initialised bytes must be readable and writable at `text`.
    #[inline(always)]
    unsafe fn squeeze(self, kept: u64, text: *mut u8, masks: [u64; 3]) -> [u64; 3] {
        let mut to = [0; 3];
        let (mut rest, mut n) = (kept, 0);
        while rest != 0 {
            let i = rest.trailing_zeros() as usize;
            // SAFETY: `i` is below 64, and `n`, the number of set bits before it, is at most `i`.
            unsafe { text.add(n).write(text.add(i).read()) };
            for (to, mask) in to.iter_mut().zip(masks) {
                *to |= (mask >> i & 1) << n;
            }
            n += 1;
            rest &= rest - 1;
        }
        to
    }

    /// Of 64 numbers, moves the ones whose bit is set in `kept` to the front.
    ///
    /// # Safety
    ///
    /// 64 initialised numbers must be readable and writable at `list`.
    #[inline(always)]
    unsafe fn squeeze_numbers(self, kept: u64, list: *mut u32) {
        let (mut rest, mut n) = (kept, 0);
        while rest != 0 {
            // SAFETY: the index of a bit is below 64, and `n`, the number of set bits before it, is at most that index.
            unsafe { list.add(n).write(list.add(rest.trailing_zeros() as usize).read()) };
            n += 1;
            rest &= rest - 1;
        }
    }

    /// Reads the keys of the words `text[starts[i]..ends[i]]` into `group`, with their line offsets. Returns a mask of
    /// the words that are longer than a key; for those, key and line offset are arbitrary.
    ///
    /// # Safety
    ///
    /// From each of `starts`, 16 initialised bytes must be readable at `text`.
    #[inline(always)]
    unsafe fn keys(
        self,
        text: *const u8,
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        hash: LineHash,
        group: &mut KeyGroup,
    ) -> u32 {
        // SAFETY: the contract of `read_short` is the same as this method's.
        unsafe { group.read_short(text, starts, ends, hash) }
    }

    /// Returns the distance in bytes from the start of a line with these two keys to the value of `key`, to the second one
    /// if it is both; 0 if it is neither of them.
    ///
    /// # Safety
    ///
    /// None beyond the CPU: a value of the type proves it.
    #[inline(always)]
    unsafe fn find(self, keys: &[WordKey; 2], key: &WordKey) -> usize {
        // Which of the two it is cannot be predicted: arithmetic instead of a branch.
        let second = usize::from(keys[1].equals(*key));
        let found = usize::from(keys[0].equals(*key)) | second;
        found * (VALUES_OFFSET + second * size_of::<LineValue>())
    }
}

/// The result of [`Primitives::find`] for each outcome of comparing the four 64-bit halves of a line's two keys with
/// the halves of one key, a bit for each half.
#[cfg(target_arch = "x86_64")]
pub(super) const VALUE_OFFSETS: [u8; 256] = {
    let mut offsets = [0; 256];
    let mut equal = 0;
    while equal < 256 {
        if equal & 0b1100 == 0b1100 {
            offsets[equal] = (VALUES_OFFSET + size_of::<LineValue>()) as u8;
        } else if equal & 0b0011 == 0b0011 {
            offsets[equal] = VALUES_OFFSET as u8;
        }
        equal += 1;
    }
    offsets
};
