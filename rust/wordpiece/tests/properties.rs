//! The pipeline equals the reference implementation, for random configurations and random texts.
//!
//! Every property runs without the fast path and on every instruction set of the CPU; a failure names the one that differs
//! in its first line. The cases follow from `PROPTEST_RNG_SEED`, which `.cargo/config.toml` sets for `cargo test` and
//! `make fuzz` varies; `WORDPIECE_REQUIRE_INSTRUCTION_SETS=scalar,avx2` turns an instruction set that would be skipped
//! into a failure.

mod support;

use proptest::prelude::*;
use support::engines::on_all_engines;
use wordpiece::{BatchRows, Columns, EncodeOptions, Encoding, Input, Tokenizer, reference};
use wordpiece_parallel::testing::skips_exhaustive_test;

/// Tiny alphabets exercise every rule of matching, the rest of Unicode every rule of normalization.
fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => prop::sample::select(vec!['a', 'b', 'A', 'é', ' ', '#']),
        4 => prop::sample::select(vec![
            '中', '\u{301}', '\u{316}', '.', '_', '\u{ad}', '\t', '\u{b}', '\u{85}', '\u{a0}', 'İ', 'ß', '가', '①', '١',
            '\u{344}', '\u{f73}', '\u{200d}', '\u{0}', '\u{fffd}', '豈', '\u{2b820}', '𝒳', '[', ']',
        ]),
        1 => any::<char>(),
    ];
    prop_oneof![
        6 => prop::collection::vec(character, 0..24).prop_map(String::from_iter),
        1 => prop::collection::vec(
            prop::sample::select(vec!["[A]", " ab", "ba ", "é", "[B] ", "x", "aabbaabb. ", "\u{ad}", "\n", "가"]),
            0..40,
        )
        .prop_map(|parts| parts.concat()),
    ]
}

fn sequence() -> impl Strategy<Value = reference::Sequence> {
    prop_oneof![
        4 => text().prop_map(reference::Sequence::Text),
        1 => prop::collection::vec(text(), 0..4).prop_map(reference::Sequence::Words),
    ]
}

fn input() -> impl Strategy<Value = reference::Input> {
    (sequence(), prop::option::of(sequence())).prop_map(|(first, second)| reference::Input { first, second })
}

fn vocab() -> impl Strategy<Value = Vec<(String, u32)>> {
    let piece = prop_oneof![
        2 => "[abé#.]{1,3}",
        2 => "##[abé#.]{1,3}",
        2 => "[中ßi\u{301}]",
        2 => "##[ßi\u{301}\u{307}]",
        // Byte-level characters of spaces and of multi-byte characters.
        1 => "[ĠĊÃ©Ìģäab]{1,2}",
        1 => "##[ĠÃ©Ìģ¸ŃÅab]",
    ];
    prop::collection::btree_set(piece, 0..24).prop_map(|pieces| {
        let special = ["[UNK]", "[CLS]", "[SEP]", "[A]"].map(str::to_owned);
        special.into_iter().chain(pieces).zip(0..).collect()
    })
}

fn bert() -> impl Strategy<Value = reference::Normalizer> {
    (any::<bool>(), any::<bool>(), any::<Option<bool>>(), any::<bool>()).prop_map(
        |(clean_text, handle_chinese_chars, strip_accents, lowercase)| {
            reference::Normalizer::Bert(reference::BertNormalizer {
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase,
            })
        },
    )
}

fn normalizer() -> impl Strategy<Value = Option<reference::Normalizer>> {
    use reference::Normalizer::{Lowercase, Nfd, Sequence, Strip, StripAccents};
    let step = prop_oneof![
        Just(Nfd),
        Just(Lowercase),
        Just(StripAccents),
        (any::<bool>(), any::<bool>()).prop_map(|(left, right)| Strip { left, right }),
        bert(),
    ];
    prop_oneof![
        4 => bert().prop_map(Some),
        1 => prop::collection::vec(step, 0..4).prop_map(|steps| Some(Sequence(steps))),
        1 => Just(None),
    ]
}

