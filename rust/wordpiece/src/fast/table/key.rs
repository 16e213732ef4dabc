//! A word as a number of 16 bytes.

use crate::fast::arch::Isa;

/// The longest word that its key holds whole.
pub(in crate::fast) const KEY_BYTES: usize = 16;

/// The longest word that is remembered at all. Keys of words of more than 16 bytes stand for them, and the table compares
/// the words themselves.
pub(in crate::fast) const WORD_BYTES: usize = 255;

/// A word of up to 16 bytes, filled up with zeros; or what stands for a longer one.
///
/// No word holds a zero byte (cleaning has removed them), and none has 255 for its last one, by which the keys of longer
/// words are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub(in crate::fast) struct Key {
    pub low: u64,
    pub high: u64,
}

/// For each length, the bytes of a key that belong to the word.
const KEPT: [Key; KEY_BYTES + 1] = {
    let mut kept = [Key { low: 0, high: 0 }; KEY_BYTES + 1];
    let mut n = 1;
    while n <= KEY_BYTES {
        kept[n].low = if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
        kept[n].high = if n <= 8 { 0 } else { u64::MAX >> (64 - 8 * (n - 8)) };
        n += 1;
    }
    kept
};

/// Odd numbers without a pattern: the golden ratio, e, π and the square root of two, as fractions of 2⁶⁴.
pub(in crate::fast) const FACTORS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xADF8_5458_A2BB_4A9B, 0x243F_6A88_85A3_08D3, 0x6A09_E667_F3BC_C909];

impl Key {
    /// The key of no word: what a word of more than [`WORD_BYTES`] bytes has.
    pub const NONE: Key = Key { low: 0, high: 0 };

    /// The key of the word of `n ≤ 16` bytes at `from`.
    ///
    /// # Safety
    ///
    /// 16 bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, n: usize) -> Key {
        // SAFETY: 16 bytes can be read, at any alignment.
        let (low, high) = unsafe { (from.cast::<u64>().read_unaligned(), from.add(8).cast::<u64>().read_unaligned()) };
        let kept = &KEPT[n.min(KEY_BYTES)];
        Key { low: u64::from_le(low) & kept.low, high: u64::from_le(high) & kept.high }
    }

    /// The key of a word of any length.
    pub fn of(word: &[u8]) -> Key {
        match word.len() {
            n @ 0..=KEY_BYTES => {
                let mut bytes = [0; KEY_BYTES];
                bytes[..n].copy_from_slice(word);
                // SAFETY: `bytes` are 16.
                unsafe { Key::read(bytes.as_ptr(), n) }
            }
            ..=WORD_BYTES => Key::standing_for(word),
            _ => Key::NONE,
        }
    }

    /// What stands for a word of more than 16 bytes.
    pub fn standing_for(word: &[u8]) -> Key {
        let fold = |sum: u64, bytes: &[u8], factor: u64| {
            let number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let product = u128::from(sum ^ number) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        };
        let mut key = Key { low: word.len() as u64, high: FACTORS[2] };
        // The last 16 bytes overlap those before them, so that no rest remains.
        for block in word.chunks_exact(KEY_BYTES).chain(std::iter::once(&word[word.len() - KEY_BYTES..])) {
            key.low = fold(key.low, &block[..8], FACTORS[2]);
            key.high = fold(key.high, &block[8..], FACTORS[3]);
        }
        Key { low: key.low, high: key.high | 0xFF << 56 }
    }

    /// A key for a second place, somewhere else.
    pub fn turned(self) -> Key {
        Key { low: self.high.rotate_left(32) ^ FACTORS[2], high: self.low }
    }

    /// Equal, without a branch between the halves.
    #[inline(always)]
    pub fn is(self, other: Key) -> bool {
        (self.low ^ other.low) | (self.high ^ other.high) == 0
    }
}

/// How the lines of a table are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fast) struct Place {
    /// How far a hash is shifted down to number a line.
    pub shift: u32,
}

/// Bytes of a line.
pub(in crate::fast) const LINE_BYTES: u64 = 64;

impl Place {
    /// Where the line of a word stands, in bytes from the first line.
    #[inline(always)]
    pub fn of(self, key: Key) -> u64 {
        self.number(key) * LINE_BYTES
    }

    /// The number of the line of a word.
    #[inline(always)]
    pub fn number(self, key: Key) -> u64 {
        (key.low.wrapping_mul(FACTORS[0]) ^ key.high.wrapping_mul(FACTORS[1])) >> self.shift
    }
}

/// Words whose keys are read together.
pub(in crate::fast) const GROUP: usize = 16;

/// The keys of a group of words, and where their lines stand in the table, in bytes.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(in crate::fast) struct Group {
    pub keys: [Key; GROUP],
    pub lines: [u64; GROUP],
}

impl Group {
    pub const EMPTY: Group = Group { keys: [Key::NONE; GROUP], lines: [0; GROUP] };

    /// Reads the keys of the words `text[starts[i]..ends[i]]`.
    ///
    /// # Safety
    ///
    /// The CPU is that of `isa`; all words lie in the text, behind which 16 bytes more can be read.
    #[inline(always)]
    pub unsafe fn read<I: Isa>(
        &mut self,
        isa: I,
        text: &[u8],
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        place: Place,
    ) {
        // SAFETY: the caller's.
        let long = unsafe { isa.keys(text.as_ptr(), starts, ends, place, self) };
        if long != 0 {
            self.read_long(long, text, starts, ends, place);
        }
    }

    /// The keys of words that are longer than one; a bit for each.
    #[cold]
    #[inline(never)]
    fn read_long(&mut self, mut long: u32, text: &[u8], starts: &[u32; GROUP], ends: &[u32; GROUP], place: Place) {
        while long != 0 {
            let i = long.trailing_zeros() as usize;
            self.keys[i] = Key::of(&text[starts[i] as usize..ends[i] as usize]);
            self.lines[i] = place.of(self.keys[i]);
            long &= long - 1;
        }
    }

    /// Where the lines stand in a table that has grown.
    pub fn place_again(&mut self, place: Place) {
        for (line, key) in self.lines.iter_mut().zip(&self.keys) {
            *line = place.of(*key);
        }
    }
}

/// As [`Isa::keys`], one word after the other: the definition.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(in crate::fast) unsafe fn read_keys(
    text: *const u8,
    starts: &[u32; GROUP],
    ends: &[u32; GROUP],
    place: Place,
    group: &mut Group,
) -> u32 {
    let mut long = 0;
    for i in 0..GROUP {
        let n = ends[i].wrapping_sub(starts[i]) as usize;
        // SAFETY: the caller's.
        let key = unsafe { Key::read(text.add(starts[i] as usize), n) };
        group.keys[i] = key;
        group.lines[i] = place.of(key);
        long |= u32::from(n > KEY_BYTES) << i;
    }
    long
}
