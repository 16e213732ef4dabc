// The page as SVG: what is shown, drawn again as shapes and texts.

const isClear = (colour) => colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);

/** Draw an element and what is in it; controls and what only screen readers have are left out. */
function svgOf(root, title) {
  document.documentElement.classList.add("taking"); // without controls and the room that they take
  try {
    const frame = root.getBoundingClientRect();
    const [width, height] = [Math.ceil(frame.width) + 24, Math.ceil(frame.height) + 24];
    const image = svgElement("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
    image.append(svgElement("title", {}, title), svgElement("rect", { width, height, fill: variable("--ground") }));
    const cells = [];
    drawElement(root, image, { x: frame.left - 12, y: frame.top - 12, ids: { next: 0 }, cells });
    fillCells(cells);
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(image)}\n`;
  } finally {
    document.documentElement.classList.remove("taking");
  }
}

function drawElement(element, into, state) {
  const style = getComputedStyle(element);
  // Closed details have boxes and texts, but nothing of them is seen.
  if (element.checkVisibility?.() === false || style.display === "none") return;
  if (style.visibility === "hidden" || element.matches(".controls, .visually-hidden, input, select")) return;
  const box = element.getBoundingClientRect();
  const place = { x: box.left - state.x, y: box.top - state.y, width: box.width, height: box.height };
  if (element instanceof SVGElement) {
    const copy = element.cloneNode(true);
    for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value.toFixed(2));
    into.append(copy);
    return;
  }
  let group = into;
  if (style.opacity !== "1") into.append((group = svgElement("g", { opacity: Number(style.opacity) })));
  drawBox(group, style, place);
  if (element instanceof HTMLCanvasElement) {
    drawCanvas(element, group, place, state.cells);
    return;
  }
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

/** The ground of an element, its border, its shadows and its outline. */
function drawBox(group, style, { x, y, width, height }) {
  const add = (attributes) => group.append(svgElement("rect", attributes));
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, height / 2);
  /** A frame whose outer edge is `out` pixels outside of the element. */
  const frame = (thick, out, colour) => {
    const by = out - thick / 2; // a stroke is on both sides of its line
    const size = { x: x - by, y: y - by, width: Math.max(0, width + 2 * by), height: Math.max(0, height + 2 * by) };
    add({ ...size, rx: Math.max(0, radius + by), fill: "none", stroke: colour, "stroke-width": thick });
  };
  const border = (side) => {
    const thick = parseFloat(style[`border${side}Width`]);
    const colour = style[`border${side}Color`];
    return thick > 0 && style[`border${side}Style`] !== "none" && !isClear(colour) ? { thick, colour } : null;
  };
  if (!isClear(style.backgroundColor)) add({ x, y, width, height, rx: radius, fill: style.backgroundColor });
  const [top, left, bottom] = ["Top", "Left", "Bottom"].map(border);
  if (top) frame(top.thick, 0, top.colour);
  else {
    if (bottom) add({ x, y: y + height - bottom.thick, width, height: bottom.thick, fill: bottom.colour });
    if (left) add({ x, y, width: left.thick, height, fill: left.colour });
  }
  for (const { colour, down, blur, spread, isInset } of shadowsOf(style.boxShadow).reverse()) {
    if (blur > 0) continue; // of a card: no more than decoration
    if (spread > 0) frame(spread, isInset ? 0 : spread, colour);
    else if (isInset && down < 0) add({ x, y: y + height + down, width, height: -down, fill: colour });
  }
  const thick = parseFloat(style.outlineWidth);
  if (thick > 0 && style.outlineStyle !== "none") frame(thick, thick + parseFloat(style.outlineOffset), style.outlineColor);
}

/** The shadows of a computed style, the uppermost first. */
function shadowsOf(text) {
  if (text === "none") return [];
  return text.split(/,(?![^(]*\))/).map((one) => {
    const colour = one.match(/[a-z]+\([^)]*\)|#[0-9a-f]+/i)?.[0] ?? "currentColor";
    const [, down, blur, spread] = (one.match(/-?[\d.]+px/g) ?? []).map(parseFloat);
    return { colour, down, blur, spread, isInset: one.includes("inset") };
  });
}

function drawCanvas(canvas, group, { x, y, width, height }, all) {
  if (!canvas.width || !canvas.height || !width) return;
  if (canvas.drawn) {
    // As high and wide as it was drawn: what goes beyond is not seen.
    const viewBox = `0 0 ${canvas.drawn.width} ${canvas.drawn.height}`;
    const inner = svgElement("svg", { x, y, width, height, viewBox, preserveAspectRatio: "none" });
    const cells = (group, canvas, place) => all.push({ group, canvas, place });
    canvas.drawn.draw(new SvgContext(inner, cells), canvas.drawn.width, canvas.drawn.height);
    group.append(inner);
  } else if (canvas.hasCells) {
    const place = `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${width / canvas.width} ${height / canvas.height})`;
    all.push({ group, canvas, place });
  } else group.append(svgElement("image", { x, y, width, height, preserveAspectRatio: "none", href: canvas.toDataURL() }));
}

function drawText(node, element, style, group, state) {
  if (!node.data.trim()) return;
  for (const { text, box } of linesOf(node)) {
    if (state.limit && (box.bottom < state.limit.top || box.top > state.limit.bottom)) continue;
    const isRight = style.direction === "rtl";
    const size = parseFloat(style.fontSize);
    const attributes = { "font-family": style.fontFamily, fill: style.color };
    if (isRight) attributes.direction = "rtl";
    if (Number(style.fontWeight) > 500) attributes["font-weight"] = style.fontWeight;
    if (style.fontStyle === "italic") attributes["font-style"] = "italic";
    if (style.textDecorationLine !== "none") attributes["text-decoration"] = style.textDecorationLine;
    const [x, y] = [(isRight ? box.right : box.left) - state.x, (box.top + box.bottom) / 2 - state.y];
    group.append(svgText(text, x, y, size, attributes));
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
