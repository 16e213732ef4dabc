//! The encoder and the dense layers of `wordpiece_kernels` over NumPy arrays, for `wordpiece_bert.bert.engines.rust`.
//!
//! Arrays are validated by the Python side, which is the only caller: a wrong shape is a panic here, reported as an
//! InternalError. Weights are copied when they are packed; embedding tables stay in their arrays and are only borrowed while
//! a call runs. The interpreter is detached while Rust computes; `interrupt` says what holds for arrays meanwhile.

use std::sync::Arc;

use numpy::ndarray::{Ix2, Ix3, Ix4};
use numpy::{
    IntoPyArray, PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::encoder::{
    EmbeddingTables, Encoder, EncoderConfig, Layer, LayerNormWeights, LayerPositions, Layers, PooledOutput,
    RelativeBiasTable, Sequence, TokenColumns,
};
use wordpiece_kernels::gemm::{Dense, Products, linear_unpacked};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::pooling::Pooling;
use wordpiece_kernels::{Execution, Matrix};
use wordpiece_parallel::ScratchPool;

use crate::bottleneck::{PackedBottleneck, PackedDense};
use crate::disentangled::{DisentangledArrays, disentangled_of};
use crate::engine::kernels_for;
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::names::{activation_of, pooling_of};
use crate::new_arrays::zeros;
use crate::offsets;
use crate::stored_arrays::{BorrowedNumbers, DenseArrays, NormArrays, NormWithEps, by_rows, norm_of};
use crate::text::{Utf8, Utf8String};
use crate::threads;

/// The packed weights of one layer.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct PackedLayer {
    layer: Arc<Layer>,
    hidden: usize,
    /// N·d, the width of all queries of a row.
    attention: usize,
    intermediate: usize,
    /// The dense layers that it is made of, as the first arguments of the constructor.
    parts: [Option<Py<PackedDense>>; 5],
}

#[pymethods]
impl PackedLayer {
    /// Combine the packed dense layers of a layer, query, key and value being one, and its layer norms; `up` is that of a
    /// gated feed-forward network. `query_key_norms` and `second_norm` are the further norms of Jina-BERT; the first layer of
    /// ModernBERT has no `output_norm`.
    #[new]
    #[pyo3(signature = (qkv, output, output_norm, inner, up, outer, outer_norm, query_key_norms=None, second_norm=None))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the weights of a layer by name")]
    fn new(
        py: Python<'_>,
        qkv: Py<PackedDense>,
        output: Py<PackedDense>,
        output_norm: Option<NormArrays<'_>>,
        inner: Py<PackedDense>,
        up: Option<Py<PackedDense>>,
        outer: Py<PackedDense>,
        outer_norm: NormArrays<'_>,
        query_key_norms: Option<[NormArrays<'_>; 2]>,
        second_norm: Option<NormArrays<'_>>,
    ) -> PyResult<PackedLayer> {
        guarded(|| {
            let (hidden, attention) = qkv.get().sizes();
            let layer = Layer {
                qkv: qkv.get().dense(),
                output: output.get().dense(),
                output_norm: output_norm.as_ref().map(layer_norm_of).transpose()?,
                query_key_norms: match &query_key_norms {
                    Some([query, key]) => Some([layer_norm_of(query)?, layer_norm_of(key)?]),
                    None => None,
                },
                second_norm: second_norm.as_ref().map(layer_norm_of).transpose()?,
                inner: inner.get().dense(),
                up: up.as_ref().map(|up| up.get().dense()),
                outer: outer.get().dense(),
                outer_norm: layer_norm_of(&outer_norm)?,
            };
            let intermediate = inner.get().sizes().1;
            let parts = [Some(qkv), Some(output), Some(inner), up.map(|up| up.clone_ref(py)), Some(outer)];
            Ok(PackedLayer { layer: Arc::new(layer), hidden, attention, intermediate, parts })
        })
    }

    /// Return the class and the arguments of its constructor, for pickle and copy.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        guarded(|| {
            let (this, py) = (slf.get(), slf.py());
            let norm_of = |norm: &LayerNormWeights, columns: usize| -> (_, _) {
                norm.to_vecs(columns).map(|x| x.into_pyarray(py)).into()
            };
            let norm = |norm: &LayerNormWeights| norm_of(norm, this.hidden);
            let further: [Option<_>; 2] = match &this.layer.query_key_norms {
                Some(norms) => norms.each_ref().map(|norm| Some(norm_of(norm, this.attention))),
                None => [None, None],
            };
            let query_key_norms = match further {
                [Some(query), Some(key)] => Some((query, key)),
                _ => None,
            };
            let second_norm = this.layer.second_norm.as_ref().map(norm);
            let output_norm = this.layer.output_norm.as_ref().map(norm);
            let outer_norm = norm(&this.layer.outer_norm);
            let [qkv, output, inner, up, outer] = &this.parts;
            let parts = (qkv, output, output_norm, inner, up, outer, outer_norm, query_key_norms, second_norm);
            Ok((slf.get_type(), parts.into_pyobject(py)?))
        })
    }
}

