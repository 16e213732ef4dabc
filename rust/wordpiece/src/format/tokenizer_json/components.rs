//! Reads normalizers, pre-tokenizers, post-processors and decoders.
//!
//! The `type` field decides what a component is. Old files omit it where the other fields imply it; they are read as the
//! reference reads them. Unknown fields are ignored, as in the reference, because old releases wrote fields that have no
//! meaning today.

use serde_json::value::RawValue;

use super::object::Object;
use crate::decode::Decoder;
use crate::error::{Error, Result};
use crate::inputs::{PostProcessor, SequenceId, SpecialToken, Template, TemplatePiece};
use crate::normalize::{BertNormalizer, Normalizer};
use crate::pattern::Pattern;
use crate::split::{ByteLevel, Metaspace, PreTokenizer, PrependScheme, SplitBehavior};

/// The deepest nesting of sequences, the same as in the reference.
const MAX_DEPTH: usize = 62;

/// A function that reads a component. Its arguments are the path of the component, its JSON, and the number of sequences
/// around it.
type ReadComponent<T> = fn(String, &RawValue, usize) -> Result<T>;

/// Reads the components of a sequence that is itself inside `depth` sequences.
fn sequence<T>(object: &Object, field: &str, depth: usize, read: ReadComponent<T>) -> Result<Vec<T>> {
    if depth == MAX_DEPTH {
        let component = object.path.split('.').next().unwrap_or_default();
        let message = format!("{component}: sequences are nested more than {MAX_DEPTH} deep");
        return Err(Error::Json { message, line: 0, column: 0 });
    }
    object.items(field)?.map(|(path, value)| read(path, value, depth + 1)).collect()
}

/// Reads a normalizer.
pub(super) fn normalizer(path: String, value: &RawValue, depth: usize) -> Result<Normalizer> {
    let object = Object::new(path, value)?;
    let kind = match object.kind()? {
        Some(kind) => kind,
        // The order matters: it is the one in which the reference tries them.
        None if object.has("clean_text") => "BertNormalizer".to_owned(),
        None if object.has("strip_left") => "Strip".to_owned(),
        None if object.has("normalizers") => "Sequence".to_owned(),
        None if object.has("pattern") => "Replace".to_owned(),
        None if object.has("prepend") => "Prepend".to_owned(),
        None => return Err(object.untyped()),
    };
    Ok(match kind.as_str() {
        "BertNormalizer" | "Bert" => Normalizer::Bert(BertNormalizer {
            clean_text: object.flag("clean_text")?,
            tokenize_chinese_chars: object.flag("handle_chinese_chars")?,
            strip_accents: object.optional("strip_accents", "true, false or null")?,
            lowercase: object.flag("lowercase")?,
        }),
        "Sequence" => Normalizer::Sequence(sequence(&object, "normalizers", depth, normalizer)?),
        "Lowercase" => Normalizer::Lowercase,
        "NFD" => Normalizer::Nfd,
        "NFC" => Normalizer::Nfc,
        "NFKD" => Normalizer::Nfkd,
        "NFKC" => Normalizer::Nfkc,
        "StripAccents" => Normalizer::StripAccents,
        "Strip" => Normalizer::Strip { left: object.flag("strip_left")?, right: object.flag("strip_right")? },
        "Replace" => Normalizer::Replace { pattern: pattern(&object)?, content: object.text("content")? },
        "Prepend" => Normalizer::Prepend(object.text("prepend")?),
        other => return Err(object.unsupported(other)),
    })
}

/// Reads a pre-tokenizer.
pub(super) fn pre_tokenizer(path: String, value: &RawValue, depth: usize) -> Result<PreTokenizer> {
    let object = Object::new(path, value)?;
    let kind = object.kind()?.ok_or_else(|| object.untyped())?;
    Ok(match kind.as_str() {
        "BertPreTokenizer" => PreTokenizer::Bert,
        "Whitespace" => PreTokenizer::Whitespace,
        "WhitespaceSplit" => PreTokenizer::WhitespaceSplit,
        "Punctuation" if object.has("behavior") => PreTokenizer::Punctuation(behavior(&object)?),
        "Punctuation" => PreTokenizer::Punctuation(SplitBehavior::Isolated),
        "Digits" => PreTokenizer::Digits { individual: object.flag("individual_digits")? },
        "Split" => PreTokenizer::Split {
            pattern: pattern(&object)?,
            behavior: behavior(&object)?,
            invert: object.flag("invert")?,
        },
        "CharDelimiterSplit" => PreTokenizer::CharDelimiter(object.character("delimiter")?),
        "Metaspace" => PreTokenizer::Metaspace(metaspace(&object)?),
        "ByteLevel" => PreTokenizer::ByteLevel(byte_level(&object)?),
        "Sequence" => PreTokenizer::Sequence(sequence(&object, "pretokenizers", depth, pre_tokenizer)?),
        other => return Err(object.unsupported(other)),
    })
}

