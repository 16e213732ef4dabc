//! Sparse vectors and MaxSim on every instruction set, against plain loops in float64, and their bits on any number of
//! threads and in any batch.

mod common;

use std::sync::Arc;

use common::{Random, wide};
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::encoder::{LayerNormWeights, Norm};
use wordpiece_kernels::gemm::{Dense, PackedWeights, Products, QuantizedWeight};
use wordpiece_kernels::maxsim::{EMPTY_DOCUMENT, Queries, maxsim, maxsim_pairwise};
use wordpiece_kernels::norm::NormKind;
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::sparse::{SparseOptions, SparseRows, TokenPooling, VocabularyHead};
use wordpiece_kernels::{Execution, pad_to_panels, reference};
use wordpiece_parallel::testing::instruction_sets;
use wordpiece_parallel::thread_pool;

fn numbers(seed: u64, n: usize) -> Vec<f32> {
    Random(seed).numbers(n)
}

const HIDDEN: usize = 40;
const WIDTH: usize = 24;
const VOCABULARY: usize = 600;
const OFFSETS: [usize; 6] = [0, 3, 3, 10, 240, 241];

fn head(products: Products) -> VocabularyHead {
    let norm = LayerNormWeights::new(&numbers(3, WIDTH), &numbers(4, WIDTH));
    VocabularyHead::new(
        (Numbers::F32(&numbers(1, WIDTH * HIDDEN)), &numbers(2, WIDTH)),
        Activation::Gelu,
        Norm { weights: norm, eps: 1e-12, columns: WIDTH, kind: NormKind::Layer },
        (Numbers::F32(&numbers(5, VOCABULARY * WIDTH)), &numbers(6, VOCABULARY)),
        products,
    )
}

/// The same head with an int8 decoder.
fn int8_head() -> VocabularyHead {
    let (weight, bias) = (numbers(1, WIDTH * HIDDEN), numbers(2, WIDTH));
    let dense = Dense::new(&[(Numbers::F32(&weight), &bias)], HIDDEN, Products::Float32);
    let factors = [1.0; WIDTH];
    let decoder = numbers(5, VOCABULARY * WIDTH);
    let decoder = QuantizedWeight::new(Numbers::F32(&decoder), &factors).expect("finite weights");
    let decoder = PackedWeights::int8(&[(&decoder.values, &decoder.scales, &decoder.columns)], &factors);
    let decoder = Dense::from_parts(decoder, pad_to_panels(&numbers(6, VOCABULARY)));
    let norm = LayerNormWeights::new(&numbers(3, WIDTH), &numbers(4, WIDTH));
    let norm = Norm { weights: norm, eps: 1e-12, columns: WIDTH, kind: NormKind::Layer };
    VocabularyHead::from_layers(Arc::new(dense), Activation::Gelu, norm, Arc::new(decoder), VOCABULARY)
}

fn dense(rows: &SparseRows) -> Vec<f32> {
    let mut x = vec![0.0; rows.counts.len() * VOCABULARY];
    let mut entries = rows.columns.iter().zip(&rows.values);
    for (row, count) in rows.counts.iter().enumerate() {
        for (column, value) in entries.by_ref().take(*count) {
            x[row * VOCABULARY + *column as usize] = *value;
        }
    }
    x
}

/// The definition: ln(1 + max(z, 0)) of every logit, pooled.
fn defined(x: &[f32], options: SparseOptions) -> Vec<f64> {
    let y = reference::linear(&wide(x), &wide(&numbers(1, WIDTH * HIDDEN)), &wide(&numbers(2, WIDTH)), HIDDEN);
    let y: Vec<f64> = y.into_iter().map(|y| reference::activation(Activation::Gelu, y)).collect();
    let (weight, bias) = (wide(&numbers(3, WIDTH)), wide(&numbers(4, WIDTH)));
    let y: Vec<f64> = y.chunks(WIDTH).flat_map(|row| reference::layer_norm(row, &weight, &bias, 1e-12)).collect();
    let z = reference::linear(&y, &wide(&numbers(5, VOCABULARY * WIDTH)), &wide(&numbers(6, VOCABULARY)), WIDTH);
    let mut pooled = vec![0.0; (OFFSETS.len() - 1) * VOCABULARY];
    for (ends, to) in OFFSETS.windows(2).zip(pooled.chunks_mut(VOCABULARY)) {
        for logits in z[ends[0] * VOCABULARY..ends[1] * VOCABULARY].chunks(VOCABULARY) {
            for (to, z) in to.iter_mut().zip(logits) {
                let once = z.max(0.0).ln_1p();
                let value = if options.twice { once.ln_1p() } else { once };
                *to = if options.pooling == TokenPooling::Max { value.max(*to) } else { value + *to };
            }
        }
    }
    pooled
}

