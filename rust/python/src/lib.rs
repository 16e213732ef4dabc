//! The Python binding of the crates `wordpiece` and `wordpiece_kernels`; no other code knows both languages.
//!
//! - Texts in: `text` checks each `str`; `convert` and `arrow`, with `location` for error messages; `files` reads them from
//!   files.
//! - Tokenizers: `tokenizer`, with `vocab` and `bert` for the arguments that make one, and `options` for the arguments
//!   of a call.
//! - Results out: `encoding` for one row, `batch` for arrays of rows.
//! - Models and training: `plan` reads a model's layers; `kernels` runs them, with `packed_dense` and `stored_arrays` for
//!   weights, `new_arrays` for results, `names` for arguments that name a kind, `encoder_training` for the backward pass,
//!   `static_embeddings`, `token_states` with `sparse` and `maxsim` over them, `search` and `training`; `pretraining` makes
//!   and reads the data of pre-training.
//! - Everywhere: `threads` chooses the number of threads, `interrupt` releases the interpreter and obeys Ctrl-C, `error`
//!   raises the exceptions of `wordpiece_bert.errors`; `panics` is for its tests.
//!
//! The interpreter is released while a core crate works. The module does not rely on the GIL: its classes are immutable or
//! synchronise themselves. Nothing here is public; the package `python/wordpiece_bert` is what users import.

mod arrow;
mod batch;
mod bert;
mod convert;
mod encoder_training;
mod encoding;
mod engine;
mod error;
mod files;
mod instruction_sets;
mod interrupt;
mod kernels;
mod location;
mod maxsim;
mod names;
mod new_arrays;
mod offsets;
mod options;
mod packed_dense;
mod panics;
mod plan;
mod pretraining;
mod search;
mod sparse;
mod static_embeddings;
mod stored_arrays;
mod text;
mod threads;
mod token_states;
mod tokenizer;
mod training;
mod training_arrays;
mod vocab;

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
    use super::batch::Rows;
    #[pymodule_export]
    use super::bert::BertNormalizer;
    #[pymodule_export]
    use super::encoder_training::{EncoderTraining, adamw_step, cross_entropy, linear_backward, sums_of_squares};
    #[pymodule_export]
    use super::encoding::{_restore_encoding, Encoding};
    #[pymodule_export]
    use super::engine::{describe_products, kernel_instruction_sets, num_threads};
    #[pymodule_export]
    use super::files::{TextBlock, TextReader};
    #[pymodule_export]
    use super::kernels::{BertEncoder, dense};
    #[pymodule_export]
    use super::maxsim::{maxsim, maxsim_pairwise};
    #[pymodule_export]
    use super::options::{_same_objects, Options};
    #[pymodule_export]
    use super::packed_dense::{PackedDense, quantize};
    #[pymodule_export]
    use super::panics::_panic;
    #[pymodule_export]
    use super::plan::check_plan;
    #[pymodule_export]
    use super::pretraining::{
        ExampleBlock, ExampleBuilder, ExampleReader, ExampleShard, MaskingRules, MdsEncoder, TfrecordEncoder,
        TokenStoreBuilder, epoch_order, keyed_draws, pack_sequences, split_sentences, text_document_id,
    };
    #[pymodule_export]
    use super::search::{search_by_codes, search_codes_of, search_floats, search_packed_bits, search_small_integers};
    #[pymodule_export]
    use super::sparse::VocabularyHead;
    #[pymodule_export]
    use super::static_embeddings::StaticEmbeddings;
    #[pymodule_export]
    use super::threads::{default_threads, set_num_threads};
    #[pymodule_export]
    use super::token_states::token_states;
    #[pymodule_export]
    use super::tokenizer::Tokenizer;
    #[pymodule_export]
    use super::training::{Counted, ReportSums, Reporter, Trained, WordCounts};

    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const UNICODE_VERSIONS: &str = wordpiece::unicode::VERSIONS;

    #[pymodule_export]
    const SPECIAL_TOKEN_ROLES: [(&str, &str); 5] = super::bert::SPECIAL_TOKEN_ROLES;
}
