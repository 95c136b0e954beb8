// Recorded episodes: frames are lists of cells, drawn as `primax watch` draws them.
P.startReplays = () => {
  const { runs, first } = P.choices("hasReplays");
  if (!runs.length) return;
  const view = P.$("#replay-view"), run = P.$("#replay-run"), seed = P.$("#replay-seed"), episode = P.$("#replay-episode"), at = P.$("#replay-at"), play = P.$("#replay-play");
  view.hidden = false;
  P.options(run, runs.map((i) => [i, P.index.runs[i].name]), first);
  const state = { timer: 0 };
  const draw = () => { state.at = +at.value; P.drawReplay(state); };
  const stop = () => { clearTimeout(state.timer); state.timer = 0; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
  const packed = () => P.chunk(+run.value, "replays");
  const load = () => {
    stop();
    const chosen = packed().episodes[+episode.value];
    Object.assign(state, { packed: packed(), episode: chosen, frames: P.frames(packed(), chosen), run: +run.value });
    at.max = chosen.actions.length; at.value = 0;
    P.replayParts(state);
    draw();
  };
  // The highest score, and of equals the latest: what a run can do before what it mostly does.
  const best = (found) => found.reduce((a, b) => (b[1].score > a[1].score || (b[1].score === a[1].score && b[1].step > a[1].step) ? b : a));
  const seeds = () => {
    P.options(seed, packed().kept.map((s) => [s, String(s)]), best([...packed().episodes.entries()])[1].seed);
    episodes();
  };
  const episodes = () => {
    const found = packed().episodes.map((e, i) => [i, e]).filter(([, e]) => e.seed === +seed.value);
    P.options(episode, found.map(([i, e]) => [i, `${P.steps(e.episode)} (steps to ${P.steps(e.step)}), score ${P.number(e.score)}`]), best(found)[0]);
    load();
  };
  P.$("#replay-view .controls").append(P.saver(() => state.episode ? P.replayTitle(state) : "replay", () => P.replayPicture(state), () => P.replayRows(state)));
  let isReady = false;
  P.drawn(view, () => { if (isReady) { P.replayParts(state); draw(); } else { isReady = true; seeds(); } });
  run.addEventListener("change", seeds);
  seed.addEventListener("change", episodes);
  episode.addEventListener("change", load);
  const go = (to) => { at.value = Math.max(0, Math.min(+at.max, to)); draw(); };
  const tick = () => {
    if (+at.value >= +at.max) { stop(); return; }
    go(+at.value + 1);
    state.timer = setTimeout(tick, 1000 / +P.$("#replay-speed").value);
  };
  play.addEventListener("click", () => {
    if (state.timer) { stop(); return; }
    if (+at.value >= +at.max) go(0);
    play.textContent = "Pause"; play.setAttribute("aria-pressed", "true");
    state.timer = setTimeout(tick, 1000 / +P.$("#replay-speed").value);
  });
  at.addEventListener("input", () => { stop(); draw(); });
  P.$("#replay-first").addEventListener("click", () => { stop(); go(0); });
  P.$("#replay-back").addEventListener("click", () => { stop(); go(+at.value - 1); });
  P.$("#replay-next").addEventListener("click", () => { stop(); go(+at.value + 1); });
};

// Frame by frame, channel by channel: how many cells, then which.
P.frames = (packed, episode) => {
  const cells = packed.bytes === 1 ? P.bytes(episode.frames) : P.words(episode.frames), frames = [];
  for (let i = 0; i < cells.length;) {
    const frame = { ...packed.still };
    for (const channel of packed.channels) { frame[channel] = [...cells.subarray(i + 1, i + 1 + cells[i])]; i += 1 + cells[i]; }
    frames.push(frame);
  }
  return frames;
};

P.action = (name) => ({ N: "north", S: "south", E: "east", W: "west" })[name] ?? name.toLowerCase();

P.replayParts = (state) => {
  const parts = state.episode.parts, home = P.$("#replay-parts");
  state.parts = Object.entries(parts ?? {}).map(([name, packed]) => {
    const value = P.el("span"), canvas = P.el("canvas", { "aria-hidden": "true" });
    return { name, values: P.floats(packed), scale: packed.scale, value, canvas, node: P.el("div", { class: "part", title: P.index.maps[name][1] }, P.el("b", {}, P.index.maps[name][0]), value, canvas) };
  });
  home.replaceChildren(...state.parts.map((part) => part.node));
  P.$("#replay-why").textContent = state.episode.is_exact
    ? "Beside each step: the parts of this step's own reward, by its count key, from the window frozen in the run's newest checkpoint."
    : parts ? "Beside each step: the part's mean over the snapshot's rows that start in the agent's cell, from maps.npz, as of the beginning of the step's window. The exact reward of a step also depends on its action and on how many targets are left. It is known only for the newest window, while its checkpoint is kept."
    : P.index.runs[state.run].method === "prime" ? "The reward's parts cannot be shown: this run's maps are missing or end before the episode." : "The reward's parts cannot be shown: only PRIME's runs record them.";
};

P.drawReplay = (state) => {
  const { episode, frames, packed, at } = state, frame = frames[at];
  P.drawWorld(P.$("#stage"), packed, frames, at);
  const facts = [["step", `${at} of ${episode.actions.length}`], ["next action", at < episode.actions.length ? P.action(P.index.actions[+episode.actions[at]]) : "none: the end"], ["score of the episode", P.number(episode.score)]];
  if (episode.left) facts.push(["alive", at < episode.left.length ? String(episode.left[at]) : "—"]);
  P.$("#replay-facts").replaceChildren(...facts.map(([name, text]) => P.el("div", {}, P.el("dt", {}, name), P.el("dd", {}, text))));
  P.$("#replay-at").setAttribute("aria-valuetext", facts[0][1]);
  P.$("#stage").setAttribute("aria-label", `The world at step ${facts[0][1]}: ${Object.entries(frame).filter(([name]) => name !== "wall").map(([name, cells]) => `${cells.length} ${name}`).join(", ")}`);
  P.$("#replay-lack").hidden = !state.parts.length || state.parts.some(({ values }) => !Number.isNaN(values[at] ?? 0));
  for (const part of state.parts) {
    const { values, value, canvas } = part, width = canvas.clientWidth;
    value.textContent = at < values.length ? (Number.isNaN(values[at]) ? "no data" : P.number(values[at])) : "—";
    P.drawPart(P.sized(canvas, width, 34), width, part, at);
  }
};
P.drawPart = (context, width, { values, scale: [low, high] }, at) => {
  const X = (i) => 2 + (i / Math.max(1, values.length - 1)) * (width - 4), floor = Math.min(low, 0), Y = (v) => 31 - ((v - floor) / (high - floor || 1)) * 28;
  context.strokeStyle = P.colour("line"); context.beginPath(); context.moveTo(0, Y(0)); context.lineTo(width, Y(0)); context.stroke();
  context.strokeStyle = P.colour("accent"); context.lineWidth = 1.4;
  P.stroke(context, [...values.keys()], values, X, Y);
  if (at < values.length) { context.strokeStyle = P.colour("ink"); context.lineWidth = 1; context.beginPath(); context.moveTo(X(at), 0); context.lineTo(X(at), 34); context.stroke(); }
};

// The board and the parts beside it at this step; and every step as a row.
P.replayTitle = ({ run, episode }) => `${P.index.runs[run].name}, seed ${episode.seed}, episode ${episode.episode}`;
P.replayPicture = (state) => {
  const [rows, cols] = state.packed.shape, side = 320, tall = (side * rows) / cols;
  return P.picture(760, Math.max(tall, 44 * state.parts.length), P.replayTitle(state), `step ${state.at} of ${state.episode.actions.length}, score ${P.number(state.episode.score)}`, (group) => {
    const board = P.el("canvas");
    P.drawWorld(board, state.packed, state.frames, state.at, 2 * side);
    P.pen(group).drawImage(board, 0, 0, side, tall);
    state.parts.forEach((part, i) => {
      const place = P.svg("g", { transform: `translate(${side + 24} ${44 * i})` }), line = P.svg("g", { transform: "translate(160 0)" }), pen = P.pen(place);
      pen.fillStyle = P.colour("ink"); pen.fillText(P.index.maps[part.name][0], 0, 17);
      pen.textAlign = "right"; pen.fillText(part.value.textContent, 145, 17);
      P.drawPart(P.pen(line), 250, part, state.at);
      place.append(line); group.append(place);
    });
  });
};
P.replayRows = ({ episode, frames, packed, parts }) => [["step", "row", "column", "action", ...parts.map((part) => part.name)], ...[...episode.actions].map((action, i) => {
  const cell = frames[i].agent[0], cols = packed.shape[1];
  return [i, Math.floor(cell / cols), cell % cols, P.action(P.index.actions[+action]), ...parts.map((part) => part.values[i])];
})];

// The board in the colours of the theme; what lives on it has the same on both.
const BOARD = { light: { floor: "#f6f3ec", line: "#e6e1d6", wall: "#2b303b", noise: "#c3c1c2", ink: "#2b303b", glow: 0.25 }, dark: { floor: "#24282e", line: "#343941", wall: "#777d88", noise: "#4d5058", ink: "#d9d6cf", glow: 0.4 } };
P.board = () => BOARD[P.isDark() ? "dark" : "light"];
const DEPTH = ["noise", "wall", "flag", "butterfly", "caught_flash", "agent"];
P.drawWorld = (canvas, { shape: [rows, cols] }, frames, at, width = canvas.clientWidth) => {
  const size = width / cols, context = P.sized(canvas, width, size * rows), frame = frames[at];
  canvas.style.height = `${size * rows}px`;
  context.fillStyle = P.board().floor; context.fillRect(0, 0, width, size * rows);
  context.strokeStyle = P.board().line; context.lineWidth = 1; context.beginPath();
  for (let i = 1; i < cols; i++) { context.moveTo(i * size, 0); context.lineTo(i * size, size * rows); }
  for (let i = 1; i < rows; i++) { context.moveTo(0, i * size); context.lineTo(width, i * size); }
  context.stroke();
  const centre = (cell) => [(cell % cols) * size + size / 2, Math.floor(cell / cols) * size + size / 2];
  const rank = (name) => { const k = DEPTH.indexOf(name); return k < 0 ? 2.5 : k; };
  const names = Object.keys(frame).sort((a, b) => rank(a) - rank(b));
  for (const name of names) {
    if (name === "agent") P.trail(context, frames, at, centre, size);
    for (const cell of frame[name]) { const [x, y] = centre(cell); (P.shapes[name] ?? P.shapes.other)(context, x, y, size); }
  }
};
P.trail = (context, frames, at, centre, size) => {
  context.lineCap = "round"; context.lineWidth = Math.max(1.5, 0.09 * size);
  for (let i = Math.max(1, at - 24); i <= at; i++) {
    const a = frames[i - 1].agent?.[0], b = frames[i].agent?.[0];
    if (a === undefined || b === undefined) continue;
    context.strokeStyle = `rgb(${P.isDark() ? "86 180 233" : "0 114 178"} / ${0.5 * 0.9 ** (at - i)})`;
    context.beginPath(); context.moveTo(...centre(a)); context.lineTo(...centre(b)); context.stroke();
  }
};
const disc = (context, x, y, r, fill) => { context.fillStyle = fill; context.beginPath(); context.arc(x, y, r, 0, 7); context.fill(); };
const wing = (context, x, y, rx, ry, turn, fill) => { context.fillStyle = fill; context.beginPath(); context.ellipse(x, y, rx, ry, turn, 0, 7); context.fill(); };
P.shapes = {
  wall: (c, x, y, s) => { c.fillStyle = P.board().wall; c.fillRect(x - s / 2, y - s / 2, s + 0.5, s + 0.5); },
  noise: (c, x, y, s) => { c.fillStyle = P.board().noise; c.fillRect(x - 0.47 * s, y - 0.47 * s, 0.94 * s, 0.94 * s); },
  agent: (c, x, y, s) => { disc(c, x, y, 0.36 * s, "#0072b2"); disc(c, x, y, 0.295 * s, "#fff"); disc(c, x, y, 0.235 * s, "#0072b2"); },
  flag: (c, x, y, s) => {
    c.fillStyle = `rgb(0 158 115 / ${P.board().glow})`; c.fillRect(x - 0.44 * s, y - 0.44 * s, 0.88 * s, 0.88 * s);
    c.fillStyle = "#009e73"; c.beginPath(); c.moveTo(x - 0.2 * s, y - 0.38 * s); c.lineTo(x + 0.3 * s, y - 0.18 * s); c.lineTo(x - 0.2 * s, y + 0.02 * s); c.fill();
    c.fillStyle = P.board().ink; c.fillRect(x - 0.235 * s, y - 0.4 * s, 0.07 * s, 0.78 * s);
  },
  butterfly: (c, x, y, s) => {
    for (const side of [-1, 1]) {
      wing(c, x + side * 0.15 * s, y + 0.16 * s, 0.16 * s, 0.12 * s, side * 0.8, "#d55e00");
      wing(c, x + side * 0.21 * s, y - 0.12 * s, 0.21 * s, 0.14 * s, -side * 0.6, "#e69f00");
    }
    c.fillStyle = P.board().ink; c.fillRect(x - 0.035 * s, y - 0.2 * s, 0.07 * s, 0.44 * s);
  },
  caught_flash: (c, x, y, s) => { disc(c, x, y, 0.49 * s, "#e69f00"); disc(c, x, y, 0.44 * s, "#f0e442"); },
  other: (c, x, y, s) => { c.fillStyle = "#cc79a7"; c.beginPath(); c.moveTo(x, y - 0.34 * s); c.lineTo(x + 0.34 * s, y); c.lineTo(x, y + 0.34 * s); c.lineTo(x - 0.34 * s, y); c.fill(); },
};
