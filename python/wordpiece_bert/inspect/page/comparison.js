// Two traces beside each other: their tokens, how far each unit and head differ, and the attention of any two heads.

builders.comparison = (view) => {
  const { names, tokens, groups, units, first } = view.data;
  const shapes = [view.arrays.first.shape, view.arrays.second.shape];
  const count = units.length;
  const name = (unit) => groups[units[unit]].map((places, side) => places.map((place) => readable(tokens[side][place])).join(" ")).filter((text, i, all) => all.indexOf(text) === i).join(" / ");
  const position = (unit) => groups[units[unit]][0][0]; // of the first, which other tabs show
  const unitOf = (token) => units.findIndex((number) => groups[number][0].includes(token));
  const maps = ["First", "Second", "Second − first"].map((label) => heat(`${label}: query units downwards, key units to the right`, "clamp(220px, 28vw, 380px)"));
  const heads = maps.map(() => make("h3", {}));
  const layerMap = heat("How alike the layers are: those of the first downwards, of the second to the right", "clamp(180px, 24vw, 300px)");
  const layerNote = make("p", { class: "soft small", "aria-live": "polite" });
  const detail = make("div", { "aria-live": "polite" });
  const controls = make("p", { class: "controls" });
  const grid = make("div", { class: "scroll" });
  let distances = null;
  let layers = null;
  let difference = null;
  let cells = [];
  let shown = null; // { matrices, layer, head }

  const tell = (number) => {
    const unit = units.indexOf(number);
    const says = groups[number].map((places, side) => `${names[side]}: ${places.map((place) => readable(tokens[side][place])).join(" ") || "nothing"}`);
    if (distances && unit >= 0) says.push(`1 − cosine after layer ${stateLayer()}: ${digits(distances.at(stateLayer(), unit))}`);
    return says.join("\n");
  };
  const line = aligned(groups, tokens, "Tokens of both: choose one", (number) => {
    const place = groups[number][0][0];
    if (place !== undefined) select({ token: place });
  }, tell);

  /** The layers and heads that are chosen, of both; the second follows the first unless it is chosen itself. */
  function chosen() {
    const layer = [selectedIndex("layer", shapes[0][0], first.layers[0])];
    const head = [selectedIndex("head", shapes[0][1], first.heads[0])];
    layer.push(selectedIndex("comparison.layer", shapes[1][0], selection.layer === undefined ? first.layers[1] : Math.min(layer[0], shapes[1][0] - 1)));
    head.push(selectedIndex("comparison.head", shapes[1][1], selection.head === undefined ? first.heads[1] : Math.min(head[0], shapes[1][1] - 1)));
    return { layer, head };
  }
  const stateLayer = () => chosen().layer[0] + 1; // the vectors that the layer makes

  const pickers = [0, 1].map((side) => {
    const prefix = side ? "comparison." : "";
    return ["layer", "head"].map((what, axis) =>
      choice(`${what} of the ${side ? "second" : "first"}`, range(shapes[side][axis]).map((i) => [String(i), String(i)]), (value) => select({ [prefix + what]: Number(value) })));
  });
  controls.append(...pickers.flat());

  const draw = onRedraw(() => {
    if (!shown) return;
    line.buttons.forEach((button, number) => {
      const unit = units.indexOf(number);
      const far = distances && unit >= 0 ? distances.at(stateLayer(), unit) : null;
      button.style.boxShadow = far === null ? "" : `inset 0 -4px 0 ${cssColour("sequential", Math.min(1, 0.15 + far))}`;
    });
    if (difference) {
      const most = Math.max(difference.largest, 1e-9);
      cells.forEach((cell, place) => shade(cell, "sequential", (0.8 * difference.values[place]) / most));
    }
  });

  function showLayers() {
    const { layer } = chosen();
    layerNote.textContent = `After layer ${layer[0] + 1} of the first and ${layer[1] + 1} of the second: ${digits(layers.at(layer[0] + 1, layer[1] + 1))} (linear CKA over ${count} units; 0: the embeddings).`;
  }

  function showDetail(query, key) {
    const [a, b] = shown.matrices.map((matrix) => matrix.row(query));
    const change = Array.from(b, (value, i) => value - a[i]);
    const order = ranked(change.map(Math.abs)).slice(0, 8);
    const most = change.reduce((x, y) => Math.max(x, Math.abs(y)), 1e-9);
    detail.replaceChildren(
      make("h3", { dir: "auto" }, `From ${name(query)}: where the weights differ most`),
      make("p", { class: "soft small", "data-role": "pair" }, key === null ? "Blue: more in the second; orange: less." : `To ${name(key)}: ${digits(a[key])} in the first, ${digits(b[key])} in the second, difference ${digits(change[key])}.`),
      bars(order.map((unit) => ({ name: name(unit), value: change[unit] })), most, { signed: true }),
    );
  }

  const begin = turns();
  view.follow = async () => {
    const isLast = begin();
    const { layer, head } = chosen();
    const matrices = await Promise.all(["first", "second"].map((key, side) => view.arrays[key].part(layer[side], head[side])));
    if (!isLast()) return;
    shown = { matrices, layer, head };
    pickers.forEach(([one, other], side) => {
      one.querySelector("select").value = String(layer[side]);
      other.querySelector("select").value = String(head[side]);
    });
    const change = (i, j) => matrices[1].at(i, j) - matrices[0].at(i, j);
    let most = 1e-9;
    for (const i of range(count)) for (const j of range(count)) most = Math.max(most, Math.abs(change(i, j)));
    const pair = (i, j) => `${name(i)} → ${name(j)}\nfirst ${digits(matrices[0].at(i, j))}, second ${digits(matrices[1].at(i, j))}, difference ${digits(change(i, j))}`;
    maps.slice(0, 2).forEach((map, side) => map.set(count, count, "sequential", (i, j) => Math.sqrt(matrices[side].at(i, j)), pair));
    maps[2].set(count, count, "diverging", (i, j) => change(i, j) / most, pair);
    heads.forEach((title, i) => (title.textContent = i < 2 ? `${["First", "Second"][i]}: layer ${layer[i]}, head ${head[i]}` : `Second − first, up to ±${digits(most)}`));
    const query = Math.max(0, unitOf(selectedIndex("token", tokens[0].length, 0)));
    const key = selection.pair === undefined ? -1 : unitOf(selectedIndex("pair", tokens[0].length, -1));
    line.buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(number === units[query])));
    stopAt(line.buttons, units[query]);
    cells.forEach((cell, place) => cell.setAttribute("aria-pressed", String(place === layer[0] * shapes[0][1] + head[0])));
    stopAt(cells, layer[0] * shapes[0][1] + head[0]);
    showDetail(query, key < 0 ? null : key);
    showLayers();
    draw();
  };

  view.start = async () => {
    layers = await view.arrays.layers.part();
    distances = view.arrays.distances ? await view.arrays.distances.part() : null;
    difference = view.arrays.heads ? await view.arrays.heads.part() : null;
    layerMap.set(layers.rows, layers.columns, "sequential", (i, j) => layers.at(i, j), (i, j) => `layer ${i} and layer ${j}: ${digits(layers.at(i, j))}`);
    layerMap.choose = (i, j) => select({ layer: Math.max(0, i - 1), "comparison.layer": Math.max(0, j - 1) });
    maps.forEach((map) => {
      map.choose = (i, j) => select({ token: position(i), pair: position(j) });
      cellKeys(map.canvas, () => [count, count], () => [Math.max(0, unitOf(selection.token)), Math.max(0, unitOf(selection.pair))], map.choose);
    });
    if (!difference) return;
    const button = (layer, head) => make("button", { type: "button", class: "plain number", "data-head": `${layer}.${head}`, "aria-label": `Layer ${layer}, head ${head}: ${digits(difference.at(layer, head))}`, "aria-pressed": "false", onclick: () => select({ layer, head, "comparison.layer": null, "comparison.head": null }) }, difference.at(layer, head).toFixed(2));
    const rows = range(shapes[0][0]).map((layer) => [String(layer), ...range(shapes[0][1]).map((head) => button(layer, head))]);
    grid.replaceChildren(table(["layer", ...range(shapes[0][1]).map(String)], rows, "tight"));
    cells = [...grid.querySelectorAll("button")];
    arrows(cells, shapes[0][1]);
  };
  view.csv = () => [
    ["query", "key", "first", "second", "difference"],
    ...range(count).flatMap((i) => range(count).map((j) => [name(i), name(j), shown.matrices[0].at(i, j), shown.matrices[1].at(i, j), shown.matrices[1].at(i, j) - shown.matrices[0].at(i, j)])),
  ];
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "Token by token"),
      make("p", { class: "soft small", dir: "auto" }, `Above: ${names[0]}. Below: ${names[1]}. ${view.arrays.distances ? "The line below a group is the darker, the farther its vectors are apart after the chosen layer." : "The vectors of the two have other widths or layers."}`),
      line.element, alignedLegend()),
    make("section", { class: "card" },
      make("h2", {}, "Attention between what both have"), controls,
      make("div", { class: "thirds" }, maps.map((map, i) => make("div", {}, heads[i], map.canvas)))),
    make("section", { class: "card" }, detail),
    view.arrays.heads ? make("section", { class: "card" }, make("h3", {}, "How far each head differs"), make("p", { class: "soft small" }, "Half the sum of the absolute differences of the weights, mean over the queries: 0 the same, 1 nothing in common."), grid) : null,
    make("section", { class: "card" }, make("h3", {}, "How alike the layers are"), layerMap.canvas, legend("sequential", "0", "1"), layerNote),
  );
  return view.element;
};
