"""What the page's script reads: an index of all runs, and chunks it parses when they are looked at."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from primax.paper.experiments import VARIANTS
from primax.report.entries import Entries, Entry
from primax.report.naming import Place
from primax.report.parts import heat, lines
from primax.report.reading import Gap, attempt
from primax.runs import curves
from primax.worlds import ACTIONS, GridWorld, World

MANY = 7
"""More lines than this at once cannot be told apart."""
Numbered = tuple[int, Entry]


def ordered(entries: Entries) -> Entries:
    """World by world, the highest average first; of many runs the paper's own before the others."""

    def rank(entry: Entry) -> tuple[int, bool, float]:
        return entry.place, not _is_first(entry, entries.runs), -_average(entry)

    return replace(entries, runs=tuple(sorted(entries.runs, key=rank)))


def grouped(entries: Entries) -> list[dict[str, Any]]:
    """Worlds with their level lines and their numbered runs; `own` of them come first."""
    found = []
    for i, place in enumerate(entries.places):
        here = [(k, entry) for k, entry in enumerate(entries.runs) if entry.place == i]
        own = sum(_is_first(entry, entries.runs) for _, entry in here) or len(here)
        group = {"place": place, "lines": _lines(place)} | _lead(here)
        found.append(group | {"runs": here, "own": own})
    return found


def _is_first(entry: Entry, runs: tuple[Entry, ...]) -> bool:
    """Whether it is not put after the paper's own: it is one, or its world has few runs."""
    known = VARIANTS.get(entry.style.variant)
    return (known is not None and known.is_papers) or (
        sum(other.place == entry.place for other in runs) <= MANY
    )


def _lead(runs: list[Numbered]) -> dict[str, Any]:
    """What a headline names: PRIME where it was run, and the highest; decimals that fit them."""
    scored = [entry for _, entry in runs if entry.summaries.get("average")]
    scored.sort(key=_average, reverse=True)
    primes = [entry for entry in scored if entry.style.variant == "prime"]
    tops = [(entry.summaries["peak"] or {}).get("mean") or 0.0 for entry in scored]
    decimals = 3 if max(tops, default=0.0) <= 1 else 2
    return {
        "first": (primes or scored or [None])[0],
        "best": (scored or [None])[0],
        "decimals": decimals,
    }


def _lines(place: Place) -> list[dict[str, Any]]:
    found = attempt("level lines", lambda: lines.lines(place))
    return [] if isinstance(found, Gap) else found


def _average(entry: Entry) -> float:
    mean = (entry.summaries.get("average") or {}).get("mean")
    return float("-inf") if mean is None else mean


def index(entries: Entries, groups: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script needs before anything is drawn."""
    return {
        "runs": [
            _run(entry) | {"alike": alike(entries.places[entry.place].world, entry.run.seeds)}
            for entry in entries.runs
        ],
        "places": [
            {
                "title": group["place"].title,
                "score": group["place"].score,
                "lines": group["lines"],
                "runs": [number for number, _ in group["runs"]],
                "own": group["own"],
                "walls": _walls(group["place"].world),
            }
            for group in groups
        ],
        "columns": {
            "episodes": [asdict(column) for column in (*curves.EPISODES, *_some(entries))],
            "windows": [asdict(column) for column in curves.WINDOWS],
        },
        "many": MANY,
        "maps": heat.MAPS,
        "actions": _actions(entries.places),
    }


def _some(entries: Entries) -> list[curves.Column]:
    """Columns of some worlds alone, where a run has them."""
    known = [entry.curves.get("episodes", {}).get("columns", {}) for entry in entries.runs]
    return [some for some in curves.SOME if any(some.name in columns for columns in known)]


def _run(entry: Entry) -> dict[str, Any]:
    style = entry.style
    return {
        "name": entry.name,
        "label": style.label,
        "variant": style.variant,
        "colour": style.colour,
        "onDark": style.on_dark,
        "dash": list(style.dash),
        "place": entry.place,
        "seeds": list(entry.run.seeds),
        "method": entry.run.method,
        "measures": entry.measures,
        "summaries": entry.summaries,
        "columns": {table: list(found["columns"]) for table, found in entry.curves.items()},
        "hasMaps": entry.maps is not None,
        "hasReplays": entry.replays is not None,
    }


def _actions(places: Sequence[Place]) -> list[str]:
    """Of grids; noise may have a switch beside them."""
    grids = (place.world for place in places if isinstance(place.world, GridWorld))
    return list(max([ACTIONS, *(world.actions for world in grids)], key=len))


def _walls(world: World | None) -> list[int]:
    if not isinstance(world, GridWorld):
        return []
    return np.flatnonzero(np.asarray(world.walls)).tolist()


def alike(world: World | None, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """Where worlds differ by seed: which places in `seeds` have the same one, and its walls."""
    groups: dict[Any, dict[str, Any]] = {}
    for i, seed in enumerate(seeds):
        mine = world if world is None else world.for_seed(seed)
        leaves, kind = jax.tree.flatten(mine)
        key = kind, tuple(np.asarray(leaf).tobytes() for leaf in leaves)
        groups.setdefault(key, {"seeds": [], "walls": _walls(mine)})["seeds"].append(i)
    return list(groups.values()) if len(groups) > 1 else []


def chunks(entries: Entries) -> list[tuple[str, dict[str, Any]]]:
    """Under the id of the element each is kept in."""
    found = []
    for i, entry in enumerate(entries.runs):
        parts = {"curves": entry.curves, "maps": entry.maps, "replays": entry.replays}
        found += [(f"data-{i}-{kind}", content) for kind, content in parts.items() if content]
    return found
