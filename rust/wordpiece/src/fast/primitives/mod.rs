//! The operations of the fast path that have an implementation for each instruction set.
//!
//! [`Primitives`] is a small set of operations on 64 bytes or 16 words. The scan and the lookup are written once, as
//! loops over them, and compiled for each instruction set. An implementation is a capability token, a zero-sized type
//! that can be constructed only on a CPU with the instructions; the operations of all of them return exactly what
//! [`Scalar`]'s do.
//!
//! Nothing here loops over a text, allocates, or uses the table: these modules import plain data only.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod operations;
mod scalar;

pub(super) use operations::{BLOCK, Primitives};
pub(super) use scalar::Scalar;
