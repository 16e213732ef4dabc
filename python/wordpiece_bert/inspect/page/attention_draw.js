// Lines from query tokens to key tokens. The canvas is as high as what is seen of it, so any number of tokens is smooth.

const ROW = 24;
/** With no token chosen, a line needs this share of its scale's largest weight, and no more lines than this are drawn. */
const FAINTEST = { row: 0.35, matrix: 0.1 };
const MOST_LINES = 3000;

function attentionLines(tokens, isSpecial, choose) {
  const label = "Lines from query tokens on the left to key tokens on the right; the paragraph of tokens has the same values";
  const canvas = make("canvas", { role: "img", "aria-label": label });
  const spacer = make("div", { style: { height: "0px" } });
  const keys = "Lines: up and down choose a token, left and right its side";
  const element = make("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": keys }, canvas, spacer);
  const part = make("p", { class: "paper soft small" }); // paper does not scroll
  const total = tokens.length * ROW + 16;
  const height = Math.min(total, 560);
  element.style.height = `${height + 2}px`;
  spacer.style.height = `${Math.max(0, total - height)}px`;
  let shown = null;

  function geometry() {
    const width = canvas.clientWidth || 400;
    const column = clamp(width * 0.3, 70, 160);
    return { width, left: column, right: width - column };
  }

  let scrolled = 0; // asked for after other elements have changed, it would make the browser lay out the page
  const centre = (index) => 8 + index * ROW + ROW / 2 - scrolled;

  const draw = once(() => {
    if (!shown || !element.isConnected || !element.clientWidth) return;
    scrolled = element.scrollTop; // 0 again, if its tab was left
    drawOn(canvas, height, (context, width) => {
      const { left, right } = geometry();
      context.clearRect(0, 0, width, height);
      drawLines(context, left, right);
      drawTokens(context, left, right, width);
    });
    const last = Math.min(tokens.length, Math.floor((scrolled + height - 8) / ROW)) - 1;
    const first = Math.max(0, Math.ceil((scrolled - 8) / ROW));
    part.textContent = total > height ? `Positions ${first} to ${last} of ${tokens.length} tokens.` : "";
  });

  function drawLines(context, left, right) {
    const { matrix, several, token, toward, passes, scaled, most } = shown;
    const accent = variable("--accent");
    const found = [];
    const add = (query, key, faintest) => {
      if (!passes(query, key)) return;
      for (const { matrix: one, colour } of several ?? [{ matrix, colour: accent }]) {
        const weight = one.at(query, key) / largest(query);
        if (weight >= faintest) found.push([Math.min(1, weight), query, key, colour]);
      }
    };
    const largest = (query) => (toward && token !== null ? shown.largest : scaled(matrix, query));
    if (token !== null) {
      for (let other = 0; other < tokens.length; other++) add(toward ? other : token, toward ? token : other, 0.004);
    } else {
      const first = Math.max(0, Math.floor(scrolled / ROW) - 2);
      const last = Math.min(tokens.length, first + Math.ceil(height / ROW) + 4);
      for (let i = first; i < last; i++) for (let j = 0; j < tokens.length; j++) add(i, j, most === null ? FAINTEST.row : FAINTEST.matrix);
    }
    found.sort((a, b) => a[0] - b[0]);
    for (const [weight, query, key, colour] of found.slice(-MOST_LINES)) {
      context.strokeStyle = colour;
      const [y1, y2, middle] = [centre(query), centre(key), (left + right) / 2];
      context.globalAlpha = Math.min(1, 0.1 + 0.9 * weight);
      context.lineWidth = 0.7 + 3.3 * weight;
      context.beginPath();
      context.moveTo(left + 6, y1);
      context.bezierCurveTo(middle, y1, middle, y2, right - 6, y2);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  function drawTokens(context, left, right, width) {
    const { matrix, token, toward, passes } = shown;
    const ink = variable("--ink");
    context.textBaseline = "middle";
    const weight = (index) => {
      const [query, key] = toward ? [index, token] : [token, index];
      return passes(query, key) ? Math.min(1, matrix.at(query, key) / shown.largest) : 0;
    };
    for (let i = Math.max(0, Math.floor(scrolled / ROW) - 1); i < tokens.length && centre(i) < height + ROW; i++) {
      const y = centre(i);
      for (const side of ["query", "key"]) {
        const chosenSide = toward ? "key" : "query";
        const x = side === "query" ? 0 : right;
        const room = side === "query" ? left : width - right;
        context.fillStyle = ink;
        if (token !== null && side !== chosenSide) {
          const share = Math.sqrt(weight(i));
          context.fillStyle = cssColour("sequential", share);
          context.fillRect(x, y - ROW / 2 + 1, room, ROW - 2);
          context.fillStyle = inkOn("sequential", share);
        }
        const strong = token === i && side === chosenSide;
        context.font = `${strong ? "700 " : isSpecial(i) ? "italic " : ""}13px ${MONOSPACE}`;
        context.textAlign = side === "query" ? "right" : "left";
        context.fillText(fitted(context, readable(tokens[i]), room - 12), side === "query" ? left - 6 : right + 6, y);
      }
    }
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top - 8 + scrolled) / ROW);
    const { left, right } = geometry();
    const x = event.clientX - box.left;
    return { index: index >= 0 && index < tokens.length ? index : null, side: x <= left ? "query" : x >= right ? "key" : null };
  };
  canvas.addEventListener("click", (event) => {
    const { index, side } = at(event);
    choose(index, index === null ? null : side);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { index, side } = at(event);
    if (!shown || index === null || side === null) return hideTip();
    const { matrix, token, toward } = shown;
    const value = token === null ? "" : `: ${digits(toward ? matrix.at(index, token) : matrix.at(token, index))}`;
    const other = token !== null && side === (toward ? "query" : "key");
    return showTip(event, `${isolated(readable(tokens[index]))} · position ${index}${other ? value : ""}`);
  });
  canvas.addEventListener("pointerleave", hideTip);
  element.addEventListener("scroll", () => {
    scrolled = element.scrollTop;
    draw();
  });
  element.addEventListener("keydown", (event) => {
    const { token, toward } = shown ?? {};
    const next = { ArrowDown: (token ?? -1) + 1, ArrowUp: (token ?? 1) - 1, Home: 0, End: tokens.length - 1 }[event.key];
    const side = { ArrowLeft: "query", ArrowRight: "key" }[event.key];
    if (next !== undefined) choose(clamp(next, 0, tokens.length - 1), toward ? "key" : "query");
    else if (side) choose(token ?? 0, side);
    else return;
    event.preventDefault();
  });
  onRedraw(element, draw);
  return {
    element: make("div", {}, element, part),
    set(values) {
      const moved = values.token !== null && values.token !== shown?.token;
      shown = values;
      const { matrix, token, toward, most } = values;
      // The weights beside the chosen token share one scale.
      const own = () => (toward ? largestOf(matrix.column(token), 0) : matrix.largestOf(token));
      shown.largest = most ?? (token === null ? 1 : own());
      shown.largest ||= 1;
      const y = values.token === null ? 0 : centre(values.token);
      if (moved && (y < 0 || y > height)) {
        element.scrollTop = values.token * ROW - height / 3;
        scrolled = element.scrollTop;
      }
      draw();
    },
  };
}
