"""Outside the engine a reward is what it is inside: the same transitions, the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax.agent import ring
from primax.agent.learner import make_learner
from primax.agent.training import compile_program, windows
from primax.methods import METHODS
from primax.presets import configure
from primax.rewards import streams

SIZES = {
    "steps": 1_400,
    "window": 300,
    "warmup": 400,
    "replay": 1_600,
    "recent": 500,
    "world.horizon": 20,
    "critics.sync_every": 200,
}
OURS = ("window", "warmup", "replay", "recent", "net", "reward", "update_every", "critics.batch")
QUICK = ("prime", "count_place")
PARTS = ("rnd_snapshot", "ensemble_snapshot", "rnd_lived", "rnd_whitened", "count_codes")
PARTS += ("prime_learnt", "prime_cfn", "prime_place")


def lived(method: str, settings: dict):
    """A run in the engine: its learner, its last state, and all of its transitions in order.

    Learnt keys are renewed, where that is due with the window after the last.
    """
    config = configure(method, "maze", "smoke", SIZES | settings)
    learner = make_learner(config)
    for state, _ in windows(compile_program(learner, (3,))):
        last = state

    @jax.jit  # one program, where op by op it would be dozens
    def first_seed(states):
        state, clock = jax.tree.map(lambda x: x[0], states), config.total_steps
        if learner.renews(clock):
            state = learner.renew(state, jnp.int32(clock))
        ages = jnp.arange(clock, 0, -1)
        return state, ring.read(state.ring, jnp.int32(clock), ages, learner.world.obs_shape)

    return learner, *first_seed(last)


def inside_pays(learner, state, rows) -> np.ndarray:
    """What the engine pays for the rows in the window after the last.

    Outside, the next window begins with the last step; inside, with the next step.
    """

    @jax.jit
    def score(state, rows):
        clock = jnp.int32(learner.config.total_steps)
        recent, _ = learner._recent(state, clock)
        key = streams.stream(state.key, streams.REFRESH, clock)
        reward, _ = learner.reward.refresh(state.reward, recent, key)
        return learner.reward.score(reward, rows)

    return np.asarray(score(state, rows))


def told(rows, horizon: int, has_keys: bool) -> primax.Transition:
    """The rows as an outsider would give them: [time, 1], as numpy."""
    num = rows.action.shape[0]
    key, next_key = known(rows, has_keys)
    column = lambda x: np.asarray(x)[:, None]  # noqa: E731
    return primax.Transition(
        obs=column(rows.obs),
        action=column(rows.action),
        next_obs=column(rows.next_obs),
        terminated=column(rows.terminated),
        truncated=((np.arange(num) + 1) % horizon == 0)[:, None],
        key=None if key is None else column(key),
        next_key=None if next_key is None else column(next_key),
        task=column(rows.task),
    )


def known(rows, has_keys: bool) -> tuple:
    """The keys that the world gives, where they are used."""
    return (rows.key // 5, rows.next_key) if has_keys else (None, None)


def mark(case: str) -> pytest.MarkDecorator:
    """A reward by another's parts, or a variant, is left to `make test-long`."""
    return pytest.mark.long if case in PARTS else pytest.mark.slow


MINDLESS = ("none", "random", "task")
"""What they pay needs no engine to compare with."""
CASES = {name: (name, {}) for name in METHODS if name not in MINDLESS} | {
    # Its networks stand still: where a gradient is rounding alone, Adam makes whole steps of it.
    "moss": ("moss", {"reward.learning_rate": 0}),
    "rnd_lived": ("rnd", {"reward.read": "lived", "reward.normaliser": "returns"}),
    "rnd_whitened": ("rnd", {"reward.whiten": "true"}),
    "prime_learnt": ("prime", {"reward.novelty": "rnd", "reward.moments": "knn16"}),
    "prime_cfn": ("prime", {"reward.novelty": "cfn"}),
    "prime_place": ("prime", {"keys.kind": "place", "replay": 1_700}),
    "count_place": ("count", {"keys.kind": "place", "replay": 1_700}),
    "count_codes": ("count", {"keys.kind": "codes", "replay": 1_700}),
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in QUICK else mark(c)) for c in CASES]
)
def test_the_bonus_outside_equals_the_engine(case):
    method, settings = CASES[case]
    learner, state, rows = lived(method, settings)
    has_keys = learner.keys is None
    flat = {
        f"{name}.{key}" for name in ("net", "reward") for key in vars(getattr(learner.config, name))
    }
    fields = primax.config.fields.flatten(learner.config)
    same = {name: fields[name] for name in fields if name in flat or name in OURS}
    world = learner.world
    bonus = primax.bonus(
        method,
        primax.Space.of(world),
        gamma=learner.config.critics.gamma,
        keys=learner.keys,
        settings=same,
    )
    now, _ = bonus.step(bonus.init(3), told(rows, world.horizon, has_keys))
    inside = inside_pays(learner, state, rows)
    key, next_key = known(rows, has_keys)
    row = primax.Transition(
        rows.obs,
        rows.action,
        rows.next_obs,
        key=key,
        next_key=next_key,
        task=rows.task,
        memo=rows.memo,
        next_memo=rows.next_memo,
    )
    outside = np.asarray(bonus.score(now, row))
    # E3B's scale takes in a row at a time, and two programs round each of them in their own way.
    rtol = 1e-6 if case == "e3b" else 0
    np.testing.assert_allclose(outside, inside, rtol=rtol, atol=1e-6)
    assert np.std(inside) > 1e-4


@pytest.mark.parametrize("method", MINDLESS)
def test_the_task_is_paid_as_it_comes_and_nothing_as_nothing(method):
    bonus = primax.bonus(method, primax.Space((2,), 3), settings={"warmup": 2})
    obs, never = np.zeros((5, 1, 2), np.float32), np.zeros((5, 1), bool)
    task = np.arange(1.0, 6.0)[:, None]
    steps = primax.Transition(obs, np.zeros((5, 1), int), obs, never, never, task=task)
    _, worth = bonus.step(bonus.init(0), steps)
    paid = task if method == "task" else 0 * task
    np.testing.assert_array_equal(worth, np.where(np.arange(5)[:, None] < 2, 0, paid))
