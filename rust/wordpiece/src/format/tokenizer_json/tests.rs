use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{outline, read, restore, snapshot, state, write};
use crate::added::{AddedToken, assign_ids};
use crate::decode::Decoder;
use crate::definition::Definition;
use crate::error::Error;
use crate::inputs::{
    PadLength, Padding, PostProcessor, SequenceId, Side, SpecialToken, Template, TemplatePiece, Truncation,
    TruncationStrategy,
};
use crate::normalize::{BertNormalizer, Normalizer};
use crate::pattern::Pattern;
use crate::split::{ByteLevel, Metaspace, PreTokenizer, PrependScheme, SplitBehavior};
use crate::vocab::Vocab;

/// Returns a small file in which the values at some JSON pointers are replaced.
fn file(changes: &[(&str, Value)]) -> Value {
    let mut file = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "[CLS]": 3, "[SEP]": 4},
        },
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    file
}

fn read_with(changes: &[(&str, Value)]) -> crate::Result<Definition> {
    read(&file(changes).to_string())
}

fn refusal(pointer: &str, value: Value) -> String {
    read_with(&[(pointer, value)]).unwrap_err().to_string()
}

fn without(pointer: &str) -> crate::Result<Definition> {
    let mut file = file(&[]);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    file.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    read(&file.to_string())
}

