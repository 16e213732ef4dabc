// Attention: all heads as thumbnails, and one of them (or several) from a token, as lines and as a matrix.

builders.attention = (view) => {
  const { tokens } = view.data;
  const [, heads, length] = view.arrays.attention.shape;
  const options = attentionOptions(view);
  const { isSpecial, own, passes, scaled, state } = options;
  const read = attentionReader(view);

  const pick = (layer, head, add) => {
    if (head === null) return select({ layer, head: "all" });
    if (!add || layer !== state.layer) return select({ layer, head });
    const now = new Set(state.heads);
    if (!now.delete(head)) now.add(head);
    return select({ layer, head: now.size ? [...now].sort((a, b) => a - b) : head });
  };
  const choosePair = (query, key) => select({ token: query, pair: key, [own("direction")]: null });
  const grid = attentionHeads(view, options, pick);
  const choose = (index) => select({ token: index === null || index === state.token ? "none" : index });

  const heading = make("h2", { id: "attention-heading" });
  const sub = make("p", { class: "soft small" });
  const cell = make("p", { class: "small number", "data-cell-shown": "" });
  const why = make("p", { class: "note", "data-why": "" });
  const line = strip(tokens, "Tokens: choose one", choose, isSpecial);
  const ranking = make("div", { class: "ranking" });
  const colours = make("div", { class: "legend" });
  const lines = attentionLines(tokens, isSpecial, (index, side) => {
    if (side === null) return select({ token: "none" });
    return select({ token: index, [own("direction")]: side === "key" ? "to" : "from" });
  });
  const map = tokenMatrix(tokens, own, choosePair);
  const places = repeatedPlaces(tokens);
  const scale = make("div");

  function title() {
    if (state.kind === "rollout") return `Rollout through layers 0 to ${state.layer}`;
    if (state.heads.length === heads && heads > 1) return `Layer ${state.layer}, mean of all heads`;
    return `Layer ${state.layer}, ${state.heads.length > 1 ? `mean of heads ${state.heads.join(", ")}` : `head ${state.heads[0]}`}`;
  }

  const begin = turns();
  view.follow = async () => {
    const isLast = begin();
    state.isRead = false;
    options.follow();
    const found = await read(state);
    if (!isLast()) return;
    Object.assign(state, found, { isRead: true });
    grid.press();
    show();
  };

  /** The weights of the chosen token, of one matrix. */
  function weightsOf(matrix) {
    const { token, toward } = state;
    const isShown = (other) => (toward ? passes(other, token) : passes(token, other));
    return (toward ? matrix.column(token) : matrix.row(token)).map((value, other) => (isShown(other) ? value : 0));
  }

  /** What each token receives on average. */
  function received(matrix) {
    const sums = new Float32Array(length);
    const isAll = state.filter === "all" && state.special;
    for (let i = 0; i < length; i++) {
      const row = matrix.row(i);
      for (let j = 0; j < length; j++) if (isAll || passes(i, j)) sums[j] += row[j] / length;
    }
    return sums;
  }

  function show() {
    const { token, toward, matrix } = state;
    const isAll = state.filter === "all" && state.special;
    const most = state.scale === "matrix" ? matrix.largest || 1 : null;
    heading.textContent = title();
    line.press(token ?? -1);
    const values = token === null ? received(matrix) : weightsOf(matrix);
    const largest = most ?? largestOf(values, 0);
    const shares = values.map((value) => Math.sqrt(value / (largest || 1)));
    line.shade("sequential", shares, (i) => (token === null ? `receives ${digits(values[i])} on average` : digits(values[i])));
    describe(values);
    showScale(largest);
    const one = (matrix, i) => ({ matrix, colour: seriesColour(state.heads[i], heads), head: state.heads[i] });
    const several = state.matrices.length > 1 ? state.matrices.map(one) : null;
    const swatch = (colour) => make("span", { class: "swatch", style: { backgroundColor: colour } });
    colours.replaceChildren(...(several ?? []).map(({ head, colour }) => make("span", {}, swatch(colour), `head ${head}`)));
    lines.set({ matrix, several, token, toward, passes, scaled, most });
    map.set({
      matrix, key: `${state.scale} ${state.filter} ${state.special}`, row: token, column: state.pair,
      tell: pairText,
      fill(i, line) {
        const [row, largest] = [matrix.row(i), most ?? scaled(matrix, i)];
        for (let j = 0; j < length; j++) line[j] = isAll || passes(i, j) ? Math.sqrt(row[j] / largest) : 0;
      },
    });
    view.element.dataset.state = `${state.kind} ${state.layer} ${state.heads.join("+")} ${token}`;
  }

  const pairText = (i, j) => `${placed(i)} → ${placed(j)}: ${digits(state.matrix.at(i, j))}`;
  const placed = (i) => `${isolated(readable(tokens[i]))} (${i})`;

  function describe(values) {
    const { token, toward } = state;
    const word = token === null ? "" : `“${isolated(readable(tokens[token]))}”`;
    if (token === null) {
      sub.textContent = "Choose a token to see where it looks. Lines are drawn from query tokens (left) to key tokens (right).";
      fillRanking("Most looked at, on average", values);
    } else {
      const what = `${toward ? `Which tokens look at ${word}` : `Where ${word} looks`}, position ${token}.`;
      sub.textContent = `${what} The stronger the colour, the larger the weight; choose it again to see all tokens.`;
      fillRanking(toward ? `Tokens that look at ${word}` : `${word} looks at`, values);
      const best = ranked(values).slice(0, 3).map((i) => `${tokens[i]} ${digits(values[i])}`);
      announce(`${title()}: ${toward ? "to" : "from"} ${tokens[token]}: ${best.join(", ")}`);
    }
    const { pair } = state;
    cell.textContent = token === null || pair === null ? "" : pairText(token, pair);
    why.textContent = toward || token === null || pair === null || state.kind === "rollout" ? "" : reason(token, pair);
    why.classList.toggle("hidden", !why.textContent);
  }

  /** What the weight of a pair says, beside what the other tokens give the same key. */
  function reason(query, key) {
    const given = state.matrix.column(key);
    const weight = given[query];
    given[query] = -1;
    const other = ranked(given)[0];
    const [from, to] = [query, key].map((i) => `“${isolated(placedName(tokens[i], places[i]))}”`);
    const says = `${from} gives ${to} ${digits(weight)}`;
    if (length === 1) return `${says}.`;
    const most = `“${isolated(placedName(tokens[other], places[other]))}” gives it ${digits(given[other])}`;
    const { opening } = options;
    const isHead = state.heads.length === 1 && state.heads[0] === opening.head && state.layer === opening.layer;
    const isOpening = isHead && query === opening.token && key === opening.pair;
    if (weight > given[other]) {
      const opened = isOpening ? "The view opens here, on the link that stands out most. " : "";
      return `${opened}${says}, more than any other token does: ${most}.`;
    }
    return `${says}, and ${most}: this head looks at ${to} from elsewhere, too.`;
  }

  function showScale(largest) {
    const high = digits(largest);
    const shown = state.token === null ? "mean" : "weight";
    const here = largest > 0 ? `${high} is the largest ${shown} here` : `no ${shown} here is large enough to be stored, or all are hidden`;
    const ends = state.scale === "row" ? `${here}, and each row of the matrix ends at its own` : "the largest weight of the matrix";
    scale.replaceChildren(legend("sequential", "0", high, `by square root; ${ends}`, false));
  }

  function fillRanking(name, row) {
    const { token, toward, pair } = state;
    const best = ranked(row).slice(0, 16).filter((i) => row[i] > 0);
    const pick = (i) => (toward ? choosePair(i, token) : choosePair(token, i));
    const entries = best.map((i) => ({
      name: tokens[i], value: row[i], place: places[i], ...(token === null ? {} : { choose: () => pick(i), isChosen: toward ? null : i === pair }),
    }));
    const none = () => make("p", { class: "soft small" }, "No weight passes the filter.");
    const asks = token === null ? null : make("p", { class: "soft small" }, "Choose one: the grid shows which heads link the two.");
    refill(ranking, make("h3", {}, name), asks, entries.length ? bars(entries, entries[0].value) : none());
    arrows([...ranking.querySelectorAll("button")]);
  }

  /** The weights of the chosen token, of each chosen head too, and the whole matrix: a row for each query. */
  view.csv = () => {
    const { token, matrix, matrices } = state;
    const isShown = (i, j) => (state.filter === "all" && state.special) || passes(i, j);
    const several = matrices.length > 1 ? matrices : [];
    const columns = [matrix, ...several].map((one) => (token === null ? received(one) : weightsOf(one)));
    const name = token === null ? "received on average" : `${state.toward ? "to" : "from"} ${token} ${tokens[token]}`;
    const heading = [`${title()}: ${name}`, ...several.map((_, i) => `head ${state.heads[i]}`)];
    return [
      ["position", "token", ...heading, ...tokens.map((word, j) => `matrix: to ${j} ${word}`)],
      ...tokens.map((word, i) => [
        i, word, ...columns.map((values) => values[i]), ...tokens.map((_, j) => (isShown(i, j) ? matrix.at(i, j) : 0)),
      ]),
    ];
  };
  const named = { class: "card", "aria-labelledby": "attention-heading" };
  const detail = make("section", named, heading, sub, why, options.element, line.element, scale);
  const drawings = make(
    "div",
    { class: "grid even" },
    make("section", { class: "card" }, make("h3", {}, "Lines"), colours, lines.element),
    make("section", { class: "card" }, ranking),
  );
  const matrixCard = make(
    "section",
    { class: "card wide" },
    make("h3", {}, "Matrix"),
    make("p", { class: "soft small" }, "Query tokens downwards, key tokens to the right. Choose a cell."),
    cell, map.element,
  );
  const main = make("div", { class: "main" }, detail, drawings);
  view.element = make("div", { class: "view-attention grid side" }, grid.element, main, matrixCard);
  // While weights are read, those of the choice before are not drawn under the new heading.
  onRedraw(view.element, () => state.isRead && show());
  view.start = () => {};
  return view.element;
};

