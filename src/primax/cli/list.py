"""Lists methods, worlds and presets, and every field that --set can change."""

import argparse

from rich.box import SIMPLE_HEAD
from rich.table import Table

from primax.cli.common import plain_console
from primax.config.fields import walk
from primax.methods import METHODS
from primax.presets import PRESETS, paper
from primax.worlds import WORLDS


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--world",
        default="butterflies",
        help="list the fields of this world (default: %(default)s)",
    )
    parser.add_argument(
        "--method", default="prime", help="show the defaults of this method (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> None:
    config = paper(args.method, args.world)
    console = plain_console()
    console.print(_table("methods", {name: method.what for name, method in METHODS.items()}))
    console.print(
        _table(
            "worlds",
            {name: str(kind.__doc__).splitlines()[0] for name, kind in WORLDS.items()},
        )
    )
    console.print(_table("presets", {name: what for name, (what, _, _) in PRESETS.items()}))
    table = Table(
        "field",
        "value",
        "what",
        title=f"fields of {args.method} in {args.world}",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for field in walk(config):
        table.add_row(field.name, str(field.value).strip(), field.doc.replace("`", ""))
    console.print(table)


def _table(title: str, rows: dict[str, str]) -> Table:
    table = Table(title, "", box=SIMPLE_HEAD)
    for name, what in rows.items():
        table.add_row(name, what)
    return table
