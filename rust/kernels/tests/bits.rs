//! The same bits on every CPU: digests of what each kind of layer computes in float32 and int8, and of search, sparse vectors
//! and static embeddings. Every instruction set that the CPU has, with and without its extensions, has the digest that stands
//! here; so any machine compares itself with those where it was recorded:
//!
//!     cargo test -p wordpiece-kernels --test bits
//!
//! Exempt are bfloat16, int8 with the tile registers of AMX, and training.

mod common;

use std::sync::Arc;

use common::Random;
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::arch::{Kernel, Portable, Simd, Sums, run};
use wordpiece_kernels::disentangled::{RelativePositions, RelativeTerms};
use wordpiece_kernels::encoder::*;
use wordpiece_kernels::gemm::{Dense, PackedWeights, Products, QuantizedWeight};
use wordpiece_kernels::maxsim::{Queries, maxsim};
use wordpiece_kernels::norm::NormKind;
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::plan::*;
use wordpiece_kernels::pooling::Pooling;
use wordpiece_kernels::search::{codes, floats};
use wordpiece_kernels::sparse::{SparseOptions, TokenPooling, VocabularyHead};
use wordpiece_kernels::static_embeddings::{MeanOptions, StaticEmbeddings};
use wordpiece_kernels::{Execution, InstructionSet, PANEL, Row, pad_to_panels};
use wordpiece_parallel::testing::instruction_sets;

/// Three heads of 32 columns: panels and groups of 64 inputs that are not whole, and with the width of the feed-forward network
/// more than a block of 128 inputs.
const HIDDEN: usize = 96;
const INTERMEDIATE: usize = 160;
/// Tokens of sequences: of one panel of keys and of several, of whole tiles and of others.
const LENGTHS: [usize; 5] = [1, 3, 16, 33, 70];
const POOLINGS: [Pooling; 5] =
    [Pooling::Cls, Pooling::Max, Pooling::Mean, Pooling::MeanSqrtLenTokens, Pooling::WeightedMean];

/// FNV-1a.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn of(numbers: &[f32]) -> u64 {
        assert!(numbers.iter().all(|x| x.is_finite()));
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        digest.add(numbers.iter().flat_map(|x| x.to_bits().to_le_bytes()));
        digest.0
    }
}

/// What was recorded, by the name of a computation.
const RECORDED: [(&str, u64); 20] = [
    ("bert, float32", 0x1f85_9f2b_54d4_4016),
    ("bert, int8", 0x9e3f_fe73_3201_b6b9),
    ("modernbert, float32", 0xf14b_7a16_6472_a83c),
    ("modernbert, int8", 0xace6_c1cf_6536_9e6a),
    ("neobert, float32", 0x2a02_13eb_261e_6981),
    ("neobert, int8", 0x4e86_4292_88fe_f1b4),
    ("mpnet, float32", 0x3e03_3793_459e_6103),
    ("mpnet, int8", 0xd99f_7612_1e8c_efaf),
    ("jina, float32", 0x546a_21be_0478_922d),
    ("jina, int8", 0xbfbd_fc10_e3b6_123b),
    ("deberta, float32", 0xf98a_766a_0b5e_983d),
    ("deberta, int8", 0x1289_5c00_02b2_10c0),
    ("Dot", 0x13b0_f509_9af3_e13d),
    ("Cosine", 0x4ac8_877a_f5ec_25f2),
    ("Euclidean", 0xa418_4b3a_e332_b432),
    ("Manhattan", 0x604e_0c76_0af6_03d0),
    ("maxsim", 0x3c4d_b864_4748_46bc),
    ("static", 0x2670_29fe_37d0_2be3),
    ("sparse, max", 0x0701_4aec_0393_7ebe),
    ("sparse, sum", 0x7637_d0b5_e69e_a701),
];

