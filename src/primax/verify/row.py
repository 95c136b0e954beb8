"""One promise, its bound, what was measured, and what follows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

HOLDS, FAILS = "holds", "fails"
PREMISE = "premise not met"
"""The result is conditional and its condition is not there: neither a pass nor a failure."""
ABSENT = "does not apply"

SLACK = 1e-5
"""Relative slack of a bound on float32 numbers."""


@dataclass(frozen=True)
class Row:
    """A line of `primax verify`."""

    name: str
    statement: str
    bound: str
    measured: str
    verdict: str
    numbers: dict[str, Any] = field(default_factory=dict)
    """The measured quantities, for programs."""


def verdict(is_held: bool | np.bool_, is_premise: bool | np.bool_ = True) -> str:
    """`fails` only where the premise is there and the promise is not kept."""
    if not is_premise:
        return PREMISE
    return HOLDS if is_held else FAILS


def text(value: float | np.floating) -> str:
    """A number for people."""
    return f"{value:.4g}"
