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
  const own = (name) => `${view.name}.${name}`;
  const called = (set) => {
    if (set.length === 1) return `layer ${set[0][0]}, head ${set[0][1]}`;
    return isWhole(set) ? `all heads of layer ${set[0][0]}` : set.map(([layer, head]) => `${layer}.${head}`).join(", ");
  };
  const done = change === "off" ? "switched off" : `taken from “${isolated(change)}”`;
  const grid = make("div", { class: "scroll" });
  const more = make("p", { class: "controls" });
  const detail = make("div", { "aria-live": "polite" });
  const line = ofTokens ? strip(tokens, "Tokens by how far they moved", (token) => select({ token })) : null;
  const buttons = []; // by the number of the intervention
  let cells = []; // those of single heads and layers, as they stand; null where there is none
  let together = []; // the others
  let before = null;
  let moved = null;
  let shown = null; // { number, after }

  /** The intervention that is chosen: of the selected layer and head, or the one that moved most. */
  function number() {
    const set = selectedIndex(own("set"), sets.length);
    if (set !== null && selection[own("of")] === "set") return set;
    if (selection.layer !== undefined) {
      const head = selection[own("of")] === "layer" ? "all" : selectedIndex("head", heads, 0);
      const found = single.get(`${selectedIndex("layer", layers, 0)}.${head}`);
      if (found !== undefined) return found;
    }
    return ranked(moved)[0];
  }

  const put = (text, index, chosen) => {
    const known = { "data-set": String(index), "aria-label": `${called(sets[index])}: moves by ${digits(moved[index])}` };
    const button = { type: "button", class: "plain number", ...known, "aria-pressed": "false", onclick: () => select(chosen) };
    return (buttons[index] = make("button", button, text));
  };

  view.start = async () => {
    before = await view.arrays.before.part();
    moved = (await view.arrays.moved.part()).values;
    if (single.size) {
      const cell = (layer, head) => {
        const index = single.get(`${layer}.${head}`);
        if (index === undefined) return null;
        const chosen = head === "all" ? { layer, head: null, [own("of")]: "layer" } : { layer, head, [own("of")]: null };
        return put(moved[index].toFixed(2), index, { ...chosen, [own("set")]: null });
      };
      const lines = range(layers).map((layer) => [...range(heads), "all"].map((head) => cell(layer, head)));
      const list = lines.map((line, layer) => [String(layer), ...line]);
      grid.replaceChildren(table(["layer", ...range(heads).map(String), "all"], list, "tight"));
      cells = lines.flat();
      arrows(cells, heads + 1);
    }
    together = others.map((index) => {
      const text = `${called(sets[index])}: ${moved[index].toFixed(2)}`;
      return put(text, index, { [own("of")]: "set", [own("set")]: index });
    });
    more.replaceChildren(...together);
    arrows(together);
    more.classList.toggle("hidden", !together.length);
  };

  /** How far the answer at each position moves: half the sum of the absolute differences. */
  const farOf = (after) => rows.map((_, row) => {
    const old = before.row(row);
    return after.row(row).reduce((sum, value, column) => sum + Math.abs(value - old[column]), 0) / 2;
  });

  const draw = () => {
    if (!shown) return;
    const most = largestOf(moved);
    buttons.forEach((button, index) => shade(button, "sequential", (0.85 * Math.max(0, moved[index])) / most));
    if (line) {
      const far = farOf(shown.after);
      const largest = largestOf(far);
      line.shade("sequential", far.map((value) => (0.85 * value) / largest), (row) => `moved by ${digits(far[row])}`);
    }
  };

  /** Names with what was said before and after; of a sentence, in the order of the new cosines. */
  function changes(row, after) {
    const list = columns.map((name, column) => ({ name, old: before.at(row, column), now: after.at(row, column) }));
    if (!ofSentence) return list;
    const rank = (values) => new Map(ranked(values).map((place, index) => [place, index + 1]));
    const neighbours = list.slice(1);
    const [was, is] = [rank(neighbours.map((one) => one.old)), rank(neighbours.map((one) => one.now))];
    const named = neighbours.map((one, place) => ({ ...one, place: [was.get(place), is.get(place)] }));
    return [{ ...list[0], name: `itself: ${list[0].name}` }, ...named.sort((a, b) => a.place[1] - b.place[1])];
  }

  function said(entries) {
    const most = ofSentence || measure === "probability" ? 1 : largestOf(entries.flatMap(({ old, now }) => [old, now]));
    const wide = (value) => ({ width: `${(100 * Math.max(0, value)) / most}%` });
    const bar = (value, className) => make("div", { class: `bar ${className}`, style: wide(value) });
    const number = (...texts) => make("span", { class: "number" }, ...texts);
    const mark = (change) => make("span", { "aria-hidden": "true" }, change > 0 ? "▲ " : change < 0 ? "▼ " : "");
    const moves = (place) => (place[0] === place[1] ? String(place[1]) : `${place[0]} → ${place[1]}`);
    const built = table(
      ["", "before and after", "before", "after", "change", ...(ofSentence ? ["place"] : [])],
      entries.map(({ name, old, now, place }) => [
        make("bdi", { class: "token" }, readable(name)), make("div", { class: "beforeafter" }, bar(old, "old"), bar(now, "")),
        number(digits(old)), number(digits(now)), number(mark(now - old), `${now >= old ? "+" : ""}${digits(now - old)}`),
        ...(ofSentence ? [place ? moves(place) : ""] : []),
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
    for (const group of [cells, together]) pressOne(group, group.indexOf(buttons[index]));
    const row = ofTokens ? selectedIndex("token", rows.length, ranked(farOf(after))[0]) : 0;
    line?.press(row);
    const what = ofSentence ? "1 less the cosine with the sentence as it is" : "The answer moves by";
    const token = isolated(readable(rows[row]));
    const where = ofTokens ? `; shown: position ${row}, ${token}` : rows[0] ? `; at ${token}` : "";
    detail.replaceChildren(
      make("h2", {}, `With ${called(sets[index])} ${done}`),
      make("p", { class: "soft small", "data-role": "moved" }, `${what} ${digits(moved[index])}${where}.`),
      said(changes(row, after)),
    );
    draw();
  };
  view.csv = () => [
    ["token", "answer", "before", "after"],
    ...rows.flatMap((token, row) => columns.map((name, column) => [token, name, before.at(row, column), shown.after.at(row, column)])),
  ];
  const ofNumbers = ofSentence ? "" : "A number is half the sum of the absolute differences of the probabilities.";
  const heading = `Each head is ${done}, alone or with all heads of its layer; choose one to see what the model says then.`;
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "How far the answer moves"),
      make("p", { class: "soft small" }, `${heading} ${ofNumbers}`),
      grid, more, legend("sequential", "0", "most")),
    make("section", { class: "card" }, line?.element, detail),
  );
  onRedraw(view.element, draw);
  return view.element;
};
