// Colours of values, in the theme that is shown.

const root = document.documentElement;

function theme() {
  return root.dataset.theme;
}

function setTheme(name) {
  root.dataset.theme = name;
  tables.clear();
  for (const draw of redraws) draw();
}

const tables = new Map();

/** 256 colours of a map, [r, g, b] each. */
function colourTable(name) {
  if (!tables.has(name)) {
    const stops = content.colours.maps[theme()][name].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    const table = range(256).map((index) => {
      const place = (index / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(place), stops.length - 2);
      return stops[low].map((part, channel) => Math.round(part + (stops[low + 1][channel] - part) * (place - low)));
    });
    tables.set(name, table);
  }
  return tables.get(name);
}

/** The place of a value in a map, 0 to 255: sequential maps go from 0 to 1, diverging ones from −1 to 1. */
function step(name, value) {
  return Math.round(clamp(name === "sequential" ? value : (value + 1) / 2, 0, 1) * 255);
}

function cssColour(name, value) {
  return `rgb(${colourTable(name)[step(name, value)].join(" ")})`;
}

/** Black or white, whichever reads better on the colour of a value. */
function inkOn(name, value) {
  return inkOnColour(colourTable(name)[step(name, value)]);
}

function inkOnColour([r, g, b]) {
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1f2328" : "#ffffff";
}

function hexParts(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** Colour an element by a value. */
function shade(element, name, value) {
  element.style.backgroundColor = cssColour(name, value);
  element.style.color = inkOn(name, value);
}

/** Paint values [rows, columns] into a canvas, one pixel each. */
function paint(canvas, rows, columns, name, value) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const words = new Uint32Array(image.data.buffer);
  const packed = Uint32Array.from(colourTable(name), ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  for (let i = 0, at = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++, at++) words[at] = packed[step(name, value(i, j))];
  }
  context.putImageData(image, 0, 0);
}

/** A ramp with its ends named. */
function legend(name, low, high, note = "") {
  const ramp = make("canvas", { class: "ramp", "aria-hidden": "true" });
  const draw = onRedraw(() => paint(ramp, 1, 128, name, (_, j) => (name === "sequential" ? j / 127 : (j / 127) * 2 - 1)));
  draw();
  return make("div", { class: "legend" }, low, ramp, high, note ? make("span", {}, note) : null);
}
