//! Chunks → the arrays of a batch: one after the other, each row filled up to the target.

use std::mem::MaybeUninit;
use std::ops::Range;

use rayon::ThreadPool;

use super::chunk::{Chunk, Types};
use super::{BatchRows, Columns, Number};
use crate::inputs::{Padding, Side};
use crate::memory;
use wordpiece_parallel::map_with;

/// Puts the rows of chunks into arrays, rows filled up where there is a target.
pub(super) fn join<N: Number>(
    chunks: Vec<Chunk>,
    target: Option<(usize, &Padding)>,
    columns: &Columns,
    pool: Option<&ThreadPool>,
) -> BatchRows<N> {
    if target.is_none() && chunks.len() == 1 {
        return chunks.into_iter().map(|chunk| whole(chunk, columns)).next().expect("one chunk");
    }
    joined(&chunks, target, columns, pool)
}

/// The rows of a single chunk without padding: nothing need be copied.
fn whole<N: Number>(Chunk { mut rows, types, .. }: Chunk, columns: &Columns) -> BatchRows<N> {
    // Room that nothing was written to goes back.
    rows.ids.shrink_to_fit();
    rows.offsets.shrink_to_fit();
    rows.word_ids.shrink_to_fit();
    rows.sequence_ids.shrink_to_fit();
    let mut row_offsets = rows.row_offsets;
    row_offsets.insert(0, 0);
    let n = rows.ids.len();
    let of = |wanted: bool| if wanted { n } else { 0 };
    BatchRows {
        ids: N::list(rows.ids),
        row_offsets,
        type_ids: match types {
            Types::Same { id, .. } => vec![N::of(id); of(columns.type_ids)],
            Types::List(list) => N::list(list),
        },
        attention_mask: vec![N::of(1); of(columns.attention_mask)],
        special_tokens_mask: N::list(rows.special_tokens_mask),
        offsets: rows.offsets,
        word_ids: rows.word_ids,
        sequence_ids: rows.sequence_ids,
        overflow_to_sample: rows.overflow_to_sample,
        n_tokens: rows.n_tokens,
        truncated: rows.truncated,
    }
}

/// Where rows go.
struct Shape<'a> {
    chunks: &'a [Chunk],
    /// The tokens of each chunk, padding included.
    sizes: Vec<usize>,
    target: usize,
    padding: Option<&'a Padding>,
    pool: Option<&'a ThreadPool>,
}

/// Arrays of fewer bytes are written by one thread: waking others would take longer.
const WORTH_THREADS: usize = 1 << 20;

impl Shape<'_> {
    /// Makes an array of `width` numbers a token: `write` writes those of the tokens of a row, `pad` says what the padding of
    /// a row has.
    fn column<T: Copy + Send>(
        &self,
        width: usize,
        write: impl Fn(&Chunk, Range<usize>, &mut [MaybeUninit<T>]) + Sync,
        pad: impl Fn(&Chunk, usize) -> T + Sync,
    ) -> Vec<T> {
        let total = width * self.sizes.iter().sum::<usize>();
        let mut all = Vec::new();
        memory::reserve(&mut all, total);
        let mut rest = &mut all.spare_capacity_mut()[..total];
        let mut parts = Vec::with_capacity(self.chunks.len());
        for (chunk, size) in self.chunks.iter().zip(&self.sizes) {
            let (part, others) = rest.split_at_mut(width * size);
            parts.push((chunk, part));
            rest = others;
        }
        let is_left = self.padding.is_some_and(|padding| padding.side == Side::Left);
        let fill = |(chunk, mut part): (&Chunk, &mut [MaybeUninit<T>])| {
            for (row, tokens) in chunk.rows().enumerate() {
                let (n, n_padded) = (width * tokens.len(), width * tokens.len().max(self.target));
                let (here, others) = part.split_at_mut(n_padded);
                let (ids, padding) = match is_left {
                    true => here.split_at_mut(n_padded - n),
                    false => here.split_at_mut(n),
                };
                let (ids, padding) = if is_left { (padding, ids) } else { (ids, padding) };
                write(chunk, tokens, ids);
                if !padding.is_empty() {
                    padding.fill(MaybeUninit::new(pad(chunk, row)));
                }
                part = others;
            }
        };
        let pool = self.pool.filter(|_| total * size_of::<T>() >= WORTH_THREADS);
        map_with(parts, pool, || (), |(), part| fill(part));
        // SAFETY: the parts are all of it, and each was written from its first row to its last: tokens by `write`, which is
        // given as many numbers as it has, and padding here.
        unsafe { all.set_len(total) };
        all
    }

    /// A column of numbers that models take.
    fn numbers<N: Number>(&self, list: impl Fn(&Chunk) -> &[u32] + Sync, pad: u32) -> Vec<N> {
        let write = |chunk: &Chunk, tokens, to: &mut [_]| copy(&list(chunk)[tokens], N::of, to);
        self.column(1, write, |_, _| N::of(pad))
    }

    /// One after the other, what each chunk has of something that is not padded.
    fn all<T: Copy>(&self, list: impl Fn(&Chunk) -> &[T]) -> Vec<T> {
        self.chunks.iter().flat_map(|chunk| list(chunk).iter().copied()).collect()
    }
}