/// Returns whether all instruction sets compute what has the recorded digest, and says which does not.
fn check(what: &str, compute: impl Fn(InstructionSet) -> Vec<f32>) -> bool {
    let recorded = RECORDED.iter().find(|each| each.0 == what).map_or(0, |each| each.1);
    let paths = instruction_sets().into_iter().flat_map(InstructionSet::byte_paths);
    let found: Vec<_> = paths.map(|(name, set)| (name, Digest::of(&compute(set)))).collect();
    let other: Vec<_> = found.iter().filter(|each| each.1 != recorded).collect();
    other.iter().for_each(|(name, digest)| eprintln!("{what} by {name}: {digest:#018x}, not {recorded:#018x}"));
    other.is_empty()
}

/// Random weights of a model.
struct Weights {
    random: Random,
    is_int8: bool,
}

impl Weights {
    /// Returns a dense layer; in int8 some of its inputs are not quantized.
    fn dense(&mut self, k: usize, n: usize) -> Arc<Dense> {
        let weight: Vec<f32> = self.random.numbers(n * k).iter().map(|x| x * 0.15).collect();
        let bias = self.random.numbers(n);
        if !self.is_int8 {
            return Arc::new(Dense::new(&[(Numbers::F32(&weight), &bias)], k, Products::Float32));
        }
        let factors: Vec<f32> = (0..k).map(|j| if j % 70 == 5 { 0.0 } else { 1.0 + (j % 3) as f32 / 2.0 }).collect();
        let weight = QuantizedWeight::new(Numbers::F32(&weight), &factors).expect("finite weights");
        let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
        Arc::new(Dense::from_parts(packed, pad_to_panels(&bias)))
    }

    fn norm(&mut self, kind: NormKind) -> Norm {
        let weight: Vec<f32> = self.random.numbers(HIDDEN).iter().map(|x| 1.0 + x / 2.0).collect();
        let bias = if kind == NormKind::Layer { self.random.numbers(HIDDEN) } else { vec![0.0; HIDDEN] };
        Norm { weights: LayerNormWeights::new(&weight, &bias), eps: 1e-6, columns: HIDDEN, kind }
    }

    fn attention(&mut self, heads: usize) -> Attention<Packed> {
        Attention {
            qkv: self.dense(HIDDEN, 3 * HIDDEN),
            output: self.dense(HIDDEN, HIDDEN),
            heads,
            norms: None,
            rotary: None,
            window: None,
            bias: None,
            relative: None,
            terms: 1,
            masked_sees_all: false,
            dropout: (),
        }
    }

    fn mlp(&mut self, activation: Activation, has_gate: bool) -> Body<Packed> {
        Body::Mlp(Mlp {
            inner: self.dense(HIDDEN, INTERMEDIATE),
            up: has_gate.then(|| self.dense(HIDDEN, INTERMEDIATE)),
            output: self.dense(INTERMEDIATE, HIDDEN),
            activation,
            dropout: (),
        })
    }

    /// Returns a sub-layer with a norm after it; before it, if `kind` is given.
    fn residual(&mut self, body: Body<Packed>, before: Option<NormKind>) -> Residual<Packed> {
        let norm = self.norm(before.unwrap_or(NormKind::Layer));
        let (before, after) = if before.is_some() { (Some(norm), None) } else { (None, Some(norm)) };
        Residual { body, before, after, again: None, dropout: (), masked: false }
    }
}

/// The kinds of layers, each with the activations, norms and terms of the models that have it.
const KINDS: [&str; 6] = ["bert", "modernbert", "neobert", "mpnet", "jina", "deberta"];

