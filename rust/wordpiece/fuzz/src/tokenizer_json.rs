//! `tokenizer.json`: reading never panics, and a file that was read can be written and read again without loss.

use wordpiece::format::tokenizer_json;
use wordpiece::{EncodeOptions, Input, Tokenizer};

/// Texts with every kind of character that a component of the pipeline treats specially.
const TEXTS: [&str; 3] = ["", "Hello, World! 東京 \u{1e69} [MASK]", "\u{0}\t\u{301}가 don't\u{fffd} 1½ ▁x"];

/// Reads `data` as a `tokenizer.json`. If it is one, writes it, reads it back, and encodes and decodes a few texts.
pub fn check(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    let Ok(definition) = tokenizer_json::read(json) else { return };
    // A file may list the added tokens in any order, and the same token twice.
    let written = tokenizer_json::snapshot(&definition);
    let again = tokenizer_json::restore(&written).unwrap_or_else(|error| panic!("cannot restore: {error}"));
    assert_eq!(written, tokenizer_json::snapshot(&again), "writing twice gives different files");
    if let Ok(written) = tokenizer_json::write(&definition) {
        let again =
            tokenizer_json::read(&written).unwrap_or_else(|error| panic!("cannot read what was written: {error}"));
        assert_eq!(definition.registered_tokens(), again.registered_tokens(), "added tokens changed");
    }
    let Ok(tokenizer) = Tokenizer::new(definition) else { return };
    // The truncation and padding of the file are ignored: a file may ask for rows of any length.
    let options = EncodeOptions::default();
    for text in TEXTS {
        // Only a regular expression can fail here, by exceeding its limit of steps.
        if let Ok(encoding) = tokenizer.encode(&Input::pair(text, text), &options) {
            let _ = tokenizer.decode(&encoding.ids, true, false, false);
        }
    }
}
