"""What a bonus is given of experience."""

from typing import Any

import equinox as eqx


class Transition(eqx.Module):
    """Steps of one or many environments: axes [time, envs] lead every field, or [envs], or none.

    `next_obs` is what the step led to, in an episode's last step too: never the next one's first.
    """

    obs: Any
    """What the environments showed before the step."""
    action: Any
    """What the agent did then: whole numbers."""
    next_obs: Any
    """What the step led to."""
    terminated: Any = None
    """The episode ended by itself: nothing comes after."""
    truncated: Any = None
    """The episode was cut, by a time limit or the like."""
    key: Any = None
    """The state's key, where keys are given."""
    next_key: Any = None
    """The key of the state that the step led to."""
    task: Any = None
    """The environment's own reward; only the method `task` reads it."""
    valid: Any = None
    """Whether the row is a step at all; a step that only resets is not. Default: all are."""
    memo: Any = ()
    """What the reward keeps with `obs`, for rewards that keep something (see `Bonus.memo`)."""
    next_memo: Any = ()
    """The same with `next_obs`."""
