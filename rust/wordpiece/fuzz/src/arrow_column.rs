//! Arrow columns: no schema and no array makes the reader panic or read outside a buffer, whatever they contain.
//!
//! The C data interface passes pointers without lengths, so that the length of each buffer is the producer's
//! responsibility (the contract of `TextColumn::new`). The buffers here are exactly as long as the type, the offset and the
//! length of their array require. Everything else is arbitrary: formats, children, offsets, indices, views, validity bits,
//! counts, and which buffers are missing. AddressSanitizer reports any access beyond them.

use arbitrary::{Arbitrary, Result, Unstructured};
use wordpiece_arrow::export::{ArrayParts, Buffer, Field};
use wordpiece_arrow::{ArrowArray, ArrowSchema, ColumnError, RequestedRows, TextColumn};

/// The longest buffer of strings that is allocated. A larger offset is combined with a missing buffer.
const MAX_STRING_BYTES: i64 = 1 << 12;

/// Draws a column from `data` and reads all of it.
pub fn check(data: &[u8]) {
    // Too little data to draw everything from is not a crasher.
    let _ = check_drawn(&mut Unstructured::new(data));
}

fn check_drawn(u: &mut Unstructured<'_>) -> Result<()> {
    let requested = RequestedRows { words: bool::arbitrary(u)?, pairs: bool::arbitrary(u)? };
    let field = field(u, 3)?;
    let schema: ArrowSchema = field.schema();
    let n_chunks = u.int_in_range(0..=3)?;
    let chunks = (0..n_chunks).map(|_| array(u, &field)).collect::<Result<Vec<_>>>()?;
    // SAFETY: `array` makes every buffer that is present as long as the type that `field` describes requires for the offset
    // and length of its array. The arrays own the buffers, and nobody else has access to them.
    let column = match unsafe { TextColumn::new(&schema, chunks, requested) } {
        Ok(column) => column,
        Err(ColumnError::Type(column_type)) => {
            let _ = column_type.to_string();
            return Ok(());
        }
        Err(ColumnError::Read(error)) => {
            let _ = error.to_string();
            return Ok(());
        }
    };
    match column.inputs() {
        Ok(inputs) => {
            assert_eq!(inputs.len(), column.len(), "there are not as many inputs as rows");
            let texts = inputs.into_iter().map(|input| input.first);
            let by_chunk = (0..column.n_chunks())
                .flat_map(|chunk| column.chunk_texts(chunk).expect("the same rows could be read before"));
            assert!(texts.eq(by_chunk), "the texts of the chunks are not those of the column");
        }
        Err(error) => {
            let _ = error.to_string();
            assert!(column.texts().is_err(), "the same rows could not be read before");
        }
    }
    Ok(())
}

/// Draws a type with at most `depth` levels of children.
fn field(u: &mut Unstructured<'_>, depth: usize) -> Result<Field> {
    let format = match u.int_in_range(0..=15)? {
        0..=3 => "u".to_owned(),
        4 => "U".to_owned(),
        5 | 6 => "vu".to_owned(),
        7 => "n".to_owned(),
        8 | 9 => "+l".to_owned(),
        10 => "+L".to_owned(),
        11 => format!("+w:{}", *u.choose(&[0, 1, 2, usize::MAX])?),
        12 | 13 => "+s".to_owned(),
        14 => {
            return Ok(Field::new(u.choose(&["c", "s", "i", "l", "C", "S", "I", "L", "f"])?.to_string(), "")
                .with_dictionary(if depth == 0 { Field::new("u", "") } else { field(u, depth - 1)? }));
        }
        _ => String::arbitrary(u)?,
    };
    let n_children = match &format[..] {
        _ if depth == 0 => 0,
        "+s" => u.int_in_range(0..=3)?,
        format if format.starts_with('+') => u.int_in_range(0..=8)?.min(1),
        _ => 0,
    };
    let children = (0..n_children).map(|_| field(u, depth - 1)).collect::<Result<Vec<_>>>()?;
    Ok(Field::new(format, String::arbitrary(u)?).with_children(children))
}

/// Draws an array of a type. Its buffers are as long as that type requires, or missing.
fn array(u: &mut Unstructured<'_>, field: &Field) -> Result<ArrowArray> {
    // Numbers that no array can have must be refused before any buffer is read, so any buffers will do for them.
    let number = |u: &mut Unstructured<'_>| {
        if u.ratio(1, 40)? { u.choose(&[-1, i64::MIN, i64::MAX]).copied() } else { u.int_in_range(0..=12) }
    };
    let (length, offset) = (number(u)?, number(u)?);
    let rows = if (0..=12).contains(&length) && (0..=12).contains(&offset) { (length + offset) as usize } else { 0 };
    let validity = buffer(u, 2, rows.div_ceil(8))?;
    let buffers = match (&field.dictionary, &*field.format) {
        (Some(_), _) => vec![validity, buffer(u, 12, 8 * rows)?],
        (None, "u") => strings::<4>(u, validity, rows)?,
        (None, "U") => strings::<8>(u, validity, rows)?,
        (None, "vu") => views(u, validity, rows)?,
        (None, "+l") => vec![validity, offsets::<4>(u, rows)?.0],
        (None, "+L") => vec![validity, offsets::<8>(u, rows)?.0],
        _ => vec![validity],
    };
    let children = field.children.iter().map(|child| array(u, child)).collect::<Result<Vec<_>>>()?;
    let kept = if u.ratio(1, 20)? { 0 } else { children.len() };
    let dictionary = match &field.dictionary {
        Some(values) if !u.ratio(1, 20)? => Some(array(u, values)?),
        _ => None,
    };
    let null_count = if u.ratio(1, 10)? { i64::arbitrary(u)? } else { 0 };
    let children = children.into_iter().take(kept).collect();
    Ok(ArrayParts { length, null_count, offset, buffers, children, dictionary }.into_array())
}

