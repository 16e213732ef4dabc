//! The class `_core.Tokenizer`: one core tokenizer and the calls that it answers.
//!
//! Every method converts its arguments, releases the interpreter for the work, and converts the result. The core
//! defines what a BERT tokenizer is, and reads and writes files.

use std::sync::Arc;

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use wordpiece::bert::BertOptions;
use wordpiece::format::{tokenizer_json, vocab_txt};
use wordpiece::normalize::Normalizer;
use wordpiece::{AddedToken, BatchItem, Columns, Definition, InstructionSet, Number};

use super::batch::{self, Rows};
use super::bert_options::{self, BertNormalizer};
use super::convert::{self, BatchArgument, HeldInput, HeldTexts};
use super::encoding::{Encoding, WindowSource};
use super::options::{Options, PaddingSettings, TruncationSettings};
use super::vocab;
use crate::error::{self, guarded, to_py};
use crate::interrupt::detached;
use crate::location::Location;
use crate::text::{self, Fields, Utf8, Utf8String};
use crate::threads::{self, Threads};
use crate::{instruction_sets, numpy_api};

/// A single input of fewer bytes is encoded without releasing the interpreter. Getting it back may mean waiting for a
/// thread that computes, a thousand times longer than the encoding of such a text takes.
const DETACH_BYTES: usize = 4 << 10;

/// A batch of up to so many items that are as short together is encoded without releasing the interpreter as well. With more,
/// the interpreter is released before their bytes are added up.
const MAX_ATTACHED_ITEMS: usize = 16;

/// The fields of an added token: content, single_word, lstrip, rstrip, normalized, special.
type TokenFields<T> = (T, bool, bool, bool, bool, bool);

/// An immutable tokenizer, which `wordpiece_bert.Tokenizer` wraps.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct Tokenizer {
    /// Shared with the encodings, which compute their windows on request.
    pub core: Arc<wordpiece::Tokenizer>,
}

/// How a call encodes a batch into flat arrays.
struct BatchCall<'a> {
    core: &'a wordpiece::Tokenizer,
    options: &'a Options,
    columns: Columns,
    /// Ids, segment ids and masks are int64, and rows of one length an axis.
    wide: bool,
    threads: Option<Threads>,
}

impl BatchCall<'_> {
    /// Encodes the items of a batch, with the interpreter detached if there is much to do.
    fn rows(&self, py: Python<'_>, items: &[impl BatchItem]) -> PyResult<Rows> {
        if self.wide { self.rows_of::<i64>(py, items) } else { self.rows_of::<u32>(py, items) }
    }

    fn rows_of<N: Number + Element>(&self, py: Python<'_>, items: &[impl BatchItem]) -> PyResult<Rows> {
        let encode = |pool| self.core.encode_batch::<N>(items, &self.options.core, &self.columns, pool);
        let bytes = || items.iter().map(BatchItem::bytes).sum::<usize>();
        let rows = if items.len() <= MAX_ATTACHED_ITEMS && bytes() < DETACH_BYTES {
            encode(None)
        } else {
            detached(py, || encode(threads::pool_for_texts(self.threads, items)))?
        };
        Rows::new(py, rows.map_err(to_py)?, &self.columns, self.wide)
    }
}

impl Tokenizer {
    fn new(definition: Definition) -> PyResult<Tokenizer> {
        Ok(Tokenizer { core: Arc::new(wordpiece::Tokenizer::new(definition).map_err(to_py)?) })
    }

    /// Encodes items with everything that is known about each, with the interpreter detached.
    fn encodings_of(
        &self,
        py: Python<'_>,
        items: &[impl BatchItem],
        options: &Options,
        threads: Option<Threads>,
    ) -> PyResult<Vec<wordpiece::Encoding>> {
        let encode = || self.core.encodings(items, &options.core, threads::pool_for_texts(threads, items));
        detached(py, encode)?.map_err(to_py)
    }

