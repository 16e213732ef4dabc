//! The source of all random choices: SplitMix64 with keys.
//!
//! A random number is a pure function of a [`Key`] and an index. A key is derived from five numbers: a seed, a
//! [`Stream`], an epoch, and two numbers that say which row or document the choice is for. Whoever needs a number can
//! compute it, in any order and on any thread; nothing is advanced and nothing is shared.
//!
//! ```
//! use wordpiece::pretraining::random::{Key, Stream, below};
//!
//! let key = Key::new(12345, Stream::Choice, 0, 0, 7);
//! assert_eq!(key.draw(0), 0xfcc8_8af4_e616_5007);
//! assert!(below(key.draw(1), 30) < 30);
//! ```

/// The increment of SplitMix64: 2⁶⁴ divided by the golden ratio, odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a random number decides. Streams are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The lengths, splits, labels and second segments of pairs.
    Pairs = 1,
    /// Which tokens of a row are masked.
    Choice = 2,
    /// What becomes of a chosen token.
    Fate = 3,
    /// The random token that replaces a chosen one.
    Random = 4,
    /// The lengths of spans, in words.
    Length = 5,
    /// The order in which rows are read.
    Order = 6,
}

/// Scrambles a number: the output function of SplitMix64, a bijection that maps 0 to 0.
#[inline]
#[must_use]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Derives a key from a key and a number.
#[inline]
#[must_use]
const fn absorb(key: u64, word: u64) -> u64 {
    mix((key ^ word).wrapping_add(GAMMA))
}

/// Returns the number of a document whose id is a text: the FNV-1a hash of its UTF-8, scrambled.
#[must_use]
pub fn text_id(text: &str) -> u64 {
    let fnv = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mix(text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fnv))
}

/// The key of a sequence of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// Derives a key from a seed, a stream, an epoch, and two numbers, usually a document id and a row.
    #[must_use]
    pub const fn new(seed: u64, stream: Stream, epoch: u64, high: u64, low: u64) -> Key {
        Key::from_words(seed, stream as u64, epoch, high, low)
    }

    /// As [`Key::new`], for any number as the stream.
    #[must_use]
    pub const fn from_words(seed: u64, stream: u64, epoch: u64, high: u64, low: u64) -> Key {
        Key(absorb(absorb(absorb(absorb(absorb(0, seed), stream), epoch), high), low))
    }

    /// Returns the part of a key that the rows of an epoch share; [`Key::row`] completes it.
    pub(super) const fn of_rows(seed: u64, stream: Stream, epoch: u64, high: u64) -> Key {
        Key(absorb(absorb(absorb(absorb(0, seed), stream as u64), epoch), high))
    }

    /// Completes a key that [`Key::of_rows`] returned.
    #[inline]
    pub(super) const fn row(self, low: u64) -> Key {
        Key(absorb(self.0, low))
    }

    /// Returns the random number with an index, 64 bits.
    #[inline]
    #[must_use]
    pub const fn draw(self, i: u64) -> u64 {
        mix(self.0.wrapping_add(i.wrapping_add(1).wrapping_mul(GAMMA)))
    }
}

/// Converts a random number to one from 0 inclusive to 1 exclusive.
#[inline]
#[must_use]
pub fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Converts a random number to a whole one below `n`; 0 if `n` is 0.
#[inline]
#[must_use]
pub const fn below(draw: u64, n: u64) -> u64 {
    ((draw as u128 * n as u128) >> 64) as u64
}

/// The random numbers of a key, one after the other.
#[derive(Debug, Clone)]
pub struct Draws {
    key: Key,
    next: u64,
}

impl Draws {
    /// Begins with the first number of a key.
    #[must_use]
    pub const fn new(key: Key) -> Draws {
        Draws { key, next: 0 }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        let draw = self.key.draw(self.next);
        self.next += 1;
        draw
    }

