//! Reading texts from files: whatever the sizes of blocks and reads, the texts are the same as by splitting the file at
//! once.

use std::io::{self, Read, Write};
use std::time::Duration;

use proptest::prelude::*;
use wordpiece::Error;
use wordpiece::files::{
    FieldPath, NextBlock, OnError, ReadAhead, ReadOptions, TableFormat, TextBlock, TextLayout, TextProblem, TextReader,
    TextSource,
};

/// A reader that returns a few bytes at a time and is sometimes interrupted, as a pipe may.
struct Trickle {
    bytes: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.sizes[self.turn % self.sizes.len()].min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn trickle(name: &str, bytes: &[u8], sizes: &[usize]) -> TextSource {
    TextSource::reader(name, Trickle { bytes: bytes.to_vec(), at: 0, sizes: sizes.to_vec(), turn: 0 })
}

/// A text and its location.
type LocatedText = (String, String);

fn collect(sources: Vec<TextSource>, options: ReadOptions) -> Result<Vec<LocatedText>, Error> {
    // The limit counts bytes as they are read; an invalid byte becomes the three bytes of U+FFFD.
    let grown = if options.on_error == OnError::Replace { 3 } else { 1 };
    let (most_texts, full) = (options.block_texts, grown * options.block_bytes);
    let mut reader = TextReader::new(sources, options)?;
    let mut block = TextBlock::default();
    let mut all = Vec::new();
    while reader.next_block(&mut block)? {
        assert!(block.len() <= most_texts);
        // The texts before the last one must not have filled the block.
        let before: usize = block.texts().take(block.len().saturating_sub(1)).map(str::len).sum();
        assert!(before < full);
        all.extend(block.texts().enumerate().map(|(i, text)| (text.to_owned(), block.location(i))));
    }
    Ok(all)
}

fn read(bytes: &[u8], layout: TextLayout) -> Result<Vec<String>, Error> {
    let source = trickle("t", bytes, &[7]);
    let options = ReadOptions { layout, ..ReadOptions::default() };
    Ok(collect(vec![source], options)?.into_iter().map(|(text, _)| text).collect())
}

/// The reference: the whole file in memory, one separator after the other. Returns texts and their lines.
fn split_at_once(bytes: &[u8], separator: Option<&str>) -> Vec<(Vec<u8>, usize)> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Some(separator) = separator else { return vec![(rest.to_vec(), 1)] };
    let (mut texts, mut line) = (Vec::new(), 1);
    while !rest.is_empty() {
        let at = (0..rest.len()).find(|&at| rest[at..].starts_with(separator.as_bytes()));
        let (text, next) = match at {
            Some(at) => (&rest[..at], at + separator.len()),
            None => (rest, rest.len()),
        };
        let bare = if separator == "\n" && at.is_some() { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
        texts.push((bare.to_vec(), line));
        line += rest[..next].iter().filter(|&&byte| byte == b'\n').count();
        rest = &rest[next..];
    }
    texts
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\0\0".to_vec()), // one alone may look like a part of a text in UTF-16
        Just(b"aba".to_vec()),
        Just(b"--".to_vec()),
        Just("—é中😀".as_bytes().to_vec()),
        Just("\u{feff}".as_bytes().to_vec()),
        "[ab\\- ]{0,6}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn doubtful_content() -> impl Strategy<Value = Vec<u8>> {
    let bad = prop_oneof![
        content(),
        proptest::collection::vec(1..=u8::MAX, 0..4),
        Just(vec![0xc3]),
        Just(vec![0xa9]),
        Just(vec![0xed, 0xa0, 0x80]),
        Just(vec![0xf0, 0x9f, 0x98]),
    ];
    proptest::collection::vec(bad, 0..4)
        .prop_map(|pieces| pieces.concat())
        // These would be read as compressed data.
        .prop_filter("magic", |bytes| {
            !bytes.starts_with(&[0x1f, 0x8b]) && !bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        })
}

fn separators() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![
        Some("\n"),
        Some("\n\n"),
        Some("\0"),
        Some("aba"),
        Some("--"),
        Some("—"),
        Some("\r\n"),
        None,
    ])
}

