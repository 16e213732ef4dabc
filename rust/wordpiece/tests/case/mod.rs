//! The cases of `tests/data/cases/*.toml`: their schema, how they are read, and how they run.
//!
//! README.md in that folder documents the schema. A case is independent of the engines; an [`Engine`] is anything that can
//! be built from a case and answer its queries.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The contents of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Vocabularies that several cases use, by name.
    #[serde(default)]
    vocabs: BTreeMap<String, Vec<String>>,
    #[serde(rename = "case")]
    cases: Vec<Case>,
}

/// A vocabulary: its name in the file, its tokens in the order of their ids, or tokens with arbitrary ids.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Vocab {
    Named(String),
    List(Vec<String>),
    Map(BTreeMap<String, u32>),
}

/// A component of the pipeline: `"none"`, the name of a common one, or the table of a tokenizer.json.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Component {
    Named(String),
    Table(Value),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub unk_token: Option<String>,
    pub continuing_subword_prefix: Option<String>,
    pub max_input_chars_per_word: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedToken {
    pub content: String,
    pub id: Option<u32>,
    #[serde(default)]
    pub single_word: bool,
    #[serde(default)]
    pub lstrip: bool,
    #[serde(default)]
    pub rstrip: bool,
    pub normalized: Option<bool>,
    #[serde(default)]
    pub special: bool,
}

impl AddedToken {
    /// Returns whether it is searched for in the normalized text; by default if it is not special, as in `tokenizers`.
    pub fn normalized(&self) -> bool {
        self.normalized.unwrap_or(!self.special)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truncation {
    pub max_length: usize,
    #[serde(default)]
    pub stride: usize,
    #[serde(default = "longest_first")]
    pub strategy: String,
    #[serde(default = "right")]
    pub direction: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Padding {
    pub length: Option<usize>,
    pub pad_to_multiple_of: Option<usize>,
    #[serde(default = "right")]
    pub direction: String,
    #[serde(default)]
    pub pad_id: u32,
    #[serde(default)]
    pub pad_type_id: u32,
    #[serde(default = "pad_token")]
    pub pad_token: String,
}

fn longest_first() -> String {
    "longest_first".into()
}

fn right() -> String {
    "right".into()
}

fn pad_token() -> String {
    "[PAD]".into()
}

fn yes() -> bool {
    true
}

/// A text, or the words of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Whole(String),
    Words(Vec<String>),
}

/// A single text or a pair.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub text: Text,
    pub pair: Option<Text>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decode {
    pub ids: Vec<u32>,
    #[serde(default = "yes")]
    pub skip_special_tokens: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    #[serde(default)]
    pub token_to_id: BTreeMap<String, u32>,
    /// The keys are ids; TOML allows only strings.
    #[serde(default)]
    pub id_to_token: BTreeMap<String, String>,
    #[serde(default)]
    pub no_token: Vec<u32>,
    pub vocab_size: Option<usize>,
}

/// An expected encoding; -1 means none.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    pub ids: Vec<u32>,
    pub tokens: Vec<String>,
    pub offsets: Vec<(usize, usize)>,
    pub word_ids: Vec<i64>,
    pub type_ids: Vec<u32>,
    pub sequence_ids: Vec<i64>,
    pub attention_mask: Vec<u32>,
    pub special_tokens_mask: Vec<u32>,
    #[serde(default)]
    pub overflowing: Vec<Encoding>,
}

/// One case. Omitted values have the defaults of the schema.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// What it demonstrates, in a sentence.
    pub shows: String,
    /// The number of a deliberate difference from `tokenizers`.
    pub differs: Option<String>,
    /// What `tokenizers` does instead, or the wording of its error.
    pub reference: Option<String>,

    pub vocab: Option<Vocab>,
    #[serde(default)]
    pub model: Model,
    pub normalizer: Option<Component>,
    pub pre_tokenizer: Option<Component>,
    pub post_processor: Option<Component>,
    pub decoder: Option<Component>,
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub encode_special_tokens: bool,
    pub truncation: Option<Truncation>,
    pub padding: Option<Padding>,

    #[serde(default)]
    pub inputs: Vec<Input>,
    #[serde(default = "yes")]
    pub add_special_tokens: bool,
    pub decode: Option<Decode>,
    pub lookup: Option<Lookup>,
    pub vocab_txt: Option<String>,

    #[serde(default)]
    pub encodings: Vec<Encoding>,
    pub decoded: Option<String>,
    pub vocab_read: Option<BTreeMap<String, u32>>,
    /// The Python class of the expected error.
    pub error: Option<String>,
    /// Strings that the message of the error must contain.
    #[serde(default)]
    pub names: Vec<String>,
}