/// Returns two layers of a kind.
fn encoder(kind: &str, is_int8: bool, set: InstructionSet) -> Encoder {
    let mut weights = Weights { random: Random(kind.len() as u64 + 1), is_int8 };
    let longest = LENGTHS[LENGTHS.len() - 1];
    let (mut rotary, mut relative_positions, mut last) = (vec![], None, None);
    let mut layers = Vec::new();
    for layer in 0..2 {
        // Heads of 32 columns are computed in place, others are copied.
        let mut attention = weights.attention(if kind == "jina" { 2 } else { 3 });
        let (mut activation, mut has_gate, mut before) = (Activation::Gelu, false, None);
        let mut more = None;
        match kind {
            "modernbert" => {
                (has_gate, before) = (true, Some(NormKind::Layer));
                attention.rotary = Some(0);
                attention.window = (layer == 1).then_some(20);
                rotary = vec![(0..16).map(|i| 1.0 / (1 << i) as f32).collect()];
                last = Some(weights.norm(NormKind::Layer));
            }
            "neobert" => {
                (activation, has_gate, before) = (Activation::Silu, true, Some(NormKind::Rms));
                attention.norms = Some([weights.norm(NormKind::Rms), weights.norm(NormKind::Layer)]);
                attention.rotary = Some(0);
                rotary = vec![(0..16).map(|i| 1.0 / (1 + 3 * i) as f32).collect()];
            }
            "mpnet" => {
                activation = Activation::Relu;
                let bias = weights.random.numbers(3 * (2 * longest + 1));
                attention.bias = Some(Arc::new(RelativeBiasTable::Distances { bias, max_distance: longest }));
            }
            "jina" => {
                (activation, has_gate) = (Activation::GeluTanh, true);
                attention.bias = Some(Arc::new(RelativeBiasTable::Slopes(vec![0.25, 0.0625])));
            }
            "deberta" => {
                activation = [Activation::Tanh, Activation::Mish][layer];
                let [keys, queries] = [(); 2].map(|()| weights.random.numbers(32 * HIDDEN));
                let tables = [Some(&keys[..]), Some(&queries[..])];
                attention.relative = Some(RelativeTerms::new(set, tables, 3, HIDDEN / 3, false));
                (attention.terms, attention.masked_sees_all) = (3, true);
                relative_positions = Some(RelativePositions { span: 16, longest: Some(64) });
                let dense = weights.dense(3 * HIDDEN, HIDDEN);
                let convolution = Convolution { dense, width: 3, activation: Activation::QuickGelu, dropout: () };
                more = (layer == 0).then(|| weights.residual(Body::Convolution(convolution), None));
            }
            _ => {}
        }
        let mlp = weights.mlp(activation, has_gate);
        let mut residuals = vec![weights.residual(Body::Attention(attention), before), weights.residual(mlp, before)];
        residuals.extend(more);
        layers.push(residuals);
    }
    let then = vec![Step::Norm(weights.norm(NormKind::Layer))];
    let embeddings =
        Embeddings { words: Some(()), positions: None, types: None, tasks: None, then, masked: false, dropout: () };
    let plan = Plan { embeddings, layers, last };
    Encoder {
        plan,
        hidden: HIDDEN,
        embedding: HIDDEN,
        instruction_set: set,
        tiles: None,
        rotary,
        relative_positions,
        scratch: Default::default(),
    }
}

/// Returns the pooled vectors of all sequences, a fifth of whose tokens are masked.
fn vectors(encoder: &Encoder) -> Vec<f32> {
    let words = Random(99).numbers(200 * HIDDEN);
    let tokens: usize = LENGTHS.iter().sum();
    let ids: Vec<u32> = (0..tokens as u32).map(|i| i * 7 % 200).collect();
    let positions: Vec<u32> = LENGTHS.iter().flat_map(|n| 0..*n as u32).collect();
    let columns = TokenColumns { ids: &ids, types: &[], position_ids: &[], positions: &positions };
    let tables = EmbeddingTables { words: Numbers::F32(&words), types: None, positions: None };
    let mut vectors = vec![0.0; LENGTHS.len() * POOLINGS.len() * HIDDEN];
    let mut first = 0;
    let outputs = LENGTHS.iter().zip(vectors.chunks_mut(POOLINGS.len() * HIDDEN));
    let sequences = outputs.map(|(&length, to)| {
        first += length;
        let pooled = Some(PooledOutput { modes: &POOLINGS, skip: 0, to });
        let (tokens, keys) = (first - length..first, length - length / 5);
        Sequence { tokens, keys, states: vec![], attentions: vec![], length, pooled }
    });
    encoder.run(tables, columns, sequences.collect(), None);
    vectors
}