fn added(id: u32, content: &str) -> Value {
    let flags = json!({"single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true});
    let mut token = json!({"id": id, "content": content});
    token.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
    token
}

#[test]
fn all_but_the_model_may_be_missing() {
    let expected = read_with(&[]).unwrap();
    for name in ["version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor"] {
        assert_eq!(without(&format!("/{name}")).unwrap(), expected);
    }
    assert_eq!(without("/model/type").unwrap(), expected);
    for name in ["unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"] {
        let error = without(&format!("/model/{name}")).unwrap_err();
        assert_eq!(error, Error::MissingField { component: "model".to_owned(), field: name.to_owned() });
    }
    assert_eq!(without("/model").unwrap_err().to_string(), r#"tokenizer.json: the field "model" is missing"#);
}

#[test]
fn an_unsupported_component_is_rejected_by_name_and_path() {
    let step = json!({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Precompiled"}]});
    assert_eq!(refusal("/normalizer", step), r#"normalizer.normalizers[1]: "Precompiled" is not supported"#);
    let step = json!({"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]});
    assert_eq!(refusal("/pre_tokenizer", step), r#"pre_tokenizer.pretokenizers[0]: "UnicodeScripts" is not supported"#);
    assert_eq!(
        refusal("/post_processor", json!({"type": "ByteLevel"})),
        r#"post_processor: "ByteLevel" is not supported"#
    );
    assert_eq!(refusal("/decoder", json!({"type": "CTC"})), r#"decoder: "CTC" is not supported"#);
    assert_eq!(refusal("/model/type", json!("BPE")), r#"model: "BPE" is not supported"#);
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]});
    let twice = json!({"type": "Sequence", "processors": [bert, bert]});
    assert_eq!(
        refusal("/post_processor", twice),
        r#"post_processor: "Sequence of 2 post-processors" is not supported"#
    );
}

#[test]
fn wrong_fields_are_named_with_their_value() {
    assert_eq!(refusal("/foo", json!(1)), r#"tokenizer.json: unknown field "foo""#);
    assert!(refusal("/version", json!("2.0")).contains(r#"tokenizer.json: "version" is "2.0""#));
    assert_eq!(
        refusal("/normalizer", json!({"type": "BertNormalizer", "clean_text": 1})),
        r#"normalizer: "clean_text" is 1; expected true or false"#
    );
    assert_eq!(refusal("/normalizer", json!("NFC")), r#"tokenizer.json: "normalizer" is "NFC"; expected an object"#);
    assert_eq!(refusal("/normalizer", json!({})), r#"normalizer: the field "type" is missing"#);
    let behavior = refusal("/pre_tokenizer", json!({"type": "Punctuation", "behavior": "isolated"}));
    assert!(behavior.contains(r#""behavior" is "isolated"; expected "Removed" or "Isolated" or"#), "{behavior}");
    assert_eq!(
        refusal("/truncation", json!({"max_length": -1, "strategy": "LongestFirst", "stride": 0})),
        r#"truncation: "max_length" is -1; expected a whole number from 0"#
    );
    let mut token = added(5, "x");
    token["special"] = json!("yes");
    assert_eq!(
        refusal("/added_tokens", json!([token])),
        r#"added_tokens[0]: "special" is "yes"; expected true or false"#
    );
    let pieces = json!({"type": "TemplateProcessing", "single": ["$A"], "pair": [], "special_tokens": {}});
    assert_eq!(
        refusal("/post_processor", pieces),
        r#"tokenizer.json: "post_processor.single[0]" is "$A"; expected an object"#
    );
    let long = "x".repeat(1000);
    assert!(refusal("/version", json!(long)).len() < 200);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let json = write(&Definition::bert(Vocab::new([("[UNK]", 0), ("a", 1)]).unwrap())).unwrap();
    assert_eq!(read(&format!("\u{feff}{json}")).unwrap(), read(&json).unwrap());
    assert!(read(&format!("\u{feff}\u{feff}{json}")).is_err());
}

#[test]
fn json_errors_report_line_and_column_of_the_file() {
    let at = |text: &str| match read(text).unwrap_err() {
        Error::Json { line, column, .. } => (line, column),
        other => panic!("{other}"),
    };
    assert_eq!(at("{\n  \"version\": ,\n}"), (2, 14));
    assert_eq!(at(""), (1, 0));
    assert_eq!(at("{} x"), (1, 4));
    let pretty = serde_json::to_string_pretty(&file(&[("/model/vocab/a", json!(-1))])).unwrap();
    let (line, _) = pretty.lines().enumerate().find(|(_, line)| line.contains("\"a\": -1")).unwrap();
    let error = read(&pretty).unwrap_err();
    assert!(error.to_string().contains("model.vocab: invalid value: integer `-1`, expected u32"), "{error}");
    assert_eq!(at(&pretty).0, line + 1);
    let flat = file(&[("/model/vocab/a", json!("x"))]).to_string();
    let (_, column) = at(&flat);
    assert!(flat[..column].ends_with("\"x\""), "column {column}");
}

#[test]
fn the_last_value_of_a_repeated_key_counts() {
    let text = file(&[])
        .to_string()
        .replace(r#""a":1"#, r#""a":7,"a":1"#)
        .replace(r#""unk_token":"#, r#""unk_token":"x","unk_token":"#);
    assert_eq!(read(&text).unwrap(), read_with(&[]).unwrap());
}

#[test]
fn old_files_without_types_are_read() {
    let bert = json!({"clean_text": true, "handle_chinese_chars": false, "lowercase": true});
    let options = BertNormalizer { tokenize_chinese_chars: false, ..BertNormalizer::default() };
    assert_eq!(read_with(&[("/normalizer", bert)]).unwrap().normalizer, Some(Normalizer::Bert(options)));
    let strip = json!({"normalizers": [{"strip_left": true, "strip_right": false}, {"prepend": "x"}]});
    let steps = vec![Normalizer::Strip { left: true, right: false }, Normalizer::Prepend("x".to_owned())];
    assert_eq!(read_with(&[("/normalizer", strip)]).unwrap().normalizer, Some(Normalizer::Sequence(steps)));
    let replace = json!({"pattern": {"Regex": "a+"}, "content": "b"});
    let pattern = Pattern::regex("a+").unwrap();
    let expected = Normalizer::Replace { pattern: pattern.clone(), content: "b".to_owned() };
    assert_eq!(read_with(&[("/normalizer", replace.clone())]).unwrap().normalizer, Some(expected));
    let expected = Decoder::Replace { pattern, content: "b".to_owned() };
    assert_eq!(read_with(&[("/decoder", replace)]).unwrap().decoder, Some(expected));
    let (cls, sep) = (("[CLS]".to_owned(), 3), ("[SEP]".to_owned(), 4));
    let processing = json!({"sep": ["[SEP]", 4], "cls": ["[CLS]", 3]});
    let expected = PostProcessor::Bert { cls: cls.clone(), sep: sep.clone() };
    assert_eq!(read_with(&[("/post_processor", processing.clone())]).unwrap().post_processor, Some(expected));
    let mut roberta = processing;
    roberta["trim_offsets"] = json!(true);
    roberta["add_prefix_space"] = json!(false);
    let expected = PostProcessor::Roberta { cls, sep, trim_offsets: true, add_prefix_space: false };
    assert_eq!(read_with(&[("/post_processor", roberta)]).unwrap().post_processor, Some(expected));
    let decoder = Decoder::WordPiece { prefix: "##".to_owned(), cleanup: false };
    let read_decoder = read_with(&[("/decoder", json!({"prefix": "##", "cleanup": false}))]).unwrap().decoder;
    assert_eq!(read_decoder, Some(decoder));
    let decoder = read_with(&[("/decoder", json!({"content": "x", "start": 1, "stop": 2}))]).unwrap().decoder;
    assert_eq!(decoder, Some(Decoder::Strip { content: 'x', start: 1, stop: 2 }));
}

#[test]
fn old_metaspace_options_must_agree() {
    let metaspace = |options: Value| {
        let mut value = json!({"type": "Metaspace", "replacement": "▁"});
        value.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        read_with(&[("/pre_tokenizer", value)]).map(|definition| match definition.pre_tokenizer {
            Some(PreTokenizer::Metaspace(metaspace)) => (metaspace.prepend, metaspace.split),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(metaspace(json!({})).unwrap(), (PrependScheme::Always, true));
    assert_eq!(metaspace(json!({"add_prefix_space": true, "str_rep": "▁"})).unwrap(), (PrependScheme::Always, true));
    let never = json!({"add_prefix_space": false, "prepend_scheme": "never", "split": false});
    assert_eq!(metaspace(never).unwrap(), (PrependScheme::Never, false));
    assert!(metaspace(json!({"add_prefix_space": false})).is_err());
}

#[test]
fn a_sequence_of_one_post_processor_is_that_one() {
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]});
    let expected = read_with(&[("/post_processor", bert.clone())]).unwrap();
    let sequence = json!({"type": "Sequence", "processors": [bert]});
    assert_eq!(read_with(&[("/post_processor", sequence)]).unwrap(), expected);
    let none = read_with(&[("/post_processor", json!({"type": "Sequence", "processors": []}))]).unwrap();
    let Some(PostProcessor::Template(template)) = none.post_processor else { panic!() };
    assert_eq!(template.single, [TemplatePiece::Sequence { sequence: SequenceId::A, type_id: 0 }]);
    assert_eq!(template.pair[1], TemplatePiece::Sequence { sequence: SequenceId::B, type_id: 1 });
}

#[test]
fn templates_may_name_only_what_they_define() {
    let template = |single: Value, special: Value| {
        let pair = json!([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]);
        let value = json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special});
        read_with(&[("/post_processor", value)])
    };
    let x = json!([{"SpecialToken": {"id": "x", "type_id": 0}}]);
    assert!(matches!(template(x.clone(), json!({})), Err(Error::BadTemplate { .. })));
    let uneven = json!({"x": {"id": "x", "ids": [1, 2], "tokens": ["a"]}});
    assert!(matches!(template(x.clone(), uneven), Err(Error::BadTemplate { .. })));
    let second = json!([{"Sequence": {"id": "B", "type_id": 0}}]);
    assert!(matches!(template(second, json!({})), Err(Error::BadTemplate { .. })));
    assert!(template(x, json!({"x": {"id": "x", "ids": [1, 2], "tokens": ["a", "b"]}})).is_ok());
}

#[test]
fn the_stored_id_of_an_added_token_must_be_the_one_it_gets() {
    let tokens = read_with(&[("/added_tokens", json!([added(3, "[CLS]"), added(5, "x"), added(6, "y")]))]).unwrap();
    assert_eq!(tokens.added_tokens.len(), 3);
    assert!(tokens.added_tokens[1].lstrip);
    for (tokens, content, stored, assigned) in [
        (json!([added(6, "x")]), "x", 6, 5),
        (json!([added(4, "[CLS]")]), "[CLS]", 4, 3),
        // The reference numbers the new tokens of a file from the size of the vocabulary, whatever ids come before.
        (json!([added(5, "x"), added(7, "y")]), "y", 7, 6),
    ] {
        let error = read_with(&[("/added_tokens", tokens)]).unwrap_err();
        assert_eq!(error, Error::AddedTokenId { content: content.to_owned(), stored, assigned });
    }
    assert_eq!(read_with(&[("/added_tokens", json!([added(0, "")]))]).unwrap().added_tokens, []);
    assert!(matches!(read_with(&[("/model/vocab/c", json!(4))]), Err(Error::DuplicateId { id: 4, .. })));
}

#[test]
fn deep_nesting_is_an_error_and_does_not_overflow_the_stack() {
    let nested = |depth: usize| {
        let text = format!(
            "{}{}{}",
            r#"{"type":"Sequence","normalizers":["#.repeat(depth),
            r#"{"type":"NFC"}"#,
            "]}".repeat(depth)
        );
        read(&file(&[]).to_string().replace(r#""normalizer":null"#, &format!(r#""normalizer":{text}"#)))
    };
    assert!(nested(62).is_ok());
    for depth in [63, 50_000] {
        let error = nested(depth).unwrap_err();
        assert!(error.to_string().contains("normalizer: sequences are nested more than 62 deep"), "{error}");
    }
    let arrays = format!(r#"{{"model": {}"#, "[".repeat(1_000_000));
    assert!(matches!(read(&arrays), Err(Error::Json { .. })));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab#\\[\\] ▁é\"\\\\\\n\u{1}\u{7f}]{0,4}", any::<String>()]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        text().prop_map(Pattern::literal),
        prop_oneof![Just("a+"), Just("\\s+"), Just("[^\\w]|x")].prop_map(|source| Pattern::regex(source).unwrap()),
    ]
}

fn behavior() -> impl Strategy<Value = SplitBehavior> {
    use SplitBehavior::*;
    prop_oneof![Just(Removed), Just(Isolated), Just(MergedWithPrevious), Just(MergedWithNext), Just(Contiguous)]
}

fn metaspace() -> impl Strategy<Value = Metaspace> {
    let prepend = prop_oneof![Just(PrependScheme::First), Just(PrependScheme::Never), Just(PrependScheme::Always)];
    (any::<char>(), prepend, any::<bool>()).prop_map(|(replacement, prepend, split)| Metaspace {
        replacement,
        prepend,
        split,
    })
}

fn normalizer() -> impl Strategy<Value = Normalizer> {
    use Normalizer::*;
    let bert = (any::<bool>(), any::<bool>(), any::<Option<bool>>(), any::<bool>());
    let leaf = prop_oneof![
        bert.prop_map(|(clean_text, tokenize_chinese_chars, strip_accents, lowercase)| {
            Bert(BertNormalizer { clean_text, tokenize_chinese_chars, strip_accents, lowercase })
        }),
        prop_oneof![Just(Lowercase), Just(Nfd), Just(Nfc), Just(Nfkd), Just(Nfkc), Just(StripAccents)],
        (any::<bool>(), any::<bool>()).prop_map(|(left, right)| Strip { left, right }),
        (pattern(), text()).prop_map(|(pattern, content)| Replace { pattern, content }),
        text().prop_map(Prepend),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Sequence))
}

fn byte_level() -> impl Strategy<Value = ByteLevel> {
    any::<[bool; 3]>().prop_map(|[add_prefix_space, trim_offsets, use_regex]| ByteLevel {
        add_prefix_space,
        trim_offsets,
        use_regex,
    })
}

fn pre_tokenizer() -> impl Strategy<Value = PreTokenizer> {
    use PreTokenizer::*;
    let leaf = prop_oneof![
        prop_oneof![Just(Bert), Just(Whitespace), Just(WhitespaceSplit)],
        behavior().prop_map(Punctuation),
        any::<bool>().prop_map(|individual| Digits { individual }),
        (pattern(), behavior(), any::<bool>()).prop_map(|(pattern, behavior, invert)| Split {
            pattern,
            behavior,
            invert
        }),
        any::<char>().prop_map(CharDelimiter),
        metaspace().prop_map(PreTokenizer::Metaspace),
        byte_level().prop_map(PreTokenizer::ByteLevel),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Sequence))
}

fn decoder() -> impl Strategy<Value = Decoder> {
    use Decoder::*;
    let leaf = prop_oneof![
        (text(), any::<bool>()).prop_map(|(prefix, cleanup)| WordPiece { prefix, cleanup }),
        Just(Fuse),
        (any::<char>(), 0..9usize, 0..9usize).prop_map(|(content, start, stop)| Strip { content, start, stop }),
        (pattern(), text()).prop_map(|(pattern, content)| Replace { pattern, content }),
        metaspace().prop_map(Decoder::Metaspace),
        byte_level().prop_map(Decoder::ByteLevel),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Sequence))
}

fn post_processor() -> impl Strategy<Value = PostProcessor> {
    let token = || (text(), any::<u32>());
    let template = (prop::collection::btree_map(text(), prop::collection::vec(token(), 0..3), 1..4), any::<u32>());
    prop_oneof![
        (token(), token()).prop_map(|(cls, sep)| PostProcessor::Bert { cls, sep }),
        (token(), token(), any::<bool>(), any::<bool>()).prop_map(|(cls, sep, trim_offsets, add_prefix_space)| {
            PostProcessor::Roberta { cls, sep, trim_offsets, add_prefix_space }
        }),
        template.prop_map(|(special, type_id)| {
            let text = |sequence| TemplatePiece::Sequence { sequence, type_id };
            let mut single: Vec<TemplatePiece> =
                special.keys().map(|name| TemplatePiece::Special { name: name.clone(), type_id }).collect();
            single.push(text(SequenceId::A));
            let pair = single.iter().cloned().chain([text(SequenceId::B)]).collect();
            let special_tokens = special.into_iter().map(|(name, tokens)| {
                let (tokens, ids) = tokens.into_iter().unzip();
                SpecialToken { name, ids, tokens }
            });
            PostProcessor::Template(Template { special_tokens: special_tokens.collect(), single, pair })
        }),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Left), Just(Side::Right)]
}

fn truncation() -> impl Strategy<Value = Truncation> {
    use TruncationStrategy::*;
    (any::<u32>(), 0..9usize, prop_oneof![Just(LongestFirst), Just(OnlyFirst), Just(OnlySecond)], side()).prop_map(
        |(max_length, stride, strategy, side)| Truncation { max_length: max_length as usize, stride, strategy, side },
    )
}

fn padding() -> impl Strategy<Value = Padding> {
    let length = prop_oneof![Just(PadLength::Longest), any::<u32>().prop_map(|n| PadLength::Fixed(n as usize))];
    (length, prop::option::of(1..99usize), any::<u32>(), any::<u32>(), text(), side()).prop_map(
        |(length, multiple_of, id, type_id, token, side)| Padding { length, multiple_of, id, type_id, token, side },
    )
}

prop_compose! {
    fn added_token()(
        content in text().prop_filter("an empty one is passed over", |content| !content.is_empty()),
        flags in any::<[bool; 5]>(),
    ) -> AddedToken {
        let [single_word, lstrip, rstrip, normalized, special] = flags;
        AddedToken { content, single_word, lstrip, rstrip, normalized, special }
    }
}

prop_compose! {
    fn definition()(
        vocab in prop::collection::btree_map(text(), 0..30u32, 0..9),
        model in (text(), text(), any::<u32>()),
        components in (
            prop::option::of(normalizer()),
            prop::option::of(pre_tokenizer()),
            prop::option::of(post_processor()),
            prop::option::of(decoder()),
        ),
        added in prop::collection::vec(added_token(), 0..5),
        truncation in prop::option::of(truncation()),
        padding in prop::option::of(padding()),
    ) -> Definition {
        let mut ids = std::collections::HashSet::new();
        let vocab: Vec<_> = vocab.iter().filter(|(_, id)| ids.insert(**id)).collect();
        let vocab = Vocab::new(vocab.into_iter().map(|(token, id)| (token.as_str(), *id))).unwrap();
        let mut contents = std::collections::HashSet::new();
        let mut added_tokens = added;
        added_tokens.retain(|token| contents.insert(token.content.clone()));
        let (normalizer, pre_tokenizer, post_processor, decoder) = components;
        let (unk_token, continuing_subword_prefix, max_input_chars_per_word) = model;
        let max_input_chars_per_word = max_input_chars_per_word as usize;
        Definition {
            vocab, unk_token, continuing_subword_prefix, max_input_chars_per_word, normalizer, pre_tokenizer,
            post_processor, decoder, added_tokens, fixed_ids: BTreeMap::new(), truncation, padding,
        }
    }
}

proptest! {
    #[test]
    fn a_snapshot_is_restored(definition in definition()) {
        let ids = assign_ids(&definition.vocab, &definition.added_tokens, &BTreeMap::new());
        let text = snapshot(&definition);
        let again = restore(&text).unwrap();
        // Added tokens come back by ascending id; in that order they get the same ids again.
        let mut expected = definition;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&i| ids[i]);
        expected.added_tokens = order.iter().map(|&i| expected.added_tokens[i].clone()).collect();
        prop_assert_eq!(&again, &expected);
        let ids = assign_ids(&again.vocab, &again.added_tokens, &BTreeMap::new());
        prop_assert!(ids.is_sorted());
        prop_assert_eq!(snapshot(&again), text);
    }

    #[test]
    fn a_state_is_restored_with_its_history(definition in definition(), again in any::<prop::sample::Index>()) {
        let mut expected = definition;
        if !expected.added_tokens.is_empty() {
            let repeated = again.get(&expected.added_tokens).clone();
            expected.added_tokens.push(AddedToken { special: !repeated.special, ..repeated });
        }
        let text = state(&expected);
        let restored = restore(&text).unwrap();
        prop_assert_eq!(&restored.added_tokens, &expected.added_tokens);
        prop_assert_eq!(restored.registered_tokens(), expected.registered_tokens());
        prop_assert_eq!(state(&restored), text);
    }

    #[test]
    fn a_written_definition_is_read_with_the_same_ids(definition in definition()) {
        let Ok(text) = write(&definition) else { return Ok(()) };
        let again = read(&text).unwrap();
        prop_assert_eq!(again.registered_tokens(), definition.registered_tokens());
        prop_assert_eq!(write(&again).unwrap(), text);
    }

    #[test]
    fn an_outline_is_the_file_with_some_tokens(definition in definition(), every in 1..5usize) {
        let mut file: Value = serde_json::from_str(&snapshot(&definition)).unwrap();
        let tokens: Vec<String> = definition.vocab.iter().step_by(every).map(|(token, _)| token.to_owned()).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let found: Value = serde_json::from_str(&outline(&file.to_string(), &tokens).unwrap()).unwrap();
        file["model"]["vocab"].as_object_mut().unwrap().retain(|token, _| tokens.contains(&token.as_str()));
        prop_assert_eq!(found, file);
    }

    #[test]
    fn damaged_files_are_read_or_rejected(definition in definition(), cut in any::<prop::sample::Index>(), byte in 32..127u8) {
        let mut text = snapshot(&definition).into_bytes();
        let at = cut.index(text.len());
        text[at] = byte;
        if let Ok(text) = std::str::from_utf8(&text) {
            let _ = read(text);
            let _ = outline(text, &["a"]);
            let _ = text.get(..at).map(read);
        }
    }
}

#[test]
fn a_file_that_is_not_utf8_is_an_error_with_the_place() {
    assert_eq!(super::text("{\"é\": 1}".as_bytes()).unwrap(), "{\"é\": 1}");
    let error = super::text(b"{\"a\": \"\xff\"}").unwrap_err().to_string();
    assert_eq!(error, "not a valid tokenizer.json: not UTF-8: byte 0xff at offset 7");
}

#[test]
fn outlines_of_other_models_have_no_tokens_and_no_merges() {
    let outline_of = |file: Value| serde_json::from_str::<Value>(&outline(&file.to_string(), &["a"]).unwrap()).unwrap();
    assert_eq!(
        outline_of(json!({ "model": { "type": "BPE", "vocab": { "a": 0, "b": 1 }, "merges": ["a b"] }, "\n": [1] })),
        json!({ "model": { "type": "BPE", "vocab": { "a": 0 }, "merges": [] }, "\n": [1] })
    );
    assert_eq!(
        outline_of(json!({ "model": { "type": "Unigram", "vocab": [["a", -1.5]] } })),
        json!({ "model": { "type": "Unigram", "vocab": [] } })
    );
    for odd in [json!({}), json!({ "model": 3 }), json!({ "model": { "vocab": "a", "merges": [] } })] {
        assert_eq!(outline_of(odd.clone()), odd);
    }
    assert!(outline("[]", &[]).is_err());
    assert!(outline("{", &[]).is_err());
}
