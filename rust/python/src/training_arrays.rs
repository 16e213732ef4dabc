//! The parameters and gradients of an encoder that is trained, from NumPy arrays.

use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::disentangled::RelativePositions;
use wordpiece_kernels::training::{
    Affine, AffineGradient, ConvolutionParameters, DisentangledParameters, EmbeddingGradients, EncoderParameters,
    LayerGradients, LayerParameters, Positions, RelativeGradients, RelativeParameters,
};

use crate::error;
use crate::names::activation_of;
use crate::text::Utf8String;

pub type Array<'py> = PyReadonlyArrayDyn<'py, f32>;
pub type ArrayMut<'py> = PyReadwriteArrayDyn<'py, f32>;

/// Weight and bias, or γ and β.
pub type Pair<'py> = (Array<'py>, Array<'py>);
pub type PairMut<'py> = (ArrayMut<'py>, ArrayMut<'py>);

/// Of a layer: query, key and value; the layers of their own that relative positions have; the attention's output and its
/// norm; the first dense layer of the feed-forward network, what its gate multiplies, and the second dense layer; the other
/// norm.
pub type LayerArrays<'py> = (
    [Pair<'py>; 3],
    [Option<Pair<'py>>; 2],
    Pair<'py>,
    Option<Pair<'py>>,
    Pair<'py>,
    Option<Pair<'py>>,
    Pair<'py>,
    Pair<'py>,
);
pub type LayerArraysMut<'py> = (
    [PairMut<'py>; 3],
    [Option<PairMut<'py>>; 2],
    PairMut<'py>,
    Option<PairMut<'py>>,
    PairMut<'py>,
    Option<PairMut<'py>>,
    PairMut<'py>,
    PairMut<'py>,
);

/// Words, or word vectors; positions, types, the norm, the projection.
pub type EmbeddingArrays<'py> = (Array<'py>, Option<Array<'py>>, Option<Array<'py>>, Pair<'py>, Option<Pair<'py>>);

/// Gradients of words, positions, types, the norm and the projection; for the first two also the row that gets none.
pub type EmbeddingArraysMut<'py> = (
    Option<(ArrayMut<'py>, Option<usize>)>,
    Option<(ArrayMut<'py>, Option<usize>)>,
    Option<ArrayMut<'py>>,
    PairMut<'py>,
    Option<PairMut<'py>>,
);

/// The frequencies of rotary positions, and for each layer the number of its frequencies and its window.
pub type PositionArrays<'py> = (Vec<Array<'py>>, Vec<(Option<usize>, Option<usize>)>);

/// The relative positions of a DeBERTa: K, M (0 without buckets), whether scores have the terms of Kʳ and of Qʳ, the table
/// [2K, H] and its norm.
pub type RelativeArrays<'py> = (usize, usize, [bool; 2], Array<'py>, Option<Pair<'py>>);

/// The convolution of a DeBERTa: weight [H, width · H], by neighbour from the first to the last, and bias; the name of its
/// activation, and the norm after it.
pub type ConvolutionArrays<'py> = (Pair<'py>, Utf8String, Pair<'py>);

/// How a DeBERTa differs from BERT: by how much scores are scaled down besides d, relative positions, convolution.
pub type DisentangledArrays<'py> = (usize, Option<RelativeArrays<'py>>, Option<ConvolutionArrays<'py>>);

/// The gradients of the table of relative positions and its norm; and of the convolution and its norm.
pub type DisentangledArraysMut<'py> = (Option<(ArrayMut<'py>, Option<PairMut<'py>>)>, Option<[PairMut<'py>; 2]>);

/// The parameters of an encoder: those of the embeddings, of the different layers, for each layer the number of its
/// parameters among them, MPNet's bias by distance, the norm after the last layer, what layers know about positions, and how
/// a DeBERTa differs from BERT.
pub type ParameterArrays<'py> = (
    EmbeddingArrays<'py>,
    Vec<LayerArrays<'py>>,
    Vec<usize>,
    Option<Array<'py>>,
    Option<Pair<'py>>,
    PositionArrays<'py>,
    Option<DisentangledArrays<'py>>,
);

/// Offsets int64 [B + 1] and keys int64 [B]; ids, types, position_ids and positions uint32 [tokens], the first of which may
/// be None.
pub type BatchArrays<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    Option<PyReadonlyArray1<'py, u32>>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
);

/// Returns the numbers of an array, row by row.
pub fn slice<'a>(array: &'a Array<'_>) -> PyResult<&'a [f32]> {
    if !array.is_c_contiguous() {
        return Err(error::input(format!("an array {:?} is not stored row by row", array.shape())));
    }
    Ok(array.as_slice()?)
}

/// Returns the numbers of an array, row by row, to be written.
pub fn slice_mut<'a>(array: &'a mut ArrayMut<'_>) -> PyResult<&'a mut [f32]> {
    if !array.is_c_contiguous() {
        return Err(error::input(format!("an array {:?} is not stored row by row", array.shape())));
    }
    Ok(array.as_slice_mut()?)
}

pub fn affine<'a>(pair: &'a Pair<'_>) -> PyResult<Affine<'a>> {
    Ok(Affine { weight: slice(&pair.0)?, bias: slice(&pair.1)? })
}

pub fn affine_gradient<'a>(pair: &'a mut PairMut<'_>) -> PyResult<AffineGradient<'a>> {
    Ok(AffineGradient { weight: slice_mut(&mut pair.0)?, bias: slice_mut(&mut pair.1)? })
}

