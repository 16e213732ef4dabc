//! Fields of JSON lines: reading never panics, does not depend on how the bytes arrive, and agrees with `serde_json`.

use std::io::Read;

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::Value;
use wordpiece::files::{FieldPath, OnError, ReadOptions, TextBlock, TextLayout, TextReader, TextSource};

/// Reads the rest of `data` as JSON lines, with options drawn from its start.
pub fn check(data: &[u8]) {
    // Too little data to draw the options from is not a crasher.
    let _ = check_drawn(&mut Unstructured::new(data));
}

/// The texts of a file, each with its location, the number of texts that were skipped, and the first message about one; or
/// the error.
type Outcome = std::result::Result<(Vec<(String, String)>, usize, Option<String>), String>;

fn check_drawn(u: &mut Unstructured<'_>) -> Result<()> {
    let keys: Vec<String> = match u.int_in_range(0..=3)? {
        0 => {
            let n = u.int_in_range(1..=3)?;
            (0..n).map(|_| String::arbitrary(u)).collect::<Result<_>>()?
        }
        1 => vec!["text".to_owned()],
        2 => ["a", "1", "b"].map(str::to_owned).into(),
        _ => ["a.b", "c\\"].map(str::to_owned).into(),
    };
    let escaped: Vec<String> = keys.iter().map(|key| key.replace('\\', "\\\\").replace('.', "\\.")).collect();
    let Ok(path) = FieldPath::new(&escaped.join(".")) else {
        assert!(keys.iter().any(String::is_empty), "only empty keys are refused: {keys:?}");
        return Ok(());
    };
    let second = bool::arbitrary(u)?.then(|| FieldPath::new("pair").expect("a valid path"));
    let chunk = u.int_in_range(1..=64)?;
    let small_block = u.int_in_range(1..=256)?;
    let bytes = u.bytes(u.len())?;
    for on_error in [OnError::Strict, OnError::Replace, OnError::Skip] {
        let options = ReadOptions {
            layout: TextLayout::JsonLines(path.clone(), second.clone()),
            on_error,
            block_bytes: 1 << 13,
            ..ReadOptions::default()
        };
        let at_once = read(bytes, bytes.len().max(1), options.clone());
        let in_chunks = read(bytes, chunk, ReadOptions { block_bytes: small_block, ..options });
        assert_eq!(at_once, in_chunks, "the result depends on how the bytes arrive ({on_error:?})");
        if on_error == OnError::Skip
            && second.is_none()
            && let Ok((texts, ..)) = at_once
        {
            agrees_with_serde(bytes, &keys, &texts);
        }
    }
    Ok(())
}

/// Reads all texts of a file whose reads return at most `chunk` bytes.
fn read(bytes: &[u8], chunk: usize, options: ReadOptions) -> Outcome {
    let reader = InChunks { bytes: bytes.to_vec(), at: 0, chunk };
    let mut reader =
        TextReader::new(vec![TextSource::reader("fuzz", reader)], options).map_err(|error| error.to_string())?;
    let mut block = TextBlock::default();
    let (mut texts, mut skipped, mut message) = (Vec::new(), 0, None);
    while reader.next_block(&mut block).map_err(|error| error.to_string())? {
        let second = block.second_texts();
        assert!(second.len() == 0 || second.len() == block.len(), "some texts have no second text");
        assert_eq!(block.texts().len(), block.len());
        for (i, text) in block.texts().chain(block.second_texts()).enumerate() {
            texts.push((text.to_owned(), block.location(i % block.len())));
        }
        skipped += block.skipped_count();
        message = message.or(block.skipped().first().cloned());
    }
    // First and second texts of pairs are interleaved differently if the blocks are.
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    Ok((texts, skipped, message))
}

/// Checks the lines that `serde_json` accepts: the text of the field is read if and only if it is a string.
fn agrees_with_serde(bytes: &[u8], keys: &[String], texts: &[(String, String)]) {
    // A byte order mark is removed from the first line, and a file that begins as UTF-16 does is skipped.
    let is_utf16 = matches!(bytes, [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] | [0, ..] | [_, 0, ..]);
    if is_utf16 || bytes.starts_with(b"\xef\xbb\xbf") {
        return;
    }
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
        let expected = keys.iter().try_fold(&value, |value, key| match value {
            Value::Object(object) => object.get(key),
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            _ => None,
        });
        let location = format!("fuzz line {number}");
        let got = texts.iter().find(|(_, at)| *at == location).map(|(text, _)| text.as_str());
        assert_eq!(got, expected.and_then(Value::as_str), "line {number}");
    }
}

/// A source that returns at most `chunk` bytes at a time.
struct InChunks {
    bytes: Vec<u8>,
    at: usize,
    chunk: usize,
}

impl Read for InChunks {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.chunk.min(out.len()).min(self.bytes.len() - self.at);
        out[..n].copy_from_slice(&self.bytes[self.at..][..n]);
        self.at += n;
        Ok(n)
    }
}
