// Tokens: how a text became ids, in one tokenizer or in two.

const STEP_NAMES = {
  removed: "removed by the clean-up", space: "became a space", "set apart": "set apart as an ideograph",
  accent: "lost its accent", "accent removed": "removed as an accent", "lower case": "became lower case",
};

builders.tokens = (view) => {
  const { texts, tokenizers } = view.data;
  const followers = [];
  view.element = make(
    "div",
    { class: tokenizers.length > 1 ? "grid even" : "grid" },
    tokenizers.map((entry, number) => {
      const wordOf = (text) => `${view.name}.word${2 * number + text}`;
      return tokenizerCard(entry, texts, tokenizers.length > 1, wordOf, followers);
    }),
  );
  view.start = () => {};
  view.follow = () => followers.forEach((follow) => follow());
  view.csv = () => [
    ["tokenizer", "position", "token", "id", "text", "start", "end", "word", "segment", "mask"],
    ...tokenizers.flatMap((entry) => entry.tokens.map((token) => [
      entry.name, token.position, token.token, token.id, token.text === null ? "" : "AB"[token.text], token.start, token.end,
      token.word ?? "", token.segment, token.mask,
    ])),
  ];
  return view.element;
};

/** A tokenizer's card; `wordOf` gives the name in the selection of the chosen word of a text. */
function tokenizerCard(entry, texts, named, wordOf, followers) {
  const count = entry.tokens.length;
  const padding = entry.tokens.filter((token) => !token.mask).length;
  const facts = [counted(count, "token"), `vocabulary of ${entry.vocabulary.toLocaleString("en")}`];
  if (padding) facts.push(`${padding} padding`);
  if (entry.truncated) facts.push(`${entry.cut.length} cut`);
  const unknown = entry.tokens.filter((token) => token.unknown).length;
  if (unknown) facts.push(`${unknown} unknown`);
  const heading = make("h2", { dir: "auto" }, named ? entry.name : "From text to ids");
  const card = make("section", { class: "card" }, heading, make("p", { class: "soft small" }, facts.join(" · ")));
  const lit = linked(followers);
  let number = 0;
  const step = (title, note, ...parts) => {
    number += 1;
    const head = make("h3", {}, make("b", {}, String(number)), title);
    card.append(make("div", { class: "step" }, head, note ? make("p", { class: "soft small" }, note) : null, ...parts));
  };
  texts.forEach((text, index) => {
    const name = texts.length > 1 ? `Text ${"AB"[index]}` : "The text";
    step(name, highlightNote(entry, index), highlighted(entry, index, text, lit));
  });
  for (const [index, side] of entry.sides.entries()) {
    const suffix = entry.sides.length > 1 ? ` of text ${"AB"[index]}` : "";
    step(`Clean-up${suffix}`, settingsNote(entry.settings), changes(side));
    const note = "A text is split at white space and around punctuation. Each word becomes the longest pieces that the vocabulary " +
      `has, from its beginning to its end; pieces inside a word begin with ${entry.prefix}.`;
    step(`Words and pieces${suffix}`, note, pieces(side, entry, wordOf(index), followers));
  }
  const note = "With the special tokens that the model expects. Segment: which text; mask: 1 where the model looks.";
  step("Ids", note, chips(entry, lit, followers), idTable(entry));
  if (entry.agrees === false) {
    const differs = "These steps are an illustration and differ from the tokenizer's own answer for this text, which the ids above are.";
    card.append(make("p", { class: "note" }, differs));
  }
  return card;
}

/** Elements that belong to one token light up together. */
function linked(followers) {
  const groups = new Map();
  let last = null;
  followers.push(() => {
    const index = groups.has(selection.token) ? selection.token : null;
    if (index === last) return;
    for (const [one, on] of [[last, false], [index, true]]) {
      for (const element of groups.get(one) ?? []) {
        element.classList.toggle("selected", on);
        if (element.matches("button")) setFlag(element, "aria-pressed", on);
      }
    }
    last = index;
  });
  return (index, element) => {
    if (!groups.has(index)) groups.set(index, []);
    const group = groups.get(index);
    group.push(element);
    const light = (on) => () => group.forEach((one) => one.classList.toggle("lit", on));
    element.addEventListener("pointerenter", light(true));
    element.addEventListener("pointerleave", light(false));
    return element;
  };
}

function highlightNote(entry, index) {
  const removed = entry.sides[index]?.changes.some((change) => change.to.trim() === "" && change.from.trim() !== "");
  return [
    "Each colour is one token.",
    removed ? "Red and struck: removed." : "",
    entry.cut.some((token) => token.text === index) ? "Grey and struck: cut." : "",
    entry.tokens.some((token) => token.unknown && token.text === index) ? "Underlined in red: unknown." : "",
  ].join(" ");
}

/**
 * The text, coloured by token. What a reader sees as one character (a letter with its marks, an emoji of several) is
 * never divided: it has the colour of the first token that has a part of it.
 */
