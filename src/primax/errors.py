"""Wrong input, said in one line."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


class InputError(ValueError):
    """The caller's input cannot be used; the message is one line that says what to do."""


class RunError(Exception):
    """A run cannot go on; the message is one line that says what happened and what is kept."""

    status = 1
    """The exit status of a command that it ends."""


class StoppedError(RunError):
    """A run was asked to stop, and has."""


class LeftError(RunError):
    """Some of the runs are left to other processes, which have not finished them yet."""

    status = 3


def one_line(text: object) -> str:
    """For a terminal: what would move its cursor, or end the line, is shown as its code."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def canonical(name: str) -> str:
    """`Centre-Stay` and `centre_stay` are one name: lower case, underscores."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def hint(name: str, known: Iterable[str], group: str = "") -> str:
    """`; did you mean X?` where one known name is close, else the list of them; all of one group."""
    spelt = {canonical(one): one for one in known}
    close = difflib.get_close_matches(canonical(name), spelt, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {group}{spelt[close[0]]}?"
    return f"; choose from {', '.join(group + one for one in spelt.values())}"


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry called `name`, or one line naming the nearest."""
    entry = table.get(canonical(str(name)))
    if entry is None:
        raise InputError(f"unknown {kind} {str(name)!r}{hint(str(name), table)}")
    return entry


def check_choice(field: str, value: str, choices: Iterable[str]) -> None:
    """Refuses a value outside `choices`, naming the field and the nearest choice."""
    if value not in choices:
        raise InputError(f"{field} has no value {value!r}{hint(str(value), choices)}")


def check_range(field: str, value: int | float, low: int | float, high: int | float) -> None:
    """Refuses a number outside [low, high], naming the field."""
    if not low <= value <= high:
        raise InputError(f"{field} must be between {low} and {high}, got {value!r}")
