"""Draws learning curves of runs for a paper: mean over seeds, and its 95% interval shaded.

Each folder is that of a run, or contains runs. Worlds have a panel each; lines are named by what
sets the runs apart: method and settings. Scores are rolling means over 20 episodes, as on the page
that primax report writes.
"""

import argparse
from pathlib import Path

from primax.cli.common import plain_console
from primax.errors import InputError
from primax.output.figure import FORMATS, matplotlib
from primax.report.figure import COLUMNS, draw
from primax.report.sources import find
from primax.runs.read import open_run


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, nargs="+", help="folders of runs")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("curves.pdf"),
        metavar="FILE",
        help=f"where to draw, in the format of its ending: {', '.join(FORMATS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--column",
        default="score",
        help=f"what to draw: {', '.join(COLUMNS)} (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    if args.out.suffix not in FORMATS:
        raise InputError(f"cannot draw {args.out}: its name must end in {', '.join(FORMATS)}")
    matplotlib()  # said before anything is read
    console = plain_console()
    runs = [open_run(path) for path in find(args.dir).runs]
    for going in (run for run in runs if not run.is_finished):
        console.print(f"{going.path} is not finished: it is drawn as far as it is", soft_wrap=True)
    draw(runs, args.out, args.column)
    seeds = sorted({len(run.seeds) for run in runs})
    of = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    console.print(
        f"{args.out}: {len(runs)} run{'s' * (len(runs) > 1)}; mean over {of}, shaded its 95% interval",
        soft_wrap=True,
    )
