"""Settings, commands and provenance of runs, side by side."""

import json
from dataclasses import dataclass
from typing import Any

from primax.runs.read import Run

MOST_NAMED = 3
"""Runs or methods a line names; the rest are counted."""


@dataclass(frozen=True)
class Setting:
    """A field of the configuration: each value it has, and which runs have it."""

    name: str
    values: tuple[tuple[str, str], ...]
    """Value and the names of its runs; no names where there is one value only."""
    only: str
    """The methods that have the field at all, where not all runs do."""

    @property
    def is_varied(self) -> bool:
        return len(self.values) > 1


def settings(runs: list[Run], labels: list[str], worlds: list[str]) -> list[Setting]:
    """Every field of any run, in the order runs write them."""
    flat = [run.settings for run in runs]
    kinds = (worlds, [run.method for run in runs], labels)
    found = []
    for name in dict.fromkeys(name for fields in flat for name in fields):
        by_value: dict[str, set[int]] = {}
        for i, fields in enumerate(flat):
            if name in fields:
                by_value.setdefault(_text(fields[name]), set()).add(i)
        having = set().union(*by_value.values())
        values = tuple(
            (value, _named(of, having, kinds).removeprefix(value) if len(by_value) > 1 else "")
            for value, of in by_value.items()
        )
        everyone = set(range(len(runs)))
        only = _named(having, everyone, kinds) if having != everyone else ""
        found.append(Setting(name, values, only))
    return found


def _named(some: set[int], every: set[int], kinds: tuple[list[str], ...]) -> str:
    """By world or by method where that tells the runs from the others, else by name."""
    for kind in kinds:
        names = list(dict.fromkeys(kind[i] for i in sorted(some)))
        if {i for i in every if kind[i] in names} == some:
            break
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Origin:
    """How a run was made, as far as its manifest tells."""

    commands: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def origin(run: Run) -> Origin:
    """Commands of all its parts, versions, device, seconds."""
    manifest, parts = run.manifest, run.parts
    commands = tuple(str(part["command"]) for part in parts if "command" in part)
    facts = [("folder", str(run.path)), ("seeds", _seeds(run.seeds))]
    if parts and "started" in parts[0]:
        facts.append(("started", str(parts[0]["started"])))
    facts.append(("finished", str(manifest.get("finished", "not yet"))))
    facts += [
        (name.replace("_", " "), _text(manifest[name]))
        for name in (
            "steps", "commit", "primax", "jax", "numpy", "python", "device", "flags",
            "recomputed_steps",
        )
        if manifest.get(name) not in (None, "")
    ]  # fmt: skip
    if run.unsaid:
        facts.append(
            (
                "settings missing from config.json, filled in with this version's defaults",
                ", ".join(run.unsaid),
            )
        )
    for name, label in (("compile_s", "compile seconds"), ("run_s", "run seconds")):
        if known := [value for value in run.seconds(name) if value is not None]:
            facts.append((label, f"{sum(known):,.0f}" if sum(known) >= 10 else f"{sum(known):.1f}"))
    return Origin(commands, tuple(facts))


def _seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
