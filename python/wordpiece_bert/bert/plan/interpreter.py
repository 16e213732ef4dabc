"""Computes a plan in NumPy, forward and back: one step for each kind of part.

A step returns its result and the function that takes the gradient back through it. Inference asks for no gradients: its
steps return no such function, and keep nothing. How tokens are laid out, what of each other they see, and where dropout
falls, is not of a plan: that is the `Rows` of a pass. The formulas are in `wordpiece_bert.bert.functional` and, with
their derivatives, in `wordpiece_bert.bert.gradients`. Comments denote shapes as there; … stands for the tokens: [B, S]
in inference, [M] without padding in training.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, cast

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.bert.functional import RelativeTerms
from wordpiece_bert.bert.plan.parts import Attention, Convolution, Dense, Distances, Mlp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.plan.parts import Norm, Plan, Relative, Residual, Table

#: Takes the gradient with respect to a step's result to that with respect to its input.
Back = Callable[["Array"], "Array"]


class Weights(Protocol):
    """The weights of a model by BERT's names, and what receives their gradients."""

    def get(self, name: str) -> Array | None:
        """Return a weight in float32 (in training, in the type of the parameters); None if the model has none."""

    def rows(self, name: str, ids: Ids) -> Array:
        """Return rows of the weight of a table, [...] -> [..., E]."""

    def add(self, name: str, weight: Array, bias: Array | None = None) -> None:
        """Add the gradients of the weight of a dense layer, norm or table, and of the bias where it has one."""


class Rows(Protocol):
    """The tokens of a pass: what they read from tables, and what of each other they see."""

    #: Word vectors that are given in place of ids, [..., E].
    vectors: Array | None
    #: 1 for tokens that are visible, else 0, [..., 1]; None if all are.
    seen: Mask | None

    def column(self, reads: str) -> Ids:
        """Return the rows of the table that tokens read by "ids", "types", "positions" or "tasks"."""

    def attend(
        self, part: Attention, layer: int, q: Array, k: Array, v: Array, terms: RelativeTerms | None, bias: Array | None
    ) -> tuple[Array, Array | None]:
        """Return the context of all heads for queries, keys and values, and the attention weights if they are wanted.

        q, k, v [..., N·d]; `bias` is the table of `Distances` -> [..., N·d], [B, N, S, S].
        """

    def convolve(self, part: Convolution, x: Array, weight: Array, bias: Array) -> Array:
        """Return the convolution over the tokens of each row, 0 for masked tokens, [..., H] -> [..., H]."""

    def dropped(self, rate: str, site: str, y: Array) -> Array:
        """Apply dropout at a site of token vectors, or its gradient, which is the same product."""

    def dropped_rows(self, rate: str, site: str, table: Array) -> Array:
        """Apply dropout to the rows of a table, or its gradient."""


