//! What texts are read from: a file, standard input, anything that gives bytes; compressed or not.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something to read texts from, with a name for messages. Gzip and Zstandard are recognised by their first bytes, with
/// which no UTF-8 text begins, and decompressed.
pub struct Source {
    pub(crate) name: String,
    bytes: Bytes,
}

enum Bytes {
    Path(PathBuf),
    Stdin,
    Reader(Box<dyn Read + Send>),
}

impl Source {
    /// A file, opened when its turn comes.
    pub fn path(path: impl Into<PathBuf>) -> Source {
        let path = path.into();
        Source { name: path.display().to_string(), bytes: Bytes::Path(path) }
    }

    /// Standard input.
    pub fn stdin() -> Source {
        Source { name: "standard input".to_owned(), bytes: Bytes::Stdin }
    }

    /// Anything that gives bytes.
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Source {
        Source { name: name.into(), bytes: Bytes::Reader(Box::new(reader)) }
    }

    /// Opens it; what is read from it is added to `count`.
    pub(crate) fn open(self, count: &Arc<AtomicU64>) -> io::Result<Box<dyn Read + Send>> {
        let inner: Box<dyn Read + Send> = match self.bytes {
            Bytes::Path(path) => Box::new(File::open(path)?),
            Bytes::Stdin => Box::new(io::stdin()),
            Bytes::Reader(reader) => reader,
        };
        let bytes = Some(Counted { inner, count: Arc::clone(count) });
        Ok(Box::new(Decompressed::Unknown { first: Vec::with_capacity(ZSTANDARD.len()), bytes }))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.name).finish()
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Bytes that are decompressed where their first ones say so; those are read when the first bytes are asked for, so that
/// a wait for them can be interrupted like any other.
enum Decompressed {
    Unknown { first: Vec<u8>, bytes: Option<Counted> },
    Known(Box<dyn Read + Send>),
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Decompressed::Known(bytes) => return bytes.read(buffer),
                Decompressed::Unknown { first, bytes } => {
                    let mut next = [0; ZSTANDARD.len()];
                    let missing = ZSTANDARD.len() - first.len();
                    let n = bytes.as_mut().map_or(Ok(0), |bytes| bytes.read(&mut next[..missing]))?;
                    first.extend_from_slice(&next[..n]);
                    if n == 0 || n == missing {
                        let (first, bytes) = (std::mem::take(first), bytes.take());
                        *self = Decompressed::Known(decompressed(first, bytes)?);
                    }
                }
            }
        }
    }
}

fn decompressed(first: Vec<u8>, bytes: Option<Counted>) -> io::Result<Box<dyn Read + Send>> {
    let (gzip, zstandard) = (first.starts_with(GZIP), first.starts_with(ZSTANDARD));
    let rest: Box<dyn Read + Send> = match bytes {
        Some(bytes) => Box::new(bytes),
        None => Box::new(io::empty()),
    };
    let bytes = Cursor::new(first).chain(rest);
    Ok(if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, bytes)))
    } else if zstandard {
        Box::new(zstd::stream::read::Decoder::new(bytes)?)
    } else {
        Box::new(bytes)
    })
}

struct Counted {
    inner: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
