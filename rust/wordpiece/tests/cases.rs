//! Every case of `tests/data/cases` through every engine.
//!
//! To add an engine, implement [`case::Engine`] for it beside `case/reference_engine.rs` and give it a test here.

#[path = "case/mod.rs"]
mod case;
#[path = "case/pipeline_engine.rs"]
mod pipeline_engine;
#[path = "case/reference_engine.rs"]
mod reference_engine;

#[test]
fn the_reference_tokenizer_answers_every_case() {
    case::run::<reference_engine::Reference>();
}

#[test]
fn the_pipeline_answers_every_case_on_every_path() {
    case::run::<pipeline_engine::Pipeline>();
}
