//! The wording of every error: what is wrong, and what to do about it.
//!
//! A message is a problem and, where there is one, a remedy: `{problem}; {remedy}`. Both name options as a
//! `tokenizer.json` and the training algorithms do, never the syntax of a programming language. A binding that knows the
//! caller's language replaces the remedy: it matches on the variant of [`Error::innermost`] and appends its own remedy to
//! [`Error::problem`].

use std::fmt;

use super::{Error, TextProblem, TrainingError};

/// The most keys of a JSON line, or columns of a table, that a message lists.
const MAX_KEYS_LISTED: usize = 12;

/// Lists names, the first of them if they are many.
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_KEYS_LISTED).map(|name| format!("{name:?}")).collect();
    match names.len().saturating_sub(MAX_KEYS_LISTED) {
        _ if names.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Joins a problem and its remedy.
fn write_message(f: &mut fmt::Formatter<'_>, problem: &str, remedy: Option<String>) -> fmt::Result {
    match remedy {
        Some(remedy) => write!(f, "{problem}; {remedy}"),
        None => f.write_str(problem),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_message(f, &self.problem(), self.remedy())
    }
}

impl fmt::Display for TextProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_message(f, &self.problem(), self.remedy())
    }
}

impl fmt::Display for TrainingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_message(f, &self.problem(), self.remedy())
    }
}

