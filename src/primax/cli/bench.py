"""Times a training run; compile time is measured separately."""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax.cli.common import asked, prepare, run_options, work_console
from primax.cli.train import announce, execute
from primax.errors import InputError
from primax.files import read_fields
from primax.runs import disk
from primax.runs.provenance import provenance
from primax.worlds import world_name

Figure = dict[str, Any]
COLUMNS = ("method", "world", "seeds", "steps", "run_s", "compile_s", "steps_per_s", "device")


def options(parser: argparse.ArgumentParser) -> None:
    run_options(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="save this timing in DIR, and print all saved there"
    )


def run(args: argparse.Namespace) -> None:
    config, seeds = asked(args)
    learner = prepare(config, len(seeds), args.anyway)
    config = learner.config
    if args.out:
        _open(args.out)
    console = work_console()
    announce(console, config)
    result = execute(console, learner, seeds)
    world, origin = world_name(config.world), provenance()
    figure = {
        "method": config.method,
        "world": world,
        "seeds": len(seeds),
        "steps": config.total_steps,
        "run_s": round(result.run_s, 2),
        "compile_s": round(result.compile_s, 2),
        "steps_per_s": round(len(seeds) * config.total_steps / result.run_s),
        "precision": config.net.precision,
        "memory": result.memory,
        "command": " ".join(["primax", *sys.argv[1:]]),
        **origin,
    }
    if not args.out:
        console.print(_table([figure]))
        return
    settings = hashlib.sha256(repr((config, seeds, origin["device"], origin["flags"])).encode())
    name = f"train_{config.method}_{world}_{len(seeds)}x{config.total_steps}"
    path = args.out / f"{name}_{settings.hexdigest()[:8]}.json"
    disk.write_whole(path, (json.dumps(figure, indent=1) + "\n").encode())
    console.print(_table(kept(args.out)))
    console.print(f"saved in {path}", soft_wrap=True)


def _open(folder: Path) -> None:
    """Refuses a folder that cannot be used before the run, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {folder}: choose another --out")
    kept(folder)


def kept(folder: Path) -> list[Figure]:
    """Every figure in a folder."""
    figures = []
    for path in sorted(folder.glob("train_*.json")):
        try:
            figure = read_fields(path)
            figures.append({column: figure[column] for column in COLUMNS})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} was not written by primax bench: remove it") from error
    return figures


def _table(figures: list[Figure]) -> Table:
    table = Table(*COLUMNS, box=SIMPLE_HEAD)
    for figure in figures:
        table.add_row(*(str(figure[column]) for column in COLUMNS))
    return table
