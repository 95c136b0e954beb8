"""A bonus that keeps its own state and knows its weight, for libraries that only call.

Nothing here knows which library that is.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primax.anywhere.bonus import Bonus, bonus
from primax.anywhere.space import Space
from primax.anywhere.transition import Transition
from primax.errors import InputError, check_choice, check_range, hint
from primax.methods import Method, find_method
from primax.rewards.keys import Given

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda progress_remaining: 1.0,
    "linear": lambda progress_remaining: progress_remaining,
}
"""What becomes of the weight as the progress that remains goes from 1 to 0."""
FREE = ("prime", "rnd", "count")
"""Methods to name where another cannot be had."""


@dataclass(frozen=True)
class Options:
    """Which bonus stands beside the task, and what each of the two counts."""

    bonus: Any = "prime"
    """A method's name, a `primax.Method`, or a function of (space, envs) that gives a `primax.bonus`."""
    weight: int | float = 0.1
    """What the bonus counts; 0 leaves the task alone."""
    task: int | float = 1.0
    """What the task counts; 0 leaves the bonus alone."""
    schedule: Any = "constant"
    """What the weight is multiplied by: `constant`, `linear` (to zero), or a function of the progress
    that remains, from 1 to 0."""
    steps: int | None = None
    """Steps of all environments over which the schedule goes; None takes the library's own progress."""
    gamma: int | float | None = None
    """The agent's discount, which PRIME and others read."""
    keys: Any = None
    """Which observations are one state, as `primax.bonus` takes it; None is SimHash."""
    settings: Mapping[str, object] | None = None
    """Fields of the bonus by name: {"window": 2_000}."""
    seed: int = 0
    """The seed of the bonus's own random numbers."""

    @classmethod
    def of(cls, bonus: Any, given: Mapping[str, Any]) -> "Options":
        """From what a user wrote; an option that does not exist is answered with the nearest."""
        known = [field.name for field in dataclasses.fields(cls) if field.name != "bonus"]
        for name in given:
            if name not in known:
                raise InputError(f"unknown option {name!r}{hint(name, known)}")
        _check_given(bonus, given)
        return cls(bonus, **given)

    @property
    def is_scheduled(self) -> bool:
        """Whether the weight depends on how far learning is."""
        return self.schedule != "constant"

    def weight_at(self, progress_remaining: float) -> float:
        """The weight where so much of learning remains: 1 at first, 0 at the end."""
        function = self.schedule if callable(self.schedule) else SCHEDULES[self.schedule]
        found = function(progress_remaining)
        if not isinstance(found, int | float | np.number) or not math.isfinite(found):
            raise InputError(f"schedule: expected a number, got {found!r}")
        return self.weight * float(found)

    def make(self, space: Space, envs: int, gamma: float) -> Bonus:
        """The bonus over these environments; what a library cannot serve is refused."""
        if isinstance(self.bonus, Bonus):
            raise InputError(
                "bonus takes a name, or a function of (space, envs) that gives this object:"
                " saved agents keep how it is made, and not the object"
            )
        if _is_function(self.bonus):
            made = self.bonus(space, envs)
            if not isinstance(made, Bonus):
                raise InputError(f"bonus: the function gave {made!r}, expected a primax.bonus")
        else:
            entry = find_method(self.bonus)
            if getattr(entry.reward, "needs_horizon", False):
                raise _asks_too_much(entry.name)
            keys = "simhash" if self.keys is None else self.keys
            made = bonus(entry, space, envs, gamma, keys, settings=self.settings)
        _check_served(made, envs)
        return made


NUMBERS = {"weight": (0, 1e6), "task": (0, 1e6), "gamma": (0, 0.999999)}
WHOLE = {"steps": (1, 2**31 - 1), "seed": (0, 2**31 - 1)}


def _check_given(bonus: Any, given: Mapping[str, Any]) -> None:
    """Refuses values that an option does not take."""
    takes = (("a number", NUMBERS, int | float), ("a whole number", WHOLE, int))
    for what, limits, kind in takes:
        for name, (low, high) in limits.items():
            if (value := given.get(name)) is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kind):
                raise InputError(f"{name} takes {what}, got {value!r}")
            check_range(name, value, low, high)
    schedule = given.get("schedule", "constant")
    if not callable(schedule):
        check_choice("schedule", schedule, SCHEDULES)
    if not isinstance(given.get("settings") or {}, Mapping):
        raise InputError(f"settings takes fields by name, got {given['settings']!r}")
    said = [name for name in ("gamma", "keys", "settings") if given.get(name) is not None]
    if said and _is_function(bonus):
        raise InputError(f"{said[0]}: say it in the function that makes the bonus")


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, str | Method | Bonus)


def _asks_too_much(name: str) -> InputError:
    return InputError(
        f"{name} gives the agent more to see than the observation, and nobody passes that on here:"
        f" choose another, such as {', '.join(FREE)}"
    )


def _check_served(made: Bonus, envs: int) -> None:
    reward = made.core.reward
    if reward.needs_horizon or reward.reads_memo:
        raise _asks_too_much(made.config.method)
    if isinstance(made.core.keys, Given):
        raise InputError(
            "keys='given' cannot be had here, where a step has no keys: take keys='simhash',"
            " 'place', 'codes' or 'encoded', or keys=(function of an observation, how many)"
        )
    if made.envs != envs:
        raise InputError(f"the bonus is for {made.envs} environments, the agent has {envs}")


class Kept:
    """A bonus, its state, and the sum with the task."""

    def __init__(self, options: Options, space: Space, envs: int, gamma: float):
        self.options = options
        gamma = gamma if options.gamma is None else options.gamma
        self.bonus = options.make(space, envs, gamma)
        self.state = self.bonus.init(options.seed)

    def step(self, steps: Transition) -> np.ndarray:
        """Takes in a step of every environment, and says what each is worth before the weight."""
        self.state, worth = self.bonus.step(self.state, steps)
        return worth

    def score(self, rows: Transition) -> np.ndarray:
        """What rows are worth now, before the weight."""
        return self.bonus.score(self.state, rows)

    def weight(self, progress_remaining: float = 1.0) -> float:
        """What the bonus counts now; the progress is that of `steps`, where there are some."""
        steps = self.options.steps
        if steps is not None and self.options.is_scheduled:
            progress_remaining = max(0.0, 1.0 - int(self.state.clock) / steps)
        return self.options.weight_at(progress_remaining)

    def added(self, task: np.ndarray, worth: np.ndarray, weight: float) -> np.ndarray:
        """The sum that an agent learns from."""
        return np.asarray(self.options.task * task + weight * worth, np.float32)

    def save(self, path: str | Path) -> None:
        """Writes the bonus's state to one file."""
        self.bonus.save(self.state, path)

    def load(self, path: str | Path) -> None:
        """Goes on from a file."""
        self.state = self.bonus.load(path)
