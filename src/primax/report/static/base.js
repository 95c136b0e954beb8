"use strict";
// What the other scripts share. Text reaches the page through textContent only.
const P = { data: new Map(), decoded: new Map(), redraws: [], pending: new Map() };
P.$ = (selector, root = document) => root.querySelector(selector);
P.all = (selector, root = document) => [...root.querySelectorAll(selector)];
P.parse = (id) => JSON.parse(document.getElementById(id).textContent);
P.index = P.parse("index");

P.el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};
P.svg = (tag, attributes = {}, text = null) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
};
P.options = (select, pairs, chosen = null) => {
  select.replaceChildren(...pairs.map(([value, text]) => P.el("option", { value }, text)));
  if (chosen !== null && pairs.some(([value]) => String(value) === String(chosen))) select.value = chosen;
};

// Runs in the order of every list, and the one a select starts with.
P.choices = (has) => {
  const runs = P.index.runs.map((_, i) => i).filter((i) => P.index.runs[i][has]), named = (key) => runs.find((i) => P.index.runs[i][key] === "prime");
  return { runs, first: named("variant") ?? named("method") ?? runs[0] };
};

// Data: parsed when first asked for.
P.chunk = (run, kind) => {
  const id = `data-${run}-${kind}`;
  if (!P.data.has(id)) P.data.set(id, document.getElementById(id) ? P.parse(id) : null);
  return P.data.get(id);
};
P.bytes = (text) => {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
};
P.words = (text) => {
  const bytes = P.bytes(text), words = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < words.length; i++) words[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
  return words;
};
P.floats = ({ data, scale: [low, high] }) => {
  const words = P.words(data), values = new Float64Array(words.length), step = (high - low) / 65534;
  for (let i = 0; i < words.length; i++) values[i] = words[i] === 65535 ? NaN : low + words[i] * step;
  return values;
};

// A curve: steps, and values by seed; null where the run has no such column.
P.curve = (run, table, column) => {
  const id = `${run} ${table} ${column}`;
  if (!P.decoded.has(id)) {
    const found = P.chunk(run, "curves")?.[table], packed = found?.columns[column];
    P.decoded.set(id, packed ? P.summarised(found.steps, P.floats(packed)) : null);
  }
  return P.decoded.get(id);
};
P.summarised = (steps, values) => {
  const n = steps.length, seeds = values.length / n;
  const make = () => new Float64Array(n).fill(NaN);
  const curve = { steps, values, seeds, mean: make(), std: make(), low: make(), high: make() };
  for (let i = 0; i < n; i++) {
    let count = 0, sum = 0, low = Infinity, high = -Infinity;
    for (let s = 0; s < seeds; s++) {
      const v = values[s * n + i];
      if (Number.isNaN(v)) continue;
      count++; sum += v; low = Math.min(low, v); high = Math.max(high, v);
    }
    if (!count) continue;
    const mean = sum / count;
    let square = 0;
    for (let s = 0; s < seeds; s++) { const v = values[s * n + i]; if (!Number.isNaN(v)) square += (v - mean) ** 2; }
    curve.mean[i] = mean; curve.low[i] = low; curve.high[i] = high;
    curve.std[i] = count > 1 ? Math.sqrt(square / (count - 1)) : NaN;
  }
  return curve;
};

// Numbers and colours.
P.number = (v) => {
  if (v === null || v === undefined || Number.isNaN(v)) return "—";
  const size = Math.abs(v);
  if (size && (size < 1e-3 || size >= 1e5)) return v.toExponential(1).replace("e-", "e−").replace("-", "−");
  return v.toFixed(size < 0.01 && size ? 4 : size < 1 ? 3 : size < 100 ? 2 : 0).replace("-", "−");
};
P.steps = (v) => v.toLocaleString("en-US");
P.isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
P.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
P.inkOf = (run) => (P.isDark() ? P.index.runs[run].onDark : P.index.runs[run].colour);
// For words: on a light page, dark enough to be read.
P.wordsOf = (run) => {
  const ink = P.inkOf(run);
  if (P.isDark()) return ink;
  const rgb = [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16)), light = (0.21 * rgb[0] + 0.72 * rgb[1] + 0.07 * rgb[2]) / 255;
  return light > 0.38 ? `rgb(${rgb.map((c) => Math.round((c * 0.38) / light))})` : ink;
};
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
P.viridis = (share) => {
  const at = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[i].map((c, k) => Math.round(c + (at - i) * (VIRIDIS[i + 1][k] - c)));
};
P.ramp = (canvas) => {
  const context = P.sized(canvas, 128, 1, 1);
  for (let i = 0; i < 128; i++) { context.fillStyle = `rgb(${P.viridis(i / 127)})`; context.fillRect(i, 0, 1, 1); }
};
// A canvas as sharp as the screen; drawing is in CSS pixels.
P.sized = (canvas, width, height, ratio = window.devicePixelRatio || 1) => {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
};
P.font = (size = 12) => `${size}px ${getComputedStyle(document.body).fontFamily}`;
P.ticks = (low, high, most) => {
  const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) || power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(+(i * step).toPrecision(12));
  return found;
};

// Draws when it comes near the screen, and again when colours or sizes change.
P.drawn = (node, draw) => {
  let seen = false;
  const again = () => { if (seen) draw(); };
  const first = () => { watch.disconnect(); P.pending.delete(node); seen = true; draw(); };
  const watch = new IntersectionObserver((found) => { if (found.some((entry) => entry.isIntersecting)) first(); }, { rootMargin: "300px" });
  watch.observe(node);
  P.pending.set(node, first);
  P.redraws.push(again);
  return again;
};
// What stands before a section grows when it is drawn: drawn first, the section is where a link to it leads.
P.drawBefore = (target) => {
  const before = [...P.pending].filter(([node]) => node.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING);
  before.forEach(([, first]) => first());
  return before.length > 0;
};
P.redraw = () => P.redraws.forEach((draw) => draw());
