//! Turns bytes into a column of the C data interface, usually a malformed one, and reads it.
//!
//! Shared by the fuzz target `arrow` (`fuzz/`) and by the test that replays inputs, so that both do the same. The interface has no
//! lengths of buffers, and a reader has to trust the producer for them. So the structures made here keep that one promise of
//! [`TextColumn::new`], and every other number and byte is arbitrary: lengths and offsets of arrays may be negative, offsets
//! of strings and lists may decrease, indices and views may point anywhere, buffers, children and dictionaries may be
//! missing, and the types of schema and arrays may be anything.

use wordpiece::{Input, Text};
use wordpiece_arrow::export::{ArrayParts, Buffer, Field, stream};
use wordpiece_arrow::{ArrowArray, ReadError, RequestedRows, TextColumn, read_stream};

/// The deepest nesting of types that is made, one more than is read.
const MAX_DEPTH: usize = 6;

/// Reads the column that `bytes` describe in every way there is. Returns whether it has rows and all of them could be read.
///
/// # Panics
///
/// If two ways of reading disagree, or if a text is not UTF-8.
pub fn read(bytes: &[u8]) -> bool {
    let mut bytes = Bytes(bytes);
    let requested = RequestedRows { words: bytes.below(2) == 1, pairs: bytes.below(2) == 1 };
    let field = field(&mut bytes, 0);
    let chunks: Vec<ArrowArray> = (0..bytes.below(4)).map(|_| array(&mut bytes, &field)).collect();
    let n_chunks = chunks.len();
    // SAFETY: `array` makes every buffer that it does not omit at least as long as `field`, the array's offset and length,
    // and the offsets and lengths in the buffers imply. Nothing else refers to the buffers.
    let Ok(column) = (unsafe { TextColumn::new(&field.schema(), chunks, requested) }) else { return false };
    let (mut all, mut one) = (Vec::new(), Vec::new());
    let inputs = column.inputs(&mut all);
    match &inputs {
        Ok(inputs) => {
            assert_eq!(inputs.len(), column.len());
            for (row, input) in inputs.iter().enumerate() {
                check(input);
                assert_eq!(texts(&column.input(row, &mut one).expect("read before")), texts(input));
            }
            let by_chunk = (0..n_chunks).flat_map(|chunk| column.chunk_rows(chunk).expect("read before"));
            let mut rows = by_chunk.zip(inputs);
            assert!(rows.all(|(row, input)| {
                let mut copy = Vec::new();
                row.append_first(&mut copy).is_ok() && copy == words(&input.first).concat().as_bytes()
            }));
        }
        Err(ReadError { position: Some(position), .. }) => {
            assert!(position.row < column.len());
            assert_eq!(column.input(position.row, &mut one).err(), inputs.clone().err());
        }
        Err(_) => {}
    }
    inputs.is_ok_and(|inputs| !inputs.is_empty())
}

/// Passes a column of strings through a stream and reads it again.
///
/// # Panics
///
/// If the strings that come out are not those that went in.
pub fn round_trip(strings: &[&str]) {
    let parts = ArrayParts {
        length: strings.len() as i64,
        null_count: -1,
        offset: 0,
        buffers: vec![Buffer::Absent, Buffer::Bytes(offsets(strings)), Buffer::Bytes(strings.concat().into_bytes())],
        children: Vec::new(),
        dictionary: None,
    };
    let (schema, chunks) = read_stream(stream(Field::new("u", "text"), parts.into_array())).expect("never fails");
    // SAFETY: there are `strings.len() + 1` offsets, none above the length of the text.
    let column = unsafe { TextColumn::new(&schema, chunks, RequestedRows { words: false, pairs: true }) };
    let column = column.expect("a column of strings");
    let mut copies = Vec::new();
    let read = column.inputs(&mut copies).expect("valid strings");
    assert_eq!(read.iter().map(|input| words(&input.first)).collect::<Vec<_>>().concat(), strings);
}

