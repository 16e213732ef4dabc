// Two rows of tokens, one above the other: groups of tokens that belong together.

/** What a group is: "same", "other" (other tokens) or "alone" (only one row has it). */
function groupKind([left, right], [first, second]) {
  if (!left.length || !right.length) return "alone";
  const text = (tokens, places) => places.map((place) => tokens[place]).join(" ");
  return text(first, left) === text(second, right) ? "same" : "other";
}

/** Groups as buttons: `choose` is called with the number of a group, `tell` gives the line beside the pointer. */
function aligned(groups, tokens, label, choose, tell) {
  const text = (side, places) => places.map((place) => readable(tokens[side][place])).join(" ");
  const buttons = groups.map((group, number) => {
    const [above, below] = group.map((places, side) => text(side, places));
    const kind = groupKind(group, tokens);
    const says = kind === "same" ? above : `${above || "nothing"} beside ${below || "nothing"}`;
    return make(
      "button",
      {
        type: "button", class: `pair ${kind}`, "data-group": String(number), "aria-label": says, "aria-pressed": "false",
        onclick: () => choose(number), onpointermove: (event) => showTip(event, tell(number)), onpointerleave: hideTip,
      },
      make("bdi", { class: "token" }, above || "–"),
      make("bdi", { class: "token" }, below || "–"),
    );
  });
  arrows(buttons);
  const dir = directionOf(tokens.flat());
  return { element: make("div", { class: "aligned", role: "group", "aria-label": label, dir }, buttons), buttons };
}

/** What the colours of groups mean. */
function alignedLegend() {
  const key = (kind, name) => make("span", {}, make("span", { class: `swatch pair ${kind}` }), name);
  const keys = [key("same", "the same tokens"), key("other", "other tokens"), key("alone", "in one of them only")];
  return make("div", { class: "legend" }, keys);
}
