// All layers and heads of a model as small matrices, in the scale of the large one.

function attentionHeads(view, { state, scaled }, pick) {
  const { attention, thumbnails } = view.arrays;
  const [layers, heads] = attention.shape;
  const several = tick("Combine heads", () => {});
  const buttons = [];
  const grid = make("div", { class: "heads", role: "group", "aria-label": "All layers and heads" });
  grid.style.gridTemplateColumns = `auto repeat(${heads}, minmax(24px, 1fr))`;
  grid.append(make("span", { class: "index", "aria-hidden": "true" }), ...range(heads).map((head) => make("span", { class: "index", "aria-hidden": "true" }, String(head))));
  for (const layer of range(layers)) {
    const all = () => pick(layer, null, false);
    grid.append(make("button", { type: "button", class: "index", title: `Mean of the heads of layer ${layer}`, "aria-label": `Layer ${layer}, mean of all heads`, onclick: all }, String(layer)));
    for (const head of range(heads)) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const click = (event) => pick(layer, head, event.shiftKey || event.ctrlKey || event.metaKey || several.firstChild.checked);
      const button = make("button", { type: "button", "aria-label": `Layer ${layer}, head ${head}`, "data-head": `${layer}.${head}`, onclick: click }, canvas);
      button.addEventListener("pointermove", (event) => showTip(event, `layer ${layer}, head ${head}`, canvas));
      button.addEventListener("pointerleave", hideTip);
      buttons.push(button);
      grid.append(button);
    }
  }
  arrows(buttons, heads);
  const begin = turns();
  let drawn = "";
  async function draw() {
    const isLast = begin();
    drawn = `${state.scale} ${theme()}`;
    for (const layer of range(layers)) {
      for (const head of range(heads)) {
        const small = await thumbnails.part(layer, head);
        if (!isLast()) return;
        paint(buttons[layer * heads + head].firstChild, small.rows, small.columns, "sequential", (i, j) => Math.sqrt(small.at(i, j) / scaled(small, i)));
      }
    }
  }
  onRedraw(draw);
  const element = make(
    "section",
    { class: "card", "aria-label": "All heads" },
    make("h3", {}, "All heads"),
    make("p", { class: "soft small" }, "Rows are layers, columns are heads. Choose a head; the number of a layer is the mean of its heads."),
    make("div", { class: "controls" }, several),
    grid,
  );
  return {
    element, draw,
    /** Mark the chosen heads. */
    press() {
      if (drawn !== `${state.scale} ${theme()}`) draw();
      const { layer, kind } = state;
      buttons.forEach((button, index) => {
        const isChosen = Math.floor(index / heads) === layer && (kind === "rollout" || state.heads.includes(index % heads));
        button.setAttribute("aria-pressed", String(isChosen));
      });
      stopAt(buttons, layer * heads + state.heads[0]);
    },
  };
}
