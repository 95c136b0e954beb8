"""Writes a run's networks and frozen reward to one small file, for `primax.export.load`."""

import argparse
from pathlib import Path

from primax import folder as disk
from primax.cli.common import plain_console
from primax.errors import InputError
from primax.export import WHICH, export
from primax.methods import parse_seeds


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, help="the run's folder")
    parser.add_argument("--seeds", help="how many (3), a range (0-4) or a list (0,3); else all")
    parser.add_argument(
        "--which",
        default="last",
        help=f"{', '.join(WHICH)}: as they are, at the best coverage, at the best task score",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="else DIR/export_WHICH.npz")


def run(args: argparse.Namespace) -> None:
    content = export(args.dir, args.which, parse_seeds(args.seeds) if args.seeds else None)
    out = args.out or args.dir / f"export_{args.which}.npz"
    try:
        disk.write_whole(out, content)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error
    plain_console().print(f"{out}: {len(content) / 1e6:.2f} MB")
