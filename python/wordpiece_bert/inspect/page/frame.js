// In the notebook, beside a frame with a page: the frame gets the height of its content, and the page the notebook's theme.
// The page cannot reach the notebook, nor the notebook the page: they send messages. Without this script a frame keeps the
// height that it has. Several frames bring it several times; the first is enough.

(() => {
  const frames = () => [...document.querySelectorAll("iframe[data-wordpiece-bert]")];
  const send = (frame, message) => frame.contentWindow?.postMessage({ wordpieceBert: message }, "*");

  /** The colour of an element's ground, [r, g, b, opacity]. */
  const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = pixel.getContext("2d", { willReadFrequently: true });
  function groundOf(element) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = getComputedStyle(element).backgroundColor;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  }

  /** Tell a page whether what is behind its frame is dark; nothing if nothing is behind it. */
  function tellTheme(frame) {
    for (let element = frame.parentElement; element; element = element.parentElement) {
      const [r, g, b, opacity] = groundOf(element);
      if (opacity > 127) return send(frame, { theme: 0.299 * r + 0.587 * g + 0.114 * b < 128 ? "dark" : "light" });
    }
    return undefined;
  }

  if (!window.wordpieceBertFrames) {
    window.wordpieceBertFrames = true;
    addEventListener("message", ({ source, data }) => {
      const height = data?.wordpieceBert?.height;
      const frame = Number.isFinite(height) && frames().find((one) => one.contentWindow === source);
      if (!frame) return;
      if (frame.dataset.wordpieceBert === "fits") frame.style.height = `${Math.max(160, Math.ceil(height))}px`;
      tellTheme(frame);
    });
    // Notebooks change their theme by an attribute, and load its style sheet then or before.
    const tellAll = () => [0, 600].forEach((wait) => setTimeout(() => frames().forEach(tellTheme), wait));
    const observer = new MutationObserver(tellAll);
    for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellAll);
  }
  // A page that was there first said its height to nobody.
  for (const frame of frames()) send(frame, {});
})();
