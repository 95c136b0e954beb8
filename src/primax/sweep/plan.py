"""A plan of runs: a small TOML file, checked to the last field before anything starts.

    methods = ["prime", "rnd"]
    worlds = ["maze"]
    [grid]
    critics.gamma = [0.9, 0.99]
    [[vary]]
    name = "gate0"
    methods = ["prime"]
    set = { reward.gate_weight = 0 }

Each method in each world is run as it is, and once more for every variant; each of these for every
combination of the grid's values. Runs may also be named one by one:

    [[cell]]
    name = "gate0"
    method = "prime"
    world = "maze"
    set = { reward.gate_weight = 0 }
"""

import math
import re
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from primax import files
from primax.config.schema import Config
from primax.config.seeds import parse_seeds
from primax.errors import InputError, check_range, hint
from primax.methods import find_method, find_world
from primax.presets import configure
from primax.runs.read import leaves
from primax.sweep.slurm_config import configured
from primax.worlds import world_name

Settings = dict[str, str]
Grid = dict[str, list[str]]
MOST_CELLS = 10_000
LONGEST = 150
"""Characters of a cell's name; file systems take 255 bytes."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KEYS = ("methods", "worlds", "preset", "seeds", "plain", "set", "grid", "vary", "cell", "slurm")
TAKEN = ("logs", "slurm", "plan.toml")
KINDS: dict[type, str] = {list: "a list", str: "text", bool: "true or false", dict: "a table"}


@dataclass(frozen=True)
class Cell:
    """One run of a plan."""

    name: str
    """Also its folder's."""
    method: str
    world: str
    preset: str
    seeds: str
    """As on the command line."""
    settings: Settings
    config: Config = field(repr=False)

    @property
    def given_seeds(self) -> tuple[int, ...]:
        """The seeds themselves."""
        return parse_seeds(self.seeds)


@dataclass(frozen=True)
class Variant:
    """Methods and worlds under settings; the first of a plan has no name."""

    name: str
    methods: list[str]
    worlds: list[str]
    seeds: str
    set: Settings
    grid: Grid

    @property
    def size(self) -> int:
        """How many cells it is."""
        return len(self.methods) * len(self.worlds) * math.prod(map(len, self.grid.values()))


@dataclass(frozen=True)
class Plan:
    """A plan as it was written, and its cells."""

    raw: bytes
    cells: list[Cell]
    slurm: Settings = field(default_factory=dict)
    """What it says of jobs of Slurm."""

    def only(self, names: list[str]) -> list[Cell]:
        """The cells of these names, or all if none is given."""
        known = {cell.name: cell for cell in self.cells}
        for name in names:
            if name not in known:
                raise InputError(f"--only: the plan has no cell {name!r}{hint(name, known)}")
        return [cell for cell in self.cells if not names or cell.name in names]


def read_plan(path: Path) -> Plan:
    """What a file plans; one line, with the file and the key, for what cannot be."""
    try:
        raw = files.read(path, files.FIELDS)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        content = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    with _at(path):
        slurm = {key: _text(f"slurm: {key}", value) for key, value in _fields(content, "slurm")}
        configured(slurm)
        return Plan(raw, plan_cells(content), slurm)


def plan_cells(content: dict[str, Any]) -> list[Cell]:
    """The cells of a plan: method by method, world by world, variant by variant; then those named."""
    _check_keys(content, KEYS)
    entries = _get(content, "cell", list, [])
    if entries:  # then there need be no product of methods and worlds
        content = {"methods": [], "worlds": []} | content
    methods = _names(content, "methods", lambda name: find_method(name).name, bool(entries))
    worlds = _names(content, "worlds", _world_name, bool(entries))
    settings, grid = _settings(content)
    base = Variant("", methods, worlds, _seeds(content, "15"), settings, grid)
    variants = [base] if _get(content, "plain", bool, True) else []
    for i, entry in enumerate(_get(content, "vary", list, []), 1):
        named = isinstance(entry, dict) and isinstance(entry.get("name"), str)
        with _at(f"vary {entry['name']!r}" if named else f"vary, entry {i}"):
            variants.append(_variant(entry, base))
    num = sum(variant.size for variant in variants) + len(entries)
    if not 1 <= num <= MOST_CELLS:
        raise InputError(f"it has {num:,} cells: a plan has from 1 to {MOST_CELLS:,}")
    preset = _get(content, "preset", str, "paper")
    cells = [
        _cell(variant, method, world, preset, values)
        for method in methods
        for world in worlds
        for variant in variants
        if method in variant.methods and world in variant.worlds
        for values in product(*variant.grid.values())
    ]
    for i, entry in enumerate(entries, 1):
        with _at(f"cell, entry {i}"):
            cells.append(_named(entry, base, preset))
    names: dict[str, Cell] = {}
    for cell in cells:
        other = names.setdefault(cell.name.lower(), cell)  # some disks do not tell a from A
        if other is not cell:
            raise InputError(f"two cells are called {cell.name}: give one of them another name")
    return cells


