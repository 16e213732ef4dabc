// One text in two tokenizers: aligned tokens, and how many each has for each word.

builders.tokenizers = (view) => {
  const { names, tokens, groups, words, perWord, unknown } = view.data;
  const detail = make("p", { "aria-live": "polite" });
  const body = make("div", { class: "scroll" });
  const own = `${view.name}.group`;
  const word = (side) => (place) => readable(tokens[side][place]) + (unknown[side].includes(place) ? " (unknown)" : "");
  const text = (number, side) => isolated(groups[number][side].map(word(side)).join(" ") || "nothing");
  const tell = (number) => [0, 1].map((side) => `${isolated(names[side])}: ${text(number, side)}`).join("\n");
  const line = aligned(groups, tokens, "Tokens of both: choose a group", (group) => select({ [own]: group }), tell);
  let counts = null;

  view.follow = () => {
    const group = selectedIndex(own, groups.length);
    pressOne(line.buttons, group ?? -1);
    detail.textContent = group === null ? "" : tell(group).replace("\n", " · ");
  };
  view.start = async () => {
    if (!words.length) return;
    counts = await view.arrays.counts.part();
    const rows = words.map((word, i) => {
      const [a, b] = [counts.at(i, 0), counts.at(i, 1)];
      return [make("bdi", {}, word), a, b, make("span", { class: "number" }, b === a ? "" : `${b > a ? "+" : "−"}${Math.abs(b - a)}`)];
    });
    const built = table(["word", names[0], names[1], "difference"], rows);
    [...built.tBodies[0].rows].forEach((row, i) => row.classList.toggle("differs", counts.at(i, 0) !== counts.at(i, 1)));
    body.replaceChildren(built);
  };
  view.csv = () => [["word", ...names], ...words.map((word, i) => [word, counts.at(i, 0), counts.at(i, 1)])];
  const count = (side) => {
    const more = unknown[side].length ? `, ${unknown[side].length} unknown` : "";
    const numbers = `${counted(tokens[side].length, "token")}, ${perWord[side].toFixed(2)} a word${more}`;
    return `${isolated(names[side])}, ${side ? "below" : "above"}: ${numbers}`;
  };
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "The same text in two tokenizers"),
      make("p", { class: "soft small", "data-role": "counts" }, `${count(0)} · ${count(1)}`),
      line.element, alignedLegend(), detail),
    make("section", { class: "card" }, make("h3", {}, "Tokens for each word"), body),
  );
  return view.element;
};
