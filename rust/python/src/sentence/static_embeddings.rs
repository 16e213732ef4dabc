//! Static embeddings: from texts to vectors in one call, without the ids in between becoming Python objects.
//!
//! Arrays are validated by `sentence/folders/static.py` and `sentence/dense/distill.py`, the only callers; a wrong shape
//! is a panic here, reported as an InternalError.

use std::sync::atomic::{AtomicUsize, Ordering};

use numpy::ndarray::Ix2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use wordpiece::{Error, Input, Text};
use wordpiece_kernels::InstructionSet;
use wordpiece_kernels::static_embeddings::{MeanOptions, StaticEmbeddings as Core};

use crate::bert::by_rows;
use crate::bert::kernels_for;
use crate::error::{guarded, to_py};
use crate::interrupt::detached;
use crate::location::Location;
use crate::new_arrays::zeros;
use crate::text::Utf8;
use crate::threads::{self, Threads};
use crate::tokenizer::Options;
use crate::tokenizer::TextBlock;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::convert::{self, BatchArgument};

/// Vectors [n, d], which texts were cut [n], and the number of tokens of all texts.
type Vectors<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<bool>>, usize);

/// The vectors of all tokens.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct StaticEmbeddings {
    core: Core,
}

/// How texts become means of rows: arguments that both kinds of input share.
struct Call<'a> {
    tokenizer: &'a Tokenizer,
    options: &'a Options,
    max_chars: Option<usize>,
    mean: MeanOptions,
    set: InstructionSet,
    threads: Option<Threads>,
}

#[pymethods]
impl StaticEmbeddings {
    /// Pack a table, float32 [rows, d]; `mapping`, uint32 [tokens], has the row of each token, and `weights`, float32
    /// [tokens], its factor.
    #[new]
    fn new(
        py: Python<'_>,
        table: PyReadonlyArray2<'_, f32>,
        mapping: Option<PyReadonlyArray1<'_, u32>>,
        weights: Option<PyReadonlyArray1<'_, f32>>,
    ) -> PyResult<StaticEmbeddings> {
        guarded(|| {
            let (numbers, width) = (by_rows(&table)?, table.shape()[1]);
            let mapping = mapping.map(|mapping| mapping.as_slice().map(<[u32]>::to_vec)).transpose()?;
            let weights = weights.map(|weights| weights.as_slice().map(<[f32]>::to_vec)).transpose()?;
            Ok(StaticEmbeddings { core: py.detach(|| Core::new(numbers, width, mapping, weights)) })
        })
    }

