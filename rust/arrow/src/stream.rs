//! Reads a stream of arrays to its end.

use std::ffi::c_int;

use crate::abi::{self, ArrowArray, ArrowArrayStream, ArrowSchema, CStructure};
use crate::problem::Problem;

/// Returns the schema and the arrays of a stream, and releases the stream.
///
/// The producer may block, for example on a lock or on a file: call this without holding an interpreter lock.
///
/// # Errors
///
/// [`Problem::StreamFailed`] if a function of the stream fails, [`Problem::Malformed`] if the stream has no such function or
/// no schema.
pub fn read_stream(mut stream: ArrowArrayStream) -> Result<(ArrowSchema, Vec<ArrowArray>), Problem> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(Problem::malformed("a stream lacks its functions"));
    };
    let mut schema = ArrowSchema::released();
    // SAFETY: a stream with functions is not released and obeys the specification (see `abi`), by which `get_schema` may
    // be called with it and with the address of a structure that owns nothing. Both outlive the call.
    let code = unsafe { get_schema(&mut stream, &mut schema) };
    check(&mut stream, code)?;
    if schema.is_released() {
        return Err(Problem::malformed("a stream has no type"));
    }
    let mut arrays = Vec::new();
    loop {
        let mut array = ArrowArray::released();
        // SAFETY: as for `get_schema`; a stream may be asked for arrays until it yields a released one, which ends the loop.
        let code = unsafe { get_next(&mut stream, &mut array) };
        check(&mut stream, code)?;
        if array.is_released() {
            return Ok((schema, arrays));
        }
        arrays.push(array);
    }
}

/// Returns the stream's own error if the code that one of its functions returned is not zero.
fn check(stream: &mut ArrowArrayStream, code: c_int) -> Result<(), Problem> {
    if code == 0 {
        return Ok(());
    }
    let message = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: the stream is not released and one of its functions has just failed, which is when the specification lets
        // `get_last_error` be called. It returns null or a C string that lives until the next call; it is copied before.
        unsafe { abi::text(get_last_error(stream)) }.map(str::to_owned)
    });
    Err(Problem::StreamFailed { code, message })
}
