"""Checks what the paper promises: on a small learner trained here, or on a run's folder.

Each row is one promise: its bound, what was measured, and whether it holds. If a promise
has a condition that is not met, the row says "premise not met", which is neither pass nor failure.
The exit status is 1 if any row fails.
"""

import argparse
import json
import os
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax.cli.common import plain_console, start_jax
from primax.errors import InputError, check_range, lookup
from primax.verify import Bench, Row, run_checks
from primax.verify.audit import AUDITS
from primax.verify.checks import CHECKS, run_audit
from primax.verify.row import FAILS


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", type=Path, metavar="DIR", help="check this run's tables, and train nothing"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"check only these rows: {', '.join(CHECKS)}",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the learner trained here (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw what the row neutrality measured, as a PNG"
    )


def run(args: argparse.Namespace) -> int:
    names = chosen(args)
    check_range("--seed", args.seed, 0, 2**31 - 1)
    for path in (args.json, args.plot):
        if path and (path.is_dir() or not path.parent.is_dir()):
            raise InputError(
                f"cannot write {path}: its folder does not exist, or it is a folder itself"
            )
    console = plain_console()
    start_jax(os.environ.get("XLA_FLAGS", ""))
    if args.run:
        rows = run_audit(names, args.run, console.print)
    else:
        rows = run_checks(names, Bench(args.seed, args.plot, console.print))
    console.print(table(rows))
    if args.json:
        write(args.json, rows)
    failed = [row.name for row in rows if row.verdict == FAILS]
    console.print(f"fails: {', '.join(failed)}" if failed else "nothing fails")
    return 1 if failed else 0


def chosen(args: argparse.Namespace) -> list[str]:
    """The rows asked for, in the order they are known by."""
    known = list(AUDITS if args.run else CHECKS)
    kind = "row of a run" if args.run else "row"
    names = [lookup(kind, name, {name: name for name in known}) for name in args.only or known]
    if args.plot and (args.run or "neutrality" not in names):
        raise InputError("--plot draws the row neutrality, which is not among those asked for")
    if args.plot and find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install 'primax-rl[report]'")
    return [name for name in known if name in names]


def table(rows: list[Row]) -> Table:
    """One line a promise."""
    table = Table(box=SIMPLE_HEAD, expand=True)
    for column, ratio in (("row", None), ("promise", 5), ("bound", 3), ("measured", 4), ("", None)):
        table.add_column(column, ratio=ratio, no_wrap=column == "row")
    for row in rows:
        table.add_row(row.name, row.statement, row.bound, row.measured, row.verdict)
        table.add_section()
    return table


def write(path: Path, rows: list[Row]) -> None:
    """The rows as JSON."""
    try:
        path.write_text(
            json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False, default=float)
            + "\n",
            "utf-8",
        )
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
