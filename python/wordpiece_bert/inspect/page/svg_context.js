// A drawing context whose drawing is SVG. It has what the drawings of the page use of a canvas's context.

/** Characters that XML does not have. */
const NOT_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const SVG = "http://www.w3.org/2000/svg";

function svgElement(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  element.append(...children.map((child) => (typeof child === "string" ? child.replace(NOT_XML, "\ufffd") : child)));
  return element;
}

/** A line of text whose middle is at `y`: `dominant-baseline` is not known to every program. */
function svgText(text, x, y, size, attributes) {
  return svgElement("text", { x, y: y + size * 0.34, "font-size": size, ...attributes }, text.replaceAll(" ", "\u00a0")); // SVG joins spaces
}

const scratch = make("canvas").getContext("2d");
/** A colour as programs that read SVG know it: #rrggbb. */
function plainColour(colour) {
  scratch.fillStyle = colour;
  return scratch.fillStyle;
}

const ANCHORS = { left: "start", start: "start", center: "middle", right: "end", end: "end" };

class SvgContext {
  /** Draw into a group; `cells` is called with a group and a canvas of cells, which belong into it. */
  constructor(group, cells) {
    this.group = group;
    this.cells = cells;
    this.kept = [];
    Object.assign(this, {
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "10px sans-serif", textAlign: "start",
      textBaseline: "alphabetic", transforms: [], dashes: [],
    });
    this.beginPath();
  }

  add(element) {
    if (this.transforms.length) element.setAttribute("transform", this.transforms.join(" "));
    this.group.append(element);
    return element;
  }

  filled() {
    return { fill: plainColour(this.fillStyle), ...(this.globalAlpha < 1 ? { "fill-opacity": this.globalAlpha } : {}) };
  }

  stroked() {
    return {
      stroke: plainColour(this.strokeStyle), "stroke-width": this.lineWidth,
      ...(this.globalAlpha < 1 ? { "stroke-opacity": this.globalAlpha } : {}),
      ...(this.dashes.length ? { "stroke-dasharray": this.dashes.join(" ") } : {}),
    };
  }

  // --- shapes

  clearRect() {}

  fillRect(x, y, width, height) {
    this.add(svgElement("rect", { x, y, width, height, ...this.filled() }));
  }

  strokeRect(x, y, width, height) {
    this.add(svgElement("rect", { x, y, width, height, fill: "none", ...this.stroked() }));
  }

  beginPath() {
    this.path = [];
    this.circle = null;
    this.filledShape = null;
  }

  line(letter, ...numbers) {
    const rounded = numbers.map((number) => Math.round(number * 100) / 100);
    this.path.push(`${this.path.length ? letter : "M"}${rounded.join(" ")}`);
  }

  moveTo(x, y) {
    this.line("M", x, y);
  }

  lineTo(x, y) {
    this.line("L", x, y);
  }

  bezierCurveTo(...numbers) {
    this.line("C", ...numbers);
  }

  closePath() {
    this.path.push("Z");
  }

  /** Drawings of the page have whole circles only. */
  arc(cx, cy, r) {
    this.circle = { cx, cy, r };
  }

  shape(look) {
    if (this.circle) return this.add(svgElement("circle", { ...this.circle, ...look }));
    return this.add(svgElement("path", { d: this.path.join(""), ...look }));
  }

  fill() {
    this.filledShape = this.shape(this.filled());
  }

  /** The edge of a shape that was filled belongs to it. */
  stroke() {
    if (!this.filledShape) this.shape({ fill: "none", ...this.stroked() });
    else for (const [name, value] of Object.entries(this.stroked())) this.filledShape.setAttribute(name, String(value));
  }

  // --- texts and pictures

  fillText(text, x, y) {
    const [, style, weight, size, family] = /^(italic )?(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font);
    const middle = this.textBaseline === "middle" ? y : y - Number(size) * 0.34;
    const look = { "font-family": family, "text-anchor": ANCHORS[this.textAlign], ...this.filled() };
    if (style) look["font-style"] = "italic";
    if (weight) look["font-weight"] = weight;
    this.add(svgText(text, x, middle, Number(size), look));
  }

  measureText(text) {
    scratch.font = this.font;
    return scratch.measureText(text);
  }

  drawImage(canvas, x, y, width, height) {
    const place = `translate(${x} ${y}) scale(${width / canvas.width} ${height / canvas.height})`;
    this.cells(this.add(svgElement("g")), canvas, place);
  }

  // --- state

  save() {
    this.kept.push([...this.transforms]);
  }

  restore() {
    this.transforms = this.kept.pop() ?? [];
  }

  translate(x, y) {
    this.transforms.push(`translate(${Math.round(x * 100) / 100} ${Math.round(y * 100) / 100})`);
  }

  rotate(angle) {
    this.transforms.push(`rotate(${(angle * 180) / Math.PI})`);
  }

  setLineDash(dashes) {
    this.dashes = dashes;
  }
}

// --- cells

/** Pictures of cells are rectangles up to this many cells in one SVG, the smallest pictures first; the others are PNG. */
const MOST_DRAWN_CELLS = 20_000;

/** Fill groups with the cells of their canvases: { group, canvas, place }. */
function fillCells(all) {
  const sizes = new Map();
  for (const { canvas } of all) {
    const count = canvas.width * canvas.height;
    sizes.set(count, (sizes.get(count) ?? 0) + count);
  }
  // Pictures of one size are drawn in one way.
  let left = MOST_DRAWN_CELLS;
  const drawn = new Set();
  for (const [count, total] of [...sizes].sort((a, b) => a[0] - b[0])) {
    if (total > left) break;
    left -= total;
    drawn.add(count);
  }
  for (const { group, canvas, place } of all) {
    if (drawn.has(canvas.width * canvas.height)) {
      group.append(svgElement("g", { transform: place, "shape-rendering": "crispEdges" }, ...cellPaths(canvas)));
    } else {
      const size = { width: canvas.width, height: canvas.height, preserveAspectRatio: "none" };
      group.append(svgElement("image", { transform: place, ...size, "image-rendering": "pixelated", href: canvas.toDataURL() }));
    }
  }
}

/** A path for each colour, of rectangles of equal cells: runs in a row, and equal runs below each other. */
function cellPaths(canvas) {
  const { width, height } = canvas;
  // Read from a copy: a canvas that is read again and again is moved out of the graphics processor, and browsers warn.
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const words = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
  const paths = new Map();
  let above = new Map(); // the rectangles that end at this row, by their first column
  for (let y = 0; y < height; y++) {
    const here = new Map();
    for (let x = 0, end = 0; x < width; x = end) {
      const word = words[y * width + x];
      for (end = x + 1; end < width && words[y * width + end] === word; end++);
      let box = above.get(x);
      if (box?.word !== word || box.columns !== end - x) {
        box = { x, y, columns: end - x, rows: 0, word };
        if (!paths.has(word)) paths.set(word, []);
        paths.get(word).push(box);
      }
      box.rows++;
      here.set(x, box);
    }
    above = here;
  }
  const rectangle = ({ x, y, columns, rows }) => `M${x} ${y}h${columns}v${rows}h-${columns}z`;
  return [...paths].map(([word, boxes]) => {
    const fill = `#${[0, 8, 16].map((shift) => ((word >>> shift) & 255).toString(16).padStart(2, "0")).join("")}`;
    return svgElement("path", { fill, d: boxes.map(rectangle).join("") });
  });
}
