//! The tokenizer: one core tokenizer, the calls it answers, and where it comes from.

use std::fmt::Write;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};
use wordpiece::format::{tokenizer_json, vocab_txt};
use wordpiece::inputs::{PostProcessor, SequenceId, SpecialToken, Template, TemplatePiece};
use wordpiece::normalize::{BertNormalizer, Normalizer};
use wordpiece::{AddedToken, Decoder, Definition, Error, Input, Vocab};

use crate::batch::{self, Rows};
use crate::convert::{self, BatchArgument, HeldInput};
use crate::encoding::{Encoding, WindowSource};
use crate::error::{guarded, to_py};
use crate::location::Location;
use crate::options::{Options, PaddingSettings, TruncationSettings};
use crate::threads;

/// A single text shorter than this is encoded without releasing the interpreter: to get it back may mean to wait for a
/// thread that computes, which is a thousand times longer than the text takes.
const DETACH_BYTES: usize = 4 << 10;

/// The roles of BERT's special tokens, in the order in which they are registered.
const ROLES: [&str; 5] = ["unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Content and the flags single_word, lstrip, rstrip, normalized, special.
type TokenFields<T> = (T, bool, bool, bool, bool, bool);

/// A tokenizer, immutable. `wordpiece_bert.Tokenizer` is its face.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Tokenizer {
    /// Shared with the encodings that may be asked for more.
    pub core: Arc<wordpiece::Tokenizer>,
}

impl Tokenizer {
    fn new(definition: Definition) -> PyResult<Tokenizer> {
        Ok(Tokenizer { core: Arc::new(wordpiece::Tokenizer::new(definition).map_err(to_py)?) })
    }

    /// What it is made of.
    pub fn definition(&self) -> &Definition {
        self.core.definition()
    }
}