fn offsets(strings: &[&str]) -> Vec<u8> {
    let mut end = 0;
    let ends = strings.iter().map(|string| {
        end += string.len() as i32;
        end
    });
    [0].into_iter().chain(ends).flat_map(i32::to_ne_bytes).collect()
}

fn words<'a>(text: &Text<'a>) -> Vec<&'a str> {
    match text {
        Text::Raw(text) => vec![text],
        Text::Words(words) => words.clone(),
    }
}

fn texts<'a>(input: &Input<'a>) -> (Vec<&'a str>, Option<Vec<&'a str>>) {
    (words(&input.first), input.second.as_ref().map(words))
}

/// Looks at every byte of every text, which a sanitizer sees.
fn check(input: &Input<'_>) {
    for text in [Some(&input.first), input.second.as_ref()].into_iter().flatten() {
        for word in words(text) {
            assert!(std::str::from_utf8(word.as_bytes()).is_ok());
        }
    }
}

/// A source of small numbers; zeros once it is empty.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Returns a number below `n`.
    fn below(&mut self, n: u8) -> usize {
        usize::from(self.byte() % n)
    }

    /// Returns whether something rare happens.
    fn rarely(&mut self) -> bool {
        self.byte() >= 250
    }

    /// Returns an offset: usually small, rarely negative or far away.
    fn offset(&mut self) -> i64 {
        match self.byte() {
            255 => -1,
            254 => 1000,
            byte => i64::from(byte % 24),
        }
    }

    /// Returns the length or offset of an array: usually small, rarely one that is refused.
    fn length(&mut self) -> i64 {
        match self.byte() {
            255 => -1,
            254 => i64::MIN,
            253 => i64::MAX,
            byte => i64::from(byte % 6),
        }
    }
}

/// Makes a type.
fn field(bytes: &mut Bytes<'_>, depth: usize) -> Field {
    const STRINGS: [&str; 4] = ["u", "U", "vu", "n"];
    const INDICES: [&str; 9] = ["c", "s", "i", "l", "C", "S", "I", "L", "f"];
    const LISTS: [&str; 6] = ["+l", "+L", "+w:0", "+w:2", "+w:3", "+w:9999999999999"];
    let kind = if depth == MAX_DEPTH || bytes.rarely() { 7 } else { bytes.below(7) };
    match kind {
        0..4 => Field::new(STRINGS[bytes.below(4)], ""),
        4 => Field::new(INDICES[bytes.below(9)], "").with_dictionary(field(bytes, depth + 1)),
        5 => Field::new(LISTS[bytes.below(6)], "").with_children(children(bytes, 1, depth)),
        6 => {
            let n = bytes.below(4);
            Field::new("+s", "").with_children(children(bytes, n, depth))
        }
        _ => Field::new(["", "+w:x", "b", "z", "é"][bytes.below(5)], ""),
    }
}

fn children(bytes: &mut Bytes<'_>, n: usize, depth: usize) -> Vec<Field> {
    let n = if bytes.rarely() { n.saturating_sub(1) } else { n };
    (0..n).map(|_| field(bytes, depth + 1)).collect()
}

