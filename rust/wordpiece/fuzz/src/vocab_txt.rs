//! `vocab.txt`: reading never panics, equals the reference implementation, and survives writing.

use std::collections::BTreeMap;

use wordpiece::format::vocab_txt;
use wordpiece::{Error, reference};

/// Reads `data` as a `vocab.txt`, strictly and leniently.
pub fn check(data: &[u8]) {
    let lenient = vocab_txt::read(data, false);
    match (vocab_txt::read(data, true), &lenient) {
        (Ok((strict, warnings)), Ok((vocab, _))) => {
            assert!(warnings.is_empty(), "strict reading returned warnings");
            assert_eq!(&strict, vocab, "strict reading gives another vocabulary");
        }
        (Ok(_), Err(error)) => panic!("only lenient reading fails: {error}"),
        (Err(_), _) => {}
    }
    match (&lenient, reference::read_vocab_txt(data)) {
        (Ok((vocab, _)), Ok(expected)) => {
            let got: BTreeMap<&str, u32> = vocab.iter().collect();
            let expected: BTreeMap<&str, u32> = expected.iter().map(|(token, id)| (token.as_str(), *id)).collect();
            assert_eq!(got, expected, "the reference implementation reads another vocabulary");
        }
        (Err(_), Err(_)) => {}
        // What looks like UTF-16.
        (Err(Error::VocabNotUtf8 { .. }), Ok(_)) if data.contains(&0) && !data.starts_with(b"\xef\xbb\xbf") => {}
        (Ok(_), Err(refusal)) => panic!("only the reference implementation refuses: {}", refusal.message),
        (Err(error), Ok(_)) => panic!("only the reader refuses: {error}"),
    }
    if let Ok((vocab, _)) = lenient
        && let Ok(text) = vocab_txt::write(&vocab)
    {
        let (again, _) = vocab_txt::read(text.as_bytes(), false).expect("a file that was written can be read");
        assert_eq!(vocab, again, "writing and reading gives another vocabulary");
    }
}
