"""A run that begins with another's networks: which it takes, what it keeps, what it refuses."""

import os
import shutil
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import primax
from primax.agent import critics, training
from primax.agent.learner import make_learner
from primax.cli import main
from primax.errors import InputError
from primax.nn import nets
from primax.presets import configure
from primax.runs import checkpoints, start, trees
from primax.runs.config_json import create
from primax.runs.naming import name_runs
from primax.runs.provenance import provenance
from primax.runs.read import open_run

SEEDS = (0, 1, 2)
TABLES = ("config.json", "episodes.csv", "windows.csv", "maps.npz", "replays.jsonl", "start.npz")


def made(folder, method="count", seeds=SEEDS, **settings):
    """A run's folder as it is before its first step, and its state."""
    config = configure(method, "maze", "smoke", {"critics.heads": 3, **settings})
    learner = make_learner(config)
    state = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))(jax.random.key(7), jnp.array(seeds))
    create(folder, config, seeds)
    about = {"provenance": provenance()}
    checkpoints.save(folder, 0, lambda file: trees.write(file, state), about)
    return folder, state


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs") / "source")


def begun(folder, take="whole", seeds=(0, 2), **settings):
    """The first state of a run of the task that begins with a folder's networks, and of one that does not."""
    config = configure("task", "maze", "smoke", settings)
    config, content = start.begin_with(folder, None, take, config, seeds)
    learner = make_learner(config)
    init = jax.jit(jax.vmap(learner.init, in_axes=(None, 0)))
    program = training.Program(learner, seeds, init, init, init, 0.0, {})
    given = replace(program, networks=start.networks(content, learner, seeds))
    return training._first(given), training._first(program)


def halved(net):
    """As an exported file has it."""
    return jax.tree.map(lambda x: np.asarray(x).astype(np.float16).astype(np.float32), net)


def test_whole_critics_begin_as_they_were_seed_by_seed(source):
    """Of three heads the first two, of the same seeds; the targets are copies, and all else is new."""
    folder, state = source
    begins, new = begun(folder)
    wants = jax.tree.map(lambda x: x[np.array([0, 2])][:, :2], halved(state.critics.online))
    for critic in (begins.critics.online, begins.critics.target):
        jax.tree.map(np.testing.assert_array_equal, critic, wants)
    for name in ("optimiser", "online"):
        same = jax.tree.map(
            np.array_equal, getattr(begins.critics, name), getattr(new.critics, name)
        )
        assert all(jax.tree.leaves(same)) == (name == "optimiser")
    jax.tree.map(np.testing.assert_array_equal, begins.ring, new.ring)
    online, target = begins.critics.online.head.weight, begins.critics.target.head.weight
    assert online.unsafe_buffer_pointer() != target.unsafe_buffer_pointer()  # both are given away


def test_trunks_alone_have_new_output_layers(source):
    """And with more heads than there are, each trunk serves again: 0, 1, 2, 0."""
    folder, state = source
    begins, new = begun(folder, "trunk", **{"critics.heads": 4})
    take = np.array([0, 1, 2, 0])
    wants = jax.tree.map(lambda x: x[np.array([0, 2])][:, take], halved(state.critics.online.trunk))
    jax.tree.map(np.testing.assert_array_equal, begins.critics.online.trunk, wants)
    jax.tree.map(np.testing.assert_array_equal, begins.critics.online.head, new.critics.online.head)
    shared, _ = begun(folder, "trunk", **{"critics.trunk": "shared"})
    for leaf in jax.tree.leaves(shared.critics.online.trunk):
        np.testing.assert_array_equal(leaf[:, 0], leaf[:, 1])


def test_how_networks_are_computed_is_not_taken_over(tmp_path):
    """They fit the program that is compiled for this run."""
    folder, _ = made(tmp_path / "exact", **{"net.precision": "highest"})
    begins, new = begun(folder)
    assert jax.tree.structure(begins) == jax.tree.structure(new)


def test_of_a_mix_the_trunk_can_be_taken(tmp_path):
    folder, _ = made(tmp_path / "mixed", "task+count", **{"mix.values": "two"})
    begun(folder, "trunk")
    with pytest.raises(InputError, match=r"^networks of task\+count cannot begin this run"):
        begun(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": (0, 5)}, "seed 5 is not one of the run's seeds: 0, 1, 2"),
        ({"net.embedding": 16}, "has networks of net.embedding=8, and this run 16"),
        ({"net.activation": "relu"}, "has networks of net.activation=linear, and this run relu"),
        ({"critics.heads": 5}, "has 3 critics, and this run 5: whole copies would be the same"),
        ({"world.size": 8}, "cannot begin this run: they have layers of"),
        ({"take": "some"}, "start.take has no value 'some'"),
    ],
)
def test_networks_that_do_not_fit_are_refused(source, change, says):
    with pytest.raises(InputError, match=says):
        begun(source[0], **change)


