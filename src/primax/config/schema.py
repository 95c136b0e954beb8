"""Everything a run depends on, as frozen dataclasses."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

from primax.config.fields import Choice, Later, Range, check
from primax.config.symbols import Symbol
from primax.errors import InputError, check_range

TRUNCATIONS = ("bootstrap", "end")
TAKES = ("whole", "trunk")


@dataclass(frozen=True)
class NetConfig:
    """The trunk every network of a run has."""

    first_channels: Annotated[int, Range(1, 1_024)] = 16
    """Channels after the first 3x3 convolution."""
    second_channels: Annotated[int, Range(1, 1_024)] = 32
    """Channels after the second 3x3 convolution."""
    embedding: Annotated[int, Range(1, 65_536)] = 64
    """Width of the embedding."""
    activation: Annotated[str, Choice(("linear", "relu"))] = "linear"
    """Of the embedding: `linear` (the paper's text taken literally) or `relu`."""
    precision: Annotated[str, Choice(("default", "highest", "bfloat16"))] = "default"
    """`default` (float32; on a GPU factors of products in TF32 or float16), `highest` (float32), or `bfloat16`."""
    planes: Annotated[str, Choice(("grid", "flat")), Later()] = "grid"
    """Whether planes go through convolutions (`grid`), or as one row of numbers through two hidden layers (`flat`)."""
    kernels: bool = True
    """Whether the trunk runs as kernels of its own where it can: on a GPU, not at `highest`."""

    def __post_init__(self):
        check(self, "net.")

    @property
    def dtype(self) -> str:
        """What the trunk's activations are kept in; parameters are always float32."""
        return "bfloat16" if self.precision == "bfloat16" else "float32"


@dataclass(frozen=True)
class CriticsConfig:
    """The Double-DQN ensemble."""

    heads: Annotated[int, Range(1, 100), Symbol("K")] = 1
    """Critics; by default each has its own trunk, and the agent acts on their mean."""
    double: bool = True
    """Whether the online critic picks the action that the target critic values."""
    gamma: Annotated[float, Range(0, 0.999999), Symbol("γ")] = 0.99
    """Discount per step."""
    learning_rate: Annotated[float, Range(0, 1), Symbol("lr")] = 3e-4
    """Adam's step size."""
    grad_clip: Annotated[float, Range(1e-6, 1e9)] = 10.0
    """Largest global gradient norm of one head."""
    q_max: Annotated[float, Range(1e-6, 1e9), Symbol("Q_max")] = 20.0
    """Where the soft bound on |Q| begins."""
    q_penalty: Annotated[float, Range(0, 1e6)] = 0.0
    """Weight of the soft bound; PRIME's is 0.1, the baselines have none."""
    batch: Annotated[int, Range(1, 65_536)] = 64
    """Transitions in a minibatch."""
    sync_every: Annotated[int, Range(1, 10**9)] = 1_000
    """Environment steps between copies of the online critics to the targets."""
    truncation: Annotated[str, Choice(TRUNCATIONS), Later()] = "bootstrap"
    """What a target takes the time limit for: no end (`bootstrap`, the paper's text), or an `end`."""

    acting: Annotated[str, Choice(("mean", "episode")), Later()] = "mean"
    """Whose values the agent acts on: the heads' `mean`, or those of a head drawn for each `episode`."""
    trunk: Annotated[str, Choice(("own", "shared")), Later()] = "own"
    """Whether each head has its `own` trunk, or all have one, `shared`."""

    def __post_init__(self):
        check(self, "critics.")


@dataclass(frozen=True)
class ExploreConfig:
    """The ε-greedy schedule: linear, then flat."""

    start: Annotated[float, Range(0, 1), Symbol("ε_start")] = 1.0
    """ε at step 0."""
    end: Annotated[float, Range(0, 1), Symbol("ε_end")] = 0.05
    """ε from the end of the ramp on."""
    fraction: Annotated[float, Range(0, 1)] = 0.25
    """Share of the schedule's steps the ramp takes, warm-up included."""

    def __post_init__(self):
        check(self, "explore.")


@dataclass(frozen=True)
class MixConfig:
    """How a bonus stands beside the task: of methods such as `task+prime`."""

    weight: Annotated[float, Range(0, 1e6)] = 0.1
    """What the bonus counts beside the task, after its own scale and clip."""
    schedule: Annotated[str, Choice(("constant", "linear", "cosine"))] = "linear"
    """How the weight goes on: `constant`, or to zero in a `linear` or `cosine` way; window by window."""
    fraction: Annotated[float, Range(1e-6, 1)] = 1.0
    """Share of the schedule's steps by which a `linear` or `cosine` weight is zero."""
    values: Annotated[str, Choice(("one", "two"))] = "one"
    """Whether critics learn `one` value, of the weighted sum, or `two`, whose weighted sum is acted on."""
    gamma: Annotated[float, Range(0, 0.999999)] = 0.99
    """With `two` values, the discount of the bonus's; critics.gamma is the task's, or that of the one."""

    def __post_init__(self):
        check(self, "mix.")


KEYS = ("simhash", "encoded", "codes", "place")


@dataclass(frozen=True)
class KeysConfig:
    """How observations become states that can be counted, where the world's own key is not used."""

    bits: Annotated[int, Range(1, 32)] = 32
    """Signs of random projections in a code (`simhash`, `encoded`)."""
    size: Annotated[int, Range(2, 10_000_000)] = 65_536
    """Keys that these are spread over, where there are more of them."""
    kind: Annotated[str, Choice(KEYS), Later()] = "simhash"
    """`simhash` of what is seen or, `encoded`, of what an inverse model makes of it; rounded \
`codes` of an inverse model; or the `place` where actions show."""
    dims: Annotated[int, Range(1, 16), Later()] = 4
    """Whole numbers in a code (`codes`)."""
    levels: Annotated[int, Range(2, 64), Later()] = 8
    """Values that each of them takes."""
    slow_levels: Annotated[int, Range(1, 64), Later()] = 8
    """Levels of one number beside what is learnt, for what changes slowly; 1 leaves it out."""
    learning_rate: Annotated[float, Range(0, 1), Later()] = 1e-3
    """Adam's step size for what is learnt."""
    growth: Annotated[float, Range(1.01, 100), Later()] = 1.25
    """Learnt keys are renewed when there are so many times more windows, as long as the ring holds all."""

    def __post_init__(self):
        check(self, "keys.")


@dataclass(frozen=True)
class StartConfig:
    """The networks a run began with, where they were not new: those of `primax train --from`."""

    method: str
    """What had trained them."""
    steps: Annotated[int, Range(0, 10**9)]
    """The step of their run when they were taken."""
    which: Annotated[str, Choice(("last", "best", "oracle"))]
    """The last, those at the best coverage, or those at the best task score."""
    take: Annotated[str, Choice(TAKES)]
    """Whether the critics were taken `whole`, or their `trunk` with a new output layer."""
    digest: str
    """Of their arrays, which are in start.npz."""

    def __post_init__(self):
        check(self, "start.")


@dataclass(frozen=True)
class Config:
    """One run of one method in one world."""

    method: str
    """Which reward drives the learner."""
    world: Any
    """The world's options."""
    reward: Any
    """The reward's options."""
    steps: Annotated[int, Range(1, 10**9)] = 250_000
    """Environment steps for each seed, warm-up included."""
    schedule_steps: Annotated[int | None, Range(1, 10**9), Later()] = None
    """Steps that schedules are laid over, warm-up included; none: all of the run's."""
    window: Annotated[int, Range(1, 10**9)] = 1_000
    """Environment steps for which the reward is frozen."""
    warmup: Annotated[int, Range(1, 10**9)] = 1_000
    """Random steps before learning and before the first window."""
    update_every: Annotated[int, Range(1, 10_000)] = 4
    """Environment steps between updates."""
    replay: int = 100_000
    """Rows the ring holds."""
    recent: Annotated[int, Range(1, 10**8)] = 5_000
    """Rows of the snapshot a window's refresh sees."""
    snapshot: Annotated[str, Choice(("newest", "random")), Later()] = "newest"
    """Which rows those are: the `newest`, or whole episodes drawn at `random` from the ring."""
    net: NetConfig = field(default_factory=NetConfig)
    """Shape and precision of every network."""
    critics: CriticsConfig = field(default_factory=CriticsConfig)
    """The control ensemble."""
    explore: ExploreConfig = field(default_factory=ExploreConfig)
    """How the agent explores."""
    mix: MixConfig | None = None
    """How the task and a bonus are mixed, where they are."""
    start: StartConfig | None = None
    """The networks it began with, where they were not new."""
    keys: KeysConfig | None = None
    """How states are told apart, where the world does not say."""

    def __post_init__(self):
        check(self)
        if self.method.startswith("task+") != (self.mix is not None):
            raise InputError(f"method {self.method!r} and mix do not fit: `task+prime` has a mix")
        every = self.update_every
        self._multiple("window", self.window, every, f"update_every ({every})")
        if self.is_free:
            check_range("replay", self.replay, 2, 10**8)
            parts = {"replay": self.replay, "warmup": self.warmup}
            parts |= {"critics.sync_every": self.critics.sync_every}
            for name, value in parts.items():
                self._multiple(name, value, every, f"update_every ({every})")
        else:
            self._check_horizon(self.world.horizon, every)
        if self.warmup >= self.replay:
            raise InputError(f"warmup ({self.warmup}) must be shorter than replay ({self.replay})")
        if self.recent >= self.replay:
            raise InputError(f"recent ({self.recent}) must be shorter than replay ({self.replay})")
        if hasattr(self.reward, "check_fits"):
            self.reward.check_fits(self)

    def _check_horizon(self, horizon: int, every: int) -> None:
        """What must fit episodes that are all of one length."""
        check_range("replay", self.replay, 2 * horizon, 10**8)
        self._multiple("replay", self.replay, horizon, f"world.horizon ({horizon})")
        self._multiple("world.horizon", horizon, every, f"update_every ({every})")
        shared = f"{self.segment}, the greatest common divisor of window and world.horizon"
        self._multiple("warmup", self.warmup, self.segment, shared)
        self._multiple("critics.sync_every", self.critics.sync_every, self.segment, shared)
        if self.total_steps < horizon:
            raise InputError(
                f"steps ({self.total_steps}) must be at least one world.horizon ({horizon})"
            )
        if self.snapshot == "random":
            self._multiple("recent", self.recent, horizon, f"world.horizon ({horizon})")

    @staticmethod
    def _multiple(name: str, value: int, unit: int, what: str) -> None:
        if value % unit:
            raise InputError(f"{name} ({value}) must be a multiple of {what}")

    @property
    def num_values(self) -> int:
        """How many values an action has: two where the task's and the bonus's are apart."""
        return 2 if self.mix and self.mix.values == "two" else 1

    @property
    def reward_gamma(self) -> float:
        """The discount under which the reward is valued."""
        return self.mix.gamma if self.mix and self.num_values == 2 else self.critics.gamma

    @property
    def is_free(self) -> bool:
        """Whether episodes end when they like, and no length here need fit them."""
        return getattr(self.world, "is_free", False)

    @property
    def horizon(self) -> int:
        """Steps after which an episode is cut."""
        return self.world.horizon or self.world.own_horizon

    @property
    def segment(self) -> int:
        """The longest stretch in which nothing happens that happens by the clock.

        That is a window's end, and an episode's where all are of one length; else the ring's end,
        that of the warm-up, and a sync of the targets.
        """
        if self.is_free:
            return math.gcd(self.window, self.warmup, self.replay, self.critics.sync_every)
        return math.gcd(self.window, self.world.horizon)

    @property
    def windows(self) -> int:
        """Windows after the warm-up, enough for all steps."""
        return max(1, -(-(self.steps - self.warmup) // self.window))

    @property
    def total_steps(self) -> int:
        """Steps a seed really takes: `steps` rounded up to whole windows."""
        return self.warmup + self.windows * self.window

    @property
    def schedule_span(self) -> int:
        """Steps that schedules are laid over; a run made longer keeps those it began with."""
        return self.schedule_steps or self.total_steps
