//! Words as keys of 16 bytes, and the cache lines that keys belong to.
//!
//! A word of up to [`KEY_BYTES`] bytes is its own key, filled up with zeros, so comparing two words is comparing two
//! numbers. A longer word, up to [`WORD_BYTES`], has a hash as its key; the table then also compares the words
//! themselves. Longer words still have no key ([`WordKey::NONE`]) and are never stored.
//!
//! Keys are read for [`GROUP`] words at a time, whatever the lengths of the words: 16 bytes from the start of each
//! word, of which those past the end of the word are masked. The text must therefore have 16 initialised bytes after its
//! last word.

/// Length in bytes of the longest word that its key holds completely.
pub(super) const KEY_BYTES: usize = 16;

/// Length in bytes of the longest word that is ever stored in a table.
pub(super) const WORD_BYTES: usize = 255;

/// A word of up to 16 bytes, filled up with zeros, or a hash of a longer one.
///
/// The two kinds never meet: cleaning removes zero bytes, so no word contains one, and the last byte of a hash is 255,
/// which occurs in no UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct WordKey {
    /// Bytes 0 to 7 of the word, little-endian.
    pub low: u64,
    /// Bytes 8 to 15 of the word, little-endian.
    pub high: u64,
}

/// For each length of a word, the bits of a key that belong to it.
const KEPT: [WordKey; KEY_BYTES + 1] = {
    let mut kept = [WordKey { low: 0, high: 0 }; KEY_BYTES + 1];
    let mut n = 1;
    while n <= KEY_BYTES {
        kept[n].low = if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
        kept[n].high = if n <= 8 { 0 } else { u64::MAX >> (64 - 8 * (n - 8)) };
        n += 1;
    }
    kept
};

/// Multipliers for hashing, without a pattern in their bits: the golden ratio, e, π and the square root of two, as
/// fractions of 2⁶⁴.
pub(super) const FACTORS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xADF8_5458_A2BB_4A9B, 0x243F_6A88_85A3_08D3, 0x6A09_E667_F3BC_C909];

impl WordKey {
    /// The key of words that are too long to be stored.
    pub const NONE: WordKey = WordKey { low: 0, high: 0 };

    /// Reads the key of the word of `n` bytes at `from`; of a word of more than 16 bytes, its first 16.
    ///
    /// # Safety
    ///
    /// 16 initialised bytes must be readable at `from`, whatever `n` is.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, n: usize) -> WordKey {
        // SAFETY: the contract promises 16 readable, initialised bytes; unaligned reads need no alignment.
        let (low, high) = unsafe { (from.cast::<u64>().read_unaligned(), from.add(8).cast::<u64>().read_unaligned()) };
        let kept = &KEPT[n.min(KEY_BYTES)];
        WordKey { low: u64::from_le(low) & kept.low, high: u64::from_le(high) & kept.high }
    }

    /// Returns the key of a word of any length.
    pub fn of(word: &[u8]) -> WordKey {
        match word.len() {
            n @ 0..=KEY_BYTES => {
                let mut bytes = [0; KEY_BYTES];
                bytes[..n].copy_from_slice(word);
                // SAFETY: `bytes` is an array of 16 bytes.
                unsafe { WordKey::read(bytes.as_ptr(), n) }
            }
            ..=WORD_BYTES => WordKey::hashed(word),
            _ => WordKey::NONE,
        }
    }

    /// Hashes a word of more than 16 bytes.
    fn hashed(word: &[u8]) -> WordKey {
        let fold = |sum: u64, bytes: &[u8], factor: u64| {
            let number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let product = u128::from(sum ^ number) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        };
        let mut key = WordKey { low: word.len() as u64, high: FACTORS[2] };
        // The last 16 bytes may overlap those before them: no shorter remainder is left to handle.
        for block in word.chunks_exact(KEY_BYTES).chain(std::iter::once(&word[word.len() - KEY_BYTES..])) {
            key.low = fold(key.low, &block[..8], FACTORS[2]);
            key.high = fold(key.high, &block[8..], FACTORS[3]);
        }
        WordKey { low: key.low, high: key.high | 0xFF << 56 }
    }

    /// Returns a second, different key of the same word: it selects another line when the first one is full.
    pub fn alternative(self) -> WordKey {
        WordKey { low: self.high.rotate_left(32) ^ FACTORS[2], high: self.low }
    }

    /// Compares two keys without a branch between their halves.
    #[inline(always)]
    pub fn equals(self, other: WordKey) -> bool {
        (self.low ^ other.low) | (self.high ^ other.high) == 0
    }
}

