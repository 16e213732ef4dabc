// One selection for all tabs: what is looked at, kept in the address (#view=attention&layer=3&head=7&token=5).
//
//   selection.layer             a value: a number, a text, an array of numbers (several heads), or undefined
//   select({ layer: 3 })        change some values; null takes one away. The view that is shown follows
//   selectedIndex("layer", 6, 0)              the value as an index below 6, or 0 if it is none
//   selectedIndices, selectedOption           the same of several values, and of a list of texts
//   onSelect(listener)          call a listener after every change
//
// All tabs share the names text, layer (of attention: layer n makes hidden state n + 1), head, token (a position; the
// query of a pair), pair (the position of the key) and point (a row of a table or a map). What one kind alone has, begins
// with the kind: "attention.show". Values out of range are kept, because another tab may have them, but show a default.
//
// A view sets
//   view.element   what it looks like, before numbers are there
//   view.start     (may be async) read numbers; called once
//   view.follow    (may be async) show the selection; called after start, after every change, and when its tab is opened
//   view.csv       (may be async) the numbers that are shown now, an array of rows, the heading first: take.js writes it
//   view.svg       (optional, may be async) the picture as SVG; without it, svg.js draws what the page shows
// and keeps no choice anywhere else: what is shown is a function of its numbers and of the selection.

const selection = Object.create(null);
const SELECTABLE = /^[a-z][a-z0-9.]{0,40}$/;
const listeners = new Set();

function onSelect(listener) {
  listeners.add(listener);
}

function select(changes) {
  let isChanged = false;
  for (const [name, value] of Object.entries(changes)) {
    if (written(value) === written(selection[name])) continue;
    isChanged = true;
    if (value === null || value === undefined) delete selection[name];
    else selection[name] = value;
  }
  if (!isChanged) return;
  clearTimeout(writing);
  writing = setTimeout(writeAddress, 200);
  for (const listener of listeners) listener();
}

/** A value of the selection as an index below `count`: of several, the first. */
function selectedIndex(name, count, otherwise = null) {
  const value = Array.isArray(selection[name]) ? selection[name][0] : selection[name];
  return Number.isInteger(value) && value >= 0 && value < count ? value : otherwise;
}

/** A value of the selection as indices below `count`, in order; "all" is every one. */
function selectedIndices(name, count, otherwise) {
  if (selection[name] === "all") return range(count);
  const list = [selection[name]].flat().filter((value) => Number.isInteger(value) && value >= 0 && value < count);
  return list.length ? [...new Set(list)].sort((a, b) => a - b) : [otherwise];
}

/** A value of the selection, if it is one of the allowed ones; otherwise the first of them. */
function selectedOption(name, allowed) {
  return allowed.includes(selection[name]) ? selection[name] : allowed[0];
}

// --- the address

const written = (value) => (value === null || value === undefined ? "" : encodeURIComponent([value].flat().join(",")).replaceAll("%2C", ","));

/** The part of the address after its last #, with the #. */
function address() {
  const names = Object.keys(selection).sort((a, b) => (b === "view") - (a === "view") || (a < b ? -1 : 1));
  return `#${names.map((name) => `${name}=${written(selection[name])}`).join("&")}`;
}

function readAddress(hash) {
  const found = {};
  for (const part of hash.replace(/^#/, "").split("&").slice(0, 60)) {
    const [name, value] = part.split("=", 2);
    if (!SELECTABLE.test(name) || !value || value.length > 2000) continue;
    try {
      const text = decodeURIComponent(value);
      if (/^-?\d{1,9}$/.test(text)) found[name] = Number(text);
      else if (/^\d{1,9}(,\d{1,9})+$/.test(text)) found[name] = text.split(",").map(Number);
      else found[name] = text;
    } catch {
      // A value that is not encoded as addresses are is no choice.
    }
  }
  return found;
}

// Quick choices are one step back, and a browser allows few steps in a second.
let writing = 0;
function writeAddress() {
  clearTimeout(writing);
  try {
    if (address() !== location.hash) history.pushState(null, "", address());
  } catch {
    // A frame of a notebook has no address of its own.
  }
}

/** Take the selection of the address; the names that it lacks get `defaults`. */
function takeAddress(defaults) {
  clearTimeout(writing);
  const found = { ...defaults, ...readAddress(location.hash) };
  for (const name of Object.keys(selection)) delete selection[name];
  for (const [name, value] of Object.entries(found)) if (value !== null && value !== undefined) selection[name] = value;
}
