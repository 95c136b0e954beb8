"""The best networks are kept by hand-made outcomes, and in real runs as the tables say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax.agent import best
from primax.agent.learner import make_learner
from primax.agent.training import compile_program
from primax.presets import configure
from primax.runs.loop import in_memory
from primax.worlds.tally import Outcome


def play(windows, per_window: int = 10):
    """Judges windows of (coverage, score), each the same for all of a window's episodes.

    The networks are the window's number; returns what is kept after every window.
    """
    now, kept = best.start(jnp.zeros(2)), []
    for number, (coverage, score) in enumerate(windows, start=1):
        ones = jnp.ones(per_window)
        outcomes = Outcome(score * ones, coverage * ones, jnp.nan * ones)
        now = jax.jit(best.note)(now, outcomes, jnp.ones(per_window, bool))
        now = jax.jit(best.update)(now, jnp.full(2, float(number)), jnp.int32(100 * number))
        kept.append(now)
    return kept


def told(peak) -> tuple[float, int, float]:
    return round(float(peak.mean), 5), int(peak.step), float(peak.online[1])


def test_the_best_by_hand():
    """Of twenty episodes two windows are made; coverage peaks at the third, score at the fourth."""
    kept = play([(0.9, 9.0), (0.5, 1.0), (0.6, 1.0), (0.2, 2.0), (0.3, 0.0)])
    assert told(kept[0].by_coverage) == (-np.inf, 0, 0.0), "ten episodes are too few"
    assert told(kept[1].by_coverage) == (0.7, 200, 2.0)
    assert told(kept[1].by_score) == (5.0, 200, 2.0)
    assert told(kept[4].by_coverage) == (0.7, 200, 2.0)
    kept = play([(0.1, 0.0), (0.1, 0.0), (0.5, 1.0), (0.5, 2.0), (0.3, 2.5)])
    assert told(kept[3].by_coverage) == (0.5, 400, 4.0)
    assert told(kept[4].by_coverage) == (0.5, 400, 4.0)
    assert told(kept[4].by_score) == (2.25, 500, 5.0)


def test_a_tie_keeps_the_first():
    kept = play([(0.5, 1.0)] * 5)
    assert told(kept[4].by_coverage) == (0.5, 200, 2.0)
    assert told(kept[4].by_score) == (1.0, 200, 2.0)


def test_only_the_episodes_that_ended_count_oldest_first():
    start = best.start(jnp.zeros(1))
    assert np.isnan(start.scores).all() and start.scores.shape == (20,)
    outcomes = Outcome(jnp.arange(50.0), jnp.arange(50.0) / 100, jnp.zeros(50))
    is_over = jnp.arange(50) % 2 == 0
    after = best.note(start, outcomes, is_over)
    np.testing.assert_array_equal(after.scores, np.arange(10, 50, 2))
    np.testing.assert_allclose(after.coverages, np.arange(10, 50, 2) / 100)
    few = best.note(start, outcomes, jnp.arange(50) == 7)
    assert np.isnan(few.scores[:-1]).all() and few.scores[-1] == 7.0
    none = best.note(after, outcomes, jnp.zeros(50, bool))
    np.testing.assert_array_equal(none.scores, after.scores)


def test_seeds_are_judged_apart():
    first, second = play([(0.5, 1.0)] * 3)[-1], play([(0.1, 4.0), (0.2, 3.0), (0.3, 2.0)])[-1]
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), first, second)
    judged = jax.vmap(best.update, in_axes=(0, 0, None))(
        both, jnp.full((2, 2), 9.0), jnp.int32(400)
    )
    assert judged.by_coverage.step.tolist() == [200, 300]
    more = jnp.array([[0.0], [9.0]])
    better = eqx.tree_at(lambda x: x.scores, both, both.scores + jnp.broadcast_to(more, (2, 20)))
    judged = jax.vmap(best.update, in_axes=(0, 0, None))(
        better, jnp.full((2, 2), 9.0), jnp.int32(400)
    )
    assert judged.by_score.step.tolist() == [200, 400]
    assert judged.by_score.online.tolist() == [[2.0, 2.0], [9.0, 9.0]]


@pytest.mark.slow
def test_a_run_keeps_what_its_table_says():
    config = configure("task", "butterflies", "smoke", {"steps": "6_000"})
    result = in_memory(compile_program(make_learner(config), (0, 1, 2)))
    kept = result.state.best
    for measure, peak in (("score", kept.by_score), ("coverage", kept.by_coverage)):
        for seed in range(3):
            values = result.episodes[measure][result.episodes["seed"] == seed]
            ends = range(2_000, 6_001, config.window)
            means = {end: values[end // 100 - 20 : end // 100].mean() for end in ends}
            step = max(means, key=lambda end: means[end])
            assert int(peak.step[seed]) == step
            np.testing.assert_allclose(peak.mean[seed], means[step], rtol=1e-6)
    last = jax.tree.leaves(result.state.critics.online)
    is_last = np.asarray(kept.by_score.step) == config.total_steps
    for i in np.flatnonzero(is_last):
        for a, b in zip(last, jax.tree.leaves(kept.by_score.online), strict=True):
            np.testing.assert_array_equal(a[i], b[i])
