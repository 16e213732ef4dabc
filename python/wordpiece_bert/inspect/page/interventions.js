// Interventions: heads that are off or taken from another text, and what the model says then.

builders.interventions = (view) => {
  const { tokens, change, rows, columns, measure, heads: sets, shape } = view.data;
  const [layers, heads] = shape;
  const ofTokens = rows.length > 1;
  const ofSentence = measure === "cosine";
  const isWhole = (set) => set.length === heads && set.every(([layer]) => layer === set[0][0]) && heads > 1;
  const single = new Map(); // "layer.head" and "layer.all" → the number of the intervention
  const others = [];
  sets.forEach((set, number) => {
    if (set.length === 1) single.set(`${set[0][0]}.${set[0][1]}`, number);
    else if (isWhole(set)) single.set(`${set[0][0]}.all`, number);
    else others.push(number);
  });
  const called = (set) => (set.length === 1 ? `layer ${set[0][0]}, head ${set[0][1]}` : isWhole(set) ? `all heads of layer ${set[0][0]}` : set.map(([layer, head]) => `${layer}.${head}`).join(", "));
  const done = change === "off" ? "switched off" : `taken from “${change}”`;
  const grid = make("div", { class: "scroll" });
  const more = make("p", { class: "controls" });
  const detail = make("div", { "aria-live": "polite" });
  const line = ofTokens ? strip(tokens, "Tokens by how far they moved", (token) => select({ token })) : null;
  const buttons = [];
  let before = null;
  let moved = null;
  let shown = null; // { number, after }

  /** The intervention that is chosen: of the selected layer and head, or the one that moved most. */
  function number() {
    const set = selectedIndex("interventions.set", sets.length);
    if (set !== null && selection["interventions.of"] === "set") return set;
    if (selection.layer !== undefined) {
      const head = selection["interventions.of"] === "layer" ? "all" : selectedIndex("head", heads, 0);
      const found = single.get(`${selectedIndex("layer", layers, 0)}.${head}`);
      if (found !== undefined) return found;
    }
    return ranked(moved)[0];
  }

  const put = (where, text, index, chosen) => {
    const button = make("button", { type: "button", class: "plain number", "data-set": String(index), "aria-pressed": "false", "aria-label": `${called(sets[index])}: moves by ${digits(moved[index])}`, onclick: () => select(chosen) }, text);
    buttons.push(button);
    return button;
  };

  view.start = async () => {
    before = await view.arrays.before.part();
    moved = (await view.arrays.moved.part()).values;
    if (single.size) {
      const cell = (layer, head) => {
        const index = single.get(`${layer}.${head}`);
        if (index === undefined) return "";
        return put(grid, moved[index].toFixed(2), index, { layer, head: head === "all" ? null : head, "interventions.of": head === "all" ? "layer" : null, "interventions.set": null });
      };
      const list = range(layers).map((layer) => [String(layer), ...range(heads).map((head) => cell(layer, head)), cell(layer, "all")]);
      grid.replaceChildren(table(["layer", ...range(heads).map(String), "all"], list, "tight"));
      arrows(buttons.slice(), heads + 1);
    }
    const together = others.map((index) => put(more, `${called(sets[index])}: ${moved[index].toFixed(2)}`, index, { "interventions.of": "set", "interventions.set": index }));
    more.replaceChildren(...together);
    arrows(together);
    more.classList.toggle("hidden", !together.length);
  };

  const draw = onRedraw(() => {
    if (!shown) return;
    const most = moved.reduce((a, b) => Math.max(a, b), 1e-9);
    for (const button of buttons) shade(button, "sequential", (0.85 * Math.max(0, moved[Number(button.dataset.set)])) / most);
    if (line) {
      const far = rows.map((_, row) => columns.reduce((sum, _name, column) => sum + Math.abs(shown.after.at(row, column) - before.at(row, column)), 0) / 2);
      const largest = far.reduce((a, b) => Math.max(a, b), 1e-9);
      line.shade("sequential", far.map((value) => (0.85 * value) / largest), (row) => `moved by ${digits(far[row])}`);
    }
  });

  /** Names with what was said before and after; of a sentence, in the order of the new cosines. */
  function changes(row, after) {
    const list = range(columns.length).map((column) => ({ name: columns[column], old: before.at(row, column), now: after.at(row, column) }));
    if (!ofSentence) return list;
    const rank = (values) => new Map(ranked(values).map((place, index) => [place, index + 1]));
    const neighbours = list.slice(1);
    const [was, is] = [rank(neighbours.map((one) => one.old)), rank(neighbours.map((one) => one.now))];
    const named = neighbours.map((one, place) => ({ ...one, place: [was.get(place), is.get(place)] }));
    return [{ ...list[0], name: `itself: ${list[0].name}` }, ...named.sort((a, b) => a.place[1] - b.place[1])];
  }

  function said(entries) {
    const most = ofSentence || measure === "probability" ? 1 : entries.reduce((a, { old, now }) => Math.max(a, Math.abs(old), Math.abs(now)), 1e-9);
    const bar = (value, className) => make("div", { class: `bar ${className}`, style: { width: `${(100 * Math.max(0, value)) / most}%` } });
    const built = table(
      ["", "before and after", "before", "after", "change", ...(ofSentence ? ["place"] : [])],
      entries.map(({ name, old, now, place }) => [
        make("bdi", { class: "token" }, readable(name)), make("div", { class: "beforeafter" }, bar(old, "old"), bar(now, "")),
        make("span", { class: "number" }, digits(old)), make("span", { class: "number" }, digits(now)),
        make("span", { class: `number change ${now > old ? "up" : now < old ? "down" : ""}` }, `${now >= old ? "+" : ""}${digits(now - old)}`),
        ...(ofSentence ? [place ? (place[0] === place[1] ? String(place[1]) : `${place[0]} → ${place[1]}`) : ""] : []),
      ]),
    );
    return make("div", { class: "scroll" }, built);
  }

  const begin = turns();
  view.follow = async () => {
    const isLast = begin();
    const index = number();
    const after = await view.arrays.after.part(index);
    if (!isLast()) return;
    shown = { number: index, after };
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.set) === index));
    const far = rows.map((_, row) => columns.reduce((sum, _name, column) => sum + Math.abs(after.at(row, column) - before.at(row, column)), 0));
    const row = ofTokens ? selectedIndex("token", rows.length, ranked(far)[0]) : 0;
    line?.press(row);
    detail.replaceChildren(
      make("h2", {}, `With ${called(sets[index])} ${done}`),
      make("p", { class: "soft small", "data-role": "moved" }, `${ofSentence ? "1 less the cosine with the sentence as it is" : "The answer moves by"} ${digits(moved[index])}${ofTokens ? `; shown: position ${row}, ${readable(rows[row])}` : rows[0] ? `; at ${readable(rows[0])}` : ""}.`),
      said(changes(row, after)),
    );
    draw();
  };
  view.csv = () => [
    ["token", "answer", "before", "after"],
    ...rows.flatMap((token, row) => columns.map((name, column) => [token, name, before.at(row, column), shown.after.at(row, column)])),
  ];
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "How far the answer moves"),
      make("p", { class: "soft small", dir: "auto" }, `Each head is ${done}, alone or with all heads of its layer; choose one to see what the model says then. ${ofSentence ? "" : "A number is half the sum of the absolute differences of the probabilities."}`),
      grid, more, legend("sequential", "0", "most")),
    make("section", { class: "card" }, line?.element, detail),
  );
  return view.element;
};
