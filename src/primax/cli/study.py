"""`primax reproduce --study noise`: the runs of a study, and its page."""

import argparse

from primax.cli import sweep
from primax.cli.common import work_console
from primax.errors import RunError
from primax.output.figure import matplotlib
from primax.paper.pages.embed import fill
from primax.paper.reproduce import Home, open_home, put_plan
from primax.studies.noise.cells import CELLS, plan
from primax.studies.noise.found import Found
from primax.studies.noise.pages import write_all

PAPER, NOISE = "paper", "noise"
STUDIES = (PAPER, NOISE)


def run(args: argparse.Namespace) -> None:
    """Makes the runs that are missing, then the tables and the figure."""
    console = work_console()
    home = open_home(args.out, args.scale, args.runs)
    if not (args.no_pages or args.write_plan or args.plan):
        matplotlib()  # before hours of work, not after
    if not args.no_run:
        path = put_plan(home, plan(home.scale))
        if args.write_plan:
            console.print(
                f"{path} is written; primax sweep {home.runs} makes its runs", soft_wrap=True
            )
            return
        sweep.run(_as_sweep(args, home))
        if args.plan:
            return
    if args.no_pages:
        return
    found = Found(home.runs, home.scale)
    blocks = write_all(found, args.out)
    for page in args.into:
        fill(page, blocks, args.out)
    there = sum(map(found.is_there, CELLS))
    console.print(f"{there} of {len(CELLS)} cells are in {home.runs}", soft_wrap=True)
    console.print(f"read {args.out / 'index.md'}", soft_wrap=True)
    if broken := found.broken:
        name, why = next(iter(broken.items()))
        raise RunError(
            f"not used, because their folders are broken: {', '.join(broken)} ({name}: {why})"
        )


def _as_sweep(args: argparse.Namespace, home: Home) -> argparse.Namespace:
    """What `primax sweep` is asked for."""
    parser = argparse.ArgumentParser()
    sweep.options(parser)
    words = [str(home.runs), "--jobs", str(args.jobs or 1)]
    words += [word for name in args.only for word in ("--only", name)]
    return parser.parse_args(
        words + ["--status"] * args.plan, argparse.Namespace(plugin=args.plugin)
    )
