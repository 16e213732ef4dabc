// Attention: all heads as thumbnails, and one of them (or a mean of several) from a token, as lines and as a matrix.

builders.attention = (view) => {
  const { tokens, sentences, focus } = view.data;
  const { attention, rollout, thumbnails, value_norms: norms } = view.arrays;
  const [layers, heads, length] = attention.shape;
  const state = {
    kind: "weights", layer: focus?.layer ?? 0, heads: new Set([focus?.head ?? 0]), token: focus?.token ?? null,
    toward: false, filter: "all", special: true, matrix: null, isRead: false,
  };
  const isSpecial = (index) => sentences[index] < 0;
  const pair = sentences.includes(1);

  /** Whether the weight of a query and a key is shown. */
  function passes(query, key) {
    if (!state.special && (isSpecial(query) || isSpecial(key))) return false;
    if (state.filter === "all") return true;
    const [from, to] = state.filter;
    return sentences[query] === (from === "A" ? 0 : 1) && sentences[key] === (to === "A" ? 0 : 1);
  }

  async function read() {
    if (state.kind === "rollout") return rollout.part(state.layer);
    const chosen = await Promise.all([...state.heads].map((head) => weightsOf(state.layer, head)));
    return chosen.length === 1 ? chosen[0] : mean(chosen);
  }

  async function weightsOf(layer, head) {
    const weights = await attention.part(layer, head);
    if (state.kind !== "norms") return weights;
    const lengths = (await norms.part(layer)).row(head);
    const values = new Float32Array(length * length);
    for (let i = 0, at = 0; i < length; i++) {
      for (let j = 0; j < length; j++, at++) values[at] = weights.at(i, j) * lengths[j];
    }
    return new Matrix(length, length, values);
  }

  // --- controls
  const kinds = [["weights", "attention weights α"]];
  if (norms) kinds.push(["norms", "norm-weighted ‖α·f(x)‖"]);
  kinds.push(["rollout", "rollout through the layers"]);
  const filters = [["all", "all tokens"], ["AA", "A → A"], ["AB", "A → B"], ["BA", "B → A"], ["BB", "B → B"]];
  const set = (name) => (value) => {
    state[name] = value;
    update();
  };
  const direction = segments("Direction", ["from the token", "to the token"], 0, (index) => set("toward")(index === 1));
  const several = tick("Combine heads", () => {});
  const controls = make(
    "div",
    { class: "controls" },
    choice("Show", kinds, set("kind")),
    direction.element,
    pair ? choice("Sentences", filters, set("filter")) : null,
    tick("Hide special tokens", (on) => set("special")(!on)),
  );

  // --- all heads
  const buttons = [];
  const grid = make("div", { class: "heads", role: "group", "aria-label": "All layers and heads" });
  grid.style.gridTemplateColumns = `auto repeat(${heads}, minmax(20px, 1fr))`;
  grid.append(make("span", { class: "index", "aria-hidden": "true" }), ...range(heads).map((head) => make("span", { class: "index", "aria-hidden": "true" }, String(head))));
  for (const layer of range(layers)) {
    const all = () => pick(layer, null, false);
    grid.append(make("button", { type: "button", class: "index", title: `Mean of the heads of layer ${layer}`, "aria-label": `Layer ${layer}, mean of all heads`, onclick: all }, String(layer)));
    for (const head of range(heads)) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const click = (event) => pick(layer, head, event.shiftKey || event.ctrlKey || event.metaKey || several.firstChild.checked);
      const button = make("button", { type: "button", "aria-label": `Layer ${layer}, head ${head}`, "data-head": `${layer}.${head}`, onclick: click }, canvas);
      button.addEventListener("pointermove", (event) => showTip(event, `layer ${layer}, head ${head}`));
      button.addEventListener("pointerleave", hideTip);
      buttons.push(button);
      grid.append(button);
    }
  }
  arrows(buttons, heads);
  const beginThumbnails = turns();
  const drawThumbnails = onRedraw(async () => {
    const isLast = beginThumbnails();
    for (const layer of range(layers)) {
      for (const head of range(heads)) {
        const small = await thumbnails.part(layer, head);
        if (!isLast()) return;
        const most = range(small.rows).map((i) => small.row(i).reduce((a, b) => Math.max(a, b), 1e-12));
        const canvas = buttons[layer * heads + head].firstChild;
        paint(canvas, small.rows, small.columns, "sequential", (i, j) => Math.sqrt(small.at(i, j) / most[i]));
      }
    }
  });

  function pick(layer, head, add) {
    if (head === null) state.heads = new Set(range(heads));
    else if (add && layer === state.layer) {
      if (state.heads.has(head) && state.heads.size > 1) state.heads.delete(head);
      else state.heads.add(head);
    } else state.heads = new Set([head]);
    state.layer = layer;
    update();
  }

  // --- one head
  const heading = make("h2", { id: "attention-heading" });
  const sub = make("p", { class: "soft small" });
  const line = strip(tokens, "Tokens: choose one", choose, isSpecial);
  const ranking = make("div", { class: "ranking" });
  const lines = attentionLines(tokens, isSpecial, (index, side) => {
    if (side === null) return choose(null);
    state.toward = side === "key";
    direction.set(state.toward ? 1 : 0, false);
    choose(index, true);
  });
  const map = heat("Attention matrix: query tokens downwards, key tokens to the right");
  map.choose = (query) => choose(query, true);
  const scale = legend("sequential", "0", "1", "by square root");

  function choose(index, keep = false) {
    state.token = index === state.token && !keep ? null : index;
    update();
  }

  function title() {
    if (state.kind === "rollout") return `Rollout through layers 0 to ${state.layer}`;
    const list = [...state.heads].sort((a, b) => a - b);
    if (list.length === heads && heads > 1) return `Layer ${state.layer}, mean of all heads`;
    return list.length > 1 ? `Layer ${state.layer}, mean of heads ${list.join(", ")}` : `Layer ${state.layer}, head ${list[0]}`;
  }

  const begin = turns();
  async function update() {
    const isLast = begin();
    state.isRead = false;
    const matrix = await read();
    if (!isLast()) return;
    Object.assign(state, { matrix, isRead: true });
    buttons.forEach((button, index) => {
      const same = Math.floor(index / heads) === state.layer;
      button.setAttribute("aria-pressed", String(same && (state.kind === "rollout" || state.heads.has(index % heads))));
    });
    show();
  }

  function values() {
    const { token, toward, matrix } = state;
    const raw = toward ? matrix.column(token) : matrix.row(token);
    return raw.map((value, other) => (passes(toward ? other : token, toward ? token : other) ? value : 0));
  }

  function show() {
    const { token, toward, matrix } = state;
    const most = state.kind === "norms" ? matrix.largest || 1 : 1;
    heading.textContent = title();
    line.press(token ?? -1);
    const word = token === null ? "" : `“${readable(tokens[token])}”`;
    sub.textContent =
      token === null
        ? "Choose a token to see where it looks. Lines are drawn from query tokens (left) to key tokens (right)."
        : `${toward ? `Which tokens look at ${word}` : `Where ${word} looks`}, position ${token}. The stronger the colour, the larger the weight; choose it again to see all tokens.`;
    if (token === null) {
      const received = new Float32Array(length);
      for (let i = 0; i < length; i++) for (let j = 0; j < length; j++) if (passes(i, j)) received[j] += matrix.at(i, j) / length;
      line.shade("sequential", received.map((value) => Math.sqrt(value / most)), (i) => `receives ${digits(received[i])} on average`);
      fillRanking("Most looked at, on average", received);
    } else {
      const row = values();
      line.shade("sequential", row.map((value) => Math.sqrt(value / most)), (i) => digits(row[i]));
      fillRanking(toward ? `Tokens that look at ${word}` : `${word} looks at`, row);
      const best = ranked(row).slice(0, 3).map((i) => `${tokens[i]} ${digits(row[i])}`);
      announce(`${title()}: ${toward ? "to" : "from"} ${tokens[token]}: ${best.join(", ")}`);
    }
    view.element.dataset.state = `${state.kind} ${state.layer} ${[...state.heads].join("+")} ${token}`;
    lines.set({ matrix, token, toward, passes, most });
    // A choice of another token leaves the matrix as it is.
    const drawn = `${state.filter} ${state.special} ${theme()}`;
    if (state.painted === matrix && state.drawn === drawn) return;
    Object.assign(state, { painted: matrix, drawn });
    map.set(length, length, "sequential", (i, j) => (passes(i, j) ? Math.sqrt(matrix.at(i, j) / most) : 0), (i, j) => `${tokens[i]} (${i}) → ${tokens[j]} (${j}): ${digits(matrix.at(i, j))}`);
  }

  function fillRanking(name, row) {
    const best = ranked(row).slice(0, 16).filter((i) => row[i] > 0);
    const entries = best.map((i) => ({ name: tokens[i], value: row[i] }));
    ranking.replaceChildren(make("h3", {}, name), entries.length ? bars(entries, entries[0].value) : make("p", { class: "soft small" }, "No weight passes the filter."));
  }

  const overview = make(
    "section",
    { class: "card", "aria-label": "All heads" },
    make("h3", {}, "All heads"),
    make("p", { class: "soft small" }, "Rows are layers, columns are heads. Choose a head; the number of a layer is the mean of its heads."),
    make("div", { class: "controls" }, several),
    grid,
  );
  const detail = make("section", { class: "card", "aria-labelledby": "attention-heading" }, heading, sub, controls, line.element, scale);
  const drawings = make(
    "div",
    { class: "grid even" },
    make("section", { class: "card" }, make("h3", {}, "Lines"), lines.element),
    make("section", { class: "card" }, ranking),
  );
  const matrix = make(
    "section",
    { class: "card" },
    make("h3", {}, "Matrix"),
    make("p", { class: "soft small" }, "Query tokens downwards, key tokens to the right. Choose a row."),
    map.canvas,
  );
  view.element = make("div", { class: "view-attention grid side" }, overview, make("div", { class: "main" }, detail, drawings), matrix);
  // While weights are read, those of the choice before are not drawn under the new heading.
  onRedraw(() => state.isRead && show());
  view.start = () => {
    drawThumbnails();
    return update();
  };
  return view.element;
};