    /// Returns the definition of the tokenizer.
    pub fn definition(&self) -> &Definition {
        self.core.definition()
    }
}

/// Converts the fields of an added token, which is the `i`th of several.
fn added_token((i, fields): (usize, TokenFields<Bound<'_, PyAny>>)) -> PyResult<AddedToken> {
    let (content, single_word, lstrip, rstrip, normalized, special) = fields;
    let token = convert::string(&content, Location::item("token", i), "a token is a str")?;
    let content = token.get(content.py()).to_owned();
    Ok(AddedToken { content, single_word, lstrip, rstrip, normalized, special })
}

/// Makes a tokenizer from a text that `read` understands.
fn parse(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    read: impl FnOnce(&str) -> wordpiece::Result<Definition> + Send,
) -> PyResult<Tokenizer> {
    guarded(|| {
        let text = convert::string(text, Location::argument("text"), "a tokenizer.json is text: a str")?;
        let text = text.get(py);
        detached(py, || Tokenizer::new(read(text).map_err(to_py)?))?
    })
}

#[pymethods]
impl Tokenizer {
    /// Read the text of a tokenizer.json.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Tokenizer> {
        parse(py, text, tokenizer_json::read)
    }

    /// Read the bytes of a tokenizer.json. To make a `str` of them, and bytes again, takes a tenth of the time of loading.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, file: &[u8]) -> PyResult<Tokenizer> {
        let read = || tokenizer_json::text(file).and_then(tokenizer_json::read);
        guarded(|| detached(py, || Tokenizer::new(read().map_err(to_py)?))?)
    }

    /// Return the text of any model's tokenizer.json with only these tokens of its vocabulary, and without merges.
    #[staticmethod]
    fn outline(py: Python<'_>, file: &[u8], tokens: Vec<Utf8String>) -> PyResult<String> {
        let tokens: Vec<&str> = tokens.iter().map(|token| token.0.as_str()).collect();
        let outline = || tokenizer_json::outline(tokenizer_json::text(file)?, &tokens);
        guarded(|| detached(py, || outline().map_err(to_py))?)
    }

    /// Read the text of `state` or `snapshot`, or the text of a tokenizer of `tokenizers`: added tokens have the ids that it
    /// states.
    #[staticmethod]
    fn restore(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Tokenizer> {
        parse(py, text, tokenizer_json::restore)
    }

    /// Make a BERT tokenizer from a vocabulary: the bytes of a vocab.txt, a list of tokens, or a dict of tokens and ids.
    ///
    /// `special_tokens` maps names of roles to tokens. Return the tokenizer with a sentence for each line of the vocab.txt
    /// that is probably a mistake.
    #[staticmethod]
    #[pyo3(signature = (vocab, special_tokens, normalizer, *, strict, continuing_subword_prefix,
        max_input_chars_per_word))]
    fn from_vocab(
        vocab: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyDict>,
        normalizer: &BertNormalizer,
        strict: bool,
        continuing_subword_prefix: &Bound<'_, PyAny>,
        max_input_chars_per_word: usize,
    ) -> PyResult<(Tokenizer, Vec<String>)> {
        guarded(|| {
            let (vocab, warnings) = vocab::read(vocab, strict)?;
            let special_tokens = bert_options::special_tokens(special_tokens)?;
            let location = Location::argument("continuing_subword_prefix");
            let prefix = convert::string(continuing_subword_prefix, location, "expected a str")?;
            let options = BertOptions {
                special_tokens,
                normalizer: (*normalizer).into(),
                continuing_subword_prefix: prefix.get(continuing_subword_prefix.py()).to_owned(),
                max_input_chars_per_word,
            };
            Ok((Tokenizer::new(Definition::bert_with_options(vocab, &options))?, warnings))
        })
    }

    /// Return the text of a tokenizer.json, from which the `tokenizers` library reads the same ids; there is an InputError
    /// if no file does that.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| py.detach(|| tokenizer_json::write(self.definition()).map_err(to_py)))
    }

    /// Return the whole state of the tokenizer as text, for `restore`.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| Ok(py.detach(|| tokenizer_json::state(self.definition()))))
    }

    /// Return the state with added tokens by their ids, without the order in which they were registered.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| Ok(py.detach(|| tokenizer_json::snapshot(self.definition()))))
    }

    /// Return the same tokenizer with other settings for truncation and padding.
    fn with_settings(
        &self,
        truncation: Option<Fields<TruncationSettings>>,
        padding: Option<Fields<PaddingSettings>>,
    ) -> PyResult<Tokenizer> {
        guarded(|| {
            let truncation = truncation.map(|fields| fields.0.core()).transpose()?;
            let padding = padding.map(|fields| fields.0.core()).transpose()?;
            Ok(Tokenizer { core: Arc::new(self.core.with_settings(truncation, padding)) })
        })
    }

    /// Return the text of a vocab.txt; None if the lines of one cannot represent the vocabulary.
    fn to_vocab_txt(&self) -> PyResult<Option<String>> {
        guarded(|| Ok(vocab_txt::write(&self.core.definition().vocab).ok()))
    }

    /// Return a tokenizer with more added tokens.
    fn with_added_tokens(&self, tokens: Vec<TokenFields<Bound<'_, PyAny>>>) -> PyResult<Tokenizer> {
        guarded(|| {
            let added = tokens.into_iter().enumerate().map(added_token).collect::<PyResult<Vec<_>>>()?;
            Ok(Tokenizer { core: Arc::new(self.core.with_added_tokens(added).map_err(to_py)?) })
        })
    }

    /// Return a tokenizer with another vocabulary, tokens and ids, and other added tokens with their ids; without
    /// `template`, it adds no special tokens to texts.
    #[pyo3(signature = (vocab, added, *, template))]
    fn with_tokens(
        &self,
        vocab: &Bound<'_, PyDict>,
        added: Vec<(u32, TokenFields<Bound<'_, PyAny>>)>,
        template: bool,
    ) -> PyResult<Tokenizer> {
        guarded(|| {
            let (vocab, _) = vocab::read(vocab, true)?;
            let (ids, tokens): (Vec<u32>, Vec<_>) = added.into_iter().unzip();
            let tokens = tokens.into_iter().enumerate().map(added_token).collect::<PyResult<Vec<_>>>()?;
            let added = ids.into_iter().zip(tokens).collect();
            let mut definition = self.definition().with_tokens(vocab, added).map_err(to_py)?;
            if !template {
                definition.post_processor = None;
            }
            Tokenizer::new(definition)
        })
    }

    /// Return all added tokens with their ids, in the order in which they were added.
    fn added_tokens(&self) -> Vec<(u32, TokenFields<String>)> {
        let fields = |t: &AddedToken| (t.content.clone(), t.single_word, t.lstrip, t.rstrip, t.normalized, t.special);
        self.core.added_tokens().map(|(id, token)| (id, fields(token))).collect()
    }

    /// Return a tokenizer with BERT's template around `cls` and `sep`, in place of its post-processor.
    fn with_bert_template(&self, cls: &Bound<'_, PyAny>, sep: &Bound<'_, PyAny>) -> PyResult<Tokenizer> {
        guarded(|| {
            let py = cls.py();
            let cls = convert::string(cls, Location::argument("cls"), "a token is a str")?;
            let sep = convert::string(sep, Location::argument("sep"), "a token is a str")?;
            let with_id = |token| match self.core.token_to_id(token) {
                Some(id) => Ok((token, id)),
                None => Err(error::input(format!("the template's token {token:?} is not a token of this tokenizer"))),
            };
            let (cls, sep) = (with_id(cls.get(py))?, with_id(sep.get(py))?);
            Tokenizer::new(self.definition().with_bert_template(cls, sep))
        })
    }

    /// Return a tokenizer that lower-cases text first; the tokenizer itself if its normalizer has such a step.
    fn with_lowercase(&self) -> PyResult<Tokenizer> {
        guarded(|| Tokenizer::new(self.definition().with_lowercase()))
    }

    /// Return the tokens that appear to have BERT's roles, by the name of the role.
    fn roles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let roles = PyDict::new(py);
        let special_tokens = self.definition().guess_special_tokens();
        special_tokens.iter().try_for_each(|(role, token)| roles.set_item(role.name(), token))?;
        Ok(roles)
    }

    /// Return the normalizer options from which transformers' BertTokenizer rebuilds this tokenizer; None if it cannot.
    ///
    /// `special_tokens` maps names of roles to the tokens that the folder states.
    fn bert_options(&self, special_tokens: &Bound<'_, PyDict>) -> PyResult<Option<BertNormalizer>> {
        guarded(|| {
            let special_tokens = bert_options::special_tokens(special_tokens)?;
            Ok(self.definition().bert_options(&special_tokens).map(|options| options.normalizer.into()))
        })
    }

    /// The token that a word without pieces becomes.
    #[getter]
    fn unk_token(&self) -> &str {
        &self.definition().unk_token
    }

    /// The prefix of pieces that continue a word.
    #[getter]
    fn continuing_subword_prefix(&self) -> &str {
        &self.definition().continuing_subword_prefix
    }

    /// The most characters that a word may have; a longer one becomes `unk_token`.
    #[getter]
    fn max_input_chars_per_word(&self) -> usize {
        self.definition().max_input_chars_per_word
    }

    /// The type of the normalizer, as tokenizer.json names it; None without one.
    #[getter]
    fn normalizer_type(&self) -> Option<String> {
        self.definition().normalizer.as_ref().map(tokenizer_json::normalizer_type)
    }

    /// The options of the normalizer if it is BERT's, else None.
    #[getter]
    fn bert_normalizer(&self) -> Option<BertNormalizer> {
        match self.definition().normalizer {
            Some(Normalizer::Bert(bert)) => Some(bert.into()),
            _ => None,
        }
    }

    /// The type of the pre-tokenizer, as tokenizer.json names it; None without one.
    #[getter]
    fn pre_tokenizer_type(&self) -> Option<String> {
        self.definition().pre_tokenizer.as_ref().map(tokenizer_json::pre_tokenizer_type)
    }

    /// Normalizer and pre-tokenizer as canonical text, for fingerprints: equal texts mean that texts have equal words.
    #[getter]
    fn pipeline(&self) -> String {
        tokenizer_json::pipeline(self.definition())
    }

    /// All that decides the ids of a text as canonical text, for fingerprints: equal texts mean equal ids.
    fn identity(&self, py: Python<'_>) -> String {
        py.detach(|| tokenizer_json::identity(self.definition()))
    }

    /// The instruction set of the fast path; None for a tokenizer that always takes the general path.
    #[getter]
    fn instruction_set(&self) -> Option<&'static str> {
        self.core.instruction_set().map(InstructionSet::name)
    }

    /// Return a tokenizer that uses another instruction set, or with None the general path, for tests and benchmarks.
    ///
    /// A tokenizer without a fast path stays without one.
    fn with_instruction_set(&self, name: Option<Utf8<'_>>) -> PyResult<Tokenizer> {
        guarded(|| {
            let available = wordpiece::Tokenizer::instruction_sets();
            let instruction_set = name.map(|name| instruction_sets::by_name(&available, &name)).transpose()?;
            let core = wordpiece::Tokenizer::clone(&self.core).with_instruction_set(instruction_set);
            Ok(Tokenizer { core: Arc::new(core) })
        })
    }

    /// Return the names of the instruction sets that this machine has for tokenizers, the best last.
    #[staticmethod]
    fn instruction_sets() -> Vec<&'static str> {
        wordpiece::Tokenizer::instruction_sets().into_iter().map(InstructionSet::name).collect()
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

    /// The most bytes that the cache of words may use, for each thread at work.
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

    /// The largest id of the vocabulary, without added tokens; None if it is empty.
    #[getter]
    fn largest_id(&self) -> Option<u32> {
        self.core.definition().vocab.max_id()
    }

    /// Return the options of a call; an InputError if truncation leaves no room for a single text.
    fn options(
        &self,
        add_special_tokens: bool,
        truncation: Option<Fields<TruncationSettings>>,
        padding: Option<Fields<PaddingSettings>>,
        offset_unit: Utf8<'_>,
        encode_special_tokens: bool,
    ) -> PyResult<Options> {
        guarded(|| {
            let options = Options::build(add_special_tokens, truncation, padding, &offset_unit, encode_special_tokens)?;
            if let Some(truncation) = &options.core.truncation {
                let added = if add_special_tokens { self.core.special_tokens_added(false) } else { 0 };
                truncation.check(added).map_err(to_py)?;
            }
            Ok(options)
        })
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
            let item = HeldTexts::new(text, pair, split)?;
            let input = item.input(py);
            let encode = || self.core.encode(&input, &options.core);
            let row = if input.len() < DETACH_BYTES { encode() } else { detached(py, encode)? }.map_err(to_py)?;
            let more = row.truncated.then(|| WindowSource::new(&self.core, &options.core, row.len()));
            Ok(Encoding::new(row, more.map(|source| source.of(HeldInput::Texts(item)))))
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
            numpy_api::ready(py)?;
            let item = HeldTexts::new(text, pair, false)?;
            let input = item.input(py);
            let encode = || self.core.encode_ids(&input, &options.core);
            let ids = if input.len() < DETACH_BYTES { encode() } else { detached(py, encode)? };
            ids.map(|ids| PyArray1::from_vec(py, ids)).map_err(to_py)
        })
    }

    /// Encode a batch into one Encoding for each item.
    fn encodings(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        split: bool,
        options: &Options,
        threads: Option<Threads>,
    ) -> PyResult<Vec<Encoding>> {
        guarded(|| {
            let batch = BatchArgument::new(texts, "text", split, false)?;
            let (rows, items): (_, Vec<HeldInput>) = match &batch {
                BatchArgument::Column(column) => {
                    let rows = detached(py, || column.rows())??;
                    let held = (0..column.len()).map(|row| HeldInput::Row(Arc::clone(column), row));
                    (self.encodings_of(py, &rows, options, threads)?, held.collect())
                }
                BatchArgument::List(list) => {
                    let items = convert::items(list, split)?;
                    let inputs: Vec<_> = items.iter().map(|item| item.input(py)).collect();
                    (
                        self.encodings_of(py, &inputs, options, threads)?,
                        items.into_iter().map(HeldInput::Texts).collect(),
                    )
                }
            };
            // With padding to the longest row, all rows have the length of the first.
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

    /// Encode a batch into flat arrays with the named columns. With `wide`, ids, segment ids and masks are int64, and rows of
    /// one length are an axis of the columns that `Rows.model_inputs` returns.
    #[allow(clippy::too_many_arguments, reason = "everything a batch can be asked for")]
    fn encode_batch(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        pairs: Option<&Bound<'_, PyAny>>,
        split: bool,
        options: &Options,
        columns: Vec<Utf8String>,
        wide: bool,
        threads: Option<Threads>,
    ) -> PyResult<Rows> {
        guarded(|| {
            let call = BatchCall { core: &self.core, options, columns: batch::columns(&columns)?, wide, threads };
            let batch = BatchArgument::new(texts, "text", split, pairs.is_some())?;
            if let Some(pairs) = pairs {
                let pairs = BatchArgument::new(pairs, "text_pair", split, true)?;
                if !split && let Some(inputs) = convert::plain_pairs(&batch, &pairs)? {
                    return call.rows(py, &inputs);
                }
                let first = batch.texts(split, |i| Location::item("item", i))?;
                let second = pairs.texts(split, |i| Location::item("item", i).second())?;
                let mut copies = [Vec::new(), Vec::new()];
                return call.rows(py, &convert::zipped(py, &first, &second, &mut copies)?);
            }
            match &batch {
                BatchArgument::Column(column) => call.rows(py, &detached(py, || column.rows())??),
                BatchArgument::List(list) => {
                    if !split && let Some(texts) = convert::plain(list) {
                        return call.rows(py, &texts);
                    }
                    let items = convert::items(list, split)?;
                    let inputs: Vec<_> = items.iter().map(|item| item.input(py)).collect();
                    call.rows(py, &inputs)
                }
            }
        })
    }

    /// Return whether an argument is one text rather than a batch.
    #[staticmethod]
    fn is_single(text: &Bound<'_, PyAny>, split: bool) -> PyResult<bool> {
        guarded(|| convert::is_single(text, split))
    }

    /// Turn ids into text.
    fn decode(
        &self,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        cleanup: bool,
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
        cleanup: bool,
        strict: bool,
    ) -> PyResult<Vec<String>> {
        guarded(|| {
            let lists = convert::id_lists(ids)?;
            let decode = |(i, ids): (usize, &Vec<u32>)| {
                let text = self.core.decode(ids, skip_special_tokens, cleanup, strict);
                text.map_err(|error| error.at_index(i))
            };
            detached(py, || lists.iter().enumerate().map(decode).collect::<Result<_, _>>())?.map_err(to_py)
        })
    }

    /// Return the normalized form of a text, and the words that it is split into.
    fn words(&self, text: &Bound<'_, PyAny>) -> PyResult<(String, Vec<String>)> {
        guarded(|| {
            let checked = convert::string(text, Location::argument("text"), "a text is a str")?;
            self.definition().words(checked.get(text.py())).map_err(to_py)
        })
    }

    /// Join tokens into text, as the decoder does.
    fn join_tokens(&self, tokens: Vec<Utf8String>) -> PyResult<String> {
        guarded(|| self.definition().join_tokens(text::strings(tokens), false).map_err(to_py))
    }

    /// Return the id of a token, added ones included.
    fn token_to_id(&self, token: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        guarded(|| {
            let checked = convert::string(token, Location::argument("token"), "a token is a str")?;
            Ok(self.core.token_to_id(checked.get(token.py())))
        })
    }

    /// Return the token of an id, added ones included.
    fn id_to_token(&self, token_id: &Bound<'_, PyAny>) -> PyResult<Option<&str>> {
        Ok(self.core.id_to_token(convert::id(token_id, Location::argument("token_id"))?))
    }

    /// Return a dict of tokens and ids.
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

    /// Return the number of special tokens that are added to one text, or to a pair.
    fn special_tokens_added(&self, pair: bool) -> usize {
        self.core.special_tokens_added(pair)
    }

    /// Describe in a few words how text is normalized and what surrounds it.
    fn summary(&self) -> String {
        let definition = self.definition();
        let python_bool = |flag| if flag { "True" } else { "False" };
        let mut summary = match &definition.normalizer {
            Some(Normalizer::Bert(bert)) => {
                let strip = bert.strip_accents.map(|strip| format!(", strip_accents={}", python_bool(strip)));
                format!("lowercase={}{}", python_bool(bert.lowercase), strip.unwrap_or_default())
            }
            Some(other) => format!("normalizer={}", tokenizer_json::normalizer_type(other)),
            None => "normalizer=None".to_owned(),
        };
        if let (Some(cls), Some(sep)) = definition.tokens_around_text() {
            summary += &format!(", {cls} A {sep}");
        }
        summary
    }
}
