"""Exported files: small, whole or refused, and what they hold acts and rewards as the run did."""

import shutil
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax.agent import best, critics, training
from primax.agent.learner import Learner, make_learner
from primax.agent.ring import read
from primax.cli import main
from primax.errors import InputError
from primax.methods import build
from primax.nn import nets
from primax.presets import configure
from primax.rewards.prime.novelty import Where
from primax.rewards.transition import Batch, Recent
from primax.runs import checkpoints, trees
from primax.runs.config_json import create
from primax.runs.export import WHICH
from primax.runs.provenance import provenance
from primax.runs.read import open_run

SEEDS, CLOCK = (2, 4, 7), 500


@pytest.fixture(scope="module")
def last():
    """A state of PRIME after its warm-up, its reward frozen, with a past made up."""
    config = configure("prime", "butterflies", "smoke")
    learner = Learner(config, *build(config))

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0))
    def begin(root, seed):
        state, _ = learner.warm_up(learner.init(root, seed), jnp.int32(0))
        rows = read(state.ring, jnp.int32(CLOCK), jnp.arange(CLOCK, 0, -1), learner.world.obs_shape)
        is_last = jnp.arange(1, CLOCK + 1) % learner.world.horizon == 0
        recent = Recent(rows, rows.weight > 0, is_last, jnp.full((CLOCK, 5), 0.2))
        reward, _ = learner.reward.refresh(state.reward, recent, root)
        half, double = (jax.tree.map(lambda x, s=s: s * x, state.critics.online) for s in (0.5, 2))
        past = replace(
            state.best,
            by_coverage=best.Peak(0.1 * seed, 100 * seed, half),
            by_score=best.Peak(1.5 * seed, 50 * seed, double),
        )
        return replace(state, reward=reward, best=past)

    return begin(jax.random.key(0), jnp.array(SEEDS))


