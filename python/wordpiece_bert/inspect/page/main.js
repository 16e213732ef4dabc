// The page: a title, a tab for each view, the theme. A view is built when its tab is first opened.

/** A view of a kind without a script: its picture. */
function pictured(view) {
  const source = `data:image/svg+xml,${encodeURIComponent(view.picture)}`;
  view.element = make("section", { class: "card" }, make("img", { src: source, alt: view.title, style: { maxWidth: "100%", background: "#fff" } }));
  view.start = () => {};
}

function begin() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  const views = content.views.map((view) => ({
    ...view,
    arrays: Object.fromEntries(Object.entries(view.arrays).map(([name, spec]) => [name, new PackedArray(spec)])),
  }));
  const toggle = make("button", { type: "button", onclick: () => setTheme(theme() === "dark" ? "light" : "dark"), "aria-label": "Change between light and dark" }, "◐");
  const header = make("header", { class: "top" }, make("h1", {}, content.title), toggle);
  const panel = make("main", { id: "panel", role: "tabpanel", "aria-live": "off" });
  const kinds = views.map((view) => view.kind);
  const names = views.map((view) => (kinds.filter((kind) => kind === view.kind).length > 1 ? view.title : view.label));
  const tabs = views.map((view, index) =>
    make("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", onclick: () => open(index) }, names[index]),
  );
  const nav = make("nav", { class: views.length > 1 ? "tabs" : "hidden", role: "tablist", "aria-label": "Views" }, tabs);
  arrows(tabs);

  const begin = turns();
  async function open(index) {
    const isLast = begin();
    const view = views[index];
    if (view.data.packed !== undefined) {
      const bytes = await inflate(fromBase85(document.getElementById(`b${view.data.packed}`).textContent, view.data.length));
      view.data = JSON.parse(new TextDecoder().decode(bytes));
      if (!isLast()) return;
    }
    tabs.forEach((tab, i) => tab.setAttribute("aria-selected", String(i === index)));
    panel.setAttribute("aria-labelledby", `tab-${index}`);
    hideTip();
    const isNew = !view.element;
    if (isNew) (builders[view.kind] ?? pictured)(view);
    const title = view.title === names[index] || views.length === 1 ? null : make("p", { class: "intro soft" }, view.title);
    panel.replaceChildren(...(title ? [title] : []), view.element);
    panel.dataset.view = view.kind;
    if (isNew) view.ready = Promise.resolve(view.start()).then(() => view.element.setAttribute("data-ready", ""));
    else for (const draw of redraws) draw();
  }

  document.getElementById("app").append(header, nav, panel, announcer, tip);
  new ResizeObserver(once(() => redraws.forEach((draw) => draw()))).observe(panel);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });
  open(0);
  return views;
}

begin();
