// All layers and heads of a model as small matrices, in the scale of the large one.

function attentionHeads(view, { state, scaled }, pick) {
  const { attention, thumbnails } = view.arrays;
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
  onRedraw(grid, () => drawn && draw());
  const element = make(
    "section",
    { class: "card", "aria-label": "All heads" },
    make("h3", {}, "All heads"),
    make("p", { class: "soft small" },
      "Rows are layers, columns are heads. Choose a head; the number of a layer is the mean of its heads."),
    make("div", { class: "controls" }, several),
    grid,
  );
  return {
    element,
    /** Mark the chosen heads. */
    press() {
      draw(); // not awaited: what is chosen comes first
      const { layer, kind } = state;
      buttons.forEach((button, index) => {
        const isChosen = Math.floor(index / heads) === layer && (kind === "rollout" || state.heads.includes(index % heads));
        setFlag(button, "aria-pressed", isChosen);
      });
      stopAt(all, layer * (heads + 1) + 1 + state.heads[0]);
    },
  };
}