/// Reads a post-processor.
pub(super) fn post_processor(path: String, value: &RawValue, depth: usize) -> Result<PostProcessor> {
    let object = Object::new(path, value)?;
    let roberta = object.has("trim_offsets") && object.has("add_prefix_space");
    let kind = match object.kind()? {
        // The reference checks the fields before the type here, so with these fields the type is Roberta's.
        Some(kind) if kind == "BertProcessing" && roberta => "RobertaProcessing".to_owned(),
        Some(kind) => kind,
        None if object.has("sep") && roberta => "RobertaProcessing".to_owned(),
        None if object.has("sep") => "BertProcessing".to_owned(),
        None if object.has("single") => "TemplateProcessing".to_owned(),
        None => return Err(object.untyped()),
    };
    let token = |field| object.get(field, "a token and its id: [\"[SEP]\", 102]");
    Ok(match kind.as_str() {
        "BertProcessing" => PostProcessor::Bert { cls: token("cls")?, sep: token("sep")? },
        "RobertaProcessing" => PostProcessor::Roberta {
            cls: token("cls")?,
            sep: token("sep")?,
            trim_offsets: object.flag("trim_offsets")?,
            add_prefix_space: object.flag("add_prefix_space")?,
        },
        "TemplateProcessing" => PostProcessor::Template(template(&object)?),
        "Sequence" => {
            let mut steps = sequence(&object, "processors", depth, post_processor)?;
            match steps.len() {
                0 => PostProcessor::Template(bare_template()),
                1 => steps.remove(0),
                several => return Err(object.unsupported(&format!("Sequence of {several} post-processors"))),
            }
        }
        other => return Err(object.unsupported(other)),
    })
}

/// Reads a decoder.
pub(super) fn decoder(path: String, value: &RawValue, depth: usize) -> Result<Decoder> {
    let object = Object::new(path, value)?;
    let kind = match object.kind()? {
        Some(kind) => kind,
        None if object.has("prefix") => "WordPiece".to_owned(),
        None if object.has("pattern") => "Replace".to_owned(),
        None if object.has("start") => "Strip".to_owned(),
        None => return Err(object.untyped()),
    };
    Ok(match kind.as_str() {
        "WordPiece" => Decoder::WordPiece { prefix: object.text("prefix")?, cleanup: object.flag("cleanup")? },
        "Sequence" => Decoder::Sequence(sequence(&object, "decoders", depth, decoder)?),
        "Fuse" => Decoder::Fuse,
        "Strip" => Decoder::Strip {
            content: object.character("content")?,
            start: object.count("start")?,
            stop: object.count("stop")?,
        },
        "Replace" => Decoder::Replace { pattern: pattern(&object)?, content: object.text("content")? },
        "Metaspace" => Decoder::Metaspace(metaspace(&object)?),
        "ByteLevel" => Decoder::ByteLevel(byte_level(&object)?),
        other => return Err(object.unsupported(other)),
    })
}

/// Reads the field `pattern`: `{"String": "…"}` or `{"Regex": "…"}`.
fn pattern(object: &Object) -> Result<Pattern> {
    let expected = "{\"String\": …} or {\"Regex\": …}";
    let value = object.required("pattern")?;
    let choice = Object::new(format!("{}.pattern", object.path), value)?;
    match (choice.fields.len(), choice.has("String"), choice.has("Regex")) {
        (1, true, _) => Ok(Pattern::literal(choice.text("String")?)),
        (1, _, true) => Pattern::regex(choice.text("Regex")?),
        _ => Err(object.invalid("pattern", value, expected)),
    }
}

