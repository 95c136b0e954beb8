"""What a reward is made from, and that it reaches the critics; read off programs never compiled."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import pytest
from jax.interpreters.partial_eval import dce_jaxpr
from reward_case import tiny

from primax.agent import ring
from primax.agent.learner import Learner
from primax.methods import METHODS, build

READ = {
    "random": set(),
    "none": set(),
    "task": {"task"},
    "smirl": {"next_obs", "memo"},
    "rnd": {"next_obs"},
    "disagreement": {"obs", "action"},
    "s_adapt": {"next_obs", "memo"},
    "moss": {"obs", "next_obs", "weight", "memo"},
    "rnd_snapshot": {"next_obs"},
    "ensemble_snapshot": {"obs", "action"},
    "icm": {"obs", "action", "next_obs"},
    "ama": {"obs", "action", "next_obs"},
    "lpm": {"obs", "action", "next_obs"},
    "count": {"key"},
    "dirichlet": {"key"},
    "prime": {"key"},
    "noveld": {"obs", "next_obs", "next_memo"},
    "e3b": {"next_memo"},
}
"""Of a sampled row, what its reward is a function of."""


def used(function, *arguments) -> list[list[bool]]:
    """For each part of the result, which leaves of the arguments it depends on."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    sizes = [len(jax.tree.leaves(part)) for part in shape]
    parts = [
        [i == j for j, size in enumerate(sizes) for _ in range(size)] for i in range(len(sizes))
    ]
    return [dce_jaxpr(closed.jaxpr, part)[1] for part in parts]


def shaped(method: str, **settings):
    """A learner, and the shapes of its state."""
    config = tiny(method, **settings)
    learner = Learner(config, *build(config))
    return learner, jax.eval_shape(lambda: learner.init(jax.random.key(0), jnp.int32(0)))


def read_by(learner, state) -> set[str]:
    """The columns of a minibatch that its score depends on."""
    planes, zero = learner.reward.spec.shape, jnp.int32(0)
    rows = jax.eval_shape(lambda x: ring.read(x, zero, jnp.arange(8), planes), state.ring)
    names = [
        field.name for field in fields(rows) for _ in jax.tree.leaves(getattr(rows, field.name))
    ]
    score = lambda rows, state: [learner.reward.score(state, rows)]  # noqa: E731
    [depends] = used(score, rows, state.reward)
    return {name for name, is_used in zip(names, depends, strict=False) if is_used}


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_reward_is_made_from_what_it_says_and_reaches_the_critics(method, monkeypatch):
    small = {"reward.heads": "2", "reward.calibration": "8"} if method == "prime" else {}
    learner, state = shaped(method, **small)
    assert read_by(learner, state) == READ[method]
    kind, plain = type(learner.reward), type(learner.reward).score

    def update(more, *rest):
        monkeypatch.setattr(kind, "score", lambda *args: plain(*args) + more)
        now, said = learner._update(*rest)
        return said["y_abs"], now.critics.online, now.critics.target, now.reward, now.ring

    depends = used(update, jnp.float32(0), state, jnp.int32(0), jax.random.key(0))
    # The goal and the critics that learn; not their targets, the reward's own networks, the ring.
    assert [part[0] for part in depends] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("method", "setting", "value", "read"),
    [
        ("rnd", "reward.input", "current", {"obs"}),
        ("rnd", "reward.read", "lived", {"next_memo"}),
        ("disagreement", "reward.whiten", "true", {"obs", "action"}),
        ("count", "reward.of", "state", {"key"}),
    ],
)
def test_options_that_change_what_a_reward_is_made_from(method, setting, value, read):
    assert read_by(*shaped(method, **{setting: value})) == read


def test_random_acts_at_random_to_the_end():
    config = tiny("random")
    epsilon = Learner(config, *build(config)).epsilon
    assert epsilon(jnp.arange(config.total_steps + 1)).min() == 1.0
