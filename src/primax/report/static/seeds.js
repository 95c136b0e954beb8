// Every seed: as a dot on a line, and as a strip of colour over training.
P.startSeeds = () => {
  const home = P.$("#dots");
  if (!home) return;
  const select = P.$("#measure"), places = P.index.places.filter((place) => place.runs.some((run) => P.index.runs[run].measures.average));
  if (!places.length) { home.append(P.el("p", { class: "empty" }, "No run here has a table of episodes that can be read.")); return; }
  const draws = places.map((place) => {
    const plot = P.el("div", { class: "plot" }), saver = P.saver(() => `${place.title}, ${select.value} by seed`, () => P.dotsPicture(place, select), () => P.dotRows(place, select.value));
    const node = P.el("div", { class: "chart" }, saver, P.el("h3", {}, place.title), P.el("span", { class: "unit" }, place.score), plot);
    home.append(node);
    return P.drawn(node, () => plot.replaceChildren(P.dots(plot.clientWidth, place, select.value)));
  });
  select.addEventListener("change", () => draws.forEach((draw) => draw()));
  places.forEach((place) => P.strips(P.$("#strips"), place));
};

P.dotsPicture = (place, select) => {
  const dots = P.dots(760, place, select.value);
  return P.picture(760, +dots.getAttribute("height") || 0, place.title, `${place.score}, ${select.selectedOptions[0].textContent}`, (group) => group.append(dots));
};
P.dotRows = (place, measure) => [["method", "seed", measure], ...place.runs.flatMap((run) => {
  const { label, seeds, measures } = P.index.runs[run];
  return (measures[measure] ?? []).map((v, i) => [label, seeds[i], v ?? NaN]);
})];

