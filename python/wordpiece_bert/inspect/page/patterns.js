// Patterns: what each head does most, by colour and as a table.

const HABIT_NOTES = {
  previous: "the token before", next: "the token after", itself: "the token itself", first: "the first token, [CLS]",
  separator: "the separators, [SEP]", "same word": "other pieces of its word, or the same token elsewhere",
  "same sentence": "tokens of its own text of the pair",
};

builders.patterns = (view) => {
  const { labels, texts, pair } = view.data;
  // Of one text, every token is in the same one.
  const habits = view.data.habits.filter((name) => pair || name !== "same sentence");
  const measuresOf = (part, head) => habits.map((name) => part.at(head, view.data.habits.indexOf(name)));
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
    const row = measuresOf(await measures.part(layer), head);
    if (!isLast()) return;
    pressOne(cells, layer * heads + head);
    const label = labels[layer][head];
    const share = habits.includes(label) ? digits(row[habits.indexOf(label)]) : "";
    const note = label === "mixed" ? "No habit reaches its threshold."
      : label === "broad" ? `Its first habit: its weight is spread over the tokens, with ${share} of the largest entropy.`
      : `Its first habit: ${share} of the weight goes to ${HABIT_NOTES[label]}, a mean over the tokens for which there is one.`;
    const entries = habits.map((name, i) => ({ name, value: row[i], colour: content.colours.habits[name] }));
    detail.replaceChildren(
      make("h2", {}, `Layer ${layer}, head ${head}: ${label}`),
      make("p", { class: "soft small" }, note),
      make("div", { class: "step" }, bars(entries, 1, { plain: true })),
    );
  }

  async function start() {
    const parts = await Promise.all(range(layers).map((layer) => measures.part(layer)));
    const shaded = (value) => keepShaded(make("td", { class: "number" }, digits(value)), "sequential", value * 0.8);
    const rows = parts.flatMap((part, layer) =>
      range(heads).map((head) => [layer, head, swatch(labels[layer][head]), ...measuresOf(part, head).map(shaded)]));
    whole.replaceChildren(table(["layer", "head", "habit", ...habits], rows));
  }

  const colourOf = (name) => ({ backgroundColor: content.colours.habits[name] });
  const swatch = (name) => make("span", {}, make("span", { class: "swatch", style: colourOf(name) }), name);
  const rows = range(layers).map((layer) => [
    String(layer),
    ...range(heads).map((head) => {
      const name = labels[layer][head];
      const style = { ...colourOf(name), color: inkOnColour(hexParts(content.colours.habits[name])) };
      const known = { class: "chip habit", "aria-label": `Layer ${layer}, head ${head}: ${name}`, "aria-pressed": "false" };
      const cell = make("button", { type: "button", ...known, style, onclick: () => select({ layer, head }) }, name);
      cells.push(cell);
      return cell;
    }),
  ]);
  arrows(cells, heads);
  grid.append(table(["layer", ...range(heads).map(String)], rows, "tight"));
  const used = [...new Set(labels.flat())];
  const needsPair = pair ? "" : " Whether a head stays within a sentence is measured of a pair of texts.";
  const note = texts > 1 ? `Means over ${texts} texts.` : "Measured on this text.";
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "What each head looks at"),
      make("p", { class: "soft small" }, `Rows are layers, columns are heads. ${note}${needsPair}`),
      make("div", { class: "legend" }, used.map(swatch)), grid),
    make("section", { class: "card" }, detail),
    make("section", { class: "card" },
      make("h3", {}, "All measures"),
      make("p", { class: "soft small" }, "The mean share of a token's weight that goes there; broad: entropy, 1 for equal weights."),
      whole),
  );
  view.start = start;
  view.follow = follow;
  view.csv = async () => {
    const parts = await Promise.all(range(layers).map((layer) => measures.part(layer)));
    const rowOf = (part, layer, head) => [layer, head, labels[layer][head], ...measuresOf(part, head)];
    const values = parts.flatMap((part, layer) => range(heads).map((head) => rowOf(part, layer, head)));
    return [["layer", "head", "habit", ...habits], ...values];
  };
  return view.element;
};
