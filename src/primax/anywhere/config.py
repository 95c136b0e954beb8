"""Options of a bonus; those the engine has too are called what they are called there."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from primax.config.fields import Range, check
from primax.config.schema import NetConfig
from primax.errors import InputError, check_range

NO_LIMIT = 1_000_000_000
"""Steps of an episode, where nothing limits them."""


@dataclass(frozen=True)
class Critics:
    """What a bonus knows of the agent, and of the minibatches it learns from."""

    gamma: Annotated[float, Range(0, 0.999999)] = 0.99
    """The agent's discount per step."""
    batch: Annotated[int, Range(1, 65_536)] = 64
    """Transitions in a minibatch."""

    def __post_init__(self):
        check(self, "critics.")


@dataclass(frozen=True)
class Episodes:
    """What a bonus knows of episodes."""

    horizon: Annotated[int, Range(1, NO_LIMIT)] = NO_LIMIT
    """The most steps one has."""

    def __post_init__(self):
        check(self, "world.")


@dataclass(frozen=True)
class BonusConfig:
    """One reward beside someone's agent; all numbers count transitions over all environments."""

    method: str
    """Which reward."""
    reward: Any
    """The reward's options."""
    envs: Annotated[int, Range(1, 65_536)] = 1
    """Environments that are stepped together."""
    window: Annotated[int, Range(1, 10**9)] = 1_000
    """Transitions for which the reward is frozen."""
    warmup: Annotated[int, Range(1, 10**9)] = 1_000
    """Transitions before the first window: until then every reward is zero, and nothing is learnt."""
    update_every: Annotated[int, Range(0, 10**9)] = 4
    """Transitions between updates of the reward's own networks; 0 leaves them to `learn`."""
    replay: Annotated[int, Range(2, 10**8)] = 100_000
    """Transitions kept, from which minibatches are drawn."""
    recent: Annotated[int, Range(1, 10**8)] = 5_000
    """Newest transitions that a window is frozen from."""
    net: NetConfig = field(default_factory=NetConfig)
    """Shape and precision of every network."""
    critics: Critics = field(default_factory=Critics)
    """The agent's discount, and the size of minibatches."""
    world: Episodes = field(default_factory=Episodes)
    """How long episodes are."""

    def __post_init__(self):
        check(self)
        check_range("envs", self.envs, 1, self.window)
        for name in ("warmup", "recent"):
            if getattr(self, name) > self.replay - self.envs:
                raise InputError(
                    f"{name} ({getattr(self, name)}) must be shorter than replay ({self.replay})"
                )
        if self.recent < self.envs:
            raise InputError(f"recent ({self.recent}) must hold a step of all {self.envs} envs")

    @property
    def snapshot(self) -> str:
        """What a window is frozen from: here always the newest rows."""
        return "newest"

    @property
    def horizon(self) -> int:
        """Steps after which an episode is cut."""
        return self.world.horizon

    @property
    def reward_gamma(self) -> float:
        """The discount under which the reward is valued: the agent's."""
        return self.critics.gamma

    @property
    def ticks(self) -> int:
        """Steps of all environments together that are kept."""
        return self.replay // self.envs

    @property
    def recent_ticks(self) -> int:
        """As many of them as a window is frozen from: no row of `recent` is left out."""
        return -(-self.recent // self.envs)

    @property
    def warm_ticks(self) -> int:
        """As many of them as come before the first window."""
        return -(-self.warmup // self.envs)