/// Draws a buffer of `len` arbitrary bytes; one in `missing` is missing.
fn buffer(u: &mut Unstructured<'_>, missing: u32, len: usize) -> Result<Buffer> {
    if u.ratio(1, missing)? {
        return Ok(Buffer::Absent);
    }
    Ok(Buffer::Bytes((0..len).map(|_| u8::arbitrary(u)).collect::<Result<_>>()?))
}

/// Draws a buffer of offsets of `N` bytes, mostly ascending, and returns it with the largest offset, at least 0.
fn offsets<const N: usize>(u: &mut Unstructured<'_>, rows: usize) -> Result<(Buffer, i64)> {
    if u.ratio(1, 20)? {
        return Ok((Buffer::Absent, 0));
    }
    let mut bytes = Vec::with_capacity(N * (rows + 1));
    let (mut last, mut largest) = (0_i64, 0);
    for _ in 0..=rows {
        last = match u.int_in_range(0..=31)? {
            0 => i64::from(i32::arbitrary(u)?),
            1 => last.saturating_sub(5),
            step => last.saturating_add(step % 8),
        };
        if N == 4 {
            last = i64::from(last as i32);
            bytes.extend_from_slice(&(last as i32).to_ne_bytes());
        } else {
            bytes.extend_from_slice(&last.to_ne_bytes());
        }
        largest = largest.max(last);
    }
    Ok((Buffer::Bytes(bytes), largest))
}

/// Draws the buffers of strings with offsets of `N` bytes.
fn strings<const N: usize>(u: &mut Unstructured<'_>, validity: Buffer, rows: usize) -> Result<Vec<Buffer>> {
    let (offsets, largest) = offsets::<N>(u, rows)?;
    // A producer has to allocate the bytes up to the largest offset, or nothing.
    let data = if largest <= MAX_STRING_BYTES { text_buffer(u, largest as usize)? } else { Buffer::Absent };
    let mut buffers = vec![validity, offsets, data];
    if u.ratio(1, 20)? {
        buffers.truncate(u.int_in_range(0..=2)?);
    }
    Ok(buffers)
}

/// Draws `len` bytes that are mostly UTF-8.
fn text_buffer(u: &mut Unstructured<'_>, len: usize) -> Result<Buffer> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        match u.int_in_range(0..=15)? {
            0 => bytes.push(u8::arbitrary(u)?),
            1 => bytes.extend_from_slice("é".as_bytes()),
            _ => bytes.push(b'a'),
        }
    }
    bytes.truncate(len);
    bytes.shrink_to_fit();
    Ok(Buffer::Bytes(bytes))
}

/// Draws the buffers of string views: validity, views, data buffers, and the lengths of those.
fn views(u: &mut Unstructured<'_>, validity: Buffer, rows: usize) -> Result<Vec<Buffer>> {
    let n_data = u.int_in_range(0..=2)?;
    let mut lengths = Vec::new();
    let mut buffers = vec![validity, Buffer::Absent];
    for _ in 0..n_data {
        let len = u.int_in_range(0..=40)?;
        // A negative length promises nothing about the buffer.
        lengths.push(if u.ratio(1, 20)? { -1 } else { len as i64 });
        buffers.push(if u.ratio(1, 20)? { Buffer::Absent } else { text_buffer(u, len)? });
    }
    let mut bytes = Vec::with_capacity(16 * rows);
    for _ in 0..rows {
        let mut view: [u8; 16] = Arbitrary::arbitrary(u)?;
        if u.ratio(9, 10)? {
            // A plausible length, buffer and position.
            view[..4].copy_from_slice(&u.int_in_range(-1..=20_i32)?.to_ne_bytes());
            view[8..12].copy_from_slice(&u.int_in_range(-1..=2_i32)?.to_ne_bytes());
            view[12..].copy_from_slice(&u.int_in_range(-1..=41_i32)?.to_ne_bytes());
        }
        bytes.extend_from_slice(&view);
    }
    buffers[1] = Buffer::Bytes(bytes);
    buffers.push(Buffer::Int64(lengths));
    Ok(buffers)
}
