// Keys. A group of elements is one stop of the tab key; arrows, Home and End move in it.

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

/** What an arrow key means in an element: in a row from right to left, the arrow to the left goes on. */
function stepOf(event, element) {
  const [down, right] = STEPS[event.key];
  return [down, getComputedStyle(element).direction === "rtl" ? -right : right];
}

/**
 * Move the focus among elements, `columns` in a row, with the arrow keys, Home and End; a place of the grid may be empty
 * (null). With `choose`, moving chooses, as in radio groups and tabs.
 */
function arrows(elements, columns = 1, choose = false) {
  const places = range(elements.length).filter((index) => elements[index]);
  for (const index of places) {
    const element = elements[index];
    element.tabIndex = index === places[0] ? 0 : -1;
    element.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      let next = index;
      if (event.key in STEPS) {
        const [down, right] = stepOf(event, element.parentElement);
        const step = down * columns + right;
        do {
          next += step;
        } while (next >= 0 && next < elements.length && !elements[next]);
        if (!elements[next]) next = index;
      } else if (event.key === "Home") next = places[0];
      else if (event.key === "End") next = places.at(-1);
      else return;
      event.preventDefault();
      stopAt(elements, next);
      elements[next].focus();
      if (choose && next !== index) elements[next].click();
    });
    element.addEventListener("focus", () => stopAt(elements, index));
  }
}

/** Make one element of a group the stop of the tab key. */
function stopAt(elements, index) {
  if (!elements[index]) return;
  for (const one of elements) if (one?.tabIndex === 0) one.tabIndex = -1;
  elements[index].tabIndex = 0;
}

/** Show which one of a group of buttons is chosen: it is pressed, and the stop of the tab key. Of −1, none is. */
function pressOne(buttons, index) {
  buttons.forEach((button, i) => button && setFlag(button, "aria-pressed", i === index));
  stopAt(buttons, index);
}

/** Replace what is in an element; if one of its buttons has the focus, the button at the same place has it then. */
function refill(element, ...children) {
  const place = [...element.querySelectorAll("button")].indexOf(document.activeElement);
  element.replaceChildren(...children);
  if (place < 0) return;
  const buttons = [...element.querySelectorAll("button")];
  buttons[Math.min(place, buttons.length - 1)]?.focus({ preventScroll: true });
}

/**
 * Let the arrow keys move a place [row, column] in a canvas of cells: `place` returns the current one, `move` takes the
 * next. Home and End go to the ends of the row, Page Up and Page Down ten rows; other keys go to `keys` by name.
 */
function cellKeys(canvas, size, place, move, keys = {}) {
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application"); // or screen readers keep the arrow keys
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const [rows, columns] = size();
    if (!rows || !columns) return; // its numbers have not arrived
    let [row, column] = place();
    if (event.key in STEPS) [row, column] = [row + STEPS[event.key][0], column + STEPS[event.key][1]];
    else if (event.key === "Home") column = 0;
    else if (event.key === "End") column = columns - 1;
    else if (event.key === "PageDown") row += 10;
    else if (event.key === "PageUp") row -= 10;
    else if (event.key in keys) {
      event.preventDefault();
      keys[event.key]();
      return;
    } else return;
    event.preventDefault();
    move(clamp(row, 0, rows - 1), clamp(column, 0, columns - 1));
  });
}
