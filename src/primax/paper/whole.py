"""Whether a folder holds what its name promises: a whole run, of that cell and no other."""

from functools import cache
from typing import Any

from primax.agent.training import EPISODE_COLUMNS
from primax.config.fields import flatten
from primax.errors import InputError
from primax.paper.experiments import VARIANTS, Cell, Variant
from primax.runs.pack import SCORES
from primax.runs.read import Run
from primax.worlds import make_world

Settings = dict[str, Any]
MOST_SEEDS = 15
"""The tables have a column for each."""
CEILING = ("reward.reward_clip", "critics.gamma", "critics.q_max")
"""What Figure 2 reads of PRIME."""


def check(run: Run, cell: Cell) -> None:
    """Refuses, in one line that names the folder, what cannot stand in a table."""
    _check_settings(run, cell)
    _check_owner(run, cell)
    _check_tables(run)


def _check_settings(run: Run, cell: Cell) -> None:
    """Every setting is of the kind it should be, and the world can be built."""
    found, ours = run.settings, flatten(cell.config("paper"))
    for name, value in ours.items():
        if name in found and not _is_alike(found[name], value):
            raise InputError(f"{run.path} has {found[name]!r} for {name}")
    needed = (*CEILING, "world.horizon")
    gone = [name for name in needed if name in ours and name not in found]
    if gone:
        raise InputError(f"{run.path} does not say what {gone[0]} was")
    if max(run.seeds) >= MOST_SEEDS:
        raise InputError(f"{run.path} has seed {max(run.seeds)}: these tables hold 0 to 14")
    options = {name: value for name, value in run.content["world"].items() if name != "name"}
    try:
        make_world(run.world, **options)
    except (InputError, TypeError, KeyError) as error:
        raise InputError(f"{run.path} has a world that cannot be built: {error}") from error


def _is_alike(value: Any, ours: Any) -> bool:
    """Numbers are one kind; nothing may stand for anything."""
    if value is None or ours is None:
        return True
    numbers = (int, float)
    if isinstance(ours, numbers) and not isinstance(ours, bool):
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, type(ours))


def _check_owner(run: Run, cell: Cell) -> None:
    """Method, world and what makes the variant are the cell's, and no other variant's."""
    variant, held = cell.variant, (run.method, run.world)
    if held != (variant.method, cell.world):
        raise InputError(f"{run.path} holds a run of {held[0]} in {held[1]}, not {cell.name}'s")
    if not _is_of(run, variant, cell.world):
        raise InputError(f"{run.path} lacks the settings that make a run {variant.name}")
    others = (v for v in VARIANTS.values() if v.method == variant.method and v != variant)
    for other in others:
        if set(other.settings) - set(variant.settings) and _is_of(run, other, cell.world):
            raise InputError(f"{run.path} has the settings of {other.name}, not {variant.name}'s")


def _is_of(run: Run, variant: Variant, world: str) -> bool:
    """Whether a run has a variant's own settings, as they are at some scale."""
    found = run.settings
    return any(
        all(found.get(field) == value for field, value in own.items())
        for own in _own(variant.name, world)
    )


@cache
def _own(variant: str, world: str) -> tuple[Settings, ...]:
    """A variant's own settings as values, at the paper's scale and where a smaller one differs."""
    found = []
    for scale in ("paper", *VARIANTS[variant].small):
        values = flatten(Cell(VARIANTS[variant], world).config(scale))
        names = VARIANTS[variant].small.get(scale, VARIANTS[variant].settings)
        found.append({name: values[name] for name in names})
    return tuple(found)


def _check_tables(run: Run) -> None:
    """Those that were kept are there and whole, with all columns; episodes always are."""
    for table, columns in (("episodes", EPISODE_COLUMNS), ("windows", ())):
        found = getattr(run, table) if table == "episodes" or run.keeps(f"{table}.csv") else ()
        if set(found) == set(SCORES) and not run.keeps("windows.csv"):
            continue  # all that was kept of it
        if gone := [name for name in columns if name not in found]:
            raise InputError(f"{run.path / table}.csv has no column {gone[0]}")