fn pre_tokenizer() -> impl Strategy<Value = Option<reference::PreTokenizer>> {
    use reference::{Behavior, PreTokenizer};
    let behavior = prop::sample::select(vec![Behavior::Removed, Behavior::Isolated, Behavior::Contiguous]);
    let step = prop_oneof![
        Just(PreTokenizer::Bert),
        Just(PreTokenizer::Whitespace),
        Just(PreTokenizer::WhitespaceSplit),
        behavior.prop_map(PreTokenizer::Punctuation),
        any::<bool>().prop_map(|individual| PreTokenizer::Digits { individual }),
        (any::<bool>(), any::<bool>())
            .prop_map(|(add_prefix_space, use_regex)| PreTokenizer::ByteLevel { add_prefix_space, use_regex }),
    ];
    prop_oneof![
        4 => Just(Some(PreTokenizer::Bert)),
        2 => step.clone().prop_map(Some),
        1 => prop::collection::vec(step, 0..3).prop_map(|steps| Some(PreTokenizer::Sequence(steps))),
        1 => Just(None),
    ]
}

fn post_processor() -> impl Strategy<Value = Option<reference::PostProcessor>> {
    use reference::TemplatePiece::{A, B, Special};
    let special = |name: &str, type_id| Special(name.to_owned(), type_id);
    let token = |ids: &[u32], tokens: &[&str]| reference::TemplateToken {
        ids: ids.to_vec(),
        tokens: tokens.iter().map(|token| token.to_string()).collect(),
    };
    let special_tokens: std::collections::HashMap<_, _> =
        [("[C]".to_owned(), token(&[1, 9], &["[CLS]", "+"])), ("[S]".to_owned(), token(&[2], &["[SEP]"]))].into();
    let templates = vec![
        (vec![special("[C]", 0), A(0), special("[S]", 0)], vec![special("[C]", 0), A(0), special("[S]", 0), B(1)]),
        (vec![A(7), special("[S]", 9)], vec![B(3), special("[C]", 5), A(4), special("[S]", 6)]),
        (vec![A(0), A(1)], vec![A(0), B(1), A(2), special("[S]", 0)]),
    ];
    prop_oneof![
        3 => Just(Some(reference::PostProcessor::Bert { cls: ("[CLS]".into(), 1), sep: ("[SEP]".into(), 2) })),
        3 => prop::sample::select(templates).prop_map(move |(single, pair)| {
            Some(reference::PostProcessor::Template { single, pair, special_tokens: special_tokens.clone() })
        }),
        1 => Just(None),
    ]
}

fn added_tokens() -> impl Strategy<Value = Vec<reference::AddedToken>> {
    let content = prop::sample::select(vec!["[A]", "[B]", "ab", "Ab", "b ", "é", "中", " ", "a b", "."]);
    let token =
        (content, any::<[bool; 5]>()).prop_map(|(content, [single_word, lstrip, rstrip, normalized, special])| {
            reference::AddedToken {
                content: content.into(),
                id: None,
                single_word,
                lstrip,
                rstrip,
                normalized,
                special,
            }
        });
    prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(token, 0..4)]
}

fn side() -> impl Strategy<Value = reference::Side> {
    prop::sample::select(vec![reference::Side::Left, reference::Side::Right])
}

fn truncation() -> impl Strategy<Value = Option<reference::Truncation>> {
    use reference::Strategy::{LongestFirst, OnlyFirst, OnlySecond};
    let strategy = prop::sample::select(vec![LongestFirst, LongestFirst, OnlyFirst, OnlySecond]);
    prop::option::of((0usize..12, 0usize..4, strategy, side()).prop_map(|(max_length, stride, strategy, direction)| {
        reference::Truncation { max_length, stride, strategy, direction }
    }))
}

fn padding() -> impl Strategy<Value = Option<reference::Padding>> {
    prop::option::of((prop::option::of(0usize..12), 0usize..5, side()).prop_map(|(length, multiple_of, direction)| {
        reference::Padding { length, multiple_of, direction, pad_id: 5, pad_type_id: 3, pad_token: "[P]".into() }
    }))
}

