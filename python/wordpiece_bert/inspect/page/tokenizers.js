// One text in two tokenizers: aligned tokens, and how many each has for each word.

builders.tokenizers = (view) => {
  const { names, tokens, groups, words, perWord, unknown } = view.data;
  const detail = make("p", { "aria-live": "polite", dir: "auto" });
  const body = make("div", { class: "scroll" });
  const text = (side, places) => places.map((place) => `${readable(tokens[side][place])}${unknown[side].includes(place) ? " (unknown)" : ""}`).join(" ") || "nothing";
  const tell = (number) => `${names[0]}: ${text(0, groups[number][0])}\n${names[1]}: ${text(1, groups[number][1])}`;
  const line = aligned(groups, tokens, "Tokens of both: choose a group", (group) => select({ "tokenizers.group": group }), tell);
  let counts = null;

  view.follow = () => {
    const group = selectedIndex("tokenizers.group", groups.length);
    line.buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(number === group)));
    stopAt(line.buttons, group ?? 0);
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
  const count = (side) => `${tokens[side].length} tokens, ${perWord[side].toFixed(2)} a word${unknown[side].length ? `, ${unknown[side].length} unknown` : ""}`;
  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "The same text in two tokenizers"),
      make("p", { class: "soft small", "data-role": "counts" }, `${names[0]}, above: ${count(0)} · ${names[1]}, below: ${count(1)}`),
      line.element, alignedLegend(), detail),
    make("section", { class: "card" }, make("h3", {}, "Tokens for each word"), body),
  );
  return view.element;
};
