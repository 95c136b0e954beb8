// Heat maps with a slider over the run.
P.startMaps = () => {
  const { runs, first } = P.choices("hasMaps");
  if (!runs.length) return;
  const view = P.$("#map-view"), run = P.$("#map-run"), seed = P.$("#map-seed"), at = P.$("#map-at"), fixed = P.$("#map-fixed");
  view.hidden = false;
  P.options(run, runs.map((i) => [i, P.index.runs[i].name]), first);
  const state = { cell: null, panels: [] };
  const draw = () => P.drawMaps(state, +run.value, +seed.value, +at.value, fixed.checked);
  const change = () => {
    const packed = P.chunk(+run.value, "maps"), share = +at.value / Math.max(1, +at.max);
    const seeds = P.index.runs[+run.value].seeds;
    const choices = packed.by_seed ? [[0, `mean of ${seeds.length}`], ...seeds.map((s, i) => [i + 1, String(s)])] : [[0, seeds.length > 1 ? `mean of ${seeds.length} (single seeds are not kept)` : String(seeds[0])]];
    P.options(seed, choices, seed.value);
    at.max = packed.begins.length - 2;
    at.value = at.dataset.touched ? Math.round(share * +at.max) : +at.max;
    P.mapPanels(state, +run.value, packed, draw);
    draw();
  };
  const again = P.drawn(view, change);
  run.addEventListener("change", again);
  for (const node of [seed, fixed]) node.addEventListener("change", draw);
  at.addEventListener("input", () => { at.dataset.touched = "1"; draw(); });
  const move = (by) => { at.dataset.touched = "1"; at.value = +at.value + by; draw(); };
  P.$("#map-back").addEventListener("click", () => move(-1));
  P.$("#map-next").addEventListener("click", () => move(1));
};

P.mapPanels = (state, run, packed, draw) => {
  const home = P.$("#map-panels"), [rows, cols] = packed.shape;
  state.cell = null; state.packed = packed;
  state.panels = Object.entries(packed.maps).map(([name, map]) => {
    const [label, about, colours] = P.index.maps[name], what = about + (colours ? `, ${colours} colours` : ""), canvas = P.el("canvas", { role: "img", tabindex: "0", "aria-label": `${label}: ${what}` });
    const ramp = P.el("canvas"), low = P.el("span"), high = P.el("span");
    const pick = (cell) => { state.cell = cell; draw(); };
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * rows), col = Math.floor(((event.clientX - box.left) / box.width) * cols);
      return Math.min(rows - 1, Math.max(0, row)) * cols + Math.min(cols - 1, Math.max(0, col));
    };
    canvas.addEventListener("pointermove", (event) => pick(inside(event)));
    canvas.addEventListener("pointerdown", (event) => pick(inside(event)));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      const cell = state.cell ?? 0, row = Math.floor(cell / cols) + by[0], col = (cell % cols) + by[1];
      pick(state.cell === null ? 0 : Math.min(rows - 1, Math.max(0, row)) * cols + Math.min(cols - 1, Math.max(0, col)));
    });
    P.ramp(ramp);
    return { name, label, colours, map, canvas, low, high, bytes: P.bytes(map.data), node: P.el("figure", {}, P.el("figcaption", {}, P.el("b", {}, label), " ", P.el("span", {}, what)), canvas, P.el("div", { class: "ramp" }, low, ramp, high)) };
  });
  home.replaceChildren(...state.panels.map((panel) => panel.node));
  P.$("#map-note").hidden = state.panels.length > 1;
};

// A few cells hold most of the visits and of the noise, and the rest falls by powers of ten over a run.
P.shade = (colours, v, low, high) => {
  const share = (v - low) / (high - low || 1), floor = Math.max(low, high / 1e4);
  if (colours === "log" && high > floor) return Math.log(Math.max(v, floor) / floor) / Math.log(high / floor);
  return colours === "√" ? Math.sqrt(share) : share;
};
P.mapValue = (panel, packed, seed, at, cell) => {
  const cells = packed.shape[0] * packed.shape[1], rows = packed.by_seed ? panel.bytes.length / cells / panel.map.scales.length : 1;
  const step = panel.bytes[(at * rows + seed) * cells + cell], [low, high] = panel.map.scales[at] ?? [0, 0];
  return step === 255 ? NaN : low + (step * (high - low)) / 254;
};

P.drawMaps = (state, run, seed, at, isFixed) => {
  const packed = state.packed, [rows, cols] = packed.shape, walls = new Set(P.index.places[P.index.runs[run].place].walls);
  const from = packed.begins[at], to = packed.begins[at + 1];
  P.$("#map-when").textContent = `steps ${P.steps(from + 1)} to ${P.steps(to)}${at === 0 ? ", the warm-up among them" : ""}`;
  P.$("#map-at").setAttribute("aria-valuetext", P.$("#map-when").textContent);
  const read = [];
  for (const panel of state.panels) {
    const known = (isFixed ? panel.map.scales : [panel.map.scales[at]]).filter((scale) => scale !== null);
    const low = Math.min(...known.map((s) => s[0])), high = Math.max(...known.map((s) => s[1]));
    const size = panel.canvas.clientWidth / cols, context = P.sized(panel.canvas, size * cols, size * rows);
    panel.canvas.style.height = `${size * rows}px`;
    for (let cell = 0; cell < rows * cols; cell++) {
      const v = P.mapValue(panel, packed, seed, at, cell), [x, right] = [cell % cols, (cell % cols) + 1].map((c) => Math.round(c * size));
      const [y, below] = [Math.floor(cell / cols), Math.floor(cell / cols) + 1].map((r) => Math.round(r * size));
      context.fillStyle = walls.has(cell) ? P.colour("open-fill") : Number.isNaN(v) ? P.colour("soft") : `rgb(${P.viridis(P.shade(panel.colours, v, low, high))})`;
      context.fillRect(x, y, right - x, below - y);
    }
    if (state.cell !== null) {
      const x = (state.cell % cols) * size, y = Math.floor(state.cell / cols) * size;
      context.strokeStyle = "#000"; context.lineWidth = 3; context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      context.strokeStyle = "#fff"; context.lineWidth = 1.5; context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      const v = P.mapValue(panel, packed, seed, at, state.cell);
      read.push(`${panel.label} ${Number.isNaN(v) ? "no data" : P.number(v) + (panel.name === "visits" ? "%" : "")}`);
    }
    panel.low.textContent = Number.isFinite(low) ? P.number(low) : "no data";
    panel.high.textContent = Number.isFinite(high) ? P.number(high) : "";
  }
  P.$("#map-read").textContent = state.cell === null ? "" : `row ${Math.floor(state.cell / cols)}, column ${state.cell % cols}${walls.has(state.cell) ? ", a wall" : ""}: ${read.join(", ")}`;
};
