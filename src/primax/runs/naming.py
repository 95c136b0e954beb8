"""What runs are called beside each other: by what sets them apart."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primax.config.fields import walk
from primax.errors import InputError
from primax.methods import known_method
from primax.presets import PRESETS, configure
from primax.runs.read import Run

AFTER = " after "
USUAL = {"start.which": "last", "start.take": "whole"}
"""What is taken of another run's networks unless something else is asked for."""


@dataclass(frozen=True)
class Name:
    """Of a run among others."""

    method: str
    """`task after prime` where it began with another's networks."""
    world: str = ""
    """Where the runs are in several."""
    changes: tuple[tuple[str, str], ...] = ()
    """Settings that are not the method's under the runs' preset, and not the same in all runs."""
    folder: str = ""
    """Where nothing else tells it from another."""

    @property
    def text(self) -> str:
        """As commands and tables write it: `prime reward.gate_weight=0`."""
        settings = (f"{name}={value}" for name, value in self.changes)
        return " ".join([self.method, *filter(None, [self.world]), *settings, *self._folder()])

    @property
    def label(self) -> str:
        """As figures write it, whose panels tell the world: `PRIME, α = 0`."""
        short = _short(self.method.partition(AFTER)[0], dict(self.changes))
        settings = (f"{name} = {value}" for name, value in short.items())
        return " ".join([", ".join([method_label(self.method), *settings]), *self._folder()])

    def _folder(self) -> list[str]:
        return [f"({self.folder})"] if self.folder else []


def method_of(run: Run) -> str:
    """Its method, and after which other it began with that one's networks: `task after prime`."""
    start = run.content.get("start")
    before = start.get("method") if isinstance(start, dict) else None
    return f"{run.method}{AFTER}{before}" if before else run.method


def method_label(method: str) -> str:
    """As figures and pages call what `method_of` gives."""
    known = ((name, known_method(name)) for name in method.split(AFTER))
    return AFTER.join(found.label if found else name for name, found in known)


def name_runs(runs: Sequence[Run]) -> list[Name]:
    """A name for each, no two the same."""
    by_preset = [[_changes(run, runs, preset) for run in runs] for preset in PRESETS]
    changed = min(by_preset, key=lambda found: sum(map(len, found)))
    shared = set.intersection(*(set(changes.items()) for changes in changed))
    is_one_world = len({run.world for run in runs}) == 1
    names = [
        Name(
            method_of(run),
            "" if is_one_world else run.world,
            tuple(item for item in changes.items() if item not in shared),
        )
        for run, changes in zip(runs, changed, strict=True)
    ]
    if len(runs) > len({run.path.resolve() for run in runs}):
        again = Counter(run.path.resolve() for run in runs).most_common(1)[0][0]
        raise InputError(f"{again} is given twice: give every run once")
    count = Counter(names)
    return [
        Name(name.method, name.world, name.changes, folder) if count[name] > 1 else name
        for name, folder in zip(names, folders([run.path for run in runs]), strict=True)
    ]


def folders(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with those before it where two would be called the same."""
    whole = [path.resolve().parts for path in paths]
    found = []
    for parts in whole:
        take = 1
        while take < len(parts) and sum(other[-take:] == parts[-take:] for other in whole) > 1:
            take += 1
        found.append("/".join(parts[-take:]))
    return found


def _changes(run: Run, runs: Sequence[Run], preset: str) -> dict[str, str]:
    """What a run sets otherwise than its method under a preset; than the first of its kind, where \
this version does not know the method or the world."""
    try:
        config = configure(run.method, run.world, preset)
        usual = {field.name: field.value for field in walk(config)} | USUAL
    except InputError:
        usual = next(of for of in runs if (of.method, of.world) == (run.method, run.world)).settings
    return {
        name: _said(value)
        for name, value in run.settings.items()
        if name in usual and name not in ("method", "seeds") and value != usual[name]
    }


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value).strip()
    return "a_map" if "\n" in text else text.lower() if isinstance(value, bool | None) else text


def _short(method: str, changes: dict[str, str]) -> dict[str, str]:
    """What is changed, each under its symbol if all fields of that symbol change alike, else under \
the last part of its name if no other field has the same."""
    if known_method(method) is None:
        return changes
    fields = list(walk(configure(method, "maze")))
    lasts = Counter(field.name.rpartition(".")[2] for field in fields)
    symbols = {field.name: field.symbol for field in fields}
    short = {}
    for name, value in changes.items():
        last, symbol = name.rpartition(".")[2], symbols.get(name)
        alike = {changes.get(other) for other, of in symbols.items() if of == symbol}
        if symbol and alike == {value}:
            short[symbol] = value
        else:
            short[last if lasts[last] < 2 else name] = value
    return short
