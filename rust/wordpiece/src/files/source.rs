//! Sources of bytes: a file, standard input, or any reader; plain, gzip or Zstandard.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// A named source of bytes to read texts from.
///
/// Gzip and Zstandard data are recognised by their first bytes, which no UTF-8 text begins with, and are decompressed.
/// Concatenated gzip members and Zstandard frames are read as one stream.
pub struct TextSource {
    /// The name for messages: the path, or what the caller chose.
    pub(crate) name: String,
    origin: Origin,
}

/// The input that a source reads from.
enum Origin {
    Path(PathBuf),
    Stdin,
    Reader(Box<dyn Read + Send>),
}

impl TextSource {
    /// Creates a source for a file. The file is opened when its turn comes, not before.
    pub fn path(path: impl Into<PathBuf>) -> TextSource {
        let path = path.into();
        TextSource { name: path.display().to_string(), origin: Origin::Path(path) }
    }

    /// Creates a source for standard input.
    pub fn stdin() -> TextSource {
        TextSource { name: "standard input".to_owned(), origin: Origin::Stdin }
    }

    /// Creates a source for any reader; `name` is used in messages.
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> TextSource {
        TextSource { name: name.into(), origin: Origin::Reader(Box::new(reader)) }
    }

    /// Opens the source. The number of bytes read from it, before decompression, is added to `bytes_read` as they are
    /// read.
    pub(crate) fn open(self, bytes_read: &Arc<AtomicU64>) -> io::Result<Box<dyn Read + Send>> {
        let inner: Box<dyn Read + Send> = match self.origin {
            Origin::Path(path) => Box::new(File::open(path)?),
            Origin::Stdin => Box::new(io::stdin()),
            Origin::Reader(reader) => reader,
        };
        let raw = Some(CountingReader { inner, bytes_read: Arc::clone(bytes_read) });
        Ok(Box::new(DecompressingReader::Undetected { first: Vec::with_capacity(ZSTANDARD_MAGIC.len()), raw }))
    }
}

impl fmt::Debug for TextSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TextSource").field(&self.name).finish()
    }
}

/// Converts an I/O error of the file `name` into [`Error::FileUnreadable`].
pub(crate) fn unreadable_file(name: &str, error: &io::Error) -> Error {
    let message = error.to_string();
    // An error of the operating system has its number in `code`; std repeats it at the end of the text.
    let message = message.split_once(" (os error").map_or(message.as_str(), |(text, _)| text).to_owned();
    Error::FileUnreadable { file: name.to_owned(), code: error.raw_os_error(), message }
}

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A reader that detects the compression from the first bytes.
///
/// Detection happens in the first call of `read`, not when the source is opened: opening never blocks on a silent pipe,
/// and an interrupted wait is reported as in any other read.
enum DecompressingReader {
    /// Fewer than four bytes have been read; `raw` is `None` only while the state changes.
    Undetected {
        first: Vec<u8>,
        raw: Option<CountingReader>,
    },
    Detected(Box<dyn Read + Send>),
}

impl Read for DecompressingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                DecompressingReader::Detected(reader) => return reader.read(buffer),
                DecompressingReader::Undetected { first, raw } => {
                    let mut next = [0; ZSTANDARD_MAGIC.len()];
                    let missing = ZSTANDARD_MAGIC.len() - first.len();
                    let n = raw.as_mut().map_or(Ok(0), |raw| raw.read(&mut next[..missing]))?;
                    first.extend_from_slice(&next[..n]);
                    if n == 0 || n == missing {
                        let (first, raw) = (std::mem::take(first), raw.take());
                        *self = DecompressingReader::Detected(decompressing_reader(first, raw)?);
                    }
                }
            }
        }
    }
}

/// Returns a reader of the decompressed stream that consists of the bytes `first` and then `rest`.
fn decompressing_reader(first: Vec<u8>, rest: Option<CountingReader>) -> io::Result<Box<dyn Read + Send>> {
    let (gzip, zstandard) = (first.starts_with(GZIP_MAGIC), first.starts_with(ZSTANDARD_MAGIC));
    let rest: Box<dyn Read + Send> = match rest {
        Some(rest) => Box::new(rest),
        None => Box::new(io::empty()),
    };
    let bytes = Cursor::new(first).chain(rest);
    if gzip {
        gzip_reader(bytes)
    } else if zstandard {
        zstandard_reader(bytes)
    } else {
        Ok(Box::new(bytes))
    }
}

#[cfg(feature = "gzip")]
fn gzip_reader(bytes: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, bytes))))
}

#[cfg(feature = "zstd")]
fn zstandard_reader(bytes: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::new(bytes)?))
}

#[cfg(not(feature = "gzip"))]
fn gzip_reader(_: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "compressed with gzip, and the crate was built without it (feature `gzip`)",
    ))
}

#[cfg(not(feature = "zstd"))]
fn zstandard_reader(_: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "compressed with Zstandard, and the crate was built without it (feature `zstd`)",
    ))
}

/// A reader that adds the number of bytes it reads to a shared counter.
struct CountingReader {
    inner: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
