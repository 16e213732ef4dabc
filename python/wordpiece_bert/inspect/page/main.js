// The page: a title, a tab for each view, the theme. A view is built when its tab is first opened.

/** A view of a kind without a script: its picture. */
function pictured(view) {
  const source = `data:image/svg+xml,${encodeURIComponent(view.picture)}`;
  const image = make("img", { src: source, alt: view.title, style: { maxWidth: "100%", background: "#fff" } });
  view.element = make("section", { class: "card" }, image);
  view.start = () => {};
}

/**
 * The tabs, each with its name in the address: its kind, "kind.2" for the second tab of a kind … A tab has one view, or a
 * view for each of several texts.
 */
function allTabs() {
  const seen = {};
  const tabs = [];
  for (const given of content.views) {
    const arrays = Object.fromEntries(Object.entries(given.arrays).map(([key, spec]) => [key, new PackedArray(spec)]));
    const view = { ...given, arrays };
    if (!tabs[view.tab]) {
      seen[view.kind] = (seen[view.kind] ?? 0) + 1;
      tabs[view.tab] = { name: seen[view.kind] === 1 ? view.kind : `${view.kind}.${seen[view.kind]}`, views: [] };
    }
    view.tab = tabs[view.tab];
    view.name = view.tab.name;
    view.tab.views.push(view);
  }
  return tabs;
}

/** The view of a tab that shows the chosen text; if none does, the first. */
function viewOf({ views }) {
  return views.find((view) => view.texts.includes(selection.text)) ?? views[0];
}

/** The numbers of the texts to choose from in a tab: none, if it shows one, or all that it has. */
function textsOf({ views }) {
  return views.length > 1 || views[0].showsText ? [...new Set(views.flatMap((view) => view.texts))] : [];
}

/** The text that a view shows, if its tab has others. */
function shownText(view) {
  return textsOf(view.tab).length > 1 ? content.texts[textOf(view)] : null;
}

/** The names of the tabs, all of them different. */
function tabNames(tabs) {
  const views = tabs.map((tab) => tab.views[0]);
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
    view.theme = theme();
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

/**
 * The theme of the system, or of the notebook around the frame, until the reader chooses one. Returns what chooses the
 * other, and what takes that of a notebook.
 */
function themeOfSystem() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let isChosen = false;
  let around = null;
  const follow = () => {
    const name = around ?? (dark.matches ? "dark" : "light");
    if (!isChosen && name !== theme()) setTheme(name);
  };
  dark.addEventListener("change", follow);
  follow();
  const change = () => {
    isChosen = true;
    setTheme(theme() === "dark" ? "light" : "dark");
  };
  const take = (name) => {
    around = name;
    follow();
  };
  return [change, take];
}

/**
 * In a frame, tell the page around it how high the content is, and take its theme: frame.js is there, or nobody listens.
 * Returns what tells it again, because browsers observe no sizes in frames that are scrolled out.
 */
function fitFrame(app, takeTheme) {
  if (parent === window) return () => {};
  const tell = () => {
    const bottoms = [app, ...document.querySelectorAll(".take[open] > div")].map((one) => one.getBoundingClientRect().bottom);
    parent.postMessage({ wordpieceBert: { height: scrollY + Math.max(...bottoms) } }, "*");
  };
  new ResizeObserver(tell).observe(app);
  document.addEventListener("toggle", tell, true); // the menu lies above the content
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !data?.wordpieceBert) return;
    const { theme: name } = data.wordpieceBert;
    if (name === "dark" || name === "light") takeTheme(name);
    else tell();
  });
  return tell;
}

function openPage() {
  const [changeTheme, takeTheme] = themeOfSystem();
  const tabs = allTabs();
  const views = tabs.flatMap((tab) => tab.views);
  defaults = Object.assign({}, ...views.map((view) => view.focus ?? {}).reverse());
  takeAddress();
  const toggle = make("button", { type: "button", onclick: changeTheme, "aria-label": "Change between light and dark" }, "◐");
  const currentTab = () => tabs.find((tab) => tab.name === selection.view) ?? tabs[0];
  const current = () => viewOf(currentTab());
  const menu = takeMenu(current, settled, printAll);
  const header = make("header", { class: "top" }, make("h1", { dir: "auto" }, content.title), menu, toggle);
  const panel = make("main", { id: "panel", role: "tabpanel", "aria-live": "off" });
  const names = tabNames(tabs);
  const buttons = tabs.map((tab, index) => {
    const open = () => select({ view: tab.name });
    return make("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", onclick: open }, names[index]);
  });
  const nav = make("nav", { class: tabs.length > 1 ? "tabs" : "hidden", role: "tablist", "aria-label": "Views" }, buttons);
  const text = make("div", { class: "of-text" });
  arrows(buttons, 1, true);
  let shown = null;

  const begin = turns();
  /** Show the view and the choices of the selection; `data-shown` then says which. */
  async function show() {
    const isLast = begin();
    const [tab, view] = [currentTab(), current()];
    const index = tabs.indexOf(tab);
    if (!view.element) await prepared(view);
    if (!isLast()) return;
    if (shown !== view) {
      shown = view;
      hideTip();
      buttons.forEach((button, i) => setFlag(button, "aria-selected", i === index));
      stopAt(buttons, index);
      panel.setAttribute("aria-labelledby", `tab-${index}`);
      const hasTitle = view.title !== names[index] && tabs.length > 1;
      panel.replaceChildren(...(hasTitle ? [make("p", { class: "intro soft", dir: "auto" }, view.title)] : []), view.element);
      panel.dataset.view = view.kind;
      if (view.ready || view.theme !== theme()) redraw(); // it may have been built long before it is shown
    }
    showTexts(tab, view);
    if (!view.element.hasAttribute("data-ready")) await started(view);
    if (!isLast()) return;
    await view.follow?.();
    if (isLast()) panel.dataset.shown = address();
  }

  /** The list of texts of a tab. */
  function showTexts(tab, view) {
    const numbers = textsOf(tab);
    text.classList.toggle("hidden", numbers.length < 2);
    if (text.dataset.tab !== tab.name) {
      const options = numbers.map((number) => [String(number), content.texts[number]]);
      text.replaceChildren(choice("Text", options, (value) => select(textChoice(views, Number(value)))));
      text.dataset.tab = tab.name;
    }
    text.querySelector("select").value = String(textOf(view));
  }

  let showing = null;
  function follow() {
    unstack();
    showing = show().then(fit);
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
    const printed = tabs.map(viewOf);
    for (const view of printed) {
      if (!view.element) await prepared(view);
      const title = [view.title, shownText(view)].filter(Boolean).join(": ");
      all.push(make("section", { class: "printed" }, make("h2", { dir: "auto" }, title), view.element));
    }
    begin(); // a choice that is still being shown comes too late
    shown = null;
    isStacked = true;
    panel.replaceChildren(...all);
    for (const view of printed) {
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

  const app = document.getElementById("app");
  app.append(header, nav, text, panel, announcer, tip);
  const fit = fitFrame(app, takeTheme);
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
