//! Buffers of ours → the structures of Arrow, which own them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use pyo3::prelude::*;

use crate::arrow::abi::{Array, Schema, Stream, Structure};

/// A type, with the name of the column that has it.
#[derive(Clone)]
pub struct Field {
    pub format: &'static str,
    pub name: String,
    pub nullable: bool,
    pub children: Vec<Field>,
}

impl Field {
    /// As the interface has it; a name ends at a zero, as it does there.
    pub fn schema(&self) -> Schema {
        const NULLABLE: i64 = 2;
        let format = CString::new(self.format).expect("formats have no zeros");
        let name = self.name.split('\0').next().unwrap_or_default();
        let name = CString::new(name).expect("cut before the first zero");
        let mut children = boxed(self.children.iter().map(Field::schema).collect());
        let (format_at, name_at, children_at) = (format.as_ptr(), name.as_ptr(), children.as_mut_ptr());
        let n_children = children.len() as i64;
        Schema {
            format: format_at,
            name: name_at,
            metadata: ptr::null(),
            flags: if self.nullable { NULLABLE } else { 0 },
            n_children,
            children: children_at,
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(Box::new(SchemaParts { _format: format, _name: name, children })).cast(),
        }
    }
}

struct SchemaParts {
    _format: CString,
    _name: CString,
    children: Vec<*mut Schema>,
}

/// Structures where they can be pointed to.
fn boxed<T>(structures: Vec<T>) -> Vec<*mut T> {
    structures.into_iter().map(|structure| Box::into_raw(Box::new(structure))).collect()
}

/// Releases the children that nobody has taken over.
///
/// # Safety
///
/// They come from [`boxed`] and are not used any more.
unsafe fn drop_boxed<T>(structures: &[*mut T]) {
    // SAFETY: by contract; of one that was moved elsewhere the release is gone, and only the box is left.
    structures.iter().for_each(|&structure| drop(unsafe { Box::from_raw(structure) }));
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the caller owns the structure, which `Field::schema` made and which is released once.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        drop_boxed(&parts.children);
        (*schema).release = None;
    }
}

/// Memory that an array points to.
pub enum Buffer {
    /// None: no row is null.
    Absent,
    Bytes(Vec<u8>),
    Numbers(Vec<i64>),
    Held(Held),
}

impl Buffer {
    fn pointer(&self) -> *const c_void {
        match self {
            Buffer::Absent => ptr::null(),
            Buffer::Bytes(bytes) => bytes.as_ptr().cast(),
            Buffer::Numbers(numbers) => numbers.as_ptr().cast(),
            Buffer::Held(held) => held.pointer,
        }
    }
}

/// Memory of a Python object, which is let go of wherever the last reader is done: on any thread, at any time.
pub struct Held {
    pointer: *const c_void,
    object: Option<Py<PyAny>>,
}

impl Held {
    /// Holds the object that has what is at `pointer`.
    pub fn new(pointer: *const c_void, object: &Bound<'_, PyAny>) -> Held {
        Held { pointer, object: Some(object.clone().unbind()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut object = self.object.take();
        Python::try_attach(|_| drop(object.take()));
        // When the interpreter is ending, nobody counts any more.
        std::mem::forget(object);
    }
}

struct ArrayParts {
    _buffers: Vec<Buffer>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

/// An array over buffers and children, as its type wants them.
pub fn array(length: usize, null_count: usize, buffers: Vec<Buffer>, children: Vec<Array>) -> Array {
    let mut parts = Box::new(ArrayParts {
        pointers: buffers.iter().map(Buffer::pointer).collect(),
        _buffers: buffers,
        children: boxed(children),
    });
    Array {
        length: length as i64,
        null_count: null_count as i64,
        offset: 0,
        n_buffers: parts.pointers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.pointers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: the caller owns the structure, which `array` made and which is released once.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        drop_boxed(&parts.children);
        (*array).release = None;
    }
}

/// A stream of one array.
pub fn stream(field: Field, array: Array) -> Stream {
    Stream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(StreamParts { field, array: Some(array) })).cast(),
    }
}

struct StreamParts {
    field: Field,
    array: Option<Array>,
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: the stream is one of `stream`'s that is not released, and what is at `out` owns nothing yet.
    unsafe { out.write((*(*stream).private_data.cast::<StreamParts>()).field.schema()) };
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as above; an empty array says that there are no more.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        out.write(parts.array.take().unwrap_or_else(Array::empty));
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: the caller owns the structure, which `stream` made and which is released once.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}