impl Case {
    /// Returns the tokens and their ids, by id.
    pub fn vocab(&self) -> Vec<(String, u32)> {
        match self.vocab.as_ref().expect("the case has a vocabulary") {
            Vocab::Named(name) => panic!("no vocabulary {name:?} in the file"),
            Vocab::List(tokens) => tokens.iter().cloned().zip(0..).collect(),
            Vocab::Map(ids) => ids.iter().map(|(token, &id)| (token.clone(), id)).collect(),
        }
    }

    /// Returns the id of a token of the vocabulary.
    fn id_of(&self, token: &str) -> u32 {
        let vocab = self.vocab();
        vocab.iter().rfind(|(other, _)| other == token).unwrap_or_else(|| panic!("{token:?} in the vocabulary")).1
    }

    /// Returns the normalizer as in a tokenizer.json, with defaults filled in; `Null` if there is none.
    pub fn normalizer(&self) -> Value {
        match &self.normalizer {
            None => fill_normalizer(&json!({"type": "BertNormalizer"})),
            Some(Component::Named(_)) => Value::Null,
            Some(Component::Table(table)) => fill_normalizer(table),
        }
    }

    /// Returns the pre-tokenizer as in a tokenizer.json; `Null` if there is none.
    pub fn pre_tokenizer(&self) -> Value {
        match &self.pre_tokenizer {
            None => json!({"type": "BertPreTokenizer"}),
            Some(Component::Named(_)) => Value::Null,
            Some(Component::Table(table)) => table.clone(),
        }
    }

    /// Returns the decoder as in a tokenizer.json; `Null` if there is none.
    pub fn decoder(&self) -> Value {
        match &self.decoder {
            None => json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
            Some(Component::Named(_)) => Value::Null,
            Some(Component::Table(table)) => table.clone(),
        }
    }

    /// Returns the post-processor as in a tokenizer.json; `Null` if there is none.
    pub fn post_processor(&self) -> Value {
        match &self.post_processor {
            None => Value::Null,
            Some(Component::Named(name)) if name == "bert" => {
                let (cls, sep) = (self.id_of("[CLS]"), self.id_of("[SEP]"));
                json!({"type": "BertProcessing", "sep": ["[SEP]", sep], "cls": ["[CLS]", cls]})
            }
            Some(Component::Named(name)) => panic!("{name:?} is no post-processor"),
            Some(Component::Table(table)) => self.template(table),
        }
    }