#[pymethods]
impl Tokenizer {
    /// Read the text of a tokenizer.json.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Tokenizer> {
        guarded(|| {
            let text = convert::string(text, Location::argument("text"), "a tokenizer.json is text: a str")?;
            let text = text.to_str()?;
            py.detach(|| Tokenizer::new(tokenizer_json::read(text).map_err(to_py)?))
        })
    }

    /// Make a BERT tokenizer of a vocabulary: the bytes of a vocab.txt, a list of tokens, or a dict of tokens and ids.
    ///
    /// Returns it and what is odd about the vocab.txt, as sentences.
    #[staticmethod]
    #[pyo3(signature = (vocab, special_tokens, *, strict, lowercase, strip_accents, clean_text, tokenize_chinese_chars,
        continuing_subword_prefix, max_input_chars_per_word))]
    #[allow(clippy::too_many_arguments, reason = "the options of from_vocab")]
    fn from_vocab(
        vocab: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyDict>,
        strict: bool,
        lowercase: bool,
        strip_accents: Option<bool>,
        clean_text: bool,
        tokenize_chinese_chars: bool,
        continuing_subword_prefix: &Bound<'_, PyAny>,
        max_input_chars_per_word: usize,
    ) -> PyResult<(Tokenizer, Vec<String>)> {
        guarded(|| {
            let (vocab, warnings) = read_vocab(vocab, strict)?;
            let mut roles = Vec::new();
            for role in ROLES {
                if let Some(token) = special_tokens.get_item(role)? {
                    let token = convert::string(&token, Location::argument(role), "a token is a str")?;
                    roles.push((role, token.to_str()?.to_owned()));
                }
            }
            let place = Location::argument("continuing_subword_prefix");
            let prefix = convert::string(continuing_subword_prefix, place, "expected a str")?.to_str()?.to_owned();
            let token = |role| roles.iter().find(|(name, _)| *name == role).map(|(_, token)| token.clone());
            let named = |role| token(role).and_then(|token| vocab.id(&token).map(|id| (token, id)));
            let template = named("cls_token").zip(named("sep_token")).map(|(cls, sep)| bert_template(&cls, &sep));
            let registered = roles.iter().filter(|(_, token)| vocab.id(token).is_some());
            let definition = Definition {
                unk_token: token("unk_token").unwrap_or_default(),
                max_input_chars_per_word,
                normalizer: Some(Normalizer::Bert(BertNormalizer {
                    clean_text,
                    tokenize_chinese_chars,
                    strip_accents,
                    lowercase,
                })),
                post_processor: template.map(PostProcessor::Template),
                decoder: Some(Decoder::WordPiece { prefix: prefix.clone(), cleanup: true }),
                continuing_subword_prefix: prefix,
                added_tokens: registered.map(|(_, token)| AddedToken::special(token.as_str())).collect(),
                ..Definition::bert(vocab)
            };
            Ok((Tokenizer::new(definition)?, warnings))
        })
    }

    /// Return the text of a tokenizer.json.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| {
            py.detach(|| {
                let (ids, added_tokens) = self.core.added_tokens().map(|(id, token)| (id, token.clone())).unzip();
                let definition = Definition { added_tokens, ..self.core.definition().clone() };
                let ids: Vec<u32> = ids;
                Ok(tokenizer_json::write(&definition, &ids))
            })
        })
    }

    /// Return the text of a vocab.txt; None when a vocab.txt cannot hold the vocabulary.
    fn to_vocab_txt(&self) -> PyResult<Option<String>> {
        guarded(|| Ok(vocab_txt::write(&self.core.definition().vocab).ok()))
    }

    /// Return a tokenizer with more added tokens.
    fn with_added_tokens(&self, tokens: Vec<TokenFields<Bound<'_, PyAny>>>) -> PyResult<Tokenizer> {
        guarded(|| {
            let mut added = Vec::with_capacity(tokens.len());
            for (i, (content, single_word, lstrip, rstrip, normalized, special)) in tokens.into_iter().enumerate() {
                let content = convert::string(&content, Location::item("token", i), "a token is a str")?;
                let content = content.to_str()?.to_owned();
                added.push(AddedToken { content, single_word, lstrip, rstrip, normalized, special });
            }
            Ok(Tokenizer { core: Arc::new(self.core.with_added_tokens(added).map_err(to_py)?) })
        })
    }

    /// Return all added tokens with their ids, in the order in which they were added.
    fn added_tokens(&self) -> Vec<(u32, TokenFields<String>)> {
        let fields = |t: &AddedToken| (t.content.clone(), t.single_word, t.lstrip, t.rstrip, t.normalized, t.special);
        self.core.added_tokens().map(|(id, token)| (id, fields(token))).collect()
    }

    /// Return which tokens seem to have BERT's roles.
    fn roles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let definition = self.core.definition();
        let (cls, sep) = ends_of(definition.post_processor.as_ref());
        let pad = definition.padding.as_ref().map(|padding| padding.token.clone());
        let found = [
            ("unk_token", Some(definition.unk_token.clone()), ""),
            ("sep_token", sep, "[SEP]"),
            ("pad_token", pad, "[PAD]"),
            ("cls_token", cls, "[CLS]"),
            ("mask_token", None, "[MASK]"),
        ];
        let roles = PyDict::new(py);
        for (role, stated, usual) in found {
            let token = stated.unwrap_or_else(|| usual.to_owned());
            if self.core.token_to_id(&token).is_some() {
                roles.set_item(role, token)?;
            }
        }
        Ok(roles)
    }

    /// The truncation that the file sets, as a dict.
    #[getter]
    fn truncation(&self) -> Option<TruncationSettings> {
        self.core.definition().truncation.as_ref().map(TruncationSettings::from)
    }

    /// The padding that the file sets, as a dict.
    #[getter]
    fn padding(&self) -> Option<PaddingSettings> {
        self.core.definition().padding.as_ref().map(PaddingSettings::from)
    }

    /// The bytes that words remembered between texts may take, for each thread at work.
    #[getter]
    fn memory_bytes_per_thread(&self) -> usize {
        self.core.memory_bytes_per_thread()
    }

    /// The id of the token that a word without pieces becomes.
    #[getter]
    fn unk_id(&self) -> Option<u32> {
        let definition = self.core.definition();
        definition.vocab.id(&definition.unk_token)
    }

    /// Return the options of a call; an error where truncation leaves no room for a single text.
    fn options(
        &self,
        add_special_tokens: bool,
        truncation: Option<TruncationSettings>,
        padding: Option<PaddingSettings>,
        offset_unit: &str,
        encode_special_tokens: bool,
    ) -> PyResult<Options> {
        let options = Options::build(add_special_tokens, truncation, padding, offset_unit, encode_special_tokens)?;
        if let Some(truncation) = &options.core.truncation {
            let added = if add_special_tokens { self.core.special_tokens_added(false) } else { 0 };
            truncation.check(added).map_err(to_py)?;
        }
        Ok(options)
    }

    /// Encode one text, or a pair.
    fn encode(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        pair: Option<&Bound<'_, PyAny>>,
        split: bool,
        options: &Options,
    ) -> PyResult<Encoding> {
        guarded(|| {
            let item = HeldInput::new(text, pair, split)?;
            let input = item.input(py)?;
            let encode = || self.core.encode(&input, &options.core);
            let row = if input.len() < DETACH_BYTES { encode() } else { py.detach(encode) }.map_err(to_py)?;
            let more = row.truncated.then(|| WindowSource::new(&self.core, &options.core, row.len()));
            Ok(Encoding::new(row, more.map(|source| source.of(item))))
        })
    }

    /// Return the ids of one text, or of a pair.
    fn encode_ids<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyAny>,
        pair: Option<&Bound<'_, PyAny>>,
        options: &Options,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        guarded(|| {
            let item = HeldInput::new(text, pair, false)?;
            let input = item.input(py)?;
            let encode = || self.core.encode_ids(&input, &options.core);
            let ids = if input.len() < DETACH_BYTES { encode() } else { py.detach(encode) };
            ids.map(|ids| PyArray1::from_vec(py, ids)).map_err(to_py)
        })
    }

    /// Encode a batch, with everything there is to know about each row.
    fn encodings(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        split: bool,
        options: &Options,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Encoding>> {
        guarded(|| {
            let threads = threads::checked("threads", threads)?;
            let batch = BatchArgument::new(texts, "text", split, false)?;
            let of_column = match &batch {
                BatchArgument::Column(column) => Some(py.detach(|| column.inputs())?),
                BatchArgument::List(_) => None,
            };
            let items = batch.items(split)?;
            let inputs = match of_column {
                Some(inputs) => inputs,
                None => items.iter().map(|item| item.input(py)).collect::<PyResult<Vec<_>>>()?,
            };
            let rows = py.detach(|| {
                let pool = threads::pool(threads, inputs.iter().map(Input::len).sum());
                self.core.encodings(&inputs, &options.core, pool)
            });
            let rows = rows.map_err(to_py)?;
            // Where rows are filled up to the longest they are all of one length.
            let source = rows.first().map(|row| WindowSource::new(&self.core, &options.core, row.len()));
            let more = |item, truncated| source.as_ref().filter(|_| truncated).map(|source| source.of(item));
            Ok(rows
                .into_iter()
                .zip(items)
                .map(|(row, item)| {
                    let truncated = row.truncated;
                    Encoding::new(row, more(item, truncated))
                })
                .collect())
        })
    }

    /// Encode a batch into flat arrays, with the columns that are named; `wide`: ids, segment ids and masks as int64.
    #[allow(clippy::too_many_arguments, reason = "everything a batch can be asked for")]
    fn encode_batch(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        pairs: Option<&Bound<'_, PyAny>>,
        split: bool,
        options: &Options,
        columns: Vec<String>,
        wide: bool,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        guarded(|| {
            let threads = threads::checked("threads", threads)?;
            let columns = batch::columns(&columns)?;
            let encode = |inputs: &[Input<'_>]| {
                let pool = || threads::pool(threads, inputs.iter().map(Input::len).sum());
                if wide {
                    let rows = py.detach(|| self.core.encode_batch::<i64>(inputs, &options.core, &columns, pool()));
                    Rows::new(py, rows.map_err(to_py)?, &columns)
                } else {
                    let rows = py.detach(|| self.core.encode_batch::<u32>(inputs, &options.core, &columns, pool()));
                    Rows::new(py, rows.map_err(to_py)?, &columns)
                }
            };
            let batch = BatchArgument::new(texts, "text", split, pairs.is_some())?;
            if let Some(pairs) = pairs {
                let pairs = BatchArgument::new(pairs, "text_pair", split, true)?;
                let first = batch.texts(split, |i| Location::item("item", i))?;
                let second = pairs.texts(split, |i| Location::item("item", i).second())?;
                return encode(&convert::zipped(py, &first, &second)?);
            }
            match &batch {
                BatchArgument::Column(column) => encode(&py.detach(|| column.inputs())?),
                BatchArgument::List(list) => {
                    if let Some(inputs) = convert::plain(list).filter(|_| !split) {
                        return encode(&inputs);
                    }
                    let items = batch.items(split)?;
                    encode(&items.iter().map(|item| item.input(py)).collect::<PyResult<Vec<_>>>()?)
                }
            }
        })
    }

    /// Whether an argument is one text rather than a batch.
    #[staticmethod]
    fn is_single(text: &Bound<'_, PyAny>, split: bool) -> PyResult<bool> {
        convert::is_single(text, split)
    }

    /// Turn ids into text.
    fn decode(
        &self,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        cleanup: Option<bool>,
        strict: bool,
    ) -> PyResult<String> {
        guarded(|| {
            let ids = match ids.is_instance_of::<PyInt>() {
                true => vec![convert::id(ids, Location::argument("ids"))?],
                false => convert::ids(ids, Location::argument("ids"))?,
            };
            self.core.decode(&ids, skip_special_tokens, cleanup, strict).map_err(to_py)
        })
    }

    /// Turn lists of ids into texts.
    fn decode_batch(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        cleanup: Option<bool>,
        strict: bool,
    ) -> PyResult<Vec<String>> {
        guarded(|| {
            let lists = convert::id_lists(ids)?;
            let decode = |(i, ids): (usize, &Vec<u32>)| {
                let text = self.core.decode(ids, skip_special_tokens, cleanup, strict);
                text.map_err(|error| error.at_index(i))
            };
            py.detach(|| lists.iter().enumerate().map(decode).collect::<Result<_, _>>()).map_err(to_py)
        })
    }

    /// Return the id of a token, added ones included.
    fn token_to_id(&self, token: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let token = convert::string(token, Location::argument("token"), "a token is a str")?;
        Ok(self.core.token_to_id(token.to_str()?))
    }

    /// Return the token of an id, added ones included.
    fn id_to_token(&self, token_id: &Bound<'_, PyAny>) -> PyResult<Option<&str>> {
        Ok(self.core.id_to_token(convert::id(token_id, Location::argument("token_id"))?))
    }

    /// Whether an id is that of a special added token.
    fn is_special(&self, token_id: u32) -> bool {
        self.core.is_special(token_id)
    }

    /// Return tokens and ids.
    fn vocab<'py>(&self, py: Python<'py>, with_added_tokens: bool) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        match with_added_tokens {
            true => self.core.vocab().into_iter().try_for_each(|(token, id)| vocab.set_item(token, id))?,
            false => self.core.definition().vocab.iter().try_for_each(|(token, id)| vocab.set_item(token, id))?,
        }
        Ok(vocab)
    }

    /// Return the number of tokens.
    fn vocab_size(&self, with_added_tokens: bool) -> usize {
        self.core.vocab_size(with_added_tokens)
    }

    /// Return the number of special tokens put around one text, or around two.
    fn special_tokens_added(&self, pair: bool) -> usize {
        self.core.special_tokens_added(pair)
    }

    /// Tell in a few words what is done to a text and what is put around it.
    fn summary(&self) -> String {
        let definition = self.core.definition();
        let mut words = match &definition.normalizer {
            Some(Normalizer::Bert(bert)) => {
                let mut words = format!("lowercase={}", if bert.lowercase { "True" } else { "False" });
                if let Some(strip) = bert.strip_accents {
                    let _ = write!(words, ", strip_accents={}", if strip { "True" } else { "False" });
                }
                words
            }
            Some(other) => {
                let name = format!("{other:?}");
                format!("normalizer={}", name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
            }
            None => "normalizer=None".to_owned(),
        };
        if let (Some(cls), Some(sep)) = ends_of(definition.post_processor.as_ref()) {
            let _ = write!(words, ", {cls} A {sep}");
        }
        words
    }
}

