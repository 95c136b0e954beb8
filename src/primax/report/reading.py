"""The parts of a page, each read with patience: it is there, or it is said why it is not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from primax.errors import InputError
from primax.runs.read import Run

T = TypeVar("T")
FILES = {
    "episodes": "episodes.csv",
    "windows": "windows.csv",
    "audit": "windows.csv",
    "maps": "maps.npz",
    "replays": "replays.jsonl",
}
"""Where the parts of a page come from."""


@dataclass(frozen=True)
class Gap:
    """Something a page cannot show, and why."""

    part: str
    why: str


def attempt(part: str, read: Callable[[], T]) -> T | Gap:
    """What `read` gives, or why there is nothing.

    A folder can be damaged in any way and a page is still to be made of the rest, so whatever goes
    wrong here is put on the page.
    """
    try:
        return read()
    except InputError as error:
        return Gap(part, str(error))
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Gap(part, f"{FILES.get(part, part)} cannot be used ({reason})")


def gaps_of(run: Run) -> list[Gap]:
    """What a run's manifest says is missing of it."""
    gaps = []
    if run.damage:
        gaps.append(Gap("manifest", run.damage))
    elif not run.manifest:
        gaps.append(Gap("manifest", "no manifest.json: the run was not begun, or it was removed"))
    if not run.is_finished:
        why = f"the run is not finished: primax resume {run.path} goes on with it"
        gaps.append(Gap("rest of the run", why))
    return gaps