/// Returns the weights of a layer norm.
fn layer_norm_of((weight, bias): &NormArrays<'_>) -> PyResult<LayerNormWeights> {
    Ok(LayerNormWeights::new(weight.as_slice()?, bias.as_slice()?))
}

/// An embedding table [rows, E], in the array and type in which it is stored.
struct EmbeddingTable {
    array: Py<PyAny>,
    dtype: String,
}

impl EmbeddingTable {
    fn new((array, dtype): (Py<PyAny>, Utf8String)) -> EmbeddingTable {
        EmbeddingTable { array, dtype: dtype.0 }
    }

    fn borrow<'py>(&self, py: Python<'py>) -> PyResult<BorrowedNumbers<'py>> {
        BorrowedNumbers::new(self.array.bind(py), &self.dtype)
    }
}

/// An encoder: packed layers and embedding tables. It never changes, so threads may share it.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct BertEncoder {
    core: Encoder,
    words: EmbeddingTable,
    types: Option<EmbeddingTable>,
    positions: Option<EmbeddingTable>,
}

/// What `BertEncoder.forward` returns: hidden states [B, length, H] and attention weights [B, N, length, length].
type ForwardResult<'py> = (Vec<Bound<'py, PyArray3<f32>>>, Vec<Bound<'py, PyArray4<f32>>>);

