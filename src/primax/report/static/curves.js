// Learning curves: a chart a world, all read from one row of controls.
P.view = { table: "episodes", column: "score", band: "std", each: false, log: false, lines: true };

P.startCurves = () => {
  const home = P.$("#charts");
  if (!home) return;
  const has = (table, column) => P.index.runs.some((run) => run.columns[table]?.includes(column.name));
  const choices = ["episodes", "windows"].flatMap((table) => P.index.columns[table]
    .filter((column) => has(table, column)).map((column) => [`${table}:${column.name}`, column.label]));
  if (!choices.length) {
    home.append(P.el("p", { class: "empty" }, "No run here has a table of episodes or windows that can be read."));
    P.$("#curve-controls").hidden = true;
    return;
  }
  P.options(P.$("#quantity"), choices);
  [P.view.table, P.view.column] = choices[0][0].split(":");
  const charts = P.index.places.map((place) => P.chart(home, place));
  const again = () => charts.forEach((draw) => draw());
  P.$("#quantity").addEventListener("change", (event) => {
    [P.view.table, P.view.column] = event.target.value.split(":");
    P.$("#level-lines").disabled = P.view.column !== "score"; // for the rest there is no exact value
    P.view.log = P.$("#log-scale").checked = P.index.columns[P.view.table].find((c) => c.name === P.view.column).is_log;
    again();
  });
  P.$("#band").addEventListener("change", (event) => { P.view.band = event.target.value; again(); });
  for (const [id, name] of [["each-seed", "each"], ["log-scale", "log"], ["level-lines", "lines"]]) {
    P.$(`#${id}`).addEventListener("change", (event) => { P.view[name] = event.target.checked; again(); });
  }
};

// Which lines are on at first: the paper's methods where there are many, else all.
P.firstShown = (runs) => {
  if (runs.length <= P.index.many) return new Set(runs);
  const main = runs.filter((run) => ["prime", "rnd", "disagreement", "smirl", "task"].includes(P.index.runs[run].variant));
  return new Set((main.length > 1 ? main : runs).slice(0, P.index.many));
};

P.chart = (home, place) => {
  const on = P.firstShown(place.runs);
  const canvas = P.el("canvas", { role: "img", tabindex: "0" }), over = P.el("canvas", { "aria-hidden": "true" });
  const tip = P.el("div", { class: "tip", role: "status", hidden: "" }), unit = P.el("span", { class: "unit" });
  const message = P.el("p", { class: "message", hidden: "" }), plot = P.el("div", { class: "plot" }, canvas, over, tip);
  const legend = P.el("fieldset", { class: "chips legend" }, P.el("legend", {}, "Methods"));
  const saver = P.saver(() => `${place.title}, ${P.view.column}`, () => P.chartPicture(place, on), () => P.curveRows(P.linesOf(place, on)));
  home.append(P.el("div", { class: "chart" }, saver, P.el("h3", {}, place.title), unit, plot, message, legend));
  let shape = null, at = -1, focus = null, size = [0, 0];
  const paint = () => { shape = P.drawChart(P.sized(canvas, ...size), ...size, place, P.linesOf(place, on), focus); };
  const draw = () => {
    const width = plot.clientWidth;
    size = [width, Math.round(Math.max(250, Math.min(330, width * 0.62)))];
    over.style.height = canvas.style.height = `${size[1]}px`;
    P.sized(over, ...size);
    unit.textContent = P.unitOf(place); at = -1; tip.hidden = true;
    paint();
    P.describe(canvas, message, place, on);
  };
  const again = P.drawn(plot, draw);
  const stress = (run) => { if (run !== focus) { focus = run; if (shape) paint(); } };
  place.runs.forEach((run, i) => {
    if (i === place.own) legend.append(P.el("span", { class: "apart" }, "Not in the paper"));
    const box = P.el("input", { type: "checkbox" }), chip = P.el("label", { class: "chip" }, box, P.swatch(P.el("i", { class: "swatch", "data-run": run }), run), P.index.runs[run].label);
    box.checked = on.has(run);
    box.addEventListener("change", () => { if (box.checked) on.add(run); else on.delete(run); again(); });
    chip.addEventListener("pointerenter", () => stress(run));
    chip.addEventListener("pointerleave", () => stress(null));
    box.addEventListener("focus", () => { if (box.matches(":focus-visible")) stress(run); });
    box.addEventListener("blur", () => stress(null));
    legend.append(chip);
  });
  if (place.runs.length > 3) {
    for (const [name, wanted] of [["all", true], ["none", false]]) {
      const button = P.el("button", { type: "button", class: "quiet", "aria-label": `${name} methods, ${place.title}` }, name);
      button.addEventListener("click", () => {
        P.all("input", legend).forEach((box) => { box.checked = wanted; });
        place.runs.forEach((run) => (wanted ? on.add(run) : on.delete(run)));
        again();
      });
      P.$("legend", legend).append(button);
    }
  }
  const show = (step) => { if (shape?.lines.length) P.point(over, tip, shape, step, focus); };
  const leave = () => { tip.hidden = true; P.clear(over); stress(null); };
  canvas.addEventListener("pointermove", (event) => {
    if (!shape?.lines.length) return;
    at = shape.stepAt(event.offsetX);
    stress(P.nearest(shape, at, event.offsetY));
    show(at);
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!shape || (!by && !["Home", "End"].includes(event.key))) return;
    event.preventDefault();
    const width = (shape.x1 - shape.x0) / 100;
    at = event.key === "Home" ? shape.x0 : event.key === "End" ? shape.x1 : (at < 0 ? shape.x0 : at) + by * width;
    at = Math.min(shape.x1, Math.max(shape.x0, at));
    show(at);
  });
  return again;
};

