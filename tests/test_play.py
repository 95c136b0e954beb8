"""Trained agents at play: known networks do what is known, and episodes depend on nothing else."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from own import Corridor, CorridorConfig
from probes import Both, Walks
from test_export import saved

import primax
from primax.agent.learner import Learner, make_learner
from primax.agent.play import Agent, play
from primax.config.schema import Config, CriticsConfig, NetConfig
from primax.errors import InputError
from primax.methods import METHODS, spec
from primax.nn import nets
from primax.presets import configure
from primax.rewards.task import NoOptions, Task
from primax.runs.evaluation import SIDE_BY_SIDE, one_episode, play_all
from primax.runs.networks import Trained, find
from primax.worlds.drawing.film import scenes
from primax.worlds.exact import expected_score

KEYS = jax.random.split(jax.random.key(3), 6)
GREEDY = jnp.float32(0)


def learner_of(world, channels: int = 4, embedding: int = 8, **changes) -> Learner:
    """Of the world's own signal, in a world of any kind."""
    config = Config(
        method="task",
        world=world.config,
        reward=NoOptions(),
        steps=1_000,
        window=100,
        warmup=100,
        replay=400,
        recent=100,
        net=NetConfig(first_channels=channels, second_channels=channels, embedding=embedding),
        critics=CriticsConfig(heads=2, sync_every=100, **changes),
    )
    return Learner(config, world, Task(spec(world, config), config.reward))


def nothing_learnt(learner: Learner) -> nets.Net:
    """Heads whose every weight is zero."""
    like = jax.eval_shape(learner.init, jax.random.key(0), jnp.int32(0)).critics.online
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)


def always(learner: Learner, action: int) -> Agent:
    """Thinks most of one action, wherever it is."""
    heads = nothing_learnt(learner)
    bias = heads.head.bias.at[:, action].set(1.0)
    return Agent(jnp.int32(0), eqx.tree_at(lambda net: net.head.bias, heads, bias), ())


def played(learner: Learner, agent: Agent, epsilon=GREEDY, keys=KEYS):
    return jax.jit(partial(play, learner))(agent, epsilon, keys)


def test_an_agent_that_goes_east_by_hand():
    """0, 1, 2, then the last of four columns for 98 of 100 steps; 2 and 1 away, then there."""
    learner = learner_of(Corridor(CorridorConfig(length=4)))
    outcome, episodes = played(learner, always(learner, 2))
    np.testing.assert_array_equal(outcome.score, np.full(6, 98.0))
    np.testing.assert_array_equal(outcome.coverage, np.full(6, 4 / 16))
    np.testing.assert_allclose(outcome.distance, np.full(6, 3 / 100))
    np.testing.assert_array_equal(episodes.actions, np.full((6, 100), 2))
    np.testing.assert_array_equal(
        episodes.states.agent, np.tile(np.minimum(np.arange(101), 3), (6, 1))
    )


def test_an_agent_that_sees_by_hand():
    """Its values are the observation itself: the action that pays, in every step."""
    learner = learner_of(Both(), channels=1, embedding=3)
    heads = nothing_learnt(learner)
    trunk, middle = heads.trunk, 4  # of a cell's three by three surroundings
    eyes = eqx.tree_at(
        lambda net: (
            net.trunk.first.weight,
            net.trunk.second.weight,
            net.trunk.embed.weight,
            net.head.weight,
        ),
        heads,
        (
            trunk.first.weight.at[:, middle].set(1.0),
            trunk.second.weight.at[:, middle].set(1.0),
            jnp.broadcast_to(jnp.eye(3), trunk.embed.weight.shape),
            jnp.broadcast_to(jnp.eye(3, 5), heads.head.weight.shape),
        ),
    )
    outcome, episodes = played(learner, Agent(jnp.int32(0), eyes, ()))
    np.testing.assert_array_equal(outcome.score, np.full(6, 4.0))
    np.testing.assert_array_equal(episodes.actions, episodes.states.agent[:, :-1])
    assert len(set(np.asarray(episodes.actions).ravel().tolist())) == 2


def test_where_the_world_ends_nothing_is_counted_any_more():
    """Two steps that pay 1 each, of four; the film ends there too."""
    learner = learner_of(Walks())
    outcome, episodes = played(learner, always(learner, 0))
    np.testing.assert_array_equal(outcome.score, np.full(6, 2.0))
    np.testing.assert_array_equal(outcome.coverage, np.ones(6))
    np.testing.assert_array_equal(episodes.states.agent, np.tile([0, 1, 2, 2, 2], (6, 1)))
    np.testing.assert_array_equal(episodes.states.time, np.tile([0, 1, 2, 2, 2], (6, 1)))
    film = scenes(learner.world, jax.tree.map(lambda x: x[0], episodes))
    assert [scene.score for scene in film] == [0.0, 1.0, 2.0]


