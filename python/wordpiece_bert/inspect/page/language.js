// Predictions: words for each position, and layer by layer.

function wordCell(word, value, tag = "span") {
  const parts = [make("span", { class: "token" }, readable(word)), make("small", { class: "number" }, value.toFixed(2))];
  return keepShaded(make(tag, { class: "word", title: `${word}: ${digits(value)}` }, parts), "sequential", value);
}

builders.predictions = (view) => {
  const { tokens, words, masked, mask } = view.data;
  const { probabilities, own } = view.arrays;
  const places = repeatedPlaces(tokens);
  const body = make("div", { class: "scroll" });
  const line = strip(tokens, "Tokens: choose one", (token) => select({ token }));
  const detail = make("div", { "aria-live": "polite" });
  let matrix;
  let actual;

  function follow() {
    const index = selectedIndex("token", tokens.length, Math.max(0, tokens.indexOf(mask)));
    line.press(index);
    const row = matrix.row(index);
    detail.replaceChildren(
      make("h2", {}, `Position ${index}: ${isolated(readable(tokens[index]))}`),
      make("p", { class: "soft small" }, `Its own probability: ${digits(actual[index])}${masked ? ", with this token masked" : ""}.`),
      make("div", { class: "step" }, bars(words[index].map((name, k) => ({ name, value: row[k] })), 1)),
    );
  }

  async function start() {
    const [best, there] = await Promise.all([probabilities.part(), own.part()]);
    [matrix, actual] = [best, there.values];
    shadeLine();
    const cells = (i) => words[i].map((word, k) => make("td", {}, wordCell(word, matrix.at(i, k))));
    const rows = tokens.map((token, i) => [
      make("td", { class: "token" }, placedName(token, places[i])), make("td", { class: "number" }, digits(actual[i])), ...cells(i),
    ]);
    body.replaceChildren(table(["token", "its probability", ...words[0].map((_, k) => (k ? String(k + 1) : "most probable"))], rows));
  }

  const shadeLine = () => actual && line.shade("sequential", Array.from(actual), (i) => `probability ${digits(actual[i])}`);
  onRedraw(line.element, shadeLine);
  const note = masked
    ? "Each token was masked in turn: the model predicts it from the others."
    : "The model sees the text as it is, with the tokens that it predicts.";
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "What the model expects at each position"),
      make("p", { class: "soft small" }, `${note} The stronger the colour, the more probable the token.`),
      line.element, legend("sequential", "0", "1", "probability")),
    make("section", { class: "card" }, detail),
    make("section", { class: "card" }, make("h3", {}, "All positions"), body),
  );
  view.start = start;
  view.follow = follow;
  view.csv = () => [
    ["position", "token", "its probability", ...words[0].flatMap((_, k) => [`word ${k + 1}`, `probability ${k + 1}`])],
    ...tokens.map((token, i) => [i, token, actual[i], ...words[i].flatMap((word, k) => [word, matrix.at(i, k)])]),
  ];
  return view.element;
};

builders.lens = (view) => {
  const { tokens, words, mask } = view.data;
  const { probabilities, own } = view.arrays;
  const places = repeatedPlaces(tokens);
  const [layers, , top] = probabilities.shape;
  const body = make("div", { class: "scroll" });
  const detail = make("div", { "aria-live": "polite" });
  const parts = [];
  let actual;
  let buttons = [];

  function follow() {
    const layer = selectedState(layers);
    const index = selectedIndex("token", tokens.length, Math.max(0, tokens.indexOf(mask)));
    const place = (layers - 1 - layer) * tokens.length + index;
    buttons.forEach((button, at) => button.parentElement.classList.toggle("chosen", at === place));
    stopAt(buttons, place);
    const entries = range(top).map((k) => ({ name: words[layer][index][k], value: parts[layer].at(index, k) }));
    const course = range(layers).map((at) => ({ name: `layer ${at}`, value: actual.at(at, index) }));
    const token = isolated(placedName(tokens[index], places[index]));
    detail.replaceChildren(
      make("div", { class: "grid even" },
        make("div", {}, make("h3", {}, `After layer ${layer}, position ${index}: ${token}`), bars(entries, 1)),
        make("div", {}, make("h3", {}, `Probability of “${token}” after each layer`), bars(course, 1, { plain: true }))),
    );
  }

  async function start() {
    for (const layer of range(layers)) parts.push(await probabilities.part(layer));
    actual = await own.part();
    const cell = (layer, i) => {
      const [word] = words[layer][i];
      const known = { "aria-label": `Layer ${layer}, ${tokens[i]}: ${word}`, onclick: () => select({ layer: layerOf(layer), token: i }) };
      const style = { padding: "0", border: "0", minHeight: "24px", width: "100%" };
      return make("td", {}, make("button", { type: "button", ...known, style }, wordCell(word, parts[layer].at(i, 0))));
    };
    const rowOf = (layer) => [layer ? `${layer}` : "0 (embeddings)", ...tokens.map((_, i) => cell(layer, i))];
    const rows = range(layers).reverse().map(rowOf);
    const built = table(["layer", ...tokens.map((token, i) => placedName(token, places[i]))], rows, "tight", directionOf(tokens));
    body.replaceChildren(built);
    buttons = [...built.querySelectorAll("button")];
    arrows(buttons, tokens.length);
  }

  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "What each layer would predict"),
      make("p", { class: "soft small" },
        "The language head, which is made for the last layer, over the vectors of every layer. The last layer is on top."),
      body, legend("sequential", "0", "1", "probability")),
    make("section", { class: "card" }, detail),
  );
  view.start = start;
  view.follow = follow;
  view.csv = () => [
    ["after layer", "position", "token", "its probability", ...range(top).flatMap((k) => [`word ${k + 1}`, `probability ${k + 1}`])],
    ...range(layers).flatMap((layer) => tokens.map((token, i) => {
      const best = words[layer][i].slice(0, top).flatMap((word, k) => [word, parts[layer].at(i, k)]);
      return [layer, i, token, actual.at(layer, i), ...best];
    })),
  ];
  return view.element;
};