/// A vocabulary, and what is odd about it.
fn read_vocab(vocab: &Bound<'_, PyAny>, strict: bool) -> PyResult<(Vocab, Vec<String>)> {
    if let Ok(file) = vocab.cast::<PyBytes>() {
        let (vocab, warnings) = vocab_txt::read(file.as_bytes(), strict).map_err(to_py)?;
        return Ok((vocab, warnings.iter().map(ToString::to_string).collect()));
    }
    let mut tokens: Vec<(Bound<'_, PyString>, u32)> = Vec::new();
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
    let borrowed = tokens.iter().map(|(token, id)| Ok((token.to_str()?, *id))).collect::<PyResult<Vec<_>>>()?;
    let vocab = Vocab::new(borrowed.iter().copied()).map_err(to_py)?;
    if vocab.len() < borrowed.len() {
        return Err(to_py(first_duplicate(&borrowed)));
    }
    Ok((vocab, Vec::new()))
}

fn first_duplicate(tokens: &[(&str, u32)]) -> Error {
    let mut seen = std::collections::HashMap::new();
    for (second, &(token, _)) in tokens.iter().enumerate() {
        if let Some(first) = seen.insert(token, second) {
            return Error::DuplicateToken { token: token.to_owned(), first, second, unit: "index" };
        }
    }
    unreachable!("a token stands twice");
}

/// `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, segment ids 0 and 1, as `tokenizers` writes it for BERT.
fn bert_template(cls: &(String, u32), sep: &(String, u32)) -> Template {
    let special = |(token, _): &(String, u32), type_id| TemplatePiece::Special { name: token.clone(), type_id };
    let text = |sequence, type_id| TemplatePiece::Sequence { sequence, type_id };
    let single = vec![special(cls, 0), text(SequenceId::A, 0), special(sep, 0)];
    let mut pair = single.clone();
    pair.extend([text(SequenceId::B, 1), special(sep, 1)]);
    let token =
        |(token, id): &(String, u32)| SpecialToken { name: token.clone(), ids: vec![*id], tokens: vec![token.clone()] };
    let mut special_tokens = vec![token(cls)];
    if sep.0 != cls.0 {
        special_tokens.push(token(sep));
    }
    Template { single, pair, special_tokens }
}

/// The tokens that begin and end a row of one text, where there is one of each.
fn ends_of(post_processor: Option<&PostProcessor>) -> (Option<String>, Option<String>) {
    match post_processor {
        None => (None, None),
        Some(PostProcessor::Bert { cls, sep } | PostProcessor::Roberta { cls, sep, .. }) => {
            (Some(cls.0.clone()), Some(sep.0.clone()))
        }
        Some(PostProcessor::Template(template)) => {
            let token = |piece: &TemplatePiece| match piece {
                TemplatePiece::Special { name, .. } => {
                    let found = template.special_tokens.iter().find(|token| token.name == *name)?;
                    found.tokens.first().filter(|_| found.tokens.len() == 1).cloned()
                }
                TemplatePiece::Sequence { .. } => None,
            };
            match template.single.as_slice() {
                [cls, TemplatePiece::Sequence { .. }, sep] => (token(cls), token(sep)),
                _ => (None, None),
            }
        }
    }
}
