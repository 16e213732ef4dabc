//! Structures of the Arrow C interface over our own buffers.
//!
//! A [`Field`] becomes an [`ArrowSchema`], [`ArrayParts`] become an [`ArrowArray`], and [`stream`] makes a stream of both.
//! The structures own everything that they point to and drop it when their `release` is called.

use std::borrow::Cow;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use crate::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, CStructure};

/// A data type, and the name of the column that has it.
#[derive(Debug, Clone)]
pub struct Field {
    /// The type as a [format string](https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings).
    pub format: Cow<'static, str>,
    /// The column's name.
    pub name: String,
    /// Whether rows may be null.
    pub is_nullable: bool,
    /// The types of lists' items or of a table's columns.
    pub children: Vec<Field>,
    /// The type of the values, if the type is a dictionary's: `format` is then the format of the indices.
    pub dictionary: Option<Box<Field>>,
}

impl Field {
    /// Returns a nullable field without children.
    pub fn new(format: impl Into<Cow<'static, str>>, name: impl Into<String>) -> Field {
        Field { format: format.into(), name: name.into(), is_nullable: true, children: Vec::new(), dictionary: None }
    }

    /// Replaces the children.
    pub fn with_children(self, children: impl IntoIterator<Item = Field>) -> Field {
        Field { children: children.into_iter().collect(), ..self }
    }

    /// Makes this the type of indices into a dictionary of `values`.
    pub fn with_dictionary(self, values: Field) -> Field {
        Field { dictionary: Some(Box::new(values)), ..self }
    }

    /// Returns the field as a structure. Format and name end at their first zero character, as C strings do.
    pub fn schema(&self) -> ArrowSchema {
        const NULLABLE: i64 = 2;
        let mut owned = Box::new(SchemaOwner {
            format: c_string(&self.format),
            name: c_string(&self.name),
            children: boxed(self.children.iter().map(Field::schema)),
            dictionary: self.dictionary.as_ref().map(|values| boxed([values.schema()])[0]),
        });
        ArrowSchema {
            format: owned.format.as_ptr(),
            name: owned.name.as_ptr(),
            metadata: ptr::null(),
            flags: if self.is_nullable { NULLABLE } else { 0 },
            n_children: owned.children.len() as i64,
            children: owned.children.as_mut_ptr(),
            dictionary: owned.dictionary.unwrap_or(ptr::null_mut()),
            release: Some(release_schema),
            private_data: Box::into_raw(owned).cast(),
        }
    }
}

/// Returns a C string with the characters before the first zero.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).expect("cut before the first zero")
}

/// The memory that a schema points to.
struct SchemaOwner {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: Option<*mut ArrowSchema>,
}

/// Moves structures to the heap, so that another structure can point to them.
fn boxed<T>(structures: impl IntoIterator<Item = T>) -> Vec<*mut T> {
    structures.into_iter().map(|structure| Box::into_raw(Box::new(structure))).collect()
}

/// Drops structures on the heap: releases those that the consumer has not moved elsewhere, and frees all.
///
/// # Safety
///
/// The pointers come from [`boxed`] and are not used afterwards.
unsafe fn drop_boxed<T>(structures: impl IntoIterator<Item = *mut T>) {
    for structure in structures {
        // SAFETY: by this function's contract the pointer comes from `Box::into_raw` and is not used again. A structure that
        // a consumer has moved elsewhere was left released, so that dropping it only frees the box.
        drop(unsafe { Box::from_raw(structure) });
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the specification lets only the owner call `release`, once, with a valid structure. Only `Field::schema`
    // makes structures with this function, and their `private_data` is a boxed `SchemaOwner`.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        drop_boxed(owner.children.iter().copied().chain(owner.dictionary));
        (*schema).release = None;
    }
}

/// Memory that an array points to.
pub enum Buffer {
    /// No memory: as the validity bitmap it means that no row is null.
    Absent,
    /// Bytes, such as text or a bitmap.
    Bytes(Vec<u8>),
    /// 64-bit numbers, such as offsets.
    Int64(Vec<i64>),
    /// Memory of some other owner.
    Shared(SharedBuffer),
}

impl Buffer {
    fn as_ptr(&self) -> *const c_void {
        match self {
            Buffer::Absent => ptr::null(),
            Buffer::Bytes(bytes) => bytes.as_ptr().cast(),
            Buffer::Int64(numbers) => numbers.as_ptr().cast(),
            Buffer::Shared(shared) => shared.pointer,
        }
    }
}

