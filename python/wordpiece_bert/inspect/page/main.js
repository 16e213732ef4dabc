// The page: a title, a tab for each view, the theme. A view is built when its tab is first opened.

/** A view of a kind without a script: its picture. */
function pictured(view) {
  const source = `data:image/svg+xml,${encodeURIComponent(view.picture)}`;
  view.element = make("section", { class: "card" }, make("img", { src: source, alt: view.title, style: { maxWidth: "100%", background: "#fff" } }));
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

/** Unpack the data of a view, build it and read its numbers: once. */
function prepared(view) {
  view.prepared ??= (async () => {
    if (view.data.packed !== undefined) {
      const bytes = await inflate(fromBase85(document.getElementById(`b${view.data.packed}`).textContent, view.data.length));
      view.data = JSON.parse(new TextDecoder().decode(bytes));
    }
    (builders[view.kind] ?? pictured)(view);
  })();
  return view.prepared;
}

function started(view) {
  view.ready ??= Promise.resolve(view.start()).then(() => view.element.setAttribute("data-ready", ""));
  return view.ready;
}

function begin() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  const views = allViews();
  const defaults = Object.assign({}, ...views.map((view) => view.focus ?? {}).reverse());
  takeAddress(defaults);
  const toggle = make("button", { type: "button", onclick: () => setTheme(theme() === "dark" ? "light" : "dark"), "aria-label": "Change between light and dark" }, "◐");
  const header = make("header", { class: "top" }, make("h1", { dir: "auto" }, content.title), takeMenu(() => current(), printAll), toggle);
  const panel = make("main", { id: "panel", role: "tabpanel", "aria-live": "off" });
  const kinds = views.map((view) => view.kind);
  const titles = views.map((view) => (kinds.filter((kind) => kind === view.kind).length > 1 ? view.title : view.label));
  const names = titles.map((title, i) => {
    const before = titles.slice(0, i).filter((one) => one === title).length;
    return before ? `${title} ${before + 1}` : title;
  });
  const tabs = views.map((view, index) =>
    make("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", onclick: () => select({ view: view.name }) }, names[index]),
  );
  const nav = make("nav", { class: views.length > 1 ? "tabs" : "hidden", role: "tablist", "aria-label": "Views" }, tabs);
  arrows(tabs, 1, true);

  const current = () => views.find((view) => view.name === selection.view) ?? views[0];
  let shown = null;

  const begin = turns();
  /** Show the view and the choices of the selection; `data-shown` then says which. */
  async function follow() {
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
      const title = view.title === names[index] || views.length === 1 ? null : make("p", { class: "intro soft", dir: "auto" }, view.title);
      panel.replaceChildren(...(title ? [title] : []), view.element);
      panel.dataset.view = view.kind;
      if (view.ready) for (const draw of redraws) draw();
    }
    if (!view.element.hasAttribute("data-ready")) await started(view);
    if (!isLast()) return;
    await view.follow?.();
    if (isLast()) panel.dataset.shown = address();
  }

  /** Print every tab, one below the other. */
  async function printAll() {
    const all = [];
    for (const view of views) {
      if (!view.element) await prepared(view);
      all.push(make("section", { class: "printed" }, make("h2", { dir: "auto" }, view.title), view.element));
    }
    shown = null;
    panel.replaceChildren(...all);
    for (const view of views) {
      await started(view);
      await view.follow?.();
    }
    await Promise.all([...redraws].map((draw) => draw()));
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    document.documentElement.classList.add("printing");
    addEventListener("afterprint", () => {
      document.documentElement.classList.remove("printing");
      follow();
    }, { once: true });
    print();
  }

  document.getElementById("app").append(header, nav, panel, announcer, tip);
  onSelect(follow);
  addEventListener("hashchange", () => {
    takeAddress(defaults);
    follow();
  });
  new ResizeObserver(once(() => redraws.forEach((draw) => draw()))).observe(panel);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });
  follow();
}

begin();
