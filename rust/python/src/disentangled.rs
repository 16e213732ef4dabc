//! What an encoder of DeBERTa has besides that of BERT, from NumPy arrays.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::disentangled::{RelativePositions, RelativeTerms};
use wordpiece_kernels::encoder::{Convolution, Disentangled, Encoder, EncoderConfig, Layer, LayerNormWeights};
use wordpiece_kernels::gemm::{Dense, Products};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{InstructionSet, PANEL, panels};

use crate::names::activation_of;
use crate::stored_arrays::{NormArrays, by_rows};
use crate::text::Utf8String;

/// The projected relative positions of a layer, Kʳ and Qʳ [2K, N·d], of which a model may have one.
type TermArrays<'py> = (Option<PyReadonlyArray2<'py, f32>>, Option<PyReadonlyArray2<'py, f32>>);

/// A convolution: weight [H, width · H], by neighbour from the first to the last; bias [H], the name of an activation, and
/// the norm after it.
type ConvolutionArrays<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>, Utf8String, NormArrays<'py>);

/// K, M (0 without buckets), by how much scores are scaled down besides d, the relative positions of each layer (none for a
/// model without terms of positions), and the convolution.
pub type DisentangledArrays<'py> = (usize, usize, usize, Vec<TermArrays<'py>>, Option<ConvolutionArrays<'py>>);

/// Packs the arrays for the layers of an encoder.
///
/// # Errors
///
/// If an array is not contiguous, or there is no such activation.
pub fn disentangled_of<'a>(
    (span, longest, count, terms, convolution): &DisentangledArrays<'_>,
    config: &EncoderConfig,
    layers: impl Iterator<Item = &'a Layer>,
    instruction_set: InstructionSet,
    tiles: Option<TileUnit>,
) -> PyResult<Disentangled> {
    let packed = terms.iter().zip(layers).map(|((keys, queries), layer)| {
        let tables = [keys.as_ref().map(by_rows).transpose()?, queries.as_ref().map(by_rows).transpose()?];
        let bfloat16 = Encoder::multiplies_heads_as_bfloat16(instruction_set, tiles, layer.qkv.weights());
        Ok(RelativeTerms::new(instruction_set, tables, config.heads, config.head_size, bfloat16))
    });
    Ok(Disentangled {
        positions: RelativePositions { span: *span, longest: (*longest > 0).then_some(*longest) },
        count: *count,
        layers: packed.collect::<PyResult<_>>()?,
        convolution: convolution.as_ref().map(|arrays| convolution_of(arrays, config.hidden)).transpose()?,
    })
}

fn convolution_of((weight, bias, activation, norm): &ConvolutionArrays<'_>, hidden: usize) -> PyResult<Convolution> {
    let width = weight.shape()[1] / hidden;
    let padded = panels(hidden) * PANEL;
    // Each neighbour begins at a panel.
    let mut numbers = vec![0.0; hidden * width * padded];
    for (to, from) in numbers.chunks_exact_mut(padded).zip(by_rows(weight)?.chunks_exact(hidden)) {
        to[..hidden].copy_from_slice(from);
    }
    let dense = Dense::new(&[(Numbers::F32(&numbers), bias.as_slice()?)], width * padded, Products::Float32);
    let norm = LayerNormWeights::new(norm.0.as_slice()?, norm.1.as_slice()?);
    Ok(Convolution { dense, width, activation: activation_of(activation)?, norm })
}
