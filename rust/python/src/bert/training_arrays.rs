//! The parameters and gradients of an encoder that is trained, from NumPy arrays by the names of its weights.

use std::collections::HashMap;

use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::disentangled::RelativePositions;
use wordpiece_kernels::plan::{Attention, NamedBias, NamedNorm, NamedRelative, NamedTable, Names, Weights};
use wordpiece_kernels::training::{
    Affine, AffineGradient, AffineNorm, Bias, Borrowed, EmbeddingTable, RelativeGradients, RelativeParameters, Written,
};

use crate::error;
use crate::text::Utf8String;

pub type Array<'py> = PyReadonlyArrayDyn<'py, f32>;
pub type ArrayMut<'py> = PyReadwriteArrayDyn<'py, f32>;

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

/// Borrows the weights of a plan.
pub struct Borrower<'a, 'py> {
    weights: &'a HashMap<Utf8String, Array<'py>>,
    rates: &'a HashMap<Utf8String, f64>,
}

/// The biases of layers that have none.
static ZEROS: [f32; 1 << 16] = [0.0; 1 << 16];

impl<'a, 'py> Borrower<'a, 'py> {
    pub fn new(weights: &'a HashMap<Utf8String, Array<'py>>, rates: &'a HashMap<Utf8String, f64>) -> Borrower<'a, 'py> {
        Borrower { weights, rates }
    }

    fn array(&self, name: &str) -> PyResult<&'a Array<'py>> {
        self.weights.get(name).ok_or_else(|| error::input(format!("there is no weight {name:?}")))
    }

    /// Returns weight and bias, 0 without one.
    fn affine(&self, name: &str) -> PyResult<Affine<'a>> {
        let weight = self.array(&format!("{name}.weight"))?;
        let rows = weight.shape().first().copied().unwrap_or(0);
        let bias = match self.weights.get(format!("{name}.bias").as_str()) {
            Some(bias) => slice(bias)?,
            None => ZEROS.get(..rows).ok_or_else(|| error::input(format!("{name} has {rows} outputs and no bias")))?,
        };
        Ok(Affine { weight: slice(weight)?, bias })
    }
}

impl<'a> Weights<Borrowed<'a>> for Borrower<'a, '_> {
    type Error = PyErr;

    fn dense(&mut self, name: &str) -> PyResult<Affine<'a>> {
        self.affine(name)
    }

    fn joined(&mut self, [query, key, value]: &[String; 3]) -> PyResult<[Affine<'a>; 3]> {
        Ok([self.affine(query)?, self.affine(key)?, self.affine(value)?])
    }

    fn norm(&mut self, norm: &NamedNorm) -> PyResult<AffineNorm<'a>> {
        Ok(AffineNorm { weights: self.affine(&norm.name)?, eps: norm.eps, kind: norm.kind })
    }

    fn table(&mut self, table: &NamedTable) -> PyResult<EmbeddingTable<'a>> {
        let array = self.array(&format!("{}.weight", table.name))?;
        let columns = array.shape().last().copied().unwrap_or(0);
        Ok(EmbeddingTable { rows: slice(array)?, columns, fixed: table.fixed })
    }

    fn bias(&mut self, bias: &NamedBias) -> PyResult<Bias<'a>> {
        match bias {
            NamedBias::Distances(name) => Ok(Bias::Distances(slice(self.array(&format!("{name}.by_distance"))?)?)),
            NamedBias::Slopes(slopes) => Ok(Bias::Slopes(slopes.clone())),
        }
    }

    fn relative(&mut self, relative: &NamedRelative, _: &Attention<Names>) -> PyResult<RelativeParameters<'a>> {
        let (table, norm) = &relative.table;
        let [keys, queries] = &relative.terms;
        Ok(RelativeParameters {
            positions: RelativePositions { span: relative.span, longest: relative.longest },
            table: slice(self.array(&format!("{table}.weight"))?)?,
            norm: norm.as_ref().map(|norm| self.norm(norm)).transpose()?,
            terms: [
                keys.as_ref().map(|name| self.affine(name)).transpose()?,
                queries.as_ref().map(|name| self.affine(name)).transpose()?,
            ],
            dropout: self.rate(&relative.dropout),
        })
    }

    fn rate(&mut self, name: &str) -> f64 {
        self.rates.get(name).copied().unwrap_or(0.0)
    }
}

/// Lends the arrays that gradients are written to, each once.
pub struct Writer<'a> {
    arrays: HashMap<&'a str, &'a mut [f32]>,
}

impl<'a> Writer<'a> {
    pub fn new(arrays: &'a mut HashMap<Utf8String, ArrayMut<'_>>) -> PyResult<Writer<'a>> {
        let arrays = arrays.iter_mut().map(|(name, array)| Ok((&**name, slice_mut(array)?)));
        Ok(Writer { arrays: arrays.collect::<PyResult<_>>()? })
    }

    fn take(&mut self, name: &str) -> Option<&'a mut [f32]> {
        self.arrays.remove(name)
    }

    /// Returns the gradients of a layer; `None` if it is not trained, or was lent before.
    fn affine(&mut self, name: &str) -> Option<AffineGradient<'a>> {
        let weight = self.take(&format!("{name}.weight"))?;
        Some(AffineGradient { weight, bias: self.take(&format!("{name}.bias")).unwrap_or_default() })
    }
}

impl<'a> Weights<Written<'a>> for Writer<'a> {
    type Error = PyErr;

    fn dense(&mut self, name: &str) -> PyResult<AffineGradient<'a>> {
        Ok(self.affine(name).unwrap_or(AffineGradient { weight: &mut [], bias: &mut [] }))
    }

    fn joined(&mut self, [query, key, value]: &[String; 3]) -> PyResult<[AffineGradient<'a>; 3]> {
        Ok([self.dense(query)?, self.dense(key)?, self.dense(value)?])
    }

    fn norm(&mut self, norm: &NamedNorm) -> PyResult<AffineGradient<'a>> {
        self.dense(&norm.name)
    }

    fn table(&mut self, table: &NamedTable) -> PyResult<Option<&'a mut [f32]>> {
        Ok(self.take(&format!("{}.weight", table.name)))
    }

    fn bias(&mut self, bias: &NamedBias) -> PyResult<Option<&'a mut [f32]>> {
        match bias {
            NamedBias::Distances(name) => Ok(self.take(&format!("{name}.by_distance"))),
            NamedBias::Slopes(_) => Ok(None),
        }
    }

    fn relative(&mut self, relative: &NamedRelative, _: &Attention<Names>) -> PyResult<RelativeGradients<'a>> {
        let (table, norm) = &relative.table;
        let [keys, queries] = &relative.terms;
        Ok(RelativeGradients {
            table: self.take(&format!("{table}.weight")),
            norm: norm.as_ref().and_then(|norm| self.affine(&norm.name)),
            terms: [keys, queries].map(|name| name.as_ref().and_then(|name| self.affine(name))),
        })
    }

    fn rate(&mut self, _: &str) {}
}
