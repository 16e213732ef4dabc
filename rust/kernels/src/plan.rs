//! A model's layers as data.
//!
//! A plan says what a model computes. What stands in it for weights is its [`Form`]: their names, as a plan is read; what the
//! products of a forward pass need ([`encoder`](crate::encoder)); borrowed numbers, or the arrays of their gradients
//! ([`training`](crate::training)). [`Plan::with`] makes one form of the names, so that each kind of layer is described once.
//!
//! A layer is a list of sub-layers, [`Residual`]s, run one after the other:
//!
//! * BERT: attention and a feed-forward network, each with a norm `after` it;
//! * ModernBERT and others with norms first: the same with a norm `before` each, none after it, and a `last` norm in the plan;
//! * DeBERTa with a convolution: in the first layer a third sub-layer, which reads the input of the layer.
//!
//! A kind of layer is a struct with what it has of weights, as the types of the form, and of settings; a variant of [`Body`]
//! with its arm in `of_body`; `with`, which makes it in another form; and the traits of the two passes, `RunBody` of `encoder`
//! and `TrainedBody` of `training`. Nothing else matches on it.

use crate::activation::Activation;
use crate::norm::NormKind;

/// What stands in a plan for weights.
pub trait Form {
    /// A dense layer.
    type Dense;
    /// Queries, keys and values.
    type Joined;
    /// A norm.
    type Norm;
    /// A table of embeddings.
    type Table;
    /// What is added to scores by distance.
    type Bias;
    /// The terms of relative positions in scores.
    type Relative;
    /// A rate of dropout.
    type Rate;
}

/// The names of weights, without `.weight` and `.bias`.
pub struct Names;

impl Form for Names {
    type Dense = String;
    type Joined = [String; 3];
    type Norm = NamedNorm;
    type Table = NamedTable;
    type Bias = NamedBias;
    type Relative = NamedRelative;
    type Rate = String;
}

/// A norm by name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedNorm {
    /// The name of its weights.
    pub name: String,
    /// ε.
    pub eps: f32,
    /// What it computes.
    pub kind: NormKind,
}

/// A table by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTable {
    /// The name of its weight.
    pub name: String,
    /// The row that gets no gradient.
    pub fixed: Option<usize>,
}

/// A bias of the scores by name.
#[derive(Debug, Clone, PartialEq)]
pub enum NamedBias {
    /// A bias for each head and bucket of distances, from a table.
    Distances(String),
    /// ALiBi: a slope for each head.
    Slopes(Vec<f32>),
}

/// The terms of relative positions by name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRelative {
    /// The table of the rows of relative positions, and the norm that they go through.
    pub table: (String, Option<NamedNorm>),
    /// The dense layers from the rows to keys and to queries.
    pub terms: [Option<String>; 2],
    /// K, half the number of rows.
    pub span: usize,
    /// M, the distance from which on all have the outermost bucket.
    pub longest: Option<usize>,
    /// The dropout of the rows.
    pub dropout: String,
}

/// Self-attention and the dense layer after it.
///
/// With d the size of a head: c = softmax(scores)·v for each head, scores = (q·kᵀ + terms of relative positions)/√(d·terms) +
/// bias, and then a dense layer over the contexts of all heads. Keys that are masked, or farther away than the window, have the
/// weight 0.
pub struct Attention<F: Form> {
    /// Query, key and value, each [N·d, H].
    pub qkv: F::Joined,
    /// The dense layer after it [H, N·d].
    pub output: F::Dense,
    /// N.
    pub heads: usize,
    /// The norms of queries and keys, over N·d columns.
    pub norms: Option<[F::Norm; 2]>,
    /// The number of the frequencies that queries and keys are rotated by.
    pub rotary: Option<usize>,
    /// The greatest distance from a query to a key that it sees; `None` if it sees all.
    pub window: Option<usize>,
    /// What is added to the scores.
    pub bias: Option<F::Bias>,
    /// The further terms of the scores.
    pub relative: Option<F::Relative>,
    /// How many terms the scores are sums of.
    pub terms: usize,
    /// Whether masked queries have equal weights for all keys.
    pub masked_sees_all: bool,
    /// The dropout of the weights.
    pub dropout: F::Rate,
}

