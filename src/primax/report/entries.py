"""Everything a page has of its runs, part by part; what is missing is named."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from primax.errors import InputError
from primax.report import naming
from primax.report.naming import LineStyle, Place
from primax.report.packing import shares
from primax.report.parts import curves, heat, replays
from primax.report.parts.facts import Origin, origin
from primax.report.parts.frozen import frozen
from primax.report.parts.promises import Audit, audited
from primax.report.reading import Gap, attempt, gaps_of
from primax.runs.config_json import PLUGIN
from primax.runs.curves import Grid, grid
from primax.runs.naming import folders
from primax.runs.read import Run, open_run
from primax.runs.tables import Table
from primax.worlds import on_grid

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Read:
    """A run's tables and records as they are on the disk."""

    episodes: Grid | Gap
    long_windows: Table | Gap
    windows: Grid | Gap
    maps: heat.Arrays | Gap
    played: dict[str, Any] | Gap
    """All recorded episodes."""


@dataclass(frozen=True)
class Entry:
    """A run as the page has it."""

    run: Run
    folder: str
    """Its folder's name, with as much of the path as tells it from the others."""
    style: LineStyle
    name: str
    """Method and world, as people say it."""
    place: int
    origin: Origin
    steps: int
    """How far its episodes reach."""
    measures: dict[str, list[float | None]]
    summaries: dict[str, dict[str, float | None] | None]
    audit: Audit | Gap
    curves: dict[str, Any]
    maps: dict[str, Any] | None
    replays: dict[str, Any] | None
    gaps: tuple[Gap, ...]

    @property
    def num_seeds(self) -> int:
        return len(self.run.seeds)

    @property
    def all_steps(self) -> int:
        """Of all its seeds."""
        return self.steps * len(self.run.seeds)


@dataclass(frozen=True)
class Entries:
    """All runs, the worlds they were made in, and folders that could not be read at all."""

    runs: tuple[Entry, ...]
    places: tuple[Place, ...]
    broken: tuple[tuple[str, str], ...]
    window_points: int


def gather(paths: tuple[Path, ...]) -> Entries:
    """Reads every folder."""
    names = folders(paths)
    opened = [
        attempt(name, lambda path=path: open_run(path))
        for path, name in zip(paths, names, strict=True)
    ]
    broken = tuple((found.part, found.why) for found in opened if isinstance(found, Gap))
    runs = [found for found in opened if isinstance(found, Run)]
    names = [name for name, found in zip(names, opened, strict=True) if isinstance(found, Run)]
    places, of_run = naming.places(runs)
    styles = naming.styles(runs, names, of_run)
    read = [_read(run, places[number]) for run, number in zip(runs, of_run, strict=True)]
    points = curves.window_points([r.windows for r in read if not isinstance(r.windows, Gap)])
    rooms = zip(
        shares([0 if isinstance(r.maps, Gap) else heat.need(r.maps) for r in read], heat.BYTES),
        shares(
            [0 if isinstance(r.played, Gap) else replays.need(r.played) for r in read],
            replays.BYTES,
        ),
        strict=True,
    )
    entries = [
        _entry(run, name, style, place, places[place], found, points, room)
        for run, name, style, place, found, room in zip(
            runs, names, styles, of_run, read, rooms, strict=True
        )
    ]
    order = sorted(range(len(entries)), key=lambda i: (entries[i].place, i))
    return Entries(tuple(entries[i] for i in order), tuple(places), broken, points)


def _read(run: Run, place: Place) -> Read:
    windows = attempt("windows", lambda: run.windows)
    maps = attempt("maps", lambda: heat.checked(run.maps(), run.seeds))
    return Read(
        attempt("episodes", lambda: _scored(run)),
        windows,
        _then(windows, "windows", lambda table: grid(table, run.seeds)),
        maps,
        attempt("replays", lambda: _played(run, place, maps)),
    )


def _scored(run: Run) -> Grid:
    found = grid(run.episodes, run.seeds)
    if "score" not in found:
        raise InputError("episodes.csv has no column score")
    if not found["score"].size:
        raise InputError("no episode is over yet")
    return found


def _entry(
    run: Run,
    folder: str,
    style: LineStyle,
    number: int,
    place: Place,
    read: Read,
    points: int,
    rooms: tuple[int, int],
) -> Entry:
    episodes = _then(read.episodes, "episodes", _scores)
    scores = Scores({}, {}, 0) if isinstance(episodes, Gap) else episodes
    windows = _then(read.windows, "windows", lambda table: curves.windows(table, points))
    audit = _then(read.long_windows, "audit", lambda table: audited(run))
    maps = _then(read.maps, "maps", lambda found: heat.pack(found, rooms[0]))
    averages = scores.measures.get("average", [])
    ranked = {s: v for s, v in zip(run.seeds, averages, strict=False) if v is not None}
    played = _then(read.played, "replays", lambda found: replays.choose(found, ranked, rooms[1]))
    parts = (episodes, windows, audit, maps, played)
    gaps = [*gaps_of(run), *(part for part in parts if isinstance(part, Gap))]
    drawn = {"episodes": scores.curves, "windows": {} if isinstance(windows, Gap) else windows}
    return Entry(
        run,
        folder,
        style,
        f"{style.label} · {place.title}",
        number,
        origin(run),
        scores.steps,
        scores.measures,
        {name: curves.summary(values) for name, values in scores.measures.items()},
        audit,
        {table: found for table, found in drawn.items() if found},
        None if isinstance(maps, Gap) else maps,
        None if isinstance(played, Gap) else played,
        tuple(dict.fromkeys(gaps)),
    )


@dataclass(frozen=True)
class Scores:
    """What the table of episodes tells."""

    curves: dict[str, Any]
    measures: dict[str, list[float | None]]
    steps: int


def _scores(table: Grid) -> Scores:
    return Scores(curves.episodes(table), curves.measures(table), int(np.nanmax(table["step"])))


def _then(found: T | Gap, part: str, use: Callable[[T], U]) -> U | Gap:
    """What is made of a part that was read; why not, where it was not or cannot be."""
    if isinstance(found, Gap):
        return replace(found, part=part)
    return attempt(part, lambda: use(found))


def _played(run: Run, place: Place, maps: heat.Arrays | Gap) -> dict[str, Any]:
    lines = run.replays()
    if place.world is None:
        raise InputError(f"this version has no world {run.world!r} with these options; {PLUGIN}")
    kept = attempt("frozen reward", lambda: frozen(run))
    known = replays.Known(
        run.seeds,
        None if isinstance(maps, Gap) else maps,
        None if isinstance(kept, Gap) else kept,
    )
    return replays.pack(lines, on_grid(place.world, "a recorded episode"), known)
