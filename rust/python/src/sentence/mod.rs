//! What encoders of sentences compute beside the layers of a model.
//!
//! - `static_embeddings`: vectors of texts without a model's layers;
//! - `token_states`: the vectors of all tokens, over which `sparse` is the vocabulary head and `maxsim` compares texts.

pub mod maxsim;
mod sparse;
mod static_embeddings;
pub mod token_states;

pub use sparse::VocabularyHead;
pub use static_embeddings::StaticEmbeddings;