#[pymethods]
impl BertEncoder {
    /// Combine packed layers, of BERT or of MobileBERT, embedding tables [rows, E] and what else a model has; tables are kept, not copied.
    ///
    /// `distances` is the attention bias of MPNet, [N, 2·D + 1], by the distance key − query from −D to D; `rotary` are the
    /// frequencies of rotary positions, [d/2] each; `layer_positions` says for each layer which frequencies it rotates by,
    /// and the greatest distance of a key that a query sees; `slopes` are those of ALiBi, [N];
    /// `disentangled` is what a DeBERTa has: K, M (0 without buckets), the divisor of scores, the relative positions of each
    /// layer [2K, N·d] for queries and for keys, and the convolution. Without `instruction_set`, the best one of this CPU
    /// computes.
    #[new]
    #[pyo3(signature = (layers, bottlenecks, words, positions, types, transformation, embedding_norm, projection, last_norm,
        distances, rotary, layer_positions, *, embedding, heads, activation, eps, norm_first=false, rms_norm=false,
        slopes=None, disentangled=None, instruction_set=None))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the weights of an encoder by name")]
    fn new(
        layers: Vec<PyRef<'_, PackedLayer>>,
        bottlenecks: Vec<PyRef<'_, PackedBottleneck>>,
        words: (Py<PyAny>, Utf8String),
        positions: Option<(Py<PyAny>, Utf8String)>,
        types: Option<(Py<PyAny>, Utf8String)>,
        transformation: Option<PyRef<'_, PackedDense>>,
        embedding_norm: Option<NormWithEps<'_>>,
        projection: Option<DenseArrays<'_>>,
        last_norm: Option<NormArrays<'_>>,
        distances: Option<PyReadonlyArray2<'_, f32>>,
        rotary: Vec<PyReadonlyArray1<'_, f32>>,
        layer_positions: Vec<(Option<usize>, Option<usize>)>,
        embedding: usize,
        heads: usize,
        activation: Utf8<'_>,
        eps: f32,
        norm_first: bool,
        rms_norm: bool,
        slopes: Option<PyReadonlyArray1<'_, f32>>,
        disentangled: Option<DisentangledArrays<'_>>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<BertEncoder> {
        guarded(|| {
            let [hidden, attention, intermediate] = match (layers.first(), bottlenecks.first()) {
                (Some(layer), _) => [layer.hidden, layer.attention, layer.intermediate],
                (_, Some(layer)) => layer.sizes(),
                _ => return Err(error::input("an encoder needs a layer".into())),
            };
            let config = EncoderConfig {
                hidden,
                embedding,
                heads,
                head_size: attention / heads.max(1),
                intermediate,
                activation: activation_of(&activation)?,
                eps,
                rms_norm,
                norm_first,
            };
            let projection = match projection {
                Some(((weight, dtype), bias)) => {
                    let weight = BorrowedNumbers::new(&weight, &dtype)?;
                    Some(Dense::new(&[(weight.numbers()?, bias.as_slice()?)], embedding, Products::Float32))
                }
                None => None,
            };
            let relative_bias = match (distances, slopes) {
                (Some(bias), _) => Some(RelativeBiasTable::Distances {
                    bias: by_rows(&bias)?.to_vec(),
                    max_distance: (bias.shape()[1].max(1) - 1) / 2,
                }),
                (None, Some(slopes)) => Some(RelativeBiasTable::Slopes(slopes.as_slice()?.to_vec())),
                (None, None) => None,
            };
            let (instruction_set, tiles) = kernels_for(instruction_set.as_deref())?;
            let core = Encoder {
                config,
                instruction_set,
                tiles,
                transformation: transformation.map(|dense| dense.dense()),
                embedding_norm: embedding_norm.as_ref().map(norm_of).transpose()?,
                projection,
                layers: if layers.is_empty() {
                    Layers::Bottleneck(bottlenecks.iter().map(|layer| layer.layer()).collect())
                } else {
                    Layers::Bert(layers.iter().map(|layer| layer.layer.clone()).collect())
                },
                last_norm: last_norm.as_ref().map(layer_norm_of).transpose()?,
                relative_bias,
                disentangled: match &disentangled {
                    Some(arrays) => {
                        let layers = layers.iter().map(|layer| &*layer.layer);
                        Some(disentangled_of(arrays, &config, layers, instruction_set, tiles)?)
                    }
                    None => None,
                },
                rotary: rotary.iter().map(|table| Ok(table.as_slice()?.to_vec())).collect::<PyResult<_>>()?,
                positions: layer_positions
                    .into_iter()
                    .map(|(rotary, window)| LayerPositions { rotary, window })
                    .collect(),
                scratch: ScratchPool::default(),
            };
            let [positions, types] = [positions, types].map(|table| table.map(EmbeddingTable::new));
            Ok(BertEncoder { core, words: EmbeddingTable::new(words), positions, types })
        })
    }

    /// Run the encoder over the tokens of B sequences, one sequence after the other; in each, those that may be attended to
    /// come first.
    ///
    /// `neighbours` has the next and the previous row of the table of words for each token, uint32 [tokens, 2], the largest
    /// number for none; empty unless the model joins them. ids, types, position_ids and positions: uint32 [tokens], where an empty array means 0, or 0, 1, 2, … in each
    /// sequence; row_offsets: int64 [B + 1]; keys, how many tokens may be attended to: int64 [B]; vectors: float32
    /// [tokens, E] instead of the table of words. Return the hidden states numbered in `states`, float32 [B, length, H],
    /// and, if requested, the attention weights of each layer, float32 [B, N, length, length]; rows are written at
    /// `positions` and 0 elsewhere.
    #[pyo3(signature = (ids, types, position_ids, neighbours, positions, row_offsets, keys, vectors, length, states,
        attentions, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the arrays of a batch by name")]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'_, u32>,
        types: PyReadonlyArray1<'_, u32>,
        position_ids: PyReadonlyArray1<'_, u32>,
        neighbours: PyReadonlyArray1<'_, u32>,
        positions: PyReadonlyArray1<'_, u32>,
        row_offsets: PyReadonlyArray1<'_, i64>,
        keys: PyReadonlyArray1<'_, i64>,
        vectors: Option<PyReadonlyArray2<'_, f32>>,
        length: usize,
        states: Vec<usize>,
        attentions: bool,
        threads: Option<usize>,
    ) -> PyResult<ForwardResult<'py>> {
        guarded(|| {
            let (batch, config) = (keys.len(), &self.core.config);
            let tokens = vectors.as_ref().map_or(ids.len(), |vectors| vectors.shape()[0]);
            let shape = [batch, length, config.hidden];
            let new_states =
                states.iter().map(|_| zeros::<Ix3>(py, shape, batch, "hidden states")).collect::<PyResult<Vec<_>>>()?;
            let layers = if attentions { self.core.layers.len() } else { 0 };
            let shape = [batch, config.heads, length, length];
            let new_attentions = (0..layers)
                .map(|_| zeros::<Ix4>(py, shape, batch, "attention weights"))
                .collect::<PyResult<Vec<_>>>()?;
            {
                let mut sequences: Vec<Sequence<'_>> = offsets::rows("row_offsets", &row_offsets, tokens)?
                    .into_iter()
                    .zip(keys.as_slice()?)
                    .map(|(tokens, keys)| Sequence {
                        keys: offsets::keys(*keys, tokens.len()),
                        tokens,
                        states: Vec::new(),
                        attentions: Vec::new(),
                        length,
                        pooled: None,
                    })
                    .collect();
                let mut borrowed: Vec<_> = new_states.iter().map(|array| array.readwrite()).collect();
                for (state, array) in states.iter().zip(&mut borrowed) {
                    let rows = array.as_slice_mut()?.chunks_mut((length * config.hidden).max(1));
                    for (sequence, to) in sequences.iter_mut().zip(rows) {
                        sequence.states.push((*state, to));
                    }
                }
                let mut borrowed: Vec<_> = new_attentions.iter().map(|array| array.readwrite()).collect();
                for array in &mut borrowed {
                    let rows = array.as_slice_mut()?.chunks_mut((config.heads * length * length).max(1));
                    for (sequence, to) in sequences.iter_mut().zip(rows) {
                        sequence.attentions.push(to);
                    }
                }
                let tokens = TokenColumns {
                    ids: ids.as_slice()?,
                    types: types.as_slice()?,
                    position_ids: position_ids.as_slice()?,
                    neighbours: neighbours.as_slice()?,
                    positions: positions.as_slice()?,
                };
                let vectors = vectors.as_ref().map(by_rows).transpose()?;
                self.run(py, tokens, vectors, sequences, threads)?;
            }
            Ok((new_states, new_attentions))
        })
    }

    /// Run the encoder over rows of ids and pool each: ids and position_ids uint32 [tokens] (position_ids may be empty for
    /// 0, 1, 2, … in each row), neighbours as for `forward`, row_offsets int64 [B + 1] -> float32 [B, modes · H]. The first `skip` tokens of each row, a
    /// prompt, are excluded from pooling.
    #[pyo3(signature = (ids, position_ids, neighbours, row_offsets, modes, skip, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the arrays of a batch by name")]
    fn pooled<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'_, u32>,
        position_ids: PyReadonlyArray1<'_, u32>,
        neighbours: PyReadonlyArray1<'_, u32>,
        row_offsets: PyReadonlyArray1<'_, i64>,
        modes: Vec<Utf8String>,
        skip: usize,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let modes = modes.iter().map(|mode| pooling_of(mode)).collect::<PyResult<Vec<Pooling>>>()?;
            let offsets = offsets::rows("row_offsets", &row_offsets, ids.len())?;
            let width = modes.len() * self.core.config.hidden;
            let rows = offsets.len();
            let vectors = zeros::<Ix2>(py, [rows, width], rows, "sentence vectors")?;
            {
                let mut borrowed = vectors.readwrite();
                let rows = borrowed.as_slice_mut()?.chunks_mut(width.max(1));
                let sequences = offsets
                    .into_iter()
                    .zip(rows)
                    .map(|(tokens, to)| Sequence {
                        keys: tokens.len(),
                        states: Vec::new(),
                        attentions: Vec::new(),
                        length: tokens.len(),
                        tokens,
                        pooled: Some(PooledOutput { modes: &modes, skip, to }),
                    })
                    .collect();
                let (ids, position_ids) = (ids.as_slice()?, position_ids.as_slice()?);
                let neighbours = neighbours.as_slice()?;
                let tokens = TokenColumns { ids, types: &[], position_ids, neighbours, positions: &[] };
                self.run(py, tokens, None, sequences, threads)?;
            }
            Ok(vectors)
        })
    }

    /// The name of the instruction set that computes: amx, avx512, avx2, neon or scalar.
    #[getter]
    fn instruction_set(&self) -> &'static str {
        self.core.tiles.map_or(self.core.instruction_set.name(), TileUnit::name)
    }
}

