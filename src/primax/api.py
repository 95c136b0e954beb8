"""Training from Python, in memory or in a folder that survives."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from primax.agent.learner import Learner, make_learner
from primax.agent.memory import check_room
from primax.agent.training import Progress
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError
from primax.files import place
from primax.methods import Method, find_method, find_world, known_method
from primax.presets import configure
from primax.runs.cache import use_cache
from primax.runs.loop import OnWindow, Result, in_memory
from primax.runs.proceed import TIMES, Job, Listener, begin, devices_for, proceed
from primax.runs.progress import Reporter, is_watched, plain_lines
from primax.runs.read import Run, is_finished, open_run, read_manifest
from primax.runs.start import begin_program, begin_with
from primax.runs.tables import Table
from primax.runs.tracking import Tracker, about
from primax.worlds import WORLDS, World, bare_name, world_name


def train(
    method: str | Method,
    world: object,
    seeds: int | str = 15,
    preset: str = "paper",
    settings: Mapping[str, object] | None = None,
    on_window: OnWindow | Tracker | Sequence[OnWindow | Tracker] = (),
    out: str | Path | None = None,
    progress: bool | None = None,
    anyway: bool = False,
    start: str | Path | None = None,
    which: str | None = None,
    take: str = "whole",
    devices: int | str | None = None,
) -> Result:
    """Trains a method in a world, all seeds at once; see `configure` for `preset` and `settings`.

    Both may be names, or objects of your own: a `primax.Method`; a `primax.World`, or any object with
    `reset` and `step`. `seeds` is how many, from seed 0 on, or says which: "3-7" or "0,4".

    With `out` the run lives in that folder: if it is stopped or killed, the same call takes it up.
    `progress` says how it goes, on stderr or under a notebook's cell; by default where a person reads
    that. `anyway` goes on even if memory seems too small, or a folder's run was made by another
    version or device.

    `on_window` is told of every window: a `primax.tracker`, a function that takes a `Progress` (with
    `clock`, the steps so far, and the columns `episodes` and `window`), or several of these.

    `start` is another run's folder or exported file: each seed begins with the critics that seed
    has there, the `last`, the `best` by coverage or those of the `oracle` (`which`), `whole` or
    only their `trunk` (`take`).

    `devices` shares the seeds out evenly among so many, or `"all"`; a run in a folder goes on with
    as many as it had.
    """
    on_window, tracker = _heard(on_window)
    config, numbers = configure(method, world, preset, settings), parse_seeds(seeds)
    given = None
    if start is None and (which, take) != (None, "whole"):
        raise InputError("which and take are of the networks to begin with: give start too")
    if start is not None:
        config, given = begin_with(start, which, take, config, numbers, plain_lines().print)
    if out is not None:
        folder = place(out)
        _check_names(find_method(method), find_world(world)[0], config)
    use_cache()
    learner = make_learner(config, method, world)
    manifest = read_manifest(folder) if out is not None else {}
    num_on = 1
    if not is_finished(manifest):
        num_on = devices_for(devices, manifest, len(numbers))
        if not anyway:
            check_room(learner, len(numbers), num_on)
    is_told = is_watched() if progress is None else progress
    listener = replace(_listener(len(numbers), on_window, is_told), tracker=tracker)
    if out is None:
        with tracker.following(about(config, numbers), listener.on_window) as tell:
            program = begin_program(learner, numbers, given, listener.say, num_on)
            return in_memory(program, tell)
    if not (folder / "config.json").exists():
        job = begin(folder, learner, numbers, given, num_on)
    else:
        found, job = open_run(folder), Job(folder, learner, numbers, num_on)
        if (found.config, found.given_seeds) != (config, numbers):
            says = "choose another folder"
            if found.given_seeds == numbers and _is_longer(config, found):
                says = f"primax resume {folder} --steps {config.steps} makes it so long"
            raise InputError(f"{folder} holds a run of another configuration: {says}")
    proceed(job, listener, allow=frozenset(["anyway"] if anyway else []))
    return _result(open_run(folder), learner)


def _is_longer(config: Config, run: Run) -> bool:
    """Whether a configuration is a finished run's, with more steps."""
    is_same = replace(run.config, steps=config.steps) == config
    return run.is_finished and is_same and config.total_steps > run.config.total_steps


def _heard(given: object) -> tuple[OnWindow, Tracker]:
    """Whoever is to be told of windows: functions, and trackers."""
    every = given if isinstance(given, list | tuple) else [given]
    for one in every:
        if not (callable(one) or isinstance(one, Tracker)):
            raise InputError(f"on_window takes a function, got {one!r}")
    trackers = [one for one in every if isinstance(one, Tracker)]
    functions = [one for one in every if not isinstance(one, Tracker)]

    def tell(progress: Progress) -> None:
        for function in functions:
            function(progress)

    return tell, Tracker(sum((one.opens for one in trackers), ()))


def _listener(num_seeds: int, on_window: OnWindow, is_told: bool) -> Listener:
    """Whoever asked to be told, and a person at the terminal."""
    if not is_told:
        return Listener(on_window=on_window)
    console = plain_lines()
    report = Reporter(console, num_seeds)

    def tell(progress: Progress) -> None:
        report(progress)
        on_window(progress)

    return Listener(console.print, tell)


def _check_names(method: Method, kind: type[World], config: Config) -> None:
    """A folder keeps names: what has none of its own could not be read again."""
    if known_method(method.name) != method:
        raise InputError(
            f"a folder keeps a method by name: primax.METHODS[{method.name!r}] = ... first"
        )
    name = bare_name(getattr(config.world, "world_name", ""))
    if name and not name.startswith("own:"):
        return  # of a suite, or one of ours with noise beside it
    if kind not in WORLDS.values():
        how = f"primax.WORLDS['...'] = {kind.__name__}"
        if name:  # of an object with reset and step
            how = "primax.register_world('...', ...)"
        raise InputError(f"a folder keeps a world by name: {how} first")
    if WORLDS[world_name(config.world)] is not kind:
        raise InputError(f"{kind.__name__} needs options of its own: another world has the same")


def result(folder: Path) -> Result:
    """A finished run, from its folder: what training in memory would have returned."""
    run = open_run(folder)
    return _result(run, make_learner(run.config))


def _result(run: Run, learner: Learner) -> Result:
    run.check_made()
    if not run.is_finished or run.checkpoint.clock != run.config.total_steps:
        raise InputError(f"{run.path} has no whole run: primax resume {run.path} goes on with it")
    compile_s, run_s = (sum(s for s in run.seconds(name) if s is not None) for name in TIMES)
    return Result(
        config=run.config,
        seeds=run.given_seeds,
        episodes=_typed(run.as_written("episodes")),
        windows=_typed(run.as_written("windows")),
        state=run.state(learner),
        compile_s=compile_s,
        run_s=run_s,
        memory=run.manifest.get("memory", {}),
    )


def _typed(table: Table) -> Table:
    """The columns in the types they were written from."""
    kinds = {"seed": int, "episode": int, "step": int, "reach": bool}
    return {name: column.astype(kinds.get(name, np.float32)) for name, column in table.items()}