function highlighted(entry, index, text, lit) {
  const owner = ownersOf(entry, index, Array.from(text).length);
  const changed = new Map((entry.sides[index]?.changes ?? []).map((change) => [change.index, change]));
  const clusters = clustersOf(text, owner);
  const box = make("p", { class: "text", dir: "auto" });
  let last = null;
  let span = null;
  for (const { text: cluster, from, to, own } of clusters) {
    if (own !== last || span === null) {
      span = own ? pieceSpan(own, lit) : make("span");
      box.append(span);
      last = own;
    }
    const found = range(to - from).map((i) => changed.get(from + i)).filter(Boolean);
    span.append(found.length ? changedSpan(cluster, found, to - from) : cluster);
  }
  box.normalize(); // one text for each token, which SVG can draw joined
  return box;
}

/** For each code point of a text, the token that it is part of. */
function ownersOf(entry, index, count) {
  const owner = Array.from({ length: count }, () => null);
  let even = true;
  for (const [list, cut] of [[entry.tokens, false], [entry.cut, true]]) {
    for (const token of list) {
      if (token.text !== index) continue;
      even = !even;
      const own = { token, cut, even, isAlone: isAlone(list, token) };
      for (let i = token.start; i < token.end; i++) owner[i] ??= own;
    }
  }
  return owner;
}

/**
 * Whether a token is a whole word without letters from right to left. Its characters stay together in a text of such
 * letters; others must not be isolated, or letters would not be joined and pieces of a word change places.
 */
function isAlone(list, token) {
  if (RIGHT_TO_LEFT.test(token.token) || !/[\p{L}\p{N}]/u.test(token.token)) return false;
  return !list.some((other) => other !== token && other.text === token.text && other.word !== null && other.word === token.word);
}

/** What a reader sees as characters, each with its owner; one that was removed inside of a token belongs to it. */
function clustersOf(text, owner) {
  let at = 0;
  const clusters = graphemes(text).map((cluster) => {
    const from = at;
    at += Array.from(cluster).length;
    return { text: cluster, from, to: at, own: owner.slice(from, at).find(Boolean) ?? null };
  });
  // From the end: the owner of the next that has one; white space ends the search.
  const after = clusters.map(() => null);
  for (let i = clusters.length - 2; i >= 0; i--) {
    const next = clusters[i + 1];
    after[i] = next.own || next.text.trim() === "" ? next.own : after[i + 1];
  }
  clusters.forEach((cluster, i) => {
    const before = clusters[i - 1]?.own;
    if (!cluster.own && before && before === after[i]) cluster.own = before;
  });
  return clusters;
}

function pieceSpan(own, lit) {
  const { token } = own;
  const kind = own.cut ? "cut" : token.unknown ? "unknown" : own.even ? "even" : "odd";
  const span = make("span", { class: `piece ${kind}${own.isAlone ? " alone" : ""}` });
  const name = isolated(readable(token.token));
  const label = own.cut ? `${name} · cut` : `${name} · id ${token.id} · position ${token.position}`;
  span.addEventListener("pointermove", (event) => showTip(event, label));
  span.addEventListener("pointerleave", hideTip);
  if (own.cut) return span;
  span.addEventListener("click", () => select({ token: token.position }));
  return lit(token.position, span);
}

/** A character that the clean-up changed; struck if nothing of it is left, a dot if it cannot be seen. */
function changedSpan(cluster, found, count) {
  const isGone = found.length === count && found.every((change) => change.to.trim() === "") && cluster.trim() !== "";
  const said = (change) => `${change.name} (${change.code}): ${change.steps.map((name) => STEP_NAMES[name]).join(", ")}`;
  const title = found.map(said).join("\n");
  const isSeen = /[^\p{C}\p{Z}\p{M}]/u.test(cluster);
  if (isGone && !isSeen) return make("span", { class: "removed unseen", title, role: "img", "aria-label": title }, "·");
  return make("span", { class: isGone ? "removed" : "changed", title }, cluster);
}

/** A removed character: itself if it can be seen, otherwise its code. */
function visible(change) {
  return /[\p{C}\p{Z}\p{M}]/u.test(change.from) && change.from.trim() !== "" ? `[${change.code}]` : change.from;
}

function settingsNote(settings) {
  const says = [];
  if (settings.clean_text) says.push("control characters go, white space becomes a space");
  if (settings.tokenize_chinese_chars) says.push("ideographs are set apart");
  if (settings.strip_accents) says.push("accents go");
  if (settings.lowercase) says.push("letters become lower case");
  return says.length ? `In this tokenizer ${says.join("; ")}.` : "This tokenizer changes no character.";
}

function changes(side) {
  const counts = new Map();
  for (const change of side.changes) {
    const key = `${change.from}\u0000${change.steps}`;
    if (!counts.has(key)) counts.set(key, { ...change, count: 0 });
    counts.get(key).count += 1;
  }
  const result = make("p", { class: "mono small", dir: "auto" }, side.normalized.trim() === "" ? "∅" : side.normalized);
  if (!counts.size) return make("div", {}, make("p", { class: "soft small" }, "No character was changed."), result);
  const rows = [...counts.values()].map((change) => [
    make("span", { class: "mono" }, visible(change)), change.to === "" ? "∅" : make("span", { class: "mono" }, readable(change.to)),
    change.steps.map((name) => STEP_NAMES[name]).join(", "), `${change.name} (${change.code})`, change.count,
  ]);
  const summary = make("summary", { class: "small" }, `${counted(side.changes.length, "character")} ${side.changes.length === 1 ? "was" : "were"} changed or removed`);
  const built = table(["from", "to", "step", "character", "times"], rows);
  return make("div", {}, result, make("details", {}, summary, make("div", { class: "scroll" }, built)));
}