P.dots = (width, place, measure) => {
  const runs = place.runs.filter((run) => P.index.runs[run].measures[measure]);
  const all = runs.flatMap((run) => P.index.runs[run].measures[measure]).filter((v) => v !== null);
  if (!all.length) return P.el("p", { class: "message" }, "No episode here has a score.");
  const levels = measure === "average" ? place.lines.filter((line) => line.value !== null) : [];
  let low = Math.min(...all, ...levels.map((line) => line.value)), high = Math.max(...all, ...levels.map((line) => line.value));
  if (low > 0 && low < 0.5 * high) low = 0;
  if (high === low) high = low + 1;
  const room = 0.04 * (high - low);
  high += room; if (low !== 0) low -= room;
  const row = 30, isNarrow = width < 420, left = isNarrow ? 8 : Math.min(P.widest(runs) + 20, width * 0.42), right = 14, top = levels.length ? 14 + 13 * levels.length : 6;
  const step = isNarrow ? row + 14 : row, height = top + step * runs.length + 26;
  const X = (v) => left + ((v - low) / (high - low)) * (width - left - right);
  const svg = P.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${place.title}, ${measure} of every seed` });
  for (const t of P.ticks(low, high, isNarrow ? 5 : 6)) {
    svg.append(P.svg("line", { x1: X(t), x2: X(t), y1: top - 4, y2: height - 22, class: "grid" }));
    svg.append(P.svg("text", { x: X(t), y: height - 6, "text-anchor": "middle" }, String(t)));
  }
  levels.forEach((line, i) => {
    const isLate = X(line.value) > width * 0.7, y = 11 + 13 * i;
    svg.append(P.svg("line", { x1: X(line.value), x2: X(line.value), y1: y - 8, y2: height - 22, stroke: P.colour("dim"), "stroke-dasharray": "2 4" }));
    svg.append(P.svg("text", { x: X(line.value) + (isLate ? -5 : 5), y, "text-anchor": isLate ? "end" : "start", class: "level" }, `${line.name} ${P.number(line.value)}`));
  });
  runs.forEach((run, i) => {
    const about = P.index.runs[run], y = top + step * i + step / 2 + (isNarrow ? 7 : 0), ink = P.inkOf(run), found = about.summaries[measure];
    const name = P.svg("text", isNarrow ? { x: left, y: y - 14, class: "name" } : { x: left - 12, y: y + 4, "text-anchor": "end", class: "name" }, P.clip(about.label, isNarrow ? 60 : 32));
    name.append(P.svg("title", {}, about.label));
    svg.append(name);
    if (found && found.low !== null) svg.append(P.svg("line", { x1: X(found.low), x2: X(found.high), y1: y, y2: y, stroke: ink, "stroke-width": 9, "stroke-opacity": 0.22, "stroke-linecap": "round" }));
    about.measures[measure].forEach((v, k) => {
      if (v === null) return;
      const shift = ((k * 7) % 5) - 2; // apart, so that equal seeds are seen
      const dot = P.svg("circle", { cx: X(v), cy: y + 2 * shift, r: 3.4, fill: ink, "fill-opacity": 0.7 });
      dot.append(P.svg("title", {}, `${about.label}, seed ${about.seeds[k]}: ${P.number(v)}`));
      svg.append(dot);
    });
    if (found) svg.append(P.svg("line", { x1: X(found.mean), x2: X(found.mean), y1: y - 9, y2: y + 9, class: "mean" }));
  });
  return svg;
};
P.widest = (runs) => {
  const context = document.createElement("canvas").getContext("2d");
  context.font = P.font();
  return Math.max(0, ...runs.map((run) => context.measureText(P.clip(P.index.runs[run].label, 32)).width));
};
P.clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

P.scored = (place) => place.runs.map((run) => ({ run, curve: P.curve(run, "episodes", "score") })).filter((line) => line.curve);
P.stripPicture = (place, known) => {
  const lines = P.scored(place), width = 240, step = 160;
  const unit = `${place.score}, a row a seed, time to the right; from ${P.number(known[0])} (dark) to ${P.number(known[1])} (light)`;
  return P.picture(3 * (width + 20) - 20, Math.ceil(lines.length / 3) * step, place.title, unit, (group) => lines.forEach(({ run }, i) => {
    const pen = P.pen(group), canvas = P.el("canvas"), x = (i % 3) * (width + 20), y = Math.floor(i / 3) * step;
    P.drawStrips(canvas, run, known);
    pen.fillStyle = P.colour("ink"); pen.fillText(P.index.runs[run].label, x, y + 8);
    pen.drawImage(canvas, x, y + 18, width, step - 32);
  }));
};
P.strips = (home, place) => {
  const ramp = P.el("canvas"), ends = [P.el("span"), P.el("span")], grid = P.el("div", { class: "strip-grid" });
  const saver = P.saver(() => `${place.title}, every seed over training`, () => P.stripPicture(place, known ??= limits()), () => P.curveRows(P.scored(place)));
  home.append(saver, P.el("h3", {}, place.title, P.el("span", { class: "unit" }, `${place.score}, a row a seed, time to the right`)), P.el("div", { class: "ramp" }, ends[0], ramp, ends[1]), grid);
  const limits = () => {
    let low = Infinity, high = -Infinity;
    for (const run of place.runs) for (const v of P.curve(run, "episodes", "score")?.values ?? []) { if (v < low) low = v; if (v > high) high = v; }
    return [low, high];
  };
  let known = null;
  P.drawn(ramp, () => { known ??= limits(); P.ramp(ramp); ends[0].textContent = P.number(known[0]); ends[1].textContent = P.number(known[1]); });
  const rest = P.el("div", { class: "strip-grid" }), more = place.runs.length - place.own;
  if (more) home.append(P.el("details", { class: "more" }, P.el("summary", {}, `${more} more, not in the paper`), rest));
  place.runs.forEach((run, i) => {
    if (!P.index.runs[run].columns.episodes?.includes("score")) return;
    const canvas = P.el("canvas", { role: "img", "aria-label": `${P.index.runs[run].label}: score of every seed over training` });
    (i < place.own ? grid : rest).append(P.el("figure", {}, P.el("figcaption", {}, P.swatch(P.el("i", { class: "swatch", "data-run": run }), run), P.index.runs[run].label), canvas));
    P.drawn(canvas, () => { known ??= limits(); P.drawStrips(canvas, run, known); });
  });
};
P.drawStrips = (canvas, run, [low, high]) => {
  const { values, seeds, steps } = P.curve(run, "episodes", "score"), n = steps.length;
  canvas.width = n; canvas.height = seeds;
  canvas.style.height = `${Math.max(12, Math.min(9, 130 / seeds) * seeds)}px`;
  const context = canvas.getContext("2d"), image = context.createImageData(n, seeds);
  for (let i = 0; i < n * seeds; i++) {
    image.data.set(P.viridis((values[i] - low) / (high - low || 1)), 4 * i);
    image.data[4 * i + 3] = Number.isNaN(values[i]) ? 0 : 255;
  }
  context.putImageData(image, 0, 0);
};
