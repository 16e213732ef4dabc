//! Infrastructure of the tokenizer and the kernels: threads, pools of scratch buffers, detection of instruction sets.
//!
//! - [`map_with`] applies a function to each item, on the calling thread and some [`Workers`].
//! - [`try_map_with`] does so with a function that can fail, and begins no item after one that did.
//! - [`fork_join`](fork_join()) runs one new thread for each item, in parallel to the calling thread, with cancellation.
//! - [`thread_pool`] returns a given number of workers, all of one pool. It is safe to call after a fork.
//! - [`available_processors`] is how many threads can run at the same time.
//! - [`interruptible`] runs a computation that ends early if the calling thread is interrupted; [`checkpoint`] is where.
//! - [`prefetch`](prefetch()) requests a cache line before it is read.
//! - [`ScratchPool`] keeps scratch buffers from one call to the next without a lock.
//! - [`cpu`] names the CPU, and knows what its feature flags do not report.
//! - [`instruction_set`] finds out which SIMD instructions the CPU supports, and proves it with capability tokens.
//!
//! Results never depend on the number of threads: the functions here return results in the order of the items, whichever
//! thread computed them.
//!
//! # Examples
//!
//! The calling thread and three others share out work; each has a buffer of its own.
//!
//! ```
//! use wordpiece_parallel::{map_with, thread_pool};
//!
//! let texts = vec!["new york", "york", ""];
//! let counts = map_with(texts, thread_pool(3), String::new, |buffer, text| {
//!     buffer.clear();
//!     buffer.extend(text.chars().filter(|c| *c != ' '));
//!     buffer.len()
//! });
//! assert_eq!(counts, [7, 4, 0]);
//! ```

#[cfg(target_arch = "x86_64")]
mod amx;
pub mod cpu;
mod fork_join;
pub mod instruction_set;
mod interrupt;
mod map;
mod pool;
mod prefetch;
mod processor;
mod scratch_pool;
#[doc(hidden)]
pub mod testing;

pub use fork_join::{Cancellation, fork_join};
pub use instruction_set::InstructionSet;
pub use interrupt::{Interrupted, checkpoint, interruptible};
pub use map::{map_with, try_map_with};
pub use pool::{Workers, thread_pool};
pub use prefetch::prefetch;
pub use processor::{allowed_processors, available_processors};
pub use scratch_pool::{Scratch, ScratchGuard, ScratchPool};