    fn template(&self, table: &Value) -> Value {
        let mut special_tokens = Map::new();
        if let Some(Value::Object(given)) = table.get("special_tokens") {
            for (name, token) in given {
                special_tokens
                    .insert(name.clone(), json!({"id": name, "ids": token["ids"], "tokens": token["tokens"]}));
            }
        }
        let mut pieces = |key: &str| -> Vec<Value> {
            let pieces = table[key].as_array().expect("a list of pieces");
            let piece = |text: &Value| {
                let (name, type_id) = text.as_str().and_then(|text| text.rsplit_once(':')).expect("NAME:TYPE");
                let type_id: u32 = type_id.parse().expect("a type id");
                if let Some(sequence) = name.strip_prefix('$') {
                    return json!({"Sequence": {"id": sequence, "type_id": type_id}});
                }
                if table.get("special_tokens").is_none() && !special_tokens.contains_key(name) {
                    let token = json!({"id": name, "ids": [self.id_of(name)], "tokens": [name]});
                    special_tokens.insert(name.to_owned(), token);
                }
                json!({"SpecialToken": {"id": name, "type_id": type_id}})
            };
            pieces.iter().map(piece).collect()
        };
        let (single, pair) = (pieces("single"), pieces("pair"));
        json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special_tokens})
    }

    /// Returns the entire tokenizer as a tokenizer.json, including truncation and padding.
    #[allow(dead_code, reason = "for engines that read tokenizer.json")]
    pub fn tokenizer_json(&self) -> String {
        let vocab: Map<String, Value> = self.vocab().into_iter().map(|(token, id)| (token, json!(id))).collect();
        let truncation = self.truncation.as_ref().map(|t| {
            json!({
                "direction": capitalized(&t.direction),
                "max_length": t.max_length,
                "strategy": t.strategy.split('_').map(capitalized).collect::<String>(),
                "stride": t.stride,
            })
        });
        let padding = self.padding.as_ref().map(|p| {
            json!({
                "strategy": p.length.map_or(json!("BatchLongest"), |n| json!({"Fixed": n})),
                "direction": capitalized(&p.direction),
                "pad_to_multiple_of": p.pad_to_multiple_of,
                "pad_id": p.pad_id,
                "pad_type_id": p.pad_type_id,
                "pad_token": p.pad_token,
            })
        });
        json!({
            "version": "1.0",
            "truncation": truncation,
            "padding": padding,
            "added_tokens": self.added_tokens_with_ids(),
            "normalizer": self.normalizer(),
            "pre_tokenizer": self.pre_tokenizer(),
            "post_processor": self.post_processor(),
            "decoder": self.decoder(),
            "model": {
                "type": "WordPiece",
                "unk_token": self.model.unk_token.as_deref().unwrap_or("[UNK]"),
                "continuing_subword_prefix": self.model.continuing_subword_prefix.as_deref().unwrap_or("##"),
                "max_input_chars_per_word": self.model.max_input_chars_per_word.unwrap_or(100),
                "vocab": vocab,
            },
        })
        .to_string()
    }

    /// Returns the added tokens as in a tokenizer.json, which states an id for each: by default the one it is assigned.
    fn added_tokens_with_ids(&self) -> Vec<Value> {
        let mut ids: BTreeMap<String, u32> = self.vocab().into_iter().collect();
        let mut next = ids.len() as u32;
        let mut tokens = Vec::new();
        for token in &self.added_tokens {
            let content = &token.content;
            if !content.is_empty() && !ids.contains_key(content) {
                if ids.values().any(|&id| id == next) {
                    next = ids.values().max().map_or(0, |max| max + 1);
                }
                ids.insert(content.clone(), next);
                next += 1;
            }
            // A token without content is ignored, so its id does not matter.
            let id = ids.get(content).copied().unwrap_or(next);
            tokens.push(json!({
                "id": token.id.unwrap_or(id),
                "content": token.content,
                "single_word": token.single_word,
                "lstrip": token.lstrip,
                "rstrip": token.rstrip,
                "normalized": token.normalized(),
                "special": token.special,
            }));
        }
        tokens
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn fill_normalizer(table: &Value) -> Value {
    let mut filled = table.clone();
    if table["type"] == "BertNormalizer" {
        for key in ["clean_text", "handle_chinese_chars", "lowercase"] {
            if filled.get(key).is_none() {
                filled[key] = true.into();
            }
        }
        if filled.get("strip_accents").is_none() {
            filled["strip_accents"] = Value::Null;
        }
    }
    filled
}

/// Why an engine failed to answer.
#[derive(Debug)]
pub struct Failure {
    /// The name of the Python class of the error.
    pub class: &'static str,
    pub message: String,
}

/// A tokenizer under test: built from a case, and able to answer its queries.
pub trait Engine: Sized {
    /// The name to report failures with.
    const NAME: &'static str;

    /// Returns the reason why the engine skips a case, if it does.
    fn skips(_case: &Case) -> Option<&'static str> {
        None
    }

    /// Builds every variant of the engine (one per instruction set), each with its name.
    fn build(case: &Case) -> Result<Vec<(&'static str, Self)>, Failure>;
    /// Returns the encodings of `case.inputs`, as one batch.
    fn encode(&self, case: &Case) -> Result<Vec<Encoding>, Failure>;
    fn decode(&self, decode: &Decode) -> Result<String, Failure>;
    fn token_to_id(&self, token: &str) -> Option<u32>;
    fn id_to_token(&self, id: u32) -> Option<String>;
    fn vocab_size(&self) -> usize;
    fn read_vocab_txt(text: &str) -> Result<BTreeMap<String, u32>, Failure>;
}

/// Reads all cases, each with the name of its file.
pub fn load() -> Vec<(String, Case)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/cases");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file: File = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for mut case in file.cases {
            if let Some(Vocab::Named(name)) = &case.vocab {
                let tokens = file.vocabs.get(name).unwrap_or_else(|| panic!("{stem}: no vocabulary {name:?}"));
                case.vocab = Some(Vocab::List(tokens.clone()));
            }
            all.push((stem.clone(), case));
        }
    }
    all
}