function pieces(side, entry, name, followers) {
  const detail = make("div", { class: "small", "aria-live": "polite" });
  const buttons = side.words.map((word, index) => {
    const parts = word.unknown ? [entry.unknown] : word.added ? [word.word] : word.pieces.map((piece) => piece.token);
    const kind = word.unknown ? "unknown" : word.added ? "special" : "";
    const small = make("small", {}, parts.flatMap((part, i) => [i ? " " : "", make("bdi", {}, readable(part))]));
    return chip(kind, { onclick: () => select({ [name]: index }) }, word.word, small);
  });
  arrows(buttons);
  const split = side.words.findIndex((word) => word.pieces.length > 1);
  let last = null;
  followers.push(() => {
    const index = selectedIndex(name, buttons.length, Math.max(split, 0));
    if (!buttons.length || last === index) return;
    pressOne(buttons, index);
    last = index;
    detail.replaceChildren(tried(side.words[index], entry));
  });
  const dir = directionOf(side.words.map((word) => word.word));
  const group = { role: "group", "aria-label": "Words: choose one to see what was tried", dir };
  return make("div", {}, make("div", { class: "chips scroll", ...group }, buttons), detail);
}

/** A token or a word as a button, with something small below it. */
function chip(kind, attributes, text, small) {
  const button = { type: "button", class: `chip ${kind}`, "aria-pressed": "false", ...attributes };
  return make("button", button, make("span", { class: "token", dir: "auto" }, readable(text)), small);
}

/** What the longest match tried for a word. */
function tried(word, entry) {
  const name = `“${isolated(word.word)}”`;
  if (word.added) return make("p", { class: "note" }, `${name} is a token of its own, found before the text is split.`);
  const characters = Array.from(word.word);
  const tryOf = (text) => make("span", {}, make("bdi", { class: "tried mono" }, readable(text)), " ");
  const lines = word.pieces.map((piece) => {
    const count = characters.length - piece.end;
    const candidate = (end) => (piece.start ? entry.prefix : "") + characters.slice(piece.start, end).join("");
    // Of a long list only the ends are made: the candidates together are as long as the word squared.
    const shown = range(count).filter((i) => count <= 24 || i < 4 || i >= count - 20);
    const list = shown.map((i) => tryOf(candidate(characters.length - i)));
    if (count > 24) list.splice(4, 0, `… ${count - 24} more … `);
    const found = piece.token === null ? make("b", {}, "nothing found") : make("bdi", { class: "mono found" }, readable(piece.token));
    return make("p", {}, ...list, found);
  });
  const why = word.unknown ? make("p", {}, `The word becomes ${entry.unknown}: ${word.unknown}.`) : null;
  return make("div", { class: "note" }, make("p", { class: "soft" }, `${name}: tried, longest first`), lines, why);
}

/** All tokens, and of padding the first few. */
function chips(entry, lit, followers) {
  const padding = entry.tokens.filter((token) => !token.mask);
  const hidden = new Set(padding.slice(3));
  const parts = [make("span", {}, `and ${hidden.size} more`), make("small", {}, "padding")];
  const more = hidden.size ? make("span", { class: "chip padding", dir: "ltr" }, parts) : null;
  const shown = entry.tokens.filter((token) => !hidden.has(token));
  const buttons = shown.map((token) => {
    const kind = !token.mask ? "padding" : token.special ? "special" : token.unknown ? "unknown" : `text${token.text ?? 0}`;
    const label = `${token.token}, id ${token.id}, position ${token.position}`;
    const attributes = { "aria-label": label, onclick: () => select({ token: token.position }) };
    return lit(token.position, chip(kind, attributes, token.token, make("small", { class: "number" }, String(token.id))));
  });
  arrows(buttons);
  followers.push(() => stopAt(buttons, shown.findIndex((token) => token.position === selection.token)));
  const dir = directionOf(shown.map((token) => token.token));
  const group = { role: "group", "aria-label": "Tokens and ids: choose one", dir };
  return make("div", { class: "chips scroll", ...group }, buttons, more);
}

function idTable(entry) {
  const rows = entry.tokens.map((token) => [
    token.position, make("span", { class: "token" }, readable(token.token)), token.id,
    token.text === null ? "–" : `${"AB"[token.text]} ${token.start}–${token.end}`,
    token.word === null ? "–" : token.word, token.segment, token.mask,
  ]);
  const whole = make("div", { class: "scroll" }, table(["position", "token", "id", "characters", "word", "segment", "mask"], rows));
  const summary = make("summary", { class: "small" }, "As a table: positions, characters, words, segments, masks");
  return make("details", { class: "step" }, summary, whole);
}