/// A feed-forward network: W₂·f(W₁·x + b₁) + b₂, or with a gate W₂·(f(W_gate·x) ⊙ W_up·x) + b₂.
pub struct Mlp<F: Form> {
    /// The first dense layer [F, H]; in a gated network the gate.
    pub inner: F::Dense,
    /// What is multiplied by the gate.
    pub up: Option<F::Dense>,
    /// The second dense layer [H, F].
    pub output: F::Dense,
    /// The function after the first dense layer.
    pub activation: Activation,
    /// The dropout before the second.
    pub dropout: F::Rate,
}

/// A convolution over neighbouring tokens of the input of the layer that it is in, as a dense layer over them side by side.
///
/// y = f(dropout(W·[x₋; x; x₊] + b)), and 0 for masked tokens; beyond the ends of a sequence x is 0.
pub struct Convolution<F: Form> {
    /// The dense layer.
    pub dense: F::Dense,
    /// How many tokens an output is computed from, an odd number.
    pub width: usize,
    /// The function of its output.
    pub activation: Activation,
    /// The dropout before the activation.
    pub dropout: F::Rate,
}

/// What a sub-layer computes.
pub enum Body<F: Form> {
    /// Attention.
    Attention(Attention<F>),
    /// A feed-forward network.
    Mlp(Mlp<F>),
    /// A convolution.
    Convolution(Convolution<F>),
}

/// Evaluates an expression for a body, whichever kind of layer it is.
macro_rules! of_body {
    ($body:expr, $of:ident => $value:expr) => {
        match $body {
            $crate::plan::Body::Attention($of) => $value,
            $crate::plan::Body::Mlp($of) => $value,
            $crate::plan::Body::Convolution($of) => $value,
        }
    };
}

pub(crate) use of_body;

/// A sub-layer: y = after(x + dropout(body(before(x)))), and with `again` y′ = again(x + y).
pub struct Residual<F: Form> {
    /// What it computes.
    pub body: Body<F>,
    /// The norm before it.
    pub before: Option<F::Norm>,
    /// The norm after the residual.
    pub after: Option<F::Norm>,
    /// The norm after a second residual.
    pub again: Option<F::Norm>,
    /// The dropout of the body's output.
    pub dropout: F::Rate,
    /// Whether masked tokens are 0 after it.
    pub masked: bool,
}

/// What follows the sum of the embeddings.
pub enum Step<F: Form> {
    /// A norm, after which come masking and dropout.
    Norm(F::Norm),
    /// A dense layer.
    Dense(F::Dense),
}

/// The input of the first layer: sums of rows of tables, then norms and dense layers.
pub struct Embeddings<F: Form> {
    /// The table of words, if tokens have no vectors.
    pub words: Option<F::Table>,
    /// The table of positions.
    pub positions: Option<F::Table>,
    /// The table of token types.
    pub types: Option<F::Table>,
    /// The table of tasks.
    pub tasks: Option<F::Table>,
    /// What follows.
    pub then: Vec<Step<F>>,
    /// Whether masked tokens are 0.
    pub masked: bool,
    /// The dropout after the norm, or after the sum without one.
    pub dropout: F::Rate,
}

/// A model.
pub struct Plan<F: Form> {
    /// The input of the first layer.
    pub embeddings: Embeddings<F>,
    /// The sub-layers of each layer.
    pub layers: Vec<Vec<Residual<F>>>,
    /// The norm after the layers.
    pub last: Option<F::Norm>,
}

/// Gives what stands for weights in a form, by their names.
pub trait Weights<F: Form> {
    /// Why there is none.
    type Error;
    /// Returns a dense layer.
    fn dense(&mut self, name: &str) -> Result<F::Dense, Self::Error>;
    /// Returns queries, keys and values.
    fn joined(&mut self, names: &[String; 3]) -> Result<F::Joined, Self::Error>;
    /// Returns a norm.
    fn norm(&mut self, norm: &NamedNorm) -> Result<F::Norm, Self::Error>;
    /// Returns a table.
    fn table(&mut self, table: &NamedTable) -> Result<F::Table, Self::Error>;
    /// Returns a bias of scores.
    fn bias(&mut self, bias: &NamedBias) -> Result<F::Bias, Self::Error>;
    /// Returns the relative positions of an attention.
    fn relative(&mut self, relative: &NamedRelative, of: &Attention<Names>) -> Result<F::Relative, Self::Error>;
    /// Returns a rate of dropout.
    fn rate(&mut self, name: &str) -> F::Rate;
}

