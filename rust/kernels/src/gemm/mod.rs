//! Matrix products over packed weights: y = x·Wᵀ + b, and the [`Epilogue`] that follows while a tile is still in the cache.
//!
//! Weights are packed once, by panels of 32 outputs ([`PackedWeights`]); a product goes panel by panel, and within a panel
//! tile by tile. How many rows a tile has, and which thread computes a panel, does not change the order of the operations of
//! an element, so a row has the same bits whatever other rows are computed with it.

mod epilogue;
mod inputs;
mod int8;
mod linear;
mod pack;
mod panel;
mod products;

pub use epilogue::Epilogue;
pub use inputs::ConvertedInputs;
pub use int8::{BytePanel, QuantizedWeight, groups};
pub use linear::{Dense, ObservedInputs, linear, linear_to_rows, linear_unpacked};
pub(crate) use linear::{linear_of_converted, linear_panels, linear_rounded};
pub use pack::{PackedWeights, UnpackedWeights, WeightPanel};
pub use products::{Products, byte_products_name};
