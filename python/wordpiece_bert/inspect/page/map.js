// The map: texts as points, their exact nearest neighbours (among many texts a sample has them), and a table of the texts
// that are searched, of a group or in an area. Of the selection it has point, and of its own colour, find, group, area and
// drag.

const MOST_ROWS = 100;

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

builders.map = (view) => {
  const { texts, groups, numbers, method, explained, kept, width, neighbours, sampled } = view.data;
  const names = groups ? [...new Set(groups)].sort() : [];
  const group = groups ? groups.map((name) => names.indexOf(name)) : [];
  const arrays = {};
  const isOf = { colour: "none", values: null, find: "", group: null, area: [] };
  let shown = [];
  let lastPoint = null;

  const nearest = (noun) => (neighbours === 1 ? `nearest ${noun}` : `${neighbours} nearest ${noun}s`);
  /** The name in the selection of what this map alone has. */
  const own = (name) => `${view.name}.${name}`;

  const label = `Map of ${counted(texts.length, "text")}. Arrow keys go from point to point, with Shift they move the map; + and − zoom, 0 resets.`;
  const plot = pointPlot(label, texts.length, {
    choose: (index) => select(index === null ? { point: "none" } : rowChoice(view, index)),
    enclose: (area) => select({ [own("area")]: area }),
    tell: (i) => short(texts[i], 200),
  });

  // --- what is shown

  const count = make("p", { class: "soft small", "aria-live": "polite" });
  const rows = make("div", { class: "scroll texts" });
  const detail = make("section", { class: "note neighbours" });
  const find = () => select({ [own("find")]: search.value || null }, true);
  const asks = { placeholder: "Search the texts", "aria-label": "Search the texts" };
  const search = make("input", { type: "search", ...asks, oninput: find, style: { width: "100%" } });
  const showAll = () => select({ [own("find")]: null, [own("group")]: null, [own("area")]: null });
  const clear = make("button", { type: "button", onclick: showAll }, "Show all");
  const colours = [
    ...(groups ? [["group", "group"]] : []),
    ...Object.keys(numbers).map((name) => [`number.${name}`, name]),
    ...(neighbours && !sampled ? [["kept", "share of neighbours kept"]] : []),
    ["none", "one colour"],
  ];
  const colouring = choice("Colour", colours, (value) => select({ [own("colour")]: value }));
  const dragging = segments("Drag to", ["move", "select"], 0, (index) => select({ [own("drag")]: index ? "select" : null }));
  const ramp = make("div");
  const keys = names.map((_, i) => {
    const choose = () => select({ [own("group")]: isOf.group === i ? null : i });
    return make("button", { type: "button", class: "key", "aria-pressed": "false", dir: "auto", onclick: choose });
  });
  arrows(keys);
  const key = make("div", { class: "legend keys", role: "group", "aria-label": "Groups: choose one" }, keys);

  /** The numbers that the points are coloured by, and the ends of their scale. */
  function scaleOf(name) {
    const values = name === "kept" ? arrays.kept.row(0) : numbers[name.slice("number.".length)];
    if (!values) return null;
    const [low, high] = name === "kept" ? [0, 1] : endsOf(values);
    return { values, low, high, share: (i) => (high > low ? (values[i] - low) / (high - low) : 0.5) };
  }

  function mark(i) {
    if (isOf.values) return { colour: cssColour("sequential", isOf.values.share(i)), shape: groups ? groupMark(group[i]).shape : [] };
    return isOf.colour === "group" ? groupMark(group[i]) : { colour: variable("--accent"), shape: [] };
  }

  const isHit = (i, words) =>
    (!words || texts[i].toLowerCase().includes(words)) &&
    (isOf.group === null || group[i] === isOf.group) &&
    (!isOf.area.length || plot.isIn(i, isOf.area));

  view.follow = () => {
    const colour = selectedOption(own("colour"), colours.map(([name]) => name));
    const area = [selection[own("area")] ?? []].flat();
    Object.assign(isOf, {
      colour,
      values: scaleOf(colour),
      find: selection[own("find")] === undefined ? "" : String(selection[own("find")]),
      group: selectedIndex(own("group"), names.length),
      area: area.length >= 6 && area.length % 2 === 0 && area.every(Number.isInteger) ? area : [],
    });
    if (search.value !== isOf.find) search.value = isOf.find;
    colouring.lastChild.value = colour;
    const isDrawing = selection[own("drag")] === "select";
    dragging.set(isDrawing ? 1 : 0, false);
    plot.canvas.style.touchAction = isDrawing ? "none" : "pan-y";
    plot.canvas.style.cursor = isDrawing ? "crosshair" : "grab";
    const words = isOf.find.trim().toLowerCase();
    shown = range(texts.length).filter((i) => isHit(i, words));
    const isShown = new Uint8Array(texts.length);
    for (const i of shown) isShown[i] = 1;
    const chosen = selectedIndex("point", texts.length);
    const others = chosen === null ? [] : nearestTo(chosen);
    // Marks are the same for all points of a group: they are made once for a drawing.
    const marks = new Map();
    const sameMark = (i) => {
      const name = group[i] ?? 0;
      if (!marks.has(name)) marks.set(name, mark(i));
      return marks.get(name);
    };
    plot.look = {
      isShown: (i) => isShown[i] === 1, mark: isOf.values ? mark : sameMark, isOutlined: Boolean(isOf.values),
      chosen, others, area: isOf.area, isDrawing,
    };
    showKeys();
    showRows(chosen);
    showNeighbours(chosen, others);
    if (chosen !== null && chosen !== lastPoint) {
      plot.reveal(chosen);
      announce(texts[chosen]);
    }
    lastPoint = chosen;
    plot.draw();
  };

  /** Whether neighbours of a text were looked for. */
  const hasNeighbours = (i) => neighbours > 0 && arrays.neighbours.at(i, 0) >= 0;

  /** The exact neighbours of a point, the nearest first, and whether they are among its nearest points on the map. */
  function nearestTo(i) {
    if (!hasNeighbours(i)) return [];
    const { points } = arrays;
    const distance = (j) => (points.at(i, 0) - points.at(j, 0)) ** 2 + (points.at(i, 1) - points.at(j, 1)) ** 2;
    const far = range(texts.length).filter((j) => j !== i).map((j) => [distance(j), j]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const near = new Set(far.slice(0, neighbours).map(([, j]) => j));
    return range(neighbours).map((k) => {
      const index = arrays.neighbours.at(i, k);
      return { index, cosine: arrays.similarities.at(i, k), isKept: near.has(index) };
    });
  }

  function showKeys() {
    pressOne(keys, isOf.group ?? -1);
    keys.forEach((button, i) => button.replaceChildren(isOf.colour === "group" ? markIcon(i) : "", names[i]));
    showRamp();
  }

  function showRamp() {
    const { values } = isOf;
    const name = () => colours.find(([one]) => one === isOf.colour)[1];
    ramp.replaceChildren(...(values ? [legend("sequential", scaleText(values.low), scaleText(values.high), name(), false)] : []));
  }
  onRedraw(ramp, showRamp);

  function scaleText(value) {
    if (isOf.colour === "kept") return percent(value);
    return Number.isInteger(value) ? String(value) : digits(value);
  }

  let listed = { shown: [], buttons: [] }; // what the table has

  function showRows(chosen) {
    const of = [
      isOf.find.trim() ? `with “${isolated(isOf.find.trim())}”` : "",
      isOf.group === null ? "" : `of the group ${isolated(names[isOf.group])}`,
      isOf.area.length ? "in the area" : "",
    ].filter(Boolean).join(", ");
    const more = shown.length > MOST_ROWS ? ` The table has the first ${MOST_ROWS}; saved as CSV, it has all.` : "";
    count.textContent = `${of ? `${shown.length} of ${counted(texts.length, "text")} ${of}.` : `${counted(texts.length, "text")}.`}${more}`;
    if (!of && document.activeElement === clear) search.focus(); // a button that is disabled loses the focus
    clear.disabled = !of;
    const first = shown.slice(0, MOST_ROWS);
    if (!listed.buttons.length || first.join() !== listed.shown.join()) listed = { shown: first, buttons: listTexts(first) };
    pressOne(listed.buttons, chosen === null ? -1 : first.indexOf(chosen));
  }

  /** Make the table of some texts, and return the buttons in it. */
  function listTexts(indices) {
    const buttons = indices.map((i) => {
      const known = { class: "plain", dir: "auto", "aria-pressed": "false", onclick: () => select(rowChoice(view, i)) };
      return make("button", { type: "button", ...known }, short(texts[i], 160));
    });
    const heads = ["Text", ...(groups ? ["Group"] : []), ...Object.keys(numbers), ...(neighbours ? ["Kept"] : [])];
    const cells = indices.map((i, row) => [
      make("td", { class: "wrap" }, buttons[row]),
      ...(groups ? [make("td", { dir: "auto" }, groups[i])] : []),
      ...Object.values(numbers).map((values) => values[i]),
      ...(neighbours ? [make("td", { class: "number" }, hasNeighbours(i) ? percent(arrays.kept.at(0, i)) : "")] : []),
    ]);
    rows.replaceChildren(table(heads, cells));
    arrows(buttons);
    return buttons;
  }

  function showNeighbours(chosen, others) {
    if (chosen === null) {
      const ask = neighbours ? `Choose a point to see its ${nearest("text")}.` : "Choose a point to read its text.";
      detail.replaceChildren(make("p", { class: "soft" }, ask));
      return;
    }
    const buttons = others.map(({ index, cosine, isKept }) => {
      const far = isKept ? "" : make("span", { class: "soft small" }, " · not near on the map");
      const said = [make("span", { class: "number" }, digits(cosine)), " ", make("bdi", {}, short(texts[index], 160)), far];
      return make("button", { type: "button", class: "plain", onclick: () => select(rowChoice(view, index)) }, said);
    });
    arrows(buttons);
    const near = others.filter(({ isKept }) => isKept).length;
    const kept = `${near} of ${neighbours} ${near === 1 ? "is" : "are"} among the ${nearest("point")} of the map; dashed lines lead to the others.`;
    const of = groups ? make("span", { class: "soft" }, make("bdi", {}, groups[chosen]), ": ") : "";
    const list = [
      make("p", { class: "soft small" }, `Nearest by the cosine of all ${width} numbers. ${kept}`),
      make("ol", {}, buttons.map((button) => make("li", {}, button))),
    ];
    const none = make("p", { class: "soft small" }, `The nearest texts of ${sampled} texts were looked for; this text is not one of them.`);
    const below = hasNeighbours(chosen) ? list : sampled && neighbours ? [none] : [];
    refill(detail, make("h3", { dir: "auto" }, of, make("bdi", {}, texts[chosen])), ...below);
  }

  // --- the page

  view.start = async () => {
    if (!texts.length) return;
    const entries = Object.entries(view.arrays).filter(([name]) => name === "points" || neighbours);
    await Promise.all(entries.map(async ([name, array]) => (arrays[name] = await array.part())));
    plot.set(arrays.points);
  };
  view.csv = () => [
    ["row", "text", ...(groups ? ["group"] : []), ...Object.keys(numbers), "x", "y", ...(neighbours ? ["kept", "nearest rows"] : [])],
    ...shown.map((i) => [
      i, texts[i], ...(groups ? [groups[i]] : []), ...Object.values(numbers).map((values) => values[i]),
      arrays.points.at(i, 0), arrays.points.at(i, 1),
      ...(neighbours ? (hasNeighbours(i) ? [arrays.kept.at(0, i), [...arrays.neighbours.row(i)].join(" ")] : ["", ""]) : []),
    ]),
  ];

  const axes = (explained ?? []).map((share) => `${(100 * share).toFixed(1)} %`).join(" and ");
  const shares = explained ? ` The axes show ${axes} of the variance.` : "";
  const some = sampled ? ` They were looked for of ${sampled} texts, at equal distances in the list of all.` : "";
  const honest = neighbours
    ? `Of a text's ${nearest("text")} by all ${width} numbers, ${percent(kept)} are among its ${nearest("point")} ` +
      `here: the map is a sketch, the lists of neighbours are exact.${some}`
    : "";
  const hint = "Two fingers, Ctrl and the wheel, or + and − zoom. Drag to move, with Shift to select an area; " +
    "arrow keys go from point to point.";
  const takeView = () => {
    const area = plot.inView();
    if (area) select({ [own("area")]: area });
  };
  const zooms = [["Zoom in", () => plot.zoom(1.5)], ["Zoom out", () => plot.zoom(1 / 1.5)], ["Reset", plot.reset]];
  const button = (text, action) => make("button", { type: "button", onclick: action }, text);
  view.element = make(
    "div",
    { class: "grid side view-map" },
    make("section", { class: "card" },
      make("h2", {}, `${counted(texts.length, "text")} by ${{ pca: "principal components", tsne: "t-SNE", umap: "UMAP" }[method] ?? method}`),
      make("p", { class: "soft small" }, `${honest}${shares}`),
      make("div", { class: "controls" }, colouring, dragging.element),
      keys.length > 1 ? key : null, ramp, plot.canvas,
      make("p", { class: "soft small" }, hint),
      make("div", { class: "controls" }, zooms.map(([text, action]) => button(text, action))),
      detail),
    make("section", { class: "card" },
      make("h3", {}, "Texts"), search,
      make("div", { class: "controls" }, clear, button("Take what is in view", takeView)), count, rows),
  );
  return view.element;
};
