//! `vocab.txt`: one token per line. The id of a token is the number of its line, counted from 0.
//!
//! The rules are the reference's. Lines end at `\n`. White space at the end of a line, `\r` included, is dropped; white
//! space at its start is part of the token. If a token is on two lines, the later line gives its id, and the id of the
//! earlier line has no token. No rule ever shifts the id of another line. Lines that are probably mistakes are reported
//! as [`VocabWarning`]s, or as errors in strict mode.
//!
//! ```
//! use wordpiece::format::vocab_txt;
//!
//! let (vocab, warnings) = vocab_txt::read(b"[UNK]\nun\n##want\n\n", false)?;
//! assert_eq!(vocab.id("##want"), Some(2));
//! assert_eq!(warnings[0].to_string(), "line 4 is blank; id 3 is given to no word");
//! # Ok::<(), wordpiece::Error>(())
//! ```

use std::fmt;

use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::files::utf16;
use crate::unicode;
use crate::vocab::Vocab;

/// A line of a `vocab.txt` that is probably a mistake. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VocabWarning {
    /// The file begins with a byte order mark (U+FEFF), which becomes part of the first token.
    ByteOrderMark,
    /// A line is blank, or has nothing but white space. Its id goes to the empty token, which no text contains.
    BlankLine {
        /// The number of the line.
        line: usize,
        /// The white space other than ASCII that the line has, such as U+2028.
        white_space: String,
    },
    /// A token is on two lines. The later line gives its id; the id of the earlier one has no token.
    DuplicateToken {
        /// The token.
        token: String,
        /// The number of the earlier line.
        first: usize,
        /// The number of the later line.
        second: usize,
    },
    /// A line ends in white space, which is dropped.
    TrailingSpace {
        /// The token without the white space.
        token: String,
        /// The number of the line.
        line: usize,
    },
}

impl fmt::Display for VocabWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VocabWarning::ByteOrderMark => {
                write!(f, "line 1 begins with a byte order mark (U+FEFF), which is part of its token: save without it")
            }
            VocabWarning::BlankLine { line, white_space } if white_space.is_empty() => {
                write!(f, "line {line} is blank; id {} is given to no word", line - 1)
            }
            VocabWarning::BlankLine { line, white_space } => write!(
                f,
                "line {line} has nothing but the white space {white_space:?}, which is dropped; id {} is given to no word",
                line - 1
            ),
            VocabWarning::DuplicateToken { token, first, second } => write!(
                f,
                "token {token:?} is on line {first} and again on line {second}; its id is {}, and id {} has no token",
                second - 1,
                first - 1
            ),
            VocabWarning::TrailingSpace { token, line } => {
                write!(f, "line {line} ends in white space, which is not part of its token {token:?}")
            }
        }
    }
}

impl VocabWarning {
    /// Returns the error that the warning becomes in strict mode.
    fn into_error(self) -> Error {
        match self {
            VocabWarning::ByteOrderMark => Error::ByteOrderMark,
            VocabWarning::BlankLine { line, white_space } => Error::BlankLine { line, white_space },
            VocabWarning::DuplicateToken { token, first, second } => {
                Error::DuplicateToken { token, first, second, unit: "line" }
            }
            VocabWarning::TrailingSpace { token, line } => Error::TrailingSpace { token, line },
        }
    }
}

/// Reads a `vocab.txt`; returns the vocabulary and its warnings in the order of the lines.
///
/// # Errors
///
/// [`Error::VocabNotUtf8`] if the bytes are not UTF-8 or look like UTF-16, and [`Error::VocabTooLarge`] if they have more than 2 GiB of tokens.
/// With `strict`, the first warning is an error instead.
pub fn read(bytes: &[u8], strict: bool) -> Result<(Vocab, Vec<VocabWarning>)> {
    let not_utf8 = |offset: usize| {
        let line = 1 + bytes[..offset].iter().filter(|&&byte| byte == b'\n').count();
        Error::VocabNotUtf8 { line, offset }
    };
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(error.valid_up_to()))?;
    if let Some(offset) = utf16::position(bytes) {
        return Err(not_utf8(offset));
    }
    let mut warnings = Vec::new();
    let mut warn = |warning: VocabWarning| match strict {
        true => Err(warning.into_error()),
        false => {
            warnings.push(warning);
            Ok(())
        }
    };
    if text.starts_with('\u{feff}') {
        warn(VocabWarning::ByteOrderMark)?;
    }
    // The last line of each token so far.
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let token = line.trim_end_matches(unicode::is_whitespace);
        let number = index + 1;
        let id = u32::try_from(index).map_err(|_| Error::VocabTooLarge { bytes: bytes.len() })?;
        if token.is_empty() {
            let white_space = line.chars().filter(|c| !c.is_ascii()).collect();
            warn(VocabWarning::BlankLine { line: number, white_space })?;
        } else {
            if token.len() < line.len() {
                warn(VocabWarning::TrailingSpace { token: token.to_owned(), line: number })?;
            }
            if let Some(first) = lines.insert(token, number) {
                warn(VocabWarning::DuplicateToken { token: token.to_owned(), first, second: number })?;
            }
        }
        tokens.push((token, id));
    }
    Ok((Vocab::new(tokens)?, warnings))
}

