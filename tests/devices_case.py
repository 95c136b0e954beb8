"""Run by `test_devices` in a process of its own, which has eight devices: says what differs.

XLA_FLAGS=--xla_force_host_platform_device_count=8 python devices_case.py prime 8 4
"""

import json
import re
import sys
from dataclasses import replace

import conftest  # noqa: F401 (quick compilation)
import jax
import jax.numpy as jnp
import numpy as np

from primax.agent.learner import make_learner
from primax.agent.training import compile_program, state_like, windows
from primax.presets import configure
from primax.runs import records, trees

CASES = {
    "task": ("task", {}),
    "prime": ("prime", {}),
    "place": ("count", {"keys.kind": "place", "steps": 3_000, "replay": 10_000, "keys.growth": 2}),
}


def told(program, start=None) -> dict[str, np.ndarray]:
    """All that a run leaves: tables, maps, replays and its last state, each with seeds first."""
    found: dict[str, list] = {}
    num, seeds, config = len(program.seeds), program.seeds, program.learner.config
    for state, progress in windows(program, start):
        for table in (progress.episodes, progress.window):
            for name, column in table.items():
                rows = [column[table["seed"] == seed] for seed in seeds]
                found.setdefault(f"{name} of {len(table)} columns", []).append(np.stack(rows))
        for name, grids in progress.maps.items():
            found.setdefault(f"map of {name}", []).append(grids)
        if lines := records.replay_lines(config, seeds, progress.clock, state):
            found.setdefault("replays", []).append(np.array(lines.split(b"\n")[:num]))
    every = {k: np.concatenate([x.reshape(num, -1) for x in v], 1) for k, v in found.items()}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        every[f"state{jax.tree_util.keystr(path)}"] = trees._plain(leaf)
    return every


def text(part) -> str:
    """A program without what it says of our lines of code, whose order is another every time."""
    return re.sub(r"(?m)^\d+ .*\n|, metadata=\{[^}]*\}", "", part.as_text())


def differing(part: dict, whole: dict) -> list[str]:
    return [
        name
        for name in part.keys() | whole.keys()
        if not np.array_equal(part[name], whole[name], equal_nan=part[name].dtype.kind == "f")
    ]


def halfway(program) -> tuple[bytes, int]:
    """A checkpoint: the state and its clock."""
    for state, progress in windows(program):
        if 2 * progress.clock >= progress.total:
            return trees.dump(state), progress.clock
    raise AssertionError


def taken_up(program, saved: bytes):
    return trees.restore(saved, state_like(program.learner, len(program.seeds), program.sharding))


def moved(alone, spread) -> dict[str, list[str]]:
    """What differs where a run goes on with another number of devices; each has one seed or all.

    Begun on one device: from every seed that goes on alone, from its part of the state. Begun on
    several: from the run on one device whose state was put together from seeds begun alone.
    """
    seeds = spread.seeds
    one = compile_program(spread.learner, seeds, 1)
    saved, clock = halfway(one)
    whole, state = told(spread, (taken_up(spread, saved), clock)), taken_up(one, saved)
    outwards, begun = [], []
    for i, seed in enumerate(seeds):
        single = replace(alone, seeds=(seed,))
        part = told(single, (jax.tree.map(lambda x, i=i: x[i : i + 1], state), clock))
        outwards += differing(part, {name: x[i : i + 1] for name, x in whole.items()})
        begun.append(taken_up(single, halfway(single)[0]))
    joined = jax.tree.map(lambda *x: jnp.concatenate(x), *begun)
    saved, clock = halfway(spread)
    back = differing(told(one, (taken_up(one, saved), clock)), told(one, (joined, clock)))
    return {"from one": outwards, "to one": back}


def main(case: str, num_seeds: int, devices: int) -> dict:
    method, settings = CASES[case]
    learner = make_learner(configure(method, "maze", "smoke", settings))
    width = num_seeds // devices
    alone, spread = (
        compile_program(learner, tuple(range(num)), on)
        for num, on in ((width, 1), (num_seeds, devices))
    )
    texts = {text(part) for part in (alone.window, *spread.window.each)}
    whole = told(spread)
    differs, compared = [], set()
    for i in range(devices):
        own = slice(i * width, (i + 1) * width)
        part = told(replace(alone, seeds=tuple(range(num_seeds))[own]))
        compared |= part.keys()
        differs += differing(part, {name: x[own] for name, x in whole.items()})
    return {
        "differs": differs,
        "moved": moved(alone, spread) if width == 1 else {},
        "compared": sorted(compared),
        "programs": len(texts),
        "collectives": [
            word
            for word in ("all-", "collective", "reduce-scatter")
            if any(word in text for text in texts)
        ],
        "renews": alone.renew is not None,
    }


if __name__ == "__main__":
    jax.config.update("jax_disable_most_optimizations", True)
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:]))))
