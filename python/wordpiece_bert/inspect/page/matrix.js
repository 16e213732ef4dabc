// A square matrix of tokens by tokens: the whole of it, and beside it a part with the names of the tokens.

/** A part has this many tokens at first, on a phone half as many; shorter texts are shown whole. */
const MATRIX_PART = 32;
const MATRIX_PARTS = [8, 16, 32, 64, 128, 256];

/**
 * The drawing of matrices [tokens, tokens]. Its `set` takes { matrix, key, fill, tell, row, column }: what is drawn, and
 * a text that changes with its colours; what writes the places of a row's values in the colours, the line beside the
 * pointer, the chosen cell.
 * `choose(row, column)` is called with another cell; `own` gives the names of "zoom" and "at" in the selection.
 */
function tokenMatrix(tokens, own, choose) {
  const length = tokens.length;
  const label = "All tokens; choose a place, or move with the arrow keys, to see it large";
  const whole = make("canvas", { class: "matrix", "aria-label": label });
  const keys = "Query tokens downwards, key tokens to the right. Arrow keys move the chosen cell, + and − zoom.";
  const canvas = make("canvas", { class: "plot cells", "aria-label": keys });
  let shown = null;
  const painted = { canvas: make("canvas"), of: null, key: "" };
  const part = { size: length, top: 0, left: 0, margin: 0, cell: 1 };

  /** Which part the selection shows. Events ask again: what was chosen last may not be drawn yet. */
  function place() {
    if (!shown) return;
    const first = canvas.parentElement.clientWidth < 480 ? MATRIX_PART / 2 : MATRIX_PART;
    const zoomed = selectedIndex(own("zoom"), length + 1, first) || first;
    const size = selection[own("zoom")] === "all" ? length : Math.min(length, zoomed);
    const [top, left] = [selection[own("at")]].flat();
    const bound = (value, middle) => clamp(Number.isInteger(value) ? value : middle - (size >> 1), 0, length - size);
    Object.assign(part, { size, top: bound(top, shown.row ?? 0), left: bound(left, shown.column ?? shown.row ?? 0) });
  }

  const draw = once(() => {
    if (!shown || !canvas.isConnected || !canvas.parentElement.clientWidth) return;
    place();
    whole.parentElement.classList.toggle("hidden", part.size === length);
    drawPart();
    // The part is what was asked for: the whole of a long text follows in the next frame.
    if (part.size < length) drawWhole();
  });

  const drawWhole = once(() => {
    if (!canvas.isConnected || part.size === length) return;
    // A choice of another token leaves the picture as it is.
    const key = `${shown.key} ${theme()}`;
    if (painted.of !== shown.matrix || painted.key !== key) {
      paintRows(painted.canvas, length, length, "sequential", shown.fill);
      Object.assign(painted, { of: shown.matrix, key });
    }
    [whole.width, whole.height] = [length, length];
    whole.drawn = { width: length, height: length, draw: drawFrame };
    drawFrame(whole.getContext("2d"));
  });

  /** All cells, and the frame of the part. */
  function drawFrame(context) {
    context.drawImage(painted.canvas, 0, 0, length, length);
    context.strokeStyle = variable("--mark");
    context.lineWidth = Math.max(2, length / 120);
    context.strokeRect(part.left, part.top, part.size, part.size);
    if (shown.row !== null) {
      context.fillStyle = variable("--mark");
      context.fillRect(0, shown.row, part.left, Math.max(1, length / 250));
      context.fillRect(part.left + part.size, shown.row, length, Math.max(1, length / 250));
    }
  }

  function drawPart() {
    const room = canvas.clientWidth || canvas.parentElement.clientWidth;
    const { size } = part;
    const isNamed = (room - 90) / size >= 9;
    const margin = isNamed ? clamp(room * 0.16, 54, 110) : 6;
    const cell = (room - margin) / size;
    Object.assign(part, { margin, cell });
    drawOn(canvas, room, (context, width, height) => drawCells(context, width, height, isNamed));
  }

  function drawCells(context, width, height, isNamed) {
    const { size, margin } = part;
    context.clearRect(0, 0, width, height);
    const picture = make("canvas");
    const row = new Float64Array(length);
    paintRows(picture, size, size, "sequential", (i, line) => {
      shown.fill(part.top + i, row);
      line.set(row.subarray(part.left, part.left + size));
    });
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, margin, margin, width - margin, height - margin);
    if (isNamed) drawNames(context);
    mark(context, width);
  }

  function drawNames(context) {
    const { size, margin, cell, top, left } = part;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const name = (index, isChosen) => {
      context.font = `${isChosen ? "700 " : ""}${clamp(cell * 0.75, 9, 13)}px ${MONOSPACE}`;
      context.fillStyle = variable("--ink");
      return fitted(context, readable(tokens[index]), margin - 10);
    };
    for (let i = 0; i < size; i++) {
      context.fillText(name(top + i, top + i === shown.row), margin - 5, margin + (i + 0.5) * cell);
      context.save();
      context.translate(margin + (i + 0.5) * cell, margin - 5);
      context.rotate(Math.PI / 2);
      context.fillText(name(left + i, left + i === shown.column), 0, 0);
      context.restore();
    }
  }

  /** The chosen row is framed, and in it the chosen cell. */
  function mark(context, width) {
    const { margin, cell, top, left, size } = part;
    if (shown.row === null || shown.row < top || shown.row >= top + size) return;
    const y = margin + (shown.row - top) * cell;
    context.strokeStyle = variable("--mark");
    context.lineWidth = 2;
    context.strokeRect(margin + 1, y, width - margin - 2, Math.max(cell, 2));
    if (shown.column === null || shown.column < left || shown.column >= left + size) return;
    context.lineWidth = 3;
    context.strokeRect(margin + (shown.column - left) * cell, y, Math.max(cell, 3), Math.max(cell, 3));
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const index = (from, start) => clamp(start + Math.floor((from - part.margin) / part.cell), start, start + part.size - 1);
    return [index(event.clientY - box.top, part.top), index(event.clientX - box.left, part.left)];
  };
  canvas.addEventListener("click", (event) => shown && choose(...at(event)));
  canvas.addEventListener("pointermove", (event) => shown && showTip(event, shown.tell(...at(event))));
  canvas.addEventListener("pointerleave", hideTip);
  whole.addEventListener("click", (event) => {
    const box = whole.getBoundingClientRect();
    const shares = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
    place();
    look(shares.map((share) => Math.floor(share * length) - (part.size >> 1)));
  });
  const look = (corner) => select({ [own("at")]: corner.map((value) => clamp(value, 0, length - part.size)) });
  /** Keys move the part by half of it. */
  const stride = () => Math.max(1, part.size >> 1);
  const stops = () => {
    place();
    const count = Math.ceil((length - part.size) / stride()) + 1;
    return [count, count];
  };
  const placeInWhole = () => [part.top, part.left].map((start) => Math.ceil(start / stride()));
  cellKeys(whole, stops, placeInWhole, (...stop) => look(stop.map((at) => at * stride())));
  function zoom(step) {
    place();
    const sizes = [...MATRIX_PARTS.filter((size) => size < length), length];
    const now = sizes.findIndex((size) => size >= part.size);
    const size = sizes[clamp(now - step, 0, sizes.length - 1)];
    const middle = [part.top, part.left].map((start) => clamp(start + ((part.size - size) >> 1), 0, length - size));
    select({ [own("zoom")]: size === length ? "all" : size, [own("at")]: size === length ? null : middle });
  }
  cellKeys(canvas, () => [length, length], () => [shown?.row ?? 0, shown?.column ?? 0], (row, column) => {
    place();
    const isSeen = row >= part.top && row < part.top + part.size && column >= part.left && column < part.left + part.size;
    if (!isSeen) select({ [own("at")]: null });
    choose(row, column);
  }, { "+": () => zoom(1), "=": () => zoom(1), "-": () => zoom(-1) });
  onRedraw(canvas, draw);
  const buttons = make("div", { class: "controls" },
    make("button", { type: "button", onclick: () => zoom(1) }, "Zoom in"),
    make("button", { type: "button", onclick: () => zoom(-1) }, "Zoom out"));
  const note = make("p", { class: "soft small" }, `All ${counted(length, "token")}; the frame is the part beside.`);
  const parts = make("div", { class: "matrices" }, make("div", { class: "part" }, canvas), make("div", { class: "overview" }, note, whole));
  const element = make("div", {}, length > MATRIX_PARTS[0] ? buttons : null, parts);
  return {
    element,
    set(values) {
      shown = values;
      draw();
    },
  };
}
