//! Conversions between the reference implementation and the pipeline, for tests that compare them.

pub mod engines;

use wordpiece::inputs::{PadLength, Padding, PostProcessor, SequenceId, Side, SpecialToken, Template, TemplatePiece};
use wordpiece::inputs::{Truncation, TruncationStrategy};
use wordpiece::normalize::{BertNormalizer, Normalizer};
use wordpiece::split::{ByteLevel, PreTokenizer, SplitBehavior};
use wordpiece::{AddedToken, Definition, EncodeOptions, Encoding, Input, Text, Vocab, reference};

/// Returns the definition of the same tokenizer.
pub fn definition(config: &reference::Config) -> wordpiece::Result<Definition> {
    Ok(Definition {
        vocab: Vocab::new(config.vocab.iter().map(|(token, id)| (token.as_str(), *id)))?,
        unk_token: config.unk_token.clone(),
        continuing_subword_prefix: config.continuing_subword_prefix.clone(),
        max_input_chars_per_word: config.max_input_chars_per_word,
        normalizer: config.normalizer.as_ref().map(normalizer),
        pre_tokenizer: config.pre_tokenizer.as_ref().map(pre_tokenizer),
        post_processor: config.post_processor.as_ref().map(post_processor),
        decoder: None,
        added_tokens: config.added_tokens.iter().map(added_token).collect(),
        fixed_ids: Default::default(),
        truncation: config.truncation.map(truncation),
        padding: config.padding.as_ref().map(padding),
    })
}

/// Returns the options of a call that behaves as configured.
pub fn options(config: &reference::Config, add_special_tokens: bool) -> EncodeOptions {
    EncodeOptions {
        add_special_tokens,
        truncation: config.truncation.map(truncation),
        padding: config.padding.as_ref().map(padding),
        encode_special_tokens: config.encode_special_tokens,
        ..EncodeOptions::default()
    }
}

/// Returns the same input.
pub fn input(input: &reference::Input) -> Input<'_> {
    Input { first: text(&input.first), second: input.second.as_ref().map(text) }
}

fn text(sequence: &reference::Sequence) -> Text<'_> {
    match sequence {
        reference::Sequence::Text(text) => Text::Raw(text),
        reference::Sequence::Words(words) => Text::Words(words.iter().map(String::as_str).collect()),
    }
}

/// Returns an encoding of the pipeline in the form of the reference implementation.
pub fn as_reference(encoding: &Encoding) -> reference::Encoding {
    reference::Encoding {
        ids: encoding.ids.clone(),
        tokens: encoding.tokens.clone(),
        offsets: encoding.offsets.iter().map(|&(start, end)| (start as usize, end as usize)).collect(),
        word_ids: encoding.word_ids.clone(),
        type_ids: encoding.type_ids.clone(),
        sequence_ids: encoding.sequence_ids().into_iter().map(|id| id.map(|id| id as usize)).collect(),
        attention_mask: encoding.attention_mask.iter().map(|&mask| u32::from(mask)).collect(),
        special_tokens_mask: encoding.special_tokens_mask.iter().map(|&mask| u32::from(mask)).collect(),
        overflowing: encoding.overflowing.iter().map(as_reference).collect(),
    }
}

fn normalizer(normalizer: &reference::Normalizer) -> Normalizer {
    use reference::Normalizer as Reference;
    match normalizer {
        Reference::Bert(bert) => Normalizer::Bert(BertNormalizer {
            clean_text: bert.clean_text,
            tokenize_chinese_chars: bert.handle_chinese_chars,
            strip_accents: bert.strip_accents,
            lowercase: bert.lowercase,
        }),
        Reference::Nfd => Normalizer::Nfd,
        Reference::Lowercase => Normalizer::Lowercase,
        Reference::StripAccents => Normalizer::StripAccents,
        Reference::Strip { left, right } => Normalizer::Strip { left: *left, right: *right },
        Reference::Sequence(steps) => Normalizer::Sequence(steps.iter().map(self::normalizer).collect()),
    }
}

fn pre_tokenizer(pre_tokenizer: &reference::PreTokenizer) -> PreTokenizer {
    use reference::PreTokenizer as Reference;
    match pre_tokenizer {
        Reference::Bert => PreTokenizer::Bert,
        Reference::Whitespace => PreTokenizer::Whitespace,
        Reference::WhitespaceSplit => PreTokenizer::WhitespaceSplit,
        Reference::Punctuation(behavior) => PreTokenizer::Punctuation(match behavior {
            reference::Behavior::Removed => SplitBehavior::Removed,
            reference::Behavior::Isolated => SplitBehavior::Isolated,
            reference::Behavior::Contiguous => SplitBehavior::Contiguous,
        }),
        Reference::Digits { individual } => PreTokenizer::Digits { individual: *individual },
        Reference::ByteLevel { add_prefix_space, use_regex } => PreTokenizer::ByteLevel(ByteLevel {
            add_prefix_space: *add_prefix_space,
            trim_offsets: true,
            use_regex: *use_regex,
        }),
        Reference::Sequence(steps) => PreTokenizer::Sequence(steps.iter().map(self::pre_tokenizer).collect()),
    }
}

fn post_processor(post_processor: &reference::PostProcessor) -> PostProcessor {
    match post_processor {
        reference::PostProcessor::Bert { cls, sep } => PostProcessor::Bert { cls: cls.clone(), sep: sep.clone() },
        reference::PostProcessor::Template { single, pair, special_tokens } => {
            let pieces = |pieces: &[reference::TemplatePiece]| pieces.iter().map(piece).collect();
            let special = |(name, token): (&String, &reference::TemplateToken)| SpecialToken {
                name: name.clone(),
                ids: token.ids.clone(),
                tokens: token.tokens.clone(),
            };
            PostProcessor::Template(Template {
                single: pieces(single),
                pair: pieces(pair),
                special_tokens: special_tokens.iter().map(special).collect(),
            })
        }
    }
}

fn piece(piece: &reference::TemplatePiece) -> TemplatePiece {
    use reference::TemplatePiece as Reference;
    match piece {
        Reference::A(type_id) => TemplatePiece::Sequence { sequence: SequenceId::A, type_id: *type_id },
        Reference::B(type_id) => TemplatePiece::Sequence { sequence: SequenceId::B, type_id: *type_id },
        Reference::Special(name, type_id) => TemplatePiece::Special { name: name.clone(), type_id: *type_id },
    }
}

fn added_token(token: &reference::AddedToken) -> AddedToken {
    AddedToken {
        content: token.content.clone(),
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: token.normalized,
        special: token.special,
    }
}

fn side(side: reference::Side) -> Side {
    match side {
        reference::Side::Left => Side::Left,
        reference::Side::Right => Side::Right,
    }
}

fn truncation(truncation: reference::Truncation) -> Truncation {
    Truncation {
        max_length: truncation.max_length,
        stride: truncation.stride,
        strategy: match truncation.strategy {
            reference::Strategy::LongestFirst => TruncationStrategy::LongestFirst,
            reference::Strategy::OnlyFirst => TruncationStrategy::OnlyFirst,
            reference::Strategy::OnlySecond => TruncationStrategy::OnlySecond,
        },
        side: side(truncation.direction),
    }
}

fn padding(padding: &reference::Padding) -> Padding {
    Padding {
        length: padding.length.map_or(PadLength::Longest, PadLength::Fixed),
        multiple_of: (padding.multiple_of > 0).then_some(padding.multiple_of),
        id: padding.pad_id,
        type_id: padding.pad_type_id,
        token: padding.pad_token.clone(),
        side: side(padding.direction),
    }
}
