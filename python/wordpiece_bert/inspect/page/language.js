// Predictions: words for each position, layer by layer, and the tokens that a classifier depends on.

function wordCell(word, value, tag = "span") {
  const cell = make(tag, { class: "word", title: `${word}: ${digits(value)}` }, make("span", { class: "token" }, readable(word)), make("small", { class: "number" }, value.toFixed(2)));
  const draw = onRedraw(() => shade(cell, "sequential", value));
  draw();
  return cell;
}

builders.predictions = (view) => {
  const { tokens, words, masked, mask } = view.data;
  const { probabilities, own } = view.arrays;
  const body = make("div", { class: "scroll" });
  const line = strip(tokens, "Tokens: choose one", choose);
  const detail = make("div", { "aria-live": "polite" });
  let matrix;
  let actual;
  let chosen = Math.max(0, tokens.indexOf(mask));

  function choose(index) {
    chosen = index;
    line.press(index);
    if (!matrix) return; // it is shown when the numbers are there
    const row = matrix.row(index);
    detail.replaceChildren(
      make("h2", {}, `Position ${index}: ${readable(tokens[index])}`),
      make("p", { class: "soft small" }, `Its own probability: ${digits(actual[index])}${masked ? ", with this token masked" : ""}.`),
      make("div", { class: "step" }, bars(words[index].map((name, k) => ({ name, value: row[k] })), 1)),
    );
  }

  async function start() {
    const [best, there] = await Promise.all([probabilities.part(), own.part()]);
    [matrix, actual] = [best, there.values];
    line.shade("sequential", Array.from(actual), (i) => `probability ${digits(actual[i])}`);
    const cells = (i) => words[i].map((word, k) => make("td", {}, wordCell(word, matrix.at(i, k))));
    const rows = tokens.map((token, i) => [make("td", { class: "token" }, readable(token)), make("td", { class: "number" }, digits(actual[i])), ...cells(i)]);
    body.replaceChildren(table(["token", "its probability", ...words[0].map((_, k) => (k ? String(k + 1) : "most probable"))], rows));
    choose(chosen);
  }

  onRedraw(() => matrix && line.shade("sequential", Array.from(actual), (i) => `probability ${digits(actual[i])}`));
  const note = masked ? "Each token was masked in turn: the model predicts it from the others." : "The model sees the text as it is, with the tokens that it predicts.";
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, make("h2", {}, "What the model expects at each position"), make("p", { class: "soft small" }, `${note} The stronger the colour, the more probable the token.`), line.element, legend("sequential", "0", "1", "probability")),
    make("section", { class: "card" }, detail),
    make("section", { class: "card" }, make("h3", {}, "All positions"), body),
  );
  view.start = start;
  return view.element;
};

builders.lens = (view) => {
  const { tokens, words } = view.data;
  const { probabilities, own } = view.arrays;
  const [layers, , top] = probabilities.shape;
  const body = make("div", { class: "scroll" });
  const detail = make("div", { "aria-live": "polite" });
  const parts = [];
  let actual;
  let last = null;

  function choose(layer, index, cell) {
    last?.classList.remove("chosen");
    cell?.classList.add("chosen");
    last = cell;
    const entries = range(top).map((k) => ({ name: words[layer][index][k], value: parts[layer].at(index, k) }));
    const course = range(layers).map((at) => ({ name: `layer ${at}`, value: actual.at(at, index) }));
    detail.replaceChildren(
      make("div", { class: "grid even" },
        make("div", {}, make("h3", {}, `After layer ${layer}, position ${index}: ${readable(tokens[index])}`), bars(entries, 1)),
        make("div", {}, make("h3", {}, `Probability of “${readable(tokens[index])}” after each layer`), bars(course, 1, { plain: true }))),
    );
  }

  async function start() {
    for (const layer of range(layers)) parts.push(await probabilities.part(layer));
    actual = await own.part();
    const cell = (layer, i) => {
      const inner = wordCell(words[layer][i][0], parts[layer].at(i, 0));
      const box = make("td", {}, make("button", { type: "button", "aria-label": `Layer ${layer}, ${tokens[i]}: ${words[layer][i][0]}`, onclick: () => choose(layer, i, box) }, inner));
      Object.assign(box.firstChild.style, { padding: "0", border: "0", minHeight: "0", width: "100%" });
      return box;
    };
    const rows = range(layers).reverse().map((layer) => [layer ? `${layer}` : "0 (embeddings)", ...tokens.map((_, i) => cell(layer, i))]);
    const built = table(["layer", ...tokens.map(readable)], rows, "tight");
    body.replaceChildren(built);
    arrows([...built.querySelectorAll("button")], tokens.length);
    choose(layers - 1, 0, built.querySelector("tbody td:nth-child(2)"));
  }

  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, make("h2", {}, "What each layer would predict"), make("p", { class: "soft small" }, "The language head, which is made for the last layer, over the vectors of every layer. The last layer is on top."), body, legend("sequential", "0", "1", "probability")),
    make("section", { class: "card" }, detail),
  );
  view.start = start;
  return view.element;
};

builders.saliency = (view) => {
  const { tokens, labels, label, chosen, signed, heading, note, probabilities } = view.data;
  const map = signed ? "diverging" : "sequential";
  const line = strip(tokens, "Tokens by effect", (index) => effect && announce(`${tokens[index]}: ${digits(effect[index])}`));
  const list = make("div", {});
  const classes = make("div", {});
  const foot = make("div", {});
  let effect;

  const draw = onRedraw(() => {
    if (!effect) return;
    const most = effect.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    line.shade(map, Array.from(effect, (value) => (0.85 * value) / most), (i) => `${signed && effect[i] >= 0 ? "+" : ""}${digits(effect[i])}`);
    list.replaceChildren(bars(tokens.map((name, i) => ({ name, value: effect[i] })), most, { signed }));
  });

  async function start() {
    effect = (await view.arrays.effect.part()).values;
    const scores = (await view.arrays.scores.part()).values;
    const most = probabilities ? 1 : scores.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    classes.replaceChildren(make("h3", {}, probabilities ? "Probabilities" : "Scores"), bars(labels.map((name, i) => ({ name, value: scores[i] })), most, { signed: !probabilities, plain: true }));
    foot.replaceChildren(make("h2", {}, `Why “${label}”, ${digits(scores[chosen])}`), make("p", { class: "soft small" }, note));
    draw();
  }

  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, foot, line.element, signed ? legend(map, "against", "for") : legend(map, "0", "most")),
    make("section", { class: "card" }, classes),
    make("section", { class: "card" }, make("h3", {}, `Effect of each token: ${heading}`), list),
  );
  view.start = start;
  return view.element;
};
