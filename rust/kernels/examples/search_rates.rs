//! Measures exact search on one thread: `cargo run --release -p wordpiece-kernels --example search_rates`.
//!
//! For each instruction set, the gigabytes of a collection that are compared with one query in a second, and the nanoseconds
//! for a query and a vector of 384 numbers if there are 32 queries.

use std::hint::black_box;
use std::time::Instant;

use wordpiece_kernels::search::floats::{Metric, search};
use wordpiece_kernels::search::{bits, bytes};
use wordpiece_kernels::{Execution, InstructionSet};

const WIDTH: usize = 384;

/// The lowest time of 40 runs, in seconds.
fn best(mut call: impl FnMut()) -> f64 {
    let time = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64()
    };
    (0..40).map(|_| time(&mut call)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let rows = 1_000;
    let collection: Vec<f32> = (0..rows * WIDTH).map(|i| (i * 7919 % 1009) as f32 / 500.0 - 1.0).collect();
    let bytes: Vec<u8> = (0..rows * WIDTH).map(|i| (i * 7919 % 251) as u8).collect();
    let signed: Vec<i8> = bytes.iter().map(|&byte| byte.cast_signed()).collect();
    let report = |name: String, size: usize, one: f64, many: f64| {
        let pair = many * 1e9 / (32 * rows) as f64;
        println!("{name:24} {:6.1} GB/s {pair:8.2} ns", size as f64 / one / 1e9);
    };
    for set in InstructionSet::all_available() {
        let execution = Execution::on_this_thread(set);
        for metric in [Metric::Dot, Metric::Cosine, Metric::Euclidean, Metric::Manhattan] {
            let run = |queries: usize| {
                best(|| {
                    black_box(search(execution, &collection[..queries * WIDTH], &collection, WIDTH, metric, 10));
                })
            };
            report(format!("{} {metric:?}", set.name()), 4 * collection.len(), run(1), run(32));
        }
        let run = |queries: usize| {
            best(|| {
                black_box(bytes::search(execution, &signed[..queries * WIDTH], &bytes, WIDTH, false, 10));
            })
        };
        report(format!("{} bytes", set.name()), bytes.len(), run(1), run(32));
        let (packed, width) = (&bytes[..rows * WIDTH / 8], WIDTH / 8);
        let run = |queries: usize| {
            best(|| {
                black_box(bits::search(execution, &packed[..queries * width], packed, width, 10));
            })
        };
        report(format!("{} bits", set.name()), packed.len(), run(1), run(32));
    }
}
