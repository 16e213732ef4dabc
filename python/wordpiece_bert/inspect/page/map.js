// The map: texts as points, with search, zoom and movement.

const SHAPES = 4; // circle, square, triangle, diamond: groups differ by shape as well as by colour
const MOST_RESULTS = 60;

builders.map = (view) => {
  const { texts, groups, method, explained } = view.data;
  const names = groups ? [...new Set(groups)].sort() : [];
  const colours = content.colours.categories;
  const group = groups ? groups.map((name) => names.indexOf(name)) : texts.map(() => 0);
  const state = { scale: 1, x: 0, y: 0, chosen: null, found: null };
  const canvas = make("canvas", { class: "plot", tabindex: "0", role: "img", "aria-label": `Map of ${texts.length} texts; the search lists texts`, style: { touchAction: "none", cursor: "grab" } });
  const results = make("div", { class: "results scroll", style: { maxHeight: "380px" } });
  const count = make("p", { class: "soft small", "aria-live": "polite" });
  const detail = make("p", { class: "note hidden" });
  const search = make("input", { type: "search", placeholder: "Search the texts", "aria-label": "Search the texts", oninput: () => find(search.value), style: { width: "100%" } });
  let points = null;
  let bounds;
  let size = { width: 1, height: 1 };

  const place = (i) => {
    const room = Math.min(size.width, size.height) * 0.92;
    const unit = room / Math.max(bounds.width, bounds.height, 1e-9);
    const fill = Math.min((size.width * 0.92) / Math.max(bounds.width, 1e-9), (size.height * 0.9) / Math.max(bounds.height, 1e-9));
    const factor = (Number.isFinite(fill) ? fill : unit) * state.scale;
    return [size.width / 2 + state.x + (points.at(i, 0) - bounds.x) * factor, size.height / 2 + state.y - (points.at(i, 1) - bounds.y) * factor];
  };

  const draw = once(() => {
    if (!points || !canvas.isConnected) return;
    const prepared = prepare(canvas, clamp(canvas.parentElement.clientWidth * 0.62, 320, 620));
    size = prepared;
    const { context, width, height } = prepared;
    context.clearRect(0, 0, width, height);
    const radius = clamp(9 - Math.log2(texts.length + 1) / 1.6, 2.5, 6) * Math.min(1.6, Math.sqrt(state.scale));
    for (const pass of [false, true]) {
      texts.forEach((_, i) => {
        const hit = !state.found || state.found.has(i);
        if (hit !== pass) return;
        const [x, y] = place(i);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) return;
        context.globalAlpha = hit ? 0.85 : 0.12;
        context.fillStyle = theme() === "dark" && group[i] % colours.length === 0 ? variable("--accent") : colours[group[i] % colours.length];
        marker(context, x, y, radius, group[i] % SHAPES);
      });
    }
    context.globalAlpha = 1;
    if (state.chosen !== null) {
      const [x, y] = place(state.chosen);
      context.strokeStyle = variable("--ink");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, radius + 4, 0, 7);
      context.stroke();
    }
  });
  onRedraw(draw);

  function nearest(event) {
    if (!points) return null;
    const box = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let distance = 18 * 18;
    for (let i = 0; i < texts.length; i++) {
      const [x, y] = place(i);
      const squared = (x - px) ** 2 + (y - py) ** 2;
      if (squared < distance) [best, distance] = [i, squared];
    }
    return best;
  }

  function choose(index) {
    state.chosen = index;
    detail.classList.toggle("hidden", index === null);
    detail.textContent = index === null ? "" : `${groups ? `${groups[index]}: ` : ""}${texts[index]}`;
    draw();
  }

  function find(words) {
    const wanted = words.trim().toLowerCase();
    const hits = wanted ? range(texts.length).filter((i) => texts[i].toLowerCase().includes(wanted)) : range(texts.length);
    state.found = wanted ? new Set(hits) : null;
    count.textContent = wanted ? `${hits.length} of ${texts.length} texts` : `${texts.length} texts`;
    results.replaceChildren(...hits.slice(0, MOST_RESULTS).map((i) => make("button", { type: "button", onclick: () => choose(i), onfocus: () => choose(i) }, short(texts[i], 160))));
    draw();
  }

  function zoom(factor, px = size.width / 2, py = size.height / 2) {
    const next = clamp(state.scale * factor, 0.5, 60);
    const ratio = next / state.scale;
    state.x = px - size.width / 2 - (px - size.width / 2 - state.x) * ratio;
    state.y = py - size.height / 2 - (py - size.height / 2 - state.y) * ratio;
    state.scale = next;
    draw();
  }

  let grip = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    grip = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip) {
      state.x += event.clientX - grip.x;
      state.y += event.clientY - grip.y;
      grip = { x: event.clientX, y: event.clientY, moved: grip.moved || Math.abs(event.clientX - grip.x) + Math.abs(event.clientY - grip.y) > 2 };
      return draw();
    }
    const index = nearest(event);
    return index === null ? hideTip() : showTip(event, texts[index]);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!grip.moved) choose(nearest(event));
    grip = null;
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") reset();
    else if (event.key in moves) {
      event.preventDefault();
      state.x += moves[event.key][0];
      state.y += moves[event.key][1];
      draw();
    }
  });

  function reset() {
    Object.assign(state, { scale: 1, x: 0, y: 0 });
    draw();
  }

  async function start() {
    points = await view.arrays.points.part();
    const axis = (c) => {
      const values = range(texts.length).map((i) => points.at(i, c));
      return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
    };
    const [[x0, x1], [y0, y1]] = [axis(0), axis(1)];
    bounds = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, width: x1 - x0, height: y1 - y0 };
    find("");
  }

  const shares = explained ? ` The axes show ${explained.map((share) => `${(100 * share).toFixed(1)} %`).join(" and ")} of the variance.` : "";
  const key = names.map((name, i) => make("span", {}, make("span", { class: "swatch", style: { backgroundColor: colours[i % colours.length] } }), name));
  view.element = make(
    "div",
    { class: "grid side" },
    make("section", { class: "card" }, make("h3", {}, "Texts"), search, count, results),
    make("section", { class: "card" },
      make("h2", {}, `${texts.length} texts by ${method === "pca" ? "principal components" : method}`),
      make("p", { class: "soft small" }, `Near points have similar vectors.${shares} Scroll or + and − to zoom, drag or arrow keys to move.`),
      key.length > 1 ? make("div", { class: "legend" }, key) : null, canvas, detail,
      make("div", { class: "controls" }, make("button", { type: "button", onclick: () => zoom(1.5) }, "Zoom in"), make("button", { type: "button", onclick: () => zoom(1 / 1.5) }, "Zoom out"), make("button", { type: "button", onclick: reset }, "Reset"))),
  );
  view.start = start;
  return view.element;
};

function marker(context, x, y, radius, shape) {
  context.beginPath();
  if (shape === 0) context.arc(x, y, radius, 0, 7);
  else if (shape === 1) context.rect(x - radius * 0.85, y - radius * 0.85, radius * 1.7, radius * 1.7);
  else {
    const corners = shape === 2 ? [[0, -1.15], [1.05, 0.85], [-1.05, 0.85]] : [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]];
    for (const [dx, dy] of corners) context.lineTo(x + dx * radius, y + dy * radius);
  }
  context.fill();
}
