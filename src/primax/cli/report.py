"""Writes one page about runs: headline, scorecard, curves, seeds, maps, replays, audit, settings.

Each folder is that of a run, contains runs, or was written by `primax reproduce`. The page is a
single file that needs no network.
"""

import argparse
from functools import partial
from pathlib import Path

from primax.cli.common import plain_console
from primax.errors import InputError
from primax.report import make
from primax.runs import disk


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, nargs="+", help="folders of runs, or of a reproduction")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="where to write the page (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> None:
    if args.out.is_dir() or not args.out.parent.is_dir():
        raise InputError(
            f"cannot write {args.out}: its folder does not exist, or it is a folder itself"
        )
    console = plain_console()
    content = make(args.dir, partial(console.print, soft_wrap=True)).encode("utf-8", "replace")
    try:
        disk.write_whole(args.out, content)
    except OSError as error:
        raise InputError(f"cannot write {args.out}: {error.strerror}") from error
    size = f"{len(content) / 1e6:.2f} MB"
    console.print(f"{args.out}: {size}; open it in a browser", soft_wrap=True)