#[test]
#[cfg_attr(miri, ignore = "multiplies a billion numbers")]
fn each_kind_of_layer_has_its_digest() {
    let cases = KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    let equal = cases.map(|(kind, is_int8)| {
        let name = format!("{kind}, {}", if is_int8 { "int8" } else { "float32" });
        check(&name, |set| vectors(&encoder(kind, is_int8, set)))
    });
    assert!(equal.fold(true, |all, is_equal| all & is_equal));
}

#[test]
#[cfg_attr(miri, ignore = "multiplies ten million numbers")]
fn scores_have_their_digests() {
    use floats::Metric;
    let (width, count) = (150, 90);
    let (rows, asked) = (Random(1).numbers(count * width), Random(2).numbers(40 * width));
    let metrics = [Metric::Dot, Metric::Cosine, Metric::Euclidean, Metric::Manhattan].into_iter();
    let equal = metrics.map(|metric| {
        check(&format!("{metric:?}"), |set| {
            let execution = Execution::on_this_thread(set);
            let mut found = Vec::new();
            // One query is compared in another way than several, and with codes few are in another than many.
            for queries in [&asked[..width], &asked[..2 * width], &asked] {
                let hits = floats::search(execution, queries, &rows, width, metric, 50);
                if metric != Metric::Manhattan {
                    let codes = codes::encode(execution, &rows, width);
                    let coded = codes::Coded { rows: &rows, codes: &codes, width };
                    assert_eq!(codes::search(execution, queries, coded, metric, 50, &[]), hits);
                }
                found.extend(hits.iter().flatten().flat_map(|hit| [hit.row as f32, hit.score as f32]));
            }
            found
        })
    });
    let are_equal = equal.fold(true, |all, is_equal| all & is_equal);
    let queries = Queries::new(&asked, width, &[0, 7, 40]);
    assert!(
        are_equal
            & check("maxsim", |set| {
                let mut scores = vec![0.0; 6];
                maxsim(Execution::on_this_thread(set), &queries, &rows, &[0, 20, 21, count], &mut scores);
                scores
            })
    );
}

#[test]
#[cfg_attr(miri, ignore = "multiplies ten million numbers")]
fn sparse_and_static_vectors_have_their_digests() {
    let mut random = Random(5);
    let (table, x) = (random.numbers(50 * 100), random.numbers(60 * HIDDEN));
    let ids: Vec<u32> = (0..200).map(|i| i * 13 % 50).collect();
    let is_equal = check("static", |set| {
        let embeddings = StaticEmbeddings::new(&table, 100, None, Some(table[..50].to_vec()));
        let options = MeanOptions { dropped: Some(7), least_length: Some(1e-12) };
        let mut to = vec![0.0; 4 * 100];
        embeddings.means(set, &ids, &[1, 30, 70, 200], options, &mut to);
        to
    });
    let [dense, decoder] = [HIDDEN * HIDDEN, 300 * HIDDEN].map(|n| random.numbers(n));
    let sparse = |pooling| {
        let (dense, decoder, table, x) = (&dense, &decoder, &table, &x);
        move |set| {
            let norm = Weights { random: Random(3), is_int8: false }.norm(NormKind::Layer);
            let (dense, decoder) = ((Numbers::F32(dense), &table[..HIDDEN]), (Numbers::F32(decoder), &table[..300]));
            let head = VocabularyHead::new(dense, Activation::Gelu, norm, decoder, Products::Float32);
            let options = SparseOptions { pooling, twice: pooling == TokenPooling::Max, max_values: Some(100) };
            let rows = head.encode(Execution::on_this_thread(set), x, &[0, 5, 60], options);
            rows.columns.iter().map(|column| *column as f32).chain(rows.values).collect()
        }
    };
    let are_equal = [("sparse, max", TokenPooling::Max), ("sparse, sum", TokenPooling::Sum)]
        .map(|(name, pooling)| check(name, sparse(pooling)));
    assert!(is_equal && are_equal == [true; 2]);
}

