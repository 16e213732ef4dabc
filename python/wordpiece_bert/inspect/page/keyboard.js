// Keys. A group of elements is one stop of the tab key; arrows, Home and End move in it.

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

/**
 * Move the focus among elements, `columns` in a row, with the arrow keys, Home and End. With `choose`, moving chooses,
 * as in radio groups and tabs.
 */
function arrows(elements, columns = 1, choose = false) {
  elements.forEach((element, index) => {
    element.tabIndex = index === 0 ? 0 : -1;
    element.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      let next = index;
      if (event.key in STEPS) next = index + STEPS[event.key][0] * columns + STEPS[event.key][1];
      else if (event.key === "Home") next = 0;
      else if (event.key === "End") next = elements.length - 1;
      else return;
      event.preventDefault();
      next = clamp(next, 0, elements.length - 1);
      focusOne(elements, next);
      if (choose && next !== index) elements[next].click();
    });
    element.addEventListener("focus", () => stopAt(elements, index));
  });
}

/** Make one element of a group the stop of the tab key. */
function stopAt(elements, index) {
  for (const one of elements) if (one.tabIndex === 0) one.tabIndex = -1;
  if (elements[index]) elements[index].tabIndex = 0;
}

function focusOne(elements, index) {
  stopAt(elements, index);
  elements[index].focus();
}

/**
 * Let the arrow keys move a place [row, column] in a canvas of cells: `place` returns the current one, `move` takes the
 * next. Home and End go to the ends of the row, Page Up and Page Down ten rows; other keys go to `keys` by name.
 */
function cellKeys(canvas, size, place, move, keys = {}) {
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const [rows, columns] = size();
    let [row, column] = place();
    if (event.key in STEPS) [row, column] = [row + STEPS[event.key][0], column + STEPS[event.key][1]];
    else if (event.key === "Home") column = 0;
    else if (event.key === "End") column = columns - 1;
    else if (event.key === "PageDown") row += 10;
    else if (event.key === "PageUp") row -= 10;
    else if (event.key in keys) {
      event.preventDefault();
      return keys[event.key]();
    } else return undefined;
    event.preventDefault();
    return move(clamp(row, 0, rows - 1), clamp(column, 0, columns - 1));
  });
}