    /// The number of rows, of columns, and of tokens.
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        (self.core.rows(), self.core.width(), self.core.tokens())
    }

    /// The table, float32 [rows, d], the mapping and the weights: what the constructor takes.
    #[allow(clippy::type_complexity, reason = "the arguments of the constructor")]
    fn arrays<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray1<u32>>>, Option<Bound<'py, PyArray1<f32>>>)>
    {
        guarded(|| {
            let rows = self.core.rows();
            let table = zeros::<Ix2>(py, [rows, self.core.width()], rows, "the table")?;
            for (row, to) in table.readwrite().as_slice_mut()?.chunks_mut(self.core.width()).enumerate() {
                self.core.copy_row(row, to);
            }
            let mapping = self.core.mapping().map(|mapping| mapping.to_vec().into_pyarray(py));
            Ok((table, mapping, self.core.weights().map(|weights| weights.to_vec().into_pyarray(py))))
        })
    }

    /// Return the class and the arguments of its constructor, for pickle and copy.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type(), slf.get().arrays(slf.py())?.into_pyobject(slf.py())?))
    }

    /// Return the vectors of tokens, each times its weight: uint32 [n] -> float32 [n, d].
    fn tokens<'py>(&self, py: Python<'py>, ids: PyReadonlyArray1<'_, u32>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let ids = ids.as_slice()?;
            let vectors = zeros::<Ix2>(py, [ids.len(), self.core.width()], ids.len(), "token vectors")?;
            for (id, to) in ids.iter().zip(vectors.readwrite().as_slice_mut()?.chunks_mut(self.core.width())) {
                self.core.copy_token(*id, to);
            }
            Ok(vectors)
        })
    }

    /// Return the vectors of texts, float32 [n, d], which were cut, bool [n], and the number of tokens.
    ///
    /// The first `max_chars` characters of each text are tokenized. Tokens `dropped` do not count. With `least_length`,
    /// vectors are divided by their length, or by this number if that is larger.
    #[allow(clippy::too_many_arguments, reason = "everything that decides about a vector")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        tokenizer: &Tokenizer,
        texts: &Bound<'py, PyAny>,
        options: &Options,
        max_chars: Option<usize>,
        dropped: Option<u32>,
        least_length: Option<f32>,
        threads: Option<Threads>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<Vectors<'py>> {
        guarded(|| {
            let set = kernels_for(instruction_set.as_deref())?.0;
            let mean = MeanOptions { dropped, least_length };
            let call = Call { tokenizer, options, max_chars, mean, set, threads };
            let batch = BatchArgument::new(texts, "texts", false, true)?;
            if let BatchArgument::List(list) = &batch
                && let Some(texts) = convert::plain(list)
            {
                let inputs = texts.into_iter().map(Input::single).collect();
                return self.vectors(py, inputs, call)?.map_err(to_py);
            }
            let texts = batch.texts(false, |i| Location::item("item", i))?;
            let mut copies = Vec::new();
            let inputs = texts.texts(py, &mut copies)?.into_iter().map(|first| Input { first, second: None }).collect();
            self.vectors(py, inputs, call)?.map_err(to_py)
        })
    }

    /// Return the vectors of a block of texts, as `encode` does. An error has the location of its text.
    #[allow(clippy::too_many_arguments, reason = "everything that decides about a vector")]
    fn encode_block<'py>(
        &self,
        py: Python<'py>,
        tokenizer: &Tokenizer,
        block: &TextBlock,
        options: &Options,
        max_chars: Option<usize>,
        dropped: Option<u32>,
        least_length: Option<f32>,
        threads: Option<Threads>,
    ) -> PyResult<Vectors<'py>> {
        guarded(|| {
            let (set, mean) = (kernels_for(None)?.0, MeanOptions { dropped, least_length });
            let call = Call { tokenizer, options, max_chars, mean, set, threads };
            self.vectors(py, block.inputs(), call)?.map_err(|error| to_py(block.locate(error)))
        })
    }
}

impl StaticEmbeddings {
    /// Tokenizes texts and computes their vectors, with the interpreter detached.
    fn vectors<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Input<'_>>,
        call: Call<'_>,
    ) -> PyResult<Result<Vectors<'py>, Error>> {
        let n = inputs.len();
        let vectors = zeros::<Ix2>(py, [n, self.core.width()], n, "sentence vectors")?;
        let truncated = {
            let mut borrowed = vectors.readwrite();
            let to = borrowed.as_slice_mut()?;
            detached(py, || self.write(inputs, call, to))?
        };
        Ok(truncated.map(|(truncated, tokens)| (vectors, truncated.into_pyarray(py), tokens)))
    }

    /// Writes the vectors of texts to `to`; returns which texts were cut, and the number of tokens.
    fn write(&self, mut inputs: Vec<Input<'_>>, call: Call<'_>, to: &mut [f32]) -> Result<(Vec<bool>, usize), Error> {
        let mut shortened = Vec::new();
        if let Some(max_chars) = call.max_chars {
            for (i, input) in inputs.iter_mut().enumerate() {
                if let Text::Raw(text) = input.first
                    && let Some(start) = first_chars(text, max_chars)
                {
                    input.first = Text::Raw(start);
                    shortened.push(i);
                }
            }
        }
        let pool = threads::pool_for_texts(call.threads, &inputs);
        let tokens = AtomicUsize::new(0);
        let means = |ids: &[u32], ends: &[i64], to: &mut [f32]| {
            tokens.fetch_add(ids.len(), Ordering::Relaxed);
            self.core.means(call.set, ids, ends, call.mean, to);
        };
        let mut truncated = call.tokenizer.core.encode_into(&inputs, &call.options.core, to, pool, means)?;
        shortened.into_iter().for_each(|i| truncated[i] = true);
        Ok((truncated, tokens.into_inner()))
    }
}

/// Returns the first `count` characters of a text; `None` if it has no more.
fn first_chars(text: &str, count: usize) -> Option<&str> {
    // A text has at least as many bytes as characters: most are known to be short enough without counting.
    (text.len() > count).then(|| text.char_indices().nth(count)).flatten().map(|(end, _)| &text[..end])
}
