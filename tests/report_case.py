"""Run folders and a reproduction with known content, for the tests of the page."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from test_paper_case import plausible, write_run

from primax.output.sheet import Sheet
from primax.paper.claims.claims import FIT
from primax.paper.experiments import CELLS
from primax.paper.scorecard import card
from primax.paper.scorecard.rule import VERDICTS
from primax.runs import npz
from primax.worlds import World, make_world

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
PARTS = ("v_epi", "v_ale", "v_ahead", "r_int", "reward")


def full_run(home: Path, name: str = "prime_maze", seeds: int = 3, episodes: int = 200) -> Path:
    """A run's folder with tables, maps and replays, and a manifest."""
    cell = CELLS[name]
    scores, windows, columns = plausible(cell, episodes, seeds)
    rng = np.random.default_rng(0)
    for column in ("loss", "reward", "r_int", "v_ahead", "q_target_abs_max", "reward_abs_max"):
        windows[column] = rng.random((seeds, 100))
    ones = np.ones((seeds, 100))
    windows |= {f"slope_{k}": ones for k in range(5)} | {f"offset_{k}": 0 * ones for k in range(5)}
    windows |= dict.fromkeys(("zeta_abs_max", "v_ale_heads", "v_ale_phi", "v_ale_psi"), 0 * ones)
    windows["reward_jump"][:, 0] = 0.0
    rows = max(100, episodes * 100 // int(cell.variant.settings.get("window", "1000")))
    windows = {name: values[:, np.arange(rows) * 100 // rows] for name, values in windows.items()}
    folder = write_run(home / name, cell, scores, windows, **columns)
    part = {"command": f"primax train {name}", "started": "then", "compile_s": 2.5, "run_s": 30.0}
    about = {"steps": episodes * 100, "finished": "now", "jax": "0.11.2", "parts": [part]}
    (folder / "manifest.json").write_text(json.dumps(about))
    world = make_world(cell.world)
    (folder / "maps.npz").write_bytes(npz.to_bytes(maps(world, seeds, episodes).items()))
    lines = [replay(world, seed, episode) for episode in (99, 199) for seed in range(seeds)]
    (folder / "replays.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def maps(world: World, seeds: int, episodes: int) -> dict[str, np.ndarray]:
    """Twenty windows; the parts of the reward of window w, seed s are w + s / 10 in every cell."""
    shape, free = (20, seeds, *world.shape), ~np.asarray(world.walls)
    ends = (1 + np.arange(20)) * episodes * 100 // 20
    often = free * (1 + np.arange(world.shape[1]))  # more to the right
    drawn = {"visits": np.broadcast_to(often, shape).astype(np.int32)}
    level = np.arange(20)[:, None, None, None] + 0.1 * np.arange(seeds)[:, None, None]
    parts = np.where(free, np.broadcast_to(level, shape), np.nan).astype(np.float32)
    parts[0] = np.nan
    drawn |= dict.fromkeys(PARTS, parts)
    return {**drawn, "step": ends, "seed": np.arange(seeds)}


def walk(world: World, actions: list[int]) -> np.ndarray:
    """What a walker sees of a Maze: [frame, channel, rows, cols]."""
    planes = np.zeros((len(actions) + 1, *world.obs_shape), np.uint8)
    here, moves = world.start or 0, np.asarray(world.moves)
    for frame, action in zip(planes, [*actions, 4], strict=True):
        frame[world.channels.index("agent")].flat[here] = 1
        frame[world.channels.index("wall")] = np.asarray(world.walls)
        here = int(moves[here, action])
    return planes


def replay(world: World, seed: int, episode: int) -> dict:
    """A recorded episode: east, then south, over and over."""
    actions = [2, 1] * (world.horizon // 2)
    planes = walk(world, actions)
    agents = planes[:-1, 0].reshape(len(actions), -1).argmax(axis=1)
    levels = world.num_keys // planes[0, 0].size
    bits = np.packbits(planes.reshape(len(planes), -1), axis=1)
    return {
        "seed": seed,
        "episode": episode,
        "step": (episode + 1) * world.horizon,
        "score": 1.0,
        "actions": "".join(map(str, actions)),
        "keys": ((agents * levels + levels - 1) * 5 + actions).tolist(),
        "observations": base64.b64encode(bits.tobytes()).decode(),
        "planes": list(world.obs_shape),
    }


def reproduction(home: Path, has_nearest: bool = False) -> Path:
    """What `primax reproduce` leaves: a number of every verdict, two claims, a list of runs.

    Under the nearest reading, if that is there, verdicts are the other way round and a claim has no run.
    """
    numbers = [
        card.Number(f"n{i}", "tab:main", f"number <{i}>", "1.00", "2.00", "[+0, +1]", verdict)
        for i, verdict in enumerate(VERDICTS)
    ]
    columns = ("id", "where", "claim", "it holds when", "ours", "evidence", "the paper's own seeds")
    claims = tuple(
        (f"`c{i}`", f"sec:{i}", f"claim {i}", "when", verdict, "evidence", "holds")
        for i, verdict in enumerate(("holds", "fails"))
    )
    fit = None
    if has_nearest:
        turned = zip(numbers, reversed(numbers), strict=True)
        fit = [replace(n, ours="3.00", interval="[+1, +2]", verdict=o.verdict) for n, o in turned]
        columns = (*columns, *FIT)
        beside = (("fails", "evidence of the fit"), ("not recorded", "no windows"))
        claims = tuple((*row, *more) for row, more in zip(claims, beside, strict=True))
    runs = (("prime_maze", "3 seeds, 20,000 steps", "steps 20000"), ("task_maze", "not run", "—"))
    sheets = (
        card.sheet(numbers, fit),
        Sheet("claims", "Claims", columns, claims),
        Sheet("runs", "Runs", ("cell", "state", "settings other than its own"), runs),
    )
    home.mkdir(parents=True, exist_ok=True)
    (home / "scale").write_text("smoke\n")
    for sheet in sheets:
        (home / f"{sheet.name}.csv").write_text(sheet.csv())
    return home
