"""A training run that lives in a folder: it can be killed at any moment and taken up again."""

import csv
import hashlib
import io
import json
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

from primax import folder as disk
from primax import snapshot, training
from primax.config import Config, CriticsConfig, ExploreConfig, NetConfig
from primax.errors import InputError, RunError
from primax.methods import METHODS, world_name
from primax.provenance import SAME_RUN, provenance
from primax.worlds import WORLDS

Say = Callable[[str], None]


def create(folder: Path, config: Config, seeds: tuple[int, ...]) -> None:
    """Makes the folder and puts the configuration on the disk, before anything costs time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "config.json").exists():
            raise InputError(f"{folder} holds a run: primax resume {folder} goes on with it")
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: choose another --out, or remove it")
        disk.write_whole(folder / "config.json", _json(as_json(config, seeds)))
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error


def as_json(config: Config, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The resolved configuration, with the world's and the seeds' names."""
    content = asdict(config)
    content["world"] = {"name": world_name(config.world), **content["world"]}
    return {**content, "seeds": list(seeds)}


def read_config(folder: Path) -> tuple[Config, tuple[int, ...]]:
    """The configuration and the seeds a folder was made for."""
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        seeds = tuple(content.pop("seeds"))
        world = content.pop("world")
        options = WORLDS[world.pop("name")][1](**world)
        groups = {"net": NetConfig, "critics": CriticsConfig, "explore": ExploreConfig}
        content |= {name: group(**content[name]) for name, group in groups.items()}
        content["reward"] = METHODS[content["method"]].options(**content["reward"])
        return Config(world=options, **content), seeds
    except OSError as error:
        raise InputError(f"{folder} holds no run: {path.name} cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a configuration of this version: {error}") from error


def proceed(
    folder: Path,
    say: Say,
    on_window: Callable[[training.Progress], None],
    every_s: float = 60.0,
    allow: frozenset[str] = frozenset(),
) -> training.Table:
    """Starts the run in a folder, or takes it up where it stopped; returns its episodes.

    `allow` may name `anyway` (go on although the machine differs) and `restart` (begin again).
    """
    config, seeds = read_config(folder)
    with disk.locked(folder):
        manifest = _manifest(folder)
        if "finished" in manifest:
            say(f"{folder} is finished")
            return read_table(folder / "episodes.csv")
        with _disk_errors(folder):
            start = _recover(folder, (config, seeds), manifest, say, allow)
            _work(folder, config, seeds, start, manifest, (say, on_window, every_s))
        return read_table(folder / "episodes.csv")


def _recover(
    folder: Path,
    what: tuple[Config, tuple[int, ...]],
    manifest: dict,
    say: Say,
    allow: frozenset[str],
) -> tuple[Any, int] | None:
    """The state and clock to go on from; None at the beginning. Cuts the tables back to there."""
    reached = _reached(folder)
    checkpoint, damaged = disk.load(folder)
    for reason in damaged:
        say(f"a checkpoint cannot be used: {reason}")
    if checkpoint is None:
        if damaged and "restart" not in allow:
            raise InputError(f"{folder} has no usable checkpoint; resume --restart begins it again")
        disk.clear(folder)
        say("starting at step 0")
        clock, start = 0, None
    else:
        if checkpoint.about["config"] != _config_hash(folder):
            raise InputError(f"{folder / 'config.json'} was changed since the last checkpoint")
        _same_machine(checkpoint.about["provenance"], "anyway" in allow)
        disk.rewind(folder, checkpoint)
        state = snapshot.restore(checkpoint.state, training.state_like(*what))
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
        f"{name} was {then[name]!r}, is {now[name]!r}"
        for name in SAME_RUN
        if then[name] != now[name]
    ]
    if odd and not anyway:
        raise InputError(
            f"this run was made elsewhere: {'; '.join(odd)}; --anyway goes on all the same"
        )