/// Memory that lives as long as an owner, who is dropped with the array: on any thread, at any time.
pub struct SharedBuffer {
    pointer: *const c_void,
    _owner: Box<dyn Send>,
}

impl SharedBuffer {
    /// Returns the memory at `pointer`, which `owner` keeps alive.
    ///
    /// # Safety
    ///
    /// The memory is as long as the array that it becomes part of requires, and nobody frees or writes to it before `owner` is
    /// dropped.
    pub unsafe fn new(pointer: *const c_void, owner: Box<dyn Send>) -> SharedBuffer {
        SharedBuffer { pointer, _owner: owner }
    }
}

/// The parts of an array, not checked against each other or against a type.
pub struct ArrayParts {
    /// The number of rows.
    pub length: i64,
    /// The number of null rows, or −1.
    pub null_count: i64,
    /// The number of rows in the buffers before the first row.
    pub offset: i64,
    /// The buffers, in the order that the type prescribes.
    pub buffers: Vec<Buffer>,
    /// The children, in the order of the type's children.
    pub children: Vec<ArrowArray>,
    /// The values of a dictionary.
    pub dictionary: Option<ArrowArray>,
}

impl ArrayParts {
    /// Returns the parts as a structure, which owns them.
    pub fn into_array(self) -> ArrowArray {
        let mut owned = Box::new(ArrayOwner {
            pointers: self.buffers.iter().map(Buffer::as_ptr).collect(),
            _buffers: self.buffers,
            children: boxed(self.children),
            dictionary: self.dictionary.map(|values| boxed([values])[0]),
        });
        ArrowArray {
            length: self.length,
            null_count: self.null_count,
            offset: self.offset,
            n_buffers: owned.pointers.len() as i64,
            n_children: owned.children.len() as i64,
            buffers: owned.pointers.as_mut_ptr(),
            children: owned.children.as_mut_ptr(),
            dictionary: owned.dictionary.unwrap_or(ptr::null_mut()),
            release: Some(release_array),
            private_data: Box::into_raw(owned).cast(),
        }
    }
}

/// Returns an array without offset or dictionary. Buffers and children must be those that the intended type prescribes.
pub fn array(length: usize, null_count: usize, buffers: Vec<Buffer>, children: Vec<ArrowArray>) -> ArrowArray {
    let (length, null_count) = (length as i64, null_count as i64);
    ArrayParts { length, null_count, offset: 0, buffers, children, dictionary: None }.into_array()
}

/// The memory that an array points to.
struct ArrayOwner {
    /// The addresses of the buffers.
    pointers: Vec<*const c_void>,
    _buffers: Vec<Buffer>,
    children: Vec<*mut ArrowArray>,
    dictionary: Option<*mut ArrowArray>,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the specification lets only the owner call `release`, once, with a valid structure. Only
    // `ArrayParts::into_array` makes structures with this function, and their `private_data` is a boxed `ArrayOwner`.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        drop_boxed(owner.children.iter().copied().chain(owner.dictionary));
        (*array).release = None;
    }
}

/// Returns a stream of one array, which has the type `field`.
pub fn stream(field: Field, array: ArrowArray) -> ArrowArrayStream {
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(StreamOwner { field, array: Some(array) })).cast(),
    }
}

/// The contents of a stream.
struct StreamOwner {
    field: Field,
    /// `None` once it was yielded.
    array: Option<ArrowArray>,
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the specification demands a stream that is not released and memory at `out` that owns nothing. Only
    // `stream` makes streams with this function, and their `private_data` is a boxed `StreamOwner`.
    unsafe { out.write((*(*stream).private_data.cast::<StreamOwner>()).field.schema()) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for `get_schema`; the specification forbids concurrent calls, so the reference is unique. A released array
    // marks the end of the stream.
    unsafe {
        let owner = &mut *(*stream).private_data.cast::<StreamOwner>();
        out.write(owner.array.take().unwrap_or_else(ArrowArray::released));
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the specification lets only the owner call `release`, once, with a valid structure. Only `stream` makes
    // structures with this function, and their `private_data` is a boxed `StreamOwner`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamOwner>()));
        (*stream).release = None;
    }
}
