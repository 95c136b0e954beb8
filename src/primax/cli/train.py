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
from primax.cli.common import prepare, run_options
from primax.cli.progress import Reporter
from primax.config import Config
from primax.methods import build
from primax.worlds.exact import expected_score


def options(parser: argparse.ArgumentParser) -> None:
    run_options(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the run's tables")


def run(args: argparse.Namespace) -> None:
    config, seeds = prepare(args)
    folder = runs.create(args.out, config, seeds) if args.out else None
    console = Console()
    result = execute(console, config, seeds)
    console.print(summary(result))
    if folder:
        runs.finish(folder, result)
        console.print(f"tables in {folder}")


def execute(console: Console, config: Config, seeds: tuple[int, ...]) -> training.Result:
    """Compiles and trains, telling a person how it goes."""
    if config.total_steps != config.steps:
        grid = f"a warm-up of {config.warmup:,} and windows of {config.window:,}"
        console.print(f"{config.steps:,} steps rounded up to {config.total_steps:,}: {grid}")
    console.print(f"compiling for {len(seeds)} seeds on {jax.devices()[0].device_kind} …")
    program = training.compile_program(config, seeds)
    state, temporary = (size / 1e6 for size in program.memory.values())
    sizes = f"{state:.1f} MB of state a seed, {temporary:.0f} MB of temporaries"
    console.print(f"compiled in {program.compile_s:.1f} s; {sizes}")
    with Reporter(console, len(seeds)) as reporter:
        return training.run(config, seeds, reporter, program)


def summary(result: training.Result) -> Table:
    """Run average, best and last rolling mean over 20 episodes; mean and std over seeds."""
    title = f"{result.config.method} in {type(result.config.world).__name__.removesuffix('Config')}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("", "mean", "std over seeds"):
        table.add_column(column, justify="right")
    measures = training.measures(result.episodes, len(result.seeds))
    for name, values in dataclasses.asdict(measures).items():
        std = f"{np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        table.add_row(name, f"{np.mean(values):.3f}", std)
    table.caption = references(result.config)
    return table


def references(config: Config) -> str:
    """What policies that learn nothing score on average, for scale."""
    world, _ = build(config)
    scores = {name: expected_score(world, name) for name in ("random", "sweep")}
    known = [f"{name} {score:.3f}" for name, score in scores.items() if score is not None]
    return f"for scale, by exact computation: {', '.join(known)}" if known else ""