impl Error {
    /// Returns what is wrong, with the value and its location, but not what to do about it.
    pub fn problem(&self) -> String {
        use Error::*;
        match self {
            EmptyVocab => "the vocabulary is empty".to_owned(),
            MissingUnk { unk_token, marked_token: None } => {
                format!("the unknown token {unk_token:?} is not in the vocabulary")
            }
            MissingUnk { unk_token, marked_token: Some(first) } => format!(
                "the unknown token {unk_token:?} is not in the vocabulary, whose first token {first:?} begins with a byte \
                 order mark (U+FEFF)"
            ),
            IdTooLarge { id, token } => {
                format!("the token {token:?} has the id {id}; the largest id is {}", crate::vocab::Vocab::LAST_ID)
            }
            DuplicateId { id, first, second } => format!("id {id} is given to two tokens, {first:?} and {second:?}"),
            DuplicateToken { token, first, second, unit } => {
                format!("token {token:?} is in the vocabulary twice, at {unit} {first} and {unit} {second}")
            }
            BlankLine { line, white_space } if white_space.is_empty() => {
                format!("line {line} of the vocabulary is blank")
            }
            BlankLine { line, white_space } => {
                format!("line {line} of the vocabulary has nothing but the white space {white_space:?}")
            }
            TrailingSpace { token, line } => {
                format!("line {line} of the vocabulary ends in white space, which is not part of its token {token:?}")
            }
            ByteOrderMark => "the vocabulary begins with a byte order mark (U+FEFF), which would be part of its first \
                              token"
                .to_owned(),
            VocabTxtGap { token, id, expected } => format!(
                "token {token:?} has id {id} but would be on the line of id {expected}: the ids of a vocab.txt are 0, 1, \
                 2, … without gaps"
            ),
            VocabTxtToken { token, id } => format!(
                "token {token:?} (id {id}) contains a line break, ends in white space, or has a NUL for which the file would \
                 be taken for UTF-16: a vocab.txt cannot represent it"
            ),
            VocabNotUtf8 { line, offset } => {
                format!("the vocabulary is not UTF-8: line {line}, byte offset {offset} of the file")
            }
            VocabTooLarge { bytes } => {
                format!("the tokens of the vocabulary have {bytes} bytes together; the limit is 2 GiB")
            }
            Json { message, line, column } if *line > 0 => {
                format!("not a valid tokenizer.json: {message} at line {line} column {column}")
            }
            Json { message, .. } => format!("not a valid tokenizer.json: {message}"),
            Unsupported { component, name } => format!("{component}: {name:?} is not supported"),
            MissingField { component, field } => format!("{component}: the field {field:?} is missing"),
            UnknownField { component, field } => format!("{component}: unknown field {field:?}"),
            InvalidField { component, field, value, expected } => {
                format!("{component}: {field:?} is {value}; expected {expected}")
            }
            AddedTokenId { content, stored, assigned } => format!(
                "added_tokens: {content:?} has id {stored} in the file, but tokenizers gives it id {assigned} on reading \
                 the file, and the rows of an embedding table depend on it"
            ),
            AddedTokenUnwritable { content, id, read } => format!(
                "the vocabulary has gaps between its ids, so from a tokenizer.json the library tokenizers would give the \
                 added token {content:?} the id {read} instead of {id}; if it were also in the vocabulary, it would have \
                 its id, but it could be a piece of ordinary words"
            ),
            BadTemplate { message } => format!("post_processor: {message}"),
            BadPattern { pattern, message } => format!("the pattern {pattern:?} cannot be used: {message}"),
            EmptyAddedToken { content } => format!(
                "added token {content:?}: the normalizer turns it into nothing, so it would match between all characters"
            ),
            TextTooLong { bytes } => format!("a text has {bytes} bytes; the limit is 4 GiB"),
            MaxLengthBelowSpecials { max_length, added } => {
                format!("max_length is {max_length}, but {added} special tokens are added")
            }
            StrideTooLarge { stride, window, max_length, added } => format!(
                "stride is {stride}, but a window holds only {window} tokens of the text (max_length {max_length}, \
                 {added} special tokens)"
            ),
            SequenceTooShort { which, length, excess } => format!(
                "truncation: sequence to truncate too short to respect the provided max_length: the {which} text has \
                 {length} tokens and {excess} would have to be removed"
            ),
            SecondSequenceNotProvided => "truncation of only the second text: second sequence not provided".to_owned(),
            ZeroMultiple => "pad_to_multiple_of is 0".to_owned(),
            TooLarge { what, size } => format!("{what} would have size {size}, which is too large"),
            OutOfMemory { rows, length, bytes } => {
                let plural = if *rows == 1 { "row" } else { "rows" };
                format!(
                    "{rows} {plural} of up to {length} tokens need {bytes} bytes of memory, which cannot be allocated"
                )
            }
            UnknownId { id, vocab_size } => format!("id {id} has no token; the vocabulary has {vocab_size} tokens"),
            InputNotUtf8 { is_second, word, valid_up_to } => {
                let text = if *is_second { "the second text" } else { "the text" };
                let word = word.map_or(String::new(), |word| format!(", word {word}"));
                format!("{text}{word} is not valid UTF-8 from byte {valid_up_to} on")
            }
            PatternFailed { pattern, message } => format!("the pattern {pattern:?} failed on this text: {message}"),
            FileUnreadable { file, message, .. } => format!("{file}: {message}"),
            BadText { file, line, offset, problem } => {
                format!("{file}: line {line}, byte offset {offset}: {}", problem.problem())
            }
            BadRow { file, row, problem } => format!("{file}: row {row}: {}", problem.problem()),
            NoColumn { file, column, columns } => {
                let what = if columns.contains(column) { "several columns" } else { "no column" };
                format!("{file}: {what} {column:?}; the columns are {}", listed(columns))
            }
            BadFieldPath { path } => format!("the field {path:?} has an empty key"),
            EmptySeparator => "the separator is empty".to_owned(),
            NoThread { message } => format!("no thread to read files with: {message}"),
            BrokenExamples { row } => format!("row {row}: the arrays of the examples do not fit together"),
            NoTokens => "no document has a token".to_owned(),
            AtLocation { location, error } => format!("{location}: {}", error.problem()),
            AtIndex { index, error } => format!("item {index}: {}", error.problem()),
            Training(error) => error.problem(),
        }
    }

