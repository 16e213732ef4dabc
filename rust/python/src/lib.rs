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
//! `error` raises the exceptions of `wordpiece_bert.errors` (`panics` is for its tests); `offsets` and `new_arrays` are ends
//! of rows and NumPy arrays for results; `threads` chooses the number of threads, `instruction_sets` finds a set by its name,
//! and `interrupt` releases the interpreter and obeys Ctrl-C.
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
    use std::panic::catch_unwind;

    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt};
    use pyo3::ffi;
    use pyo3::prelude::*;

    /// Fetches NumPy's C API and the API of its borrow checker. Otherwise the numpy crate would do so in the first call
    /// that needs them, where Ctrl-C is a panic.
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
        py.import("numpy")?;
        // The numpy crate panics if the Python code that it runs here raises, as Ctrl-C does. A later import tries again.
        catch_unwind(|| Python::attach(|py| drop(PyArray1::<u8>::zeros(py, 0, false).readonly()))).map_err(|panic| {
            match crate::error::panic_message(panic) {
                message if message.contains("KeyboardInterrupt") => PyKeyboardInterrupt::new_err(()),
                message => PyImportError::new_err(format!("NumPy's C API cannot be used: {message}")),
            }
        })
    }

    #[pymodule_export]
    use super::arrow::{_arrow_array, _arrow_schema, _arrow_stream, _column_texts};
    #[pymodule_export]
    use super::bert::{
        BertEncoder, EncoderTraining, PackedDense, adamw_step, check_plan, cross_entropy, dense, describe_products,
        kernel_instruction_sets, linear_backward, num_threads, quantize, sums_of_squares,
    };
    #[pymodule_export]
    use super::panics::_panic;
    #[pymodule_export]
    use super::pretraining::{
        ExampleBlock, ExampleBuilder, ExampleReader, ExampleShard, MaskingRules, MdsEncoder, TfrecordEncoder,
        TokenStoreBuilder, epoch_order, keyed_draws, pack_sequences, split_sentences, text_document_id,
    };
    #[pymodule_export]
    use super::search::{search_by_codes, search_codes_of, search_floats, search_packed_bits, search_small_integers};
    #[pymodule_export]
    use super::sentence::{
        StaticEmbeddings, VocabularyHead,
        maxsim::{maxsim, maxsim_pairwise},
        token_states::token_states,
    };
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
}
