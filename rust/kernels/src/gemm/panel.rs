//! One panel of the outputs of a dense layer: the products of all rows with its weights, and their epilogue.
//!
//! A panel is 32 columns of the outputs. It is what a thread takes at a time: its weights stay in the nearest caches while
//! all rows of the input pass them, so they are read from memory once for a call. Within a panel, rows are multiplied
//! in tiles. The sums of a tile stay in registers over a block of K and are added to the sums of the blocks before. A
//! number of the output thus has one order of additions, whatever rows and threads there are.
//!
//! Where tile registers multiply bfloat16, the epilogue of a block of rows is computed while they multiply the next block.

use std::ops::Range;

use super::epilogue::Epilogue;
use super::inputs::{ByteInputs, Inputs};
use super::int8::BytePanel;
use super::pack::WeightPanel;
#[cfg(target_arch = "x86_64")]
use crate::arch::AmxTiles;
use crate::arch::{
    Bfloat16, EmulatedTiles, Int8, Kernel, MAX_TILE_ROWS, Simd, TILE_REGISTER_ROWS, TileRegisters, TileUnit,
};
use crate::matrix::{ByteRow, HalfRow, PANEL, PairRow, Row, View};
use crate::tile::{
    Ahead, BLOCK_PANELS, ByteTile, Meanwhile, PairTile, REGISTER_ROWS, Tile, Unquantized,
    multiply_bytes_with_registers, multiply_with_registers, tiles,
};

/// One panel of the outputs of a dense layer, for all rows.
pub(super) struct ProductPanel<'a> {
    /// The input [rows, K].
    pub x: Inputs<'a>,
    /// The weights of the panel, [K, 32] as they are packed.
    pub weights: WeightPanel<'a>,
    /// The panel that this thread computes next.
    pub ahead: Ahead,
    /// The bias of each column, added by the epilogue; 0 beyond the last column.
    pub bias: &'a Row,
    /// What becomes of the sums: an activation, a product with a gate, or a residual that is added.
    pub epilogue: Epilogue<'a>,
    /// The number of the panel.
    pub panel: usize,
    /// The results, a row for each row of `x`; what they held before is overwritten.
    pub out: PanelOutput<'a>,
}

/// Where the results of one panel go.
pub(super) enum PanelOutput<'a> {
    /// Their rows.
    Sums(&'a mut [Row]),
    /// Their rows rounded to bfloat16, of which so many columns are results and the others 0. Weights must be pairs.
    Rounded { to: &'a mut [HalfRow], columns: usize },
}

impl Kernel for ProductPanel<'_> {
    type Output = ();

    /// Chooses the product by what the weights are multiplied as, and by the unit that multiplies.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let ProductPanel { x, weights, ahead, bias, epilogue, panel, out } = self;
        match (weights, x, out) {
            (WeightPanel::F32(b), Inputs::F32(x), PanelOutput::Sums(out)) => {
                FloatProduct { x, b, ahead, bias, epilogue, panel }.run(simd, out);
            }
            (WeightPanel::Pairs(b), Inputs::Bf16(x, None), PanelOutput::Sums(out)) => {
                let all = out.len();
                for rows in tiles(all, S::TILE_ROWS) {
                    let out = &mut out[rows.clone()];
                    simd.run_pair_matrix_tile(PairTile {
                        a: x.rows(rows.clone()),
                        b,
                        ahead: ahead.part(&rows, all),
                        out,
                    });
                    complete(simd, Completion { bias, epilogue, panel, rows, sums: out, rounded: None });
                }
            }
            (WeightPanel::Pairs(b), Inputs::Bf16(x, None), PanelOutput::Rounded { to, columns }) => {
                let all = to.len();
                let mut sums = [Row::ZERO; MAX_TILE_ROWS];
                for rows in tiles(all, S::TILE_ROWS) {
                    let out = &mut sums[..rows.len()];
                    simd.run_pair_matrix_tile(PairTile {
                        a: x.rows(rows.clone()),
                        b,
                        ahead: ahead.part(&rows, all),
                        out,
                    });
                    let rounded = Some((&mut to[rows.clone()], columns));
                    complete(simd, Completion { bias, epilogue, panel, rows, sums: out, rounded });
                }
            }
            (WeightPanel::Pairs(b), Inputs::Bf16(a, Some(unit)), out) => {
                let product = RegisterProduct { a, b, ahead, bias, epilogue, panel };
                match unit {
                    #[cfg(target_arch = "x86_64")]
                    TileUnit::Amx(token) => product.run(simd, &mut AmxTiles::<Bfloat16>::new(token), out),
                    TileUnit::Emulated => product.run(simd, &mut EmulatedTiles::<Bfloat16>::default(), out),
                }
            }
            (WeightPanel::Bytes(b), Inputs::Int8(x), PanelOutput::Sums(out)) => {
                let product = ByteProduct { x, b, ahead, bias, epilogue, panel };
                match x.unit {
                    None => product.run(simd, out),
                    #[cfg(target_arch = "x86_64")]
                    Some(TileUnit::Amx(token)) => {
                        let token = token.int8().expect("`convert` asks whether the unit multiplies bytes");
                        product.run_with_registers(simd, &mut AmxTiles::<Int8>::new(token), out);
                    }
                    Some(TileUnit::Emulated) => {
                        product.run_with_registers(simd, &mut EmulatedTiles::<Int8>::default(), out);
                    }
                }
            }
            _ => unreachable!("`linear` converts the input to what the weights are multiplied by"),
        }
    }
}