/// Runs every case on an engine and panics with all failures, each naming the variant that failed.
pub fn run<E: Engine>() {
    let cases = load();
    assert!(cases.len() > 100, "only {} cases were found", cases.len());
    let mut wrong = Vec::new();
    for (file, case) in &cases {
        if let Some(reason) = E::skips(case) {
            println!("{}: skips {file}/{}: {reason}", E::NAME, case.name);
            continue;
        }
        for (variant, difference) in check::<E>(case) {
            let number = case.differs.as_ref().map(|number| format!(" [differs: {number}]")).unwrap_or_default();
            let other = case.reference.as_ref().map(|did| format!("\n  tokenizers: {did}")).unwrap_or_default();
            wrong.push(format!("{variant}: {file}/{} ({}){number}\n{difference}{other}", case.name, case.shows));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n\n{} failures in {} cases of the engine {}",
        wrong.join("\n\n"),
        wrong.len(),
        cases.len(),
        E::NAME
    );
}

/// Runs one case on every variant of an engine; returns the differences, with the name of the variant.
fn check<E: Engine>(case: &Case) -> Vec<(&'static str, String)> {
    if let Some(text) = &case.vocab_txt {
        let differences = E::read_vocab_txt(text).map(|got| {
            let same = Some(&got) == case.vocab_read.as_ref();
            let difference = || format!("  vocabulary {got:?}\n  expected   {:?}", case.vocab_read);
            if same { Vec::new() } else { vec![difference()] }
        });
        return judge(case, differences).err().map(|difference| (E::NAME, difference)).into_iter().collect();
    }
    match E::build(case) {
        Err(failure) => judge(case, Err(failure)).err().map(|difference| (E::NAME, difference)).into_iter().collect(),
        Ok(variants) => {
            let judged = |(name, engine): &(&'static str, E)| Some((*name, judge(case, answer(engine, case)).err()?));
            variants.iter().filter_map(judged).collect()
        }
    }
}

/// Compares the differences that were found, or the failure, with the error that the case expects, if any.
fn judge(case: &Case, outcome: Result<Vec<String>, Failure>) -> Result<(), String> {
    match (outcome, &case.error) {
        (Ok(differences), None) if differences.is_empty() => Ok(()),
        (Ok(differences), None) => Err(differences.join("\n")),
        (Ok(_), Some(class)) => Err(format!("  no error, expected {class}")),
        (Err(failure), None) => Err(format!("  {}: {}", failure.class, failure.message)),
        (Err(failure), Some(class)) => {
            let unnamed: Vec<&String> = case.names.iter().filter(|name| !failure.message.contains(*name)).collect();
            // Options that a file sets are checked when it is loaded, so the class of the error can be the file's.
            if failure.class != class && !(class == "InputError" && failure.class == "TokenizerFormatError") {
                return Err(format!("  {} instead of {class}: {}", failure.class, failure.message));
            }
            if unnamed.is_empty() { Ok(()) } else { Err(format!("  does not name {unnamed:?}: {}", failure.message)) }
        }
    }
}

/// Asks an engine everything that the case asks; returns the differences from the expected answers.
fn answer<E: Engine>(engine: &E, case: &Case) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    if !case.inputs.is_empty() {
        let got = engine.encode(case)?;
        for (i, (got, expected)) in got.iter().zip(&case.encodings).enumerate() {
            compare(&format!("[{i}]"), got, expected, &mut differences);
        }
        if got.len() != case.encodings.len() && case.error.is_none() {
            differences.push(format!("  {} encodings, expected {}", got.len(), case.encodings.len()));
        }
    }
    if let Some(decode) = &case.decode {
        let got = engine.decode(decode)?;
        if Some(&got) != case.decoded.as_ref() {
            differences.push(format!("  decoded {got:?}\n  expected {:?}", case.decoded));
        }
    }
    if let Some(lookup) = &case.lookup {
        for (token, &id) in &lookup.token_to_id {
            if engine.token_to_id(token) != Some(id) {
                differences.push(format!("  {token:?} has id {:?}, expected {id}", engine.token_to_id(token)));
            }
        }
        for (id, token) in &lookup.id_to_token {
            let got = engine.id_to_token(id.parse().expect("an id"));
            if got.as_ref() != Some(token) {
                differences.push(format!("  id {id} is {got:?}, expected {token:?}"));
            }
        }
        for &id in &lookup.no_token {
            if let Some(token) = engine.id_to_token(id) {
                differences.push(format!("  id {id} is {token:?}, expected none"));
            }
        }
        if lookup.vocab_size.is_some_and(|size| size != engine.vocab_size()) {
            differences.push(format!("  {} tokens, expected {:?}", engine.vocab_size(), lookup.vocab_size));
        }
    }
    Ok(differences)
}

fn compare(path: &str, got: &Encoding, expected: &Encoding, differences: &mut Vec<String>) {
    macro_rules! field {
        ($($name:ident),*) => {$(
            if got.$name != expected.$name {
                differences.push(format!(
                    "  {path}.{} {:?}\n  expected {:?}", stringify!($name), got.$name, expected.$name
                ));
            }
        )*};
    }
    field!(ids, tokens, offsets, word_ids, type_ids, sequence_ids, attention_mask, special_tokens_mask);
    if got.overflowing.len() != expected.overflowing.len() {
        let (got, expected) = (got.overflowing.len(), expected.overflowing.len());
        differences.push(format!("  {path} has {got} windows, expected {expected}"));
    }
    for (i, (got, expected)) in got.overflowing.iter().zip(&expected.overflowing).enumerate() {
        compare(&format!("{path}.overflowing[{i}]"), got, expected, differences);
    }
}
