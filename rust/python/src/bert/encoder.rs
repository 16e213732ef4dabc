//! The encoder and the dense layers of `wordpiece_kernels` over NumPy arrays, for `wordpiece_bert.bert.engines.rust`.
//!
//! Arrays are validated by the Python side, which is the only caller: a wrong shape is a panic here, reported as an
//! InternalError. Weights are copied when they are packed; embedding tables stay in their arrays and are only borrowed while
//! a call runs. The interpreter is detached while Rust computes; `interrupt` says what holds for arrays meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use numpy::ndarray::{Ix2, Ix3, Ix4};
use numpy::{
    PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::disentangled::{RelativePositions, RelativeTerms};
use wordpiece_kernels::encoder::{
    EmbeddingTables, Encoder, LayerNormWeights, Norm, Packed, PooledOutput, RelativeBiasTable, Sequence, TokenColumns,
};
use wordpiece_kernels::gemm::{Dense, Products, linear_unpacked};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::plan::{Attention, NamedBias, NamedNorm, NamedRelative, NamedTable, Names, Weights};
use wordpiece_kernels::pooling::Pooling;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, PANEL, panels};
use wordpiece_parallel::ScratchPool;

use super::engine::kernels_for;
use super::names::{activation_of, pooling_of};
use super::packed_dense::PackedDense;
use super::plan;
use super::stored_arrays::{BorrowedNumbers, by_rows};
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::new_arrays::zeros;
use crate::offsets;
use crate::text::{Fields, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// The weights of a plan, by the names of its parts.
#[derive(FromPyObject)]
struct KernelWeights<'py> {
    /// Packed dense layers; queries, keys and values by the name of the queries.
    dense: HashMap<Utf8String, Py<PackedDense>>,
    /// Weights and biases of norms and of a convolution, and what else is computed from weights.
    arrays: HashMap<Utf8String, PyReadonlyArrayDyn<'py, f32>>,
    /// The tables of embeddings as they are stored, by what tokens read them by.
    tables: HashMap<Utf8String, (Py<PyAny>, Utf8String)>,
    /// The frequencies of rotary positions, in the order in which layers have them.
    frequencies: Vec<PyReadonlyArray1<'py, f32>>,
}

/// Packs the weights of a plan.
struct Packer<'a, 'py> {
    weights: &'a KernelWeights<'py>,
    instruction_set: InstructionSet,
    tiles: Option<TileUnit>,
    /// The biases so far, which layers share.
    biases: HashMap<String, Arc<RelativeBiasTable>>,
    relative_positions: Option<RelativePositions>,
}

impl Packer<'_, '_> {
    fn array(&self, name: &str) -> PyResult<&[f32]> {
        let array =
            self.weights.arrays.get(name).ok_or_else(|| error::input(format!("there is no weight {name:?}")))?;
        Ok(array.as_slice()?)
    }
}

impl Weights<Packed> for Packer<'_, '_> {
    type Error = PyErr;

    fn dense(&mut self, name: &str) -> PyResult<Arc<Dense>> {
        if let Some(dense) = self.weights.dense.get(name) {
            return Ok(dense.get().dense());
        }
        // A convolution: a dense layer over neighbours, each of which begins at a panel.
        let (weight, bias) = (self.array(&format!("{name}.weight"))?, self.array(&format!("{name}.bias"))?);
        let hidden = bias.len();
        let (padded, inputs) = (panels(hidden) * PANEL, weight.len() / hidden.max(1));
        let width = inputs / hidden.max(1);
        let mut numbers = vec![0.0; hidden * width * padded];
        for (to, from) in numbers.chunks_exact_mut(padded).zip(weight.chunks_exact(hidden)) {
            to[..hidden].copy_from_slice(from);
        }
        Ok(Arc::new(Dense::new(&[(Numbers::F32(&numbers), bias)], width * padded, Products::Float32)))
    }

