// The page as SVG: what is shown, drawn again as rectangles, texts and images.

const SVG = "http://www.w3.org/2000/svg";
/** Characters that XML does not have. */
const NOT_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function svgElement(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  element.append(...children.map((child) => (typeof child === "string" ? child.replace(NOT_XML, "\ufffd") : child)));
  return element;
}

const isClear = (colour) => colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);

/** Draw an element and what is in it; controls and what only screen readers have are left out. */
function svgOf(root, title) {
  document.documentElement.classList.add("taking"); // without controls and the room that they take
  const frame = root.getBoundingClientRect();
  const [width, height] = [Math.ceil(frame.width) + 24, Math.ceil(frame.height) + 24];
  const image = svgElement("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  image.append(svgElement("title", {}, title), svgElement("rect", { width, height, fill: variable("--ground") }));
  const state = { x: frame.left - 12, y: frame.top - 12, ids: { next: 0 } };
  drawElement(root, image, state);
  document.documentElement.classList.remove("taking");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(image)}\n`;
}

function drawElement(element, into, state) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden" || element.matches(".controls, .visually-hidden, input, select")) return;
  const box = element.getBoundingClientRect();
  const place = { x: box.left - state.x, y: box.top - state.y, width: box.width, height: box.height };
  let group = into;
  if (style.opacity !== "1") into.append((group = svgElement("g", { opacity: Number(style.opacity) })));
  if (style.display !== "contents") drawBox(group, style, place);
  if (element instanceof HTMLCanvasElement) return drawCanvas(element, group, place);
  if (style.overflowX !== "visible" || style.overflowY !== "visible") {
    const id = `clip${state.ids.next++}`;
    group.append(svgElement("clipPath", { id }, svgElement("rect", place)));
    group.append((group = svgElement("g", { "clip-path": `url(#${id})` })));
    state = { ...state, limit: box };
  }
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) drawText(child, element, style, group, state);
    else if (child.nodeType === Node.ELEMENT_NODE && !outside(child, state.limit)) drawElement(child, group, state);
  }
}

/** Whether an element is scrolled out of what shows it. */
function outside(element, limit) {
  if (!limit) return false;
  const box = element.getBoundingClientRect();
  return box.height > 0 && (box.bottom < limit.top || box.top > limit.bottom);
}

function drawBox(group, style, { x, y, width, height }) {
  const radius = parseFloat(style.borderTopLeftRadius) || 0;
  const line = parseFloat(style.borderTopWidth);
  const isFramed = line > 0 && style.borderTopStyle !== "none" && !isClear(style.borderTopColor);
  const isOutlined = style.boxShadow.includes("inset");
  const attributes = { x, y, width, height, rx: Math.min(radius, height / 2), fill: isClear(style.backgroundColor) ? "none" : style.backgroundColor };
  if (isFramed) Object.assign(attributes, { stroke: style.borderTopColor, "stroke-width": line });
  else if (isOutlined) Object.assign(attributes, { stroke: style.color, "stroke-width": 2 });
  if (attributes.fill !== "none" || attributes.stroke) group.append(svgElement("rect", attributes));
  const foot = parseFloat(style.borderBottomWidth);
  if (!isFramed && foot > 0 && !isClear(style.borderBottomColor)) {
    group.append(svgElement("rect", { x, y: y + height - foot, width, height: foot, fill: style.borderBottomColor }));
  }
}

function drawCanvas(canvas, group, { x, y, width, height }) {
  if (!canvas.width || !canvas.height || !width) return;
  const pixels = getComputedStyle(canvas).imageRendering === "pixelated" ? { "image-rendering": "pixelated" } : {};
  group.append(svgElement("image", { x, y, width, height, preserveAspectRatio: "none", href: canvas.toDataURL(), ...pixels }));
}

function drawText(node, element, style, group, state) {
  if (!node.data.trim()) return;
  for (const { text, box } of linesOf(node)) {
    if (state.limit && (box.bottom < state.limit.top || box.top > state.limit.bottom)) continue;
    const isRight = style.direction === "rtl";
    const size = parseFloat(style.fontSize);
    const attributes = {
      x: (isRight ? box.right : box.left) - state.x, y: (box.top + box.bottom) / 2 - state.y + size * 0.34,
      "font-family": style.fontFamily, "font-size": size, fill: style.color,
    };
    if (isRight) attributes.direction = "rtl";
    if (Number(style.fontWeight) > 500) attributes["font-weight"] = style.fontWeight;
    if (style.fontStyle === "italic") attributes["font-style"] = "italic";
    if (style.textDecorationLine !== "none") attributes["text-decoration"] = style.textDecorationLine;
    group.append(svgElement("text", attributes, text.replaceAll(" ", "\u00a0"))); // SVG joins spaces
  }
}

/** The lines of a text node: its text in each, and the box around it. */
function linesOf(node) {
  const range = document.createRange();
  const lines = [];
  const add = (from, to) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
    if (!boxes.length) return;
    const [top, bottom] = [Math.min(...boxes.map((box) => box.top)), Math.max(...boxes.map((box) => box.bottom))];
    const box = { top, bottom, left: Math.min(...boxes.map((one) => one.left)), right: Math.max(...boxes.map((one) => one.right)) };
    const last = lines.at(-1);
    if (last && Math.abs(last.box.top - top) < 2) {
      last.text += node.data.slice(from, to);
      Object.assign(last.box, { left: Math.min(last.box.left, box.left), right: Math.max(last.box.right, box.right) });
    } else if (bottom - top > 1.8 * boxes[0].height && to - from > 1) for (let at = from; at < to; at++) add(at, at + 1);
    else lines.push({ text: node.data.slice(from, to), box });
  };
  range.selectNodeContents(node);
  const boxes = [...range.getClientRects()];
  if (boxes.length === 1) return [{ text: node.data, box: boxes[0] }];
  for (const word of node.data.matchAll(/\s+|\S+/g)) add(word.index, word.index + word[0].length);
  return lines;
}

/** An SVG as a PNG of twice its size, as far as canvases go. */
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(2, 16000 / image.width, 16000 / image.height);
  const canvas = make("canvas");
  [canvas.width, canvas.height] = [Math.ceil(image.width * scale), Math.ceil(image.height * scale)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
