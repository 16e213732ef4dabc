// All layers and heads of a model: as small matrices, in the scale of the large one, or by what they give from one token to
// another.

const PICTURES = "Each picture is the matrix of a head, its rows in the scale of the large one.";
/** Milliseconds of work on the colours of heads, after which a click may come between. */
const SLICE = 6;

function attentionHeads(view, { state, own, scaled }, pick) {
  const { attention, thumbnails, most, value_norms: norms } = view.arrays;
  const { tokens } = view.data;
  const [layers, heads] = attention.shape;
  const several = tick("Combine heads", () => {});
  const buttons = [];
  const grid = make("div", { class: "heads", role: "group", "aria-label": "All layers and heads" });
  grid.style.gridTemplateColumns = `auto repeat(${heads}, minmax(24px, 1fr))`;
  const column = (text) => make("span", { class: "index", "aria-hidden": "true" }, text);
  grid.append(column(""), ...range(heads).map((head) => column(String(head))));
  const all = []; // and the numbers of the layers, as keys go through them
  for (const layer of range(layers)) {
    const name = `Layer ${layer}, mean of all heads`;
    const mean = { title: `Mean of the heads of layer ${layer}`, "aria-label": name, onclick: () => pick(layer, null, false) };
    all.push(make("button", { type: "button", class: "index", ...mean }, String(layer)));
    for (const head of range(heads)) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const click = (event) => pick(layer, head, event.shiftKey || event.ctrlKey || event.metaKey || several.firstChild.checked);
      const known = { "aria-label": `Layer ${layer}, head ${head}`, "data-head": `${layer}.${head}` };
      const button = make("button", { type: "button", ...known, onclick: click }, canvas);
      button.addEventListener("pointermove", (event) => showTip(event, `layer ${layer}, head ${head}`, canvas));
      button.addEventListener("pointerleave", hideTip);
      onDwell(button, () => attention.part(layer, head));
      buttons.push(button);
      all.push(button);
    }
  }
  grid.append(...all);
  arrows(all, heads + 1);
  const begin = turns();
  let drawing = null; // of the look that was last asked for
  let drawn = "";
  const look = () => `${state.scale} ${theme()}`;
  function draw() {
    if (drawn !== look()) {
      drawn = look();
      drawing = drawAll();
    }
    return drawing;
  }
  async function drawAll() {
    const isLast = begin();
    for (const layer of range(layers)) {
      for (const head of range(heads)) {
        const small = await thumbnails.part(layer, head);
        if (!isLast()) return;
        const fill = (i, line) => {
          const largest = scaled(small, i);
          small.row(i).forEach((value, j) => (line[j] = Math.sqrt(value / largest)));
        };
        paintRows(buttons[layer * heads + head].firstChild, small.rows, small.columns, "sequential", fill);
      }
    }
  }
  onRedraw(grid, () => (link ? paintLink() : drawn && draw()));

  // --- a query and a key: what each head gives from one to the other

  const places = repeatedPlaces(tokens);
  const word = (i) => `“${isolated(placedName(tokens[i], places[i]))}”`;
  const note = make("p", { class: "soft small" }, PICTURES);
  const shown = segments("Heads by", ["the chosen link", "their matrices"], 0, (index) => select({ [own("grid")]: index ? "matrices" : null }));
  const list = make("div", { class: "step" });
  let link = null; // the query, the key, and whether weights are norm-weighted: "3 5 weights"
  let found = []; // by the number of the head { weight, given }, as far as they are read
  const begins = turns();

  /** Colour the heads by the chosen link, as they are read; a choice that comes meanwhile goes first. */
  async function follow() {
    const { token, pair, toward, kind } = state;
    const isLink = token !== null && pair !== null && !toward && kind !== "rollout";
    const now = isLink && selection[own("grid")] !== "matrices" ? `${token} ${pair} ${kind}` : null;
    shown.element.classList.toggle("hidden", !isLink);
    shown.set(now === null ? 1 : 0, false);
    if (now === link) return now || draw();
    link = now;
    found = [];
    grid.classList.toggle("linked", now !== null);
    list.classList.toggle("hidden", now === null);
    note.textContent = now === null ? PICTURES : `What each head gives from ${word(token)} to ${word(pair)}; outlined: no token gives it more.`;
    const isLast = begins();
    for (const button of buttons) {
      button.style.backgroundColor = "";
      button.classList.remove("first");
    }
    if (now === null) return draw();
    await nextFrame();
    let start = performance.now();
    for (const layer of range(layers)) {
      const [given, lengths] = await Promise.all([most?.part(layer), kind === "norms" ? norms.part(layer) : null]);
      for (const head of range(heads)) {
        // Pages that were packed before do not have what any token gives at most.
        const largest = given ? given.at(head, pair) : largestOf((await attention.part(layer, head)).column(pair), 0);
        const factor = lengths ? lengths.at(head, pair) : 1;
        const weight = (await attention.value(token, pair, layer, head)) * factor;
        if (!isLast()) return null;
        found.push({ layer, head, weight, given: Math.max(weight, largest * factor) });
        if (performance.now() - start > SLICE) {
          await new Promise((done) => setTimeout(done));
          start = performance.now();
        }
      }
    }
    if (!isLast()) return null;
    paintLink();
    return showLinks(token, pair);
  }

  function paintLink() {
    const largest = largestOf(found.map((one) => one.weight));
    found.forEach(({ layer, head, weight, given }) => {
      const button = buttons[layer * heads + head];
      button.style.backgroundColor = cssColour("sequential", Math.sqrt(weight / largest));
      button.classList.toggle("first", isFirst(weight, given) && weight > largest / 20);
      button.setAttribute("aria-label", `Layer ${layer}, head ${head}: ${digits(weight)}`);
    });
  }

  /** Whether no token gives the key more; both are stored in steps. */
  const isFirst = (weight, given) => weight >= given * 0.97;

  function showLinks(token, pair) {
    const best = ranked(found.map((one) => one.weight)).slice(0, 6).map((i) => found[i]);
    const rows = best.map(({ layer, head, weight, given }) => {
      const name = make("button", { type: "button", class: "plain", onclick: () => pick(layer, head, false) }, `layer ${layer}, head ${head}`);
      return [name, make("span", { class: "number" }, digits(weight)), make("span", { class: "number" }, isFirst(weight, given) ? "–" : digits(given))];
    });
    const title = `Heads that link ${word(token)} to ${word(pair)}`;
    refill(list, make("h3", {}, title), make("div", { class: "scroll" }, table(["head", "weight", "another token gives up to"], rows)));
    arrows([...list.querySelectorAll("button")]);
  }

  const element = make(
    "section",
    { class: "card", "aria-label": "All heads" },
    make("h3", {}, "All heads"),
    make("p", { class: "soft small" },
      "Rows are layers, columns are heads. Choose a head; the number of a layer is the mean of its heads."),
    make("div", { class: "controls" }, shown.element),
    note, grid, list, folded("Several heads", several),
  );
  return {
    element,
    /** Mark the chosen heads. */
    press() {
      follow(); // not awaited: what is chosen comes first
      const { layer, kind } = state;
      buttons.forEach((button, index) => {
        const isChosen = Math.floor(index / heads) === layer && (kind === "rollout" || state.heads.includes(index % heads));
        setFlag(button, "aria-pressed", isChosen);
      });
      stopAt(all, layer * (heads + 1) + 1 + state.heads[0]);
    },
  };
}
