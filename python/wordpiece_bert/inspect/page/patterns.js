// Patterns: what each head does most, by colour and as a table.

const HABIT_NOTES = {
  previous: "the token before", next: "the token after", itself: "the token itself", first: "the first token, [CLS]",
  separator: "the separators, [SEP]", "same word": "other pieces of its word, or the same token elsewhere",
  "same sentence": "tokens of its own text of the pair", broad: "all tokens about equally",
};

builders.patterns = (view) => {
  const { habits, labels, texts, pair } = view.data;
  const { measures } = view.arrays;
  const [layers, heads] = measures.shape;
  const detail = make("div", { "aria-live": "polite" });
  const grid = make("div", { class: "scroll" });
  const whole = make("div", { class: "scroll" });
  const cells = [];

  const begin = turns();
  async function follow() {
    const isLast = begin();
    const [layer, head] = [selectedIndex("layer", layers, 0), selectedIndex("head", heads, 0)];
    const row = (await measures.part(layer)).row(head);
    if (!isLast()) return;
    cells.forEach((cell, index) => cell.setAttribute("aria-pressed", String(index === layer * heads + head)));
    stopAt(cells, layer * heads + head);
    detail.replaceChildren(
      make("h2", {}, `Layer ${layer}, head ${head}: ${labels[layer][head]}`),
      make("p", { class: "soft small" }, labels[layer][head] === "mixed" ? "No habit stands out." : `It looks mostly at ${HABIT_NOTES[labels[layer][head]]}.`),
      make("div", { class: "step" }, bars(habits.map((name, i) => ({ name, value: row[i], colour: content.colours.habits[name] })), 1, { plain: true })),
    );
  }

  async function start() {
    const parts = await Promise.all(range(layers).map((layer) => measures.part(layer)));
    const heat = (value) => {
      const cell = make("td", { class: "number" }, digits(value));
      const draw = onRedraw(() => shade(cell, "sequential", value * 0.8));
      draw();
      return cell;
    };
    const rows = parts.flatMap((part, layer) =>
      range(heads).map((head) => [layer, head, swatch(labels[layer][head]), ...Array.from(part.row(head), heat)]));
    whole.replaceChildren(table(["layer", "head", "habit", ...habits], rows));
  }

  const swatch = (name) => make("span", {}, make("span", { class: "swatch", style: { backgroundColor: content.colours.habits[name] } }), name);
  const rows = range(layers).map((layer) => [
    String(layer),
    ...range(heads).map((head) => {
      const name = labels[layer][head];
      const hex = content.colours.habits[name];
      const cell = make("button", { type: "button", class: "chip", "aria-label": `Layer ${layer}, head ${head}: ${name}`, "aria-pressed": "false", onclick: () => select({ layer, head }) }, name);
      Object.assign(cell.style, { backgroundColor: hex, color: inkOnColour(hexParts(hex)), width: "100%", minWidth: "74px", fontSize: "12px", padding: "5px 3px" });
      cells.push(cell);
      return cell;
    }),
  ]);
  arrows(cells, heads);
  grid.append(table(["layer", ...range(heads).map(String)], rows, "tight"));
  const used = [...new Set(labels.flat())];
  const note = texts > 1 ? `Means over ${texts} texts.` : "Measured on this text.";
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" }, make("h2", {}, "What each head looks at"), make("p", { class: "soft small" }, `Rows are layers, columns are heads. ${note}${pair ? "" : " “Same sentence” needs a pair of texts."}`), make("div", { class: "legend" }, used.map(swatch)), grid),
    make("section", { class: "card" }, detail),
    make("section", { class: "card" }, make("h3", {}, "All measures"), make("p", { class: "soft small" }, "The mean share of a token's weight that goes there; broad: entropy, 1 for equal weights."), whole),
  );
  view.start = start;
  view.follow = follow;
  view.csv = async () => {
    const parts = await Promise.all(range(layers).map((layer) => measures.part(layer)));
    return [["layer", "head", "habit", ...habits], ...parts.flatMap((part, layer) => range(heads).map((head) => [layer, head, labels[layer][head], ...part.row(head)]))];
  };
  return view.element;
};