/// Reads the field `behavior` of a splitting pre-tokenizer.
fn behavior(object: &Object) -> Result<SplitBehavior> {
    object.choice(
        "behavior",
        &[
            ("Removed", SplitBehavior::Removed),
            ("Isolated", SplitBehavior::Isolated),
            ("MergedWithPrevious", SplitBehavior::MergedWithPrevious),
            ("MergedWithNext", SplitBehavior::MergedWithNext),
            ("Contiguous", SplitBehavior::Contiguous),
        ],
    )
}

/// Reads the fields of `Metaspace`, which is a pre-tokenizer and a decoder.
fn metaspace(object: &Object) -> Result<Metaspace> {
    let replacement = object.character("replacement")?;
    let schemes = [("first", PrependScheme::First), ("never", PrependScheme::Never), ("always", PrependScheme::Always)];
    let prepend = match object.has("prepend_scheme") {
        true => object.choice("prepend_scheme", &schemes)?,
        false => PrependScheme::Always,
    };
    // Older files have this field in place of `prepend_scheme`.
    let add_prefix_space: Option<bool> = object.optional("add_prefix_space", "true, false or null")?;
    if add_prefix_space == Some(false) && prepend != PrependScheme::Never {
        let value = object.required("add_prefix_space")?;
        return Err(object.invalid("add_prefix_space", value, "true where prepend_scheme is not \"never\""));
    }
    let split: Option<bool> = object.optional("split", "true, false or null")?;
    Ok(Metaspace { replacement, prepend, split: split.unwrap_or(true) })
}

/// Reads the fields of `ByteLevel`, which is a pre-tokenizer and a decoder.
fn byte_level(object: &Object) -> Result<ByteLevel> {
    Ok(ByteLevel {
        add_prefix_space: object.flag("add_prefix_space")?,
        trim_offsets: object.flag("trim_offsets")?,
        // Older files do not have this field.
        use_regex: if object.has("use_regex") { object.flag("use_regex")? } else { true },
    })
}

/// Reads the fields of `TemplateProcessing` and checks that they are consistent.
fn template(object: &Object) -> Result<Template> {
    let pieces =
        |field| object.items(field)?.map(|(path, value)| piece(path, value)).collect::<Result<Vec<TemplatePiece>>>();
    let (single, pair) = (pieces("single")?, pieces("pair")?);
    let named = object.object("special_tokens")?;
    let special_tokens = named
        .fields
        .keys()
        .map(|name| {
            let token = named.object(name)?;
            token.text("id")?;
            let ids = token.get("ids", "an array of ids")?;
            let tokens = token.get("tokens", "an array of strings")?;
            Ok(SpecialToken { name: name.clone().into_owned(), ids, tokens })
        })
        .collect::<Result<Vec<SpecialToken>>>()?;
    let template = Template { single, pair, special_tokens };
    template.check()?;
    Ok(template)
}

/// Reads one piece of a template: `{"Sequence": …}` or `{"SpecialToken": …}`.
fn piece(path: String, value: &RawValue) -> Result<TemplatePiece> {
    let choice = Object::new(path, value)?;
    match choice.fields.keys().next().map(AsRef::as_ref) {
        Some("Sequence") if choice.fields.len() == 1 => {
            let object = choice.object("Sequence")?;
            let sequence = object.choice("id", &[("A", SequenceId::A), ("B", SequenceId::B)])?;
            Ok(TemplatePiece::Sequence { sequence, type_id: object.id("type_id")? })
        }
        Some("SpecialToken") if choice.fields.len() == 1 => {
            let special = choice.object("SpecialToken")?;
            Ok(TemplatePiece::Special { name: special.text("id")?, type_id: special.id("type_id")? })
        }
        other => Err(choice.unsupported(other.unwrap_or("{}"))),
    }
}

/// Returns the template that a post-processor without steps amounts to: segment ids 0 and 1, and no special tokens.
fn bare_template() -> Template {
    let text = |sequence, type_id| TemplatePiece::Sequence { sequence, type_id };
    let (first, second) = (text(SequenceId::A, 0), text(SequenceId::B, 1));
    Template { single: vec![first.clone()], pair: vec![first, second], special_tokens: Vec::new() }
}
