//! Conversion of Python objects to a vocabulary.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use wordpiece::format::vocab_txt;
use wordpiece::{Error, Vocab};

use super::convert;
use crate::error::to_py;
use crate::location::Location;
use crate::text::CheckedStr;

/// Reads a vocabulary: the bytes of a vocab.txt, a list of tokens in the order of their ids, or a dict of tokens and ids.
///
/// Returns it with a sentence for each line of a vocab.txt that is probably a mistake. With `strict` the first such line
/// is a `VocabError`, as are a token that a list repeats and an id that two tokens share.
pub fn read(vocab: &Bound<'_, PyAny>, strict: bool) -> PyResult<(Vocab, Vec<String>)> {
    if let Ok(file) = vocab.cast::<PyBytes>() {
        let (vocab, warnings) = vocab_txt::read(file.as_bytes(), strict).map_err(to_py)?;
        return Ok((vocab, warnings.iter().map(ToString::to_string).collect()));
    }
    let py = vocab.py();
    let mut tokens: Vec<(CheckedStr, u32)> = Vec::new();
    let token = |value: &_, i| convert::string(value, Location::item("vocab item", i), "a token is a str");
    if let Ok(ids) = vocab.cast::<PyDict>() {
        for (i, (key, id)) in ids.iter().enumerate() {
            tokens.push((token(&key, i)?, convert::id(&id, Location::item("id of vocab item", i))?));
        }
    } else {
        for (i, value) in vocab.try_iter()?.enumerate() {
            let id = u32::try_from(i).map_err(|_| to_py(Error::TooLarge { what: "the vocabulary", size: i }))?;
            tokens.push((token(&value?, i)?, id));
        }
    }
    let borrowed: Vec<_> = tokens.iter().map(|(token, id)| (token.get(py), *id)).collect();
    let vocab = Vocab::new(borrowed.iter().copied()).map_err(to_py)?;
    if vocab.len() < borrowed.len() {
        return Err(to_py(first_duplicate(&borrowed)));
    }
    Ok((vocab, Vec::new()))
}

/// Returns the error for the first token that a list repeats.
fn first_duplicate(tokens: &[(&str, u32)]) -> Error {
    let mut seen = std::collections::HashMap::new();
    for (second, &(token, _)) in tokens.iter().enumerate() {
        if let Some(first) = seen.insert(token, second) {
            return Error::DuplicateToken { token: token.to_owned(), first, second, unit: "index" };
        }
    }
    unreachable!("the vocabulary has fewer tokens than the list, so the list repeats one");
}
