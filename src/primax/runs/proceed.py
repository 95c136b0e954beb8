"""A training run that lives in a folder: it can be killed at any moment and taken up again."""

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from primax import files
from primax.agent.devices import num_devices, seed_sharding
from primax.agent.learner import Learner, make_learner
from primax.agent.training import Program, Progress, state_like
from primax.config.schema import Config
from primax.errors import InputError, RunError, StoppedError
from primax.runs import checkpoints, disk, records, trees
from primax.runs.config_json import create, to_bytes
from primax.runs.loop import OnWindow, Say, loop
from primax.runs.provenance import differences, provenance
from primax.runs.read import Run, devices_in, is_finished, open_run, reached, read_manifest
from primax.runs.start import FILE as START
from primax.runs.start import begin_program, networks
from primax.runs.stops import disk_errors, interrupts, locked
from primax.runs.tables import FURTHEST, Table, csv_rows, digest_of
from primax.runs.tracking import Tracker, about_folder

IsAsked = Callable[[], bool]
SAVE_EVERY_S = 120.0
"""Seconds between checkpoints."""
TIMES = ("compile_s", "run_s")
"""What a part of a run took."""


@dataclass(frozen=True)
class Job:
    """A run's folder, and what was built from its configuration."""

    folder: Path
    learner: Learner
    seeds: tuple[int, ...]
    devices: int = 1
    """How many the seeds are shared out among."""

    @property
    def provenance(self) -> dict[str, Any]:
        """What makes the numbers here and now."""
        return provenance() | {"devices": self.devices}

    @property
    def config(self) -> Config:
        return self.learner.config


@dataclass(frozen=True)
class Listener:
    """Whom a run tells of what it does, and who may stop it."""

    say: Say = lambda line: None
    on_window: OnWindow = lambda progress: None
    is_asked: IsAsked | None = None
    """Whether to stop, where someone else listens to signals."""
    tracker: Tracker = field(default_factory=Tracker)
    """What other people's programs are told."""


def begin(
    folder: Path,
    learner: Learner,
    seeds: tuple[int, ...],
    start: bytes | None = None,
    devices: int = 1,
) -> Job:
    """A new run: its folder is made and its configuration written before anything costs time.

    `start` holds the networks it begins with, where they are not new.
    """
    if start is not None:
        networks(start, learner, seeds)  # refused here, where they do not fit
    create(folder, learner.config, seeds, {} if start is None else {START: start})
    return Job(folder, learner, seeds, devices)


def reopen(folder: Path, devices: int = 1) -> Job:
    """The run a folder holds."""
    run = open_run(folder)
    return Job(folder, make_learner(run.config), run.given_seeds, devices)


def proceed(
    job: Job,
    listener: Listener = Listener(),  # noqa: B008 (frozen)
    every_s: float = SAVE_EVERY_S,
    allow: frozenset[str] = frozenset(),
) -> Table:
    """Starts the run in a folder, or takes it up where it stopped; returns its episodes.

    `allow` may name `anyway` (go on although the machine differs) and `restart` (begin again).
    """
    folder = job.folder
    if is_finished(read_manifest(folder)):
        episodes = open_run(folder).as_written("episodes")
        listener.say(f"{folder} is finished")  # and may be read-only: it is not even locked
        return episodes
    with locked(folder):
        manifest = read_manifest(folder)  # anew: whoever held the lock may have finished
        if not is_finished(manifest):
            _check_unchanged(job)
            with disk_errors(folder):
                start = _recover(job, manifest, listener.say, allow)
                _work(job, listener, every_s, start, manifest)
        return open_run(folder).as_written("episodes")


def _check_unchanged(job: Job) -> None:
    """Refuses a run whose settings are not all known, or that somebody has made longer since."""
    run = open_run(job.folder)
    check_said(run)
    if run.config.total_steps != job.config.total_steps:
        raise InputError(f"{run.path} has other steps by now: primax resume {run.path} goes on")


def check_said(run: Run) -> None:
    """Refuses to go on with a run of another version, some of whose settings are not known."""
    if gone := run.unsaid:
        raise InputError(
            f"{run.path / 'config.json'} has no value for {', '.join(gone)}, because another version "
            "of Primax wrote it: resume it with that version, or train it again"
        )


def extensions(manifest: dict[str, Any], end: int = FURTHEST) -> list[dict[str, Any]]:
    """Where before `end` a run was made longer, with digests of config.json before and after."""
    listed = manifest.get("extended")
    notes = [note for note in listed if isinstance(note, dict)] if isinstance(listed, list) else []
    return [
        note for note in notes if type(note.get("from_step")) is int and note["from_step"] < end
    ]