/// Makes an array whose buffers are long enough for a type. See the top of this file.
fn array(bytes: &mut Bytes<'_>, field: &Field) -> ArrowArray {
    let (length, offset) = (bytes.length(), bytes.length());
    // Arrays with other lengths are refused before any buffer is read.
    let rows = [offset, length].map(|number| if (0..6).contains(&number) { number as usize } else { 0 });
    let rows = rows[0] + rows[1];
    // Mostly rows that are not null.
    let nulls = if bytes.below(4) > 0 {
        Buffer::Absent
    } else {
        Buffer::Bytes((0..rows.div_ceil(8)).map(|_| bytes.byte() | bytes.byte() | bytes.byte()).collect())
    };
    let mut buffers = vec![nulls];
    if field.dictionary.is_some() {
        let width = match field.format.as_ref() {
            "c" | "C" => 1,
            "s" | "S" => 2,
            "i" | "I" => 4,
            _ => 8,
        };
        // Mostly indices that exist.
        let indices: Vec<u8> = (0..rows)
            .flat_map(|_| if bytes.rarely() { [bytes.byte(); 8] } else { (bytes.below(4) as u64).to_ne_bytes() })
            .collect();
        let indices = indices.chunks(8).flat_map(|index| {
            if cfg!(target_endian = "big") { index[8 - width..].to_vec() } else { index[..width].to_vec() }
        });
        buffers.push(Buffer::Bytes(indices.collect()));
    } else {
        match field.format.as_ref() {
            "u" => strings::<4>(bytes, rows, &mut buffers),
            "U" => strings::<8>(bytes, rows, &mut buffers),
            "vu" => views(bytes, rows, &mut buffers),
            "+l" => buffers.push(offsets_of_lists::<4>(bytes, rows).0),
            "+L" => buffers.push(offsets_of_lists::<8>(bytes, rows).0),
            "n" => buffers.clear(),
            _ => {}
        }
    }
    let children = if bytes.rarely() { &[] } else { field.children.as_slice() };
    let dictionary = field.dictionary.as_ref().filter(|_| !bytes.rarely());
    ArrayParts {
        length,
        null_count: bytes.offset() - 1,
        offset,
        buffers,
        children: children.iter().map(|child| array(bytes, child)).collect(),
        dictionary: dictionary.map(|values| array(bytes, values)),
    }
    .into_array()
}

/// Returns `rows + 1` offsets of `N` bytes, usually ascending, and the largest of them.
fn offsets_of_lists<const N: usize>(bytes: &mut Bytes<'_>, rows: usize) -> (Buffer, usize) {
    let (mut end, mut largest) = (0, 0);
    let mut buffer = Vec::new();
    for _ in 0..=rows {
        end = if bytes.rarely() { bytes.offset() } else { end + bytes.below(4) as i64 };
        largest = largest.max(end);
        match N {
            4 => buffer.extend((end as i32).to_ne_bytes()),
            _ => buffer.extend(end.to_ne_bytes()),
        }
    }
    let buffer = if bytes.rarely() { Buffer::Absent } else { Buffer::Bytes(buffer) };
    (buffer, largest as usize)
}

/// Adds the buffers of strings that are delimited by offsets of `N` bytes.
fn strings<const N: usize>(bytes: &mut Bytes<'_>, rows: usize, buffers: &mut Vec<Buffer>) {
    let (offsets, len) = offsets_of_lists::<N>(bytes, rows);
    buffers.push(offsets);
    buffers.push(text(bytes, len));
}

/// Returns a buffer of `len` bytes that are usually ASCII, rarely none.
fn text(bytes: &mut Bytes<'_>, len: usize) -> Buffer {
    let mask = if bytes.below(16) == 15 { 0xFF } else { 0x7F };
    if bytes.rarely() { Buffer::Absent } else { Buffer::Bytes((0..len).map(|_| bytes.byte() & mask).collect()) }
}

/// Adds the buffers of views, data and lengths.
fn views(bytes: &mut Bytes<'_>, rows: usize, buffers: &mut Vec<Buffer>) {
    let mut views = Vec::new();
    for _ in 0..rows {
        let number = |n: i64| (n as i32).to_ne_bytes();
        views.extend(number(bytes.offset()));
        if bytes.below(2) == 0 {
            views.extend((0..12).map(|_| bytes.byte() & 0x7F));
        } else {
            views.extend([number(0), number(bytes.offset() % 3), number(bytes.offset())].concat());
        }
    }
    buffers.push(Buffer::Bytes(views));
    let mut lengths = Vec::new();
    for _ in 0..bytes.below(3) {
        let len = bytes.below(40);
        buffers.push(text(bytes, len));
        let stated = if bytes.rarely() { bytes.offset().min(len as i64) } else { len as i64 };
        lengths.extend(stated.to_ne_bytes());
    }
    buffers.push(if bytes.rarely() { Buffer::Absent } else { Buffer::Bytes(lengths) });
}
