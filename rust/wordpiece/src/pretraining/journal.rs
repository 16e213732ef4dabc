//! Lines of a journal with checksums, and small files that are read only if they are such.
//!
//! A line is a JSON object whose last field, `crc32`, is the checksum of the object without it. The Python package writes
//! and reads the same lines for examples.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::Crc;

use super::npy::write_error;
use crate::error::Result;

/// The most bytes of an index or a journal: enough for a million shards.
const LARGEST: u64 = 512 << 20;
const FIELD: &[u8] = b", \"crc32\": \"";

/// Returns the line of a JSON object.
pub(super) fn sealed(object: &[u8]) -> Vec<u8> {
    let mut line = object.strip_suffix(b"}").unwrap_or(object).to_vec();
    line.extend_from_slice(FIELD);
    line.extend_from_slice(format!("{:08x}\"}}\n", crc32(object)).as_bytes());
    line
}

/// Returns the JSON object of a line; `None` if the line is not as it was written.
pub(super) fn opened(line: &[u8]) -> Option<Vec<u8>> {
    let rest = line.strip_suffix(b"\"}\n")?;
    let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
    let mut object = rest.strip_suffix(FIELD)?.to_vec();
    object.push(b'}');
    (format!("{:08x}", crc32(&object)).as_bytes() == sum).then_some(object)
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Reads an index or a journal; `None` if it is no regular file or far too large.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let found = fs::metadata(path).map_err(|error| write_error(path, &error))?;
    if !found.is_file() || found.len() > LARGEST {
        return Ok(None);
    }
    fs::read(path).map(Some).map_err(|error| write_error(path, &error))
}

/// Returns whether a file has these many bytes, and this checksum as hexadecimal digits.
pub(super) fn is_intact(path: &Path, bytes: u64, sum: &str) -> bool {
    let checked = || -> std::io::Result<bool> {
        let found = fs::metadata(path)?;
        if !found.is_file() || found.len() != bytes {
            return Ok(false);
        }
        let (mut file, mut crc, mut buffer) = (File::open(path)?, Crc::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(format!("{:08x}", crc.sum()) == sum),
                n => crc.update(&buffer[..n]),
            }
        }
    };
    checked().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::{opened, sealed};

    #[test]
    fn a_line_opens_only_as_it_was_written() {
        let object = b"{\"a\": 1, \"crc32\": \"x\"}";
        let line = sealed(object);
        assert_eq!(opened(&line).as_deref(), Some(&object[..]));
        for i in 0..line.len() {
            let mut damaged = line.clone();
            damaged[i] ^= 1;
            assert_eq!(opened(&damaged), None, "byte {i}");
            assert_eq!(opened(&line[..i]), None);
        }
    }
}
