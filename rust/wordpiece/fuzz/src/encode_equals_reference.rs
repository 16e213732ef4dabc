//! Encoding equals the reference implementation, on every instruction set and without the fast path.
//!
//! The configuration, the vocabulary, the options and the texts are drawn from the input.

use arbitrary::{Arbitrary, Result, Unstructured};
use wordpiece::{Columns, EncodeOptions, Input, Tokenizer, reference};

use super::support;
use super::support::engines::on_all_engines;

/// Characters that some rule of normalization, splitting or matching treats specially, and a few that none does.
const CHARACTERS: [char; 40] = [
    'a',
    'b',
    'c',
    'A',
    'B',
    'é',
    'É',
    ' ',
    ' ',
    '#',
    '.',
    '\'',
    '_',
    '中',
    '豈',
    '가',
    '각',
    'İ',
    'ß',
    'Σ',
    '①',
    '١',
    '½',
    '\t',
    '\n',
    '\u{b}',
    '\u{85}',
    '\u{a0}',
    '\u{ad}',
    '\u{301}',
    '\u{316}',
    '\u{344}',
    '\u{f73}',
    '\u{200d}',
    '\u{0}',
    '\u{fffd}',
    '\u{2b820}',
    '𝒳',
    '[',
    ']',
];

/// Draws a tokenizer and texts from `data` and compares all engines with the reference implementation.
pub fn check(data: &[u8]) {
    // Too little data to draw everything from is not a crasher.
    let _ = check_drawn(&mut Unstructured::new(data));
}

fn check_drawn(u: &mut Unstructured<'_>) -> Result<()> {
    let config = config(u)?;
    let special = bool::arbitrary(u)?;
    let columns = columns(u)?;
    let mut inputs = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        let first = sequence(u)?;
        let second = if bool::arbitrary(u)? { Some(sequence(u)?) } else { None };
        inputs.push(reference::Input { first, second });
    }
    if many_windows(&config, &inputs) {
        return Ok(());
    }
    let slow = reference::Tokenizer::new(config.clone());
    let fast = support::definition(&config).and_then(Tokenizer::new);
    let (slow, fast) = match (slow, fast) {
        (Ok(slow), Ok(fast)) => (slow, fast),
        // The reference implementation also refuses added tokens that a later registration replaces.
        (Err(_), _) => return Ok(()),
        (Ok(_), Err(error)) => panic!("only the pipeline refuses: {error}"),
    };
    let expected = slow.encode_batch(&inputs, special);
    let options = support::options(&config, special);
    let inputs: Vec<Input<'_>> = inputs.iter().map(support::input).collect();
    for (engine, fast) in on_all_engines(&fast) {
        compare(engine, &fast, &inputs, &options, &columns, &expected);
    }
    Ok(())
}

/// Returns whether an input may have so many windows that they take gigabytes: a template of several texts has all
/// combinations of their windows.
fn many_windows(config: &reference::Config, inputs: &[reference::Input]) -> bool {
    use reference::TemplatePiece::{A, B};
    let Some(truncation) = &config.truncation else { return false };
    let texts =
        |pieces: &[reference::TemplatePiece]| pieces.iter().filter(|it| matches!(it, A(_) | B(_))).count() as u32;
    let texts = match &config.post_processor {
        Some(reference::PostProcessor::Template { single, pair, .. }) => texts(single).max(texts(pair)),
        _ => 2,
    };
    let length = |sequence: &reference::Sequence| match sequence {
        reference::Sequence::Text(text) => text.chars().count(),
        reference::Sequence::Words(words) => words.iter().map(|word| word.chars().count()).sum(),
    };
    let longest =
        inputs.iter().flat_map(|input| [Some(&input.first), input.second.as_ref()]).flatten().map(length).max();
    let step = (truncation.max_length.saturating_sub(truncation.stride) / 3).max(1);
    longest.unwrap_or(0).div_ceil(step).saturating_pow(texts) > 20_000
}

