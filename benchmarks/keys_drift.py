"""How far do learnt keys move when they are renewed? The same rows, under the old keys and the new.

    python benchmarks/keys_drift.py maze place --preset quick --steps 20000 --seeds 100-101 --out maze_place.json

PRIME is trained as `keys.py counts` trains it. Names of keys mean nothing, so old and new ones are
paired so that as many rows as can be keep theirs; the share of all others has moved. In bits: what
the new key leaves open of the old one, for states that were taken together, and what the old one
leaves open of the new one, for states that were told apart. Their sum is the variation of information.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keys
import numpy as np
from scipy.optimize import linear_sum_assignment
from timing import start_jax

from primax.agent import training
from primax.agent.learner import make_learner
from primax.config.seeds import parse_seeds
from primax.errors import InputError
from primax.output.sheet import ABSENT, Sheet

KINDS = ("place", "codes", "encoded")
SHOWN = (2_000, 3_000, 4_000, 6_000, 10_000, 16_000)
"""Steps of the table's columns; renewals at other steps are in the files alone."""


def compared(old: np.ndarray, new: np.ndarray) -> dict[str, float | int]:
    """Of the same rows: the share that moved, and in bits what each key leaves open of the other."""
    names, a = np.unique(old, return_inverse=True)
    others, b = np.unique(new, return_inverse=True)
    table = np.zeros((len(names), len(others)), int)
    np.add.at(table, (a, b), 1)
    kept = table[linear_sum_assignment(table, maximize=True)].sum()
    both = keys.entropy(a.astype(np.int64) * len(others) + b)
    found = {
        "moved": 1.0 - kept / len(old),
        "old_given_new": both - keys.entropy(new),
        "new_given_old": both - keys.entropy(old),
    }
    # What cancels leaves a rest of about 1e-16.
    bits = {name: float(f"{max(x, 0.0):.5f}") for name, x in found.items()}
    return bits | {"old_codes": len(names), "new_codes": len(others)}


def drift(args: argparse.Namespace) -> dict[str, Any]:
    """Trains, and compares at every renewal: a window's end has the keys that it began with."""
    config = keys.configured(args.world, args.kind, args.preset, args.steps)
    learner, seeds = make_learner(config), parse_seeds(args.seeds)
    program = training.compile_program(learner, seeds)
    points, before = [], list[np.ndarray]()
    with training.multiplying(config):
        read = keys.reader(learner)
        for state, progress in training.windows(program):
            rows = keys.lived(read, state, progress.clock)
            now = [own["key"] // learner.world.num_actions for own in rows]
            start = len(before[0]) if before else 0
            if before and learner.renews(start):
                pairs = zip(seeds, before, now, strict=True)
                found = [{"seed": s} | compared(old, new[:start]) for s, old, new in pairs]
                points.append({"steps": start, "seeds": found})
                print(json.dumps(points[-1]), file=sys.stderr, flush=True)
            before = now
    about = {"world": args.world, "kind": args.kind, "preset": args.preset}
    return about | {"settings": keys.KINDS[args.kind], "points": points}


def table(files: Sequence[Path]) -> Sheet:
    """At each renewal the share of rows that moved and the bits of both sides, means over seeds."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    rows = []
    for world in keys.WORLDS:
        for kind in KINDS:
            for one in found:
                if (one["world"], one["kind"]) == (world, kind):
                    at = {point["steps"]: point for point in one["points"]}
                    rows.append((world, kind, *(_cell(at.get(x)) for x in SHOWN)))
    return Sheet("drift", "", ("world", "keys", *(f"{x / 1000:g}k" for x in SHOWN)), tuple(rows))


def _cell(point: dict[str, Any] | None) -> str:
    """The share, and the bits in brackets."""
    if point is None:
        return ABSENT
    moved, *bits = (keys.mean(point, x) for x in ("moved", "old_given_new", "new_given_old"))
    return f"{moved:.2f} ({sum(bits):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world", choices=keys.WORLDS)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--preset", default="paper", choices=("paper", "quick", "smoke"))
    parser.add_argument("--steps", type=int, help="as many as the ring holds, if not given")
    parser.add_argument("--seeds", default="100-102", help="100-102, if not given")
    parser.add_argument("--out", type=Path, required=True, help="a JSON file")
    args, began = parser.parse_args(), time.perf_counter()
    try:
        start_jax(fast=False)
        keys.written(args.out, drift(args), began)
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