    fn joined(&mut self, [query, ..]: &[String; 3]) -> PyResult<Arc<Dense>> {
        self.dense(query)
    }

    fn norm(&mut self, NamedNorm { name, eps, kind }: &NamedNorm) -> PyResult<Norm> {
        let (weight, bias) = (self.array(&format!("{name}.weight"))?, self.array(&format!("{name}.bias"))?);
        Ok(Norm { weights: LayerNormWeights::new(weight, bias), eps: *eps, columns: weight.len(), kind: *kind })
    }

    fn table(&mut self, _: &NamedTable) -> PyResult<()> {
        Ok(())
    }

    fn bias(&mut self, bias: &NamedBias) -> PyResult<Arc<RelativeBiasTable>> {
        let name = match bias {
            NamedBias::Slopes(slopes) => return Ok(Arc::new(RelativeBiasTable::Slopes(slopes.clone()))),
            NamedBias::Distances(name) => format!("{name}.by_distance"),
        };
        if let Some(known) = self.biases.get(&name) {
            return Ok(known.clone());
        }
        let columns =
            self.weights.arrays.get(name.as_str()).map_or(1, |array| array.shape().last().copied().unwrap_or(1));
        let max_distance = (columns.max(1) - 1) / 2;
        let table = Arc::new(RelativeBiasTable::Distances { bias: self.array(&name)?.to_vec(), max_distance });
        self.biases.insert(name, table.clone());
        Ok(table)
    }

    fn relative(&mut self, relative: &NamedRelative, of: &Attention<Names>) -> PyResult<RelativeTerms> {
        self.relative_positions = Some(RelativePositions { span: relative.span, longest: relative.longest });
        let qkv = self.joined(&of.qkv)?;
        let bfloat16 = Encoder::multiplies_heads_as_bfloat16(self.tiles, qkv.weights());
        let size = self.dense(&of.output)?.weights().k() / of.heads.max(1);
        let term = |place: usize, name: &str| {
            relative.terms[place].as_ref().map(|_| self.array(&format!("{}.{name}", of.qkv[0]))).transpose()
        };
        let tables = [term(0, "relative_keys")?, term(1, "relative_queries")?];
        Ok(RelativeTerms::new(self.instruction_set, tables, of.heads, size, bfloat16))
    }

    fn rate(&mut self, _: &str) {}
}

/// The tokens of B sequences, one sequence after the other; in each, those that may be attended to come first.
#[derive(FromPyObject)]
pub struct Tokens<'py> {
    /// Rows of the table of words, [tokens].
    pub ids: PyReadonlyArray1<'py, u32>,
    /// Rows of the table of types; empty for 0.
    pub types: PyReadonlyArray1<'py, u32>,
    /// Rows of the table of positions, or positions to rotate by; empty for 0, 1, 2, … in each sequence.
    pub position_ids: PyReadonlyArray1<'py, u32>,
    /// The place of each token in its padded row; empty for 0, 1, 2, … in each sequence.
    pub places: PyReadonlyArray1<'py, u32>,
    /// [B + 1].
    pub row_offsets: PyReadonlyArray1<'py, i64>,
    /// How many tokens of each sequence may be attended to, [B].
    pub keys: PyReadonlyArray1<'py, i64>,
    /// Vectors [tokens, E] in place of the table of words.
    pub vectors: Option<PyReadonlyArray2<'py, f32>>,
}

impl Tokens<'_> {
    /// Returns the tokens and the number of those that may be attended to of each sequence.
    pub fn sequences(&self) -> PyResult<impl Iterator<Item = (std::ops::Range<usize>, usize)>> {
        let rows = offsets::rows("row_offsets", &self.row_offsets, self.ids.len())?;
        let keys = self.keys.as_slice()?;
        Ok(rows.into_iter().zip(keys).map(|(row, keys)| (row.clone(), offsets::keys(*keys, row.len()))))
    }
}

