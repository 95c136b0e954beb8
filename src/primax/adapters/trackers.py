"""TensorBoard's files, Weights & Biases and Trackio: where people look at runs while they train."""

import importlib
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from primax import files
from primax.errors import InputError, canonical, lookup
from primax.runs.tracking import About, Book, Tracker, Values

PROJECT = "primax"
"""What runs are filed under; for Weights & Biases WANDB_PROJECT goes first."""


def tracker(names: str | Sequence[str], folder: str | Path | None = None) -> Tracker:
    """Shows a run while it trains: `primax.train(..., on_window=primax.tracker("tensorboard"))`.

    By names: `tensorboard`, `wandb`, `trackio`, or several of them. What they write lies in the
    run's folder, or in `folder`; Trackio has a place of its own.
    """
    given = [names] if isinstance(names, str) else names
    if not (isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)):
        raise InputError(f"a tracker is one of {', '.join(TRACKERS)}, got {names!r}")
    home = None if folder is None else files.place(folder)
    found = {canonical(name): lookup("tracker", name, TRACKERS) for name in given}
    for library, extra, _ in found.values():
        _check_there(library, extra)
    return Tracker(tuple((name, partial(begin, home)) for name, (_, _, begin) in found.items()))


def _check_there(library: str, extra: str) -> None:
    try:
        importlib.import_module(library)
    except ImportError as error:
        raise InputError(
            f"{library} is not there ({error}): pip install 'primax-rl[{extra}]'"
        ) from error


def _tensorboard(folder: Path | None, run: About) -> Book:
    """One file of events for each part of a run.

    Written here and now: tensorboardX's SummaryWriter hands events to a thread, which a full disk
    ends without a word, and then waits for it for ever.
    """
    from tensorboardX import RecordWriter
    from tensorboardX.proto.event_pb2 import Event, SessionLog  # ty: ignore[import-not-found]
    from tensorboardX.proto.summary_pb2 import Summary  # ty: ignore[import-not-found]
    from tensorboardX.summary import hparams

    if folder is None and run.folder is not None:
        folder = run.folder / "tensorboard"
    if folder is None:
        raise InputError(
            "tensorboard needs a folder: --out DIR keeps its files with the run; in Python out=DIR, "
            "or primax.tracker('tensorboard', FOLDER)"
        )
    name = f"events.out.tfevents.{time.time():.0f}.{run.id}.{run.clock:09d}"
    file = RecordWriter(str(_made(folder) / name))

    def add(**what: Any) -> None:
        file.write(Event(wall_time=time.time(), **what).SerializeToString())

    def write(step: int, values: Values) -> None:
        told = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        add(step=step, summary=Summary(value=told))
        file.flush()

    def close(is_over: bool) -> None:
        try:
            if is_over:
                add(summary=ended)
        finally:
            file.close()

    described, begun, ended = hparams(run.config, {"episodes/score": 0.0})
    add(file_version="brain.Event:2")
    # What an earlier part wrote after the checkpoint is not to be shown.
    add(step=run.clock + 1, session_log=SessionLog(status=SessionLog.START))
    add(summary=described)
    add(summary=begun)
    file.flush()
    return Book(write, close)


def _wandb(folder: Path | None, run: About) -> Book:
    """A run of its own, beside any that the caller has; all parts of ours have one id.

    It takes no step twice. Offline it does not know what it has of earlier parts.
    """
    import wandb

    if home := folder or run.folder:
        with TemporaryFile(dir=_made(home / "wandb")):
            pass  # where that fails, wandb would write elsewhere
    made = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        dir=home,
        id=run.id,
        name=run.name,
        config=dict(run.config),
        allow_val_change=True,  # steps, of a run that was made longer
        resume="allow",
        reinit="create_new",
        settings=wandb.Settings(console="off"),  # it would take over the streams
    )

    return Book(
        lambda step, values: made.log(values, step=step, commit=True),  # else kept until the next
        lambda is_over: made.finish(exit_code=0 if is_over else 1),
        made.starting_step - 1,
    )


def _trackio(folder: Path | None, run: About) -> Book:
    """A run in Trackio's own place; parts are told by the name, which has the run's id in it."""
    import trackio

    name = f"{run.name}-{run.id}"
    made = trackio.init(PROJECT, name, config=dict(run.config), resume="allow", embed=False)
    return Book(
        lambda step, values: made.log(values, step=step),
        lambda is_over: made.finish(),
        made._next_step - 1,  # it says nowhere else what it has
    )


def _made(folder: Path) -> Path:
    """A folder, made where it is not there yet; nothing is written through a link."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a link, and links are not followed: remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    return folder.resolve()


TRACKERS: dict[str, tuple[str, str, Callable[[Path | None, About], Book]]] = {
    "tensorboard": ("tensorboardX", "track", _tensorboard),
    "wandb": ("wandb", "wandb", _wandb),
    "trackio": ("trackio", "trackio", _trackio),
}
"""By name the library, the extra that brings it, and how it begins."""
