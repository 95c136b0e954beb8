// Charts as files. What draws on a canvas draws an SVG too, with a pen; a PNG is that SVG, and a CSV its numbers.
P.saver = (title, picture, rows) => {
  const menu = P.el("details", { class: "save" }, P.el("summary", { "aria-label": `Save: ${title()}` }, "save")), list = P.el("div");
  const kinds = { SVG: () => P.file(P.source(picture()), "image/svg+xml"), PNG: () => P.png(picture()), CSV: () => P.file(P.csv(rows()), "text/csv") };
  for (const [kind, make] of Object.entries(kinds)) {
    const button = P.el("button", { type: "button" }, kind);
    button.addEventListener("click", async () => { P.download(await make(), `${P.slug(title())}.${kind.toLowerCase()}`); menu.open = false; });
    list.append(button);
  }
  menu.append(list);
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; P.$("summary", menu).focus(); } });
  return menu;
};
P.startSaves = () => document.addEventListener("click", (event) => P.all(".save[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; }));

P.slug = (text) => text.toLowerCase().replace(/×/g, "x").replace(/[^\p{L}\p{N}]+/gu, "_").replace(/^_|_$/g, "");
P.file = (text, type) => new Blob([text], { type });
P.download = (blob, name) => {
  const link = P.el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
P.csv = (rows) => rows.map((row) => `${row.map(P.csvCell).join(",")}\n`).join("");
P.csvCell = (v) => {
  if (typeof v === "number") return Number.isNaN(v) ? "" : String(+v.toPrecision(6));
  return /[",\n]/.test(v) ? `"${v.replace(/"/g, '""')}"` : v;
};
P.source = (svg) => new XMLSerializer().serializeToString(svg);
P.png = (svg) => new Promise((done) => {
  const image = new Image(), canvas = P.el("canvas");
  image.onload = () => { P.sized(canvas, image.width, image.height, 2).drawImage(image, 0, 0); canvas.toBlob(done); };
  image.src = `data:image/svg+xml,${encodeURIComponent(P.source(svg))}`;
});

// A picture in the colours of this theme: title, unit, and below them what `draw` puts into its group.
P.picture = (width, height, title, unit, draw) => {
  const edge = 16, head = 52, size = { width: width + 2 * edge, height: height + head + edge };
  const svg = P.svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": getComputedStyle(document.body).fontFamily }), body = P.svg("g", { transform: `translate(${edge} ${head})` });
  const [ink, dim, line, paper] = ["ink", "dim", "line", "paper"].map(P.colour);
  svg.append(P.svg("style", {}, `text { font-size: 12px; fill: ${dim}; } .name { fill: ${ink}; } .level { paint-order: stroke; stroke: ${paper}; stroke-width: 4px; } .grid { stroke: ${line}; } .mean { stroke: ${ink}; stroke-width: 2; }`),
    P.svg("rect", { ...size, fill: paper }), P.svg("text", { x: edge, y: 22, style: `font-size: 16px; font-weight: 600; fill: ${ink}` }, title), P.svg("text", { x: edge, y: 40 }, unit), body);
  draw(body);
  return svg;
};

// As much of a canvas's context as our drawings use.
P.pen = (home) => {
  const ruler = P.el("canvas").getContext("2d"), outer = [], near = (v) => Math.round(v * 100) / 100;
  let path = "", dash = [], clips = 0;
  const add = (tag, attributes, text = null) => home.append(P.svg(tag, attributes, text));
  const move = (letter, x, y) => { path += `${path ? letter : "M"}${near(x)} ${near(y)}`; };
  const box = (x, y, width, height) => ({ x: near(x), y: near(y), width: near(width), height: near(height) });
  const filled = () => ({ fill: pen.fillStyle, "fill-opacity": pen.globalAlpha });
  const lined = () => ({ fill: "none", stroke: pen.strokeStyle, "stroke-width": pen.lineWidth, "stroke-opacity": pen.globalAlpha, ...(dash.length ? { "stroke-dasharray": dash.join(" ") } : {}) });
  const pen = {
    fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: P.font(), textAlign: "left", textBaseline: "middle",
    beginPath: () => { path = ""; },
    moveTo: (x, y) => move("M", x, y),
    lineTo: (x, y) => move("L", x, y),
    closePath: () => { path += "Z"; },
    rect: (x, y, w, h) => { path += `M${near(x)} ${near(y)}h${near(w)}v${near(h)}h${near(-w)}Z`; },
    arc: (x, y, r) => { path += `M${near(x - r)} ${near(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`; }, // whole circles only
    stroke: () => add("path", { d: path, ...lined() }),
    fill: () => add("path", { d: path, ...filled() }),
    fillRect: (...sides) => add("rect", { ...box(...sides), ...filled() }),
    strokeRect: (...sides) => add("rect", { ...box(...sides), ...lined() }),
    setLineDash: (lengths) => { dash = lengths; },
    measureText: (text) => { ruler.font = pen.font; return ruler.measureText(text); },
    fillText: (text, x, y) => add("text", { x: near(x), y: near(y), style: `font-size: ${parseFloat(pen.font)}px; fill: ${pen.fillStyle}`,
      "text-anchor": { left: "start", center: "middle", right: "end" }[pen.textAlign], "dominant-baseline": { top: "hanging", middle: "central", alphabetic: "auto" }[pen.textBaseline] }, text),
    drawImage: (canvas, ...sides) => add("image", { href: canvas.toDataURL(), preserveAspectRatio: "none", style: "image-rendering: pixelated", ...box(...sides) }),
    save: () => outer.push(home),
    restore: () => { home = outer.pop(); },
    clip: () => {
      const id = `clip${clips++}`, clip = P.svg("clipPath", { id }), group = P.svg("g", { "clip-path": `url(#${id})` });
      clip.append(P.svg("path", { d: path }));
      home.append(clip, group);
      home = group;
    },
  };
  return pen;
};