def _work(
    folder: Path, config: Config, seeds: tuple[int, ...], start: Any, manifest: dict, how: tuple
) -> None:
    """Compiles and runs, keeping account in the manifest of every part a run was made in."""
    say, on_window, every_s = how
    part: dict[str, Any] = {"command": " ".join(["primax", *sys.argv[1:]]), "started": _now()}
    part["from_step"] = start[1] if start else 0
    manifest.setdefault("parts", []).append(part)
    manifest |= provenance()
    disk.write_whole(folder / "manifest.json", _json(manifest))
    say(f"compiling for {len(seeds)} seeds on {jax.devices()[0].device_kind} …")
    program = training.compile_program(config, seeds)
    say(program.said)
    began = time.monotonic()
    _windows(folder, training.steps(config, seeds, program, start), on_window, every_s)
    part |= {"compile_s": round(program.compile_s, 2), "run_s": round(time.monotonic() - began, 2)}
    manifest |= {"steps": config.total_steps, "seeds": len(seeds), "memory": program.memory}
    disk.write_whole(folder / "manifest.json", _json(manifest | {"finished": _now()}))


def _windows(
    folder: Path,
    steps: Iterable[tuple[Any, training.Progress]],
    on_window: Callable[[training.Progress], None],
    every_s: float,
) -> None:
    """Puts every window on the disk: rows first, then now and then a checkpoint."""
    about = {"provenance": provenance(), "config": _config_hash(folder)}
    saved = time.monotonic()
    with _interrupts() as is_asked:
        for state, progress in steps:
            check_finite(folder, progress)
            for name, table in zip(disk.TABLES, (progress.episodes, progress.window), strict=True):
                if table:
                    disk.append(folder / name, csv_rows(table, not (folder / name).exists()))
            on_window(progress)
            is_last, is_stopped = progress.clock == progress.total, is_asked()
            if is_last or is_stopped or time.monotonic() - saved >= every_s:
                disk.save(folder, progress.clock, snapshot.dump(state), about)
                saved = time.monotonic()
            if is_stopped and not is_last:
                stopped = f"stopped at step {progress.clock:,}"
                raise RunError(f"{stopped}; primax resume {folder} goes on")


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


@contextmanager
def _interrupts() -> Generator[Callable[[], bool]]:
    """Turns Ctrl-C, and the signal a scheduler sends, into a question asked between windows."""
    asked = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda *_: asked.append(True)) for kind in kinds]
    try:
        yield lambda: bool(asked)
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def _disk_errors(folder: Path) -> Generator[None]:
    """A full or failing disk, or Ctrl-C while compiling, in one line."""
    try:
        yield
    except KeyboardInterrupt:
        raise RunError(f"stopped; primax resume {folder} goes on") from None
    except OSError as error:
        kept = f"what was saved in {folder} is intact; primax resume {folder} goes on from it"
        raise RunError(f"cannot write: {error.strerror or error}; {kept}") from error


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path} is damaged: remove it to resume from the newest checkpoint"
        ) from error


def _reached(folder: Path) -> int:
    """The last step the tables tell of, whole lines only."""
    path = folder / "episodes.csv"
    lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
    return int(lines[-1].split(b",")[2]) if lines else 0


def csv_rows(table: training.Table, has_header: bool) -> bytes:
    """Columns as CSV; floats with the digits that give the same float32 back, no clocks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if has_header:
        writer.writerow(table)
    writer.writerows(zip(*(_texts(column) for column in table.values()), strict=True))
    return text.getvalue().encode()


def _texts(column: np.ndarray) -> list[str]:
    if column.dtype == bool:
        return [str(int(value)) for value in column]
    if np.issubdtype(column.dtype, np.floating):
        return ["" if np.isnan(value) else str(value) for value in column.astype(np.float32)]
    return [str(value) for value in column]


def read_table(path: Path) -> training.Table:
    """A table as columns of numbers."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        columns = zip(*rows, strict=True)
        return {
            name: np.array([float(value or "nan") for value in column])
            for name, column in zip(header, columns, strict=True)
        }
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not the table a run writes: {error}") from error


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