fn config() -> impl Strategy<Value = reference::Config> {
    let model = (vocab(), prop::sample::select(vec!["##", "##", "", "a"]), prop::sample::select(vec![100usize, 3]));
    let steps = (normalizer(), pre_tokenizer(), post_processor(), added_tokens());
    (model, steps, truncation(), padding(), prop::bool::weighted(0.2)).prop_map(
        |((vocab, prefix, max_chars), steps, truncation, padding, encode_special_tokens)| reference::Config {
            vocab,
            unk_token: "[UNK]".into(),
            continuing_subword_prefix: prefix.into(),
            max_input_chars_per_word: max_chars,
            normalizer: steps.0,
            pre_tokenizer: steps.1,
            post_processor: steps.2,
            added_tokens: steps.3,
            encode_special_tokens,
            truncation,
            padding,
        },
    )
}

/// Prefixes the reason of a failure with the name of the engine, so that it is in the first line of the report.
fn on(engine: &str, result: Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    result.map_err(|error| match error {
        TestCaseError::Fail(reason) => TestCaseError::fail(format!("{engine}: {reason}")),
        rejected => rejected,
    })
}

/// Returns both tokenizers, or `None` if both refuse the configuration.
fn both(config: &reference::Config) -> Option<(reference::Tokenizer, Tokenizer)> {
    let slow = reference::Tokenizer::new(config.clone());
    let fast = support::definition(config).and_then(Tokenizer::new);
    match (slow, fast) {
        (Ok(slow), Ok(fast)) => Some((slow, fast)),
        (Err(_), Err(_)) => None,
        (Ok(_), Err(error)) => {
            // The reference implementation checks more when a tokenizer is created, never less.
            panic!("only the pipeline refuses: {error}")
        }
        (Err(_), Ok(fast)) => {
            // It checks truncation when a tokenizer is created, the pipeline when it is used. It also refuses a token that
            // normalizes to nothing if a later one with the same content replaces it.
            let options = support::options(config, true);
            let refused = options.truncation.is_some_and(|it| it.check(fast.special_tokens_added(false)).is_err());
            let replaced = fast.added_tokens().len() < config.added_tokens.len();
            assert!(refused || replaced, "only the reference implementation refuses {config:?}");
            None
        }
    }
}

/// Returns the arrays that a batch must contain, derived from the complete encodings.
fn expected_rows(encodings: &[Encoding], columns: &Columns) -> BatchRows {
    let mut rows = BatchRows { row_offsets: vec![0], ..BatchRows::default() };
    for (i, encoding) in encodings.iter().enumerate() {
        let windows: &[Encoding] = if columns.windows { &encoding.overflowing } else { &[] };
        for row in std::iter::once(encoding).chain(windows) {
            rows.ids.extend(&row.ids);
            rows.row_offsets.push(rows.ids.len() as i64);
            if columns.type_ids {
                rows.type_ids.extend(&row.type_ids);
            }
            if columns.attention_mask {
                rows.attention_mask.extend(row.attention_mask.iter().map(|&bit| u32::from(bit)));
            }
            if columns.special_tokens_mask {
                rows.special_tokens_mask.extend(row.special_tokens_mask.iter().map(|&bit| u32::from(bit)));
            }
            if columns.offsets {
                rows.offsets.extend(row.offsets.iter().flat_map(|&(start, end)| [i64::from(start), i64::from(end)]));
            }
            if columns.word_ids {
                rows.word_ids.extend(row.word_ids.iter().map(|id| id.map_or(-1, |id| id as i32)));
            }
            if columns.sequence_ids {
                rows.sequence_ids.extend(row.sequence_ids().iter().map(|id| id.map_or(-1, |id| id as i32)));
            }
            if columns.windows {
                rows.overflow_to_sample.push(i as i64);
            }
        }
        if columns.n_tokens {
            rows.n_tokens.push(encoding.n_tokens as i64);
        }
        rows.truncated.push(encoding.truncated);
    }
    rows
}

/// Any set of columns, with only ids and the usual three more likely.
fn columns() -> impl Strategy<Value = Columns> {
    let any = any::<[bool; 8]>().prop_map(|requested| Columns {
        type_ids: requested[0],
        attention_mask: requested[1],
        special_tokens_mask: requested[2],
        offsets: requested[3],
        word_ids: requested[4],
        sequence_ids: requested[5],
        windows: requested[6],
        n_tokens: requested[7],
    });
    let masks = Columns { type_ids: true, attention_mask: true, ..Columns::default() };
    prop_oneof![2 => any, 1 => Just(Columns::default()), 1 => Just(masks)]
}

