"""Runs what the paper's tables and figures need, then writes them, with a scorecard and the \
paper's claims tested. Finished runs are not run again; stopped runs are continued."""

import argparse
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import jax
from rich.console import Console

from primax.agent.training import Progress
from primax.cli import study
from primax.cli.common import SAME_BITS, start_jax, work_console
from primax.errors import InputError, RunError, check_choice, check_range
from primax.output.figure import matplotlib
from primax.output.sheet import clock, counted
from primax.paper import reproduce
from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS, SCALES, select
from primax.paper.pages.embed import fill
from primax.paper.pages.write import write_all
from primax.paper.plan import as_sweep, told
from primax.paper.predict import at_pace
from primax.paper.reproduce import ABSENT, Home, Task
from primax.runs.proceed import Listener
from primax.runs.progress import Reporter
from primax.runs.read import BROKEN


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--study",
        default=study.PAPER,
        metavar="NAME",
        help=f"{' or '.join(study.STUDIES)}: the paper, or the study of noise that never ends "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--scale", default="smoke", help=f"{', '.join(SCALES)} (default: %(default)s)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this cell, variant, table or figure; can be given several times",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write everything (default: reproduction, or the name of another study)",
    )
    parser.add_argument(
        "--runs", type=Path, metavar="DIR", help="where the runs' folders are (default: OUT/runs)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="how many runs at the same time (default: one for each core, at most "
        f"{reproduce.MOST_JOBS}; on a GPU one)",
    )
    parser.add_argument("--plan", action="store_true", help="only print what there is to do")
    parser.add_argument(
        "--write-plan",
        action="store_true",
        help="only write the runs as a plan for primax sweep, which makes them several at a time, "
        "on several GPUs or on a cluster",
    )
    parser.add_argument(
        "--no-run",
        action="store_true",
        help="run nothing; write pages from the runs that are there",
    )
    parser.add_argument(
        "--no-pages", action="store_true", help="only make the runs; write no pages"
    )
    parser.add_argument(
        "--into",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="fill the marked places (<!-- results: NAME -->) of FILE with tables and figures; "
        "can be given several times",
    )


def run(args: argparse.Namespace) -> None:
    check_choice("--study", args.study, study.STUDIES)
    is_paper = args.study == study.PAPER
    args.out = args.out or Path("reproduction" if is_paper else args.study)
    if args.jobs is not None:
        check_range("--jobs", args.jobs, 1, 1_000)
    if (args.out / "config.json").exists():
        raise InputError(f"{args.out} is the folder of a run: choose another --out")
    for page in args.into:
        if not page.is_file():
            raise InputError(
                f"--into {page}: no such file; give a page that marks places for tables and figures"
            )
    if not is_paper:
        return study.run(args)
    console = work_console()
    home = reproduce.open_home(args.out, args.scale, args.runs)
    cells = select(args.only, args.scale)
    if args.write_plan:
        can = [cell for cell in cells if cell.variant.is_available]
        written = reproduce.put_plan(home, as_sweep(home, can))
        console.print(
            f"{counted(len(can), 'run')} in {written}; primax sweep {home.runs} makes them"
        )
        return
    if not args.no_pages:
        matplotlib()  # before hours of work, not after
    start_jax(" ".join(SAME_BITS))
    tasks, jobs = [], args.jobs or reproduce.jobs(jax.default_backend())
    if args.plan or not args.no_run:
        tasks = reproduce.plan(home, cells, jax.default_backend())
        if args.plan:
            print("\n".join(told(home, tasks, jobs, jax.default_backend())))
            if left_out := len(CELLS) - len(tasks) if not args.only else 0:
                console.print(
                    f"{left_out} more runs are not part of this scale; --only NAME runs them"
                )
            return
        reproduce.begin(home)
        _work(console, home, [task for task in tasks if task.is_open], jobs)
        _say_absent(console, tasks)
    if not args.no_pages:
        runs = Runs.under(home.runs, home.scale)
        blocks = write_all(runs, args.out, console.print)
        for page in args.into:
            fill(page, blocks, args.out)
        if args.no_run:
            there = sum(cell.name in runs.usable for cell in cells)
            console.print(f"{there} of {len(cells)} runs are in {home.runs}", soft_wrap=True)
        console.print(f"read {args.out / 'index.md'}, {args.out / 'scorecard.md'} and claims.md")
        if args.no_run and runs.broken:
            raise RunError(f"not used, because their folders are broken: {', '.join(runs.broken)}")
    _say_broken(tasks)


def _work(console: Console, home: Home, tasks: list[Task], jobs: int) -> None:
    """Makes the runs that are missing, and says how it goes."""
    if not tasks:
        console.print("nothing to run: every run that was asked for and can be made is finished")
        return
    left = clock(reproduce.in_all(tasks, jobs, jax.default_backend()))
    console.print(f"{counted(len(tasks), 'run')}, {jobs} at a time: about {left}")
    board = Board(console, home, tasks, jobs)
    reproduce.work_all(home, tasks, jobs, board.watch, console.print)


class Board:
    """How far every task is, and what is left of all of them."""

    def __init__(self, console: Console, home: Home, tasks: list[Task], jobs: int):
        self.console, self.home, self.tasks, self.jobs = console, home, tasks, jobs
        self.shares = dict.fromkeys((task.cell.name for task in tasks), 0.0)
        self.began = time.monotonic()

    @contextmanager
    def watch(self, task: Task) -> Generator[Listener]:
        """Says when a task begins, how it goes, and when it is through."""
        name, seeds = task.cell.name, len(task.cell.seeds(self.home.scale))
        self.console.print(f"{name}: {task.state}")
        head = f"{name}: " if self.jobs > 1 else ""
        with Reporter(self.console, seeds, head, is_live=self.jobs == 1) as reporter:

            def tell(progress: Progress) -> None:
                self.shares[name] = (progress.clock - task.done) / (progress.total - task.done)
                reporter(progress)

            yield Listener(lambda line: self.console.print(f"{head}{line}"), tell)
        self.shares[name] = 1.0
        self.console.print(f"{name}: done, {self._count()}")

    def _count(self) -> str:
        """How many are through, and how long the rest will take at the pace so far."""
        through = sum(share == 1 for share in self.shares.values())
        done = sum(task.seconds * self.shares[task.cell.name] for task in self.tasks)
        total = sum(task.seconds for task in self.tasks)
        left = at_pace(time.monotonic() - self.began, done, total)
        return f"{through} of {len(self.tasks)}; {left}"


def _say_broken(tasks: list[Task]) -> None:
    """What was asked for and could not be run or used."""
    broken = [task for task in tasks if task.state == BROKEN]
    if broken:
        names = ", ".join(task.cell.name for task in broken)
        raise RunError(f"not run, because their folders cannot be used: {names} ({broken[0].why})")


def _say_absent(console: Console, tasks: list[Task]) -> None:
    absent = [task.cell.name for task in tasks if task.state == ABSENT]
    if absent:
        console.print(f"not available yet: {', '.join(absent)}")
