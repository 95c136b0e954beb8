"""Writes a run's networks and frozen reward to one small file, for `primax.export.load`."""

import argparse
from functools import partial
from pathlib import Path

from primax.cli.common import plain_console
from primax.config.seeds import parse_some
from primax.errors import InputError, check_choice
from primax.runs import disk
from primax.runs.export import WHICH, export


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, help="the run's folder")
    parser.add_argument(
        "--seeds",
        help="which of the run's seeds to export: a list (0,3) or a range (0-4; 9-9 is seed 9 alone); "
        "default: all",
    )
    parser.add_argument(
        "--which",
        default="last",
        help=f"{', '.join(WHICH)}: the networks as they are now, as they were at the best coverage, "
        "or as they were at the best task score (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: DIR/export_WHICH.npz")


def run(args: argparse.Namespace) -> None:
    check_choice("--which", args.which, WHICH)
    console = plain_console()
    seeds = parse_some(args.seeds, "--seeds")
    content = export(args.dir, args.which, seeds, partial(console.print, soft_wrap=True))
    out = args.out or args.dir / f"export_{args.which}.npz"
    try:
        disk.write_whole(out, content)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}; choose another --out") from error
    console.print(f"{out}: {len(content) / 1e6:.2f} MB")
