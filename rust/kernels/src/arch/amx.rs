//! Tile registers of AMX, by inline assembly: Rust has no stable intrinsics for them.
//!
//! # What the registers hold between two blocks
//!
//! A block multiplies what earlier ones loaded. The language does not promise that a register keeps its value from one `asm!`
//! block to the next. Tile registers do between [`AmxTiles::new`] and the drop of its value, because nothing else writes to
//! them:
//!
//! - The compiler: tile registers can be neither inputs nor outputs of `asm!`, and LLVM allocates them only for values of its
//!   own tile type, which the intrinsics of AMX make; stable Rust has none. No block is `pure`: the compiler keeps all of
//!   them, in their order.
//! - Functions that are called in between: the calling conventions let each change all tiles. They belong to this crate, to
//!   `wordpiece-parallel` and to the standard library (copies of memory, panics), which use no AMX.
//! - Other users on this thread: [`ExclusiveUse`] admits one at a time.
//! - The system: it saves tiles and their configuration when it switches threads or runs a signal handler, or
//!   [`Amx::new`] returns no token.
//!
//! Memory is safe in any case: what a tile holds is never an address, so a tile that changed would make sums wrong. A
//! configuration that were gone would make the next instruction invalid, and end the process by SIGILL.

use std::arch::asm;
use std::marker::PhantomData;

use wordpiece_parallel::instruction_set::{Amx, AmxInt8};

use super::tile_registers::{
    Bfloat16, ExclusiveUse, InputTile, Int8, SumTiles, TILE_REGISTER_ROWS, TileNumbers, TileRegisters, WeightTiles,
};

/// The operand of LDTILECFG: palette 1, eight tiles of 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIGURATION: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

const _: () = assert!(size_of::<Configuration>() == 64 && TILE_REGISTER_ROWS == 16);

/// Numbers that instructions of AMX multiply.
pub trait AmxNumbers: TileNumbers {
    /// The proof that the CPU has the instruction, and all others that [`AmxTiles`] uses.
    type Token;

    /// Executes the instruction that adds the products of the tiles A and B to the sums in C.
    ///
    /// # Safety
    ///
    /// A token must exist, and the tile registers of this thread must be configured: an [`AmxTiles`] must exist on it.
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>();
}

impl AmxNumbers for Bfloat16 {
    type Token = Amx;

    #[inline(always)]
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>() {
        // SAFETY: the caller proves AMX-BF16 and the configuration; the instruction changes tile C and nothing else.
        unsafe {
            asm!("tdpbf16ps tmm{}, tmm{}, tmm{}", const C, const A, const B, options(nostack, nomem, preserves_flags));
        }
    }
}

impl AmxNumbers for Int8 {
    type Token = AmxInt8;

    #[inline(always)]
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>() {
        // SAFETY: the caller proves AMX-INT8 and the configuration; the instruction changes tile C and nothing else.
        unsafe {
            asm!("tdpbssd tmm{}, tmm{}, tmm{}", const C, const A, const B, options(nostack, nomem, preserves_flags));
        }
    }
}

/// The tile registers of this thread, configured; released when it is dropped, so that switching threads stays cheap.
pub struct AmxTiles<N> {
    /// Dropped after the registers are released. It also keeps this value on its thread, whose registers it stands for.
    _exclusive: ExclusiveUse,
    numbers: PhantomData<N>,
}

impl<N: AmxNumbers> AmxTiles<N> {
    /// Configures the tile registers of this thread.
    ///
    /// # Panics
    ///
    /// If this thread has such a value already, of either type of numbers.
    #[inline(always)]
    pub fn new(_: N::Token) -> AmxTiles<N> {
        const { assert!(size_of::<N::Input>() == 64 && size_of::<N::Weight>() == 128 && size_of::<N::Sum>() == 128) };
        let exclusive = ExclusiveUse::new();
        // SAFETY: the token proves that AMX may be used; the operand has 64 bytes and a valid configuration. Nobody else uses
        // the registers of this thread, whose values are lost.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly, preserves_flags)) }
        AmxTiles { _exclusive: exclusive, numbers: PhantomData }
    }
}

impl<N> Drop for AmxTiles<N> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `new` configured the registers, so AMX may be used; `_exclusive` proves that nobody else uses them.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }
}

impl<N: AmxNumbers> TileRegisters for AmxTiles<N> {
    type Numbers = N;