pub fn parameters_of<'a>(arrays: &'a ParameterArrays<'_>) -> PyResult<EncoderParameters<'a>> {
    let ((words, positions, types, norm, projection), layers, uses, relative_bias, last_norm, by_position, kind) =
        arrays;
    let layer = |arrays: &'a LayerArrays<'_>| -> PyResult<LayerParameters<'a>> {
        let ([query, key, value], [of_keys, of_queries], output, output_norm, inner, up, outer, outer_norm) = arrays;
        Ok(LayerParameters {
            qkv: [affine(query)?, affine(key)?, affine(value)?],
            relative: [of_keys.as_ref().map(affine).transpose()?, of_queries.as_ref().map(affine).transpose()?],
            output: affine(output)?,
            output_norm: output_norm.as_ref().map(affine).transpose()?,
            inner: affine(inner)?,
            up: up.as_ref().map(affine).transpose()?,
            outer: affine(outer)?,
            outer_norm: affine(outer_norm)?,
        })
    };
    let (frequencies, kinds) = by_position;
    if kinds.len() != uses.len() {
        return Err(error::input(format!("{} layers have the positions of {}", uses.len(), kinds.len())));
    }
    Ok(EncoderParameters {
        words: slice(words)?,
        positions: positions.as_ref().map(slice).transpose()?,
        types: types.as_ref().map(slice).transpose()?,
        embedding_norm: affine(norm)?,
        projection: projection.as_ref().map(affine).transpose()?,
        relative_bias: relative_bias.as_ref().map(slice).transpose()?,
        layers: layers.iter().map(layer).collect::<PyResult<Vec<_>>>()?,
        uses,
        last_norm: last_norm.as_ref().map(affine).transpose()?,
        frequencies: frequencies.iter().map(slice).collect::<PyResult<Vec<_>>>()?,
        layer_positions: kinds
            .iter()
            .map(|(rotation, window)| Positions { rotation: *rotation, window: *window })
            .collect(),
        disentangled: kind.as_ref().map(disentangled).transpose()?,
    })
}

fn disentangled<'a>(
    (count, relative, convolution): &'a DisentangledArrays<'_>,
) -> PyResult<DisentangledParameters<'a>> {
    let relative = relative.as_ref().map(|(span, longest, terms, table, norm)| {
        PyResult::Ok(RelativeParameters {
            positions: RelativePositions { span: *span, longest: (*longest > 0).then_some(*longest) },
            terms: *terms,
            table: slice(table)?,
            norm: norm.as_ref().map(affine).transpose()?,
        })
    });
    let convolution = convolution.as_ref().map(|(dense, activation, norm)| {
        PyResult::Ok(ConvolutionParameters {
            dense: affine(dense)?,
            activation: activation_of(activation)?,
            norm: affine(norm)?,
        })
    });
    Ok(DisentangledParameters { count: *count, relative: relative.transpose()?, convolution: convolution.transpose()? })
}

/// Returns the gradients of relative positions, and of a convolution.
#[allow(clippy::type_complexity, reason = "two parts of the gradients of an encoder")]
pub fn disentangled_gradients<'a>(
    (relative, convolution): &'a mut DisentangledArraysMut<'_>,
) -> PyResult<(Option<RelativeGradients<'a>>, Option<[AffineGradient<'a>; 2]>)> {
    let relative = relative.as_mut().map(|(table, norm)| {
        let norm = norm.as_mut().map(affine_gradient).transpose()?;
        PyResult::Ok(RelativeGradients { table: slice_mut(table)?, norm })
    });
    let convolution =
        convolution.as_mut().map(|[dense, norm]| PyResult::Ok([affine_gradient(dense)?, affine_gradient(norm)?]));
    Ok((relative.transpose()?, convolution.transpose()?))
}

pub fn layer_gradients<'a>(arrays: &'a mut LayerArraysMut<'_>) -> PyResult<LayerGradients<'a>> {
    let ([query, key, value], [of_keys, of_queries], output, output_norm, inner, up, outer, outer_norm) = arrays;
    Ok(LayerGradients {
        qkv: [affine_gradient(query)?, affine_gradient(key)?, affine_gradient(value)?],
        relative: [
            of_keys.as_mut().map(affine_gradient).transpose()?,
            of_queries.as_mut().map(affine_gradient).transpose()?,
        ],
        output: affine_gradient(output)?,
        output_norm: output_norm.as_mut().map(affine_gradient).transpose()?,
        inner: affine_gradient(inner)?,
        up: up.as_mut().map(affine_gradient).transpose()?,
        outer: affine_gradient(outer)?,
        outer_norm: affine_gradient(outer_norm)?,
    })
}

pub fn embedding_gradients<'a>(
    arrays: &'a mut EmbeddingArraysMut<'_>,
    vectors: &'a mut [f32],
) -> PyResult<EmbeddingGradients<'a>> {
    let (words, positions, types, norm, projection) = arrays;
    let table = |of: &'a mut (ArrayMut<'_>, Option<usize>)| PyResult::Ok((slice_mut(&mut of.0)?, of.1));
    Ok(EmbeddingGradients {
        words: words.as_mut().map(table).transpose()?,
        positions: positions.as_mut().map(table).transpose()?,
        types: types.as_mut().map(slice_mut).transpose()?,
        norm: affine_gradient(norm)?,
        projection: projection.as_mut().map(affine_gradient).transpose()?,
        vectors,
    })
}
