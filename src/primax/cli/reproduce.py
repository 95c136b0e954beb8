"""Runs what the paper's tables and figures need, then writes them, with a scorecard and the \
paper's claims tested. What is finished is not run again; what was stopped is taken up."""

import argparse
import time
from pathlib import Path

import jax
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax.cli.common import SAME_BITS, plain_console, start_jax
from primax.cli.progress import Reporter
from primax.paper import reproduce
from primax.paper.drawing import matplotlib
from primax.paper.evidence import Runs
from primax.paper.experiments import SCALES, select
from primax.paper.reproduce import ABSENT, HALFWAY, TO_RUN, Home, Task
from primax.paper.write import write_all


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", default="smoke", help=f"{', '.join(SCALES)} (smoke)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a cell, a variant, a table or a figure; may be given again",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction"), metavar="DIR", help="where all of it goes"
    )
    parser.add_argument(
        "--runs", type=Path, metavar="DIR", help="where the runs' folders are (OUT/runs)"
    )
    parser.add_argument("--plan", action="store_true", help="say what there is to do, and stop")
    parser.add_argument(
        "--no-run", action="store_true", help="write from the runs that are there, and run nothing"
    )


def run(args: argparse.Namespace) -> None:
    console = plain_console()
    home = reproduce.open_home(args.out, args.scale, args.runs)
    cells = select(args.only)
    matplotlib()  # before hours of work, not after
    start_jax(" ".join(SAME_BITS))
    if args.plan or not args.no_run:
        tasks = reproduce.plan(home, cells, jax.default_backend())
        if args.plan:
            console.print(_table(tasks))
            return
        reproduce.begin(home)
        _work(console, home, [task for task in tasks if task.state in (TO_RUN, HALFWAY)])
        _say_absent(console, tasks)
    write_all(Runs.under(home.runs), args.out, console.print)
    console.print(f"read {args.out / 'index.md'}, {args.out / 'scorecard.md'} and claims.md")


def _work(console: Console, home: Home, tasks: list[Task]) -> None:
    """One cell after another; says how far the whole is and what is left of it."""
    if not tasks:
        console.print("nothing to run: every run that was asked for and can be made is finished")
    total, done, began = sum(task.seconds for task in tasks), 0.0, time.monotonic()
    for i, task in enumerate(tasks, 1):
        pace = (time.monotonic() - began) / done if done else 1.0
        left = _clock(pace * (total - done))
        console.print(f"[{i} of {len(tasks)}] {task.cell.name}, {task.state}; about {left} left")
        with Reporter(console, len(task.cell.seeds(home.scale))) as reporter:
            reproduce.work(home, task, console.print, reporter)
        done += task.seconds


def _say_absent(console: Console, tasks: list[Task]) -> None:
    absent = [task.cell.name for task in tasks if task.state == ABSENT]
    if absent:
        console.print(f"not available yet: {', '.join(absent)}")


def _table(tasks: list[Task]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("cell", no_wrap=True)
    table.add_column("settings")
    table.add_column("state", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("feeds")
    for task in tasks:
        variant = task.cell.variant
        changes = [f"{name}={value}" for name, value in variant.settings.items()]
        settings = " ".join([variant.method, *changes])
        seconds = f"{task.seconds:,.0f}" if task.seconds else ""
        table.add_row(task.cell.name, settings, task.state, seconds, _short(variant.feeds))
    total = sum(task.seconds for task in tasks)
    rates = "from rates measured on an H200"
    if jax.default_backend() == "cpu":
        rates = "a rough prediction: cores differ and are shared"
    table.caption = f"about {_clock(total)} in all on {jax.devices()[0].device_kind}, {rates}"
    return table


def _short(feeds: tuple[str, ...]) -> str:
    """T5 is table 5, F1 figure 1."""
    names = (name.replace("table", "T").replace("figure", "F") for name in feeds)
    return " ".join(name for name in names if name not in ("scorecard", "claims"))


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
