"""The methods by name: a reward, and the settings the learner has under it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from primax.config import Config, CriticsConfig, ExploreConfig
from primax.errors import InputError, check_range, lookup
from primax.rewards.base import Reward, Spec
from primax.rewards.count import Count, CountConfig
from primax.rewards.dirichlet import Dirichlet, DirichletConfig
from primax.rewards.disagreement import Disagreement, DisagreementConfig
from primax.rewards.icm import Icm, IcmConfig
from primax.rewards.moss import Moss, MossConfig
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.rnd import Rnd, RndConfig
from primax.rewards.s_adapt import SAdapt, SAdaptConfig
from primax.rewards.smirl import Smirl, SmirlConfig
from primax.rewards.snapshot import ensemble_snapshot, rnd_snapshot
from primax.rewards.task import NoOptions, Nothing, Task
from primax.settings import flatten, override
from primax.worlds import ACTIONS, WORLDS, World
from primax.worlds.layouts import read


@dataclass(frozen=True)
class Method:
    """A row of `primax list`."""

    what: str
    """One line for people."""
    reward: Callable[[Spec, Any], Reward]
    """Builds the reward for a world, from its options."""
    options: type = NoOptions
    """The options it takes."""
    critics: CriticsConfig = field(default_factory=CriticsConfig)
    """The learner's settings; the defaults are the paper's baseline table."""
    explore: ExploreConfig = field(default_factory=ExploreConfig)
    """The exploration schedule."""


METHODS = {
    "prime": Method(
        "PRIME: what can still be learnt, less what never can",
        Prime,
        options=PrimeConfig,
        critics=CriticsConfig(heads=5, gamma=0.9, q_penalty=0.1),
        explore=ExploreConfig(end=0.01),
    ),
    "task": Method("the world's own signal: the paper's Extrinsic-DQN", Task),
    "smirl": Method("SMIRL: what the episode so far makes likely", Smirl, options=SmirlConfig),
    "rnd": Method("RND: error in predicting a random network", Rnd, options=RndConfig),
    "disagreement": Method(
        "Disagreement: variance over forward models", Disagreement, options=DisagreementConfig
    ),
    "s_adapt": Method(
        "S-Adapt: a bandit seeks or shuns surprise, by episode", SAdapt, options=SAdaptConfig
    ),
    "moss": Method("MOSS: entropy sought, then shunned, by the clock", Moss, options=MossConfig),
    "rnd_snapshot": Method("RND, frozen for a window at a time", rnd_snapshot, options=RndConfig),
    "ensemble_snapshot": Method(
        "Disagreement, frozen for a window at a time",
        ensemble_snapshot,
        options=DisagreementConfig,
    ),
    "icm": Method("ICM: forward error in inverse-dynamics features", Icm, options=IcmConfig),
    "count": Method("one over the root of the visit count", Count, options=CountConfig),
    "dirichlet": Method(
        "the exact information gain of a Dirichlet table", Dirichlet, options=DirichletConfig
    ),
    "none": Method("no reward: what the learner does of itself", Nothing),
    "random": Method("uniform random actions throughout", Nothing, explore=ExploreConfig(end=1.0)),
}

STEPS = {"butterflies": 250_000, "maze": 200_000, "two_wings": 150_000}
"""The paper's budgets; TwoWings is not in the paper."""


def paper(method: str, world: str) -> Config:
    """The paper's configuration."""
    entry, (_, options) = lookup("method", method, METHODS), lookup("world", world, WORLDS)
    name = world_name(options())
    return Config(
        method=next(key for key, value in METHODS.items() if value is entry),
        world=options(),
        reward=entry.options(),
        steps=STEPS[name],
        critics=entry.critics,
        explore=entry.explore,
    )


QUICK = {
    "steps": "40_000",
    "recent": "2_000",
    "critics.heads": "2",
    "net.first_channels": "8",
    "net.second_channels": "16",
    "net.embedding": "32",
    "critics.batch": "32",
}
SMOKE = {
    "steps": "2_000",
    "window": "500",
    "warmup": "500",
    "replay": "1_000",
    "recent": "500",
    "critics.heads": "2",
    "net.first_channels": "4",
    "net.second_channels": "4",
    "net.embedding": "8",
    "critics.batch": "8",
    "critics.sync_every": "500",
}
SMALL = {
    "world.size": "6",
    "reward.heads": "2",
    "reward.calibration": "64",
}
PRESETS = {
    "paper": ("the paper's settings", {}, {}),
    "quick": ("small worlds and networks, for two cores", QUICK, SMALL),
    "smoke": ("seconds; shows that it runs, not that it learns", SMOKE, SMALL),
}
"""What each is for, its settings, and those for worlds and rewards that have such a field."""


def configure(
    method: str, world: str, preset: str = "paper", settings: Mapping[str, object] | None = None
) -> Config:
    """The configuration of a run: the paper's, changed by a preset, then by `settings`.

    A setting may be text, as on the command line (`"0.9"`), or the value itself.
    """
    config = paper(method, world)
    _, changes, small = lookup("preset", preset, PRESETS)
    known = flatten(config)
    changes = changes | {name: value for name, value in small.items() if name in known}
    if "method" in (settings or {}):
        raise InputError("method is what the run is called for, not a field to set")
    # All at once, so that fields which must fit each other can be changed together.
    given = {name: str(value) for name, value in (settings or {}).items()}
    config = override(config, changes | given)
    if hasattr(config.world, "layout"):
        # The map itself, so that a run does not depend on a file that may change.
        config = replace(config, world=replace(config.world, layout=read(config.world.layout)))
    return config


MOST_SEEDS = 10_000
"""In one program."""


def world_name(options: object) -> str:
    """The name of the world these options belong to."""
    return next(name for name, (_, kind) in WORLDS.items() if isinstance(options, kind))


def build(config: Config) -> tuple[World, Reward]:
    """The world and the reward a configuration names."""
    world = WORLDS[world_name(config.world)][0](config.world)
    return world, METHODS[config.method].reward(spec(world, config), config.reward)


def spec(world: World, config: Config) -> Spec:
    """What a reward may know of a world it is to work in."""
    return Spec(
        planes=world.planes,
        num_actions=len(ACTIONS),
        num_keys=world.num_keys * len(ACTIONS),
        horizon=world.horizon,
        net=config.net,
        gamma=config.critics.gamma,
        recent=config.recent,
        channels=world.channels,
    )


def parse_seeds(text: str | int, name: str = "seeds") -> tuple[int, ...]:
    """`15` is seeds 0 to 14; `0-4` and `3,7,9` name them. `name` is what the caller calls it."""
    text = str(text)
    try:
        if "-" not in text and "," not in text:
            spans = [range(int(text))]
        else:
            ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",")]
            spans = [range(end[0], end[-1] + 1) for end in ends]
    except ValueError:
        takes = "a number (15), a range (0-4) or a list (3,7,9)"
        raise InputError(f"{name} takes {takes}, got {text!r}") from None
    for span in spans:
        check_range(name, len(span), 1, MOST_SEEDS)
        check_range(name, span[-1], 0, 2**31 - 1)
    seeds = tuple(seed for span in spans for seed in span)
    if len(set(seeds)) != len(seeds):
        raise InputError(f"{name} names a seed twice: {text!r}")
    return seeds
