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
//!   raises the exceptions of `wordpiece_bert.errors`, `numpy_api` fetches NumPy's functions when the first array is needed;
//!   `panics` is for its tests.
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
mod numpy_api;
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
        crate::threads::read_environment(py)
    }

    #[pymodule_export]
    use super::arrow::_column_texts;
    #[pymodule_export]
    use super::batch::Rows;
    #[pymodule_export]
    use super::bert::BertNormalizer;
    #[pymodule_export]
    use super::encoding::{_restore_encoding, Encoding};
    #[pymodule_export]
    use super::engine::{describe_products, kernel_instruction_sets, num_threads};
    #[pymodule_export]
    use super::files::{TextBlock, TextReader};
    #[pymodule_export]
    use super::numpy_api::__getattr__;
    #[pymodule_export]
    use super::options::{_same_objects, Options};
    #[pymodule_export]
    use super::panics::_panic;
    #[pymodule_export]
    use super::plan::check_plan;
    #[pymodule_export]
    use super::pretraining::{pack_sequences, split_sentences, text_document_id};
    #[pymodule_export]
    use super::threads::{default_threads, set_num_threads};
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

    /// What takes or makes arrays as soon as it is called: names of the module above from their first use on, when NumPy's C API
    /// has been fetched.
    #[pymodule(gil_used = false)]
    mod _arrays {
        #[pymodule_export]
        use crate::arrow::{_arrow_array, _arrow_schema, _arrow_stream};
        #[pymodule_export]
        use crate::encoder_training::{EncoderTraining, adamw_step, cross_entropy, linear_backward, sums_of_squares};
        #[pymodule_export]
        use crate::kernels::{BertEncoder, dense};
        #[pymodule_export]
        use crate::maxsim::{maxsim, maxsim_pairwise};
        #[pymodule_export]
        use crate::packed_dense::{PackedDense, quantize};
        #[pymodule_export]
        use crate::pretraining::{
            ExampleBlock, ExampleBuilder, ExampleReader, ExampleShard, MaskingRules, MdsEncoder, TfrecordEncoder,
            TokenStoreBuilder, epoch_order, keyed_draws,
        };
        #[pymodule_export]
        use crate::search::{search_floats, search_packed_bits, search_small_integers};
        #[pymodule_export]
        use crate::sparse::VocabularyHead;
        #[pymodule_export]
        use crate::static_embeddings::StaticEmbeddings;
        #[pymodule_export]
        use crate::token_states::token_states;
    }
}