impl BertEncoder {
    /// H, the width of the hidden states.
    pub fn hidden(&self) -> usize {
        self.core.config.hidden
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        self.core.layers.len()
    }

    /// Runs the encoder with the interpreter detached; `vectors` [tokens, E] replace the table of words.
    pub fn run(
        &self,
        py: Python<'_>,
        tokens: TokenColumns<'_>,
        vectors: Option<&[f32]>,
        sequences: Vec<Sequence<'_>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let words = self.words.borrow(py)?;
        let types = self.types.as_ref().map(|types| types.borrow(py)).transpose()?;
        let positions = self.positions.as_ref().map(|positions| positions.borrow(py)).transpose()?;
        let tables = EmbeddingTables {
            words: vectors.map_or_else(|| words.numbers(), |vectors| Ok(Numbers::F32(vectors)))?,
            types: types.as_ref().map(BorrowedNumbers::numbers).transpose()?,
            positions: positions.as_ref().map(BorrowedNumbers::numbers).transpose()?,
        };
        detached(py, || self.core.run(tables, tokens, sequences, threads::pool(threads)))
    }
}

/// Compute activation(x·Wᵀ + b) with a weight that is not packed: x [rows, in], weight [out, in], bias [out] ->
/// float32 [rows, out].
#[pyfunction]
#[pyo3(signature = (x, weight, bias, activation, threads=None, instruction_set=None))]
pub fn dense<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'_, f32>,
    weight: PyReadonlyArray2<'_, f32>,
    bias: PyReadonlyArray1<'_, f32>,
    activation: Utf8<'_>,
    threads: Option<usize>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    guarded(|| {
        let (rows, k, n) = (x.shape()[0], weight.shape()[1], weight.shape()[0]);
        let activation = activation_of(&activation)?;
        let (instruction_set, tiles) = kernels_for(instruction_set.as_deref())?;
        let y = zeros::<Ix2>(py, [rows, n], rows, "the outputs of a dense layer")?;
        {
            let mut borrowed = y.readwrite();
            let to = borrowed.as_slice_mut()?;
            let (x, weight, bias) = (by_rows(&x)?, by_rows(&weight)?, bias.as_slice()?);
            detached(py, || {
                let execution = Execution { instruction_set, tiles, pool: threads::pool(threads) };
                let mut matrix = Matrix::default();
                matrix.fill_rows(rows, k, x);
                linear_unpacked(execution, &matrix, weight, bias, activation, to);
            })?;
        }
        Ok(y)
    })
}