fn options(separator: Option<&str>, on_error: OnError, block_bytes: usize, block_texts: usize) -> ReadOptions {
    let layout = separator.map_or(TextLayout::WholeFile, |separator| TextLayout::Separator(separator.to_owned()));
    ReadOptions { layout, on_error, block_bytes, block_texts, ..ReadOptions::default() }
}

proptest! {
    #[test]
    fn blocks_and_reads_of_any_size_yield_the_texts_of_splitting_at_once(
        files in proptest::collection::vec(content(), 1..4),
        separator in separators(),
        sizes in proptest::collection::vec(1usize..9, 1..4),
        block_bytes in 1usize..40,
        block_texts in 1usize..9,
    ) {
        let sources = files.iter().enumerate().map(|(i, bytes)| trickle(&format!("f{i}"), bytes, &sizes)).collect();
        let found = collect(sources, options(separator, OnError::Strict, block_bytes, block_texts)).unwrap();
        let expected: Vec<LocatedText> = files.iter().enumerate().flat_map(|(i, bytes)| {
            split_at_once(bytes, separator).into_iter().map(move |(text, line)| {
                let location = if separator.is_some() { format!("f{i} line {line}") } else { format!("f{i}") };
                (String::from_utf8(text).unwrap(), location)
            })
        }).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn records_of_a_table_do_not_depend_on_the_sizes_of_reads_and_blocks(
        body in "[ab\",\\n\\r\té]{0,40}",
        format in prop::sample::select(vec![TableFormat::Csv, TableFormat::Tsv]),
        on_error in prop::sample::select(vec![OnError::Strict, OnError::Skip]),
        sizes in proptest::collection::vec(1usize..9, 1..4),
        block_bytes in 1usize..40,
        block_texts in 1usize..9,
    ) {
        let layout = TextLayout::Table(format, "a".into(), vec!["b".into()]);
        let bytes = format!("{}{body}", if format == TableFormat::Csv { "b,a\r\n" } else { "b\ta\r\n" });
        let read = |sizes: &[usize], block_bytes, block_texts| {
            let layout = layout.clone();
            let options = ReadOptions { layout, on_error, block_bytes, block_texts, ..ReadOptions::default() };
            collect(vec![trickle("t", bytes.as_bytes(), sizes)], options)
        };
        prop_assert_eq!(read(&sizes, block_bytes, block_texts), read(&[1 << 20], 1 << 20, 1 << 20));
    }

    #[test]
    fn the_bytes_read_are_those_of_the_texts_so_far(
        lines in proptest::collection::vec("[ab]{0,9}", 0..20),
        block_texts in 1usize..9,
    ) {
        let sources = vec![trickle("t", (lines.join("\n") + "\n").as_bytes(), &[1 << 20])];
        let mut reader = TextReader::new(sources, ReadOptions { block_texts, ..ReadOptions::default() }).unwrap();
        let (mut block, mut bytes) = (TextBlock::default(), 0);
        while reader.next_block(&mut block).unwrap() {
            bytes += block.texts().map(|text| text.len() as u64 + 1).sum::<u64>();
            prop_assert_eq!(block.bytes_read(), bytes);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error_with_a_location_or_replaced_or_skipped(
        bytes in doubtful_content(),
        separator in separators(),
        sizes in proptest::collection::vec(1usize..9, 1..4),
        block_bytes in 1usize..40,
    ) {
        let texts = split_at_once(&bytes, separator);
        let collected = |on_error| {
            collect(vec![trickle("t", &bytes, &sizes)], options(separator, on_error, block_bytes, 7))
        };

        let lossy: Vec<String> = texts.iter().map(|(text, _)| String::from_utf8_lossy(text).into_owned()).collect();
        let replaced: Vec<String> = collected(OnError::Replace).unwrap().into_iter().map(|(text, _)| text).collect();
        prop_assert_eq!(replaced, lossy);

        let good: Vec<String> = texts.iter().filter_map(|(text, _)| String::from_utf8(text.clone()).ok()).collect();
        let kept: Vec<String> = collected(OnError::Skip).unwrap().into_iter().map(|(text, _)| text).collect();
        prop_assert_eq!(&kept, &good);

        match collected(OnError::Strict) {
            Ok(found) => {
                prop_assert_eq!(good.len(), texts.len());
                prop_assert_eq!(found.len(), texts.len());
            }
            Err(Error::BadText { file, line, offset, problem: TextProblem::NotUtf8 { byte, .. } }) => {
                let at = std::str::from_utf8(&bytes).unwrap_err().valid_up_to();
                prop_assert_eq!((file.as_str(), offset as usize, byte), ("t", at, bytes[at]));
                prop_assert_eq!(line as usize, 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    #[test]
    fn a_field_of_a_json_line_equals_what_serde_json_reads(
        text in ".{0,30}",
        other in ".{0,10}",
        block_bytes in 1usize..60,
    ) {
        let record = serde_json::json!({"a": other, "meta": {"x": [1, {"text": text}], "text": 5}, "text": other});
        let lines = format!("{record}\r\n \n{record}");
        let second = Some(FieldPath::new("text").unwrap());
        let layout = TextLayout::JsonLines(FieldPath::new("meta.x.1.text").unwrap(), second);
        let options = ReadOptions { layout, block_bytes, ..ReadOptions::default() };
        let mut reader = TextReader::new(vec![trickle("t", lines.as_bytes(), &[5])], options).unwrap();
        let (mut block, mut pairs) = (TextBlock::default(), Vec::new());
        while reader.next_block(&mut block).unwrap() {
            pairs.extend(block.texts().zip(block.second_texts()).map(|(a, b)| (a.to_owned(), b.to_owned())));
        }
        prop_assert_eq!(pairs, vec![(text.clone(), other.clone()), (text, other)]);
    }
}

#[test]
fn halves_of_a_character_at_the_end_and_start_of_two_files_are_not_joined() {
    let sources = || vec![trickle("a", b"x\xc3", &[9]), trickle("b", b"\xa9y", &[9])];
    let error = collect(sources(), ReadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a: line 1, byte offset 1: not UTF-8: byte 0xc3; it may be Latin-1 or Windows-1252; convert the file to \
         UTF-8 first, or replace what is not UTF-8"
    );
    let options = ReadOptions { on_error: OnError::Replace, ..ReadOptions::default() };
    let texts: Vec<String> = collect(sources(), options).unwrap().into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["x\u{fffd}", "\u{fffd}y"]);
}

#[test]
fn utf16_is_recognised_with_a_mark_and_without() {
    let encoded = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (marked, bare) = (encoded("\u{feff}a\nb\n"), encoded("a\nb\n"));
    let lines = || TextLayout::Separator("\n".into());
    let json = || TextLayout::JsonLines(FieldPath::new("text").unwrap(), None);
    let table = || TextLayout::Table(TableFormat::Csv, "a".to_owned(), Vec::new());
    for layout in [lines, || TextLayout::WholeFile, json, table] {
        for (bytes, at) in [(&marked, 0), (&bare, 1)] {
            let error = read(bytes, layout()).unwrap_err();
            assert!(error.to_string().contains("it looks like UTF-16"), "{error}");
            assert!(matches!(error, Error::BadText { line: 1, offset, .. } if offset == at), "{error:?}");
        }
    }
    assert_eq!(read(&bare, TextLayout::Separator("\0".into())).unwrap(), ["a", "\n", "b", "\n"]);
    // Two NULs in a line of JSON do not make the file UTF-16: the lines after it are read.
    let with_nuls = b"{\"a\0\": \0}\n{\"text\": \"b\"}\n";
    let options = ReadOptions { layout: json(), on_error: OnError::Skip, ..ReadOptions::default() };
    let found = collect(vec![trickle("a", with_nuls, &[9])], options).unwrap();
    assert_eq!(found.into_iter().map(|(text, _)| text).collect::<Vec<_>>(), ["b"]);
    // A file that is skipped counts as one text, and the next one is read.
    let sources = || vec![trickle("a", &bare, &[1]), trickle("b", b"c\n", &[1])];
    for (on_error, expected) in [(OnError::Skip, vec!["c"]), (OnError::Replace, vec!["a\0", "\0b\0", "\0", "c"])] {
        let found = collect(sources(), ReadOptions { on_error, ..ReadOptions::default() }).unwrap();
        assert_eq!(found.into_iter().map(|(text, _)| text).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn gzip_and_zstandard_are_recognised_and_concatenated_parts_are_one_stream() {
    let text = b"one\ntwo\n".repeat(1000);
    let gzip = |part: &[u8]| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(part).unwrap();
        writer.finish().unwrap()
    };
    let lines = || TextLayout::Separator("\n".into());
    let expected = read(&text, lines()).unwrap();
    let two_members = [gzip(&text[..17]), gzip(&text[17..])].concat();
    assert_eq!(read(&two_members, lines()).unwrap(), expected);
    let frames = [zstd::encode_all(&text[..17], 1).unwrap(), zstd::encode_all(&text[17..], 1).unwrap()].concat();
    assert_eq!(read(&frames, lines()).unwrap(), expected);
    for broken in [&two_members[..two_members.len() - 9], &frames[..frames.len() - 3]] {
        let error = read(broken, lines()).unwrap_err();
        assert!(matches!(&error, Error::FileUnreadable { file, code: None, .. } if file == "t"), "{error:?}");
    }
}

#[test]
fn a_text_longer_than_the_limit_is_reported_and_not_kept_in_memory() {
    let options = ReadOptions { longest_text: 1 << 20, ..ReadOptions::default() };
    let endless = TextSource::reader("endless", b"ok\n".chain(io::repeat(b'a')));
    let error = collect(vec![endless], options).unwrap_err();
    let expected = "endless: line 2, byte offset 3: a text of more than 1048576 bytes begins here; check the \
                    separator, or the quotation marks of a table";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_text_longer_than_a_block_and_the_read_buffer_is_complete() {
    let long = "word ".repeat(1 << 20);
    let content = format!("a\n{long}\nb\n{long}");
    let source = TextSource::reader("t", io::Cursor::new(content.clone().into_bytes()));
    let found = collect(vec![source], ReadOptions { block_bytes: 100, ..ReadOptions::default() }).unwrap();
    assert!(found.iter().map(|(text, _)| text.as_str()).eq(content.split('\n')));
}

fn field_problem(line: &str, path: &str) -> String {
    let layout = TextLayout::JsonLines(FieldPath::new(path).unwrap(), None);
    match read(format!("{{\"a\": \"\", \"b\": {{\"c\": [\"\"]}}}}\n{line}\n").as_bytes(), layout) {
        Err(error) => error.to_string(),
        Ok(texts) => panic!("{texts:?}"),
    }
}

#[test]
fn errors_of_json_lines_say_what_is_wrong() {
    let at = "t: line 2, byte offset 28: ";
    for (line, path, expected) in [
        ("{\"a\": \"x\"", "a", "not JSON: EOF while parsing an object at column 9"),
        ("{\"a\": \"x\"} {}", "a", "not JSON: trailing characters at column 12"),
        ("{\"b\": 1, \"c\": 2}", "a", "no field \"a\"; there are: \"b\", \"c\""),
        ("{}", "a", "no field \"a\"; there are: none"),
        ("{\"a\": null}", "a", "the field \"a\" is not text: invalid type: null, expected a string at column 10"),
        ("{\"a\": [\"x\"]}", "a", "the field \"a\" is not text: invalid type: sequence, expected a string at column 7"),
        ("{\"a\": {}}", "a", "the field \"a\" is not text: invalid type: map, expected a string at column 6"),
        (
            "[1]",
            "a",
            "the field \"a\" is not text: invalid type: sequence, expected an object with the key \"a\" at column 1",
        ),
        (
            "{\"a\": \"\\ud800\"}",
            "a",
            "the field \"a\" has a lone surrogate, which is no character; replace what is no character to read it \
             all the same",
        ),
    ] {
        assert_eq!(field_problem(line, path), format!("{at}{expected}"), "{line}");
    }
    assert_eq!(field_problem("{\"b\": {\"c\": []}}", "b.c.0"), format!("{at}no field \"b.c.0\"; there are: \"b\""));
}

#[test]
fn unusual_but_valid_json_is_read() {
    let read_field = |line: &str, path: &str, on_error| {
        let layout = TextLayout::JsonLines(FieldPath::new(path).unwrap(), None);
        let options = ReadOptions { layout, on_error, ..ReadOptions::default() };
        collect(vec![trickle("t", line.as_bytes(), &[3])], options).unwrap()[0].0.clone()
    };
    assert_eq!(read_field(r#"{"a.b": {"c\\d": "x"}}"#, r"a\.b.c\\d", OnError::Strict), "x");
    assert_eq!(read_field(r#"{"a": "first", "a": "last"}"#, "a", OnError::Strict), "last");
    assert_eq!(read_field(r#"{"\u0061": "\ud83d\ude00\n\u0000"}"#, "a", OnError::Strict), "😀\n\0");
    assert_eq!(read_field(r#"{"a": "<\ud800é\udc00>"}"#, "a", OnError::Replace), "<\u{fffd}é\u{fffd}>");
    assert!(matches!(FieldPath::new("a..b"), Err(Error::BadFieldPath { .. })));
    assert!(matches!(FieldPath::new(""), Err(Error::BadFieldPath { .. })));
}

#[test]
fn skipped_texts_are_counted_and_described() {
    let lines = "{\"a\": \"x\"}\n{\"b\": 1}\nno\n{\"a\": \"y\"}\n".to_owned() + &"?\n".repeat(100);
    let layout = TextLayout::JsonLines(FieldPath::new("a").unwrap(), None);
    let options = ReadOptions { layout, on_error: OnError::Skip, ..ReadOptions::default() };
    let mut reader = TextReader::new(vec![trickle("t", lines.as_bytes(), &[100])], options).unwrap();
    let mut block = TextBlock::default();
    assert!(reader.next_block(&mut block).unwrap());
    assert_eq!(block.texts().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!((block.location(1), block.skipped_count(), block.skipped().len()), ("t line 4".to_owned(), 102, 20));
    assert_eq!(block.skipped()[0], "t: line 2, byte offset 11: no field \"a\"; there are: \"b\"");
}

/// A reader that returns two bytes, then fails.
struct Broken(bool);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0 = true;
        buffer[..2].copy_from_slice(b"xy");
        Ok(2)
    }
}

#[test]
fn after_a_file_that_breaks_the_next_one_is_read() {
    let sources =
        vec![TextSource::reader("a", Broken(false)), TextSource::reader("b", &b"b\xff"[..]), trickle("c", b"c", &[1])];
    let mut reader = TextReader::new(sources, ReadOptions::default()).unwrap();
    let mut block = TextBlock::default();
    assert_eq!(reader.next_block(&mut block).unwrap_err().to_string(), "a: the disk is gone");
    assert!(reader.next_block(&mut block).unwrap_err().to_string().starts_with("b: line 1, byte offset 1"));
    assert!(reader.next_block(&mut block).unwrap());
    assert_eq!(block.texts().zip([block.location(0)]).collect::<Vec<_>>(), [("c", "c line 1".to_owned())]);
}

#[test]
fn an_empty_separator_is_refused() {
    let options = ReadOptions { layout: TextLayout::Separator(String::new()), ..ReadOptions::default() };
    assert!(matches!(TextReader::new(Vec::new(), options), Err(Error::EmptySeparator)));
}

#[test]
fn the_error_of_a_missing_file_has_its_name_and_number() {
    let error = collect(vec![TextSource::path("no/such/file")], ReadOptions::default()).unwrap_err();
    let Error::FileUnreadable { file, code: Some(_), message } = &error else { panic!("{error:?}") };
    assert_eq!(file, "no/such/file");
    assert!(!message.contains("os error"), "{message}");
}

#[test]
fn reading_ahead_yields_the_same_blocks_and_ends() {
    let content = "some words\n".repeat(1000);
    let options = || ReadOptions { block_bytes: 1000, ..ReadOptions::default() };
    let source = || vec![TextSource::reader("t", io::Cursor::new(content.clone()))];
    let expected = collect(source(), options()).unwrap();
    let mut ahead = ReadAhead::start(TextReader::new(source(), options()).unwrap()).unwrap();
    let (mut found, mut blocks) = (Vec::new(), 0);
    loop {
        match ahead.next(Duration::from_secs(10)).unwrap() {
            NextBlock::Ready(block) => {
                blocks += 1;
                found.extend((0..block.len()).zip(block.texts()).map(|(i, text)| (text.to_owned(), block.location(i))));
            }
            NextBlock::Done => break,
            NextBlock::TimedOut => panic!("ten seconds for a block"),
        }
    }
    assert!(matches!(ahead.next(Duration::ZERO), Ok(NextBlock::Done)));
    assert_eq!((found, blocks), (expected, content.len().div_ceil(1001)));
    // A reader that is dropped ends, even if its source never does.
    drop(ReadAhead::start(TextReader::new(vec![TextSource::reader("t", io::repeat(b'\n'))], options()).unwrap()));
}

#[test]
fn a_column_of_strings_is_a_block() {
    let valid = [true, true, false, true];
    let block = |bytes, ends: &[i64], on_error| {
        TextBlock::from_arrow("p", 7, &[(bytes, ends, Some(&valid[..ends.len()]))], on_error)
    };
    let good = block("aé".as_bytes(), &[1, 3, 3, 3], OnError::Skip).unwrap();
    assert_eq!(good.texts().collect::<Vec<_>>(), ["a", "é", ""]);
    assert_eq!((good.location(2), good.skipped_count()), ("p row 11".to_owned(), 1));
    let problem = |bytes, ends: &[i64]| block(bytes, ends, OnError::Strict).unwrap_err().to_string();
    assert_eq!(problem(b"a", &[1, 1, 1]), "p: row 10: null, which is not text; skip what is not text to read the rest");
    assert!(problem("aé".as_bytes(), &[2]).starts_with("p: row 8: not UTF-8"));
    for ends in [&[9][..], &[1, 0], &[-1]] {
        assert!(problem(b"aa", ends).contains("offsets"), "{ends:?}");
    }
    let columns: [wordpiece::files::ArrowColumn<'_>; 2] = [(b"ab", &[1, 2], None), (b"c\xff", &[1, 2], None)];
    let pairs = TextBlock::from_arrow("p", 0, &columns, OnError::Replace).unwrap();
    assert_eq!(pairs.texts().zip(pairs.second_texts()).collect::<Vec<_>>(), [("a", "c"), ("b", "\u{fffd}")]);
    assert_eq!(TextBlock::from_arrow("p", 0, &columns, OnError::Skip).unwrap().len(), 1);
}
