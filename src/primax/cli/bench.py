"""Times a training run, compile time apart, and prints every figure kept so far."""

import argparse
import json
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax import runs
from primax.cli.common import prepare, run_options
from primax.cli.train import execute
from primax.errors import InputError
from primax.methods import world_name


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
    console = Console()
    result = execute(console, config, seeds)
    world, origin = world_name(config.world), runs.provenance()
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
    device = origin["device"].replace(" ", "_")
    name = (
        f"{config.method}_{world}_{len(seeds)}x{config.total_steps}_{config.net.precision}_{device}"
    )
    runs.write_json(args.out / f"{name}{'_fast' if args.fast else ''}.json", figure)
    console.print(figures(args.out))


def figures(folder: Path) -> Table:
    """Every figure in a folder, a row each."""
    columns = ("method", "world", "seeds", "steps", "run_s", "compile_s", "steps_per_s", "device")
    table = Table(*columns, box=SIMPLE_HEAD)
    for path in sorted(folder.glob("*.json")):
        try:
            figure = json.loads(path.read_text(encoding="utf-8"))
            table.add_row(*(str(figure[column]) for column in columns))
        except (ValueError, KeyError) as error:
            raise InputError(f"{path} is not a figure of primax bench: remove it") from error
    return table