/// Compares the encodings and the batch of one engine with the expected encodings.
fn compare(
    engine: &str,
    fast: &Tokenizer,
    inputs: &[Input<'_>],
    options: &EncodeOptions,
    columns: &Columns,
    expected: &std::result::Result<Vec<reference::Encoding>, reference::Refusal>,
) {
    let encodings = fast.encodings(inputs, options, None);
    let batch = fast.encode_batch::<u32>(inputs, options, columns, None);
    match (expected, encodings, batch) {
        (Ok(expected), Ok(encodings), Ok(batch)) => {
            let got: Vec<_> = encodings.iter().map(support::as_reference).collect();
            assert_eq!(*expected, got, "{engine}: encodings differ");
            let rows = encodings.iter().flat_map(|encoding| {
                std::iter::once(encoding).chain(if columns.windows { &encoding.overflowing[..] } else { &[] })
            });
            let ids: Vec<u32> = rows.flat_map(|row| row.ids.iter().copied()).collect();
            assert_eq!(batch.ids, ids, "{engine}: the ids of the batch differ from those of the encodings");
        }
        (Err(_), Err(error), Err(of_batch)) => assert_eq!(error, of_batch, "{engine}: errors differ"),
        (expected, encodings, batch) => panic!(
            "{engine}: only some refuse the input: reference {:?}, encodings {:?}, batch {:?}",
            expected.as_ref().err(),
            encodings.err(),
            batch.err()
        ),
    }
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=40)? {
        match u.int_in_range(0..=15)? {
            0 => text.push(char::arbitrary(u)?),
            1 => text.push_str(u.choose(&["[A]", " ab", "ba ", "é", "[B] ", "aabbaabb. ", "\u{ad}", "[MASK]"])?),
            // Enough ASCII to fill the blocks of 64 bytes that the fast path reads.
            2 => text.push_str(&"ab c".repeat(u.int_in_range(1..=40)?)),
            _ => text.push(*u.choose(&CHARACTERS)?),
        }
    }
    Ok(text)
}

fn sequence(u: &mut Unstructured<'_>) -> Result<reference::Sequence> {
    if u.ratio(1, 5)? {
        let n = u.int_in_range(0..=4)?;
        return Ok(reference::Sequence::Words((0..n).map(|_| text(u)).collect::<Result<_>>()?));
    }
    Ok(reference::Sequence::Text(text(u)?))
}

fn config(u: &mut Unstructured<'_>) -> Result<reference::Config> {
    Ok(reference::Config {
        vocab: vocab(u)?,
        unk_token: "[UNK]".into(),
        continuing_subword_prefix: u.choose(&["##", "##", "", "a", "é"])?.to_string(),
        max_input_chars_per_word: *u.choose(&[100, 3, 1])?,
        normalizer: optional(u, normalizer)?,
        pre_tokenizer: optional(u, pre_tokenizer)?,
        post_processor: optional(u, post_processor)?,
        added_tokens: added_tokens(u)?,
        encode_special_tokens: u.ratio(1, 5)?,
        truncation: optional(u, truncation)?,
        padding: optional(u, padding)?,
    })
}

fn optional<T>(u: &mut Unstructured<'_>, draw: fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Option<T>> {
    if u.ratio(1, 4)? { Ok(None) } else { draw(u).map(Some) }
}

fn vocab(u: &mut Unstructured<'_>) -> Result<Vec<(String, u32)>> {
    let mut tokens: Vec<String> = ["[UNK]", "[CLS]", "[SEP]", "[A]"].map(str::to_owned).into();
    for _ in 0..u.int_in_range(0..=24)? {
        let mut token = if bool::arbitrary(u)? { "##".to_owned() } else { String::new() };
        for _ in 0..u.int_in_range(1..=3)? {
            token.push(*u.choose(&CHARACTERS)?);
        }
        tokens.push(token);
    }
    Ok(dedup(tokens).zip(0..).collect())
}

/// Returns the tokens without repetitions: two ids of one token are refused.
fn dedup(tokens: Vec<String>) -> impl Iterator<Item = String> {
    let mut seen = std::collections::HashSet::new();
    tokens.into_iter().filter(move |token| seen.insert(token.clone()))
}

fn bert(u: &mut Unstructured<'_>) -> Result<reference::Normalizer> {
    Ok(reference::Normalizer::Bert(reference::BertNormalizer {
        // The fast path requires cleaning.
        clean_text: !u.ratio(1, 4)?,
        handle_chinese_chars: bool::arbitrary(u)?,
        strip_accents: Option::arbitrary(u)?,
        lowercase: bool::arbitrary(u)?,
    }))
}

fn normalizer(u: &mut Unstructured<'_>) -> Result<reference::Normalizer> {
    use reference::Normalizer::{Lowercase, Nfd, Sequence, Strip, StripAccents};
    let step = |u: &mut Unstructured<'_>| {
        Ok(match u.int_in_range(0..=4)? {
            0 => Nfd,
            1 => Lowercase,
            2 => StripAccents,
            3 => Strip { left: bool::arbitrary(u)?, right: bool::arbitrary(u)? },
            _ => bert(u)?,
        })
    };
    if u.ratio(3, 4)? {
        return bert(u);
    }
    let n = u.int_in_range(0..=3)?;
    Ok(Sequence((0..n).map(|_| step(u)).collect::<Result<_>>()?))
}