/// One panel of the outputs of a dense layer of float32 numbers.
struct FloatProduct<'a> {
    /// The input [rows, K], and perhaps columns beyond K.
    x: View<'a>,
    b: &'a [Row],
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
}

impl FloatProduct<'_> {
    /// Multiplies all rows with one block of the weights, which stays in the first-level cache meanwhile, before the next.
    ///
    /// The sums of a block are added to the sums of the blocks before it, as within a tile that has all of K, so the
    /// order of the loops changes no bit. The epilogue of a tile follows its last block.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, out: &mut [Row]) {
        let FloatProduct { x, b, ahead, bias, epilogue, panel } = self;
        let all = out.len();
        let blocks = b.len().div_ceil(BLOCK_PANELS * PANEL).max(1);
        for block in 0..blocks {
            let panels = block * BLOCK_PANELS..((block + 1) * BLOCK_PANELS).min(x.width());
            let b = &b[panels.start * PANEL..b.len().min(panels.end * PANEL)];
            for rows in tiles(all, S::TILE_ROWS) {
                let out = &mut out[rows.clone()];
                let a = x.rows(rows.clone()).panels(panels.clone());
                let ahead = ahead.part(&(block * all + rows.start..block * all + rows.end), blocks * all);
                simd.run_tile(Tile { a, b, ahead, is_first: block == 0, out });
                if block + 1 == blocks {
                    complete(simd, Completion { bias, epilogue, panel, rows, sums: out, rounded: None });
                }
            }
        }
    }
}

/// One panel of the outputs of a dense layer by tile registers.
///
/// The unit of tile registers works beside the vector unit. So the epilogue of a block is not computed after its
/// product, but handed to the product of the next block. That product does a part of it after each of its own steps.
/// The epilogue of the last block is left over and computed alone. Results are the same in either order, since blocks
/// share no row.
struct RegisterProduct<'a> {
    a: View<'a, HalfRow>,
    b: &'a [PairRow],
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
}

impl RegisterProduct<'_> {
    /// Computes the panel, the epilogue of a block beside the product of the next.
    #[inline(always)]
    fn run<S: Simd, T: TileRegisters<Numbers = Bfloat16>>(self, simd: S, registers: &mut T, out: PanelOutput<'_>) {
        let nothing = || PendingEpilogue { simd, of: &self, rows: 0..0, sums: &mut [], rounded: None };
        match out {
            PanelOutput::Sums(out) => {
                let all = out.len();
                let mut pending = nothing();
                for (block, sums) in out.chunks_mut(REGISTER_ROWS).enumerate() {
                    let rows = block * REGISTER_ROWS..block * REGISTER_ROWS + sums.len();
                    self.multiply(registers, &rows, all, pending, sums);
                    pending = PendingEpilogue { simd, of: &self, rows, sums, rounded: None };
                }
                pending.do_part(1);
            }
            PanelOutput::Rounded { to, columns } => {
                let all = to.len();
                let mut pending = nothing();
                let mut blocks = [[Row::ZERO; REGISTER_ROWS]; 2];
                let [free, used] = &mut blocks;
                let (mut free, mut used) = (free, used);
                for (block, rounded) in to.chunks_mut(REGISTER_ROWS).enumerate() {
                    let rows = block * REGISTER_ROWS..block * REGISTER_ROWS + rounded.len();
                    self.multiply(registers, &rows, all, pending, &mut free[..rows.len()]);
                    (free, used) = (used, free);
                    let sums = &mut used[..rows.len()];
                    pending = PendingEpilogue { simd, of: &self, rows, sums, rounded: Some((rounded, columns)) };
                }
                pending.do_part(1);
            }
        }
    }

    /// Computes the sums of `rows` of `all` rows, and completes those before.
    #[inline(always)]
    fn multiply<T: TileRegisters<Numbers = Bfloat16>>(
        &self,
        registers: &mut T,
        rows: &Range<usize>,
        all: usize,
        before: impl Meanwhile,
        sums: &mut [Row],
    ) {
        let meanwhile = Both(self.ahead.part(rows, all), before);
        multiply_with_registers(registers, self.a, rows.start, self.b, meanwhile, sums);
    }
}

