//! Converts truncation, padding and the other options of a call between Python and the core.
//!
//! `tokenizer/call_options.py` resolves and checks what a call requests; here it only changes its representation. The dictionaries have
//! the keys and values of `tokenizers`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use wordpiece::inputs::{PadLength, Padding, Side, Truncation, TruncationStrategy};
use wordpiece::{EncodeOptions, OffsetUnit};

use crate::error;
use crate::text::{Fields, Utf8String};

const STRATEGIES: [(&str, TruncationStrategy); 3] = [
    ("longest_first", TruncationStrategy::LongestFirst),
    ("only_first", TruncationStrategy::OnlyFirst),
    ("only_second", TruncationStrategy::OnlySecond),
];
const SIDES: [(&str, Side); 2] = [("right", Side::Right), ("left", Side::Left)];
const UNITS: [(&str, OffsetUnit); 3] =
    [("char", OffsetUnit::Char), ("byte", OffsetUnit::Byte), ("utf16", OffsetUnit::Utf16)];

/// Return whether two tuples hold the same objects. Equal ones are not enough: True equals 1, which is another option.
#[pyfunction]
pub fn _same_objects(left: &Bound<'_, PyTuple>, right: &Bound<'_, PyTuple>) -> bool {
    left.len() == right.len() && left.iter_borrowed().zip(right.iter_borrowed()).all(|(a, b)| a.is(b))
}

/// Returns the value that a table gives a word; an InputError for another word.
fn named<T: Copy>(words: &[(&str, T)], word: &str) -> PyResult<T> {
    let found = words.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| error::input(format!("unknown option {word:?}")))
}

/// Returns the word that a table gives a value.
fn name_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Utf8String {
    Utf8String(words.iter().find(|(_, known)| known == value).map_or(String::new(), |(name, _)| (*name).to_owned()))
}

/// Truncation as a dictionary. Lengths are in tokens.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct TruncationSettings {
    max_length: usize,
    stride: usize,
    strategy: Utf8String,
    direction: Utf8String,
}

impl From<&Truncation> for TruncationSettings {
    fn from(truncation: &Truncation) -> TruncationSettings {
        TruncationSettings {
            max_length: truncation.max_length,
            stride: truncation.stride,
            strategy: name_of(&STRATEGIES, &truncation.strategy),
            direction: name_of(&SIDES, &truncation.side),
        }
    }
}

impl TruncationSettings {
    pub fn core(&self) -> PyResult<Truncation> {
        Ok(Truncation {
            max_length: self.max_length,
            stride: self.stride,
            strategy: named(&STRATEGIES, &self.strategy)?,
            side: named(&SIDES, &self.direction)?,
        })
    }
}

/// Padding as a dictionary. Lengths are in tokens; a `length` of `None` pads to the longest row of a batch.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct PaddingSettings {
    length: Option<usize>,
    pad_to_multiple_of: Option<usize>,
    pad_id: u32,
    pad_token: Utf8String,
    pad_type_id: u32,
    direction: Utf8String,
}

impl From<&Padding> for PaddingSettings {
    fn from(padding: &Padding) -> PaddingSettings {
        PaddingSettings {
            length: match padding.length {
                PadLength::Longest => None,
                PadLength::Fixed(length) => Some(length),
            },
            pad_to_multiple_of: padding.multiple_of,
            pad_id: padding.id,
            pad_token: Utf8String(padding.token.clone()),
            pad_type_id: padding.type_id,
            direction: name_of(&SIDES, &padding.side),
        }
    }
}

impl PaddingSettings {
    pub fn core(self) -> PyResult<Padding> {
        Ok(Padding {
            length: self.length.map_or(PadLength::Longest, PadLength::Fixed),
            multiple_of: self.pad_to_multiple_of,
            id: self.pad_id,
            type_id: self.pad_type_id,
            token: self.pad_token.0,
            side: named(&SIDES, &self.direction)?,
        })
    }
}

/// The options of a call, all decided.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Options {
    pub core: EncodeOptions,
}

#[pymethods]
impl Options {
    /// The truncation of the call.
    #[getter]
    fn truncation(&self) -> Option<TruncationSettings> {
        self.core.truncation.as_ref().map(TruncationSettings::from)
    }

    /// The padding of the call.
    #[getter]
    fn padding(&self) -> Option<PaddingSettings> {
        self.core.padding.as_ref().map(PaddingSettings::from)
    }
}

impl Options {
    /// Builds the options from their Python form; an InputError for a word that no table has.
    pub fn build(
        add_special_tokens: bool,
        truncation: Option<Fields<TruncationSettings>>,
        padding: Option<Fields<PaddingSettings>>,
        offset_unit: &str,
        encode_special_tokens: bool,
    ) -> PyResult<Options> {
        let core = EncodeOptions {
            add_special_tokens,
            truncation: truncation.map(|fields| fields.0.core()).transpose()?,
            padding: padding.map(|fields| fields.0.core()).transpose()?,
            offset_unit: named(&UNITS, offset_unit)?,
            encode_special_tokens,
            overflow: false,
        };
        Ok(Options { core })
    }
}
