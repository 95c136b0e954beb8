"""What docs/anywhere.md shows is what happens."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "anywhere.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_examples_run_in_the_order_of_the_page():
    first, ppo, dqn, many, memo = BLOCKS
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