/// The epilogue of a block of rows, which is computed while tile registers multiply the next block.
struct PendingEpilogue<'a, 'o, S> {
    simd: S,
    of: &'a RegisterProduct<'a>,
    /// The rows that are left.
    rows: Range<usize>,
    /// Their sums.
    sums: &'o mut [Row],
    /// Where they go, and how many of their columns, if they are to be rounded.
    rounded: Option<(&'o mut [HalfRow], usize)>,
}

impl<S: Simd> Meanwhile for PendingEpilogue<'_, '_, S> {
    /// Completes the first of the rows that are left.
    #[inline(always)]
    fn do_part(&mut self, steps: usize) {
        let RegisterProduct { bias, epilogue, panel, .. } = *self.of;
        let count = self.rows.len().div_ceil(steps);
        if count == 0 {
            return;
        }
        let rows = self.rows.start..self.rows.start + count;
        self.rows.start += count;
        let sums = self.sums.split_off_mut(..count).expect("as many sums as rows");
        let rounded = self.rounded.as_mut().map(|(rounded, columns)| {
            (rounded.split_off_mut(..count).expect("as many rounded rows as rows"), *columns)
        });
        complete(self.simd, Completion { bias, epilogue, panel, rows, sums, rounded });
    }
}

/// Runs a [`Completion`]. Inlined, the code of all activations would stand in every product.
#[inline(never)]
fn complete<S: Simd>(simd: S, completion: Completion<'_, '_>) {
    simd.run(completion);
}

/// The epilogue of some rows of a panel.
struct Completion<'a, 'o> {
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
    rows: Range<usize>,
    sums: &'o mut [Row],
    /// Where they go, and how many of their columns, if they are to be rounded.
    rounded: Option<(&'o mut [HalfRow], usize)>,
}

impl Kernel for Completion<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Completion { bias, epilogue, panel, rows, sums, rounded } = self;
        epilogue.apply(simd, bias, panel, rows, sums);
        if let Some((to, columns)) = rounded {
            round_columns(simd, sums, to, columns);
        }
    }
}

/// Rounds rows to bfloat16, and sets the columns from `columns` on to 0.
#[inline(always)]
fn round_columns<S: Simd>(simd: S, from: &[Row], to: &mut [HalfRow], columns: usize) {
    simd.round_rows(from, to);
    if columns < PANEL {
        for row in to {
            row.0[columns..].fill(0);
        }
    }
}

/// Two things that are done in parts together.
struct Both<A, B>(A, B);

impl<A: Meanwhile, B: Meanwhile> Meanwhile for Both<A, B> {
    #[inline(always)]
    fn do_part(&mut self, steps: usize) {
        self.0.do_part(steps);
        self.1.do_part(steps);
    }
}

/// One panel of the outputs of a dense layer of int8 numbers.
///
/// Sums over a group are exact integers, so that all units give the same ones; what is rounded is the sum of the groups, in
/// their order.
struct ByteProduct<'a> {
    x: ByteInputs<'a>,
    b: BytePanel<'a>,
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
}

impl ByteProduct<'_> {
    /// Computes the panel by vectors.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, out: &mut [Row]) {
        let all = out.len();
        for rows in tiles(all, S::BYTE_TILE_ROWS) {
            let tile = self.tile(all, &rows, self.x.bytes.rows(rows.clone()), &mut out[rows.clone()]);
            simd.run_byte_tile(tile);
            self.complete(simd, rows.clone(), &mut out[rows]);
        }
    }

    /// Computes the panel by tile registers; the sums of a group are the same integers.
    #[inline(always)]
    fn run_with_registers<S: Simd, T: TileRegisters<Numbers = Int8>>(
        self,
        simd: S,
        registers: &mut T,
        out: &mut [Row],
    ) {
        let all = out.len();
        for (block, out) in out.chunks_mut(REGISTER_ROWS).enumerate() {
            let rows = block * REGISTER_ROWS..block * REGISTER_ROWS + out.len();
            let a = self.x.bytes.rows(rows.start..rows.end.next_multiple_of(TILE_REGISTER_ROWS));
            multiply_bytes_with_registers(simd, registers, self.tile(all, &rows, a, out));
            self.complete(simd, rows, out);
        }
    }

    /// Completes the sums of some rows.
    #[inline(always)]
    fn complete<S: Simd>(&self, simd: S, rows: Range<usize>, sums: &mut [Row]) {
        let ByteProduct { bias, epilogue, panel, .. } = *self;
        complete(simd, Completion { bias, epilogue, panel, rows, sums, rounded: None });
    }

    /// Returns the tile of the rows `rows` of `all` rows, whose inputs are `a`.
    #[inline(always)]
    fn tile<'t>(&'t self, all: usize, rows: &Range<usize>, a: View<'t, ByteRow>, out: &'t mut [Row]) -> ByteTile<'t> {
        let BytePanel { quads: b, scales: b_scales, sums: b_sums, columns: weights } = self.b;
        let (a_scales, ahead) = (&self.x.scales[rows.start..], self.ahead.part(rows, all));
        let x = if weights.is_empty() { &[] } else { &self.x.unquantized[rows.start..] };
        let unquantized = Unquantized { x, stride: all, weights };
        ByteTile { a, a_scales, a_stride: all, b, b_scales, b_sums, unquantized, ahead, out }
    }
}
