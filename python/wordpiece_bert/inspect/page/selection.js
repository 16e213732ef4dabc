// One selection for all tabs: what is looked at, kept in the address (#view=attention&layer=3&head=7&token=5).
//
//   selection.layer             a value: a number, a text, an array of numbers (several heads), or undefined
//   select({ layer: 3 })        change some values; null takes one away. The view that is shown follows
//   selectedIndex("layer", 6, 0)              the value as an index below 6, or 0 if it is none
//   selectedIndices, selectedOption           the same of several values, and of a list of texts
//   selectedState(7)            the hidden state that the chosen layer makes, of 7
//   onSelect(listener)          call a listener after every change
//
// All tabs share the names text (one of those that the views are about, `content.texts`), layer (of attention: layer n
// makes hidden state n + 1), head, token (a position in the text; the query of a pair), pair (the position of the key) and
// point (a row of a table or a map). What one tab alone has, begins with its name in the address, `view.name`:
// "attention.show", and "map.2.group" of the second map. Values out of range are kept, because another tab may have them,
// but show a default.
//
// A view sets
//   view.element   what it looks like, before numbers are there
//   view.start     (may be async) read numbers; called once
//   view.follow    (may be async) show the selection; called after start, after every change, and when its tab is opened
//   view.csv       (may be async) the numbers that are shown now, an array of rows, the heading first: take.js writes it
// and keeps no choice anywhere else: what is shown is a function of its numbers and of the selection.

const selection = Object.create(null);
const SELECTABLE = /^[a-z][a-z0-9._]{0,60}$/;
const listeners = new Set();
/** What is chosen where the address says nothing. */
let defaults = {};

function onSelect(listener) {
  listeners.add(listener);
}

/**
 * Change values of the selection. A change is one step back; of those that `goOn`, as typing does, only the first one of a
 * row is.
 */
function select(changes, goOn = false) {
  let isChanged = false;
  for (const [name, given] of Object.entries(changes)) {
    // What has a default says "none", or the default would come back with a reload.
    const value = (given === null || given === undefined) && name in defaults ? "none" : given;
    if (written(value) === written(selection[name])) continue;
    isChanged = true;
    if (value === null || value === undefined) delete selection[name];
    else selection[name] = value;
  }
  if (!isChanged) return;
  clearTimeout(writing.timer);
  writing.isStep ||= !(goOn && writing.goesOn);
  writing.goesOn = goOn;
  writing.timer = setTimeout(writeAddress, 200);
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

/** The number of the text that a view shows: the chosen one if it is about that, otherwise its first; none if it has none. */
const textOf = (view) => (view.texts.includes(selection.text) ? selection.text : view.texts[0]);

/** The choice of a row of a table or a map, and of its text, if other tabs are about it. */
const rowChoice = (view, row) => (view.rows?.[row] === undefined ? { point: row } : { point: row, text: view.rows[row] });

/** The choice of a text, and of its row in a table or a map, if there is one. */
function textChoice(views, text) {
  const row = views.flatMap((view) => Object.keys(view.rows ?? {}).filter((one) => view.rows[one] === text))[0];
  return row === undefined ? { text } : { text, point: Number(row) };
}

/** Layer n makes hidden state n + 1; before all of them are the embeddings, state 0 of layer −1. */
const stateOf = (layer) => layer + 1;
const layerOf = (state) => state - 1;

/** The hidden state that the chosen layer makes, below `count`; the last if no layer is chosen. */
function selectedState(count) {
  return Number.isInteger(selection.layer) ? clamp(stateOf(selection.layer), 0, count - 1) : count - 1;
}

// --- the address

const written = (value) => encodeURIComponent([value ?? ""].flat().join(",")).replaceAll("%2C", ",");

/** The part of the address after its last #, with the #. */
function address() {
  const names = Object.keys(selection).sort((a, b) => (b === "view") - (a === "view") || (a < b ? -1 : 1));
  return `#${names.map((name) => `${name}=${written(selection[name])}`).join("&")}`;
}

/** Only what is a number as numbers are written is one: a search for 007 stays a text. */
const NUMBER = /^(0|-?[1-9]\d{0,8})$/;
function readAddress(hash) {
  const found = {};
  for (const part of hash.replace(/^#/, "").split("&").slice(0, 60)) {
    const [name, value] = part.split("=", 2);
    if (!SELECTABLE.test(name) || !value || value.length > 2000) continue;
    try {
      const text = decodeURIComponent(value);
      const parts = text.split(",");
      if (parts.every((one) => NUMBER.test(one))) found[name] = parts.length > 1 ? parts.map(Number) : Number(text);
      else found[name] = text;
    } catch {
      // A value that is not encoded as addresses are is no choice.
    }
  }
  return found;
}

// Quick choices are one step back, and a browser allows few steps in a second.
const writing = { timer: 0, isStep: false, goesOn: false };
function writeAddress() {
  clearTimeout(writing.timer);
  try {
    if (address() !== location.hash) history[writing.isStep ? "pushState" : "replaceState"](null, "", address());
  } catch {
    // A frame of a notebook has no address of its own.
  }
  writing.isStep = false;
}

/** Take the selection of the address; the names that it lacks get their defaults. */
function takeAddress() {
  clearTimeout(writing.timer);
  Object.assign(writing, { isStep: false, goesOn: false });
  const found = { ...defaults, ...readAddress(location.hash) };
  for (const name of Object.keys(selection)) delete selection[name];
  for (const [name, value] of Object.entries(found)) if (value !== null && value !== undefined) selection[name] = value;
}
