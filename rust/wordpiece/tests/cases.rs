//! Runs every case of `tests/data/cases` on every engine.
//!
//! To add an engine, implement [`case::Engine`] in a file next to `case/reference_engine.rs` and add a test here.

#[path = "case/mod.rs"]
mod case;
#[path = "support/engines.rs"]
mod engines;
#[path = "case/pipeline_engine.rs"]
mod pipeline_engine;
#[path = "case/reference_engine.rs"]
mod reference_engine;

#[test]
fn the_reference_implementation_passes_every_case() {
    case::run::<reference_engine::Reference>();
}

#[test]
fn the_pipeline_passes_every_case_on_every_instruction_set() {
    case::run::<pipeline_engine::Pipeline>();
}