/// Writes a list, each number as another.
#[inline]
fn copy<F: Copy, T>(from: &[F], number: impl Fn(F) -> T, to: &mut [MaybeUninit<T>]) {
    assert_eq!(from.len(), to.len());
    for (to, &from) in to.iter_mut().zip(from) {
        to.write(number(from));
    }
}

fn joined<N: Number>(
    chunks: &[Chunk],
    target: Option<(usize, &Padding)>,
    columns: &Columns,
    pool: Option<&ThreadPool>,
) -> BatchRows<N> {
    let padding = target.map(|(_, padding)| padding);
    let target = target.map_or(0, |(target, _)| target);
    let mut row_offsets = vec![0];
    let mut end = 0;
    let mut sizes = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let before = end;
        for tokens in chunk.rows() {
            end += tokens.len().max(target);
            row_offsets.push(end as i64);
        }
        sizes.push(end - before);
    }
    let shape = Shape { chunks, sizes, target, padding, pool };
    let (pad_id, pad_type_id) = padding.map_or((0, 0), |padding| (padding.id, padding.type_id));
    let wanted = |wanted: bool| wanted.then_some(());
    // Where all tokens have one segment id, and padding has it too, nothing need be copied.
    let one_type = |chunk: &Chunk| match chunk.types {
        Types::Same { id, n } => n == 0 || id == pad_type_id,
        Types::List(_) => false,
    };
    let type_ids = wanted(columns.type_ids).map(|()| match chunks.iter().all(one_type) {
        true => vec![N::of(pad_type_id); end],
        false => shape.column(
            1,
            |chunk, tokens, to| match &chunk.types {
                Types::Same { id, .. } => to.fill(MaybeUninit::new(N::of(*id))),
                Types::List(list) => copy(&list[tokens], N::of, to),
            },
            |_, _| N::of(pad_type_id),
        ),
    });
    let attention_mask = wanted(columns.attention_mask)
        .map(|()| shape.column(1, |_, _, to| to.fill(MaybeUninit::new(N::of(1))), |_, _| N::of(0)));
    let special_tokens_mask =
        wanted(columns.special_tokens_mask).map(|()| shape.numbers(|chunk| &chunk.rows.special_tokens_mask, 1));
    let offsets = wanted(columns.offsets).map(|()| {
        let pairs = |chunk: &Chunk, tokens: Range<usize>, to: &mut [_]| {
            copy(&chunk.rows.offsets[2 * tokens.start..2 * tokens.end], |at| at, to);
        };
        shape.column(2, pairs, |_, _| 0)
    });
    let word_ids = wanted(columns.word_ids)
        .map(|()| shape.column(1, |chunk, tokens, to| copy(&chunk.rows.word_ids[tokens], |id| id, to), |_, _| -1));
    let sequence_ids = wanted(columns.sequence_ids).map(|()| {
        let write = |chunk: &Chunk, tokens, to: &mut [_]| copy(&chunk.rows.sequence_ids[tokens], |id| id, to);
        shape.column(1, write, |chunk, row| chunk.pad_sequence_ids[row])
    });
    BatchRows {
        ids: shape.numbers(|chunk| &chunk.rows.ids, pad_id),
        row_offsets,
        type_ids: type_ids.unwrap_or_default(),
        attention_mask: attention_mask.unwrap_or_default(),
        special_tokens_mask: special_tokens_mask.unwrap_or_default(),
        offsets: offsets.unwrap_or_default(),
        word_ids: word_ids.unwrap_or_default(),
        sequence_ids: sequence_ids.unwrap_or_default(),
        overflow_to_sample: shape.all(|chunk| &chunk.rows.overflow_to_sample),
        n_tokens: shape.all(|chunk| &chunk.rows.n_tokens),
        truncated: shape.all(|chunk| &chunk.rows.truncated),
    }
}