/// The sum of the numbers of rows and of their squares.
struct Totals<'a>(&'a [Row]);

impl Kernel for Totals<'_> {
    type Output = [u32; 2];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> [u32; 2] {
        let mut sums = [Sums::zero(simd); 2];
        for row in self.0 {
            for at in (0..PANEL).step_by(S::LANES) {
                let x = simd.load(row, at);
                sums[0].add(simd, at, x);
                sums[1].add_product(simd, at, x, x);
            }
        }
        sums.map(|sums| sums.total(simd).to_bits())
    }
}

/// Vectors of 4, 8 and 16 numbers are emulated, so that this is tested without NEON and AVX-512, too.
#[test]
fn sums_have_the_documented_order_for_every_length_of_vectors() {
    for count in [1, 2, 3, 12, 48] {
        let rows = pad_to_panels(&Random(count).numbers(count as usize * PANEL));
        let mut sums = [[0.0_f32; 16]; 2];
        for (column, x) in rows.iter().flat_map(|row| row.0).enumerate() {
            sums[0][column % 16] += x;
            sums[1][column % 16] = x.mul_add(x, sums[1][column % 16]);
        }
        let expected = sums.map(|mut sums| {
            for apart in [8, 4, 2, 1] {
                (0..apart).for_each(|i| sums[i] += sums[i + apart]);
            }
            sums[0].to_bits()
        });
        assert_eq!(Portable::<4, false>::on_any_cpu().run(Totals(&rows)), expected, "4 lanes");
        assert_eq!(Portable::<8, false>::on_any_cpu().run(Totals(&rows)), expected, "8 lanes");
        assert_eq!(Portable::<16, false>::on_any_cpu().run(Totals(&rows)), expected, "16 lanes");
        for set in instruction_sets() {
            assert_eq!(run(set, Totals(&rows)), expected, "{}", set.name());
        }
    }
}

#[test]
fn portable_sums_of_products_are_rounded_once() {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    // Numbers of any size; small ones; such with few bits or exponents far apart, whose sums are near ties.
    let mut number = |kind: u32| match kind {
        0 => f32::from_bits(next()),
        1 => f32::from_bits(next() & 0x03ff_ffff),
        2 => f32::from_bits(0x3f80_0000 | (next() & 0x0000_0fff) << (next() % 12)) * 2f32.powi(next() as i32 % 60),
        _ => (next() % 4096) as f32 * 2f32.powi(next() as i32 % 12),
    };
    let mut cases: Vec<[f32; 3]> = (0..if cfg!(miri) { 1_000 } else { 300_000 })
        .map(|i| std::array::from_fn(|_| number(i % 4)))
        .chain([[f32::MAX, 2.0, f32::NEG_INFINITY], [f32::INFINITY, 1.0, 1.0], [f32::MAX, f32::MAX, -1.0]])
        .collect();
    // The nearest float64 is half-way between two float32 numbers, and the exact sum is on one side of it.
    let (x, y) = (1.0 + f32::EPSILON, (1.0 - f32::EPSILON) * f32::EPSILON / 2.0);
    assert_ne!((f64::from(x) * f64::from(y) + f64::from(x)) as f32, x.mul_add(y, x));
    cases.extend([[x, y, x], [-x, y, -x]]);
    let simd = Portable::<4, false>::on_any_cpu();
    for [x, y, z] in cases {
        let (found, expected) = (simd.fma([x; 4], [y; 4], [z; 4])[3], x.mul_add(y, z));
        let is_equal = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
        assert!(is_equal, "{x:e}·{y:e} + {z:e}: {found:e}, not {expected:e}");
    }
}
