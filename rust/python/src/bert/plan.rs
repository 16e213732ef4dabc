//! A model's plan, read from the Python objects of `wordpiece_bert.bert.plan.parts` by the names of their fields.
//!
//! This is the only place that knows these objects: the encoder that runs and the one that is trained are both made from what
//! it returns.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::norm::NormKind;
use wordpiece_kernels::plan::{
    Attention, Body, Convolution, Embeddings, Mlp, NamedBias, NamedNorm, NamedRelative, NamedTable, Names, Plan,
    Residual, Step,
};

use super::names::activation_of;
use crate::error::{self, guarded};
use crate::text::Utf8String;

/// What queries and keys are rotated by: the size of a head, θ and a factor.
type Rotary = (usize, f64, f64);

/// Reads a plan.
///
/// # Errors
///
/// InputError if it has a part that the kernels do not compute.
pub fn read(plan: &Bound<'_, PyAny>) -> PyResult<Plan<Names>> {
    let mut reader = Reader::default();
    let embeddings = reader.embeddings(&plan.getattr("embeddings")?)?;
    let mut layers = Vec::new();
    for layer in plan.getattr("layers")?.try_iter()? {
        layers.push(layer?.try_iter()?.map(|part| reader.residual(&part?)).collect::<PyResult<Vec<_>>>()?);
    }
    Ok(Plan { embeddings, layers, last: norm(plan, "last")? })
}

/// Refuse a plan that has a part which the kernels do not compute, before any weight is packed.
#[pyfunction]
pub fn check_plan(plan: &Bound<'_, PyAny>) -> PyResult<()> {
    guarded(|| read(plan).map(drop))
}

/// Returns the plan with each layer of the same weights once, and the number of each layer's in it.
pub fn each_once(mut plan: Plan<Names>) -> (Plan<Names>, Vec<usize>) {
    let of = |layer: &[Residual<Names>]| layer.iter().find_map(Residual::attention).map(|one| one.qkv[0].clone());
    let mut names = Vec::new();
    let mut uses = Vec::with_capacity(plan.layers.len());
    plan.layers.retain(|layer| {
        let name = of(layer);
        let known = names.iter().position(|other| *other == name);
        uses.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name);
        }
        known.is_none()
    });
    (plan, uses)
}

#[derive(Default)]
struct Reader {
    /// The rotary positions that occurred, in the order in which their frequencies are given.
    rotary: Vec<Rotary>,
}

