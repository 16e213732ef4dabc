// The content of the page, and how elements are made. Texts become text nodes, never markup.

const content = JSON.parse(document.getElementById("content").textContent);

/** By kind, the function that builds a view: it sets its `element` and its `start`. */
const builders = {};

/** Make an element: attributes and listeners (onclick …) by name, then children: elements or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set an attribute to "true" or "false". One that is set anew costs a new style, even if it stays the same. */
function setFlag(element, name, isOn) {
  const value = String(isOn);
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A probability or weight with three digits. */
function digits(value) {
  return value !== 0 && Math.abs(value) < 0.0005 ? value.toExponential(1) : value.toFixed(3);
}

/** Characters without a form of their own, at the beginning of a token or after its prefix: before them, nothing is joined. */
const UNSEEN = /(?<=^|[#▁Ġ])[\p{Cf}\ufe00-\ufe0f]/gu;
/** A token as a person reads it: white space made visible, and what cannot be seen by its code. */
function readable(token) {
  if (token === "") return "∅";
  const code = (character) => `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
  return token.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(UNSEEN, code);
}

/** For each token its position, if the same token occurs elsewhere: lists name it, too. */
function repeatedPlaces(tokens) {
  const first = new Map(tokens.map((token, i) => [token, i]));
  const last = new Map(range(tokens.length).reverse().map((i) => [tokens[i], i]));
  return tokens.map((token, i) => (first.get(token) === last.get(token) ? null : i));
}

/** A token as lists name it: with its position, if it has one. */
const placedName = (token, place) => `${readable(token)}${(place ?? null) === null ? "" : ` (${place})`}`;

/** A number with its noun: "1 token", "2 tokens". */
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** The largest absolute value, at least `least`: what the others are divided by. */
function largestOf(values, least = 1e-9) {
  let most = least;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i])); // without a call for each
  return most;
}

/** The smallest and the largest value. */
function endsOf(values) {
  return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
}

/** Indices of values, the largest first. */
function ranked(values) {
  return Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
}

/** A text as a part of a sentence of another direction of writing. */
const isolated = (text) => `\u2068${text}\u2069`;

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** The direction of a row of tokens: that of most of them which have letters. Special tokens do not count. */
function directionOf(tokens) {
  let balance = 0;
  for (const token of tokens) {
    if (/^(\[.*\]|<.*>)$/s.test(token)) continue;
    if (RIGHT_TO_LEFT.test(token)) balance++;
    else if (/\p{L}/u.test(token)) balance--;
  }
  return balance > 0 ? "rtl" : "ltr";
}

const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;
/** What a reader sees as the characters of a text. */
function graphemes(text) {
  return segmenter ? Array.from(segmenter.segment(text), (one) => one.segment) : Array.from(text);
}

/** The beginning of a text, in what a reader sees as characters. */
function short(text, most) {
  if (text.length <= most) return text;
  const characters = graphemes(text.slice(0, 8 * most));
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const range = (count) => Array.from({ length: count }, (_, index) => index);

/** What a screen reader says after a choice. */
const announcer = make("div", { class: "visually-hidden", "aria-live": "polite", id: "announcer" });
function announce(text) {
  announcer.textContent = text;
}

/** A line beside the pointer, with a picture larger than it is, if one is given. */
const tip = make("div", { id: "tip", class: "hidden", role: "presentation" });
function showTip(event, text, picture = null) {
  tip.textContent = text;
  if (picture?.width) {
    const large = make("canvas", { width: picture.width, height: picture.height });
    large.getContext("2d").drawImage(picture, 0, 0);
    tip.append(large);
  }
  tip.classList.remove("hidden");
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${clamp(event.clientX + 14, 4, innerWidth - width - 4)}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
}
function hideTip() {
  tip.classList.add("hidden");
}

/** Do something where the pointer stays for a moment, as before a click, and not where it only passes. */
function onDwell(element, act) {
  const MOMENT = 40; // milliseconds; from arriving to pressing, people need 100 or more
  let timer = 0;
  element.addEventListener("pointerenter", () => (timer = setTimeout(act, MOMENT)));
  for (const end of ["pointerleave", "pointerdown"]) element.addEventListener(end, () => clearTimeout(timer));
}

/** After the next frame is drawn. */
const nextFrame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

const waiting = new Set();
/** Run a drawing once before the next frame, however often it is asked for. */
function once(draw) {
  const run = () => {
    if (waiting.delete(run)) draw();
  };
  return () => {
    if (waiting.has(run)) return;
    waiting.add(run);
    requestAnimationFrame(run);
  };
}
/** Run what waits for the next frame: paper has none. */
function drawNow() {
  for (const run of waiting) run();
}

/**
 * Tell overlapping runs of an asynchronous function apart. Calling the result begins a run; what that returns says
 * whether the run is still the last: one that is not must show nothing, because a later choice may be shown already.
 */
function turns() {
  let last = 0;
  return () => {
    const mine = ++last;
    return () => mine === last;
  };
}

// Drawings that must be repeated when the theme or the width changes, each with the element that it draws: what is not on
// the page is left, and drawn when its tab is opened.
const redraws = [];
function onRedraw(element, draw) {
  redraws.push([element, draw]);
  return draw;
}
/** Repeat them; those that read numbers return promises. */
function redraw() {
  return Promise.all(redraws.filter(([element]) => element.isConnected).map(([, draw]) => draw()));
}

/**
 * Draw on a canvas in the resolution of the screen, `height` CSS pixels high. `draw` gets a context and the size in CSS
 * pixels; it is kept, because an SVG is drawn by it too.
 */
function drawOn(canvas, height, draw) {
  const width = canvas.clientWidth || canvas.parentElement.clientWidth || 300;
  const scale = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  canvas.drawn = { width, height, draw };
  draw(context, width, height);
}

/** The value of a CSS variable, for canvases. */
function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