def test_what_holds_no_networks_is_refused(source, tmp_path, capsys):
    def refused(*args):
        args = ("train", "task", "maze", "--preset", "smoke", "--seeds", "1", *args)
        assert main([str(arg) for arg in args]) == 2
        return capsys.readouterr().err

    assert "is neither a run's folder nor an exported file" in refused("--from", tmp_path / "no")
    assert "holds no run" in refused("--from", tmp_path)
    (tmp_path / "file").write_bytes(b"not a zip")
    assert "file cannot be read" in refused("--from", tmp_path / "file")
    assert "no best networks yet" in refused("--from", source[0], "--which", "best")
    assert "which has no value 'beast'" in refused("--from", source[0], "--which", "beast")
    assert "give --from too" in refused("--take", "trunk")
    assert "start.take cannot be set" in refused("--set", "start.take=trunk")
    primax.export.export(source[0])
    exported = tmp_path / "export.npz"
    exported.write_bytes(primax.export.export(source[0]))
    assert "has other networks" in refused("--from", exported, "--which", "best")
    assert "cannot be read" in refused("--from", "x" * 300)
    other, _ = made(tmp_path / "smirl", "smirl", **{"critics.heads": 2})
    out = tmp_path / "out"
    assert "networks of smirl cannot begin" in refused("--from", other, "--out", out)
    assert not out.exists()


@pytest.mark.slow
def test_a_run_that_begins_so_goes_on_to_the_same_bytes_without_its_source(
    source, tmp_path, capsys, monkeypatch
):
    """From a folder or its exported file; stopped half-way, or killed before its first checkpoint."""
    monkeypatch.setenv("COLUMNS", "200")
    from_folder, from_file, killed = (tmp_path / name for name in ("folder", "file", "killed"))
    args = ("task", "maze", 2, "smoke")
    primax.train(*args, out=from_folder, start=source[0], take="trunk")
    exported = tmp_path / "export.npz"
    exported.write_bytes(primax.export.export(source[0]))
    stop = lambda at: at.clock == 1_000 and os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
    with pytest.raises(primax.errors.RunError, match="stopped"):
        primax.train(*args, on_window=stop, out=from_file, start=exported, take="trunk")
    shutil.copytree(from_file, killed)
    exported.unlink()
    assert main(["resume", str(from_file)]) == 0
    shutil.rmtree(killed / "checkpoints")
    kept = (killed / "start.npz").read_bytes()
    (killed / "start.npz").write_bytes(primax.export.export(source[0]))
    assert main(["resume", "--restart", str(killed)]) == 2
    assert "start.npz is not what this run began with" in capsys.readouterr().err
    (killed / "start.npz").write_bytes(kept)
    assert main(["resume", "--restart", str(killed)]) == 0
    for name in TABLES:
        whole = (from_folder / name).read_bytes()
        assert whole == (from_file / name).read_bytes() == (killed / name).read_bytes(), name
    in_memory = primax.train(*args, start=source[0], take="trunk")
    np.testing.assert_array_equal(
        in_memory.windows["loss"], primax.api.result(from_folder).windows["loss"]
    )
    name, _ = name_runs([open_run(path) for path in (from_folder, source[0])])
    assert name.text == "task after count start.take=trunk"
    assert name.label == "Ext-DQN after Counts, take = trunk"
    assert main(["report", str(from_folder), "--out", str(tmp_path / "page.html")]) == 0
    assert "Ext-DQN after Counts" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_folder_killed_before_its_configuration_begins_again(source, tmp_path):
    """start.npz comes first."""
    (tmp_path / "run").mkdir()
    for name in ("start.npz", "config.json.part"):
        (tmp_path / "run" / name).write_bytes(b"a part")
    config = configure("task", "maze", "smoke")
    config, content = start.begin_with(source[0], None, "whole", config, (0,))
    create(tmp_path / "run", config, (0,), {start.FILE: content})
    assert open_run(tmp_path / "run").config == config
    with pytest.raises(InputError, match="not empty and holds no run"):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "start.npz").write_bytes(b"mine")
        create(tmp_path / "other", configure("task", "maze", "smoke"), (0,))


def test_begin_with_copies_what_it_is_given():
    net = nets.net(jax.random.key(0), (1, 3, 3), configure("task", "maze", "smoke").net, 5)
    heads = jax.tree.map(lambda x: x[None], net)
    old = critics.init(jax.random.key(1), 1, configure("task", "maze", "smoke").net, (1, 3, 3), 5)
    whole = critics.begin_with(old, heads)
    jax.tree.map(np.testing.assert_array_equal, (whole.online, whole.target), (heads, heads))
    trunk = critics.begin_with(old, heads.trunk)
    jax.tree.map(np.testing.assert_array_equal, trunk.online.head, old.online.head)
