// Neurons: query and key of a pair of tokens, their elementwise product, its sum, and the softmax over all keys.

builders.neurons = (view) => {
  const { tokens, layers, first } = view.data;
  const { queries, keys, bias } = view.arrays;
  const places = repeatedPlaces(tokens);
  const [, heads, length, size] = queries.shape;
  const state = {};
  const root = Math.sqrt(size);
  const queryStrip = strip(tokens, "Query token", (token) => select({ token }));
  const keyStrip = strip(tokens, "Key token", (pair) => select({ pair }));
  const layerChoice = segments("Layer", layers, 0, (index) => select({ layer: layers[index] }));
  const headChoice = segments("Head", range(heads), 0, (head) => select({ head }));
  const parts = [queries, keys, ...(bias ? [bias] : [])];
  const headButtons = headChoice.element.querySelectorAll("button");
  headButtons.forEach((button, head) => onDwell(button, () => parts.forEach((array) => array.part(state.layer, head))));
  const heading = make("h2");
  const equation = make("p", { class: "equation number", "data-equation": "" });
  const names = ["query q", "key k", "q × k"];
  const cells = names.map((name) => heat(`${name}, ${size} numbers`, "34px"));
  const list = make("div", {});
  const pairCard = make(
    "section",
    { class: "card" },
    heading,
    make("p", { class: "soft small" },
      "The weight of a key: multiply query and key number by number, add up, divide by √d, and take the softmax over all keys."),
    equation,
    make("div", { class: "vector" }, names.flatMap((name, i) => [make("span", { class: "small" }, name), cells[i].canvas])),
    legend("diverging", "negative", "positive", "colours by square root, each row of numbers by its largest"),
  );
  const controls = make(
    "section",
    { class: "card" },
    make("div", { class: "controls" }, layerChoice.element, headChoice.element),
    make("h3", { class: "step" }, "Query: which token looks"), queryStrip.element,
    make("h3", { class: "step" }, "Key: which token is looked at"), keyStrip.element,
    make("p", { class: "soft small" }, "Keys are coloured by their weight for this query."),
  );

  const begin = turns();
  async function update() {
    const isLast = begin();
    const layer = layers.includes(selection.layer) ? layers.indexOf(selection.layer) : first.layer;
    const [query, key] = [selectedIndex("token", length, first.query), selectedIndex("pair", length, first.key)];
    Object.assign(state, { layer, head: selectedIndex("head", heads, first.head), query, key });
    layerChoice.set(state.layer, false);
    headChoice.set(state.head, false);
    const [q, k, b] = await Promise.all(parts.map((array) => array.part(state.layer, state.head)));
    if (!isLast()) return;
    const added = b?.row(state.query);
    const vector = q.row(state.query);
    const sums = new Float64Array(length);
    for (let j = 0; j < length; j++) for (let c = 0; c < size; c++) sums[j] += k.at(j, c) * vector[c];
    const scores = sums.map((sum, j) => sum / root + (added ? added[j] : 0));
    const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const powers = scores.map((score) => Math.exp(score - most));
    const total = powers.reduce((a, b) => a + b, 0);
    const weights = powers.map((power) => power / total);
    show(vector, k, sums, scores, weights, added);
  }

  function show(query, k, sums, scores, weights, added) {
    const { key } = state;
    const [from, to] = [state.query, key].map((place) => isolated(placedName(tokens[place], places[place])));
    heading.textContent = `Layer ${layers[state.layer]}, head ${state.head}: ${from} → ${to}`;
    const more = added ? ` ${added[key] < 0 ? "−" : "+"} ${Math.abs(added[key]).toFixed(3)} for the distance` : "";
    const score = `q·k / √${size}${more} = ${scores[key].toFixed(3)}`;
    equation.textContent = `q·k = ${sums[key].toFixed(3)}   ·   ${score}   ·   softmax = ${digits(weights[key])}`;
    const vectors = [query, k.row(key), query.map((value, c) => value * k.at(key, c))];
    vectors.forEach((values, i) => stripOf(cells[i], values, names[i]));
    queryStrip.press(state.query);
    keyStrip.press(key);
    view.csv = () => [
      ["key position", "key", "q·k", "score", "softmax"],
      ...tokens.map((token, j) => [j, token, sums[j], scores[j], weights[j]]),
    ];
    const shades = Float32Array.from(weights, Math.sqrt);
    keyStrip.shade("sequential", shades, (i) => `weight ${digits(weights[i])}`);
    const order = length <= 16 ? range(length) : ranked(weights).slice(0, 16);
    const rows = order.map((j) => keyRow(j, query, k, sums, scores, weights));
    refill(
      list,
      make("h3", {}, length <= 16 ? "All keys" : "The 16 keys with the largest weights"),
      make("div", { class: "scroll" }, table(["key", "k", "q × k", "q·k", "score", "softmax"], rows)),
    );
    const buttons = rows.map(([button]) => button);
    arrows(buttons);
    pressOne(buttons, order.indexOf(key));
    view.element.dataset.state = `${state.layer} ${state.head} ${state.query} ${key}`;
  }

  function keyRow(j, query, k, sums, scores, weights) {
    const vector = heat(`key ${tokens[j]}`, "18px", false);
    const product = heat(`product with ${tokens[j]}`, "18px", false);
    stripOf(vector, k.row(j), "key");
    stripOf(product, query.map((value, c) => value * k.at(j, c)), "q × k");
    for (const one of [vector, product]) one.canvas.style.minWidth = "110px";
    const button = make("button", { type: "button", class: "token", dir: "auto", onclick: () => select({ pair: j }) }, placedName(tokens[j], places[j]));
    const numbers = [sums[j].toFixed(2), scores[j].toFixed(2), digits(weights[j])].map((text) => make("td", { class: "number" }, text));
    return [button, vector.canvas, product.canvas, ...numbers];
  }

  function stripOf(cell, values, name) {
    const most = largestOf(values);
    const share = (_, c) => Math.sign(values[c]) * Math.sqrt(Math.abs(values[c]) / most);
    cell.set(1, size, "diverging", share, (_, c) => `${name}[${c}] = ${values[c].toFixed(3)}`);
  }

  view.element = make("div", { class: "grid" }, controls, pairCard, make("section", { class: "card" }, list));
  onRedraw(view.element, update);
  view.start = () => {};
  view.follow = update;
  return view.element;
};
