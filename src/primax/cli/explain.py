"""Shows what PRIME's frozen reward is made of: for every (cell, level, action) its count, V_epi, \
each noise detector, the gate, and the reward before and after scale and clip.

The level is what the count key records besides the cell: on Butterflies, how many butterflies are
alive.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax import explain, files
from primax.cli.common import plain_console
from primax.errors import InputError
from primax.methods import build
from primax.runs.tables import csv_rows
from primax.worlds import world_name

COLUMNS = {
    "count": "N",
    "v_count": "V_count",
    "v_lotv": "V_LoTV",
    "v_ale_heads": "heads",
    "v_ale_phi": "φ",
    "v_ale_psi": "ψ",
    "v_ahead": "ahead",
    "bracket": "left",
    "r_int": "R_int",
    "scaled": "scaled",
    "reward": "reward",
}
NARROW = {
    "count": "N",
    "v_epi": "V_epi",
    "v_ale": "V_ale",
    "v_ahead": "ahead",
    "bracket": "left",
    "r_int": "R_int",
    "reward": "reward",
}
WIDE = 118
"""Characters a line needs for all columns."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="a run's folder, or a file from primax export")
    parser.add_argument("--seed", type=int, help="which seed (default: the run's first)")
    parser.add_argument(
        "--at", metavar="ROW,COL[,LEVEL]", help="show all actions in this cell (at this level)"
    )
    parser.add_argument(
        "--top",
        type=int,
        default=5,
        metavar="N",
        help="without --at: show the N highest and the N lowest rewards (default: %(default)s)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the whole table, every key")
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw heat maps over the grid")
    parser.add_argument(
        "--step",
        type=int,
        help="with --png: draw the window that ended at this step, from the run's maps",
    )


def run(args: argparse.Namespace) -> None:
    at = _place(args.at) if args.at is not None else None
    if args.top < 1:
        raise InputError(f"--top must be at least 1, got {args.top}")
    if args.step is not None and args.png is None:
        raise InputError("--step chooses which window --png FILE draws: give --png too")
    seed = args.seed if args.seed is not None else explain.first_seed(args.path)
    found = explain.explain(args.path, seed)
    if args.png and found.walls is None:
        raise InputError(
            "--png draws maps over a grid: this run's states are no cells of one; --csv has all"
        )
    console = plain_console()
    for reason in found.damaged:
        console.print(f"a newer checkpoint cannot be used: {reason}", soft_wrap=True)
    began = found.step - found.config.window
    console.print(f"seed {seed}, the window frozen at step {began:,} (newest kept)")
    console.print(_shown(found, explain.choose(found.table, at, args.top), console.width))
    if args.csv:
        files.overwrite(args.csv, csv_rows(found.table, True))
        console.print(f"{args.csv}: {len(found.table['action']):,} keys")
    if args.png:
        _draw(found, args)
        console.print(f"{args.png}")


def _place(text: str) -> tuple[int, ...]:
    try:
        at = tuple(int(part) for part in text.split(","))
    except ValueError:
        at = ()
    if len(at) not in (2, 3):
        raise InputError(f"--at takes ROW,COL or ROW,COL,LEVEL, got {text!r}")
    return at


def _shown(found: explain.Explained, rows: np.ndarray, width: int) -> Table:
    is_wide = width >= WIDE
    columns = COLUMNS if is_wide else NARROW
    columns = {name: title for name, title in columns.items() if name in found.table}
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    left = ("cell", "act", "seen by")
    has_cells = "row" in found.table
    place = ("cell", "lvl") if has_cells else ("state",)
    for name in (*place, "act", *columns.values(), "seen by"):
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    data = found.table
    names = build(found.config)[0].actions
    for i in rows.tolist():
        where = [f"{data['row'][i]},{data['col'][i]}", str(data["level"][i])] if has_cells else []
        where = where or [str(data["state"][i])]
        action = int(data["action"][i])
        numbers = [_number(data[name][i]) for name in columns]
        act = names[action] if has_cells else str(action)
        table.add_row(*where, act, *numbers, _noisiest(data, i))
    table.caption = (
        "left: the noise that remains after the gate; "
        "seen by: the detector that measured the most noise"
    )
    if not is_wide:
        table.caption = (
            "left: the noise that remains after the gate. A wider terminal, or --csv, shows more"
        )
    return table


def _noisiest(data: explain.Table, i: int) -> str:
    if not data["has_data"][i]:
        return "no data"
    seen = [data[name][i] for name in ("v_ale_heads", "v_ale_phi", "v_ale_psi")]
    return ("heads", "φ", "ψ")[int(np.argmax(seen))] if max(seen) > 0 else "none"


def _number(value: np.generic) -> str:
    return f"{value:,}" if np.issubdtype(type(value), np.integer) else f"{value:.2g}"


def _draw(found: explain.Explained, args: argparse.Namespace) -> None:
    assert found.walls is not None
    world = f"PRIME on {world_name(found.config.world)}, seed {found.seed}"
    if args.step is None:
        began = found.step - found.config.window
        title = f"{world}: means over keys, frozen at {began:,}"
        explain.draw(explain.cell_maps(found), found.walls, title, args.png)
        return
    if not args.path.is_dir():
        raise InputError("--step needs a run's folder: an exported file has no maps")
    step, maps = explain.recorded_maps(args.path, found.seed, args.step)
    title = f"{world}: means over rows, window that ended at {step:,}"
    explain.draw(maps, found.walls, title, args.png)
