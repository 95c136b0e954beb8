"""Times a training run, compile time apart, and prints every figure kept so far."""

import argparse
import hashlib
import json
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax import folder as disk
from primax.cli.common import plain_console, prepare, run_options
from primax.cli.train import announce, execute
from primax.errors import InputError
from primax.methods import world_name
from primax.provenance import provenance


def options(parser: argparse.ArgumentParser) -> None:
    run_options(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/bench"),
        metavar="DIR",
        help="where figures are kept",
    )


def run(args: argparse.Namespace) -> None:
    config, seeds = prepare(args)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {args.out}: {error.strerror}") from error
    console = plain_console()
    announce(console, config)
    result = execute(console, config, seeds)
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
    settings = hashlib.sha256(repr((config, seeds, origin["device"], origin["flags"])).encode())
    name = f"train_{config.method}_{world}_{len(seeds)}x{config.total_steps}"
    path = args.out / f"{name}_{settings.hexdigest()[:8]}.json"
    disk.write_whole(path, (json.dumps(figure, indent=1) + "\n").encode())
    console.print(figures(args.out))
    console.print(f"kept in {path}", soft_wrap=True)


def figures(folder: Path) -> Table:
    """Every figure in a folder, a row each."""
    columns = ("method", "world", "seeds", "steps", "run_s", "compile_s", "steps_per_s", "device")
    table = Table(*columns, box=SIMPLE_HEAD)
    for path in sorted(folder.glob("train_*.json")):
        try:
            figure = json.loads(path.read_text(encoding="utf-8"))
            table.add_row(*(str(figure[column]) for column in columns))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a figure of primax bench: remove it") from error
    return table