def test_another_action_with_the_chance_asked_for():
    """Of 600 steps a fifth of 60% are other actions: 288 of 600 within four deviations."""
    learner = learner_of(Corridor(CorridorConfig(length=4)))
    _, episodes = played(learner, always(learner, 2), jnp.float32(0.6))
    other = np.sum(np.asarray(episodes.actions) != 2)
    assert abs(other - 288) < 4 * np.sqrt(600 * 0.48 * 0.52)


@pytest.mark.parametrize("world", ["butterflies", pytest.param("maze", marks=pytest.mark.slow)])
def test_all_actions_at_random_is_the_random_walker(world):
    learner = make_learner(configure("task", world, "smoke"))
    agents = [replace_seed(always(learner, 0), seed) for seed in (0, 1)]
    agents = jax.tree.map(lambda *x: jnp.stack(x), *agents)
    done = play_all(Trained(learner, (0, 1), "last", (0, 0), agents), 400, 1.0, 0, lambda *_: None)
    error = done.score.std() / np.sqrt(done.score.size)
    exact = expected_score(learner.world, "random")
    assert exact is not None and abs(done.score.mean() - exact) < 4 * error
    assert not np.array_equal(done.score[0], done.score[1])


def replace_seed(agent: Agent, seed: int) -> Agent:
    return Agent(jnp.int32(seed), agent.online, agent.reward)


@pytest.mark.parametrize(("acting", "actions"), [("mean", {1}), ("episode", {0, 2})])
def test_it_acts_on_the_mean_of_the_heads_or_on_one_for_each_episode(acting, actions):
    """One head is for action 0, the other for 2, and both can live with 1."""
    learner = learner_of(Corridor(CorridorConfig(length=4)), acting=acting)
    bias = jnp.array([[5.0, 4.0, 0.0, 0.0, 0.0], [0.0, 4.0, 5.0, 0.0, 0.0]])
    heads = eqx.tree_at(lambda net: net.head.bias, nothing_learnt(learner), bias)
    keys = jax.random.split(KEYS[0], 12)
    _, episodes = played(learner, Agent(jnp.int32(0), heads, ()), keys=keys)
    assert {frozenset(one.tolist()) for one in np.asarray(episodes.actions)} == {
        frozenset([action]) for action in actions
    }


TIME = np.arange(100)


@pytest.mark.parametrize(
    ("method", "plane", "above", "is_so"),
    [
        ("smirl", -1, 0.305, TIME + 1 > 30.5),  # the clock: steps and an empty observation
        ("s_adapt", -2, 0.305, TIME + 2 > 30.5),  # and here the first one
        ("moss", 3, 1e-4, TIME < 50),  # the skill, of the sign the clock gives it
    ],
)
def test_critics_see_what_the_reward_keeps_of_the_episode(method, plane, above, is_so):
    """An agent that goes east if a plane beyond the world's own is above something, else north."""
    learner = make_learner(configure(method, "maze", "smoke"))
    reward, heads = learner.reward, nothing_learnt(learner)
    middle = 4 * reward.view_shape[0] + plane % reward.view_shape[0]
    second = 4 * learner.config.net.first_channels
    eyes = eqx.tree_at(
        lambda net: (
            net.trunk.first.weight,
            net.trunk.second.weight,
            net.trunk.embed.weight,
            net.head.weight,
            net.head.bias,
        ),
        heads,
        (
            heads.trunk.first.weight.at[:, middle, 0].set(1.0),
            heads.trunk.second.weight.at[:, second, 0].set(1.0),
            heads.trunk.embed.weight.at[:, 0, 0].set(1.0),
            heads.head.weight.at[:, 0, 2].set(1.0),
            heads.head.bias.at[:, 0].set(above),
        ),
    )
    _, episodes = played(learner, Agent(jnp.int32(0), eyes, reward.init(jax.random.key(0))))
    np.testing.assert_array_equal(episodes.actions, np.tile(np.where(is_so, 2, 0), (6, 1)))


