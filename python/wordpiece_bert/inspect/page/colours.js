// Colours of values, in the theme that is shown.

const root = document.documentElement;

function theme() {
  return root.dataset.theme;
}

function setTheme(name) {
  root.dataset.theme = name;
  tables.clear();
  redraw();
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
    table.css = table.map((parts) => `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`);
    table.ink = table.map(inkOnColour);
    tables.set(name, table);
  }
  return tables.get(name);
}

/** What gives the place of a value in a map, 0 to 255: sequential maps go from 0 to 1, diverging ones from −1 to 1. */
const STEPS_OF = {
  sequential: (value) => Math.round(clamp(value, 0, 1) * 255),
  diverging: (value) => Math.round(clamp((value + 1) / 2, 0, 1) * 255),
};
function step(name, value) {
  return STEPS_OF[name](value);
}

function cssColour(name, value) {
  return colourTable(name).css[step(name, value)];
}

/** The ink that reads on the colour of a value: a contrast of 4.5 at least. */
function inkOn(name, value) {
  return colourTable(name).ink[step(name, value)];
}

function inkOnColour([r, g, b]) {
  const linear = [r, g, b].map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  // Black text has 4.5 above a luminance of 0.175, white text below 0.183, the softer dark ink above 0.26.
  return light > 0.26 ? "#1f2328" : light > 0.179 ? "#000000" : "#ffffff";
}

function hexParts(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** Colour an element by a value. */
function shade(element, name, value) {
  const [colour, ink] = [cssColour(name, value), inkOn(name, value)];
  // A colour that is set anew costs the browser a new style, even if it stays the same.
  if (element.shaded === colour + ink) return;
  element.shaded = colour + ink;
  element.style.backgroundColor = colour;
  element.style.color = ink;
}

/** The same in every theme, for an element that stays. */
function keepShaded(element, name, value) {
  onRedraw(element, () => shade(element, name, value))();
  return element;
}

/** Paint values [rows, columns] into a canvas, one pixel each: its cells, which an SVG has as rectangles. */
function paint(canvas, rows, columns, name, value) {
  paintRows(canvas, rows, columns, name, (i, line) => {
    for (let j = 0; j < columns; j++) line[j] = value(i, j);
  });
}

/** As `paint`, without a call for each value: `fill(i, line)` writes those of a row. */
function paintRows(canvas, rows, columns, name, fill) {
  canvas.hasCells = true;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const words = new Uint32Array(image.data.buffer);
  const colours = colourTable(name);
  const packed = (colours.words ??= Uint32Array.from(colours, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r));
  const [line, stepOf] = [new Float64Array(columns), STEPS_OF[name]];
  for (let i = 0, at = 0; i < rows; i++) {
    fill(i, line);
    for (let j = 0; j < columns; j++, at++) words[at] = packed[stepOf(line[j])];
  }
  context.putImageData(image, 0, 0);
}

/** One of `count` colours that differ in hue, for lines. */
function seriesColour(index, count) {
  if (count <= content.colours.categories.length && theme() === "light") return content.colours.categories[index];
  return `hsl(${Math.round((360 * index) / count + 205) % 360} 70% ${(theme() === "dark" ? 68 : 34) + 8 * (index % 2)}%)`;
}

/** A ramp with its ends named; one that is made anew after each choice is not `lasting`. */
function legend(name, low, high, note = "", lasting = true) {
  const ramp = make("canvas", { class: "ramp", "aria-hidden": "true" });
  const draw = () => paint(ramp, 1, 128, name, (_, j) => (name === "sequential" ? j / 127 : (j / 127) * 2 - 1));
  if (lasting) onRedraw(ramp, draw);
  draw();
  return make("div", { class: "legend" }, low, ramp, high, note ? make("span", {}, note) : null);
}
