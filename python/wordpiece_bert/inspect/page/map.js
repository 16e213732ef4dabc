// The map: texts as points, their exact nearest neighbours, and a table of those that are searched, of a group or in an
// area. Of the selection it has point, and map.colour, map.find, map.group, map.area and map.drag.

const MOST_ROWS = 100;

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

builders.map = (view) => {
  const { texts, groups, numbers, method, explained, kept, width, neighbours } = view.data;
  const names = groups ? [...new Set(groups)].sort() : [];
  const group = groups ? groups.map((name) => names.indexOf(name)) : [];
  const arrays = {};
  const isOf = { colour: "none", values: null, find: "", group: null, area: [] };
  let shown = [];
  let lastPoint = null;

  const plot = pointPlot(`Map of ${texts.length} texts. Arrow keys go from point to point, with Shift they move the map; + and − zoom, 0 resets.`, texts.length, {
    choose: (index) => select({ point: index ?? "none" }),
    enclose: (area) => select({ "map.area": area }),
    tell: (i) => short(texts[i], 200),
  });

  // --- what is shown

  const count = make("p", { class: "soft small", "aria-live": "polite" });
  const rows = make("div", { class: "scroll texts" });
  const detail = make("section", { class: "note neighbours" });
  const search = make("input", { type: "search", placeholder: "Search the texts", "aria-label": "Search the texts", oninput: () => select({ "map.find": search.value || null }), style: { width: "100%" } });
  const clear = make("button", { type: "button", onclick: () => select({ "map.find": null, "map.group": null, "map.area": null }) }, "Show all");
  const colours = [
    ...(groups ? [["group", "group"]] : []),
    ...Object.keys(numbers).map((name) => [`number.${name}`, name]),
    ...(neighbours ? [["kept", "share of neighbours kept"]] : []),
    ["none", "one colour"],
  ];
  const colouring = choice("Colour", colours, (value) => select({ "map.colour": value }));
  const dragging = segments("Drag to", ["move", "select"], 0, (index) => select({ "map.drag": index ? "select" : null }));
  const ramp = make("div");
  const keys = names.map((name, i) => make("button", { type: "button", class: "key", "aria-pressed": "false", dir: "auto", onclick: () => select({ "map.group": isOf.group === i ? null : i }) }));
  arrows(keys);
  const key = make("div", { class: "legend keys", role: "group", "aria-label": "Groups: choose one" }, keys);
  onRedraw(() => keys.forEach((button, i) => button.replaceChildren(isOf.colour === "group" ? markIcon(i) : "", names[i])));

  /** The numbers that the points are coloured by, and the ends of their scale. */
  function scaleOf(name) {
    const values = name === "kept" ? arrays.kept.row(0) : numbers[name.slice("number.".length)];
    if (!values) return null;
    const [low, high] = name === "kept" ? [0, 1] : [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
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
    const colour = selectedOption("map.colour", colours.map(([name]) => name));
    const area = [selection["map.area"] ?? []].flat();
    Object.assign(isOf, {
      colour,
      values: scaleOf(colour),
      find: selection["map.find"] === undefined ? "" : String(selection["map.find"]),
      group: selectedIndex("map.group", names.length),
      area: area.length >= 6 && area.length % 2 === 0 && area.every(Number.isInteger) ? area : [],
    });
    if (search.value !== isOf.find) search.value = isOf.find;
    colouring.lastChild.value = colour;
    const isDrawing = selection["map.drag"] === "select";
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
    plot.look = { isShown: (i) => isShown[i] === 1, mark: isOf.values ? mark : sameMark, isOutlined: Boolean(isOf.values), chosen, others, area: isOf.area, isDrawing };
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

  /** The exact neighbours of a point, the nearest first, and whether they are among its nearest points on the map. */
  function nearestTo(i) {
    if (!neighbours) return [];
    const { points } = arrays;
    const distance = (j) => (points.at(i, 0) - points.at(j, 0)) ** 2 + (points.at(i, 1) - points.at(j, 1)) ** 2;
    const near = new Set(range(texts.length).filter((j) => j !== i).map((j) => [distance(j), j]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, neighbours).map(([, j]) => j));
    return range(neighbours).map((k) => {
      const index = arrays.neighbours.at(i, k);
      return { index, cosine: arrays.similarities.at(i, k), isKept: near.has(index) };
    });
  }

  function showKeys() {
    keys.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(isOf.group === i));
      button.replaceChildren(isOf.colour === "group" ? markIcon(i) : "", names[i]);
    });
    const { values } = isOf;
    ramp.replaceChildren(...(values ? [legend("sequential", scaleText(values.low), scaleText(values.high), colours.find(([name]) => name === isOf.colour)[1])] : []));
  }

  const scaleText = (value) => (isOf.colour === "kept" ? percent(value) : Number.isInteger(value) ? String(value) : digits(value));

  function showRows(chosen) {
    const of = [isOf.find.trim() ? `with “${isOf.find.trim()}”` : "", isOf.group === null ? "" : `of the group ${names[isOf.group]}`, isOf.area.length ? "in the area" : ""].filter(Boolean).join(", ");
    const more = shown.length > MOST_ROWS ? ` The table has the first ${MOST_ROWS}; saved as CSV, it has all.` : "";
    count.textContent = `${of ? `${shown.length} of ${texts.length} texts ${of}.` : `${texts.length} texts.`}${more}`;
    clear.disabled = !of;
    const heads = ["Text", ...(groups ? ["Group"] : []), ...Object.keys(numbers), ...(neighbours ? ["Kept"] : [])];
    const cells = shown.slice(0, MOST_ROWS).map((i) => [
      make("td", { class: "wrap" }, make("button", { type: "button", class: "plain", dir: "auto", "aria-pressed": String(i === chosen), onclick: () => select({ point: i }) }, short(texts[i], 160))),
      ...(groups ? [make("td", { dir: "auto" }, groups[i])] : []),
      ...Object.values(numbers).map((values) => values[i]),
      ...(neighbours ? [make("td", { class: "number" }, percent(arrays.kept.at(0, i)))] : []),
    ]);
    const built = table(heads, cells);
    arrows([...built.querySelectorAll("button")]);
    rows.replaceChildren(built);
  }

  function showNeighbours(chosen, others) {
    if (chosen === null) return detail.replaceChildren(make("p", { class: "soft" }, neighbours ? `Choose a point to see its ${neighbours} nearest texts.` : "Choose a point to read its text."));
    const lines = others.map(({ index, cosine, isKept }) =>
      make("li", {}, make("button", { type: "button", class: "plain", onclick: () => select({ point: index }) }, make("span", { class: "number" }, digits(cosine)), " ", make("bdi", {}, short(texts[index], 160)), isKept ? "" : make("span", { class: "soft small" }, " · not near on the map"))),
    );
    const buttons = lines.map((line) => line.firstChild);
    arrows(buttons);
    const near = others.filter(({ isKept }) => isKept).length;
    detail.replaceChildren(
      make("h3", { dir: "auto" }, groups ? make("span", { class: "soft" }, make("bdi", {}, groups[chosen]), ": ") : "", make("bdi", {}, texts[chosen])),
      ...(neighbours ? [make("p", { class: "soft small" }, `Nearest by the cosine of all ${width} numbers. ${near} of ${neighbours} are among the ${neighbours} nearest points of the map; dashed lines lead to the others.`), make("ol", {}, lines)] : []),
    );
    return undefined;
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
      i, texts[i], ...(groups ? [groups[i]] : []), ...Object.values(numbers).map((values) => values[i]), arrays.points.at(i, 0), arrays.points.at(i, 1),
      ...(neighbours ? [arrays.kept.at(0, i), [...arrays.neighbours.row(i)].join(" ")] : []),
    ]),
  ];

  const shares = explained ? ` The axes show ${explained.map((share) => `${(100 * share).toFixed(1)} %`).join(" and ")} of the variance.` : "";
  const honest = neighbours
    ? `Of a text's ${neighbours} nearest texts by all ${width} numbers, ${percent(kept)} are among its ${neighbours} nearest points here: the map is a sketch, the lists of neighbours are exact.`
    : "";
  const button = (text, action) => make("button", { type: "button", onclick: action }, text);
  view.element = make(
    "div",
    { class: "grid side view-map" },
    make("section", { class: "card" },
      make("h2", {}, `${texts.length} texts by ${{ pca: "principal components", tsne: "t-SNE", umap: "UMAP" }[method] ?? method}`),
      make("p", { class: "soft small" }, `${honest}${shares}`),
      make("div", { class: "controls" }, colouring, dragging.element),
      keys.length > 1 ? key : null, ramp, plot.canvas,
      make("p", { class: "soft small" }, "Two fingers, Ctrl and the wheel, or + and − zoom. Drag to move, with Shift to select an area; arrow keys go from point to point."),
      make("div", { class: "controls" }, button("Zoom in", () => plot.zoom(1.5)), button("Zoom out", () => plot.zoom(1 / 1.5)), button("Reset", plot.reset)),
      detail),
    make("section", { class: "card" }, make("h3", {}, "Texts"), search, make("div", { class: "controls" }, clear, button("Take what is in view", () => select({ "map.area": plot.inView() }))), count, rows),
  );
  return view.element;
};