    /// Returns what to do about the error, if there is something that the problem does not suggest by itself.
    pub fn remedy(&self) -> Option<String> {
        use Error::*;
        let remedy = match self {
            EmptyVocab => "add at least the unknown token",
            MissingUnk { marked_token: Some(_), .. } => "save the file without the mark, or add the unknown token",
            MissingUnk { .. } => "add it, or name another unknown token",
            IdTooLarge { .. } => "give it a smaller id",
            DuplicateId { .. } => "give each token an id that no other has",
            DuplicateToken { .. } => "remove one of the two",
            BlankLine { .. } => "remove it, unless later tokens rely on its id",
            TrailingSpace { .. } => "remove the white space",
            ByteOrderMark => "save it without",
            VocabTxtGap { .. } | VocabTxtToken { .. } => "write a tokenizer.json",
            VocabNotUtf8 { .. } => "convert it to UTF-8",
            AddedTokenId { content, stored, assigned } => {
                return Some(format!(
                    "if the model was trained with {stored}, set {content:?} to {stored} in model.vocab, otherwise set \
                     its id in added_tokens to {assigned}"
                ));
            }
            AddedTokenUnwritable { .. } => "give it a content with punctuation, such as \"<new>\", or fill the gaps",
            EmptyAddedToken { .. } => "search for it in the raw text, not in the normalized text",
            TextTooLong { .. } => "split it into several texts",
            MaxLengthBelowSpecials { added, .. } => {
                return Some(format!("raise max_length to at least {added}, or add no special tokens"));
            }
            StrideTooLarge { window, .. } => return Some(format!("use a stride smaller than {window}")),
            SequenceTooShort { .. } => "truncate the longest text first",
            SecondSequenceNotProvided => "pass a pair of texts",
            ZeroMultiple => "pass a positive number, or none",
            OutOfMemory { .. } => "encode fewer or shorter texts at a time, or truncate them",
            InputNotUtf8 { .. } => "repair the text",
            BadText { problem, .. } | BadRow { problem, .. } => return problem.remedy(),
            BadFieldPath { .. } => "separate keys by single dots, as in \"meta.title\"",
            EmptySeparator => "choose to read each file as one text, if that is what you want",
            BrokenExamples { .. } => "make the examples again",
            NoTokens => "check the files, and how they are divided into documents",
            AtLocation { error, .. } | AtIndex { error, .. } => return error.remedy(),
            Training(error) => return error.remedy(),
            VocabTooLarge { .. }
            | Json { .. }
            | Unsupported { .. }
            | MissingField { .. }
            | UnknownField { .. }
            | InvalidField { .. }
            | BadTemplate { .. }
            | BadPattern { .. }
            | TooLarge { .. }
            | UnknownId { .. }
            | PatternFailed { .. }
            | FileUnreadable { .. }
            | NoColumn { .. }
            | NoThread { .. } => return None,
        };
        Some(remedy.to_owned())
    }
}

impl TextProblem {
    /// Returns what is wrong, but not what to do about it.
    pub fn problem(&self) -> String {
        match self {
            TextProblem::NotUtf8 { byte, utf16 } => {
                let guess = if *utf16 { "it looks like UTF-16" } else { "it may be Latin-1 or Windows-1252" };
                format!("not UTF-8: byte 0x{byte:02x}; {guess}")
            }
            TextProblem::NotJson { message } => format!("not JSON: {message}"),
            TextProblem::NoField { field, keys } => format!("no field {field:?}; there are: {}", listed(keys)),
            TextProblem::NotText { field, message } => format!("the field {field:?} is not text: {message}"),
            TextProblem::LoneSurrogate { field } => {
                format!("the field {field:?} has a lone surrogate, which is no character")
            }
            TextProblem::FieldCount { fields, columns } => {
                format!("the number of fields is {fields}, but the header has {columns}")
            }
            TextProblem::OpenQuote => "the quotation mark that begins a field is never closed".to_owned(),
            TextProblem::AfterQuote => "a field continues after its closing quotation mark".to_owned(),
            TextProblem::Null => "null, which is not text".to_owned(),
            TextProblem::BadOffsets => "the offsets of the column are broken".to_owned(),
            TextProblem::TooLong { limit } => format!("a text of more than {limit} bytes begins here"),
        }
    }

    /// Returns what to do about it, if the problem does not suggest it.
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            TextProblem::NotUtf8 { .. } => "convert the file to UTF-8 first, or replace what is not UTF-8",
            TextProblem::LoneSurrogate { .. } => "replace what is no character to read it all the same",
            TextProblem::FieldCount { fields, columns } if fields > columns => {
                "in a CSV file, put fields with commas between quotation marks"
            }
            TextProblem::FieldCount { .. } => "complete the row",
            TextProblem::OpenQuote | TextProblem::AfterQuote => {
                "double the quotation marks inside a field, and put the field between quotation marks"
            }
            TextProblem::Null => "skip what is not text to read the rest",
            TextProblem::TooLong { .. } => "check the separator, or the quotation marks of a table",
            TextProblem::NotJson { .. }
            | TextProblem::NoField { .. }
            | TextProblem::NotText { .. }
            | TextProblem::BadOffsets => return None,
        };
        Some(remedy.to_owned())
    }
}