def _recover(
    job: Job, manifest: dict[str, Any], say: Say, allow: frozenset[str]
) -> tuple[Any, int] | None:
    """The state and clock to go on from; None at the beginning. Cuts the tables back to there."""
    folder = job.folder
    told = reached(folder)
    checkpoint, damaged = checkpoints.load(folder)
    for reason in damaged:
        say(f"a checkpoint cannot be used: {reason}")
    if checkpoint is None:
        if disk.is_packed(folder):
            raise InputError(f"{folder} is a packed run: it can be read, but not resumed")
        # Without a manifest it was through, or nearly: what is left is not thrown away unasked.
        is_old = not manifest and (folder / "maps.npz").exists()
        if (damaged or is_old) and "restart" not in allow:
            raise InputError(
                f"{folder} has no usable checkpoint; resume --restart begins it again at step 0"
            )
        checkpoints.clear(folder)
        say("starting at step 0")
        clock, start = 0, None
    else:
        _check_config(folder, checkpoint, extensions(manifest))
        same_machine(checkpoint.about.get("provenance", {}), job, "anyway" in allow)
        checkpoints.rewind(folder, checkpoint)
        if "maps.npz" in checkpoint.about["tables"] and checkpoint.clock < job.config.total_steps:
            _take_up(job, checkpoint)
        like = state_like(job.learner, len(job.seeds), seed_sharding(job.devices))
        state = trees.restore(checkpoint.state, like)
        clock, start = checkpoint.clock, (state, checkpoint.clock)
        say(f"going on from step {clock:,}")
    again = manifest.get("recomputed_steps")
    again = again if isinstance(again, int) else 0
    manifest["recomputed_steps"] = again + max(0, told - clock)
    return start


def config_hash(folder: Path) -> str:
    return digest_of(files.read(folder / "config.json"))


def _check_config(
    folder: Path, checkpoint: checkpoints.Checkpoint, notes: list[dict[str, Any]]
) -> None:
    """Refuses a checkpoint of another configuration, but for the one that was made longer."""
    theirs, ours = checkpoint.about.get("config"), config_hash(folder)
    is_before = any(
        (note.get("before"), note.get("after")) == (theirs, ours)
        and checkpoint.clock <= note["from_step"]
        for note in notes
    )
    if theirs != ours and not is_before:
        raise InputError(f"{folder / 'config.json'} was changed since the last checkpoint")


def _take_up(job: Job, checkpoint: checkpoints.Checkpoint) -> None:
    """Makes the last checkpoint of a finished run one of a run that goes on, with maps.raw.

    Only then may maps.npz go: the new one, written before the next checkpoint, would take its place.
    """
    folder = job.folder
    if (folder / "maps.npz").exists():  # a world without a grid has no maps
        raw = records.unpacked_maps(folder / "maps.npz", job.seeds)
        disk.write_whole(folder / "maps.raw", raw)
    checkpoints.amend(folder, checkpoint, {"config": config_hash(folder)})
    disk.keep_only(folder, disk.TABLES)


def devices_for(
    given: int | str | None, manifest: dict[str, Any], num_seeds: int, name: str = "devices"
) -> int:
    """How many a run is to have: as many as a person asks for, else as many as it had."""
    if given is not None:
        return num_devices(given, num_seeds, name)
    before = devices_in(manifest)
    try:
        return num_devices(before, num_seeds, name)
    except InputError as error:
        fewer = f"{name} takes another number, with which the run is no longer the same to the bit"
        raise InputError(f"this run has {error}; {fewer}") from error


def same_machine(then: dict[str, Any], job: Job, anyway: bool) -> None:
    """Refuses to go on where bits would differ from an uninterrupted run, unless told to."""
    odd, num = differences(then, provenance()), len(job.seeds)
    if (before := devices_in(then)) != job.devices:
        widths = f"{num // before} seeds a device are now {num // job.devices}"
        odd.append(
            f"devices was {before}, is now {job.devices}: {widths}, which rounds differently"
        )
    if odd and not anyway:
        raise InputError(
            "this run was made with another version, device or flags, so the rest may not be the same "
            f"to the bit: {'; '.join(odd)}; --anyway continues all the same"
        )


