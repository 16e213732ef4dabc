//! The binding of the crates `wordpiece` and `wordpiece_kernels`: the only code that knows both Rust and Python.
//!
//! It converts (`convert` and `arrow`: texts in, `options`: settings in and out, `encoding` and `batch`: results out,
//! `files`: texts out of files; `kernels`: the weights and arrays of a model), releases the interpreter while the core works
//! (`tokenizer`, `training`), chooses the threads (`threads`) and turns what goes wrong into the exceptions of
//! `wordpiece_bert.errors` (`error`). What the Python package shows to its users stands in `python/wordpiece_bert`; nothing
//! here is public.

mod arrow;
mod batch;
mod bert;
mod convert;
mod encoding;
mod error;
mod files;
mod instruction_sets;
mod kernels;
mod location;
mod options;
mod threads;
mod tokenizer;
mod training;
mod vocab;

/// The compiled part of wordpiece_bert.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::arrow::{_arrow_array, _arrow_schema, _arrow_stream, _column_texts};
    #[pymodule_export]
    use super::batch::Rows;
    #[pymodule_export]
    use super::bert::BertNormalizer;
    #[pymodule_export]
    use super::encoding::{_restore_encoding, Encoding};
    #[pymodule_export]
    use super::error::_panic;
    #[pymodule_export]
    use super::files::{TextBlock, TextReader};
    #[pymodule_export]
    use super::kernels::{BertEncoder, PackedLayer, dense, kernel_instruction_sets};
    #[pymodule_export]
    use super::options::Options;
    #[pymodule_export]
    use super::threads::set_num_threads;
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