P.linesOf = (place, on) => place.runs.filter((run) => on.has(run)).map((run) => ({ run, curve: P.curve(run, P.view.table, P.view.column) })).filter((line) => line.curve);
// What a chart says in words: to those who cannot see it, and of lines that are not there.
P.describe = (canvas, message, place, on) => {
  const lines = P.linesOf(place, on), label = (run) => P.index.runs[run].label;
  const lacking = place.runs.filter((run) => on.has(run) && !P.index.runs[run].columns[P.view.table]?.includes(P.view.column)).map(label);
  message.textContent = !lines.length && !lacking.length ? "Every method is switched off."
    : lacking.length ? `Not drawn, for the run did not record it: ${lacking.join(", ")}.` : "";
  message.hidden = !message.textContent;
  canvas.setAttribute("aria-label", `${place.title}: ${P.unitOf(place)}. ${lines.map(({ run, curve }) => `${label(run)} ends at ${P.number(curve.mean.at(-1))}`).join("; ")}`);
};
P.chartPicture = (place, on) => P.picture(760, 420, place.title, P.unitOf(place), (group) => P.drawChart(P.pen(group), 760, 420, place, P.linesOf(place, on), null, Infinity));
// Every number of the lines, a row a point, in as many digits as were stored; runs without a seed leave its column empty.
P.curveRows = (lines) => {
  const stored = (v) => +v.toPrecision(5);
  const seeds = [...new Set(lines.flatMap(({ run }) => P.index.runs[run].seeds))].sort((a, b) => a - b);
  const rows = lines.flatMap(({ run, curve: { steps, values, ...curve } }) => [...steps.keys()].map((i) => [
    P.index.runs[run].label, steps[i], ...["mean", "std", "low", "high"].map((name) => stored(curve[name][i])),
    ...seeds.map((seed) => { const row = P.index.runs[run].seeds.indexOf(seed); return row < 0 ? NaN : stored(values[row * steps.length + i]); })]));
  return [["method", "step", "mean", "std", "lowest", "highest", ...seeds.map((seed) => `seed ${seed}`)], ...rows];
};

P.unitOf = (place) => {
  const column = P.index.columns[P.view.table].find((c) => c.name === P.view.column);
  if (column.name === "score") return `${place.score}, rolling mean of 20`;
  return `${column.label}: ${column.unit}${P.view.table === "episodes" ? ", rolling mean of 20" : ""}`;
};

P.clear = (canvas) => canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);

// A small mean curve in each row of the table of runs.
P.startSparks = () => P.all("[data-spark]").forEach((canvas) => P.drawn(canvas, () => {
  const run = +canvas.dataset.spark, curve = P.curve(run, "episodes", "score"), place = P.index.places[P.index.runs[run].place];
  const context = P.sized(canvas, 120, 22);
  if (!curve) return;
  let high = -Infinity, low = 0;
  for (const other of place.runs) {
    const found = P.curve(other, "episodes", "score");
    if (found) for (const v of found.mean) { high = Math.max(high, v); low = Math.min(low, v); }
  }
  const X = (i) => 2 + (i / Math.max(1, curve.steps.length - 1)) * 116;
  context.strokeStyle = P.colour("line"); context.beginPath(); context.moveTo(0, 20.5); context.lineTo(120, 20.5); context.stroke();
  context.strokeStyle = P.inkOf(run); context.lineWidth = 1.5;
  P.stroke(context, curve.steps.map((_, i) => i), curve.mean, X, (v) => 20 - ((v - low) / (high - low || 1)) * 18);
}));
