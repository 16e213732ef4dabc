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
//! when the first array is needed; `offsets` and `new_arrays` are ends of rows and NumPy arrays for results; `threads` chooses
//! the number of threads, `instruction_sets` finds a set by its name, and `interrupt` releases the interpreter and obeys Ctrl-C.
//!
//! The interpreter is released while a core crate works. The module does not rely on the GIL: its classes are immutable or
//! synchronise themselves. Nothing here is public; the package `python/wordpiece_bert` is what users import.

mod arrow;
mod bert;
mod error;
mod instruction_sets;
mod interrupt;
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
        // `__all__` has what `__getattr__` finds, as in the stub, and not with what.
        let names = module.index()?;
        names.call_method1("remove", ("_arrays",))?;
        names.call_method1("remove", ("__getattr__",))?;
        names.call_method1("extend", (module.getattr("_arrays")?.getattr("__all__")?,)).map(drop)
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
    use super::pretraining::{pack_sequences, split_sentences, text_document_id};
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

    /// What takes or makes arrays as soon as it is called: names of the module above from their first use on, when NumPy's C API
    /// has been fetched.
    #[pymodule(gil_used = false)]
    mod _arrays {
        #[pymodule_export]
        use crate::arrow::{_arrow_array, _arrow_schema, _arrow_stream};
        #[pymodule_export]
        use crate::bert::{
            BertEncoder, EncoderTraining, PackedDense, adamw_step, cross_entropy, dense, linear_backward, quantize,
            sums_of_squares,
        };
        #[pymodule_export]
        use crate::pretraining::{
            ExampleBlock, ExampleBuilder, ExampleReader, ExampleShard, MaskingRules, MdsEncoder, TfrecordEncoder,
            TokenStoreBuilder, epoch_order, keyed_draws,
        };
        #[pymodule_export]
        use crate::search::{
            search_by_codes, search_codes_of, search_floats, search_packed_bits, search_small_integers,
        };
        #[pymodule_export]
        use crate::sentence::{
            StaticEmbeddings, VocabularyHead,
            maxsim::{maxsim, maxsim_pairwise},
            token_states::token_states,
        };
    }
}
