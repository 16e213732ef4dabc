//! Writes one-dimensional arrays as `.npy` files, version 1.0, without knowing their lengths beforehand.
//!
//! A file is written under another name, synchronised and renamed when it is complete. A name in a folder therefore always
//! has a complete file.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;

use crate::error::{Error, Result};
use crate::files::unreadable_file;

/// The size of the header of every file: a multiple of 64, with room for a shape of 20 digits.
const HEADER_BYTES: usize = 128;

/// Bytes are written out once this many are waiting.
const BUFFER_BYTES: usize = 1 << 20;

/// The suffix of files that are not complete.
pub(super) const PART: &str = ".part";

/// A number that an array can hold.
pub trait Element: Copy {
    /// The type as NumPy writes it.
    const DESCR: &'static str;
    /// The number of bytes.
    const WIDTH: usize;
    /// Stores the number, little-endian.
    fn store(self, to: &mut [u8]);
}

macro_rules! element {
    ($($number:ty, $descr:literal;)*) => {$(
        impl Element for $number {
            const DESCR: &'static str = $descr;
            const WIDTH: usize = size_of::<$number>();

            #[inline]
            fn store(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
element! { u8, "|u1"; u16, "<u2"; u32, "<u4"; u64, "<u8"; i64, "<i8"; }

/// A complete file: its name in the folder, its size, and the CRC-32 of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The name.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The checksum, that of zlib.
    pub crc32: u32,
}

/// A file that is being written, whatever its format.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    part: PathBuf,
    target: PathBuf,
}

impl PartFile {
    /// Creates the file under the name of a part, in place of what a killed run left.
    pub fn create(target: PathBuf) -> Result<PartFile> {
        let mut part = target.clone().into_os_string();
        part.push(PART);
        let part = PathBuf::from(part);
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write_error(&part, &error)),
            _ => {}
        }
        let file = File::create_new(&part).map_err(|error| write_error(&part, &error))?;
        Ok(PartFile { file, part, target })
    }

    /// Writes bytes at the end.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| write_error(&self.target, &error))
    }

    /// Writes bytes at the start.
    pub fn write_at_start(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| write_error(&self.target, &error))
    }

    /// Gives the complete file its name.
    pub fn finish(self) -> Result<()> {
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.target));
        named.map_err(|error| write_error(&self.target, &error))
    }
}

/// Returns the error for a file that cannot be written.
pub(super) fn write_error(path: &Path, error: &io::Error) -> Error {
    unreadable_file(&path.display().to_string(), error)
}

/// Waits until the names of the files in a folder are on the disk. Does nothing where a folder cannot be opened.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    match File::open(folder) {
        Ok(file) if cfg!(unix) => file.sync_all().map_err(|error| write_error(folder, &error)),
        _ => Ok(()),
    }
}

/// Writes an array, from its first element to its last.
#[derive(Debug)]
pub struct NpyWriter {
    file: PartFile,
    name: String,
    buffer: Vec<u8>,
    crc: Crc,
    descr: &'static str,
    width: usize,
    /// The number of bytes of all elements.
    bytes: u64,
}

impl NpyWriter {
    /// Begins a file of elements of type `T`.
    ///
    /// # Errors
    ///
    /// The operating system's, as [`Error::FileUnreadable`]; so have all methods.
    pub fn create<T: Element>(folder: &Path, name: &str) -> Result<NpyWriter> {
        let mut file = PartFile::create(folder.join(name))?;
        file.write(&[0; HEADER_BYTES])?;
        Ok(NpyWriter {
            file,
            name: name.to_owned(),
            buffer: Vec::new(),
            crc: Crc::new(),
            descr: T::DESCR,
            width: T::WIDTH,
            bytes: 0,
        })
    }

    /// Appends elements, which must have the type of the file.
    ///
    /// # Errors
    ///
    /// See [`NpyWriter::create`].
    ///
    /// # Panics
    ///
    /// If the type is not that of the file.
    pub fn extend<T: Element>(&mut self, elements: impl ExactSizeIterator<Item = T>) -> Result<()> {
        assert_eq!(T::DESCR, self.descr, "the elements of {}", self.name);
        let at = self.buffer.len();
        self.buffer.resize(at + elements.len() * T::WIDTH, 0);
        for (to, element) in self.buffer[at..].chunks_exact_mut(T::WIDTH).zip(elements) {
            element.store(to);
        }
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.crc.update(&self.buffer);
        self.bytes += self.buffer.len() as u64;
        self.file.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    ///
    /// See [`NpyWriter::create`].
    pub fn finish(mut self) -> Result<FileEntry> {
        self.flush()?;
        let header = header(self.descr, self.bytes / self.width as u64);
        let mut crc = Crc::new();
        crc.update(&header);
        crc.combine(&self.crc);
        self.file.write_at_start(&header)?;
        self.file.finish()?;
        Ok(FileEntry { name: self.name, bytes: self.bytes + HEADER_BYTES as u64, crc32: crc.sum() })
    }
}

/// Returns the header of an array with one dimension.
fn header(descr: &str, length: u64) -> [u8; HEADER_BYTES] {
    let mut header = [b' '; HEADER_BYTES];
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}");
    header[..8].copy_from_slice(b"\x93NUMPY\x01\x00");
    header[8..10].copy_from_slice(&(HEADER_BYTES as u16 - 10).to_le_bytes());
    header[10..10 + text.len()].copy_from_slice(text.as_bytes());
    header[HEADER_BYTES - 1] = b'\n';
    header
}