@pytest.fixture(scope="module")
def folder(last, tmp_path_factory):
    """The folder of a run in that state."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    saved(folder, configure("prime", "butterflies", "smoke"), SEEDS, last)
    return folder


def saved(folder, config, seeds, state) -> None:
    create(folder, config, seeds)
    about = {"provenance": provenance()}
    checkpoints.save(folder, CLOCK, lambda file: trees.write(file, state), about)


def exported(folder, *args) -> primax.export.Exported:
    path = folder / "file.npz"
    path.write_bytes(primax.export.export(folder, *args))
    return primax.export.load(path)


def test_everything_comes_back(folder, last):
    made = exported(folder)
    config, seeds = open_run(folder).config, open_run(folder).given_seeds
    assert made.config == config and made.seeds == seeds == (2, 4, 7)
    assert made.about["which"] == "last" and made.about["step"] == [CLOCK] * 3
    assert made.about["run"]["jax"] == jax.__version__
    assert not [name for name in made.arrays if "optimiser" in name or "ring" in name]
    weight = np.asarray(last.critics.online.head.weight)
    np.testing.assert_array_equal(made.arrays["critics.head.weight"], weight.astype(np.float16))
    assert made.arrays["reward.window.heads.head.weight"].shape[:2] == (3, 1)


def test_the_frozen_reward_is_the_runs_to_the_bit(folder, last):
    """Weights are rounded; what the reward of this run is made of is not."""
    made = exported(folder)
    _, reward = build(made.config)
    like = jax.eval_shape(lambda: reward.init(jax.random.key(0)).window)
    age = jnp.arange(1, 300)
    for i, seed in enumerate(made.seeds):
        state = jax.tree.map(lambda x, i=i: x[i], last)
        batch: Batch = read(state.ring, jnp.int32(CLOCK), age, reward.spec.shape)
        theirs = reward.parts(state.reward, batch)
        window = made.tree("reward.window", like, seed)
        ours = reward.freezer.parts(window, Where(batch.obs, batch.action, batch.key))
        for a, b in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_networks_act_as_the_runs_do(folder, last):
    """In half precision, on all states of the ring; the share is stated in docs/runs.md."""
    made = exported(folder)
    planes = build(made.config)[0].obs_shape
    agree = []
    for i, seed in enumerate(made.seeds):
        ring = jax.tree.map(lambda x, i=i: x[i], last.ring)
        seen = nets.patches(read(ring, jnp.int32(CLOCK), jnp.arange(1, CLOCK), planes).obs)
        online = jax.tree.map(lambda x, i=i: x[i], last.critics.online)
        theirs, ours = (
            jnp.argmax(jnp.mean(critics.values(heads, seen), axis=0), axis=-1)
            for heads in (online, made.critics(seed))
        )
        agree.append(np.mean(np.asarray(theirs == ours)))
    assert np.mean(agree) > 0.99


def test_some_seeds_and_the_best_networks(folder, last):
    made = exported(folder, "best", (7, 2))
    assert made.seeds == (7, 2)
    assert made.about["step"] == last.best.by_coverage.step[jnp.array([2, 0])].tolist()
    kept = last.best.by_coverage.online.head.bias[2].astype(jnp.float16)
    np.testing.assert_array_equal(made.arrays["critics.head.bias"][0], kept)
    np.testing.assert_array_equal(made.critics(7).head.bias, kept.astype(jnp.float32))
    oracle = exported(folder, "oracle")
    assert oracle.about["mean"] == last.best.by_score.mean.tolist()
    with pytest.raises(InputError, match="seed 4 is not one of the exported seeds"):
        made.critics(4)
    with pytest.raises(InputError, match=r"nothing was exported under the name ring\.rows"):
        made.tree("ring.rows", last.ring.rows, 7)


def test_a_damaged_file_is_refused_in_one_line(folder, tmp_path):
    """Where a changed byte passes, it carried nothing: all that is read is as it was."""
    content = primax.export.export(folder, "last", (4,))
    path = tmp_path / "file.npz"
    path.write_bytes(content)
    whole = primax.export.load(path)
    noticed = passed = 0
    for at in (*range(0, len(content), 499), *range(len(content) - 600, len(content), 7)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        try:
            again = primax.export.load(path)
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            noticed += 1
        else:
            assert again.about == whole.about and again.config == whole.config
            assert again.arrays.keys() == whole.arrays.keys()
            passed += 1
    assert noticed > 3 * passed
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        primax.export.load(path)
    np.savez(path, a=np.arange(3))
    with pytest.raises(InputError, match="was not written by primax export"):
        primax.export.load(path)
    with pytest.raises(InputError, match="cannot be read"):
        primax.export.load(tmp_path / "none.npz")


@pytest.mark.slow
def test_at_the_papers_size_a_seed_takes_less_than_four_megabytes(tmp_path):
    """No bit repeats in the numbers here, so that real ones can only be smaller."""
    config = configure("prime", "butterflies")
    state = jax.tree.map(filled, training.state_like(make_learner(config), 2))
    saved(tmp_path / "run", config, (0, 1), state)
    for which in WHICH:
        size = len(primax.export.export(tmp_path / "run", which))
        assert 2.5e6 < size / 2 < 4e6, which


def filled(like):
    """Random numbers of a kind and size that weights have."""
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.split(jax.random.key(0), like.shape)
    draw = np.random.default_rng(like.size)
    if jnp.issubdtype(like.dtype, jnp.floating):
        return draw.uniform(-0.1, 0.1, like.shape).astype(like.dtype)
    return draw.integers(0, 2, like.shape).astype(like.dtype)


def test_the_command(folder, capsys, tmp_path):
    assert main(["export", str(folder), "--out", str(tmp_path / "a.npz"), "--seeds", "2,4"]) == 0
    assert "MB" in capsys.readouterr().out
    assert primax.export.load(tmp_path / "a.npz").seeds == (2, 4)
    assert main(["export", str(folder), "--out", str(tmp_path / "b.npz"), "--seeds", "4-4"]) == 0
    assert primax.export.load(tmp_path / "b.npz").seeds == (4,)
    assert main(["export", str(folder), "--which", "oracle"]) == 0
    assert primax.export.load(folder / "export_oracle.npz").about["which"] == "oracle"
    for args, says in (
        (["--which", "bst"], "did you mean best?"),
        (["--seeds", "0,2"], "seed 0 is not one of the run's seeds"),
        (["--seeds", "4"], "is ambiguous: write 4-4 for seed 4 alone, or 0-3 for the first 4"),
        (["--seeds", "0"], "write 0-0 for seed 0"),
        (["--seeds", ""], "--seeds takes a number"),
        (["--out", "/proc/none/a"], "cannot write /proc/none/a"),
        (["--out", str(tmp_path)], f"cannot write {tmp_path}: Is a directory"),
    ):
        assert main(["export", str(folder), *args]) == 2
        assert says in capsys.readouterr().err
    assert not list(tmp_path.parent.glob("*.part")), "nothing is left of what could not be written"
    assert main(["export", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_before_there_is_anything_to_export_it_says_so(folder, last, tmp_path):
    config, seeds = open_run(folder).config, open_run(folder).given_seeds
    create(tmp_path / "none", config, seeds)
    with pytest.raises(
        InputError, match="can be used: there is none yet; if nothing trains it, primax resume"
    ):
        primax.export.export(tmp_path / "none")
    shutil.copytree(folder, tmp_path / "damaged")
    (state,) = (tmp_path / "damaged").glob("checkpoints/*/state.npz")
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"that can be used: .*state\.npz is damaged"):
        primax.export.export(str(tmp_path / "damaged"))
    never = jnp.array([0.1, -jnp.inf, -jnp.inf])
    state = eqx.tree_at(lambda x: x.best.by_coverage.mean, last, never)
    saved(tmp_path / "run", config, seeds, state)
    with pytest.raises(InputError, match="seed 4 has no best networks yet"):
        primax.export.export(tmp_path / "run", "best")
    assert primax.export.export(tmp_path / "run", "best", (2,))