/// An embedding table [rows, E], in the array and type in which it is stored.
struct EmbeddingTable {
    array: Py<PyAny>,
    dtype: Utf8String,
}

impl EmbeddingTable {
    fn borrow<'py>(&self, py: Python<'py>) -> PyResult<BorrowedNumbers<'py>> {
        BorrowedNumbers::new(self.array.bind(py), &self.dtype)
    }
}

/// An encoder: packed layers and embedding tables. It never changes, so threads may share it.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct BertEncoder {
    core: Encoder,
    heads: usize,
    words: EmbeddingTable,
    types: Option<EmbeddingTable>,
    positions: Option<EmbeddingTable>,
}

/// What `BertEncoder.forward` returns: hidden states [B, length, H] and attention weights [B, N, length, length].
type ForwardResult<'py> = (Vec<Bound<'py, PyArray3<f32>>>, Vec<Bound<'py, PyArray4<f32>>>);

#[pymethods]
impl BertEncoder {
    /// Make an encoder of a plan and its weights, a `KernelWeights`; tables are kept, not copied. Without `instruction_set`,
    /// the best one of this CPU computes.
    #[new]
    #[pyo3(signature = (plan, weights, instruction_set=None))]
    fn new(
        py: Python<'_>,
        plan: &Bound<'_, PyAny>,
        weights: Fields<KernelWeights<'_>>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<BertEncoder> {
        guarded(|| {
            let (instruction_set, tiles) = kernels_for(instruction_set.as_deref())?;
            let (weights, named) = (&weights.0, plan::read(plan)?);
            let mut packer =
                Packer { weights, instruction_set, tiles, biases: HashMap::new(), relative_positions: None };
            let packed = named.with(&mut packer)?;
            let attention = packed.layers.iter().flatten().find_map(|residual| residual.attention());
            let Some(attention) = attention else { return Err(error::input("an encoder needs an Attention".into())) };
            let (hidden, heads) = (attention.qkv.weights().k(), attention.heads);
            let relative_positions = packer.relative_positions;
            let table = |reads: &str| {
                weights
                    .tables
                    .get(reads)
                    .map(|(array, dtype)| EmbeddingTable { array: array.clone_ref(py), dtype: dtype.clone() })
            };
            let Some(words) = table("ids") else {
                return Err(error::input("an encoder needs a table of words".into()));
            };
            let embedding = words.borrow(py)?.columns();
            let core = Encoder {
                plan: packed,
                hidden,
                embedding,
                instruction_set,
                tiles,
                rotary: weights.frequencies.iter().map(|one| Ok(one.as_slice()?.to_vec())).collect::<PyResult<_>>()?,
                relative_positions,
                scratch: ScratchPool::default(),
            };
            Ok(BertEncoder { core, heads, words, types: table("types"), positions: table("positions") })
        })
    }

