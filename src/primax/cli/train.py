"""Trains a method in a world, every seed in one compiled program."""

import argparse
import dataclasses
from pathlib import Path

import jax
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax import runs, train
from primax.cli.progress import Reporter
from primax.methods import METHODS, PRESETS, parse_seeds
from primax.settings import parse_pairs
from primax.worlds import WORLDS


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", help=", ".join(METHODS))
    parser.add_argument("world", help=", ".join(WORLDS))
    parser.add_argument(
        "--seeds", default="15", help="how many (15), a range (0-4) or a list (3,7)"
    )
    parser.add_argument("--steps", type=int, help="environment steps a seed takes")
    parser.add_argument("--preset", default="paper", help=", ".join(PRESETS))
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="FIELD=VALUE", help="any field; see primax list"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the run's tables")


def run(args: argparse.Namespace) -> None:
    settings = parse_pairs(args.set)
    if args.steps is not None:
        settings["steps"] = str(args.steps)
    config = train.configure(args.method, args.world, args.preset, settings)
    seeds = parse_seeds(args.seeds)
    folder = runs.create(args.out, config, seeds) if args.out else None
    console = Console()
    if config.total_steps != config.steps:
        grid = f"a warm-up of {config.warmup:,} and windows of {config.window:,}"
        console.print(f"{config.steps:,} steps rounded up to {config.total_steps:,}: {grid}")
    console.print(f"compiling for {len(seeds)} seeds on {jax.devices()[0].device_kind} …")
    program = train.compile_program(config, seeds)
    console.print(f"compiled in {program.compile_s:.1f} s")
    with Reporter(console, len(seeds)) as reporter:
        result = train.run(config, seeds, reporter, program)
    console.print(summary(result))
    if folder:
        runs.finish(folder, result)
        console.print(f"tables in {folder}")


def summary(result: train.Result) -> Table:
    """Run average, best and last rolling mean over 20 episodes; mean and std over seeds."""
    title = f"{result.config.method} in {type(result.config.world).__name__.removesuffix('Config')}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for column in ("", "mean", "std over seeds"):
        table.add_column(column, justify="right")
    measures = train.measures(result.episodes, len(result.seeds))
    for name, values in dataclasses.asdict(measures).items():
        std = f"{np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        table.add_row(name, f"{np.mean(values):.3f}", std)
    return table
