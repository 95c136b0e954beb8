// Heat maps with a slider over the run.
P.startMaps = () => {
  const { runs, first } = P.choices("hasMaps");
  if (!runs.length) return;
  const view = P.$("#map-view"), run = P.$("#map-run"), seed = P.$("#map-seed"), at = P.$("#map-at"), fixed = P.$("#map-fixed");
  view.hidden = false;
  P.options(run, runs.map((i) => [i, P.index.runs[i].name]), first);
  const state = { cell: null, panels: [], tip: P.el("div", { class: "tip", hidden: "" }) };
  const draw = () => {
    Object.assign(state, { run: +run.value, rows: seed.value.split(",").map(Number), who: seed.selectedOptions[0].textContent, at: +at.value, isFixed: fixed.checked });
    P.drawMaps(state);
  };
  const change = () => {
    const packed = P.chunk(+run.value, "maps"), share = +at.value / Math.max(1, +at.max);
    const about = P.index.runs[+run.value], isMean = seed.value === "0";
    P.options(seed, P.mapChoices(about, packed), isMean && about.alike.length ? null : seed.value); // a mean of unlike worlds must be asked for
    at.max = packed.begins.length - 2;
    at.value = at.dataset.touched ? Math.round(share * +at.max) : +at.max;
    P.mapPanels(state, packed, draw);
    draw();
  };
  const again = P.drawn(view, change);
  run.addEventListener("change", again);
  for (const node of [seed, fixed]) node.addEventListener("change", draw);
  at.addEventListener("input", () => { at.dataset.touched = "1"; draw(); });
  const move = (by) => { at.dataset.touched = "1"; at.value = +at.value + by; draw(); };
  P.$("#map-back").addEventListener("click", () => move(-1));
  P.$("#map-next").addEventListener("click", () => move(1));
  P.$("#map-view .controls").append(P.saver(() => state.packed ? P.mapTitle(state) : "maps", () => P.mapPicture(state), () => P.mapRows(state)));
};

// Rows of a packed map: the mean of all seeds, then each seed. Seeds whose worlds are alike also have a mean of their own.
P.mapChoices = ({ seeds, alike }, { by_seed }) => {
  const mean = `mean of ${seeds.length}${alike.length ? ", whose worlds differ" : ""}`, each = seeds.map((s, i) => [i + 1, String(s)]);
  if (!by_seed) return [[0, seeds.length > 1 ? `${mean} (single seeds are not kept)` : String(seeds[0])]];
  if (!alike.length) return [[0, mean], ...each];
  const groups = alike.filter((group) => group.seeds.length > 1).map((group) => [group.seeds.map((i) => i + 1).join(), `mean of seeds ${group.seeds.map((i) => seeds[i]).join(", ")}: one world`]);
  return [...groups, ...each, [0, mean]];
};
// Of the world that is shown; where several are averaged, what is a wall in all of them.
P.wallsOf = ({ run, rows }) => {
  const { place, alike } = P.index.runs[run], shown = alike.filter((group) => rows[0] === 0 || group.seeds.includes(rows[0] - 1));
  return new Set(shown.length ? shown[0].walls.filter((cell) => shown.every((group) => group.walls.includes(cell))) : P.index.places[place].walls);
};