/// Returns a vocabulary as the text of a `vocab.txt`, with `\n` after each line.
///
/// # Errors
///
/// [`Error::VocabTxtGap`] if the ids are not 0, 1, 2, …, and [`Error::VocabTxtToken`] for a token that a line cannot
/// represent: the file would not be read back as the same vocabulary.
pub fn write(vocab: &Vocab) -> Result<String> {
    let mut text = String::new();
    for (expected, (token, id)) in (0..).zip(vocab.iter()) {
        if id != expected {
            return Err(Error::VocabTxtGap { token: token.to_owned(), id, expected });
        }
        if token.contains('\n') || token.ends_with(unicode::is_whitespace) {
            return Err(Error::VocabTxtToken { token: token.to_owned(), id });
        }
        text.push_str(token);
        text.push('\n');
    }
    if let Some(at) = utf16::position(text.as_bytes()) {
        let line = text[..at].matches('\n').count();
        let (token, id) = vocab.iter().nth(line).expect("each line is a token");
        return Err(Error::VocabTxtToken { token: token.to_owned(), id });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(vocab: &Vocab) -> Vec<(&str, u32)> {
        vocab.iter().collect()
    }

    fn blank(line: usize) -> VocabWarning {
        VocabWarning::BlankLine { line, white_space: String::new() }
    }

    #[test]
    fn the_id_is_the_line_whatever_is_on_it() {
        let (vocab, warnings) = read("\u{feff}a\r\nb \n\nc\u{3000}\n d\nb\n".as_bytes(), false).unwrap();
        assert_eq!(entries(&vocab), [("\u{feff}a", 0), ("", 2), ("c", 3), (" d", 4), ("b", 5)]);
        assert_eq!(
            warnings,
            [
                VocabWarning::ByteOrderMark,
                VocabWarning::TrailingSpace { token: "b".to_owned(), line: 2 },
                blank(3),
                VocabWarning::TrailingSpace { token: "c".to_owned(), line: 4 },
                VocabWarning::DuplicateToken { token: "b".to_owned(), first: 2, second: 6 },
            ]
        );
    }

    #[test]
    fn the_last_line_need_not_end_and_inner_separators_stay() {
        let (vocab, warnings) = read("a\u{2028}b\nc\rd\n \t\ne".as_bytes(), false).unwrap();
        assert_eq!(entries(&vocab), [("a\u{2028}b", 0), ("c\rd", 1), ("", 2), ("e", 3)]);
        assert_eq!(warnings, [blank(3)]);
        assert!(read(b"", true).unwrap().0.is_empty());
    }

    #[test]
    fn a_line_of_white_space_is_named_by_what_it_has() {
        let warning = |text: &str| read(text.as_bytes(), false).unwrap().1.remove(0).to_string();
        assert_eq!(
            warning("a\n \u{2028}\n"),
            r#"line 2 has nothing but the white space "\u{2028}", which is dropped; id 1 is given to no word"#
        );
        assert_eq!(warning("a\n \t\r\n"), "line 2 is blank; id 1 is given to no word");
        let strict = read("a\n\u{2028}\n".as_bytes(), true).unwrap_err().to_string();
        assert!(
            strict.starts_with(r#"line 2 of the vocabulary has nothing but the white space "\u{2028}""#),
            "{strict}"
        );
    }

    #[test]
    fn utf16_is_refused_though_it_is_valid_utf8() {
        let bytes: Vec<u8> = "[UNK]\na\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&bytes, false).unwrap_err(), Error::VocabNotUtf8 { line: 1, offset: 1 });
    }

    #[test]
    fn several_blank_lines_share_the_empty_token_and_the_last_one_has_it() {
        let (vocab, warnings) = read(b"\na\n\n", false).unwrap();
        assert_eq!(entries(&vocab), [("a", 1), ("", 2)]);
        assert_eq!(warnings, [blank(1), blank(3)]);
    }

    #[test]
    fn strict_turns_warnings_into_errors() {
        let strict = |text: &str| read(text.as_bytes(), true).unwrap_err();
        assert_eq!(strict("a\n\n"), Error::BlankLine { line: 2, white_space: String::new() });
        assert_eq!(strict("\u{feff}a\n"), Error::ByteOrderMark);
        assert_eq!(strict("a\nb \n"), Error::TrailingSpace { token: "b".to_owned(), line: 2 });
        let twice = Error::DuplicateToken { token: "a".to_owned(), first: 1, second: 3, unit: "line" };
        assert_eq!(strict("a\nb\na\n"), twice);
        assert!(read(b"a\r\nb\r\n", true).is_ok());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_line_and_offset() {
        assert_eq!(read(b"a\nb\nc\xff\n", false).unwrap_err(), Error::VocabNotUtf8 { line: 3, offset: 5 });
    }

    #[test]
    fn a_vocabulary_that_would_not_be_read_back_is_not_written() {
        let write_one = |token: &str, id: u32| write(&Vocab::new([(token, id)]).unwrap());
        assert!(matches!(write_one("a", 1), Err(Error::VocabTxtGap { id: 1, expected: 0, .. })));
        for token in ["a\nb", "a ", "a\r", "\u{3000}", "\0a\0"] {
            assert!(matches!(write_one(token, 0), Err(Error::VocabTxtToken { .. })), "{token:?}");
        }
        assert_eq!(write_one(" a", 0).unwrap(), " a\n");
    }

    proptest! {
        #[test]
        fn a_written_vocabulary_is_read_back(tokens in prop::collection::hash_set("[ab \\n\\r\\x00\u{85}\u{feff}#]{0,3}", 0..8)) {
            let vocab = Vocab::new(tokens.iter().map(String::as_str).zip(0..)).unwrap();
            if let Ok(text) = write(&vocab) {
                prop_assert_eq!(read(text.as_bytes(), false).unwrap().0, vocab);
            }
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(prop::num::u8::ANY, 0..40)) {
            if let Ok((vocab, warnings)) = read(&bytes, false) {
                let lines = std::str::from_utf8(&bytes).unwrap().lines().count();
                prop_assert!(vocab.len() <= lines);
                prop_assert_eq!(read(&bytes, true).is_ok(), warnings.is_empty());
            }
        }
    }
}
