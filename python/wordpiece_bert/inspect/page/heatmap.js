// Heat maps: similarities of texts or tokens, and position embeddings.

/** Cells with numbers up to this many rows and columns; larger maps are canvases with the number beside the pointer. */
const MOST_CELLS = 40;

builders.similarity = (view) => {
  const { rows, columns } = view.data;
  const { similarity } = view.arrays;
  const square = rows.length === columns.length && rows.every((text, i) => text === columns[i]);
  const body = make("div", { class: "scroll" });
  const detail = make("div", { "aria-live": "polite" });

  function nearest(matrix, i) {
    const row = matrix.row(i);
    const best = ranked(row).filter((j) => !square || j !== i).slice(0, 8);
    const entries = best.map((j) => ({ name: columns[j], value: row[j] }));
    pressOne(names, i);
    map?.mark(i, selectedIndex(column, columns.length, 0));
    detail.replaceChildren(make("h3", { dir: "auto" }, `Nearest to “${isolated(rows[i])}”`), bars(entries, 1, { plain: true }));
  }

  function cells() {
    const cell = (i, j) => {
      const moves = { onpointermove: (event) => showTip(event, tell(i, j)), onpointerleave: hideTip };
      const one = make("td", { class: "number", "data-cell": `${i}.${j}`, ...moves }, matrix.at(i, j).toFixed(2));
      return keepShaded(one, "diverging", matrix.at(i, j));
    };
    names = rows.map((text, i) => {
      const known = { class: "plain", dir: "auto", title: text, onclick: () => select(rowChoice(view, i)) };
      return make("button", { type: "button", ...known }, short(text, 40));
    });
    const heads = columns.map((text) => make("span", { class: "column", title: text, dir: "auto" }, short(text, 26)));
    const lines = names.map((name, i) => [make("td", {}, name), ...range(columns.length).map((j) => cell(i, j))]);
    body.replaceChildren(table(["", ...heads], lines, "tight similarity"));
    arrows(names);
  }

  const tell = (i, j) => `${rows[i]}\n${columns[j]}\n${digits(matrix.at(i, j))}`;
  const column = `${view.name}.column`;
  let matrix = null;
  let names = []; // the buttons of the rows, or
  let map = null; // the picture of many
  async function start() {
    if (!rows.length || !columns.length) return;
    matrix = await similarity.part();
    if (rows.length <= MOST_CELLS && columns.length <= MOST_CELLS) cells();
    else {
      map = heat("Similarities, rows downwards and columns to the right");
      map.set(rows.length, columns.length, "diverging", (i, j) => matrix.at(i, j), tell);
      map.choose = (i, j) => select({ ...rowChoice(view, i), [column]: j });
      map.keyed(() => [selectedIndex("point", rows.length, 0), selectedIndex(column, columns.length, 0)]);
      body.replaceChildren(map.element);
    }
  }
  view.csv = () => [["", ...columns], ...(matrix ? rows.map((text, i) => [text, ...matrix.row(i)]) : [])];
  view.follow = () => matrix && nearest(matrix, selectedIndex("point", rows.length, 0));

  view.element = make(
    "div",
    { class: "grid" },
    make("section", { class: "card" },
      make("h2", {}, "Cosine similarity"),
      make("p", { class: "soft small" }, "1: the same direction; 0: unrelated. Choose a row to see its nearest."),
      body, legend("diverging", "−1", "1")),
    make("section", { class: "card" }, detail),
  );
  view.start = start;
  return view.element;
};

/** The sinusoids of positions, sin and cos of Vaswani et al. (2017) by turns, in some columns of `width`. */
function sinusoids(count, width, columns) {
  const rates = columns.map((column) => 10000 ** ((-2 * Math.floor(column / 2)) / width));
  const values = new Float32Array(count * columns.length);
  for (let i = 0, at = 0; i < count; i++) {
    rates.forEach((rate, j) => (values[at++] = columns[j] % 2 ? Math.cos(i * rate) : Math.sin(i * rate)));
  }
  return new Matrix(count, columns.length, values);
}

/** The cosines of their rows. */
function sinusoidCosines(count, width) {
  const waves = sinusoids(count, width, range(width));
  for (let i = 0; i < count; i++) {
    const row = waves.row(i);
    const length = Math.sqrt(row.reduce((sum, value) => sum + value * value, 0)) || 1;
    row.forEach((value, j) => (row[j] = value / length));
  }
  return productsOf(waves);
}

