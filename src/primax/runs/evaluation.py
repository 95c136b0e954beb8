"""How trained agents do: fresh episodes of every seed, in which nothing is learnt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.agent.play import Agent, play
from primax.agent.training import multiplying
from primax.config.schema import Config
from primax.config.seeds import LAST_SEED, parse_some
from primax.errors import InputError, check_range
from primax.rewards.streams import PLAY, stream
from primax.runs import shown
from primax.runs.cache import use_cache
from primax.runs.networks import Trained, find
from primax.runs.progress import Counter, is_watched, plain_lines
from primax.runs.tables import Table
from primax.worlds.rollout import Episode
from primax.worlds.tally import Outcome

SIDE_BY_SIDE = 20
"""Episodes of a seed that are played at a time: always so many, for the last bits of a network's
values depend on how many states it is asked about at once."""
MOST_EPISODES = 1_000_000
OnChunk = Callable[[int, int], None]
"""Told how many episodes are played, and of how many."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What trained agents did; arrays are [seed, episode]."""

    config: Config
    """All settings of their run."""
    seeds: tuple[int, ...]
    """The numbers of the seeds that played, in the order of the arrays."""
    which: str
    """The networks as they were in the end, at their best, or at the oracle's best."""
    epsilon: float
    """The share of actions that were drawn at random."""
    score: np.ndarray
    """The sum of an episode's task signals."""
    coverage: np.ndarray | None = None
    """Share of all cells that the agent stood on; None without a grid."""
    distance: np.ndarray | None = None
    """Mean distance to the nearest target; not a number where there was none."""
    length: np.ndarray | None = None
    """Steps, where episodes end when they like."""
    noise: np.ndarray | None = None
    """Share of steps that showed noise, where some was put beside a world."""

    @property
    def reach(self) -> np.ndarray:
        """Whether an episode's score is above 0."""
        return self.score > 0

    @property
    def episodes(self) -> int:
        """How many each seed played."""
        return self.score.shape[1]

    @property
    def table(self) -> Table:
        """A row for each episode."""
        shape = self.score.shape
        columns = {
            "seed": np.broadcast_to(np.array(self.seeds)[:, None], shape),
            "episode": np.broadcast_to(np.arange(shape[1]), shape),
            "score": self.score,
            "reach": self.reach,
        }
        more = {name: getattr(self, name) for name in ("coverage", "distance", "length", "noise")}
        columns |= {name: column for name, column in more.items() if column is not None}
        return {name: column.reshape(-1) for name, column in columns.items()}

    def __repr__(self) -> str:
        world = type(self.config.world).__name__.removesuffix("Config")
        size = f"{len(self.seeds)} seeds of {self.episodes:,} episodes at ε {self.epsilon:g}"
        what = f"{self.config.method} in {world} ({self.which}), {size}"
        return f"<Evaluation: {what}, mean score {self.score.mean(dtype=float):.3f}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: mean and deviation over seeds."""
        known = {
            name: getattr(self, name) for name in ("score", "reach", "coverage", "length", "noise")
        }
        measures = {name: values for name, values in known.items() if values is not None}
        return shown.played(self.config, self.which, measures).html()


def evaluate(
    path: str | Path,
    episodes: int = 100,
    epsilon: float = 0.0,
    which: str | None = None,
    seeds: str | Sequence[int] | None = None,
    key: int = 0,
    progress: bool | None = None,
) -> Evaluation:
    """Fresh episodes of the agents in a run's folder or an exported file, greedy or at an ε.

    `episodes` are those of each seed, `epsilon` is the share of actions that are drawn at random.
    `which` is `last`, `best` or `oracle`, as in an export; by default the last of a folder, and
    what a file has. `seeds` are some of the run's ("0,3", "0-4" or numbers); by default all. Episode
    i of a seed depends on `key`, the seed and i alone. `progress` says how it goes.
    """
    chosen = parse_some(seeds)
    check(episodes, epsilon, key)
    use_cache()
    console = plain_lines() if (is_watched() if progress is None else progress) else None
    trained = find(path, which, chosen, console.print if console else lambda line: None)
    told = Counter(console, "episodes") if console else lambda done, total: None
    return play_all(trained, episodes, epsilon, key, told)


def check(episodes: int, epsilon: float, key: int, dashes: str = "") -> None:
    """Refuses numbers that cannot be used."""
    for name, number in (("episodes", episodes), ("key", key)):
        if type(number) is not int:
            raise InputError(f"{dashes}{name} takes a whole number, got {number!r}")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputError(f"{dashes}epsilon takes a number, got {epsilon!r}")
    check_range(f"{dashes}episodes", episodes, 1, MOST_EPISODES)
    check_range(f"{dashes}epsilon", epsilon, 0, 1)
    check_range(f"{dashes}key", key, 0, LAST_SEED)


def play_all(
    trained: Trained, episodes: int, epsilon: float, key: int, on_chunk: OnChunk
) -> Evaluation:
    """Plays them, chunk by chunk."""
    playing, parts = player(trained, epsilon, key, has_states=False), list[Outcome]()
    for chunk in range(-(-episodes // SIDE_BY_SIDE)):
        parts.append(jax.tree.map(np.asarray, playing(chunk)[0]))
        on_chunk(min(episodes, (chunk + 1) * SIDE_BY_SIDE), episodes)
    whole = jax.tree.map(lambda *x: np.concatenate(x, axis=1)[:, :episodes], *parts)
    return Evaluation(
        trained.learner.config,
        trained.seeds,
        trained.which,
        epsilon,
        whole.score,
        whole.coverage,
        whole.distance,
        whole.length,
        whole.noise,
    )


def player(
    trained: Trained, epsilon: float, key: int, has_states: bool = True
) -> Callable[[int], tuple[Outcome, Episode]]:
    """From the number of a chunk to its episodes, [seed, episode, ...]: one compiled program.

    Without `has_states` only how they went: the states of long episodes would fill the memory.
    """
    learner = trained.learner

    @jax.jit
    def chunk(agents: Agent, root: Any, epsilon: Any, number: Any) -> tuple[Outcome, Episode]:
        ids = number * SIDE_BY_SIDE + jnp.arange(SIDE_BY_SIDE)

        def one(agent: Agent) -> tuple[Outcome, Episode]:
            of_seed = jax.random.fold_in(root, agent.seed)
            played = play(learner, agent, epsilon, jax.vmap(partial(stream, of_seed, PLAY))(ids))
            return played if has_states else (played[0], Episode((), jnp.zeros(0, jnp.int32)))

        return jax.vmap(one)(agents)

    root = jax.random.key(key)

    def playing(number: int) -> tuple[Outcome, Episode]:
        with multiplying(learner.config):
            return chunk(trained.agents, root, jnp.float32(epsilon), jnp.int32(number))

    return playing


def one_episode(trained: Trained, number: int, epsilon: float, key: int = 0) -> Episode:
    """The first seed's episode of a number, with all its states: the one that `play_all` would count."""
    _, episodes = player(trained, epsilon, key)(number // SIDE_BY_SIDE)
    return jax.tree.map(lambda x: x[0, number % SIDE_BY_SIDE], episodes)
