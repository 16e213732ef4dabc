//! Kinds of computation by the names that Python has for them.

use pyo3::prelude::*;
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::pooling::Pooling;

use crate::error;

/// Returns the activation of this name, one of `functional.ACTIVATIONS`.
pub fn activation_of(name: &str) -> PyResult<Activation> {
    Ok(match name {
        "identity" => Activation::Identity,
        "gelu" => Activation::Gelu,
        "gelu_tanh" => Activation::GeluTanh,
        "quick_gelu" => Activation::QuickGelu,
        "relu" => Activation::Relu,
        "silu" => Activation::Silu,
        "tanh" => Activation::Tanh,
        "sigmoid" => Activation::Sigmoid,
        "mish" => Activation::Mish,
        _ => return Err(error::input(format!("unknown activation {name:?}"))),
    })
}

/// Returns the pooling mode of this name, as sentence-transformers calls it.
pub fn pooling_of(name: &str) -> PyResult<Pooling> {
    Ok(match name {
        "cls" => Pooling::Cls,
        "max" => Pooling::Max,
        "mean" => Pooling::Mean,
        "mean_sqrt_len_tokens" => Pooling::MeanSqrtLenTokens,
        "weightedmean" => Pooling::WeightedMean,
        "lasttoken" => Pooling::LastToken,
        _ => return Err(error::input(format!("unknown pooling {name:?}"))),
    })
}