/** What is shown of the weights: controls, and what the selection says of them. */
function attentionOptions(view) {
  const { sentences } = view.data;
  const [layers, heads, length] = view.arrays.attention.shape;
  const { layer = 0, head = 0, token = null, pair = null } = view.data.telling ?? {};
  const state = { isRead: false };
  /** The name in the selection of what this view alone has. */
  const own = (name) => `${view.name}.${name}`;
  const isSpecial = (index) => sentences[index] < 0;
  const kinds = [["weights", "attention weights α"]];
  if (view.arrays.value_norms) kinds.push(["norms", "norm-weighted ‖α·f(x)‖"]);
  kinds.push(["rollout", "rollout through the layers"]);
  const filters = [["all", "all tokens"], ["AA", "A → A"], ["AB", "A → B"], ["BA", "B → A"], ["BB", "B → B"]];
  const either = (label, names, name, values) => segments(label, names, 0, (index) => select({ [own(name)]: values[index] }));
  const kind = choice("Show", kinds, (value) => select({ [own("show")]: value }));
  const direction = either("Direction", ["from the token", "to the token"], "direction", ["from", "to"]);
  const scale = either("Scale", ["by row", "by matrix"], "scale", ["row", "matrix"]);
  const sides = choice("Sentences", filters, (value) => select({ [own("sentences")]: value }));
  const hiding = tick("Hide special tokens", (on) => select({ [own("special")]: on ? "hidden" : "shown" }));
  return {
    state, isSpecial, own,
    /** What is shown before anything is chosen. */
    opening: { layer, head, token, pair },
    element: make("div", {},
      make("div", { class: "controls" }, direction.element),
      folded("More controls", kind, scale.element, sentences.includes(1) ? sides : null, hiding)),
    follow() {
      Object.assign(state, {
        kind: selectedOption(own("show"), kinds.map(([name]) => name)),
        layer: selectedIndex("layer", layers, layer),
        heads: selectedIndices("head", heads, selectedIndex("layer", layers) === null ? head : 0),
        token: selection.token === "none" ? null : selectedIndex("token", length, token),
        pair: selectedIndex("pair", length, selection.token === "none" || selectedIndex("token", length) !== null ? null : pair),
        toward: selection[own("direction")] === "to",
        scale: selectedOption(own("scale"), ["row", "matrix"]),
        filter: sentences.includes(1) ? selectedOption(own("sentences"), filters.map(([name]) => name)) : "all",
        special: selection[own("special")] !== "hidden",
      });
      direction.set(state.toward ? 1 : 0, false);
      scale.set(state.scale === "matrix" ? 1 : 0, false);
      kind.lastChild.value = state.kind;
      sides.lastChild.value = state.filter;
      hiding.firstChild.checked = !state.special;
    },
    /** Whether the weight of a query and a key is shown. */
    passes(query, key) {
      if (!state.special && (isSpecial(query) || isSpecial(key))) return false;
      if (state.filter === "all") return true;
      const [from, to] = state.filter;
      return sentences[query] === (from === "A" ? 0 : 1) && sentences[key] === (to === "A" ? 0 : 1);
    },
    /** The weight that has the strongest colour of a row. */
    scaled: (matrix, row) => (state.scale === "matrix" ? matrix.largest : matrix.largestOf(row)) || 1,
  };
}

/** A function that reads the matrix of a state: one head's, or the mean of several and each of them. */
function attentionReader(view) {
  const { attention, rollout, value_norms: norms } = view.arrays;
  const length = attention.columns;
  async function weightsOf(kind, layer, head) {
    const weights = await attention.part(layer, head);
    if (kind !== "norms") return weights;
    const lengths = (await norms.part(layer)).row(head);
    const values = new Float32Array(length * length);
    for (let i = 0, at = 0; i < length; i++) {
      for (let j = 0; j < length; j++, at++) values[at] = weights.at(i, j) * lengths[j];
    }
    return new Matrix(length, length, values);
  }
  return async ({ kind, layer, heads }) => {
    if (kind === "rollout") {
      const matrix = await rollout.part(layer);
      return { matrix, matrices: [matrix] };
    }
    const matrices = await Promise.all(heads.map((head) => weightsOf(kind, layer, head)));
    return { matrix: matrices.length === 1 ? matrices[0] : mean(matrices), matrices };
  };
}
