// What a chart of curves looks like, on a canvas or with a pen.
// The lowest and the highest value of a line's band at a point.
P.spread = (curve, i) => P.view.band === "std" && !Number.isNaN(curve.std[i])
  ? [Math.max(curve.mean[i] - curve.std[i], curve.low[i]), Math.min(curve.mean[i] + curve.std[i], curve.high[i])]
  : [curve.low[i], curve.high[i]];

P.drawChart = (context, width, height, place, lines, focus, mostNames = 8) => {
  const { column, band, each, log } = P.view;
  const levels = P.view.lines && column === "score" ? place.lines.filter((line) => line.value !== null) : [];
  if (!lines.length) return { lines: [], stepAt: () => 0, x0: 0, x1: 0 };

  let low = Infinity, high = -Infinity, x1 = 0, x0 = 0;
  for (const { curve } of lines) {
    x1 = Math.max(x1, curve.steps.at(-1));
    for (let i = 0; i < curve.steps.length; i++) {
      const ends = each ? [curve.low[i], curve.high[i]] : band === "none" ? [curve.mean[i], curve.mean[i]] : P.spread(curve, i);
      for (const v of [...ends, curve.mean[i]]) {
        if (Number.isNaN(v) || (log && v <= 0)) continue;
        low = Math.min(low, v); high = Math.max(high, v);
      }
    }
  }
  for (const line of levels) { if (!log || line.value > 0) { low = Math.min(low, line.value); high = Math.max(high, line.value); } }
  if (!Number.isFinite(low)) { low = log ? 1e-3 : 0; high = 1; }
  if (log) { low = Math.max(low, high * 1e-9); low = Math.log10(low) - 0.08; high = Math.log10(high) + 0.08; }
  else { if (low > 0 && low < 0.5 * high) low = 0; const room = 0.05 * (high - low || Math.abs(high) || 1); high += room; if (low !== 0) low -= room; }

  context.font = P.font();
  const yTicks = log ? P.logTicks(low, high) : P.ticks(low, high, 7);
  const yText = (t) => (log ? (10 ** t).toExponential(0).replace("e+", "e").replace("-", "−") : P.number(t).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
  const left = 12 + Math.max(24, ...yTicks.map((t) => context.measureText(yText(t)).width));
  const names = [...(lines.length <= mostNames ? lines.map(({ run, curve }) => ({ text: P.index.runs[run].label, ink: P.wordsOf(run), v: [...curve.mean].reverse().find((v) => !Number.isNaN(v)) })) : []),
    ...levels.map((line) => ({ text: line.name, ink: P.colour("dim"), v: line.value }))];
  const isWide = width >= 460;
  const widest = Math.max(0, ...names.map((name) => context.measureText(name.text).width));
  const right = isWide && names.length ? Math.min(widest + 14, width * 0.3) : 10, top = 10, bottom = 36;
  const X = (step) => left + ((step - x0) / (x1 - x0 || 1)) * (width - left - right);
  const flip = (v) => (log ? Math.log10(Math.max(v, 1e-300)) : v);
  const Y = (v) => top + (1 - (flip(v) - low) / (high - low || 1)) * (height - top - bottom);

  context.strokeStyle = P.colour("line"); context.fillStyle = P.colour("dim"); context.lineWidth = 1;
  context.textAlign = "right"; context.textBaseline = "middle";
  for (const t of yTicks) {
    const y = Math.round(top + (1 - (t - low) / (high - low || 1)) * (height - top - bottom)) + 0.5;
    context.beginPath(); context.moveTo(left, y); context.lineTo(width - right, y); context.stroke();
    context.fillText(yText(t), left - 8, y);
  }
  context.textBaseline = "top";
  const unit = x1 < 2000 ? 1 : 1000;
  for (const t of P.ticks(0, x1 / unit, width < 460 ? 4 : 6)) {
    context.textAlign = X(t * unit) > width - right - 14 ? "right" : "center";
    context.fillText(`${t}${t && unit > 1 ? "k" : ""}`, Math.min(X(t * unit), width - right), height - bottom + 8);
  }
  context.textAlign = "right"; context.fillText("environment steps", width - right, height - 13);

  context.save();
  context.beginPath(); context.rect(left - 3, top - 3, width - left - right + 6, height - top - bottom + 6); context.clip();
  context.setLineDash([2, 4]); context.strokeStyle = P.colour("dim"); context.lineWidth = 1.2;
  for (const line of levels) { context.beginPath(); context.moveTo(left, Y(line.value)); context.lineTo(width - right, Y(line.value)); context.stroke(); }
  context.setLineDash([]);
  const isStressed = lines.some(({ run }) => run === focus);
  for (const { run, curve } of [...lines].sort((a, b) => (a.run === focus) - (b.run === focus))) {
    P.drawLine(context, run, curve, X, Y, !isStressed ? "" : run === focus ? "front" : "back");
  }
  context.restore();
  P.nameLines(context, names.filter((name) => name.v !== undefined && (!log || name.v > 0)).map((name) => ({ ...name, y: Y(name.v) })), isWide, { left, right, width, top, height: height - bottom });
  return { lines, levels, X, Y, x0, x1, top, width, height: height - bottom, stepAt: (x) => Math.min(x1, Math.max(x0, x0 + ((x - left) / (width - left - right)) * (x1 - x0))) };
};

// A line over its band, whose edges are dashed as the line is: bands that overlap are told apart without colour too.
const ALPHA = { "": { line: 1, edge: 0.5, fill: 0.13, seed: 0.38 }, front: { line: 1, edge: 0.9, fill: 0.3, seed: 0.6 }, back: { line: 0.3, edge: 0.12, fill: 0.04, seed: 0.08 } };
P.drawLine = (context, run, curve, X, Y, stress) => {
  const { band, each } = P.view, alpha = ALPHA[stress], dash = P.index.runs[run].dash, n = curve.steps.length;
  context.fillStyle = context.strokeStyle = P.inkOf(run);
  if (band !== "none" && curve.seeds > 1 && !each) {
    const edges = [0, 1].map((k) => curve.steps.map((_, i) => P.spread(curve, i)[k]));
    context.globalAlpha = alpha.fill * (P.isDark() ? 1.4 : 1);
    for (const [from, to] of P.stretches(curve.mean)) {
      context.beginPath();
      for (let i = from; i < to; i++) context.lineTo(X(curve.steps[i]), Y(edges[1][i]));
      for (let i = to - 1; i >= from; i--) context.lineTo(X(curve.steps[i]), Y(edges[0][i]));
      context.closePath(); context.fill();
    }
    context.globalAlpha = alpha.edge; context.lineWidth = 0.8; context.setLineDash(dash);
    edges.forEach((edge) => P.stroke(context, curve.steps, edge, X, Y));
  }
  context.setLineDash([]);
  if (each) {
    context.globalAlpha = alpha.seed; context.lineWidth = 0.8;
    for (let s = 0; s < curve.seeds; s++) P.stroke(context, curve.steps, curve.values.subarray(s * n, (s + 1) * n), X, Y);
  }
  context.globalAlpha = alpha.line; context.lineWidth = stress === "front" ? 2.6 : 2; context.setLineDash(dash);
  P.stroke(context, curve.steps, curve.mean, X, Y);
  context.setLineDash([]); context.globalAlpha = 1;
};

// In powers of ten; with their halves and fifths where there are few.
P.logTicks = (low, high) => {
  const found = [];
  for (let e = Math.floor(low); e <= high; e++) {
    for (const k of high - low < 2.2 ? [1, 2, 5] : [1]) found.push(e + Math.log10(k));
  }
  const step = Math.ceil(found.length / 9);
  return found.filter((t, i) => t >= low && t <= high && i % step === 0);
};

P.stretches = (values) => {
  const found = [];
  let from = -1;
  for (let i = 0; i <= values.length; i++) {
    const isGap = i === values.length || Number.isNaN(values[i]);
    if (!isGap && from < 0) from = i;
    if (isGap && from >= 0) { found.push([from, i]); from = -1; }
  }
  return found;
};
P.stroke = (context, steps, values, X, Y) => {
  for (const [from, to] of P.stretches(values)) {
    context.beginPath();
    for (let i = from; i < to; i++) context.lineTo(X(steps[i]), Y(values[i]));
    if (to > from + 1) { context.stroke(); continue; }
    context.arc(X(steps[from]), Y(values[from]), 2, 0, 7); // a line of one point is a dot
    context.fillStyle = context.strokeStyle; context.fill();
  }
};
// Names stand beside the ends of their lines, moved apart where they would touch.
P.nameLines = (context, names, isWide, box) => {
  context.textBaseline = "middle"; context.textAlign = "left";
  if (!isWide) names = names.filter((name) => name.ink === P.colour("dim"));
  names.sort((a, b) => a.y - b.y);
  const gap = 14;
  for (let i = 1; i < names.length; i++) names[i].y = Math.max(names[i].y, names[i - 1].y + gap);
  for (let i = names.length - 1; i >= 0; i--) names[i].y = Math.min(names[i].y, (names[i + 1]?.y ?? box.height + gap - 1) - gap);
  for (const name of names) {
    context.fillStyle = name.ink;
    if (isWide) { context.fillText(name.text, box.width - box.right + 8, name.y, box.right - 8); continue; }
    context.textAlign = "right"; context.font = P.font(11);
    const width = context.measureText(name.text).width, x = box.width - box.right - 2;
    context.fillStyle = P.colour("paper"); context.globalAlpha = 0.8; context.fillRect(x - width - 3, name.y - 14, width + 6, 13); context.globalAlpha = 1;
    context.fillStyle = name.ink; context.fillText(name.text, x, name.y - 7);
  }
};

// The point of a curve nearest to a step.
P.pointAt = (curve, step) => {
  let i = 0, j = curve.steps.length - 1;
  while (j - i > 1) { const k = (i + j) >> 1; if (curve.steps[k] <= step) i = k; else j = k; }
  return step - curve.steps[i] > curve.steps[j] - step ? j : i;
};
// The run whose line passes within a finger's breadth of the pointer.
P.nearest = ({ lines, Y }, step, y) => {
  const far = lines.map(({ run, curve }) => [Math.abs(Y(curve.mean[P.pointAt(curve, step)]) - y), run]).filter(([d]) => d < 14).sort((a, b) => a[0] - b[0]);
  return far.length ? far[0][1] : null;
};
// The values at a step, of each line.
P.point = (over, tip, shape, step, focus) => {
  P.clear(over);
  const context = over.getContext("2d"), x = shape.X(step);
  context.strokeStyle = P.colour("dim"); context.lineWidth = 1;
  context.beginPath(); context.moveTo(x, shape.top); context.lineTo(x, shape.height); context.stroke();
  const rows = [];
  let nearest = step;
  for (const { run, curve } of shape.lines) {
    const i = P.pointAt(curve, step);
    if (Number.isNaN(curve.mean[i])) continue;
    if (!rows.length) nearest = curve.steps[i];
    rows.push({ run, v: curve.mean[i], std: curve.std[i] });
    context.fillStyle = P.inkOf(run);
    context.beginPath(); context.arc(shape.X(curve.steps[i]), shape.Y(curve.mean[i]), 3.5, 0, 7); context.fill();
  }
  rows.sort((a, b) => b.v - a.v);
  const body = rows.map(({ run, v, std }) => P.el("tr", run === focus ? { class: "strong" } : {},
    P.el("td", {}, P.swatch(P.el("i", { class: "swatch" }), run), P.index.runs[run].label),
    P.el("td", { class: "r" }, P.number(v)), P.el("td", { class: "dim" }, Number.isNaN(std) ? "" : `± ${P.number(std)}`)));
  tip.replaceChildren(P.el("div", { class: "when" }, `step ${P.steps(nearest)}`), P.el("table", {}, P.el("tbody", {}, ...body)));
  tip.hidden = false;
  const width = tip.offsetWidth, isLeft = x > shape.width / 2;
  tip.style.left = `${Math.min(Math.max(0, isLeft ? x - width - 14 : x + 14), Math.max(0, shape.width - width))}px`;
};