    /// Returns the next number as [`unit()`] converts it.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    /// Returns the next number as [`below`] converts it.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        below(self.next(), n)
    }

    /// Returns how many of `n` tossed coins show heads. Uses one number for every 64 coins.
    pub fn coins(&mut self, n: usize) -> usize {
        let mut ones = 0;
        let mut left = n;
        while left > 0 {
            let used = left.min(64);
            // The low `used` bits.
            ones += (self.next() << (64 - used)).count_ones() as usize;
            left -= used;
        }
        ones
    }
}

/// The order in which the rows of an epoch are read: a permutation in constant memory.
///
/// It is a Feistel network over the next even power of two, applied again to results that are not a row.
///
/// ```
/// use wordpiece::pretraining::random::EpochOrder;
///
/// let order = EpochOrder::new(16, 1, 0);
/// assert_eq!((0..4).map(|i| order.at(i)).collect::<Vec<_>>(), [3, 15, 4, 0]);
/// ```
#[derive(Debug, Clone)]
pub struct EpochOrder {
    n: u64,
    half_bits: u32,
    rounds: [u64; 4],
}

impl EpochOrder {
    /// Creates the order of `n` rows.
    #[must_use]
    pub fn new(n: u64, seed: u64, epoch: u64) -> EpochOrder {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2);
        let key = Key::new(seed, Stream::Order, epoch, 0, n);
        EpochOrder { n, half_bits: bits.div_ceil(2), rounds: [0, 1, 2, 3].map(|round| key.draw(round)) }
    }

    /// Returns the row that is read at a position.
    ///
    /// # Panics
    ///
    /// If the position is not less than the number of rows.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.n, "position {position} of {} rows", self.n);
        let mask = (1_u64 << self.half_bits) - 1;
        let mut x = position;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for round in self.rounds {
                (left, right) = (right, left ^ (absorb(round, right) & mask));
            }
            x = (left << self.half_bits) | right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let draws = |key| (0..3).map(|i| Key(key).draw(i)).collect::<Vec<_>>();
        assert_eq!(draws(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_eq!(draws(1_234_567)[..2], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        assert_eq!(mix(0), 0);
        assert_eq!(mix(u64::MAX), 0xb4d0_55fc_f2cb_bd7b);
    }

    #[test]
    fn keys_equal_the_test_vectors() {
        assert_eq!(Key::new(12345, Stream::Choice, 0, 0, 7), Key(0x609d_beb4_29a9_c026));
        assert_eq!(Key::of_rows(12345, Stream::Choice, 1, 0).row(7), Key(0xf8c1_8109_7f81_3b0c));
        assert_eq!(text_id(""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(text_id("café"), 0xe0c1_3ffc_340b_758f);
    }

    #[test]
    fn numbers_are_converted_exactly() {
        assert_eq!(unit(0xe220_a839_7b1d_cdaf).to_bits(), 0.883_310_808_213_642_6_f64.to_bits());
        assert_eq!(below(0xe220_a839_7b1d_cdaf, 1 << 40), 971_210_504_571);
        assert_eq!((below(u64::MAX, 2), below(u64::MAX, 1), below(u64::MAX, 0)), (1, 0, 0));
        let coins = |key, n| Draws::new(Key(key)).coins(n);
        assert_eq!(coins(0x0b55_dcab_4e1e_d522, 0), 0);
        assert_eq!(coins(0x4d29_6afe_3760_c6af, 5), 3);
        assert_eq!(coins(0x4520_891c_48fb_4831, 64), 27);
        assert_eq!(coins(0xdeb1_eb25_0803_569e, 65), 30);
        assert_eq!(coins(0xde59_c978_1f02_a98d, 200), 105);
    }

    #[test]
    fn the_order_is_a_permutation_of_any_number_of_rows() {
        for n in (1..70).chain([1000, 4096, 4097]) {
            let order = EpochOrder::new(n, 3, 1);
            let mut rows: Vec<u64> = (0..n).map(|i| order.at(i)).collect();
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..n), "{n} rows");
        }
        let order = EpochOrder::new(17, 1, 1);
        assert_eq!((0..6).map(|i| order.at(i)).collect::<Vec<_>>(), [11, 2, 14, 12, 8, 3]);
    }
}
