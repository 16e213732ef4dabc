// The page: a title, a tab for each view, the theme. A view is built when its tab is first opened.

/** A view of a kind without a script: its picture. */
function pictured(view) {
  const source = `data:image/svg+xml,${encodeURIComponent(view.picture)}`;
  const image = make("img", { src: source, alt: view.title, style: { maxWidth: "100%", background: "#fff" } });
  view.element = make("section", { class: "card" }, image);
  view.start = () => {};
}

/** The views of the content, each with the name that it has in the address: its kind, "kind.2" for the second of a kind … */
function allViews() {
  const seen = {};
  return content.views.map((view) => {
    seen[view.kind] = (seen[view.kind] ?? 0) + 1;
    const name = seen[view.kind] === 1 ? view.kind : `${view.kind}.${seen[view.kind]}`;
    const arrays = Object.fromEntries(Object.entries(view.arrays).map(([key, spec]) => [key, new PackedArray(spec)]));
    return { ...view, name, arrays };
  });
}

/** The names of the tabs, all of them different. */
function tabNames(views) {
  const kinds = views.map((view) => view.kind);
  const titles = views.map((view) => (kinds.filter((kind) => kind === view.kind).length > 1 ? view.title : view.label));
  return titles.map((title, i) => {
    const before = titles.slice(0, i).filter((one) => one === title).length;
    return before ? `${title} ${before + 1}` : title;
  });
}

/** Unpack the data of a view and build it: once. */
function prepared(view) {
  view.prepared ??= (async () => {
    if (view.data.packed !== undefined) {
      const bytes = await inflate(fromBase85(document.getElementById(`b${view.data.packed}`).textContent, view.data.length));
      view.data = JSON.parse(new TextDecoder().decode(bytes));
    }
    (builders[view.kind] ?? pictured)(view);
    if (view.data.truncated) {
      view.element.prepend(make("p", { class: "note wide" }, "The text is longer than the model reads: its end was cut."));
    }
  })();
  return view.prepared;
}

/** Read the numbers of a view: once. */
function started(view) {
  view.ready ??= Promise.resolve(view.start()).then(() => view.element.setAttribute("data-ready", ""));
  return view.ready;
}

/** The theme of the system, until the reader chooses one. Returns what chooses the other. */
function themeOfSystem() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let isChosen = false;
  const follow = () => isChosen || setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();
  return () => {
    isChosen = true;
    setTheme(theme() === "dark" ? "light" : "dark");
  };
}

function openPage() {
  const changeTheme = themeOfSystem();
  const views = allViews();
  defaults = Object.assign({}, ...views.map((view) => view.focus ?? {}).reverse());
  takeAddress();
  const toggle = make("button", { type: "button", onclick: changeTheme, "aria-label": "Change between light and dark" }, "◐");
  const current = () => views.find((view) => view.name === selection.view) ?? views[0];
  const menu = takeMenu(current, settled, printAll);
  const header = make("header", { class: "top" }, make("h1", { dir: "auto" }, content.title), menu, toggle);
  const panel = make("main", { id: "panel", role: "tabpanel", "aria-live": "off" });
  const names = tabNames(views);
  const tabs = views.map((view, index) => {
    const open = () => select({ view: view.name });
    return make("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", onclick: open }, names[index]);
  });
  const nav = make("nav", { class: views.length > 1 ? "tabs" : "hidden", role: "tablist", "aria-label": "Views" }, tabs);
  arrows(tabs, 1, true);
  let shown = null;

  const begin = turns();
  /** Show the view and the choices of the selection; `data-shown` then says which. */
  async function show() {
    const isLast = begin();
    const view = current();
    const index = views.indexOf(view);
    if (!view.element) await prepared(view);
    if (!isLast()) return;
    if (shown !== view) {
      shown = view;
      hideTip();
      tabs.forEach((tab, i) => tab.setAttribute("aria-selected", String(i === index)));
      stopAt(tabs, index);
      panel.setAttribute("aria-labelledby", `tab-${index}`);
      const hasTitle = view.title !== names[index] && views.length > 1;
      panel.replaceChildren(...(hasTitle ? [make("p", { class: "intro soft", dir: "auto" }, view.title)] : []), view.element);
      panel.dataset.view = view.kind;
      if (view.ready) redraw();
    }
    if (!view.element.hasAttribute("data-ready")) await started(view);
    if (!isLast()) return;
    await view.follow?.();
    if (isLast()) panel.dataset.shown = address();
  }

  let showing = null;
  function follow() {
    unstack();
    showing = show();
  }
  /** The current view, when it shows the selection. */
  async function settled() {
    for (let last = null; last !== showing; ) {
      last = showing;
      await last;
    }
    return current();
  }

  // --- paper: light, whatever the theme; all tabs, or the one that is shown

  let before = null; // the theme, while the page is on paper
  let isStacked = false;
  function beginPaper() {
    before ??= theme();
    if (theme() !== "light") setTheme("light");
    drawNow();
  }
  function endPaper() {
    if (before && before !== theme()) setTheme(before);
    before = null;
  }
  function unstack() {
    if (!isStacked) return;
    isStacked = false;
    document.documentElement.classList.remove("printing");
    endPaper();
  }
  function endPrinting() {
    if (isStacked) follow();
  }
  addEventListener("beforeprint", beginPaper);
  addEventListener("afterprint", () => {
    endPaper();
    endPrinting();
  });

  /** Print every tab, one below the other. */
  async function printAll() {
    const all = [];
    for (const view of views) {
      if (!view.element) await prepared(view);
      all.push(make("section", { class: "printed" }, make("h2", { dir: "auto" }, view.title), view.element));
    }
    begin(); // a choice that is still being shown comes too late
    shown = null;
    isStacked = true;
    panel.replaceChildren(...all);
    for (const view of views) {
      await started(view);
      await view.follow?.();
    }
    beginPaper();
    await redraw();
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    if (!isStacked) return;
    document.documentElement.classList.add("printing");
    let isPrinted = false;
    addEventListener("beforeprint", () => (isPrinted = true), { once: true });
    print();
    // Where printing is not allowed, nothing happens, and nothing says so.
    setTimeout(() => isPrinted || endPrinting(), 1000);
  }

  document.getElementById("app").append(header, nav, panel, announcer, tip);
  onSelect(follow);
  addEventListener("hashchange", () => {
    takeAddress();
    follow();
  });
  let width = 0;
  const resized = once(() => {
    if (panel.clientWidth === width) return; // a choice may change the height
    width = panel.clientWidth;
    redraw();
  });
  new ResizeObserver(resized).observe(panel);
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hideTip();
    endPrinting();
  });
  follow();
}

openPage();