P.mapPanels = (state, packed, draw) => {
  const home = P.$("#map-panels"), [rows, cols] = packed.shape;
  state.cell = null; state.packed = packed;
  state.panels = Object.entries(packed.maps).map(([name, map]) => {
    const [label, about, colours] = P.index.maps[name], what = about + (colours ? `, ${colours} colours` : ""), canvas = P.el("canvas", { role: "img", tabindex: "0", "aria-label": `${label}: ${what}` });
    const ramp = P.el("canvas"), low = P.el("span"), high = P.el("span"), panel = { name, label, what, colours, map, canvas, low, high, bytes: P.bytes(map.data) };
    const pick = (cell) => { state.cell = cell; draw(); P.mapTip(state, panel); };
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * rows), col = Math.floor(((event.clientX - box.left) / box.width) * cols);
      return Math.min(rows - 1, Math.max(0, row)) * cols + Math.min(cols - 1, Math.max(0, col));
    };
    canvas.addEventListener("pointermove", (event) => pick(inside(event)));
    canvas.addEventListener("pointerdown", (event) => pick(inside(event)));
    for (const gone of ["pointerleave", "blur"]) canvas.addEventListener(gone, () => { state.tip.hidden = true; });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      const cell = state.cell ?? 0, row = Math.floor(cell / cols) + by[0], col = (cell % cols) + by[1];
      pick(state.cell === null ? 0 : Math.min(rows - 1, Math.max(0, row)) * cols + Math.min(cols - 1, Math.max(0, col)));
    });
    P.ramp(ramp);
    panel.node = P.el("figure", {}, P.el("figcaption", {}, P.el("b", {}, label), " ", P.el("span", {}, what)), canvas, P.el("div", { class: "ramp" }, low, ramp, high));
    return panel;
  });
  state.tip.hidden = true;
  home.replaceChildren(...state.panels.map((panel) => panel.node), state.tip);
  P.$("#map-note").hidden = state.panels.length > 1;
};

// A few cells hold most of the visits and of the noise, and the rest falls by powers of ten over a run.
P.shade = (colours, v, low, high) => {
  const share = (v - low) / (high - low || 1), floor = Math.max(low, high / 1e4);
  if (colours === "log" && high > floor) return Math.log(Math.max(v, floor) / floor) / Math.log(high / floor);
  return colours === "√" ? Math.sqrt(share) : share;
};
// Of every cell, in the mean of some rows: what is no number in one of them is left out.
P.mapValues = (panel, { shape, by_seed }, rows, at) => {
  const cells = shape[0] * shape[1], num = by_seed ? panel.bytes.length / cells / panel.map.scales.length : 1, [low, high] = panel.map.scales[at] ?? [0, 0];
  return Array.from({ length: cells }, (_, cell) => {
    const steps = rows.map((row) => panel.bytes[(at * num + row) * cells + cell]).filter((step) => step !== 255);
    return low + (steps.reduce((sum, step) => sum + step, 0) / steps.length * (high - low)) / 254;
  });
};
// From the lowest to the highest value of the map, or of the whole run and all its seeds.
P.mapScale = (panel, walls, isFixed) => {
  const known = isFixed ? panel.map.scales.filter((scale) => scale !== null).flat() : panel.values.filter((v, cell) => !Number.isNaN(v) && !walls.has(cell));
  return [Math.min(...known), Math.max(...known)];
};
P.mapText = (panel, v) => (Number.isNaN(v) ? "no data" : P.number(v) + (panel.name === "visits" ? "%" : ""));
P.mapWhen = ({ packed, at }) => `steps ${P.steps(packed.begins[at] + 1)} to ${P.steps(packed.begins[at + 1])}`;
P.mapTitle = (state) => `${P.index.runs[state.run].name}, maps, ${P.mapWhen(state)}`;

