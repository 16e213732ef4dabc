// Saliency: the tokens that an answer depends on, at the word vectors and layer by layer.

builders.saliency = (view) => {
  const entries = [view.data, ...view.data.others];
  const numbers = []; // of each entry { effect, scores, layers }
  const heading = make("div", {});
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
  const choices = make("div"); // what is explained, if there are several of one text
  let chooser = null;
  let chosenAmong = "";
  view.showsText = true;

  const says = (entry, value) => `${entry.signed && value >= 0 ? "+" : ""}${digits(value)}`;
  const layerName = (state) => `vectors of layer ${state ? state : "0 (embeddings)"}`;
  const own = (name) => `${view.name}.${name}`;

  /** The entries of the chosen text. */
  const ofText = () => range(entries.length).filter((i) => view.texts[i] === textOf(view));

  function showChoices(index) {
    const mine = ofText();
    if (mine.join() !== chosenAmong) {
      chosenAmong = mine.join();
      const names = mine.map((i) => `${entries[i].target}, ${entries[i].method.replaceAll("_", " ")}`);
      chooser = mine.length > 1 ? segments("Explained", names, 0, (place) => select({ [own("of")]: place })) : null;
      choices.replaceChildren(...(chooser ? [chooser.element] : []));
    }
    chooser?.set(mine.indexOf(index));
  }

  /** What is chosen: the entry, the row of its layers (−1 for the word vectors), and the values there. */
  function chosen() {
    const mine = ofText();
    const index = mine[selectedIndex(own("of"), mine.length, 0)];
    const { effect, layers } = numbers[index];
    const layer = layers && selection[own("at")] === "layer" ? selectedState(layers.rows) : -1;
    return { index, layer, values: Array.from(layer < 0 ? effect : layers.row(layer)) };
  }

  function choose(row) {
    select(row < 0 ? { [own("at")]: null } : { [own("at")]: "layer", layer: layerOf(row) });
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
    const most = entry.probabilities ? 1 : largestOf(scores);
    heading.replaceChildren(
      make("h2", {}, `Why “${isolated(entry.target)}”: ${entry.measure} ${digits(entry.score)}`),
      make("p", { class: "soft small" }, entry.note),
    );
    classes.replaceChildren(
      make("h3", {}, entry.probabilities ? "Probabilities" : "Scores"),
      bars(entry.labels.map((name, i) => ({ name, value: scores[i] })), most, { signed: !entry.probabilities, plain: true }),
    );
    const sides = entry.sentences.includes(1) ? [0, 1] : [0];
    const parts = sides.map((side) => {
      const places = range(entry.tokens.length).filter((token) => sideOf(entry, token) === side);
      const name = sides.length > 1 ? `Tokens of text ${"AB"[side]} by effect` : "Tokens by effect";
      const tokens = places.map((token) => entry.tokens[token]);
      const isSpecial = (place) => entry.sentences[places[place]] < 0;
      return { places, line: strip(tokens, name, (place) => select({ token: places[place] }), isSpecial) };
    });
    line = {
      press: (token) => parts.forEach((part) => part.line.press(part.places.indexOf(token))),
      shade: (map, values, text) => parts.forEach((part) => {
        part.line.shade(map, part.places.map((token) => values[token]), (place) => text(part.places[place]));
      }),
    };
    const scale = entry.signed ? legend("diverging", "against", "for") : legend("sequential", "0", "most");
    strips.replaceChildren(...parts.map((part) => part.line.element), scale);
    below.classList.toggle("hidden", !layers);
    if (layers) buildLayers(entry, layers);
  }

  function buildLayers(entry, layers) {
    const states = ["words", ...range(layers.rows).map((row) => `layer ${row}`)];
    switcher = segments("Vectors of", states, 0, (number) => choose(number - 1));
    const cell = (row, token) => {
      const value = layers.at(row, token);
      const label = `Layer ${row}, ${entry.tokens[token]}: ${digits(value)}`;
      const onclick = () => select({ [own("at")]: "layer", layer: layerOf(row), token });
      const button = make("button", { type: "button", class: "plain number", "aria-label": label, onclick }, value.toFixed(2));
      return make("td", { class: "number", "data-cell": `${row}.${token}` }, button);
    };
    const rowOf = (row) => [row ? String(row) : "0 (embeddings)", ...entry.tokens.map((_, token) => cell(row, token))];
    const rows = range(layers.rows).reverse().map(rowOf);
    const places = repeatedPlaces(entry.tokens);
    const names = entry.tokens.map((token, i) => placedName(token, places[i]));
    const grid = table(["layer", ...names], rows, "tight", directionOf(entry.tokens));
    cells = [...grid.querySelectorAll("button")];
    arrows(cells, entry.tokens.length);
    const note = "The same measure with the vectors of each layer in place of the word vectors; the last layer is on top. " +
      (entry.method === "occlusion" ? "Special tokens are not replaced: theirs is 0." : "Special tokens have vectors too.");
    course.replaceChildren(
      make("h2", {}, "Layer by layer"),
      make("p", { class: "soft small" }, note),
      switcher.element,
      make("div", { class: "scroll" }, grid),
    );
  }

  const draw = () => {
    if (built < 0) return;
    const entry = entries[built];
    const { layers } = numbers[built];
    const { layer, values } = chosen();
    const map = entry.signed ? "diverging" : "sequential";
    const most = largestOf(values);
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
  };

  function follow() {
    const { index, layer, values } = chosen();
    if (index !== built) build(index);
    showChoices(index);
    const entry = entries[index];
    const token = selectedIndex("token", entry.tokens.length);
    const most = largestOf(values);
    const places = repeatedPlaces(entry.tokens);
    const missing = layer < 0 ? entry.gap : entry.layer_gaps?.[layer] ?? [];
    gap.textContent = missing.length ? `Gap to completeness: ${missing.map((value) => value.toExponential(1)).join(" and ")}` : "";
    list.replaceChildren(
      make("h3", {}, layer < 0 ? `Effect of each token: ${entry.heading}` : `Effect of each token, ${layerName(layer)}`),
      gap,
      bars(entry.tokens.map((name, i) => ({ name, value: values[i], place: places[i] })), most, { signed: entry.signed }),
    );
    draw();
    if (token !== null) announce(`${entry.tokens[token]}: ${says(entry, values[token])}`);
  }

  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, choices, heading, strips),
    make("section", { class: "card" }, classes),
    below,
    make("section", { class: "card" }, list),
  );
  onRedraw(view.element, draw);
  view.start = async () => {
    for (const index of range(entries.length)) {
      const suffix = index ? String(index + 1) : "";
      const parts = ["effect", "scores", "layers"].map((name) => view.arrays[name + suffix]?.part() ?? null);
      const [effect, scores, layers] = await Promise.all(parts);
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
