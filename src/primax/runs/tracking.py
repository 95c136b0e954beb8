"""What other people's trackers are told of a run: every window, under the names of its tables.

They only listen. One that cannot begin is refused before anything costs time; one that fails later
is told of once and left out, and the run goes on.
"""

import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primax.agent.training import Progress, Table
from primax.config.schema import Config
from primax.errors import InputError, one_line
from primax.runs.loop import OnWindow
from primax.runs.progress import stderr_lines
from primax.runs.read import leaves
from primax.runs.tables import PLACES, digest_of
from primax.worlds import world_name

Values = dict[str, float]
Plain = bool | int | float | str


@dataclass(frozen=True)
class About:
    """What a run says of itself to its trackers."""

    id: str
    """Eight letters, the same in every part of a run that is stopped and taken up again."""
    name: str
    config: dict[str, Plain]
    """Every setting under its dotted name, and the seeds."""
    folder: Path | None = None
    clock: int = 0
    """The step it goes on from."""


@dataclass(frozen=True)
class Book:
    """A tracker that has begun."""

    write: Callable[[int, Values], object]
    """Told the numbers of the window that ends at a step."""
    close: Callable[[bool], object]
    """Told whether the run came to its end."""
    since: int = 0
    """The step up to which it has this run already: it is not told of that again."""


Open = Callable[[About], Book]


@dataclass(frozen=True)
class Tracker:
    """Listens to a run: `primax.train` takes it as `on_window`."""

    opens: tuple[tuple[str, Open], ...] = ()
    """By name."""

    @contextmanager
    def following(self, run: About, on_window: OnWindow) -> Generator[OnWindow]:
        """Whom to tell of every window while the context lasts: the trackers, then `on_window`."""
        books, is_over = dict[str, Book](), False

        def tell(progress: Progress) -> None:
            nonlocal is_over
            _write(books, progress)
            on_window(progress)
            is_over = progress.clock == progress.total

        try:
            for name, begin in self.opens:
                books[name] = _begun(name, begin, run)
            yield tell
        finally:
            for name, book in books.items():
                _close(name, book, is_over)


def about(config: Config, seeds: Sequence[int]) -> About:
    """A run in memory, which nothing outlives."""
    name = f"{config.method}_{_world(config)}"
    return About(secrets.token_hex(4), name, plain(config, seeds))


def about_folder(
    folder: Path, config: Config, seeds: Sequence[int], first: dict[str, Any], clock: int
) -> About:
    """A run in a folder; its first part tells it from every other, wherever the folder goes."""
    known = (first.get("command"), first.get("started"), config.method, _world(config), *seeds)
    name = one_line(folder.resolve().name)
    return About(digest_of(repr(known).encode())[:8], name, plain(config, seeds), folder, clock)


def plain(config: Config, seeds: Sequence[int]) -> dict[str, Plain]:
    """Every setting under its dotted name; what is no number and no text as text."""
    content = {"world": {"name": _world(config)}, "seeds": list(seeds)}
    told = [*leaves(content), *leaves(asdict(config))]
    return {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in told
        if value is not None
    }


def _world(config: Config) -> str:
    """Its name; an object of somebody's own may have none."""
    try:
        return world_name(config.world)
    except InputError:
        return type(config.world).__name__.removesuffix("Config")


def numbers(progress: Progress) -> Values:
    """The mean over seeds of each column, `episodes/score` or `windows/loss`; and each seed's score.

    A seed's episodes in a window count as their mean. What no seed has is left out.
    """
    found = Values()
    for table, columns in (("episodes", progress.episodes), ("windows", progress.window)):
        for name in (name for name in columns if name not in PLACES):
            seeds, means = _means(columns, name)
            if len(means):
                found[f"{table}/{name}"] = float(means.mean())
            if name == "score":
                each = zip(seeds.tolist(), means.tolist(), strict=True)
                found |= {f"{table}/score/{seed}": mean for seed, mean in each}
    return found


def _means(columns: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The seeds that have a value, and the mean of each."""
    values = columns[name].astype(float)
    known = ~np.isnan(values)
    seeds, place = np.unique(columns["seed"][known], return_inverse=True)
    return seeds, np.bincount(place, values[known]) / np.bincount(place)


def _begun(name: str, begin: Open, run: About) -> Book:
    try:
        return begin(run)
    except InputError:
        raise
    except Exception as error:  # a stranger's library may raise anything
        raise InputError(f"{name} cannot begin ({_reason(error)})") from error


def _write(books: dict[str, Book], progress: Progress) -> None:
    """Tells every tracker; one that fails is told of, and out."""
    values = numbers(progress) if books else {}
    for name, book in list(books.items()):
        if progress.clock <= book.since or not values:
            continue
        try:
            book.write(progress.clock, values)
        except Exception as error:  # a full disk, a network, a bug: none is worth the run
            _say(f"{name} failed at step {progress.clock:,} and is left out ({_reason(error)})")
            del books[name]
            with suppress(Exception):  # it was told of
                book.close(False)


def _close(name: str, book: Book, is_over: bool) -> None:
    try:
        book.close(is_over)
    except Exception as error:
        _say(f"{name} could not be closed ({_reason(error)})")


def _say(line: str) -> None:
    stderr_lines().print(f"primax: {line}; the run is whole without it")


def _reason(error: Exception) -> str:
    return one_line(" ".join(f"{type(error).__name__}: {error}".split()))
