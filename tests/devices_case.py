"""Run by `test_devices` in a process of its own, which has eight devices: says what differs.

XLA_FLAGS=--xla_force_host_platform_device_count=8 python devices_case.py prime 8 4
"""

import json
import sys
from dataclasses import replace

import jax
import numpy as np

from primax.agent.learner import make_learner
from primax.agent.training import compile_program, windows
from primax.presets import configure
from primax.runs import records, trees

CASES = {
    "task": ("task", {}),
    "prime": ("prime", {}),
    "place": ("count", {"keys.kind": "place", "steps": 3_000, "replay": 10_000, "keys.growth": 2}),
}


def told(program) -> dict[str, np.ndarray]:
    """All that a run leaves: tables, maps, replays and its last state, each with seeds first."""
    found: dict[str, list] = {}
    num, seeds, config = len(program.seeds), program.seeds, program.learner.config
    for state, progress in windows(program):
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


def main(case: str, num_seeds: int, devices: int) -> dict:
    method, settings = CASES[case]
    learner = make_learner(configure(method, "maze", "smoke", settings))
    width = num_seeds // devices
    alone, spread = (
        compile_program(learner, tuple(range(num)), on)
        for num, on in ((width, 1), (num_seeds, devices))
    )
    texts = {part.as_text() for part in (alone.window, *spread.window.each)}
    whole = told(spread)
    differs, compared = [], set()
    for i in range(devices):
        own = slice(i * width, (i + 1) * width)
        part = told(replace(alone, seeds=tuple(range(num_seeds))[own]))
        compared |= part.keys()
        differs += [
            name
            for name in part.keys() | whole.keys()
            if not np.array_equal(
                part[name], whole[name][own], equal_nan=part[name].dtype.kind == "f"
            )
        ]
    return {
        "differs": differs,
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