class TrainedRows(Rows, Protocol):
    """The tokens of a pass with gradients."""

    def attend_backward(
        self,
        part: Attention,
        layer: int,
        dc: Array,
        qkv: tuple[Array, Array, Array],
        terms: RelativeTerms | None,
        bias: Array | None,
        add_bias: Callable[[Array], None],
    ) -> tuple[Array, Array, Array, RelativeTerms]:
        """Return dq, dk and dv, and the gradients of the terms; `add_bias` receives the distance table's gradients."""

    def convolve_backward(self, part: Convolution, dz: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return dx, dweight and dbias of `convolve`."""


class Value(NamedTuple):
    """An array, and how a backward pass has it again without keeping it."""

    now: Array
    again: Callable[[], Array]


def kept(x: Array) -> Value:
    """Return an array that is kept for the backward pass."""
    return Value(x, lambda: x)


def once(x: Value) -> Value:
    """Return an array that a backward pass, once it has it again, keeps to its end."""
    return Value(x.now, cache(x.again))


class Step(NamedTuple):
    """The result of a step, and what takes the gradient back; None in a pass that keeps nothing."""

    y: Value
    back: Back | None

    @property
    def backward(self) -> Back:
        """What takes the gradient back, in a pass that has it."""
        assert self.back is not None, "a pass with gradients"
        return self.back


class Interpreter:
    """The steps of a plan over the tokens of one pass.

    Parameters
    ----------
    plan
        The model.
    weights
        Its weights.
    rows
        The tokens; `TrainedRows` in training.
    training
        Whether the arithmetic is for training, whose norms keep the standardized rows.
    dense_gradients
        Whether backward passes compute the gradients of dense layers, which take half of their time.
    terms
        Relative positions of layers that other passes computed, and that this one adds to: they depend on the weights
        alone.
    """

    def __init__(
        self,
        plan: Plan,
        weights: Weights,
        rows: Rows,
        *,
        training: bool = False,
        dense_gradients: bool = True,
        terms: dict[int, RelativeTerms] | None = None,
    ) -> None:
        self.plan, self.rows = plan, rows
        self._weights, self._training, self._dense_gradients = weights, training, dense_gradients
        self._known_terms = terms
        #: Whether steps keep what their gradients need.
        self.keeps = training
        # The tables of relative positions that layers share: their rows after the norm, and the gradient of these so
        # far.
        self._relative: dict[str, tuple[Array, Back | None]] = {}
        self._drelative: dict[str, Array] = {}
        #: The attention weights of the last attention.
        self.attention_weights: Array | None = None

    @property
    def _trained_rows(self) -> TrainedRows:
        return cast("TrainedRows", self.rows)

    # --- weights

    def weight(self, part: Any) -> Array:
        """Return the weight of a part."""
        found = self._weights.get(f"{part.name}.weight")
        assert found is not None, "a checkpoint without it was refused"
        return found

    def bias(self, part: Any) -> Array | None:
        """Return the bias of a part; None if it has none."""
        return self._weights.get(f"{part.name}.bias")

    # --- dense layers and norms

    def dense(self, part: Dense, x: Value) -> Step:
        """Y = x·Wᵀ + b, [..., in] -> [..., out]."""
        weight = self.weight(part)
        y = functional.linear(x.now, weight, self.bias(part))
        if not self.keeps:
            return Step(kept(y), None)

        def back(dy: Array) -> Array:
            if not self._dense_gradients:
                dx: Array = dy @ weight
                return dx
            dx, dweight, dbias = gradients.linear_backward(dy, x.again(), weight)
            self._weights.add(part.name, dweight, dbias)
            return dx

        return Step(kept(y), back)

    def norm(self, part: Norm | None, x: Array, *, keeps: bool | None = None) -> Step:
        """A norm over the last axis, [..., H] -> [..., H]; x itself without one."""
        keeps = self.keeps if keeps is None else keeps
        if part is None:
            return Step(kept(x), (lambda dy: dy) if keeps else None)
        weight, bias = self.weight(part), self.bias(part)
        if not self._training:
            if part.kind == "rms":
                return Step(kept(functional.rms_norm(x, weight, part.eps)), None)
            return Step(kept(functional.layer_norm(x, weight, bias, eps=part.eps)), None)
        standardize, standardize_backward = gradients.STANDARDIZE[part.kind]
        of = standardize(x, part.eps)

        def again() -> Array:
            return gradients.scale_and_shift(of.x_hat, weight, bias)

        y = again()
        if not keeps:
            return Step(kept(y), None)

        def back(dy: Array) -> Array:
            g, dweight, dbias = gradients.scale_and_shift_backward(dy, of.x_hat, weight)
            self._weights.add(part.name, dweight, dbias)
            return standardize_backward(g, of)

        return Step(Value(y, again), back)

    # --- the bodies of residuals

    def projected(self, part: Attention, x: Value) -> list[Step]:
        """Return queries, keys and values of all heads, [..., H] -> [..., N·d] each."""
        steps = [self.dense(one, x) for one in (part.query, part.key, part.value)]
        for i, norm in enumerate(part.norms or ()):
            steps[i] = self._then(steps[i], self.norm(norm, steps[i].y.now))
        return steps

    def attend(self, part: Attention, layer: int, x: Value) -> Step:
        """W·attention(x) + b, [..., H] -> [..., H]."""
        steps = self.projected(part, once(x))
        q, k, v = (step.y for step in steps)
        terms, _ = self.terms(part.relative, layer)
        table = self.weight(part.bias.table) if isinstance(part.bias, Distances) else None
        c, self.attention_weights = self.rows.attend(part, layer, q.now, k.now, v.now, terms, table)
        if not self.keeps:
            del steps, q, k, v
            return self.dense(part.output, kept(c))
        output = self.dense(part.output, kept(c))
        output_back, backs = output.backward, [step.backward for step in steps]

        def add_bias(d: Array) -> None:
            assert isinstance(part.bias, Distances), "the only bias with a table"
            self._weights.add(part.bias.table.name, d)

        def back(dy: Array) -> Array:
            dc = output_back(dy)
            terms, terms_back = self.terms(part.relative, layer)  # again, so that a layer does not keep them
            qkv = q.again(), k.again(), v.again()
            *dqkv, dterms = self._trained_rows.attend_backward(part, layer, dc, qkv, terms, table, add_bias)
            terms_back(dterms)
            dx, dk, dv = (one(d) for one, d in zip(backs, dqkv, strict=True))
            dx += dk
            dx += dv
            return dx

        return Step(output.y, back)

    def feed_forward(self, part: Mlp, layer: int, x: Value) -> Step:
        """W₂·f(W₁·x), or with a gate W₂·(f(W_gate·x) ⊙ W_up·x), [..., H] -> [..., H]."""
        x = once(x)
        made = [self.dense(one, x) for one in part.inner]
        activation = functional.ACTIVATIONS[part.activation]
        site = f"layer.{layer}.intermediate"

        def hidden() -> Array:
            h = activation(made[0].y.now)  # [..., F]
            for up in made[1:]:
                h *= up.y.now
            return self.rows.dropped(part.dropout, site, h)

        if not self.keeps:
            h = hidden()
            made.clear()
            return self.dense(part.output, kept(h))
        output = self.dense(part.output, Value(hidden(), hidden))
        output_back = output.backward

        def back(dy: Array) -> Array:
            dh = self.rows.dropped(part.dropout, site, output_back(dy))
            gate = made[0].y.now
            if len(made) == 1:
                return made[0].backward(gradients.activation_backward(dh, gate, part.activation))
            dup = dh * activation(gate)
            dx = made[0].backward(gradients.activation_backward(dh * made[1].y.now, gate, part.activation))
            dx += made[1].backward(dup)
            return dx

        return Step(output.y, back)

    def convolve(self, part: Convolution, layer: int, x: Value) -> Step:
        """f(dropout(conv(x))), [..., H] -> [..., H]."""
        weight, bias = self._weights.get(f"{part.name}.weight"), self._weights.get(f"{part.name}.bias")
        assert weight is not None and bias is not None, "a checkpoint without them was refused"  # noqa: PT018
        site = f"layer.{layer}.{part.site}"
        z = self.rows.dropped(part.dropout, site, self.rows.convolve(part, x.now, weight, bias))
        y = functional.ACTIVATIONS[part.activation](z)
        if not self.keeps:
            return Step(kept(y), None)

        def back(dy: Array) -> Array:
            dz = self.rows.dropped(part.dropout, site, gradients.activation_backward(dy, z, part.activation))
            dx, dweight, dbias = self._trained_rows.convolve_backward(part, dz, x.again(), weight)
            self._weights.add(part.name, dweight, dbias)
            return dx

        return Step(kept(y), back)

    # --- layers

    def residual(self, part: Residual, layer: int, x: Value, first: Value) -> tuple[Step, Back | None]:
        """Y = after(x + dropout(body(before(x)))), and y' = again(x + y), [..., H] -> [..., H].

        A body that reads the input of the layer, `first`, has its gradient go back to that, by the function that is
        returned besides.
        """
        body = part.body
        before = self.norm(part.before, x.now)
        given = first if body.reads_first else x if part.before is None else before.y
        made = self.STEPS[type(body)](self, body, layer, given)
        site = f"layer.{layer}.{body.site}"
        after = self.norm(part.after, x.now + self.rows.dropped(part.dropout, site, made.y.now))
        last = None if part.again is None else self.norm(part.again, x.now + after.y.now)
        y = after.y if last is None else last.y
        seen = self.rows.seen if part.masked else None
        result = y if seen is None else kept(y.now * seen)
        if not self.keeps:
            return Step(result, None), None
        # What goes back keeps no result: those that it needs, the steps keep or compute again.
        before_back, body_back, after_back = before.backward, made.backward, after.backward
        last_back = None if last is None else last.backward
        to_first: list[Array] = []

        def back(dy: Array) -> Array:
            dy = dy if seen is None else dy * seen
            of_input = None if last_back is None else last_back(dy)
            dy = after_back(dy if of_input is None else of_input)
            through = body_back(self.rows.dropped(part.dropout, site, dy))
            if body.reads_first:
                to_first.append(through)
                return dy
            dx = dy + before_back(through)
            return dx if of_input is None else of_input + dx

        return Step(result, back), (lambda dx: dx + to_first.pop()) if body.reads_first else None

    def layer(self, index: int, x: Array) -> Step:
        """Run a layer, [..., H] -> [..., H]."""
        value = first = kept(x)
        backs: list[Back | None] = []
        at_first: list[Back] = []
        for part in self.plan.layers[index]:
            (value, back), to_first = self.residual(part, index, value, first)
            backs.append(back)
            if to_first is not None:
                at_first.append(to_first)
        return Step(value, _all_back([*at_first, *backs]) if self.keeps else None)

    def last(self, x: Array) -> Step:
        """Apply the norm after the layers, if there is one."""
        return self.norm(self.plan.last, x)

    # --- relative positions

    def terms(self, part: Relative | None, layer: int) -> tuple[RelativeTerms | None, Callable[[RelativeTerms], None]]:
        """Return K^r and Q^r of a layer, [2K, N·d] each, and what adds their gradients."""
        if part is None or (part.keys is None and part.queries is None):
            return None, _nothing
        known = self._known_terms
        if known is not None and layer in known:
            return known[layer], _nothing
        if part.table.name not in self._relative:
            # All layers read it, also those that do not keep what their gradients need, or compute it again.
            normed = self.norm(part.norm, self.weight(part.table), keeps=self._training)
            self._relative[part.table.name] = normed.y.now, normed.back
        table = self._relative[part.table.name][0]
        site = f"layer.{layer}.relative"
        rows = self.rows.dropped_rows(part.dropout, site, table)
        made = [None if dense is None else self.dense(dense, kept(rows)) for dense in (part.keys, part.queries)]

        def back(dterms: RelativeTerms) -> None:
            for step, d in zip(made, dterms, strict=True):
                if step is not None and d is not None:
                    dtable = self.rows.dropped_rows(part.dropout, site, step.backward(d))
                    before = self._drelative.get(part.table.name)
                    self._drelative[part.table.name] = dtable if before is None else before + dtable

        keys, queries = (None if step is None else step.y.now for step in made)
        terms = RelativeTerms(keys, queries)
        if known is not None:
            known[layer] = terms
        return terms, back

    def finish(self) -> None:
        """Add the gradients of the tables that all layers share, after the lowest one."""
        for name, d in self._drelative.items():
            _, back = self._relative[name]
            assert back is not None, "a pass with gradients"
            self._weights.add(name, back(d))
        self._drelative.clear()

    # --- embeddings

    def embed(self) -> Step:
        """Compute the input of the first layer, [..., H]; what goes back ends at the word vectors, [..., E]."""
        part = self.plan.embeddings
        tables = [table for reads in part.ORDER if (table := part.table(reads)) is not None]
        words, *others = tables
        vectors = self.rows.vectors
        e = self._weights.rows(words.name, self.rows.column("ids")) if vectors is None else vectors  # [..., E]
        for table in others:
            e = e + self._weights.rows(table.name, self.rows.column(table.reads))
        normed = any(not isinstance(one, Dense) for one in part.then)
        value = kept(e)
        backs: list[Back | None] = []

        def drop(value: Value) -> Value:
            seen = self.rows.seen if part.masked else None
            y = value.now if seen is None else value.now * seen
            dropped = self.rows.dropped(part.dropout, "embeddings", y)
            if self.keeps:
                backs.append(lambda dy: self._undropped(dy, part.dropout, seen))
            return value if dropped is value.now else kept(dropped)

        if not normed:
            value = drop(value)
        for one in part.then:
            if isinstance(one, Dense):
                value, back = self.dense(one, value)
                backs.append(back)
            else:
                value, back = self.norm(one, value.now)
                backs.append(back)
                value = drop(value)
        if not self.keeps:
            return Step(value, None)

        def back_to_words(dx: Array) -> Array:
            de = _all_back(backs)(dx)
            for table in tables:
                if table is not words or self.rows.vectors is None:
                    self._add_rows(table, de)
            return de

        return Step(value, back_to_words)

    def _undropped(self, dy: Array, rate: str, seen: Mask | None) -> Array:
        dx = self.rows.dropped(rate, "embeddings", dy)
        return dx if seen is None else dx * seen

    def _add_rows(self, table: Table, de: Array) -> None:
        """Add the gradient of the rows of a table that tokens read."""
        rows = gradients.lookup_backward(de, self.rows.column(table.reads), len(self.weight(table)), table.fixed)
        self._weights.add(table.name, rows)

    def _then(self, first: Step, second: Step) -> Step:
        """Return two steps as one."""
        return Step(second.y, _all_back([first.back, second.back]) if self.keeps else None)

    #: The step of each kind of body.
    STEPS: ClassVar[dict[type, Callable[..., Step]]] = {Attention: attend, Mlp: feed_forward, Convolution: convolve}


def _all_back(backs: Sequence[Back | None]) -> Back:
    """Return what takes a gradient back through steps that follow each other."""

    def back(dy: Array) -> Array:
        for one in reversed(backs):
            assert one is not None, "a pass with gradients"
            dy = one(dy)
        return dy

    return back


def _nothing(dterms: RelativeTerms) -> None:
    """Ignore gradients that nobody asked for."""