P.drawPanel = (context, panel, walls, cols, size) => {
  panel.values.forEach((v, cell) => {
    const [x, right] = [cell % cols, (cell % cols) + 1].map((c) => Math.round(c * size));
    const [y, below] = [Math.floor(cell / cols), Math.floor(cell / cols) + 1].map((r) => Math.round(r * size));
    context.fillStyle = walls.has(cell) ? P.colour("wall") : Number.isNaN(v) ? P.colour("soft") : `rgb(${P.viridis(P.shade(panel.colours, v, ...panel.scale))})`;
    context.fillRect(x, y, right - x, below - y);
  });
};
P.drawMaps = (state) => {
  const { run, rows, at, isFixed, packed, cell } = state, [height, cols] = packed.shape, walls = P.wallsOf(state), { alike } = P.index.runs[run];
  P.$("#map-when").textContent = `${P.mapWhen(state)}${at === 0 ? ", the warm-up among them" : ""}`;
  P.$("#map-at").setAttribute("aria-valuetext", P.$("#map-when").textContent);
  P.$("#map-differs").hidden = !alike.length || rows[0] !== 0;
  for (const panel of state.panels) {
    panel.values = P.mapValues(panel, packed, rows, at);
    panel.scale = P.mapScale(panel, walls, isFixed);
    const size = panel.canvas.clientWidth / cols, context = P.sized(panel.canvas, size * cols, size * height);
    panel.canvas.style.height = `${size * height}px`;
    P.drawPanel(context, panel, walls, cols, size);
    if (cell !== null) {
      const x = (cell % cols) * size, y = Math.floor(cell / cols) * size;
      context.strokeStyle = "#000"; context.lineWidth = 3; context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      context.strokeStyle = "#fff"; context.lineWidth = 1.5; context.strokeRect(x + 1, y + 1, size - 2, size - 2);
    }
    const [low, high] = panel.scale;
    panel.low.textContent = Number.isFinite(low) ? P.number(low) : "no data";
    panel.high.textContent = Number.isFinite(high) ? P.number(high) : "";
  }
  P.$("#map-read").textContent = cell === null ? "" : `${P.cellName(state, walls)}: ${state.panels.map((panel) => `${panel.label} ${P.mapText(panel, panel.values[cell])}`).join(", ")}`;
};
P.cellName = ({ cell, packed }, walls) => `row ${Math.floor(cell / packed.shape[1])}, column ${cell % packed.shape[1]}${walls.has(cell) ? ", a wall" : ""}`;
// Beside the cell that is pointed at, over the map it is in.
P.mapTip = (state, panel) => {
  const { tip, cell, packed } = state, cols = packed.shape[1], size = panel.canvas.clientWidth / cols, home = tip.parentElement;
  tip.replaceChildren(P.el("div", { class: "when" }, P.cellName(state, P.wallsOf(state))), P.el("b", {}, panel.label), ` ${P.mapText(panel, panel.values[cell])}`);
  tip.hidden = false;
  const x = panel.canvas.offsetLeft + (cell % cols) * size, right = x + size + 8;
  tip.style.left = `${right + tip.offsetWidth <= home.clientWidth ? right : Math.max(0, x - tip.offsetWidth - 8)}px`;
  tip.style.top = `${panel.canvas.offsetTop + Math.floor(cell / cols) * size}px`;
};

// All panels as one picture, three in a row, each over its scale.
P.mapPicture = (state) => {
  const [rows, cols] = state.packed.shape, side = 240, gap = 24, size = side / cols, step = rows * size + 60, walls = P.wallsOf(state), across = Math.min(3, state.panels.length);
  const unit = `${P.mapWhen(state)}, seed: ${state.who}`;
  return P.picture(Math.max(420, across * (side + gap) - gap), Math.ceil(state.panels.length / 3) * step, P.index.runs[state.run].name, unit, (group) => state.panels.forEach((panel, i) => {
    const place = P.svg("g", { transform: `translate(${(i % 3) * (side + gap)} ${Math.floor(i / 3) * step + 16})` }), pen = P.pen(place), foot = rows * size;
    group.append(place);
    pen.fillStyle = P.colour("ink"); pen.fillText(`${panel.label}: ${panel.what}`, 0, -8);
    P.drawPanel(pen, panel, walls, cols, size);
    for (let k = 0; k < 64; k++) { pen.fillStyle = `rgb(${P.viridis(k / 63)})`; pen.fillRect(60 + (k * (side - 120)) / 64, foot + 8, (side - 120) / 64 + 0.5, 8); }
    pen.fillStyle = P.colour("dim"); pen.fillText(panel.low.textContent, 0, foot + 12);
    pen.textAlign = "right"; pen.fillText(panel.high.textContent, side, foot + 12);
  }));
};
P.mapRows = (state) => {
  const cols = state.packed.shape[1], walls = P.wallsOf(state);
  const rows = state.panels[0].values.map((_, cell) => [Math.floor(cell / cols), cell % cols, walls.has(cell) ? "yes" : "no", ...state.panels.map((panel) => panel.values[cell])]);
  return [["row", "column", "wall", ...state.panels.map((panel) => (panel.name === "visits" ? "visits, % of steps" : panel.name))], ...rows];
};
