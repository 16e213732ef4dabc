// Parts that several views share.

/** A row of buttons of which one is chosen. */
function segments(label, names, chosen, choose) {
  const buttons = names.map((name, index) =>
    make("button", { type: "button", role: "radio", onclick: () => set(index, true) }, String(name)),
  );
  function set(index, tell) {
    buttons.forEach((button, i) => setFlag(button, "aria-checked", i === index));
    stopAt(buttons, index);
    if (tell) choose(index);
  }
  arrows(buttons, 1, true);
  set(chosen, false);
  const group = make("span", { class: "segments", role: "radiogroup", "aria-label": label }, buttons);
  return { element: make("span", { class: "choice" }, label, group), set };
}

/** A list to choose from; its `set` shows a choice. */
function choice(label, options, choose) {
  const select = make(
    "select",
    { "aria-label": label, onchange: () => choose(select.value) },
    options.map(([value, name]) => make("option", { value, dir: "auto" }, name)),
  );
  return make("label", {}, label, select);
}

/** Controls that are rarely needed, behind a line that shows them. */
function folded(label, ...controls) {
  const inside = make("div", { class: "controls" }, controls);
  return make("details", { class: "more" }, make("summary", { class: "small soft" }, label), inside);
}

/** A box to tick. */
function tick(label, choose) {
  const box = make("input", { type: "checkbox", onchange: () => choose(box.checked) });
  return make("label", {}, box, label);
}

/** Tokens as a paragraph of buttons, in the direction of their writing; `shade` colours them by values. */
function strip(tokens, label, choose, special = () => false) {
  const buttons = tokens.map((token, index) =>
    make(
      "button",
      {
        type: "button",
        class: special(index) ? "token special" : "token",
        "aria-label": `${token}, position ${index}`,
        dir: "auto",
        "aria-pressed": "false",
        onclick: () => choose(index),
        onpointerleave: hideTip,
      },
      readable(token),
    ),
  );
  arrows(buttons);
  const named = tokens.map((token) => isolated(readable(token)));
  let tips = (index) => `${named[index]} · position ${index}`;
  buttons.forEach((button, index) => button.addEventListener("pointermove", (event) => showTip(event, tips(index))));
  return {
    element: make("div", { class: "strip", role: "group", "aria-label": label, dir: directionOf(tokens) }, buttons),
    buttons,
    press: (index) => pressOne(buttons, index),
    shade(name, values, text) {
      tips = (index) => `${named[index]} · ${text(index)}`;
      buttons.forEach((button, index) => shade(button, name, values[index]));
    },
  };
}

/**
 * Tokens, or plain names, with bars and numbers; negative values go to the left of a middle line. An entry with `choose`
 * is a button, and `place` is the position of a token that occurs several times.
 */
function bars(entries, most, { signed = false, plain = false } = {}) {
  const rows = entries.map(({ name, value, colour, place, choose, isChosen }) => {
    // A negative value has a bar only where bars go both ways: elsewhere it would look like a positive one.
    const width = `${(100 * (signed ? Math.abs(value) / 2 : Math.max(value, 0))) / (most || 1)}%`;
    const bar = make("div", { class: "bar", style: { width, backgroundColor: colour ?? "" } });
    if (signed) {
      bar.style[value < 0 ? "right" : "left"] = "50%";
      bar.style.backgroundColor = cssColour("diverging", value < 0 ? -0.62 : 0.62);
    }
    return [
      barName({ class: plain ? "name" : "token", title: name, dir: "auto" }, plain ? name : placedName(name, place), choose, isChosen),
      signed ? make("div", { class: "pivot" }, make("div", { class: "axis" }), bar) : bar,
      make("span", { class: "number" }, digits(value)),
    ];
  });
  return make("div", { class: "bars" }, rows.flat());
}

function barName(attributes, text, choose, isChosen) {
  if (!choose) return make("span", attributes, text);
  const pressed = isChosen === null ? {} : { "aria-pressed": String(Boolean(isChosen)) }; // null: the choice leads elsewhere
  return make("button", { type: "button", ...attributes, onclick: choose, ...pressed }, text);
}

/**
 * A heat map on a canvas: one cell for each value; `tell` gives the line beside the pointer. Its `element` has the canvas
 * and a frame around the cell that `mark` was called with.
 */
function heat(label, height = null, lasting = true) {
  const canvas = make("canvas", { class: "matrix", role: "img", "aria-label": label });
  const frame = make("div", { class: "frame hidden" });
  if (height) canvas.style.height = height;
  const element = make("div", { class: "heat" }, canvas, frame);
  const state = { element, canvas, rows: 0, columns: 0, tell: () => "", choose: () => {} };
  const cell = (event) => {
    const box = canvas.getBoundingClientRect();
    const i = clamp(Math.floor(((event.clientY - box.top) / box.height) * state.rows), 0, state.rows - 1);
    const j = clamp(Math.floor(((event.clientX - box.left) / box.width) * state.columns), 0, state.columns - 1);
    return [i, j];
  };
  canvas.addEventListener("pointermove", (event) => state.rows && showTip(event, state.tell(...cell(event))));
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => state.rows && state.choose(...cell(event))); // no cells, no choice
  state.set = (rows, columns, name, value, tell) => {
    Object.assign(state, { rows, columns, tell });
    state.draw = () => paint(canvas, rows, columns, name, value);
    state.draw();
  };
  if (lasting) onRedraw(canvas, () => state.draw?.());
  state.mark = (i, j) => {
    const { rows, columns } = state;
    frame.classList.toggle("hidden", !(i >= 0 && i < rows && j >= 0 && j < columns));
    const parts = { left: j / columns, top: i / rows, width: 1 / columns, height: 1 / rows };
    for (const [side, share] of Object.entries(parts)) frame.style[side] = `${100 * share}%`;
  };
  /** Let the arrow keys choose cells; the function `place` gives the chosen one. */
  state.keyed = (place) => {
    cellKeys(canvas, () => [state.rows, state.columns], place, (i, j) => {
      state.choose(i, j);
      announce(state.tell(i, j));
    });
  };
  return state;
}

/**
 * A table: heads, then rows of cells, each a text, a number or an element. Numbers, and elements of the class "number",
 * stand at the right; so does the head of a column that has nothing else. Of columns for tokens `dir` is the direction.
 */
function table(heads, rows, className = "", dir = null) {
  const isNumber = (value) => typeof value === "number" || (value instanceof Element && value.classList.contains("number"));
  const isNothing = (value) => ["", "–", null, undefined].includes(value);
  const cell = (value, atRight) => {
    if (value instanceof HTMLTableCellElement) return value;
    return make("td", { class: atRight ? "number" : null }, typeof value === "number" ? String(value) : value ?? "");
  };
  const isRight = heads.map((_, i) => rows.some((row) => isNumber(row[i])) && rows.every((row) => isNumber(row[i]) || isNothing(row[i])));
  return make(
    "table",
    { class: className, dir },
    make("thead", {}, make("tr", {}, heads.map((head, i) => make("th", { scope: "col", class: isRight[i] ? "number" : null }, make("bdi", {}, head))))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((value, i) => cell(value, isRight[i] || isNumber(value)))))),
  );
}

const MONOSPACE = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** A text cut to a width, with an ellipsis. */
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const characters = graphemes(text).slice(0, 60);
  let end = characters.length;
  while (end > 1 && context.measureText(`${characters.slice(0, end).join("")}…`).width > room) end--;
  return `${characters.slice(0, end).join("")}…`;
}