    /// Run the encoder over `tokens`. Return the hidden states numbered in `states`, float32 [B, length, H], and, if
    /// requested, the attention weights of each layer, float32 [B, N, length, length]; rows are written at their places and
    /// 0 elsewhere.
    #[pyo3(signature = (tokens, length, states, attentions, threads))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        tokens: Tokens<'_>,
        length: usize,
        states: Vec<usize>,
        attentions: bool,
        threads: Option<Threads>,
    ) -> PyResult<ForwardResult<'py>> {
        guarded(|| {
            let (batch, hidden) = (tokens.keys.len(), self.core.hidden);
            let shape = [batch, length, hidden];
            let new_states =
                states.iter().map(|_| zeros::<Ix3>(py, shape, batch, "hidden states")).collect::<PyResult<Vec<_>>>()?;
            let layers = if attentions { self.layers() } else { 0 };
            let shape = [batch, self.heads, length, length];
            let new_attentions = (0..layers)
                .map(|_| zeros::<Ix4>(py, shape, batch, "attention weights"))
                .collect::<PyResult<Vec<_>>>()?;
            {
                let mut sequences: Vec<Sequence<'_>> = tokens
                    .sequences()?
                    .map(|(tokens, keys)| Sequence {
                        tokens,
                        keys,
                        states: Vec::new(),
                        attentions: Vec::new(),
                        length,
                        pooled: None,
                    })
                    .collect();
                let mut borrowed: Vec<_> = new_states.iter().map(|array| array.readwrite()).collect();
                for (state, array) in states.iter().zip(&mut borrowed) {
                    let rows = array.as_slice_mut()?.chunks_mut((length * hidden).max(1));
                    for (sequence, to) in sequences.iter_mut().zip(rows) {
                        sequence.states.push((*state, to));
                    }
                }
                let mut borrowed: Vec<_> = new_attentions.iter().map(|array| array.readwrite()).collect();
                for array in &mut borrowed {
                    let rows = array.as_slice_mut()?.chunks_mut((self.heads * length * length).max(1));
                    for (sequence, to) in sequences.iter_mut().zip(rows) {
                        sequence.attentions.push(to);
                    }
                }
                self.run(py, &tokens, sequences, threads)?;
            }
            Ok((new_states, new_attentions))
        })
    }

    /// Run the encoder over `tokens` and pool each row -> float32 [B, modes · H]. The first `skip` tokens of each row, a
    /// prompt, are excluded from pooling.
    #[pyo3(signature = (tokens, modes, skip, threads))]
    fn pooled<'py>(
        &self,
        py: Python<'py>,
        tokens: Tokens<'_>,
        modes: Vec<Utf8String>,
        skip: usize,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let modes = modes.iter().map(|mode| pooling_of(mode)).collect::<PyResult<Vec<Pooling>>>()?;
            let width = modes.len() * self.core.hidden;
            let rows = tokens.keys.len();
            let vectors = zeros::<Ix2>(py, [rows, width], rows, "sentence vectors")?;
            {
                let mut borrowed = vectors.readwrite();
                let rows = borrowed.as_slice_mut()?.chunks_mut(width.max(1));
                let sequences = tokens
                    .sequences()?
                    .zip(rows)
                    .map(|((tokens, keys), to)| Sequence {
                        keys,
                        states: Vec::new(),
                        attentions: Vec::new(),
                        length: tokens.len(),
                        tokens,
                        pooled: Some(PooledOutput { modes: &modes, skip, to }),
                    })
                    .collect();
                self.run(py, &tokens, sequences, threads)?;
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
        self.core.hidden
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        self.core.plan.layers.len()
    }

    /// Runs the encoder with the interpreter detached.
    pub fn run(
        &self,
        py: Python<'_>,
        tokens: &Tokens<'_>,
        sequences: Vec<Sequence<'_>>,
        threads: Option<Threads>,
    ) -> PyResult<()> {
        let words = self.words.borrow(py)?;
        let types = self.types.as_ref().map(|types| types.borrow(py)).transpose()?;
        let positions = self.positions.as_ref().map(|positions| positions.borrow(py)).transpose()?;
        let vectors = tokens.vectors.as_ref().map(by_rows).transpose()?;
        let tables = EmbeddingTables {
            words: vectors.map_or_else(|| words.numbers(), |vectors| Ok(Numbers::F32(vectors)))?,
            types: types.as_ref().map(BorrowedNumbers::numbers).transpose()?,
            positions: positions.as_ref().map(BorrowedNumbers::numbers).transpose()?,
        };
        let columns = TokenColumns {
            ids: tokens.ids.as_slice()?,
            types: tokens.types.as_slice()?,
            position_ids: tokens.position_ids.as_slice()?,
            positions: tokens.places.as_slice()?,
        };
        detached(py, || self.core.run(tables, columns, sequences, threads::pool(threads)))
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
    threads: Option<Threads>,
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
