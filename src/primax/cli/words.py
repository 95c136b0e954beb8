"""What shells complete, collected from the commands themselves: `python -m primax.cli.words` writes \
it to words.json, so that completing loads no library."""

import argparse
import json
from pathlib import Path
from typing import Any

from primax.adapters.trackers import TRACKERS
from primax.cli import COMMANDS, command_of
from primax.cli.completion import SCRIPTS
from primax.cli.stats import FORMATS
from primax.config.fields import walk
from primax.config.schema import TAKES
from primax.methods import METHODS, mixed
from primax.presets import PRESETS, paper
from primax.report.figure import COLUMNS
from primax.rewards.task import Nothing, Task
from primax.runs.export import WHICH
from primax.worlds import WORLDS, noisy_names
from primax.worlds.scripted import POLICIES

FILE = Path(__file__).parent / "words.json"


def collect() -> dict[str, Any]:
    """Of every command the options and places, each with what it takes, and the words for that.

    A `+` means several of them; an option that takes nothing has nothing.
    """
    bonuses = (m for m in METHODS.values() if m.reward not in (Task, Nothing))
    methods = sorted([*METHODS, *(mixed(bonus).name for bonus in bonuses)])
    worlds = [*WORLDS, *noisy_names()]
    fields = [
        field.name for method in methods for world in worlds for field in walk(paper(method, world))
    ]
    values = {
        "method": methods,
        "world": worlds,
        "preset": PRESETS,
        "set": [f"{name}=" for name in dict.fromkeys(fields) if name != "method"],
        "which": WHICH,
        "take": TAKES,
        "policy": POLICIES,
        "shell": SCRIPTS,
        "format": FORMATS,
        "column": COLUMNS,
        "track": TRACKERS,
    }
    commands = {}
    for name in COMMANDS:
        _, parser = command_of(name)
        shown = [
            action
            for action in parser._actions
            if action.dest != "help" and action.help != argparse.SUPPRESS
        ]
        commands[name] = {
            "options": {a.option_strings[0]: _takes(a) for a in shown if a.option_strings},
            "places": [_takes(action) for action in shown if not action.option_strings],
        }
    return {"commands": commands, "values": {name: list(words) for name, words in values.items()}}


def _takes(action: argparse.Action) -> str:
    return "" if action.nargs == 0 else action.dest + "+" * (action.nargs in ("+", "*"))


if __name__ == "__main__":
    FILE.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")