#[test]
fn sparse_vectors_are_the_pooled_logits() {
    let x = numbers(9, 241 * HIDDEN);
    for set in instruction_sets() {
        let execution = Execution::on_this_thread(set);
        for (pooling, twice) in [(TokenPooling::Max, false), (TokenPooling::Sum, true), (TokenPooling::Sum, false)] {
            let options = SparseOptions { pooling, twice, max_values: None };
            let rows = head(Products::Float32).encode(execution, &x, &OFFSETS, options);
            assert_eq!(rows.counts[1], 0, "a text without tokens");
            assert!(rows.values.iter().all(|value| *value > 0.0));
            for (found, defined) in dense(&rows).into_iter().zip(defined(&x, options)) {
                let distance = (f64::from(found) - defined).abs();
                assert!(distance <= 1e-5 * defined.max(1.0), "{}: {found}, not {defined}", set.name());
            }
        }
    }
}

#[test]
fn an_int8_decoder_keeps_sparse_vectors_close() {
    let x = numbers(9, 241 * HIDDEN);
    let options = SparseOptions { pooling: TokenPooling::Max, twice: false, max_values: None };
    let defined = defined(&x, options);
    for set in instruction_sets() {
        let found = dense(&int8_head().encode(Execution::on_this_thread(set), &x, &OFFSETS, options));
        for (row, (found, defined)) in found.chunks(VOCABULARY).zip(defined.chunks(VOCABULARY)).enumerate() {
            let found = wide(found);
            let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            let lengths = (product(&found, &found) * product(defined, defined)).sqrt();
            assert!(product(&found, defined) >= 0.9995 * lengths, "{}, text {row}", set.name());
        }
    }
}

#[test]
fn a_sparse_vector_has_the_same_bits_in_any_batch_and_on_any_threads() {
    let x = numbers(9, 241 * HIDDEN);
    for set in instruction_sets() {
        let alone = Execution::on_this_thread(set);
        for head in [head(Products::Float32), head(Products::bfloat16(set, alone.tiles)), int8_head()] {
            let options = SparseOptions { pooling: TokenPooling::Sum, twice: false, max_values: Some(50) };
            let together = head.encode(alone, &x, &OFFSETS, options);
            for threads in [1, 3] {
                let execution = Execution { pool: thread_pool(threads), ..alone };
                assert_eq!(head.encode(execution, &x, &OFFSETS, options), together, "{}", set.name());
            }
            let mut parts = SparseRows::default();
            for ends in OFFSETS.windows(2) {
                let part = head.encode(alone, &x[ends[0] * HIDDEN..ends[1] * HIDDEN], &[0, ends[1] - ends[0]], options);
                parts.counts.extend(part.counts);
                parts.columns.extend(part.columns);
                parts.values.extend(part.values);
            }
            assert_eq!(parts, together, "{}", set.name());
        }
    }
}

#[test]
fn scores_are_sums_of_greatest_dot_products() {
    const SIZE: usize = 33;
    let (query_offsets, offsets) = ([0, 32, 32, 65], [0, 5, 5, 700, 733]);
    let (queries, documents) = (numbers(11, 65 * SIZE), numbers(12, 733 * SIZE));
    let packed = Queries::new(&queries, SIZE, &query_offsets);
    let vectors = |x: &[f32], range: &[usize]| -> Vec<Vec<f64>> {
        x[range[0] * SIZE..range[1] * SIZE].chunks(SIZE).map(wide).collect()
    };
    for set in instruction_sets() {
        let mut scores = vec![f32::NAN; 12];
        let execution = Execution::on_this_thread(set);
        maxsim(execution, &packed, &documents, &offsets, &mut scores);
        for (i, query) in query_offsets.windows(2).enumerate() {
            for (j, document) in offsets.windows(2).enumerate() {
                let (query, document) = (vectors(&queries, query), vectors(&documents, document));
                let dot = |q: &[f64], d: &[f64]| q.iter().zip(d).map(|(q, d)| q * d).sum::<f64>();
                let greatest = |q: &Vec<f64>| document.iter().map(|d| dot(q, d)).fold(f64::NEG_INFINITY, f64::max);
                let defined =
                    if document.is_empty() { f64::from(EMPTY_DOCUMENT) } else { query.iter().map(greatest).sum() };
                let found = f64::from(scores[i * 4 + j]);
                assert!(
                    (found - defined).abs() <= 1e-5 * defined.abs().max(1.0),
                    "{}: {found}, not {defined}",
                    set.name()
                );
            }
        }
        let mut shared = vec![f32::NAN; 12];
        maxsim(Execution { pool: thread_pool(3), ..execution }, &packed, &documents, &offsets, &mut shared);
        assert_eq!(shared, scores, "{}", set.name());
        let mut pairs = vec![f32::NAN; 3];
        maxsim_pairwise(execution, &packed, &documents, &offsets[..4], &mut pairs);
        assert_eq!(pairs, [scores[0], scores[5], scores[10]], "{}", set.name());
    }
}