impl TrainingError {
    /// Returns what is wrong, but not what to do about it.
    pub fn problem(&self) -> String {
        match self {
            TrainingError::NoWords => "there is no word to learn from: the texts or counts are empty".to_owned(),
            TrainingError::NotUtf8 { file, line, offset, byte, utf16 } => {
                let guess = if *utf16 { "; it begins as UTF-16 does" } else { "" };
                format!("{file}: not UTF-8: byte 0x{byte:02x} in line {line}, byte offset {offset} of the file{guess}")
            }
            TrainingError::EndlessWord { file, line, offset, limit } => format!(
                "{file}: more than {limit} bytes without white space in line {line}, from byte offset {offset} on: this \
                 is not text"
            ),
            TrainingError::CountsTooLarge { word, count } => format!(
                "the counts are too large: their sum over all characters exceeds 2**63 at {word:?} with {count}"
            ),
            TrainingError::DuplicateWord { word } => format!("the word {word:?} is in the counts twice"),
            TrainingError::TooManySymbols => "the distinct words have more than 2**32 characters together".to_owned(),
            TrainingError::SizeOfBase { vocab_size, base } => {
                format!("vocab_size is {vocab_size}, but the vocabulary to extend already has {base} tokens")
            }
            TrainingError::NoUnusedSlot => {
                "the vocabulary has no unused slots to fill: [unused0], [unused1], …".to_owned()
            }
            TrainingError::ZeroThreshold => {
                "lower_thresh or upper_thresh is 0, which would keep every piece".to_owned()
            }
            TrainingError::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Returns what to do about it, if the problem does not suggest it.
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            TrainingError::NotUtf8 { .. } => "convert it to UTF-8, or replace or skip what is not",
            TrainingError::EndlessWord { .. } => "omit the file",
            TrainingError::CountsTooLarge { .. } => "divide all counts by a common number",
            TrainingError::DuplicateWord { .. } => "add its counts up first",
            TrainingError::TooManySymbols => "limit the number of distinct words, which drops the rarest",
            TrainingError::SizeOfBase { .. } => "ask for more tokens than that, or fill its unused slots",
            TrainingError::NoUnusedSlot => "ask for a larger vocabulary instead",
            TrainingError::ZeroThreshold => "use thresholds of at least 1, or none",
            TrainingError::NoWords | TrainingError::Interrupted => return None,
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_location_the_problem_and_the_remedy() {
        let error = Error::MaxLengthBelowSpecials { max_length: 1, added: 2 }.at_index(3);
        let expected = "item 3: max_length is 1, but 2 special tokens are added; raise max_length to at least 2, or add \
                        no special tokens";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.innermost(), &Error::MaxLengthBelowSpecials { max_length: 1, added: 2 });
    }

    #[test]
    fn a_long_list_of_keys_is_cut() {
        let keys = |n: usize| (0..n).map(|i| i.to_string()).collect();
        let problem = |n| TextProblem::NoField { field: "f".to_owned(), keys: keys(n) }.to_string();
        assert_eq!(problem(0), "no field \"f\"; there are: none");
        assert_eq!(problem(2), "no field \"f\"; there are: \"0\", \"1\"");
        assert!(problem(14).ends_with("\"11\" and 2 more"), "{}", problem(14));
    }

    #[test]
    fn messages_do_not_speak_python() {
        let errors = [
            Error::MissingUnk { unk_token: "u".to_owned(), marked_token: None },
            Error::EmptyAddedToken { content: "a".to_owned() },
            Error::MaxLengthBelowSpecials { max_length: 1, added: 2 },
            Error::SequenceTooShort { which: "first", length: 1, excess: 2 },
            Error::SecondSequenceNotProvided,
            Error::ZeroMultiple,
            Error::EmptySeparator,
            Error::BadRow { file: "f".to_owned(), row: 0, problem: TextProblem::Null },
            Error::Training(TrainingError::ZeroThreshold),
            Error::Training(TrainingError::TooManySymbols),
        ];
        for message in errors.map(|error| error.to_string()) {
            assert!(!message.contains("None") && !message.contains('='), "{message}");
        }
    }
}
