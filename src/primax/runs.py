"""A training run that lives in a folder: it can be killed at any moment and taken up again."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from primax import folder as disk
from primax import records, snapshot, training
from primax.config import Config
from primax.config_json import read_config, to_bytes, unsaid
from primax.errors import InputError, RunError, StoppedError
from primax.provenance import SAME_RUN, provenance
from primax.stops import disk_errors, interrupts, locked
from primax.tables import Table, csv_rows, read_table

Say = Callable[[str], None]
OnWindow = Callable[[training.Progress], None]
IsAsked = Callable[[], bool]
SAVE_EVERY_S = 120.0
"""Seconds between checkpoints."""
TIMES = ("compile_s", "run_s")
"""What a part of a run took."""


@dataclass(frozen=True)
class Run:
    """What is to be done, and whom to tell."""

    folder: Path
    config: Config
    seeds: tuple[int, ...]
    say: Say
    on_window: OnWindow
    every_s: float
    is_asked: IsAsked | None


def proceed(
    folder: Path,
    say: Say,
    on_window: OnWindow,
    every_s: float = SAVE_EVERY_S,
    allow: frozenset[str] = frozenset(),
    is_asked: IsAsked | None = None,
) -> Table:
    """Starts the run in a folder, or takes it up where it stopped; returns its episodes.

    `allow` may name `anyway` (go on although the machine differs) and `restart` (begin again).
    `is_asked` says whether to stop, where someone else listens to signals.
    """
    run = Run(folder, *read_config(folder), say, on_window, every_s, is_asked)
    if "finished" in read_manifest(folder):
        episodes = read_table(folder / "episodes.csv")
        say(f"{folder} is finished")  # and may be read-only: it is not even locked
        return episodes
    with locked(folder):
        manifest = read_manifest(folder)  # anew: whoever held the lock may have finished
        if "finished" not in manifest:
            _check_said(folder)
            with disk_errors(folder):
                _work(run, _recover(run, manifest, allow), manifest)
        return read_table(folder / "episodes.csv")


def _check_said(folder: Path) -> None:
    """Refuses to go on with a run of another version, some of whose settings are not known."""
    path = folder / "config.json"
    if gone := unsaid(json.loads(path.read_text(encoding="utf-8"))):
        raise InputError(f"{path} does not say {', '.join(gone)}: it is of another version")


def _recover(run: Run, manifest: dict, allow: frozenset[str]) -> tuple[Any, int] | None:
    """The state and clock to go on from; None at the beginning. Cuts the tables back to there."""
    folder, say = run.folder, run.say
    reached = _reached(folder)
    checkpoint, damaged = disk.load(folder)
    for reason in damaged:
        say(f"a checkpoint cannot be used: {reason}")
    if checkpoint is None:
        if disk.is_packed(folder):
            raise InputError(f"{folder} is a packed run: it can be read, and not resumed")
        # Without a manifest it was through, or nearly: what is left is not thrown away unasked.
        is_old = not manifest and (folder / "maps.npz").exists()
        if (damaged or is_old) and "restart" not in allow:
            raise InputError(f"{folder} has no usable checkpoint; resume --restart begins it again")
        disk.clear(folder)
        say("starting at step 0")
        clock, start = 0, None
    else:
        if checkpoint.about["config"] != _config_hash(folder):
            raise InputError(f"{folder / 'config.json'} was changed since the last checkpoint")
        _same_machine(checkpoint.about["provenance"], "anyway" in allow)
        disk.rewind(folder, checkpoint)
        like = training.state_like(run.config, run.seeds)
        state = snapshot.restore(checkpoint.state, like)
        clock, start = checkpoint.clock, (state, checkpoint.clock)
        say(f"going on from step {clock:,}")
    manifest["recomputed_steps"] = manifest.get("recomputed_steps", 0) + max(0, reached - clock)
    return start


def _config_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()


def _same_machine(then: dict[str, Any], anyway: bool) -> None:
    """Refuses to go on where bits would differ from an uninterrupted run, unless told to."""
    now = provenance()
    odd = [
        f"{name} was {then.get(name)!r}, is {now[name]!r}"
        for name in SAME_RUN
        if then.get(name) != now[name]
    ]
    if odd and not anyway:
        raise InputError(
            f"this run was made elsewhere: {'; '.join(odd)}; --anyway goes on all the same"
        )


def _work(run: Run, start: tuple[Any, int] | None, manifest: dict[str, Any]) -> None:
    """Does what is left, keeping account in the manifest of every part a run was made in."""
    part: dict[str, Any] = {"command": _command(), "started": _now()}
    part["from_step"] = start[1] if start else 0
    manifest.setdefault("parts", []).append(part)
    manifest |= {**provenance(), "steps": run.config.total_steps, "seeds": len(run.seeds)}
    disk.write_whole(run.folder / "manifest.json", to_bytes(manifest))
    if part["from_step"] < run.config.total_steps:
        run.say(f"compiling for {len(run.seeds)} seeds on {jax.devices()[0].device_kind} …")
        program = training.compile_program(run.config, run.seeds)
        run.say(program.said)
        manifest["memory"] = program.memory
        began = time.monotonic()
        try:
            _windows(run, training.steps(run.config, run.seeds, program, start))
        except StoppedError:
            part |= _times(program, began)
            disk.write_whole(run.folder / "manifest.json", to_bytes(manifest))
            raise
        part |= _times(program, began)
    disk.keep_only(run.folder, disk.FINAL)
    disk.write_whole(run.folder / "manifest.json", to_bytes(manifest | {"finished": _now()}))


def _times(program: training.Program, began: float) -> dict[str, float]:
    """What a part took."""
    seconds = (program.compile_s, time.monotonic() - began)
    return {name: round(s, 2) for name, s in zip(TIMES, seconds, strict=True)}


def _windows(run: Run, steps: Iterable[tuple[Any, training.Progress]]) -> None:
    """Puts every window on the disk: rows first, then now and then a checkpoint."""
    folder = run.folder
    about = {"provenance": provenance(), "config": _config_hash(folder)}
    saved = time.monotonic()
    listening = nullcontext(run.is_asked) if run.is_asked else interrupts()
    with listening as is_asked:
        for state, progress in steps:
            check_finite(folder, progress)
            for name, rows in _rows(run, state, progress).items():
                if rows:
                    disk.append(folder / name, rows)
            run.on_window(progress)
            is_last, is_stopped = progress.clock == progress.total, is_asked()
            if is_last:
                disk.write_whole(folder / "maps.npz", records.packed_maps(folder / "maps.raw"))
            if is_last or is_stopped or time.monotonic() - saved >= run.every_s:
                tables = disk.FINAL if is_last else disk.TABLES
                write = partial(snapshot.write, tree=state)
                disk.save(folder, progress.clock, write, about, tables)
                saved = time.monotonic()
            if is_stopped and not is_last:
                stopped = f"stopped at step {progress.clock:,}"
                raise StoppedError(f"{stopped}; primax resume {folder} goes on")


def _rows(run: Run, state: Any, progress: training.Progress) -> dict[str, bytes]:
    """What a window adds to every table."""
    rows = {
        name: csv_rows(table, not (run.folder / name).exists()) if table else b""
        for name, table in (("episodes.csv", progress.episodes), ("windows.csv", progress.window))
    }
    rows["maps.raw"] = records.map_rows(run.seeds, progress.clock, progress.maps)
    rows["replays.jsonl"] = records.replay_lines(run.config, run.seeds, progress.clock, state)
    return rows


def check_finite(folder: Path, progress: training.Progress) -> None:
    """Stops at the first number that is none, naming window, seed and quantity."""
    for name, column in progress.window.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            seed = progress.window["seed"][bad[0]]
            raise RunError(
                f"{name} of seed {seed} is {column[bad[0]]} in the window that ends at step "
                f"{progress.clock:,}; the checkpoint before it is kept in {folder}"
            )


def read_manifest(folder: Path) -> dict[str, Any]:
    """What is known of how a run was made; empty before it began."""
    path = folder / "manifest.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (ValueError, TypeError) as error:
        says = "remove it to resume from the newest checkpoint"
        if disk.is_packed(folder):
            says = "restore it from a copy"
        raise InputError(f"{path} is damaged: {says}") from error


def _reached(folder: Path) -> int:
    """The last step the tables tell of, whole lines only."""
    path = folder / "episodes.csv"
    lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
    return int(lines[-1].split(b",")[2]) if lines else 0


def _command() -> str:
    """What started this process."""
    path = Path(sys.argv[0])
    program = path.parent.name if path.name == "__main__.py" else path.name
    return " ".join([program, *sys.argv[1:]])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
