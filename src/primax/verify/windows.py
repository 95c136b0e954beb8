"""A bound against the columns of a run's table of windows; a breach names its step and seed."""

from dataclasses import replace

import numpy as np

from primax.errors import InputError
from primax.verify.row import SLACK, Row, verdict

Table = dict[str, np.ndarray]
NAMED = 3
"""How many breaches a row names; the rest are counted."""


def breaches(table: Table, is_held: np.ndarray) -> str:
    """Where a bound is broken: step and seed of the first few, and how many more; empty if nowhere."""
    at = np.flatnonzero(~is_held)
    at = at[np.lexsort((table["seed"][at], table["step"][at]))]
    named = [f"step {table['step'][i]:,.0f} seed {table['seed'][i]:.0f}" for i in at[:NAMED]]
    more = [f"{len(at) - NAMED} more"] if len(at) > NAMED else []
    return ", ".join(named + more)


def within(values: np.ndarray, bound: np.ndarray | float) -> np.ndarray:
    """Not above; a number that is none is not within anything."""
    return values <= bound + SLACK * np.abs(bound)


def column(table: Table, name: str) -> np.ndarray:
    """What a run logged under a name."""
    if name not in table:
        raise InputError(f"windows.csv has no column {name}: the run is not of this version")
    return table[name]


def judged(
    name: str, statement: str, bound: str, table: Table, held: np.ndarray, measured: str
) -> Row:
    """A row about every window of every seed."""
    broken = breaches(table, held)
    measured = f"broken at {broken}; {measured}" if broken else f"{measured}; {len(held)} windows"
    numbers = {"windows": len(held), "broken": int(np.sum(~held))}
    return Row(name, statement, bound, measured, verdict(not broken), numbers)


def assumed(
    name: str,
    statement: str,
    bound: str,
    table: Table,
    found: tuple[np.ndarray, np.ndarray],
    measured: str,
) -> Row:
    """A premise: broken, it is not met; only a number that is none makes it fail."""
    values, held = found
    is_number = np.isfinite(values)
    row = judged(name, statement, bound, table, held, measured)
    return replace(row, verdict=verdict(bool(np.all(is_number)), bool(np.all(held | ~is_number))))
