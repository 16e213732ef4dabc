// Two traces beside each other: their tokens, how far each unit and head differ, and the attention of any two heads.

/** A square picture with the names of its rows at the left and of its columns above, as many as have room. */
function axes(picture, names) {
  const step = Math.max(1, Math.ceil(names.length / 24));
  const shown = range(names.length).filter((i) => i % step === 0);
  const at = (i) => `${(100 * (i + 0.5)) / names.length}%`;
  const axis = (side, place) => make("div", { class: `axis ${side}`, "aria-hidden": "true" },
    shown.map((i) => make("span", { class: "token", title: names[i], style: { [place]: at(i) } }, names[i])));
  return make("div", { class: "axes" }, axis("above", "left"), axis("beside", "top"), picture);
}

builders.comparison = (view) => {
  const { names, tokens, groups, units, first } = view.data;
  const shapes = [view.arrays.first.shape, view.arrays.second.shape];
  const count = units.length;
  const own = (name) => `${view.name}.${name}`;
  const places = [0, 1].map((side) => repeatedPlaces(tokens[side]));
  const words = (number, side) => groups[number][side].map((place) => placedName(tokens[side][place], places[side][place])).join(" ");
  const name = (unit) => [...new Set([0, 1].map((side) => words(units[unit], side)))].join(" / ");
  /** What a picture's axes have for a unit: the tokens of its text, or of both. */
  const axisName = (picture) => (unit) => (picture < 2 ? words(units[unit], picture) : name(unit));
  /** Of which of the two the chosen token is: of the first, unless the text of the second is chosen. */
  const side = () => Number(view.texts.length > 1 && view.texts[0] !== view.texts[1] && view.texts[1] === selection.text);
  const position = (unit) => groups[units[unit]][side()][0];
  const unitOf = (token) => units.findIndex((number) => groups[number][side()].includes(token));
  const what = "query units downwards, key units to the right";
  const maps = ["First", "Second", "Second − first"].map((label) => heat(`${label}: ${what}`, "clamp(220px, 28vw, 380px)"));
  const heads = maps.map(() => make("h3", {}));
  const alike = "How alike the layers are: those of the first downwards, of the second to the right";
  const layerMap = heat(alike, "clamp(180px, 24vw, 300px)");
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
    const says = names.map((called, side) => `${isolated(called)}: ${isolated(words(number, side) || "nothing")}`);
    if (distances && unit >= 0) says.push(`1 − cosine after layer ${shownState()}: ${digits(distances.at(shownState(), unit))}`);
    return says.join("\n");
  };
  const line = aligned(groups, tokens, "Tokens of both: choose one", (number) => {
    const [mine, other] = [side(), 1 - side()].map((one) => groups[number][one][0]);
    if (mine !== undefined) select({ token: mine });
    else if (view.texts[0] !== view.texts[1]) select({ text: view.texts[1 - side()], token: other });
  }, tell);

  /** The layers and heads that are chosen, of both; the second follows the first unless it is chosen itself. */
  function chosen() {
    const layer = [selectedIndex("layer", shapes[0][0], first.layers[0])];
    const head = [selectedIndex("head", shapes[0][1], first.heads[0])];
    const follows = (name, [mine], at, count) => (selection[name] === undefined ? at[1] : Math.min(mine, count - 1));
    layer.push(selectedIndex(own("layer"), shapes[1][0], follows("layer", layer, first.layers, shapes[1][0])));
    head.push(selectedIndex(own("head"), shapes[1][1], follows("head", head, first.heads, shapes[1][1])));
    return { layer, head };
  }
  const shownState = () => stateOf(chosen().layer[0]);

  const pickers = [0, 1].map((side) => {
    return ["layer", "head"].map((what, axis) => {
      const options = range(shapes[side][axis]).map((i) => [String(i), String(i)]);
      const name = side ? own(what) : what;
      return choice(`${what} of the ${side ? "second" : "first"}`, options, (value) => select({ [name]: Number(value) }));
    });
  });
  controls.append(...pickers.flat());

  const draw = () => {
    if (!shown) return;
    line.buttons.forEach((button, number) => {
      const unit = units.indexOf(number);
      const far = distances && unit >= 0 ? distances.at(shownState(), unit) : null;
      button.style.boxShadow = far === null ? "" : `inset 0 -4px 0 ${cssColour("sequential", Math.min(1, 0.15 + far))}`;
    });
    if (difference) {
      const most = Math.max(difference.largest, 1e-9);
      cells.forEach((cell, place) => shade(cell, "sequential", (0.8 * difference.values[place]) / most));
    }
  };

  function showLayers() {
    const [one, other] = chosen().layer.map(stateOf);
    const value = digits(layers.at(one, other));
    layerMap.mark(one, other);
    const how = `(linear CKA over ${counted(count, "unit")}; 0: the embeddings)`;
    layerNote.textContent = `After layer ${one} of the first and ${other} of the second: ${value} ${how}.`;
  }

  /** A group of tokens that only one of the two has. */
  function showAlone(number) {
    const where = groups[number][0].length ? 0 : 1;
    detail.replaceChildren(
      make("h3", {}, isolated(words(number, where))),
      make("p", { class: "soft small", "data-role": "pair" }, `Only in the ${["first", "second"][where]}: nothing to compare.`),
    );
  }

  function showDetail(query, key) {
    const [a, b] = shown.matrices.map((matrix) => matrix.row(query));
    const change = Array.from(b, (value, i) => value - a[i]);
    const order = ranked(change.map(Math.abs)).slice(0, 8);
    const numbers = key === null ? [] : [a, b, change].map((values) => digits(values[key]));
    const of = ([one, other, less]) => `To ${isolated(name(key))}: ${one} in the first, ${other} in the second, difference ${less}.`;
    detail.replaceChildren(
      make("h3", {}, `From ${isolated(name(query))}: where the weights differ most`),
      make("p", { class: "soft small", "data-role": "pair" }, key === null ? "Blue: more in the second; orange: less." : of(numbers)),
      bars(order.map((unit) => ({ name: name(unit), value: change[unit] })), largestOf(change), { signed: true, plain: true }),
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
    const [first, second] = matrices.map((matrix) => matrix.values);
    const most = largestOf(second.map((value, at) => value - first[at]));
    const pair = (i, j) => {
      const [one, other] = matrices.map((matrix) => digits(matrix.at(i, j)));
      return `${isolated(name(i))} → ${isolated(name(j))}\nfirst ${one}, second ${other}, difference ${digits(change(i, j))}`;
    };
    maps.slice(0, 2).forEach((map, side) => map.set(count, count, "sequential", (i, j) => Math.sqrt(matrices[side].at(i, j)), pair));
    maps[2].set(count, count, "diverging", (i, j) => change(i, j) / most, pair);
    const titles = ["First", "Second"].map((which, side) => `${which}: layer ${layer[side]}, head ${head[side]}`);
    [...titles, `Second − first, up to ±${digits(most)}`].forEach((title, i) => (heads[i].textContent = title));
    const [token, other] = [["token", 0], ["pair", -1]].map(([name, none]) => selectedIndex(name, tokens[side()].length, none));
    // A token of no group, as a special one, is not in this view: its first unit is shown.
    const found = groups.findIndex((group) => group[side()].includes(token));
    const number = found < 0 ? units[0] : found;
    const query = units.indexOf(number);
    const key = selection.pair === undefined ? -1 : unitOf(other);
    for (const map of maps) map.mark(query, Math.max(0, key));
    pressOne(line.buttons, number);
    pressOne(cells, layer[0] * shapes[0][1] + head[0]);
    if (query < 0) showAlone(number);
    else showDetail(query, key < 0 ? null : key);
    showLayers();
    draw();
  };

  view.start = async () => {
    layers = await view.arrays.layers.part();
    distances = view.arrays.distances ? await view.arrays.distances.part() : null;
    difference = view.arrays.heads ? await view.arrays.heads.part() : null;
    const tellLayers = (i, j) => `layer ${i} and layer ${j}: ${digits(layers.at(i, j))}`;
    layerMap.set(layers.rows, layers.columns, "sequential", (i, j) => layers.at(i, j), tellLayers);
    layerMap.choose = (i, j) => select({ layer: Math.max(0, layerOf(i)), [own("layer")]: Math.max(0, layerOf(j)) });
    layerMap.keyed(() => chosen().layer.map(stateOf));
    maps.forEach((map) => {
      map.choose = (i, j) => select({ token: position(i), pair: position(j) });
      map.keyed(() => [selection.token, selection.pair].map((token) => Math.max(0, unitOf(token))));
    });
    if (!difference) return;
    const button = (layer, head) => {
      const value = difference.at(layer, head);
      const known = { "data-head": `${layer}.${head}`, "aria-label": `Layer ${layer}, head ${head}: ${digits(value)}` };
      const choose = () => select({ layer, head, [own("layer")]: null, [own("head")]: null });
      const button = { type: "button", class: "plain number", ...known, "aria-pressed": "false", onclick: choose };
      return make("button", button, value.toFixed(2));
    };
    const rows = range(shapes[0][0]).map((layer) => [String(layer), ...range(shapes[0][1]).map((head) => button(layer, head))]);
    grid.replaceChildren(table(["layer", ...range(shapes[0][1]).map(String)], rows, "tight"));
    cells = [...grid.querySelectorAll("button")];
    arrows(cells, shapes[0][1]);
  };
  view.csv = () => [
    ["query", "key", "first", "second", "difference"],
    ...range(count).flatMap((i) => range(count).map((j) => {
      const [one, other] = shown.matrices.map((matrix) => matrix.at(i, j));
      return [name(i), name(j), one, other, other - one];
    })),
  ];
  const noteOfLine = view.arrays.distances
    ? "The line below a group is the darker, the farther its vectors are apart after the chosen layer."
    : "The vectors of the two have other widths or layers.";
  const noteOfHeads = "Half the sum of the absolute differences of the weights, mean over the queries: 0 the same, 1 nothing in common.";
  const differences = () => make("section", { class: "card" },
    make("h3", {}, "How far each head differs"), make("p", { class: "soft small" }, noteOfHeads), grid);
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "Token by token"),
      make("p", { class: "soft small" }, `Above: ${isolated(names[0])}. Below: ${isolated(names[1])}. ${noteOfLine}`),
      line.element, alignedLegend()),
    make("section", { class: "card" },
      make("h2", {}, "Attention between what both have"), controls,
      make("div", { class: "thirds" }, maps.map((map, i) => make("div", {}, heads[i], axes(map.element, range(count).map(axisName(i))))))),
    make("section", { class: "card" }, detail),
    view.arrays.heads ? differences() : null,
    make("section", { class: "card" },
      make("h3", {}, "How alike the layers are"), layerMap.element, legend("sequential", "0", "1"), layerNote),
  );
  onRedraw(view.element, draw);
  return view.element;
};