/// The number of cases of a property that has `cases` natively: a third under emulation.
fn cases(cases: u32, property: &str) -> u32 {
    if skips_exhaustive_test(property) { cases / 3 } else { cases }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(6_000, "two thirds of the random configurations"),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_pipeline_equals_the_reference_implementation(
        config in config(),
        inputs in prop::collection::vec(input(), 1..3),
        special in any::<bool>(),
        columns in columns(),
    ) {
        let Some((slow, fast)) = both(&config) else { return Ok(()) };
        let options = support::options(&config, special);
        let given: Vec<_> = inputs.iter().map(support::input).collect();
        let expected = slow.encode_batch(&inputs, special);
        for (engine, fast) in on_all_engines(&fast) {
            on(engine, equals_reference(&fast, &given, &options, &columns, &expected))?;
        }
    }
}

/// Checks the encodings and the batch of one engine against the result of the reference implementation.
fn equals_reference(
    fast: &Tokenizer,
    inputs: &[Input<'_>],
    options: &EncodeOptions,
    columns: &Columns,
    expected: &Result<Vec<reference::Encoding>, reference::Refusal>,
) -> Result<(), TestCaseError> {
    match (expected, fast.encodings(inputs, options, None)) {
        (Ok(expected), Ok(encodings)) => {
            let got: Vec<_> = encodings.iter().map(support::as_reference).collect();
            prop_assert_eq!(expected, &got);
            let batch: BatchRows = fast.encode_batch(inputs, options, columns, None).unwrap();
            let wide: BatchRows<i64> = fast.encode_batch(inputs, options, columns, None).unwrap();
            let widened = |list: &[u32]| list.iter().map(|&number| i64::from(number)).collect::<Vec<_>>();
            prop_assert_eq!(widened(&batch.ids), wide.ids);
            prop_assert_eq!(widened(&batch.attention_mask), wide.attention_mask);
            prop_assert_eq!(widened(&batch.type_ids), wide.type_ids);
            prop_assert_eq!(batch, expected_rows(&encodings, columns));
        }
        (Err(_), Err(error)) => {
            let batch = fast.encode_batch::<u32>(inputs, options, columns, None);
            prop_assert_eq!(batch, Err(error));
        }
        (expected, got) => prop_assert!(false, "{:?}\n{:?}", expected, got),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Texts that span several chunks, with words across their boundaries, and enough words to evict entries of the cache.
    #[test]
    fn long_texts_equal_the_reference_implementation(
        config in config(),
        parts in prop::collection::vec(text(), 1..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 300..900),
    ) {
        let cut = support::options(&config, false).truncation;
        let config = reference::Config { truncation: None, padding: None, ..config };
        let Some((slow, fast)) = both(&config) else { return Ok(()) };
        let text: String = order.iter().map(|at| at.get(&parts).as_str()).collect();
        let expected = slow.encode(&text.as_str().into(), false).unwrap();
        let options = support::options(&config, false);
        for (engine, fast) in on_all_engines(&fast) {
            let got = support::as_reference(&fast.encode(&Input::single(&text), &options).unwrap());
            prop_assert!(expected == got, "{engine}: differs on {:?}", text);
            let options = EncodeOptions { truncation: cut, ..options.clone() };
            on(engine, truncates_early(&fast, &text, &options))?;
        }
    }
}

/// Checks that a row is the same whether tokenization stops once the row is full or continues to count all tokens.
fn truncates_early(fast: &Tokenizer, text: &str, options: &EncodeOptions) -> Result<(), TestCaseError> {
    let half = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    for input in &[Input::single(text), Input::pair(text, &text[half..])] {
        let batch = |columns| fast.encode_batch::<u32>(std::slice::from_ref(input), options, &columns, None);
        // Counting the tokens requires all of them.
        let complete = batch(Columns { n_tokens: true, ..Columns::default() });
        match (complete, batch(Columns::default())) {
            (Ok(complete), Ok(start)) => {
                prop_assert_eq!((complete.ids, complete.truncated), (start.ids, start.truncated));
            }
            (complete, start) => prop_assert_eq!(complete.map(|it| it.ids), start.map(|it| it.ids)),
        }
    }
    Ok(())
}