def _variant(entry: Any, base: Variant) -> Variant:
    """An entry of `vary`. What it says goes before what the whole plan says."""
    if not isinstance(entry, dict):
        raise InputError(f"takes a table, got {entry!r}")
    _check_keys(entry, ("name", "methods", "worlds", "seeds", "set", "grid"))
    own, grid = _settings(entry)
    return Variant(
        _own_name(entry),
        _some(entry, "methods", base.methods, lambda name: find_method(name).name),
        _some(entry, "worlds", base.worlds, _world_name),
        _seeds(entry, base.seeds),
        {key: value for key, value in base.set.items() if key not in grid} | own,
        {key: values for key, values in base.grid.items() if key not in own} | grid,
    )


def _cell(variant: Variant, method: str, world: str, preset: str, values: tuple[str, ...]) -> Cell:
    point = dict(zip(variant.grid, values, strict=True))
    name, settings = _cell_name(method, world, variant.name, point), variant.set | point
    with _at(name):
        check_range("the length of its name", len(name), 1, LONGEST)
        config = configure(method, world, preset, settings)
    return Cell(name, method, world, preset, variant.seeds, settings, config)


def _named(entry: Any, base: Variant, preset: str) -> Cell:
    """An entry of `cell`. What it says goes before what the whole plan says; no grid is laid over it."""
    if not isinstance(entry, dict):
        raise InputError(f"takes a table, got {entry!r}")
    _check_keys(entry, ("name", "method", "world", "seeds", "set"))
    name, settings = _own_name(entry), base.set | _settings(entry)[0]
    with _at(name):
        check_range("the length of its name", len(name), 1, LONGEST)
        method = find_method(_get(entry, "method", str)).name
        world = _world_name(_get(entry, "world", str))
        config, seeds = configure(method, world, preset, settings), _seeds(entry, base.seeds)
    return Cell(name, method, world, preset, seeds, settings, config)


def _own_name(entry: dict[str, Any]) -> str:
    name = _get(entry, "name", str)
    if not NAME.fullmatch(name):
        raise InputError(f"name takes letters, digits, ., _ and -, got {name!r}")
    if name.lower() in TAKEN:
        raise InputError(f"name {name!r} is that of a file of every sweep: take another")
    return name


def _cell_name(method: str, world: str, variant: str, point: Settings) -> str:
    """`prime_maze_gate0_gamma-0.9`: it depends on no other cell, so a plan can grow."""
    lasts = [key.rpartition(".")[2] for key in point]
    short = (
        f"{last if lasts.count(last) == 1 else key}-{value}"
        for last, (key, value) in zip(lasts, point.items(), strict=True)
    )
    parts = [method, world, *filter(None, [variant]), *short]
    return "_".join(re.sub(r"[^A-Za-z0-9._-]", "-", part) for part in parts)


@contextmanager
def _at(place: object) -> Generator[None]:
    """Puts the place before what is wrong there."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _check_keys(table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"unknown key {key!r}{hint(key, known)}")


def _get(table: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """A value of a key, of this type; without a default it must be there."""
    value = table.get(key, default)
    if value is None:
        raise InputError(f"{key} is missing")
    if type(value) is not kind:
        raise InputError(f"{key} takes {KINDS[kind]}, got {value!r}")
    return value


def _names(
    table: dict[str, Any], key: str, known: Callable[[str], str], may_be_none: bool = False
) -> list[str]:
    """Names of methods or worlds, as Primax spells them."""
    names = _get(table, key, list)
    if not (names or may_be_none) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{key} takes a list of names, got {names!r}")
    with _at(key):
        return [known(name) for name in names]


def _some(entry: dict[str, Any], key: str, of: list[str], known: Callable[[str], str]) -> list[str]:
    """Those of the plan's that a variant is for: all, unless it says which."""
    names = _names(entry, key, known) if key in entry else of
    for name in names:
        if name not in of:
            raise InputError(f"{key}: {name!r} is not among the plan's{hint(name, of)}")
    return names


def _world_name(name: str) -> str:
    return world_name(find_world(name)[1])


def _seeds(table: dict[str, Any], default: str) -> str:
    """As on the command line, or a number."""
    seeds = table.get("seeds", default)
    if type(seeds) not in (int, str):
        raise InputError(f"seeds takes a number (15), or text ('0-4', '3,7'), got {seeds!r}")
    parse_seeds(seeds)
    return str(seeds)


def _settings(table: dict[str, Any]) -> tuple[Settings, Grid]:
    """What `set` and `grid` say, by the names of fields; both may not say it of the same field."""
    settings = {key: _text(f"set: {key}", value) for key, value in _fields(table, "set")}
    grid: Grid = {}
    for key, values in _fields(table, "grid"):
        if not isinstance(values, list) or not values:
            raise InputError(f"grid: {key} takes a list of values, got {values!r}")
        grid[key] = [_text(f"grid: {key}", value) for value in values]
        if key in settings:
            raise InputError(f"grid: {key} is in set too: keep one of them")
    return settings, grid


def _fields(table: dict[str, Any], part: str) -> Iterator[tuple[str, Any]]:
    """Fields with their values, written as `"critics.gamma" = 0.9` or without quotes."""
    seen: set[str] = set()
    for key, value in leaves(_get(table, part, dict, {})):
        if key in seen:
            raise InputError(f"{part}: {key} is given twice")
        seen.add(key)
        yield key, value


def _text(place: str, value: Any) -> str:
    """A value as --set takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value).strip()
    raise InputError(f"{place} takes a number, text, true or false, got {value!r}")