fn pre_tokenizer(u: &mut Unstructured<'_>) -> Result<reference::PreTokenizer> {
    use reference::Behavior::{Contiguous, Isolated, Removed};
    use reference::PreTokenizer::{Bert, ByteLevel, Digits, Punctuation, Sequence, Whitespace, WhitespaceSplit};
    let step = |u: &mut Unstructured<'_>| {
        Ok(match u.int_in_range(0..=5)? {
            0 => Bert,
            1 => Whitespace,
            2 => WhitespaceSplit,
            3 => ByteLevel { add_prefix_space: bool::arbitrary(u)?, use_regex: bool::arbitrary(u)? },
            4 => Punctuation(*u.choose(&[Removed, Isolated, Contiguous])?),
            _ => Digits { individual: bool::arbitrary(u)? },
        })
    };
    if u.ratio(2, 3)? {
        return Ok(Bert);
    }
    let n = u.int_in_range(0..=2)?;
    Ok(Sequence((0..n).map(|_| step(u)).collect::<Result<_>>()?))
}

fn post_processor(u: &mut Unstructured<'_>) -> Result<reference::PostProcessor> {
    use reference::TemplatePiece::{A, B, Special};
    if bool::arbitrary(u)? {
        return Ok(reference::PostProcessor::Bert { cls: ("[CLS]".into(), 1), sep: ("[SEP]".into(), 2) });
    }
    let token = |ids: &[u32], tokens: &[&str]| reference::TemplateToken {
        ids: ids.to_vec(),
        tokens: tokens.iter().map(|token| token.to_string()).collect(),
    };
    let special_tokens =
        [("[C]".to_owned(), token(&[1, 9], &["[CLS]", "+"])), ("[S]".to_owned(), token(&[2], &["[SEP]"]))].into();
    let pieces = |u: &mut Unstructured<'_>, pair: bool| {
        let n = u.int_in_range(1..=5)?;
        let piece = |u: &mut Unstructured<'_>| {
            let type_id = u.int_in_range(0..=3)?;
            Ok(match u.int_in_range(0..=3)? {
                0 => Special("[C]".into(), type_id),
                1 => Special("[S]".into(), type_id),
                2 if pair => B(type_id),
                _ => A(type_id),
            })
        };
        (0..n).map(|_| piece(u)).collect::<Result<Vec<_>>>()
    };
    Ok(reference::PostProcessor::Template { single: pieces(u, false)?, pair: pieces(u, true)?, special_tokens })
}

fn added_tokens(u: &mut Unstructured<'_>) -> Result<Vec<reference::AddedToken>> {
    const CONTENTS: [&str; 12] = ["[A]", "[B]", "[MASK]", "ab", "Ab", "b ", "é", "É", "中", " ", "a b", "."];
    let n = if bool::arbitrary(u)? { 0 } else { u.int_in_range(0..=4)? };
    let token = |u: &mut Unstructured<'_>| {
        Ok(reference::AddedToken {
            content: u.choose(&CONTENTS)?.to_string(),
            id: None,
            single_word: bool::arbitrary(u)?,
            lstrip: bool::arbitrary(u)?,
            rstrip: bool::arbitrary(u)?,
            normalized: bool::arbitrary(u)?,
            special: bool::arbitrary(u)?,
        })
    };
    (0..n).map(|_| token(u)).collect()
}

fn side(u: &mut Unstructured<'_>) -> Result<reference::Side> {
    Ok(if bool::arbitrary(u)? { reference::Side::Left } else { reference::Side::Right })
}

fn truncation(u: &mut Unstructured<'_>) -> Result<reference::Truncation> {
    use reference::Strategy::{LongestFirst, OnlyFirst, OnlySecond};
    Ok(reference::Truncation {
        max_length: u.int_in_range(0..=24)?,
        stride: u.int_in_range(0..=4)?,
        strategy: *u.choose(&[LongestFirst, LongestFirst, OnlyFirst, OnlySecond])?,
        direction: side(u)?,
    })
}

fn padding(u: &mut Unstructured<'_>) -> Result<reference::Padding> {
    Ok(reference::Padding {
        length: if bool::arbitrary(u)? { Some(u.int_in_range(0..=40)?) } else { None },
        multiple_of: u.int_in_range(0..=8)?,
        direction: side(u)?,
        pad_id: 5,
        pad_type_id: 3,
        pad_token: "[P]".into(),
    })
}

fn columns(u: &mut Unstructured<'_>) -> Result<Columns> {
    Ok(Columns {
        type_ids: bool::arbitrary(u)?,
        attention_mask: bool::arbitrary(u)?,
        special_tokens_mask: bool::arbitrary(u)?,
        offsets: bool::arbitrary(u)?,
        word_ids: bool::arbitrary(u)?,
        sequence_ids: bool::arbitrary(u)?,
        windows: bool::arbitrary(u)?,
        n_tokens: bool::arbitrary(u)?,
    })
}
