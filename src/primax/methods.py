"""The methods by name: a reward, and the settings the learner has under it; and what is built from them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from primax.config.schema import Config, CriticsConfig, ExploreConfig, MixConfig
from primax.errors import InputError, canonical, lookup
from primax.nn.encoders import encoder
from primax.rewards.ama import Ama, AmaConfig
from primax.rewards.base import Reward, Spec
from primax.rewards.count import Count, CountConfig
from primax.rewards.dirichlet import Dirichlet, DirichletConfig
from primax.rewards.disagreement import Disagreement, DisagreementConfig
from primax.rewards.e3b import E3b, E3bConfig
from primax.rewards.frozen import ensemble_snapshot, rnd_snapshot
from primax.rewards.icm import Icm, IcmConfig
from primax.rewards.keys import made as made_keys
from primax.rewards.lpm import Lpm, LpmConfig
from primax.rewards.moss import Moss, MossConfig
from primax.rewards.net_novelty import NetNovelty, NetNoveltyConfig
from primax.rewards.noveld import NovelD, NovelDConfig
from primax.rewards.prime import Prime, PrimeConfig
from primax.rewards.rnd import Rnd, RndConfig
from primax.rewards.s_adapt import SAdapt, SAdaptConfig
from primax.rewards.smirl import Smirl, SmirlConfig
from primax.rewards.task import NoOptions, Nothing, Task
from primax.worlds import GridWorld, World, as_world, world_kind, world_name


@dataclass(frozen=True)
class Method:
    """A reward that drives the learner, and the learner's settings under it."""

    name: str
    """As commands, files and tables call it."""
    label: str
    """As figures and pages call it."""
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
    mix: MixConfig | None = None
    """How the reward is mixed with the task, where it is."""


METHODS = {
    method.name: method
    for method in (
        Method(
            "prime",
            "PRIME",
            "PRIME: what can still be learnt, less what never can",
            Prime,
            PrimeConfig,
            critics=CriticsConfig(heads=5, gamma=0.9, q_penalty=0.1),
            explore=ExploreConfig(end=0.01),
        ),
        Method("task", "Ext-DQN", "the world's own signal: the paper's Extrinsic-DQN", Task),
        Method("smirl", "SMIRL", "SMIRL: what the episode so far makes likely", Smirl, SmirlConfig),
        Method("rnd", "RND", "RND: error in predicting a random network", Rnd, RndConfig),
        Method(
            "disagreement",
            "Disagreement",
            "Disagreement: variance over forward models",
            Disagreement,
            DisagreementConfig,
        ),
        Method(
            "s_adapt",
            "S-Adapt",
            "S-Adapt: a bandit seeks or shuns surprise, by episode",
            SAdapt,
            SAdaptConfig,
        ),
        Method(
            "moss",
            "Mixture of Surprises",
            "MOSS: entropy sought, then shunned, by the clock",
            Moss,
            MossConfig,
        ),
        Method(
            "rnd_snapshot",
            "RND, frozen by window",
            "RND, frozen for a window at a time",
            rnd_snapshot,
            RndConfig,
        ),
        Method(
            "ensemble_snapshot",
            "Disagreement, frozen by window",
            "Disagreement, frozen for a window at a time",
            ensemble_snapshot,
            DisagreementConfig,
        ),
        Method("icm", "ICM", "ICM: forward error in inverse-dynamics features", Icm, IcmConfig),
        Method("ama", "AMA", "AMA: forward error less predicted variance", Ama, AmaConfig),
        Method("lpm", "LPM", "LPM: past forward error less the present one", Lpm, LpmConfig),
        Method("count", "Counts", "one over the root of the visit count", Count, CountConfig),
        Method(
            "dirichlet",
            "Dirichlet",
            "the exact information gain of a Dirichlet table",
            Dirichlet,
            DirichletConfig,
        ),
        Method(
            "noveld",
            "NovelD",
            "NovelD: rise of RND's novelty, on the first visit of an episode",
            NovelD,
            NovelDConfig,
        ),
        Method(
            "e3b",
            "E3B",
            "E3B: distance from the episode so far, in inverse-dynamics features",
            E3b,
            E3bConfig,
        ),
        Method(
            "net_novelty",
            "Net novelty",
            "one over the root of the visit count, less noise, remembered for good",
            NetNovelty,
            NetNoveltyConfig,
            critics=CriticsConfig(gamma=0.95),
            explore=ExploreConfig(end=0.01),
        ),
        Method("none", "No reward", "no reward: what the learner does of itself", Nothing),
        Method(
            "random",
            "Random walker",
            "uniform random actions throughout",
            Nothing,
            explore=ExploreConfig(end=1.0),
        ),
    )
}
"""A new reward is one file and one entry here: every command then knows it."""


def find_method(method: str | Method) -> Method:
    """By its name, which may be that of a mix (`task+prime`), or the object itself."""
    if not isinstance(method, str | Method):
        raise InputError(f"method takes a name or a primax.Method, got {method!r}")
    if isinstance(method, Method):
        return method
    if method in METHODS:
        return METHODS[method]
    task, plus, bonus = method.partition("+")
    if not plus:
        return lookup("method", method, METHODS)
    if canonical(task) != "task":
        raise InputError(f"{method!r} is no mix: task+BONUS is one, such as task+prime")
    return mixed(lookup("method", bonus, METHODS))


def known_method(name: str) -> Method | None:
    """The method of a name as folders keep it, a mix too; None where there is none."""
    try:
        found = find_method(name)
    except InputError:
        return None
    return found if found.name == name else None


def mixed(bonus: Method) -> Method:
    """The task with a reward beside it; but for the reward's options the defaults are the task's."""
    if bonus.mix or bonus.reward in (Task, Nothing):
        raise InputError(f"{bonus.name} is no bonus to put beside the task: choose another method")
    task = METHODS["task"]
    return replace(
        task,
        name=f"{task.name}+{bonus.name}",
        label=f"{task.label} + {bonus.label}",
        what=f"the world's own signal, and beside it {bonus.label}",
        reward=bonus.reward,
        options=bonus.options,
        mix=MixConfig(gamma=bonus.critics.gamma),
    )


def find_world(world: object) -> tuple[type[World], Any]:
    """A world's class and its options: by name with the defaults, or those of the object."""
    if isinstance(world, str):
        kind = world_kind(world)
        return kind, kind.options()()
    made = as_world(world)
    return type(made), made.config


def build(
    config: Config, method: str | Method | None = None, world: object | None = None
) -> tuple[World, Reward]:
    """The world and the reward of a configuration: those it names, or those of the given objects."""
    kind, _ = find_world(world_name(config.world) if world is None else world)
    entry = find_method(config.method if method is None else method)
    made = kind.of(config.world)
    return made, entry.reward(spec(made, config), config.reward)


def spec(world: World, config: Config) -> Spec:
    """What a reward may know of a world it is to work in."""
    if world.num_keys is None and config.keys is None:
        raise InputError("this world tells no states apart: its configuration needs keys")
    known = Spec(
        shape=world.obs_shape,
        num_actions=world.num_actions,
        num_keys=(world.num_keys or 0) * world.num_actions,
        horizon=world.horizon,
        net=config.net,
        gamma=config.reward_gamma,
        recent=config.recent,
        channels=world.channels,
        kind=world.kind,
        encoder=encoder(world.kind, config.net),
        has_cells=isinstance(world, GridWorld) and config.keys is None,
    )
    if config.keys is None:
        return known
    return replace(known, num_keys=made_keys(config.keys, known).num * world.num_actions)