impl Plan<Names> {
    /// Returns the plan in another form.
    ///
    /// # Errors
    ///
    /// What `weights` gives.
    pub fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Plan<F>, W::Error> {
        let first = &self.embeddings;
        let table =
            |table: &Option<NamedTable>, weights: &mut W| table.as_ref().map(|table| weights.table(table)).transpose();
        let embeddings = Embeddings {
            words: table(&first.words, weights)?,
            positions: table(&first.positions, weights)?,
            types: table(&first.types, weights)?,
            tasks: table(&first.tasks, weights)?,
            then: first.then.iter().map(|step| step.with(weights)).collect::<Result<_, _>>()?,
            masked: first.masked,
            dropout: weights.rate(&first.dropout),
        };
        let layers = self.layers.iter().map(|layer| layer.iter().map(|residual| residual.with(weights)).collect());
        Ok(Plan { embeddings, layers: layers.collect::<Result<_, _>>()?, last: norm(&self.last, weights)? })
    }
}

impl Step<Names> {
    fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Step<F>, W::Error> {
        Ok(match self {
            Step::Norm(norm) => Step::Norm(weights.norm(norm)?),
            Step::Dense(name) => Step::Dense(weights.dense(name)?),
        })
    }
}

impl Residual<Names> {
    fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Residual<F>, W::Error> {
        let body = of_body!(&self.body, body => body.with(weights)?);
        Ok(Residual {
            body,
            before: norm(&self.before, weights)?,
            after: norm(&self.after, weights)?,
            again: norm(&self.again, weights)?,
            dropout: weights.rate(&self.dropout),
            masked: self.masked,
        })
    }
}

impl Attention<Names> {
    fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Body<F>, W::Error> {
        let norms = match &self.norms {
            Some([query, key]) => Some([weights.norm(query)?, weights.norm(key)?]),
            None => None,
        };
        Ok(Body::Attention(Attention {
            qkv: weights.joined(&self.qkv)?,
            output: weights.dense(&self.output)?,
            heads: self.heads,
            norms,
            rotary: self.rotary,
            window: self.window,
            bias: self.bias.as_ref().map(|bias| weights.bias(bias)).transpose()?,
            relative: self.relative.as_ref().map(|relative| weights.relative(relative, self)).transpose()?,
            terms: self.terms,
            masked_sees_all: self.masked_sees_all,
            dropout: weights.rate(&self.dropout),
        }))
    }
}

impl Mlp<Names> {
    fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Body<F>, W::Error> {
        Ok(Body::Mlp(Mlp {
            inner: weights.dense(&self.inner)?,
            up: self.up.as_ref().map(|up| weights.dense(up)).transpose()?,
            output: weights.dense(&self.output)?,
            activation: self.activation,
            dropout: weights.rate(&self.dropout),
        }))
    }
}

impl Convolution<Names> {
    fn with<F: Form, W: Weights<F>>(&self, weights: &mut W) -> Result<Body<F>, W::Error> {
        Ok(Body::Convolution(Convolution {
            dense: weights.dense(&self.dense)?,
            width: self.width,
            activation: self.activation,
            dropout: weights.rate(&self.dropout),
        }))
    }
}

fn norm<F: Form, W: Weights<F>>(norm: &Option<NamedNorm>, weights: &mut W) -> Result<Option<F::Norm>, W::Error> {
    norm.as_ref().map(|norm| weights.norm(norm)).transpose()
}

impl<F: Form> Residual<F> {
    /// Returns the attention, if that is what it computes.
    pub fn attention(&self) -> Option<&Attention<F>> {
        match &self.body {
            Body::Attention(attention) => Some(attention),
            _ => None,
        }
    }
}