    #[inline(always)]
    fn zero<const C: usize>(&mut self) {
        const { assert!(C < 8) };
        // SAFETY: `self` proves that the registers are configured; the instruction changes one of them and nothing else.
        unsafe { asm!("tilezero tmm{}", const C, options(nostack, nomem, preserves_flags)) }
    }

    #[inline(always)]
    fn load_inputs<const A: usize>(&mut self, from: &InputTile<N>) {
        const { assert!(A < 8) };
        // SAFETY: `self` proves that the registers are configured; 16 rows of 64 bytes, one after the other, are read.
        unsafe {
            asm!(
                "tileloadd tmm{}, [{} + {}*1]",
                const A,
                in(reg) from.as_ptr(),
                in(reg) size_of::<N::Input>(),
                options(nostack, readonly, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn load_weights<const B: usize, const HALF: usize>(&mut self, from: &WeightTiles<N>) {
        const { assert!(B < 8 && HALF < 2) };
        // SAFETY: `self` proves that the registers are configured; one half, 64 bytes, of each of 16 rows is read.
        unsafe {
            asm!(
                "tileloadd tmm{}, [{} + {}*1]",
                const B,
                in(reg) from.as_ptr().cast::<u8>().add(64 * HALF),
                in(reg) size_of::<N::Weight>(),
                options(nostack, readonly, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        const { assert!(C < 8 && A < 8 && B < 8 && C != A && C != B && A != B) };
        // SAFETY: `self` proves that the registers are configured, for which `new` required a token.
        unsafe { N::multiply::<C, A, B>() }
    }

    #[inline(always)]
    fn store<const C: usize, const HALF: usize>(&self, to: &mut SumTiles<N>) {
        const { assert!(C < 8 && HALF < 2) };
        // SAFETY: `self` proves that the registers are configured; one half, 64 bytes, of each of 16 rows is written.
        unsafe {
            asm!(
                "tilestored [{} + {}*1], tmm{}",
                in(reg) to.as_mut_ptr().cast::<u8>().add(64 * HALF),
                in(reg) size_of::<N::Sum>(),
                const C,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{ByteRow, HalfRow, PairRow, QuadRow, Row, SumRow};
    use crate::numbers::f32_to_bf16;

    /// Uses each operation once, with different registers. Its code is read, and run only where AMX is.
    #[inline(never)]
    fn each_operation<N: AmxNumbers>(
        token: N::Token,
        inputs: &InputTile<N>,
        weights: &WeightTiles<N>,
        sums: &mut SumTiles<N>,
    ) {
        let mut tiles = AmxTiles::<N>::new(token);
        tiles.zero::<3>();
        tiles.load_inputs::<4>(inputs);
        tiles.load_weights::<6, 1>(weights);
        tiles.multiply::<3, 4, 6>();
        tiles.store::<3, 1>(sums);
    }

    /// Bytes of an instruction, and which of their bits do not depend on the registers that the compiler chose.
    type Encoding = &'static [(u8, u8)];

    /// The encodings in the manual: VEX.128.pp.0F38.W0, in which C4 E2 is the first half of the prefix.
    const ENCODINGS: [(&str, Encoding); 5] = [
        ("ldtilecfg: NP 49 !(11):000:bbb", &[(0xc4, 0xff), (0xc2, 0xdf), (0x78, 0xff), (0x49, 0xff), (0x00, 0x38)]),
        ("tilezero tmm3: F2 49 11:011:000", &[(0xc4, 0xff), (0xe2, 0xff), (0x7b, 0xff), (0x49, 0xff), (0xd8, 0xff)]),
        (
            "tileloadd tmm4: F2 4B !(11):100:100",
            &[(0xc4, 0xff), (0x82, 0x9f), (0x7b, 0xff), (0x4b, 0xff), (0x24, 0x3f)],
        ),
        (
            "tileloadd tmm6: F2 4B !(11):110:100",
            &[(0xc4, 0xff), (0x82, 0x9f), (0x7b, 0xff), (0x4b, 0xff), (0x34, 0x3f)],
        ),
        (
            "tilestored tmm3: F3 4B !(11):011:100",
            &[(0xc4, 0xff), (0x82, 0x9f), (0x7a, 0xff), (0x4b, 0xff), (0x1c, 0x3f)],
        ),
    ];

    /// The product stands before the last of [`ENCODINGS`].
    const PAIR_PRODUCT: (&str, Encoding) = (
        "tdpbf16ps tmm3, tmm4, tmm6: F3 5C 11:011:100",
        &[(0xc4, 0xff), (0xe2, 0xff), (0x4a, 0xff), (0x5c, 0xff), (0xdc, 0xff)],
    );
    const QUAD_PRODUCT: (&str, Encoding) = (
        "tdpbssd tmm3, tmm4, tmm6: F2 5E 11:011:100",
        &[(0xc4, 0xff), (0xe2, 0xff), (0x4b, 0xff), (0x5e, 0xff), (0xdc, 0xff)],
    );

    /// Checks the code of [`each_operation`].
    fn check_encodings<N: AmxNumbers>(product: (&str, Encoding)) {
        let start = each_operation::<N> as fn(N::Token, &InputTile<N>, &WeightTiles<N>, &mut SumTiles<N>) as *const u8;
        // SAFETY: the code of a function may be read; the program has far more than 1024 bytes of code after this one.
        let code = unsafe { std::slice::from_raw_parts(start, 1024) };
        let mut at = 0;
        let (last, before) = ENCODINGS.split_last().expect("there are encodings");
        for (name, encoding) in before.iter().copied().chain([product, *last]) {
            let matches =
                |code: &[u8]| code.iter().zip(encoding).all(|(byte, (bits, mask))| byte & mask == bits & mask);
            let found = code[at..].windows(encoding.len()).position(matches);
            at += found.unwrap_or_else(|| panic!("{name}: not found in the code after byte {at}")) + encoding.len();
        }
        let release = [0xc4, 0xe2, 0x78, 0x49, 0xc0];
        assert!(code[at..].windows(5).any(|bytes| bytes == release), "tilerelease: not found at the end");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no machine code")]
    fn instructions_are_encoded_as_the_manual_says() {
        check_encodings::<Bfloat16>(PAIR_PRODUCT);
        check_encodings::<Int8>(QUAD_PRODUCT);
    }

    #[test]
    fn a_second_value_on_a_thread_is_refused_where_the_cpu_has_them() {
        let Some(token) = Amx::new() else { return };
        let sums = |tiles: &mut AmxTiles<Bfloat16>| {
            let mut sums = [Row([1.0; 32]); TILE_REGISTER_ROWS];
            tiles.zero::<0>();
            tiles.store::<0, 0>(&mut sums);
            sums[15].0[..17].iter().sum::<f32>()
        };
        let mut tiles = AmxTiles::<Bfloat16>::new(token);
        assert!(std::panic::catch_unwind(|| AmxTiles::<Bfloat16>::new(token)).is_err());
        assert_eq!(sums(&mut tiles), 1.0, "the first one still works");
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(sums(&mut AmxTiles::new(token)), 1.0)).join()).unwrap();
        drop(tiles);
        assert_eq!(sums(&mut AmxTiles::new(token)), 1.0);
    }

    #[test]
    fn the_products_of_bytes_run_where_the_cpu_has_them() {
        let Some(token) = Amx::new().and_then(Amx::int8) else { return };
        let inputs = std::array::from_fn(|r| ByteRow(std::array::from_fn(|k| (r as u8).wrapping_sub(k as u8))));
        let mut sums = [SumRow::ZERO; TILE_REGISTER_ROWS];
        each_operation::<Int8>(token, &inputs, &[QuadRow([[-2; 4]; 32]); TILE_REGISTER_ROWS], &mut sums);
        for (r, row) in sums.iter().enumerate() {
            assert!(row.0[..16].iter().all(|x| *x == 0));
            assert!(row.0[16..].iter().all(|x| *x == 2 * 2016 - 128 * r as i32), "row {r}");
        }
    }

    #[test]
    fn the_instructions_run_where_the_cpu_has_them() {
        let Some(token) = Amx::new() else { return };
        let inputs = std::array::from_fn(|r| HalfRow(std::array::from_fn(|k| f32_to_bf16((r + k) as f32))));
        let weights = [PairRow([u32::from(f32_to_bf16(1.0)) * 0x1_0001; 32]); TILE_REGISTER_ROWS];
        let mut sums = [Row::ZERO; TILE_REGISTER_ROWS];
        each_operation::<Bfloat16>(token, &inputs, &weights, &mut sums);
        for (r, row) in sums.iter().enumerate() {
            assert!(row.0[..16].iter().all(|x| *x == 0.0));
            assert!(row.0[16..].iter().all(|x| *x == (32 * r + 496) as f32), "row {r}");
        }
    }
}