builders.positions = (view) => {
  const { count, width, columns, scale } = view.data;
  const state = { position: 0 };
  const matrices = {};
  const own = (name) => `${view.name}.${name}`;
  const strongest = `the strongest colours mean ±${digits(scale)} or more`;
  const panels = [
    ["learned", "Learned positions", "Cosine similarity of each position to each", count],
    ["sinusoid", "Sinusoids", "The same for sin and cos of Vaswani et al. (2017)", count],
    ["table", "Learned values", `${columns.length} of ${width} numbers; positions downwards; ${strongest}`, columns.length],
    ["waves", "Sinusoid values", "Positions downwards; frequencies fall to the right", columns.length],
  ];
  const heats = panels.map(([, name]) => heat(name, "clamp(240px, 32vw, 400px)"));
  const plot = make("canvas", { class: "plot", role: "img", "aria-label": "Similarity of the chosen position to all others" });
  const ends = { min: "0", max: String(count - 1), value: "0" };
  const slide = () => select({ [own("at")]: Number(slider.value) }, true);
  const style = { width: "min(100%, 420px)" };
  const slider = make("input", { type: "range", ...ends, "aria-label": "Position", style, oninput: slide });
  const label = make("h2");

  view.csv = () => [
    ["position", "learned", "sinusoids"],
    ...range(count).map((i) => [i, matrices.learned.at(state.position, i), matrices.sinusoid.at(state.position, i)]),
  ];
  view.follow = () => {
    state.position = selectedIndex(own("at"), count, Math.min(count - 1, Math.floor(count / 4)));
    slider.value = String(state.position);
    heats.forEach((map, i) => map.mark(state.position, columnOf(i)));
    draw();
  };

  const draw = once(() => {
    label.textContent = `Position ${state.position}: similarity to the others`;
    if (!matrices.learned || !matrices.sinusoid || !plot.isConnected) return;
    drawOn(plot, 200, drawCourses);
  });
  function drawCourses(context, wide, height) {
    context.clearRect(0, 0, wide, height);
    const x = (i) => 34 + ((wide - 44) * i) / Math.max(1, count - 1);
    const y = (value) => 10 + ((1 - value) / 2) * (height - 30);
    context.font = "12px system-ui, sans-serif";
    for (const value of [-1, 0, 1]) {
      context.fillStyle = variable("--soft");
      context.fillText(String(value), 8, y(value) + 4);
      context.fillStyle = variable("--line");
      context.fillRect(34, y(value), wide - 44, 1);
    }
    [["sinusoid", content.colours.categories[1]], ["learned", content.colours.categories[0]]].forEach(([name, colour]) => {
      context.strokeStyle = theme() === "dark" && name === "learned" ? variable("--accent") : colour;
      context.lineWidth = 2;
      context.setLineDash(name === "learned" ? [] : [6, 4]);
      context.beginPath();
      matrices[name].row(state.position).forEach((value, i) => context.lineTo(x(i), y(value)));
      context.stroke();
    });
    context.setLineDash([]);
    context.fillStyle = variable("--soft");
    context.textAlign = "right";
    context.fillText(`${count - 1}`, wide - 10, height - 4);
    context.textAlign = "left";
    context.fillText("0", 34, height - 4);
  }
  onRedraw(plot, draw);
  /** The chosen column of a picture. */
  const columnOf = (i) => selectedIndex(own("column"), panels[i][3], 0);

  async function start() {
    const computed = { sinusoid: () => sinusoidCosines(count, width), waves: () => sinusoids(count, width, columns) };
    await Promise.all(panels.map(async ([name, , , across], i) => {
      const matrix = computed[name] ? computed[name]() : await view.arrays[name].part();
      matrices[name] = matrix;
      const square = i < 2;
      const tell = (a, b) => `${square ? `positions ${a} and ${b}` : `position ${a}, number ${columns[b]}`}: ${digits(matrix.at(a, b))}`;
      heats[i].set(count, across, "diverging", (a, b) => matrix.at(a, b) / (name === "table" ? scale : 1), tell);
      heats[i].choose = (a, b) => select({ [own("at")]: a, [own("column")]: b });
      heats[i].keyed(() => [state.position, columnOf(i)]);
    }));
    draw();
  }

  const swatch = (index) => make("span", { class: "swatch", style: { backgroundColor: content.colours.categories[index] } });
  const key = (index, name) => make("span", {}, swatch(index), name);
  const part = ([, name, note], i) => {
    const ends = i < 2 ? ["−1", "1"] : ["negative", "positive"];
    return make("section", { class: "card" },
      make("h2", {}, name), make("p", { class: "soft small" }, note), heats[i].element, legend("diverging", ...ends));
  };
  view.element = make(
    "div",
    { class: "grid even" },
    panels.map(part),
    make("section", { class: "card wide" },
      label, make("p", { class: "soft small" }, "Choose a row of a picture above, or move the slider."), slider,
      make("div", { class: "legend" }, key(0, "learned"), key(1, "sinusoids, dashed")), plot),
  );
  view.start = start;
  return view.element;
};
