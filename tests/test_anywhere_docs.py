"""What docs/anywhere.md shows is what happens."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "anywhere.md"
SMALL = {"replay": 64, "recent": 16, "window": 10, "warmup": 10, "net.embedding": 4}
SMALL |= {"reward.heads": 1, "reward.quantiles": 3, "reward.probes": 2, "reward.feature_dim": 3}
SMALL |= {"reward.calibration": 8, "reward.neighbours": 4, "critics.batch": 4}
"""Of a bonus that runs in seconds on images."""
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_examples_run_in_the_order_of_the_page():
    first, _, ppo, dqn, many, memo = BLOCKS
    names: dict = {}
    exec(first, names)
    assert 0 < float(names["intrinsic"]) <= 2 and int(names["state"].clock) == 1_200
    rng, lead = np.random.default_rng(0), (20, 1)
    names |= {
        "obs": rng.normal(size=(*lead, 4)),
        "next_obs": rng.normal(size=(*lead, 4)),
        "actions": rng.integers(0, 2, lead),
        "terminated": np.zeros(lead, bool),
        "truncated": np.zeros(lead, bool),
        "rewards": np.zeros(lead),
    }
    exec(ppo, names)
    assert names["rewards"].shape == lead and np.all(names["rewards"] > 0)
    names |= {name: names[name][:, 0] for name in ("obs", "next_obs", "actions")}
    names["rewards"] = np.zeros(20)
    exec(dqn, names)
    assert names["rewards"].shape == (20,) and np.all(names["rewards"] > 0)
    primax, gymnasium = names["primax"], names["gymnasium"]
    envs = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    bonus = primax.bonus("count", primax.Space.of(envs), envs=2, keys="simhash")
    names |= {"envs": envs, "bonus": bonus, "state": bonus.init(0), "obs": envs.reset(seed=0)[0]}
    names |= {"only_resets": np.zeros(2, bool), "actions": np.ones(2, int)}
    for _ in range(15):
        exec(many, names)
    assert int(np.sum(names["state"].rows.is_lived)) < 30 == int(names["state"].clock)
    space = primax.Space((1, 2, 3), 2, kind="planes", horizon=5)
    smirl = primax.bonus("smirl", space, settings={"reward.agent": "true"})
    names |= {"bonus": smirl, "state": smirl.init(0), "obs": np.ones((1, 1, 2, 3), np.uint8)}
    exec(memo, names)
    assert names["seen"].shape == (1, 3, 2, 3)


@pytest.mark.slow
def test_the_program_with_images_runs():
    """As on the page, but for its sizes; then the square is at the border where it can go no further."""
    text, names = BLOCKS[1], {"SMALL": SMALL}
    for large, small in (('keys="simhash")', 'keys="simhash", settings=SMALL)'), ("1_200", "130")):
        assert text.count(large) == 1
        text = text.replace(large, small)
    exec(text, names)
    assert names["space"].kind == "image" and 0 < float(names["intrinsic"]) <= 2
    assert int(names["state"].clock) == 130
    env = names["env"]
    image, _ = env.reset(seed=0)
    assert image[:4, :4].all() and image.sum() == 16 * 3 * 255
    steps = [env.step(action) for action in (0, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3)]
    assert [task for _, task, *_ in steps] == [0.0] * 10 + [1.0] and steps[-1][2]
    assert steps[-1][0][20:, 20:].all() and steps[-1][0].sum() == 16 * 3 * 255
