// The canvas of a map: points, zoom and movement by pointer, two fingers and keys, areas drawn around points.

const MOST_CORNERS = 48; // of an area, so that it fits into the address
const UNITS = 999; // areas are in units of the map, whose points lie between 100 and 900

/** The colour and the shape, corners around 0 or none for a circle, of the group with this number: 48 differ. */
function groupMark(index) {
  const { categories, marks } = content.colours;
  const [colour, round] = [index % categories.length, Math.floor(index / categories.length)];
  return { colour: categories[colour], shape: marks[(colour + round) % marks.length] };
}

/** A group's mark in a text. */
function markIcon(index) {
  const { colour, shape } = groupMark(index);
  const drawn = shape.length
    ? svgElement("polygon", { points: shape.map(([x, y]) => `${7 + 5 * x},${7 + 5 * y}`).join(" "), fill: colour })
    : svgElement("circle", { cx: 7, cy: 7, r: 5, fill: colour });
  return svgElement("svg", { width: 14, height: 14, "aria-hidden": "true", class: "mark" }, drawn);
}

function isInside(x, y, area) {
  let inside = false;
  for (let i = 0, j = area.length - 2; i < area.length; j = i, i += 2) {
    const [x1, y1, x2, y2] = [area[i], area[i + 1], area[j], area[j + 1]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  }
  return inside;
}

/**
 * A canvas of points. `choose` takes the index of a point or null, `enclose` the corners of an area, `tell` gives the
 * text of a point. What it looks like is in `look`: isShown(i), mark(i), chosen, others (the neighbours of the chosen
 * point and whether the map keeps them), area, isDrawing.
 */
function pointPlot(label, count, { choose, enclose, tell }) {
  const canvas = make("canvas", { class: "plot points", tabindex: "0", role: "application", "aria-label": label });
  const state = { scale: 1, x: 0, y: 0 };
  const plot = { canvas, look: null };
  let points = null;
  let bounds;
  let size = { width: 1, height: 1 };

  /** Pixels of one of the map's own units: one scale for both axes, so that distances mean the same everywhere. */
  const factor = () => {
    return state.scale * Math.min((0.92 * size.width) / bounds.width, (0.9 * size.height) / bounds.height);
  };
  const place = (i) => {
    const unit = factor();
    const [x, y] = [points.at(i, 0) - bounds.x, points.at(i, 1) - bounds.y];
    return [size.width / 2 + state.x + x * unit, size.height / 2 + state.y - y * unit];
  };
  /** A place of the canvas in units of the map, and back. */
  const toUnits = (px, py) => {
    const unit = factor();
    const [x, y] = [(px - size.width / 2 - state.x) / unit / bounds.width, (size.height / 2 + state.y - py) / unit / bounds.height];
    return [x, y].map((share) => clamp(Math.round(500 + 800 * share), 0, UNITS));
  };
  const fromUnits = (x, y) => {
    const unit = factor();
    const [right, up] = [((x - 500) / 800) * bounds.width, ((y - 500) / 800) * bounds.height];
    return [size.width / 2 + state.x + right * unit, size.height / 2 + state.y - up * unit];
  };

  /** Whether a point is in an area. */
  plot.isIn = (i, area) =>
    isInside(500 + (800 * (points.at(i, 0) - bounds.x)) / bounds.width, 500 + (800 * (points.at(i, 1) - bounds.y)) / bounds.height, area);

  plot.set = (matrix) => {
    const [[x0, x1], [y0, y1]] = [0, 1].map((axis) => endsOf(matrix.column(axis)));
    bounds = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, width: x1 - x0 || 1, height: y1 - y0 || 1 };
    points = matrix;
  };

  const radius = () => clamp(9 - Math.log2(count + 1) / 1.6, 2.5, 6) * clamp(Math.sqrt(state.scale), 1, 1.6);

  plot.draw = once(() => {
    if (!points || !canvas.isConnected || !plot.look) return;
    drawOn(canvas, clamp(canvas.parentElement.clientWidth * 0.62, 320, 620), drawPoints);
  });
  onRedraw(canvas, plot.draw);

  function drawPoints(context, width, height) {
    const { isShown, mark, isOutlined, chosen, others, area } = plot.look;
    size = { width, height };
    context.clearRect(0, 0, width, height);
    const r = radius();
    const soft = variable("--soft");
    if (area.length) outline(context, range(area.length / 2).map((i) => fromUnits(area[2 * i], area[2 * i + 1])), true);
    if (chosen !== null) {
      const from = place(chosen);
      context.strokeStyle = variable("--ink");
      for (const { index, isKept } of others) {
        context.globalAlpha = 0.7;
        context.lineWidth = isKept ? 1.6 : 1;
        context.setLineDash(isKept ? [] : [4, 4]);
        context.beginPath();
        context.moveTo(...from);
        context.lineTo(...place(index));
        context.stroke();
      }
      context.setLineDash([]);
    }
    for (const pass of [false, true]) {
      for (let i = 0; i < count; i++) {
        const hit = isShown(i);
        if (hit !== pass) continue;
        const [x, y] = place(i);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
        const { colour, shape } = mark(i);
        context.globalAlpha = hit ? 0.88 : 0.12;
        context.fillStyle = colour;
        trace(context, x, y, r, shape);
        context.fill();
        if (isOutlined && hit) {
          context.lineWidth = 0.75;
          context.strokeStyle = soft;
          context.stroke();
        }
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = variable("--ink");
    for (const [index, thick, wide] of [...others.map(({ index }) => [index, 1.2, 2.5]), [chosen, 2.4, 5]]) {
      if (index === null) continue;
      context.lineWidth = thick;
      context.beginPath();
      context.arc(...place(index), r + wide, 0, 7);
      context.stroke();
    }
    if (start?.lasso) outline(context, start.lasso, false);
  }

  function outline(context, corner, isFilled) {
    context.beginPath();
    for (const [x, y] of corner) context.lineTo(x, y);
    if (isFilled) context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = variable("--accent");
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = variable("--accent");
    context.stroke();
  }

  /** The point nearest to a place of the screen, if one is near. */
  function nearest(event) {
    if (!points) return null;
    const box = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let distance = 18 * 18;
    for (let i = 0; i < count; i++) {
      if (!plot.look.isShown(i)) continue;
      const [x, y] = place(i);
      const squared = (x - px) ** 2 + (y - py) ** 2;
      if (squared < distance) [best, distance] = [i, squared];
    }
    return best;
  }

  // --- zoom and movement

  plot.zoom = (factor, px = size.width / 2, py = size.height / 2) => {
    const next = clamp(state.scale * factor, 0.5, 60);
    const ratio = next / state.scale;
    state.x = px - size.width / 2 - (px - size.width / 2 - state.x) * ratio;
    state.y = py - size.height / 2 - (py - size.height / 2 - state.y) * ratio;
    state.scale = next;
    plot.draw();
  };
  plot.reset = () => {
    Object.assign(state, { scale: 1, x: 0, y: 0 });
    plot.draw();
  };
  function move(dx, dy) {
    state.x += dx;
    state.y += dy;
    plot.draw();
  }
  /** Move the map so that a point is on it. */
  plot.reveal = (i) => {
    const [x, y] = place(i);
    if (x >= 0 && y >= 0 && x <= size.width && y <= size.height) return;
    move(size.width / 2 - x, size.height / 2 - y);
  };
  /** The corners of what is shown, as an area; null if there are no points yet. */
  plot.inView = () =>
    points && [...toUnits(0, 0), ...toUnits(size.width, 0), ...toUnits(size.width, size.height), ...toUnits(0, size.height)];

  // A wheel alone scrolls the page; a pinch on a trackpad is a wheel with Ctrl.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    plot.zoom(Math.exp(clamp(-event.deltaY, -60, 60) / 150), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  const fingers = new Map();
  let start = null;
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const middle = () => {
    const [a, b = a] = [...fingers.values()];
    return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, apart: Math.hypot(a[0] - b[0], a[1] - b[1]) };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || fingers.size === 2) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, spot(event));
    const lasso = points && (plot.look?.isDrawing || event.shiftKey) ? [spot(event)] : null;
    if (fingers.size === 1) start = { at: spot(event), before: { ...state }, isMoved: false, lasso };
    else Object.assign(start, { isMoved: true, lasso: null });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) {
      const index = nearest(event);
      return index === null ? hideTip() : showTip(event, tell(index));
    }
    hideTip();
    const before = middle();
    fingers.set(event.pointerId, spot(event));
    const after = middle();
    if (!start.isMoved && Math.hypot(after.x - start.at[0], after.y - start.at[1]) < 4) return undefined;
    start.isMoved = true;
    if (start.lasso) {
      start.lasso.push([after.x, after.y]);
      return plot.draw();
    }
    if (fingers.size === 2 && before.apart > 0) plot.zoom(after.apart / before.apart, before.x, before.y);
    return move(after.x - before.x, after.y - before.y);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!fingers.delete(event.pointerId) || fingers.size) return;
    const { isMoved, lasso } = start;
    start = null;
    if (!isMoved) choose(nearest(event));
    else if (lasso) {
      const step = Math.max(1, lasso.length / MOST_CORNERS);
      const kept = range(Math.min(lasso.length, MOST_CORNERS)).map((i) => lasso[Math.floor(i * step)]);
      enclose(kept.flatMap(([x, y]) => toUnits(x, y)));
      plot.draw();
    }
  });
  // The browser takes a finger for itself when it scrolls the page: the map is as it was.
  canvas.addEventListener("pointercancel", (event) => {
    if (!fingers.delete(event.pointerId)) return;
    Object.assign(state, start.before);
    if (!fingers.size) start = null;
    plot.draw();
  });
  canvas.addEventListener("pointerleave", hideTip);

  /** The next point in a direction: ahead more than aside, and near. */
  function next(from, down, right) {
    const [x0, y0] = from === null ? [size.width / 2, size.height / 2] : place(from);
    let best = null;
    let least = Infinity;
    for (let i = 0; i < count; i++) {
      if (i === from || !plot.look.isShown(i)) continue;
      const [x, y] = place(i);
      const ahead = (x - x0) * right + (y - y0) * down;
      const aside = Math.abs((x - x0) * down) + Math.abs((y - y0) * right);
      if (from !== null && (ahead <= 0 || aside > ahead)) continue;
      const cost = from === null ? Math.hypot(x - x0, y - y0) : ahead + 2 * aside;
      if (cost < least) [best, least] = [i, cost];
    }
    return best;
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !points) return;
    if (event.key in STEPS) {
      const [down, right] = STEPS[event.key];
      if (event.shiftKey) move(-40 * right, -40 * down);
      else {
        const found = next(plot.look.chosen, down, right);
        if (found !== null) choose(found);
      }
    } else if (event.key === "+" || event.key === "=") plot.zoom(1.25);
    else if (event.key === "-") plot.zoom(0.8);
    else if (event.key === "0") plot.reset();
    else return;
    event.preventDefault();
  });
  return plot;
}

function trace(context, x, y, radius, shape) {
  context.beginPath();
  if (!shape.length) return context.arc(x, y, radius, 0, 7);
  for (const [dx, dy] of shape) context.lineTo(x + dx * radius, y + dy * radius);
  return context.closePath();
}
