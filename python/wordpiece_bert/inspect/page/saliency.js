// Saliency: the tokens that an answer depends on, at the word vectors and layer by layer.

builders.saliency = (view) => {
  const entries = [view.data, ...view.data.others];
  const numbers = []; // of each entry { effect, scores, layers }
  const foot = make("div", {});
  const strips = make("div", {});
  const list = make("div", { "aria-live": "polite" });
  const classes = make("div", {});
  const course = make("div", {});
  const below = make("section", { class: "card" }, course);
  const gap = make("p", { class: "soft small", "data-role": "gap" });
  let built = -1;
  let line = null; // the tokens of the entry that is built
  let cells = [];
  let switcher = null;

  const says = (entry, value) => `${entry.signed && value >= 0 ? "+" : ""}${digits(value)}`;
  const layerName = (layer) => (layer < 0 ? "word vectors" : `vectors of layer ${layer - 1 < 0 ? "0 (embeddings)" : layer}`);

  /** What is chosen: the entry, the row of its layers (−1 for the word vectors), and the values there. */
  function chosen() {
    const index = selectedIndex("saliency.of", entries.length, 0);
    const { effect, layers } = numbers[index];
    const inLayers = layers && selection["saliency.at"] === "layer";
    // Layer n of attention makes the hidden state n + 1; before all of them are the embeddings, layer −1.
    const layer = !inLayers ? -1 : Number.isInteger(selection.layer) ? clamp(selection.layer + 1, 0, layers.rows - 1) : layers.rows - 1;
    return { index, layer, values: Array.from(layer < 0 ? effect : layers.row(layer)) };
  }

  function choose(row) {
    select(row < 0 ? { "saliency.at": null } : { "saliency.at": "layer", layer: row - 1 });
  }

  /** Which text of a pair a token is shown with: a special token with the text before it. */
  function sideOf(entry, index) {
    if (!entry.sentences.includes(1)) return 0;
    const last = entry.sentences.lastIndexOf(0) + 1; // the special token after the first text
    return index > last ? 1 : 0;
  }

  function build(index) {
    built = index;
    const entry = entries[index];
    const { scores, layers } = numbers[index];
    const most = entry.probabilities ? 1 : scores.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    foot.replaceChildren(make("h2", { dir: "auto" }, `Why “${entry.target}”: ${entry.measure} ${digits(entry.score)}`), make("p", { class: "soft small" }, entry.note));
    classes.replaceChildren(
      make("h3", {}, entry.probabilities ? "Probabilities" : "Scores"),
      bars(entry.labels.map((name, i) => ({ name, value: scores[i] })), most, { signed: !entry.probabilities, plain: true }),
    );
    const sides = entry.sentences.includes(1) ? [0, 1] : [0];
    const parts = sides.map((side) => {
      const own = range(entry.tokens.length).filter((token) => sideOf(entry, token) === side);
      const name = sides.length > 1 ? `Tokens of text ${"AB"[side]} by effect` : "Tokens by effect";
      return { own, line: strip(own.map((token) => entry.tokens[token]), name, (place) => select({ token: own[place] }), (place) => entry.sentences[own[place]] < 0) };
    });
    line = {
      press: (token) => parts.forEach((part) => part.line.press(part.own.indexOf(token))),
      shade: (map, values, text) => parts.forEach((part) => part.line.shade(map, part.own.map((token) => values[token]), (place) => text(part.own[place]))),
    };
    strips.replaceChildren(...parts.map((part) => part.line.element), entry.signed ? legend("diverging", "against", "for") : legend("sequential", "0", "most"));
    below.classList.toggle("hidden", !layers);
    if (layers) buildLayers(entry, layers);
  }

  function buildLayers(entry, layers) {
    switcher = segments("Vectors of", ["words", ...range(layers.rows).map((row) => `layer ${row}`)], 0, (number) => choose(number - 1));
    const cell = (row, token) => {
      const button = make("button", { type: "button", class: "plain number", "aria-label": `Layer ${row}, ${entry.tokens[token]}: ${digits(layers.at(row, token))}`, onclick: () => select({ "saliency.at": "layer", layer: row - 1, token }) }, layers.at(row, token).toFixed(2));
      return make("td", { class: "number", "data-cell": `${row}.${token}` }, button);
    };
    const rows = range(layers.rows).reverse().map((row) => [row ? String(row) : "0 (embeddings)", ...range(entry.tokens.length).map((token) => cell(row, token))]);
    const grid = table(["layer", ...entry.tokens.map(readable)], rows, "tight");
    cells = [...grid.querySelectorAll("button")];
    arrows(cells, entry.tokens.length);
    course.replaceChildren(
      make("h2", {}, "Layer by layer"),
      make("p", { class: "soft small" }, "The same measure with the vectors of each layer in place of the word vectors; the last layer is on top. Special tokens have vectors too."),
      switcher.element,
      make("div", { class: "scroll" }, grid),
    );
  }

  const draw = onRedraw(() => {
    if (built < 0) return;
    const entry = entries[built];
    const { layers } = numbers[built];
    const { layer, values } = chosen();
    const map = entry.signed ? "diverging" : "sequential";
    const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    line.shade(map, values.map((value) => (0.85 * value) / most), (token) => says(entry, values[token]));
    const token = selectedIndex("token", entry.tokens.length);
    line.press(token ?? -1);
    if (layers) {
      const largest = Math.max(layers.largest, 1e-9);
      const order = range(layers.rows).reverse().flatMap((row) => Array.from(layers.row(row)));
      cells.forEach((cell, place) => shade(cell, map, (0.85 * order[place]) / largest));
      const place = (layers.rows - 1 - layer) * entry.tokens.length + (token ?? 0);
      cells.forEach((cell, at) => cell.parentElement.classList.toggle("chosen", layer >= 0 && at === place));
      stopAt(cells, layer >= 0 ? place : 0);
      switcher.set(layer + 1);
    }
  });

  function follow() {
    const { index, layer, values } = chosen();
    if (index !== built) build(index);
    chooser?.set(index);
    const entry = entries[index];
    const token = selectedIndex("token", entry.tokens.length);
    const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    const missing = layer < 0 ? entry.gap : entry.layer_gaps?.[layer] ?? [];
    gap.textContent = missing.length ? `Gap to completeness: ${missing.map((value) => value.toExponential(1)).join(" and ")}` : "";
    list.replaceChildren(
      make("h3", {}, layer < 0 ? `Effect of each token: ${entry.heading}` : `Effect of each token, ${layerName(layer)}`),
      gap,
      bars(entry.tokens.map((name, i) => ({ name, value: values[i] })), most, { signed: entry.signed }),
    );
    draw();
    if (token !== null) announce(`${entry.tokens[token]}: ${says(entry, values[token])}`);
  }

  const names = entries.map((entry) => `${entry.target}, ${entry.method.replaceAll("_", " ")}`);
  const chooser = entries.length > 1 ? segments("Explained", names, 0, (index) => select({ "saliency.of": index })) : null;
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, chooser?.element, foot, strips),
    make("section", { class: "card" }, classes),
    below,
    make("section", { class: "card" }, list),
  );
  view.start = async () => {
    for (const index of range(entries.length)) {
      const suffix = index ? String(index + 1) : "";
      const [effect, scores, layers] = await Promise.all(["effect", "scores", "layers"].map((name) => view.arrays[name + suffix]?.part() ?? null));
      numbers.push({ effect: effect.values, scores: scores.values, layers });
    }
  };
  view.follow = follow;
  view.csv = () => {
    const { index, values } = chosen();
    const { layers } = numbers[index];
    const entry = entries[index];
    const more = layers ? range(layers.rows) : [];
    return [
      ["position", "token", "effect", ...more.map((row) => `layer ${row}`)],
      ...entry.tokens.map((token, i) => [i, token, layers ? numbers[index].effect[i] : values[i], ...more.map((row) => layers.at(row, i))]),
    ];
  };
  return view.element;
};