SEEDS = (4, 2, 7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of PRIME that has not learnt yet: its networks are as good as any."""
    return kept_run(tmp_path_factory.mktemp("runs") / "run", "prime", "maze", SEEDS)


def kept_run(folder, method: str, world: str, seeds: tuple[int, ...]):
    config = configure(method, world, "smoke")
    learner = make_learner(config)
    ids = jnp.array(seeds, jnp.int32)
    state = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))(jax.random.key(5), ids)
    saved(folder, config, seeds, state)
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    return find(folder)


def same(a: primax.Evaluation, b: primax.Evaluation) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for name in ("score", "coverage", "distance", "reach")
    )


@pytest.mark.slow
def test_an_episode_depends_on_key_seed_and_number_alone(folder, trained, optimised):
    """Not on how many are asked for, nor on which other seeds play."""
    ask = lambda num, key=0, epsilon=0.3, of=trained: play_all(  # noqa: E731
        of, num, epsilon, key, lambda *_: None
    )
    whole, few, other = ask(25), ask(3), ask(3, key=1)
    for name in ("score", "coverage", "distance"):
        np.testing.assert_array_equal(getattr(few, name), getattr(whole, name)[:, :3])
    assert not np.array_equal(other.coverage, few.coverage)
    assert not np.array_equal(whole.coverage[:, 20:], whole.coverage[:, 1:6]), "all are fresh"
    alone = ask(25, of=find(folder, seeds=(7,)))
    np.testing.assert_array_equal(alone.coverage[0], whole.coverage[2])
    assert len(np.unique(whole.coverage, axis=0)) == 3
    shown = one_episode(find(folder, seeds=(2,)), 22, 0.3)
    cells = len(set(np.asarray(shown.states.agent).tolist()))
    np.testing.assert_allclose(whole.coverage[1, 22], cells / 36)
    assert whole.episodes == 25 > SIDE_BY_SIDE


def test_a_folder_and_its_export_act_alike(folder, trained, tmp_path):
    """Both in half precision."""
    path = tmp_path / "agents.npz"
    path.write_bytes(primax.export.export(folder, seeds=(2, 7)))
    assert trained.seeds == SEEDS and trained.which == "last" and trained.steps == (500,) * 3
    weight = np.asarray(trained.agents.online.trunk.embed.weight)
    np.testing.assert_array_equal(weight, weight.astype(np.float16).astype(np.float32))
    there, here = primax.evaluate(path, 30, 0.3), primax.evaluate(folder, 30, 0.3, seeds=(2, 7))
    assert same(there, here) and there.seeds == (2, 7)
    text = repr(there)
    assert text.startswith("<Evaluation: prime in Maze (last), 2 seeds of 30 episodes at ε 0.3")
    assert there.table["seed"].tolist() == [2] * 30 + [7] * 30
    assert there.table["episode"][:31].tolist() == [*range(30), 0]


MEMOS = ("smirl", "moss")
"""Whose critics see what the reward keeps, and of which an export leaves something out."""


@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=() if m in MEMOS else pytest.mark.slow) for m in METHODS]
)
def test_every_method_plays_from_its_folder_and_from_its_export(method, tmp_path):
    run = kept_run(tmp_path / "run", method, "maze", (3, 5))
    path = tmp_path / "agents.npz"
    path.write_bytes(primax.export.export(run))
    done = primax.evaluate(run, 4, epsilon=0.1)
    assert same(done, primax.evaluate(path, 4, epsilon=0.1))
    assert done.score.shape == (2, 4) and np.isfinite(done.coverage).all()


def test_what_cannot_be_played_is_said_in_one_line(folder, tmp_path):
    path = tmp_path / "agents.npz"
    path.write_bytes(primax.export.export(folder, seeds=(2,)))
    packed = Path(__file__).parents[1] / "results/paper/runs/prime_maze"
    for args, says in (
        ((folder, 10, 0.0, "last", (3,)), "seed 3 is not one of the run's seeds: 4, 2, 7"),
        ((path, 10, 0.0, None, (4,)), "seed 4 is not one of the exported seeds: 2"),
        ((path, 10, 0.0, "best"), "has other networks: primax export --which best writes those"),
        ((folder, 10, 0.0, "best"), "seed 4 has no best networks yet"),
        ((folder, 10, 0.0, "bst"), "which has no value 'bst'; did you mean best?"),
        ((folder, 10, 0.0, None, "4"), "seeds 4 is ambiguous: write 4-4 for seed 4 alone"),
        ((folder, 0), "episodes must be between 1 and"),
        ((folder, 10, 1.5), "epsilon must be between 0 and 1"),
        ((packed,), "is a packed run, which has no networks"),
        ((tmp_path,), "holds no run"),
        ((tmp_path / "none",), "is neither a run's folder nor an exported file"),
        ((__file__,), "cannot be read"),
    ):
        with pytest.raises(InputError) as error:
            primax.evaluate(*args)
        assert says in str(error.value) and "\n" not in str(error.value)
