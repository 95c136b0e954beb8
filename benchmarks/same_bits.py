"""Whether a change left every number alone: smoke runs of every method in every world, by hash.

    git worktree add ../before REV
    PYTHONPATH=../before/src python benchmarks/same_bits.py keep kept
    python benchmarks/same_bits.py check kept

`keep` trains with the code that PYTHONPATH names, and stops a second copy of every run half-way.
`check` trains anew with this code, takes up the stopped copies, and compares every table and the
last state with what was kept. Both must run on one machine: other processors give other bits. Cases may be named: `prime-maze`.
"""

import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from primax import METHODS, WORLDS, train
from primax.cli import main as primax
from primax.errors import RunError

FILES = ("config.json", "episodes.csv", "windows.csv", "maps.npz", "replays.jsonl")
VARIANTS = {
    "prime_nearest16": ("prime", {"reward.moments": "nearest16"}),
    "prime_knn16": ("prime", {"reward.moments": "knn16", "reward.weights": "gaussian"}),
    "prime_rnd": ("prime", {"reward.novelty": "rnd"}),
    "prime_ensemble": ("prime", {"reward.novelty": "ensemble"}),
    "prime_highest": ("prime", {"net.precision": "highest", "net.activation": "relu"}),
    "task_plain": ("task", {"critics.double": "false", "critics.heads": "3"}),
    "rnd_lived": ("rnd", {"reward.read": "lived", "reward.normaliser": "returns"}),
    "rnd_whitened": ("rnd", {"reward.whiten": "true", "reward.predictor_layers": "2"}),
}
"""Settings whose code no method runs by itself."""
CASES = {
    f"{name}-{world}": (method, world, settings)
    for world in WORLDS
    for name, (method, settings) in ({m: (m, {}) for m in METHODS} | VARIANTS).items()
    if world == "maze" or name not in VARIANTS
}


def hashes(folder: Path) -> dict[str, str]:
    """Of every table of a run and of its last state."""
    (state,) = (folder / "checkpoints").glob("*/state.npz")
    paths = {name: folder / name for name in FILES} | {"state.npz": state}
    return {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in paths.items() if p.exists()}


def keep(home: Path, names: list[str]) -> None:
    """Cases whole, as hashes, and stopped half-way, as a folder."""
    kept = {}
    for name in names:
        method, world, settings = CASES[name]
        whole, half = home / "whole" / name, home / "half" / name
        train(method, world, 2, "smoke", settings, out=whole)
        _last_checkpoint(whole)
        kept[name] = hashes(whole)
        try:
            train(method, world, 2, "smoke", settings, _stop, half)
        except RunError as stopped:
            print(name, stopped, flush=True)
    (home / "hashes.json").write_text(json.dumps(kept, indent=1) + "\n")


def _stop(progress: Any) -> None:
    """After the first window that learns, the second of four."""
    if progress.clock == 1_000:
        os.kill(os.getpid(), signal.SIGTERM)


def _last_checkpoint(folder: Path) -> None:
    for old in sorted((folder / "checkpoints").iterdir())[:-1]:
        shutil.rmtree(old)


def check(home: Path, names: list[str]) -> int:
    """How many of the kept cases, or of those named, differ."""
    kept, wrong = json.loads((home / "hashes.json").read_text()), []
    with tempfile.TemporaryDirectory() as place:
        for name in names or kept:
            method, world, settings = CASES[name]
            anew, resumed = Path(place, "anew"), Path(place, "resumed")
            train(method, world, 2, "smoke", settings, out=anew)
            shutil.copytree(home / "half" / name, resumed)
            assert primax(["resume", str(resumed), "--anyway"]) == 0, name
            for folder in (anew, resumed):
                _last_checkpoint(folder)
                found = hashes(folder)
                odd = [file for file, digest in kept[name].items() if found.get(file) != digest]
                if odd:
                    wrong.append(name)
                print(f"{name} {folder.name}: {', '.join(odd) or 'the same'}", flush=True)
                shutil.rmtree(folder)
    print(f"{len(names or kept)} cases, {len(set(wrong))} differ")
    return len(wrong)


if __name__ == "__main__":
    what, where, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if what == "keep":
        keep(where, names or list(CASES))
    else:
        sys.exit(bool(check(where, names)))