def _work(
    job: Job,
    listener: Listener,
    every_s: float,
    start: tuple[Any, int] | None,
    manifest: dict[str, Any],
) -> None:
    """Does what is left, keeping account in the manifest of every part a run was made in."""
    part: dict[str, Any] = {"command": _command(), "started": _now()}
    part["from_step"] = start[1] if start else 0
    before = manifest.get("parts")
    manifest["parts"] = [*(before if isinstance(before, list) else ()), part]
    manifest |= {**job.provenance, "steps": job.config.total_steps, "seeds": len(job.seeds)}
    if "extended" in manifest:  # the last may have been noted, and not begun
        manifest["extended"] = extensions(manifest, job.config.total_steps)
    disk.write_whole(job.folder / "manifest.json", to_bytes(manifest))
    if part["from_step"] < job.config.total_steps:
        first = next(part for part in manifest["parts"] if isinstance(part, dict))
        run = about_folder(job.folder, job.config, job.seeds, first, part["from_step"])
        with listener.tracker.following(run, listener.on_window) as on_window:
            _train(job, replace(listener, on_window=on_window), every_s, start, manifest)
    disk.keep_only(job.folder, disk.FINAL)
    there = [name for name in ("config.json", *disk.FINAL) if (job.folder / name).exists()]
    digests = {name: disk.length_and_hash(job.folder / name)[1] for name in there}
    whole = manifest | {"files": digests, "finished": _now()}
    disk.write_whole(job.folder / "manifest.json", to_bytes(whole))


def _train(
    job: Job,
    listener: Listener,
    every_s: float,
    start: tuple[Any, int] | None,
    manifest: dict[str, Any],
) -> None:
    """Compiles the run and trains to its end; of the part it is, the last, it says what it took."""
    source = job.folder / START if start is None and job.config.start else None
    program = begin_program(job.learner, job.seeds, source, listener.say, job.devices)
    manifest["memory"] = program.memory
    part, began = manifest["parts"][-1], time.monotonic()
    listening = nullcontext(listener.is_asked) if listener.is_asked else interrupts()
    try:
        with listening as is_asked:
            loop(program, [_Keeper(job, listener.on_window, every_s, is_asked).keep], start)
    except StoppedError:
        part |= _times(program, began)
        disk.write_whole(job.folder / "manifest.json", to_bytes(manifest))
        raise
    except RunError as error:
        kept = f"the checkpoint before it is kept in {job.folder}"
        raise RunError(f"{error}; {kept}") from error
    part |= _times(program, began)


def _times(program: Program, began: float) -> dict[str, float]:
    """What a part took."""
    seconds = (program.compile_s, time.monotonic() - began)
    return {name: round(s, 2) for name, s in zip(TIMES, seconds, strict=True)}


class _Keeper:
    """Puts every window on the disk: rows first, then now and then a checkpoint."""

    def __init__(self, job: Job, on_window: OnWindow, every_s: float, is_asked: IsAsked):
        self.job, self.on_window, self.every_s, self.is_asked = job, on_window, every_s, is_asked
        self.about = {"provenance": job.provenance, "config": config_hash(job.folder)}
        self.saved = time.monotonic()

    def keep(self, state: Any, progress: Progress) -> None:
        folder = self.job.folder
        for name, rows in _rows(self.job, state, progress).items():
            if rows:
                disk.append(folder / name, rows)
        self.on_window(progress)
        is_last, is_stopped = progress.clock == progress.total, self.is_asked()
        if is_last and (folder / "maps.raw").exists():
            disk.write_whole(folder / "maps.npz", records.packed_maps(folder / "maps.raw"))
        if is_last or is_stopped or time.monotonic() - self.saved >= self.every_s:
            tables = disk.FINAL if is_last else disk.TABLES
            write = partial(trees.write, tree=state)
            checkpoints.save(folder, progress.clock, write, self.about, tables)
            self.saved = time.monotonic()
        if is_stopped and not is_last:
            stopped = f"stopped at step {progress.clock:,}"
            raise StoppedError(f"{stopped}; primax resume {folder} goes on with it")


def _rows(job: Job, state: Any, progress: Progress) -> dict[str, bytes]:
    """What a window adds to every table."""
    rows = {
        name: csv_rows(table, not (job.folder / name).exists()) if table else b""
        for name, table in (("episodes.csv", progress.episodes), ("windows.csv", progress.window))
    }
    rows["maps.raw"] = records.map_rows(job.seeds, progress.clock, progress.maps)
    rows["replays.jsonl"] = records.replay_lines(job.config, job.seeds, progress.clock, state)
    return rows


def _command() -> str:
    """What started this process."""
    path = Path(sys.argv[0])
    program = path.parent.name if path.name == "__main__.py" else path.name
    text = " ".join([program, *sys.argv[1:]])
    return text.encode("utf-8", "replace").decode()  # a name may be no text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
