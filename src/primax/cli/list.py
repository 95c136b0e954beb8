"""Lists methods, worlds and presets, and every field that --set can change.

With a method, or a method and a world, only the fields and defaults of that run are listed.
"""

import argparse

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from primax.cli.common import plain_console
from primax.config.fields import walk
from primax.config.schema import KEYS
from primax.errors import canonical, lookup
from primax.methods import METHODS
from primax.presets import PRESETS, paper
from primax.worlds import SUITE, SUITES, WORLDS, is_prefixed, noisy_names, world_name

METHOD, WORLD = "prime", "butterflies"
"""Whose fields are listed unless others are named."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "method", nargs="?", help=f"list the defaults of this method (default: {METHOD})"
    )
    parser.add_argument(
        "world", nargs="?", help=f"list the fields of this world (default: {WORLD})"
    )


def run(args: argparse.Namespace) -> None:
    method, world = args.method, args.world
    if method and not world and "+" not in method:  # or a world alone
        if not is_prefixed(method):
            lookup("method or world", method, {**METHODS, **WORLDS})
        if is_prefixed(method) or canonical(method) in WORLDS:
            method, world = None, method
    console = plain_console()
    if not (method or world):
        _show_names(console)
    _show_fields(console, method or METHOD, world or WORLD)


def _show_names(console: Console) -> None:
    what = {name: method.what for name, method in METHODS.items()}
    what["task+BONUS"] = "the task with one of the others beside it: primax list task+prime"
    console.print(_table("methods", what))
    worlds = {name: str(kind.__doc__).splitlines()[0] for name, kind in WORLDS.items()}
    worlds["SUITE:ID"] = f"one of {', '.join(SUITES)}: {SUITE} (pip install 'primax-rl[suites]')"
    worlds["noisy:WORLD"] = f"one of these with noise beside it: {', '.join(noisy_names())}"
    console.print(_table("worlds", worlds))
    console.print(_table("presets", {name: what for name, (what, _, _) in PRESETS.items()}))


def _show_fields(console: Console, method: str, world: str) -> None:
    config = paper(method, world)
    table = Table(box=SIMPLE_HEAD)
    for column in ("field", "symbol", "value", "what"):
        table.add_column(column, no_wrap=column in ("field", "symbol"))  # to be copied whole
    table.title, table.title_justify = (
        f"fields of {config.method} in {world_name(config.world)}",
        "left",
    )
    for field in walk(config):
        if field.name != "method":  # an argument, not a setting
            value = str(field.value).strip()
            table.add_row(field.name, field.symbol, value, field.doc.replace("`", ""))
    if config.keys is None:
        kinds = f"instead of the world's own key: {', '.join(KEYS)}; then other keys.* can be set"
        table.add_row("keys.kind", "", "", kinds)
    console.print(table)


def _table(title: str, rows: dict[str, str]) -> Table:
    table = Table(title, "", box=SIMPLE_HEAD)
    for name, what in rows.items():
        table.add_row(name, what)
    return table