/// Size of a line of the word table in bytes.
pub(super) const LINE_BYTES: u64 = 64;

/// The hash function of a table, from a key to the number of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineHash {
    /// How far a 64-bit hash is shifted right: 64 minus the logarithm of the number of lines, so every result is less
    /// than that number. Less than 64: there are at least two lines.
    pub shift: u32,
}

impl LineHash {
    /// Returns the hash function of a table with `n` lines, a power of two.
    pub fn of_lines(n: usize) -> LineHash {
        LineHash { shift: 64 - n.trailing_zeros() }
    }

    /// Returns the number of the line of a key.
    #[inline(always)]
    pub fn line(self, key: WordKey) -> u64 {
        (key.low.wrapping_mul(FACTORS[0]) ^ key.high.wrapping_mul(FACTORS[1])) >> self.shift
    }

    /// Returns the distance of the line of a key from the first line, in bytes.
    #[inline(always)]
    pub fn line_offset(self, key: WordKey) -> u64 {
        self.line(key) * LINE_BYTES
    }
}

/// Number of words whose keys are read together.
pub(super) const GROUP: usize = 16;

/// The keys of a group of words, and where their lines begin.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct KeyGroup {
    /// The key of each word. After the last word of a text, the rest are keys of arbitrary bytes and are not used.
    pub keys: [WordKey; GROUP],
    /// For each key the distance of its line from the first line of the table, in bytes.
    pub line_offsets: [u64; GROUP],
}

impl KeyGroup {
    /// A group whose keys have not been read yet.
    pub const EMPTY: KeyGroup = KeyGroup { keys: [WordKey::NONE; GROUP], line_offsets: [0; GROUP] };

    /// Reads the keys of the words `text[starts[i]..ends[i]]`, one after the other, and their line offsets. Returns a
    /// mask of the words that are longer than [`KEY_BYTES`], whose keys are not final.
    ///
    /// # Safety
    ///
    /// From each of `starts`, 16 initialised bytes must be readable at `text`.
    #[inline(always)]
    pub unsafe fn read_short(
        &mut self,
        text: *const u8,
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        hash: LineHash,
    ) -> u32 {
        let mut long = 0;
        for i in 0..GROUP {
            let n = ends[i].wrapping_sub(starts[i]) as usize;
            // SAFETY: the contract promises 16 readable, initialised bytes from every start.
            let key = unsafe { WordKey::read(text.add(starts[i] as usize), n) };
            self.keys[i] = key;
            self.line_offsets[i] = hash.line_offset(key);
            long |= u32::from(n > KEY_BYTES) << i;
        }
        long
    }

    /// Hashes the words whose bit is set in `long`: those that are longer than a key.
    #[cold]
    #[inline(never)]
    pub fn read_long(
        &mut self,
        mut long: u32,
        text: &[u8],
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        hash: LineHash,
    ) {
        while long != 0 {
            let i = long.trailing_zeros() as usize;
            self.keys[i] = WordKey::of(&text[starts[i] as usize..ends[i] as usize]);
            self.line_offsets[i] = hash.line_offset(self.keys[i]);
            long &= long - 1;
        }
    }

    /// Computes the line offsets again, for a table that has grown.
    pub fn rehash(&mut self, hash: LineHash) {
        for (offset, key) in self.line_offsets.iter_mut().zip(&self.keys) {
            *offset = hash.line_offset(*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_words_of_every_length_differ() {
        let text = [b'x'; WORD_BYTES + 2];
        let keys: Vec<WordKey> = (1..=WORD_BYTES).map(|n| WordKey::of(&text[..n])).collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|other| !key.equals(*other)) && *key != WordKey::NONE, "{} bytes", i + 1);
            assert_eq!(key.high >> 56 == 0xFF, i + 1 > KEY_BYTES, "{} bytes", i + 1);
        }
        assert_eq!(WordKey::of(&text[..WORD_BYTES + 1]), WordKey::NONE);
    }
}
