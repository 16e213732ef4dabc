//! The Python binding of the crates `wordpiece` and `wordpiece_kernels`; no other code knows both languages.
//!
//! The rooms are the Python package's, in the order of its imports from the bottom up:
//!
//! - `arrow`: columns of texts in, arrays of rows out;
//! - `tokenizer`: from texts and files to rows of ids;
//! - `training`: from texts to vocabularies; `pretraining`: rows for pre-training;
//! - `bert`: from rows to hidden states, and the backward pass;
//! - `sentence`: vectors of texts; `search`: nearest rows among them.
//!
//! All of them use the modules beside them: `text` checks each `str`, `location` says where in an argument a value is, and
//! `error` raises the exceptions of `wordpiece_bert.errors` (`panics` is for its tests); `numpy_api` fetches NumPy's functions
//! when the first array is needed; `offsets` and `new_arrays` are ends of rows and NumPy arrays for results, and `json` is
//! their text; `threads` chooses the number of threads, `instruction_sets` finds a set by its name, and `interrupt` releases
//! the interpreter and obeys Ctrl-C.
//!
//! The interpreter is released while a core crate works. The module does not rely on the GIL: its classes are immutable or
//! synchronise themselves. Nothing here is public; the package `python/wordpiece_bert` is what users import.

mod arrow;
mod bert;
mod error;
mod instruction_sets;
mod interrupt;
mod json;
mod location;
mod new_arrays;
mod numpy_api;
mod offsets;
mod panics;
mod pretraining;
mod search;
mod sentence;
mod text;
mod threads;
mod tokenizer;
mod training;

/// The compiled part of wordpiece_bert.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::exceptions::PyImportError;
    use pyo3::ffi;
    use pyo3::prelude::*;

    use crate::arrow::{_arrow_array, _arrow_schema, _arrow_stream};
    use crate::bert::{
        BertEncoder, EncoderTraining, PackedDense, adamw_step, cross_entropy, dense, linear_backward, quantize,
        sums_of_squares,
    };
    use crate::json::json_of_floats;
    use crate::pretraining::{
        ExampleBlock, ExampleBuilder, ExampleReader, ExampleShard, MaskingRules, MdsEncoder, TfrecordEncoder,
        TokenStoreBuilder, epoch_order,
    };
    use crate::search::{search_by_codes, search_codes_of, search_floats, search_packed_bits, search_small_integers};
    use crate::sentence::maxsim::{maxsim, maxsim_pairwise};
    use crate::sentence::token_states::token_states;
    use crate::sentence::{StaticEmbeddings, VocabularyHead};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        // SAFETY: the thread is attached to an interpreter, so the functions return that one and its number.
        let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
        if interpreter != 0 {
            return Err(PyImportError::new_err(
                "wordpiece_bert does not work in subinterpreters, and neither does NumPy: use threads or processes instead",
            ));
        }
        crate::threads::read_environment(py)?;
        crate::bert::read_environment()?;
        let arrays = arrays(py)?;
        // `__all__` has what `__getattr__` finds, as in the stub, and not with what.
        let names = module.index()?;
        names.call_method1("remove", ("__getattr__",))?;
        names.call_method1("extend", (arrays.index()?,))?;
        module.setattr("_arrays", arrays)
    }

    #[pymodule_export]
    use super::arrow::_column_texts;
    #[pymodule_export]
    use super::bert::{check_plan, describe_products, kernel_instruction_sets, num_threads};
    #[pymodule_export]
    use super::numpy_api::__getattr__;
    #[pymodule_export]
    use super::panics::_panic;
    #[pymodule_export]
    use super::pretraining::{split_sentences, text_document_id};
    #[pymodule_export]
    use super::threads::{default_threads, set_num_threads};
    #[pymodule_export]
    use super::tokenizer::{
        _restore_encoding, _same_objects, BertNormalizer, Encoding, Options, Rows, TextBlock, TextReader, Tokenizer,
    };
    #[pymodule_export]
    use super::training::{Counted, ReportSums, Reporter, Trained, WordCounts};

    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const UNICODE_VERSIONS: &str = wordpiece::unicode::VERSIONS;

    #[pymodule_export]
    const SPECIAL_TOKEN_ROLES: [(&str, &str); 5] = super::tokenizer::SPECIAL_TOKEN_ROLES;

    /// Returns what takes or makes arrays as soon as it is called: names of the module from their first use on, when NumPy's
    /// C API has been fetched. It is no `#[pymodule]`, which would keep out all interpreters but the first that tried it.
    fn arrays(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
        let module = PyModule::new(py, "wordpiece_bert._core")?;
        module.add_class::<BertEncoder>()?;
        module.add_class::<EncoderTraining>()?;
        module.add_class::<PackedDense>()?;
        module.add_class::<ExampleBlock>()?;
        module.add_class::<ExampleBuilder>()?;
        module.add_class::<ExampleReader>()?;
        module.add_class::<ExampleShard>()?;
        module.add_class::<MaskingRules>()?;
        module.add_class::<MdsEncoder>()?;
        module.add_class::<TfrecordEncoder>()?;
        module.add_class::<TokenStoreBuilder>()?;
        module.add_class::<StaticEmbeddings>()?;
        module.add_class::<VocabularyHead>()?;
        for function in [
            wrap_pyfunction!(_arrow_array, &module)?,
            wrap_pyfunction!(_arrow_schema, &module)?,
            wrap_pyfunction!(_arrow_stream, &module)?,
            wrap_pyfunction!(adamw_step, &module)?,
            wrap_pyfunction!(cross_entropy, &module)?,
            wrap_pyfunction!(dense, &module)?,
            wrap_pyfunction!(linear_backward, &module)?,
            wrap_pyfunction!(quantize, &module)?,
            wrap_pyfunction!(sums_of_squares, &module)?,
            wrap_pyfunction!(epoch_order, &module)?,
            wrap_pyfunction!(json_of_floats, &module)?,
            wrap_pyfunction!(search_by_codes, &module)?,
            wrap_pyfunction!(search_codes_of, &module)?,
            wrap_pyfunction!(search_floats, &module)?,
            wrap_pyfunction!(search_packed_bits, &module)?,
            wrap_pyfunction!(search_small_integers, &module)?,
            wrap_pyfunction!(maxsim, &module)?,
            wrap_pyfunction!(maxsim_pairwise, &module)?,
            wrap_pyfunction!(token_states, &module)?,
        ] {
            module.add_function(function)?;
        }
        Ok(module)
    }
}
