// Light, dark, or as the system has it.
P.startTheme = () => {
  const names = ["auto", "light", "dark"], button = P.$("#theme");
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % names.length;
    if (names[at] === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = names[at];
    P.$("span", button).textContent = names[at];
    button.setAttribute("aria-label", `Colours: ${names[at] === "auto" ? "as the system has them" : names[at]}`);
    P.paint(); P.redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { P.paint(); P.redraw(); });
  let width = innerWidth, timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone's address bar changes the height only
    width = innerWidth; clearTimeout(timer); timer = setTimeout(P.redraw, 120);
  });
};
// Swatches of methods, in the colours of this theme.
P.paint = () => P.all(".swatch[data-run]").forEach((node) => P.swatch(node, +node.dataset.run));
P.swatch = (node, run) => {
  const ink = P.inkOf(run), dash = P.index.runs[run].dash;
  node.style.borderTopColor = ink;
  if (dash.length) {
    node.style.borderTopColor = "transparent"; node.style.height = "3px"; node.style.borderTopWidth = "0";
    let at = 0;
    const stops = dash.map((length, i) => { const from = at; at += length; return `${i % 2 ? "transparent" : ink} ${from}px ${at}px`; });
    node.style.background = `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
  }
  return node;
};
P.startNav = () => {
  const links = new Map(P.all(".links a").map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((found) => {
    for (const entry of found) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  P.all("main > section").forEach((section) => watch.observe(section));
  const target = (hash) => document.getElementById(hash.slice(1));
  const land = (behavior) => { const at = target(location.hash); if (at && P.drawBefore(at)) at.scrollIntoView({ behavior }); };
  document.addEventListener("click", (event) => { const link = event.target.closest("a[href^='#']"); if (link) P.drawBefore(target(link.hash)); });
  addEventListener("hashchange", () => land("auto"));
  land("instant");
};
