"""Trains a method in a world, every seed in one compiled program."""

import argparse
from pathlib import Path

import jax
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax.adapters.trackers import TRACKERS, tracker
from primax.agent.devices import num_devices
from primax.agent.learner import Learner
from primax.cli.common import asked, plain_console, prepare, run_options, work_console
from primax.config.schema import TAKES, Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_range
from primax.output.sheet import clock
from primax.paper.predict import predict_run
from primax.runs.export import WHICH
from primax.runs.loop import Result, in_memory
from primax.runs.measures import over_seeds
from primax.runs.proceed import SAVE_EVERY_S, Job, Listener, begin, proceed
from primax.runs.progress import Reporter
from primax.runs.shown import waiting
from primax.runs.start import begin_program, begin_with
from primax.runs.tables import Table as Columns
from primax.runs.tracking import Tracker, about
from primax.worlds import World
from primax.worlds.exact import expected_score

LONG_S = 1_800
"""Seconds from which on a person should be told before they wait."""


def options(parser: argparse.ArgumentParser) -> None:
    run_options(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write the run's tables and checkpoints to this new folder",
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="DIR",
        help="begin each seed with the critics it has in another run's folder, or in a file of "
        "primax export",
    )
    parser.add_argument(
        "--which", help=f"of those {', '.join(WHICH)}, as in primax export (default: last)"
    )
    parser.add_argument(
        "--take",
        default="whole",
        help=f"of those {' or '.join(TAKES)}, with new output layers (default: %(default)s)",
    )
    save_option(parser)
    track_option(parser)
    devices_option(parser, "1")
    parser.set_defaults(devices="1")


def run(args: argparse.Namespace) -> None:
    check_range("--save-every", args.save_every, 0, 1e6)
    followed = tracker(args.track)
    (config, seeds), given = asked(args), None
    if args.start is not None:
        say = plain_console().print
        config, given = begin_with(args.start, args.which, args.take, config, seeds, say)
    elif (args.which, args.take) != (None, "whole"):
        raise InputError("--which and --take are of the networks to begin with: give --from too")
    devices = num_devices(args.devices, len(seeds), "--devices")
    learner = prepare(config, len(seeds), args.anyway, devices)
    console = work_console()
    announce(console, learner.config)
    warn(console, learner.config, args)
    if args.out:
        job = begin(args.out, learner, seeds, given, devices)
        in_folder(console, job, args.save_every, tracker=followed)
    else:
        result = execute(console, learner, seeds, given, devices, followed)
        console.print(summary(learner, result.episodes, seeds))


def warn(console: Console, config: Config, args: argparse.Namespace) -> None:
    """Says before it begins that a run will be long here, and that it will not be kept."""
    seconds = predict_run(config, len(parse_seeds(args.seeds)), jax.default_backend())
    if jax.default_backend() == "cpu" and seconds > LONG_S:
        how = f"about {clock(seconds)} on two cores"
        console.print(f"this will take {how}; --preset quick is made for them", soft_wrap=True)
    if not args.out:
        console.print("nothing of this run is kept: --out DIR keeps it", soft_wrap=True)


def save_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save-every",
        type=float,
        default=SAVE_EVERY_S,
        metavar="S",
        help="seconds between checkpoints (default: %(default)g)",
    )


def track_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--track",
        nargs="+",
        action="extend",
        default=[],
        metavar="TRACKER",
        help=f"show the run while it trains in {', '.join(TRACKERS)}, or several of them",
    )


def devices_option(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--devices",
        metavar="N",
        help="share the seeds out evenly among so many devices of this machine, or all (default: "
        f"{default})",
    )


def in_folder(
    console: Console,
    job: Job,
    every_s: float,
    allow: frozenset[str] = frozenset(),
    tracker: Tracker = Tracker(),  # noqa: B008 (frozen)
) -> None:
    """Runs what a folder holds, to its end, and sums it up."""
    with Reporter(console, len(job.seeds)) as reporter:
        listener = Listener(console.print, reporter, tracker=tracker)
        episodes = proceed(job, listener, every_s, allow)
    console.print(summary(job.learner, episodes, job.seeds))
    console.print(f"tables in {job.folder}")


def announce(console: Console, config: Config) -> None:
    """Says it where the steps asked for are not the steps taken."""
    if config.total_steps != config.steps:
        grid = f"a warm-up of {config.warmup:,} and windows of {config.window:,}"
        console.print(f"{config.steps:,} steps rounded up to {config.total_steps:,}: {grid}")


def execute(
    console: Console,
    learner: Learner,
    seeds: tuple[int, ...],
    given: bytes | None = None,
    devices: int = 1,
    tracker: Tracker = Tracker(),  # noqa: B008 (frozen)
) -> Result:
    """Compiles and trains, telling a person how it goes."""
    reporter = Reporter(console, len(seeds))
    with tracker.following(about(learner.config, seeds), reporter) as tell:
        program = begin_program(learner, seeds, given, console.print, devices)
        with reporter:
            return in_memory(program, tell)


def summary(learner: Learner, episodes: Columns, seeds: tuple[int, ...]) -> Table:
    """Run average, best and last rolling mean over 20 episodes; mean and std over seeds."""
    title = f"{learner.config.method} in {type(learner.world).__name__}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("", "mean", "std over seeds"):
        table.add_column(column, justify="right")
    for name, (mean, std) in over_seeds(episodes, seeds).items():
        table.add_row(name, f"{mean:.3f}", f"{std:.3f}" if np.isfinite(std) else "")
    table.caption = references(learner.world, seeds) or waiting(episodes, seeds)
    return table


def references(world: World, seeds: tuple[int, ...]) -> str:
    """What policies that learn nothing score on average over these seeds' worlds, for scale."""
    worlds = [world.for_seed(seed) for seed in seeds]
    if worlds[0] is world:  # the same for every seed
        worlds = [world]
    known = []
    for policy in ("random", "sweep"):
        scores = [expected_score(world, policy) for world in worlds]
        if None not in scores:
            known.append(f"{policy} {np.mean(np.array(scores, float)):.3f}")
    return f"for scale, by exact computation: {', '.join(known)}" if known else ""