impl Reader {
    fn embeddings(&self, part: &Bound<'_, PyAny>) -> PyResult<Embeddings<Names>> {
        let table = |reads: &str| -> PyResult<Option<NamedTable>> {
            let table = part.call_method1("table", (reads,))?;
            if table.is_none() {
                return Ok(None);
            }
            Ok(Some(NamedTable { name: text(&table, "name")?, fixed: field(&table, "fixed")? }))
        };
        let step = |step: Bound<'_, PyAny>| -> PyResult<Step<Names>> {
            match &*kind(&step)? {
                "Norm" => Ok(Step::Norm(named_norm(&step)?)),
                "Dense" => Ok(Step::Dense(text(&step, "name")?)),
                other => Err(unknown(other)),
            }
        };
        Ok(Embeddings {
            words: table("ids")?,
            positions: table("positions")?,
            types: table("types")?,
            tasks: table("tasks")?,
            then: part.getattr("then")?.try_iter()?.map(|part| step(part?)).collect::<PyResult<_>>()?,
            masked: field(part, "masked")?,
            dropout: text(part, "dropout")?,
        })
    }

    fn residual(&mut self, part: &Bound<'_, PyAny>) -> PyResult<Residual<Names>> {
        let body = part.getattr("body")?;
        let dropout = || text(&body, "dropout");
        let body = match &*kind(&body)? {
            "Attention" => Body::Attention(self.attention(&body)?),
            "Mlp" => {
                let mut inner: Vec<String> = names(&body.getattr("inner")?)?;
                let up = (inner.len() == 2).then(|| inner.remove(1));
                Body::Mlp(Mlp {
                    inner: inner.pop().ok_or_else(|| unknown("Mlp without dense layers"))?,
                    up,
                    output: dense(&body, "output")?,
                    activation: activation(&body)?,
                    dropout: dropout()?,
                })
            }
            "Convolution" => Body::Convolution(Convolution {
                dense: text(&body, "name")?,
                width: field(&body, "width")?,
                activation: activation(&body)?,
                dropout: dropout()?,
            }),
            other => return Err(unknown(other)),
        };
        Ok(Residual {
            body,
            before: norm(part, "before")?,
            after: norm(part, "after")?,
            again: norm(part, "again")?,
            dropout: text(part, "dropout")?,
            masked: field(part, "masked")?,
        })
    }

    fn attention(&mut self, part: &Bound<'_, PyAny>) -> PyResult<Attention<Names>> {
        let norms = part.getattr("norms")?;
        let norms = if norms.is_none() {
            None
        } else {
            Some([named_norm(&norms.get_item(0)?)?, named_norm(&norms.get_item(1)?)?])
        };
        let (terms, masked_sees_all): (usize, bool) = (field(part, "terms")?, field(part, "masked_sees_all")?);
        let relative = self.relative(&part.getattr("relative")?)?;
        if !masked_sees_all && (relative.is_some() || terms != 1) {
            let message = "the kernels have no Attention with relative positions whose masked queries see no key";
            return Err(error::input(message.into()));
        }
        Ok(Attention {
            qkv: [dense(part, "query")?, dense(part, "key")?, dense(part, "value")?],
            output: dense(part, "output")?,
            heads: field(part, "heads")?,
            norms,
            rotary: self.rotary(&part.getattr("rotary")?)?,
            window: field(part, "window")?,
            bias: bias(&part.getattr("bias")?)?,
            relative,
            terms,
            masked_sees_all,
            dropout: text(part, "dropout")?,
        })
    }

    fn rotary(&mut self, part: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if part.is_none() {
            return Ok(None);
        }
        let rotary = (field(part, "size")?, field(part, "theta")?, field(part, "factor")?);
        let place = self.rotary.iter().position(|known| *known == rotary).unwrap_or_else(|| {
            self.rotary.push(rotary);
            self.rotary.len() - 1
        });
        Ok(Some(place))
    }

    /// Returns the terms of relative positions; `None` for a table that no term reads.
    fn relative(&self, part: &Bound<'_, PyAny>) -> PyResult<Option<NamedRelative>> {
        if part.is_none() {
            return Ok(None);
        }
        let term = |name: &str| -> PyResult<Option<String>> {
            let dense = part.getattr(name)?;
            if dense.is_none() { Ok(None) } else { text(&dense, "name").map(Some) }
        };
        let terms = [term("keys")?, term("queries")?];
        if terms == [None, None] {
            return Ok(None);
        }
        let (longest, table) = (field::<usize>(part, "longest")?, text(&part.getattr("table")?, "name")?);
        Ok(Some(NamedRelative {
            table: (table, norm(part, "norm")?),
            terms,
            span: field(part, "span")?,
            longest: (longest > 0).then_some(longest),
            dropout: text(part, "dropout")?,
        }))
    }
}

fn field<'py, T: FromPyObjectOwned<'py>>(part: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    let value = part.getattr(name)?;
    value.extract::<T>().map_err(Into::into)
}

fn text(part: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    Ok(field::<Utf8String>(part, name)?.0)
}

fn kind(part: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(part.get_type().name()?.to_string())
}

fn unknown(part: &str) -> PyErr {
    error::input(format!("the kernels have no part {part}: load the model with backend='numpy'"))
}

/// Returns the name of the dense layer that is a field of a part.
fn dense(part: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    text(&part.getattr(name)?, "name")
}

fn names(parts: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    parts.try_iter()?.map(|part| text(&part?, "name")).collect()
}

fn norm(part: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<NamedNorm>> {
    let norm = part.getattr(name)?;
    if norm.is_none() { Ok(None) } else { named_norm(&norm).map(Some) }
}

fn named_norm(part: &Bound<'_, PyAny>) -> PyResult<NamedNorm> {
    let kind = match &*text(part, "kind")? {
        "layer" => NormKind::Layer,
        "rms" => NormKind::Rms,
        other => return Err(unknown(&format!("Norm of kind {other:?}"))),
    };
    Ok(NamedNorm { name: text(part, "name")?, eps: field(part, "eps")?, kind })
}

fn bias(part: &Bound<'_, PyAny>) -> PyResult<Option<NamedBias>> {
    if part.is_none() {
        return Ok(None);
    }
    match &*kind(part)? {
        "Distances" => Ok(Some(NamedBias::Distances(dense(part, "table")?))),
        "Slopes" => Ok(Some(NamedBias::Slopes(field(part, "slopes")?))),
        other => Err(unknown(other)),
    }
}

/// Returns the function of a part, which Python may have under several names.
fn activation(part: &Bound<'_, PyAny>) -> PyResult<Activation> {
    let known = part.py().import("wordpiece_bert.bert.functional")?.getattr("ACTIVATIONS")?;
    let function = known.get_item(part.getattr("activation")?)?;
    activation_of(&text(&function, "__name__")?)
}
