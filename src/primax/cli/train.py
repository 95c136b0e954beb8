"""Trains a method in a world, every seed in one compiled program."""

import argparse
import dataclasses
from pathlib import Path

import jax
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax import runs, training
from primax.cli.common import plain_console, prepare, run_options
from primax.cli.progress import Reporter
from primax.config import Config
from primax.config_json import create, read_config
from primax.errors import check_range
from primax.methods import build
from primax.worlds.exact import expected_score


def options(parser: argparse.ArgumentParser) -> None:
    run_options(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="a folder for the run's tables and checkpoints"
    )
    save_option(parser)


def run(args: argparse.Namespace) -> None:
    check_range("--save-every", args.save_every, 0, 1e6)
    config, seeds = prepare(args)
    console = plain_console()
    announce(console, config)
    if args.out:
        create(args.out, config, seeds)
        in_folder(console, args.out, args.save_every)
    else:
        result = execute(console, config, seeds)
        console.print(summary(config, result.episodes, len(seeds)))


def save_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save-every",
        type=float,
        default=runs.SAVE_EVERY_S,
        metavar="S",
        help="seconds between checkpoints",
    )


def in_folder(
    console: Console, folder: Path, every_s: float, allow: frozenset[str] = frozenset()
) -> None:
    """Runs what a folder holds, to its end, and sums it up."""
    config, seeds = read_config(folder)
    with Reporter(console, len(seeds)) as reporter:
        episodes = runs.proceed(folder, console.print, reporter, every_s, allow)
    console.print(summary(config, episodes, len(seeds)))
    console.print(f"tables in {folder}")


def announce(console: Console, config: Config) -> None:
    """Says it where the steps asked for are not the steps taken."""
    if config.total_steps != config.steps:
        grid = f"a warm-up of {config.warmup:,} and windows of {config.window:,}"
        console.print(f"{config.steps:,} steps rounded up to {config.total_steps:,}: {grid}")


def execute(console: Console, config: Config, seeds: tuple[int, ...]) -> training.Result:
    """Compiles and trains, telling a person how it goes."""
    console.print(f"compiling for {len(seeds)} seeds on {jax.devices()[0].device_kind} …")
    program = training.compile_program(config, seeds)
    console.print(program.said)
    with Reporter(console, len(seeds)) as reporter:
        return training.run(config, seeds, reporter, program)


def summary(config: Config, episodes: training.Table, num_seeds: int) -> Table:
    """Run average, best and last rolling mean over 20 episodes; mean and std over seeds."""
    title = f"{config.method} in {type(config.world).__name__.removesuffix('Config')}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("", "mean", "std over seeds"):
        table.add_column(column, justify="right")
    measures = training.measures(episodes, num_seeds)
    for name, values in dataclasses.asdict(measures).items():
        std = f"{np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        table.add_row(name, f"{np.mean(values):.3f}", std)
    table.caption = references(config, np.unique(episodes["seed"]))
    return table


def references(config: Config, seeds: np.ndarray) -> str:
    """What policies that learn nothing score on average over these seeds' worlds, for scale."""
    world, _ = build(config)
    worlds = [world.for_seed(int(seed)) for seed in seeds]
    if worlds[0] is world:  # the same for every seed
        worlds = [world]
    known = []
    for policy in ("random", "sweep"):
        scores = [expected_score(world, policy) for world in worlds]
        if None not in scores:
            known.append(f"{policy} {np.mean(np.array(scores, float)):.3f}")
    return f"for scale, by exact computation: {', '.join(known)}" if known else ""
