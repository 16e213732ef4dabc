// Take away: what is shown as SVG, PNG, CSV or JSON, saved or copied; the link; all tabs on paper.
//
// CSV and JSON have the rows of `view.csv()`, an array of rows of texts and numbers, the heading first.

const TYPES = { svg: "image/svg+xml", png: "image/png", csv: "text/csv", json: "application/json" };

/** A cell of CSV, quoted where it must be. A text that a spreadsheet would compute is kept from that by a space. */
function csvCell(value) {
  const text = typeof value === "number" ? String(value) : String(value ?? "");
  const safe = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? ` ${text}` : text;
  return /[",\n\r;]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** What a view shows, in one of the formats. */
async function taken(view, format) {
  const text = shownText(view);
  const title = [content.title, view.title, text].filter((one, i, all) => one && all.indexOf(one) === i).join(" · ");
  if (format === "svg" || format === "png") {
    const svg = svgOf(view.element, title);
    return format === "svg" ? new Blob([svg], { type: TYPES.svg }) : pngOf(svg);
  }
  const rows = await view.csv();
  if (format === "csv") return new Blob(["\ufeff", rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("")], { type: TYPES.csv });
  const [columns, ...values] = rows;
  const shown = { title, kind: view.kind, ...(text ? { text } : {}), selection: { ...selection }, columns, rows: values };
  return new Blob([`${JSON.stringify(shown, null, 1)}\n`], { type: TYPES.json });
}

function save(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function copy(blob) {
  if (blob.type === TYPES.png) {
    // Pages that came over plain HTTP and some frames have no clipboard for pictures.
    if (!navigator.clipboard?.write || typeof ClipboardItem === "undefined") {
      throw new Error("the browser lets this page copy no pictures; save it instead");
    }
    await navigator.clipboard.write([new ClipboardItem({ [TYPES.png]: blob })]);
    return;
  }
  const text = (await blob.text()).replace(/^\ufeff/, "");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages of old browsers and frames have no clipboard but this one.
    const area = make("textarea", { class: "visually-hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    if (!isCopied) throw new Error("the browser does not allow it");
  }
}

/**
 * The menu; `current` gives the view that is shown, `settled` the same when it shows the selection, `printAll` prints every
 * tab.
 */
function takeMenu(current, settled, printAll) {
  const done = make("p", { class: "soft small", role: "status" });
  const run = (what, action) => async () => {
    try {
      done.textContent = (await action()) ?? what;
    } catch (error) {
      done.textContent = `Not done: ${error.message}`;
    }
  };
  const button = (text, label, action) => make("button", { type: "button", "aria-label": label, onclick: action }, text);
  const row = (format, name) => {
    const file = () => `${current().name}.${format}`;
    const blob = async () => taken(await settled(), format);
    const saved = run(`Saved as ${name}.`, async () => save(format === "json" ? "view.json" : file(), await blob()));
    const copied = run(`${name} is in the clipboard.`, async () => copy(await blob()));
    const buttons = [button("Save", `Save as ${name}`, saved), button("Copy", `Copy as ${name}`, copied)];
    return make("div", { class: "take-row", "data-format": format }, make("span", {}, name), buttons);
  };
  const link = run("The link is in the clipboard.", async () => {
    writeAddress();
    const isFile = /^(https?|file):/.test(location.href);
    const text = (isFile ? location.href.replace(/#.*/, "") : "") + address();
    await copy(new Blob([text], { type: "text/plain" }));
    // A frame of a notebook, about:srcdoc, is nowhere to be found.
    return isFile ? null : "This frame has no address: the end of a link to the saved page is in the clipboard.";
  });
  const rows = [row("svg", "SVG"), row("png", "PNG"), row("csv", "CSV"), row("json", "JSON")];
  const menu = make(
    "details",
    { class: "take" },
    make("summary", { title: "Save or copy what is shown" }, "Take away"),
    make("div", { class: "card" }, rows,
      make("div", { class: "take-row" }, make("span", {}, "Link to this state"), button("Copy", "Copy link", link)),
      make("div", { class: "take-row" }, make("span", {}, "All tabs"), button("Print", "Print all tabs", printAll)),
      done),
  );
  menu.addEventListener("toggle", () => {
    done.textContent = "";
    for (const one of rows.slice(2)) one.classList.toggle("hidden", !current().csv);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.firstChild.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  return menu;
}
