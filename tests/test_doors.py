"""A new world is one file and one line, a new reward too: every door then knows them."""

import os
import re
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from own import MOVED, Corridor, CorridorConfig
from probes import Ends, Walks

import primax
from primax.adapters.gymnasium import register
from primax.agent import learner
from primax.cli import main
from primax.errors import InputError
from primax.methods import METHODS
from primax.paper.experiments import CELLS, VARIANTS, Cell, Variant
from primax.worlds import WORLDS

SMOKE = ("--preset", "smoke", "--seeds", "2")


@pytest.fixture
def added(monkeypatch):
    """The one line of each."""
    monkeypatch.setitem(WORLDS, "corridor", Corridor)
    monkeypatch.setitem(METHODS, MOVED.name, MOVED)
    monkeypatch.setenv("COLUMNS", "200")


def told(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


@pytest.mark.slow
def test_both_at_every_door(added, capsys, tmp_path):
    """Trained, finished again, listed, shown, measured, audited, packed, compared."""
    run, packed = tmp_path / "moved_corridor", tmp_path / "packed"
    text = told(capsys, "train", "moved", "corridor", *SMOKE, "--set", "world.length=5", "--out", run)  # fmt: skip
    assert "moved in Corridor" in text
    assert "is finished" in told(capsys, "resume", run)
    text = told(capsys, "list")
    assert "every step that leads somewhere else" in text and "A way of four rows" in text
    text = told(capsys, "list", "moved", "corridor")
    assert "world.length 6 Cells from one end to the other." in text and "steps 30000" in text
    assert "reward.reward_scale 0.5 What a step to another cell is worth." in text
    assert "steps at the far end" in told(capsys, "worlds", "corridor", "--episodes", 20)
    gif = tmp_path / "episode.gif"
    told(capsys, "watch", "corridor", "--policy", "random", "--gif", gif)
    assert gif.read_bytes()[:3] == b"GIF"
    assert "last" in told(capsys, "stats", run, "--measure", "last")
    assert "nothing fails" in told(capsys, "verify", "--run", run)
    told(capsys, "export", run)
    assert "moved in Corridor: last networks" in told(capsys, "evaluate", run, "--episodes", 3)
    assert "Corridor · Moved, seed 1, greedy" in told(capsys, "watch", run, "--seed", 1)
    told(capsys, "pack", run, "--out", packed)
    assert "an episode that it recorded" in told(capsys, "watch", packed / run.name)
    page = tmp_path / "page.html"
    told(capsys, "report", run, packed, "--out", page)
    assert "Moved" in (shown := page.read_text(encoding="utf-8"))
    assert "Corridor 4 × 5" in shown and "steps at the far end" in shown
    assert "reward.reward_scale must be between" in refused(
        capsys, "train", "moved", "corridor", "--set", "reward.reward_scale=-1"
    )
    assert "did you mean corridor?" in refused(capsys, "train", "moved", "coridor")


@pytest.mark.slow
def test_episodes_that_end_when_they_like_at_every_door(added, capsys, tmp_path, monkeypatch):
    """Two steps and an idle row each; a run that was stopped goes on to the same bytes."""
    monkeypatch.setitem(WORLDS, "walks", Walks)
    whole, halved, page = tmp_path / "whole", tmp_path / "halved", tmp_path / "page.html"
    told(capsys, "train", "prime", "walks", *SMOKE, "--out", whole)
    stop = lambda at: at.clock == 1_000 and os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
    with pytest.raises(primax.errors.RunError, match="stopped"):
        primax.train("prime", "walks", 2, "smoke", on_window=stop, out=halved)
    result = primax.train("prime", "walks", 2, "smoke", out=halved)
    for name in ("episodes.csv", "windows.csv", "maps.npz"):
        assert (whole / name).read_bytes() == (halved / name).read_bytes()
    assert not (whole / "replays.jsonl").exists() or not (whole / "replays.jsonl").read_bytes()
    for seed in (0, 1):
        mine = result.episodes["seed"] == seed
        np.testing.assert_array_equal(result.episodes["step"][mine], np.arange(2, 2_001, 3))
        np.testing.assert_array_equal(result.episodes["episode"][mine], np.arange(667))
        np.testing.assert_array_equal(result.episodes["score"][mine], 2.0)
    assert "nothing fails" in told(capsys, "verify", "--run", whole)
    assert "peak" in told(capsys, "stats", whole)
    told(capsys, "explain", whole)
    told(capsys, "export", whole)
    assert "2.000 to 2.000" in told(capsys, "evaluate", whole, "--episodes", 3)
    assert "time 2/4 score 2" in told(capsys, "watch", whole)
    told(capsys, "pack", whole, "--out", tmp_path / "packed")
    told(capsys, "report", whole, "--out", page)
    assert "Walks" in page.read_text(encoding="utf-8")


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 2
    return capsys.readouterr().err


def test_the_world_under_gymnasium(added):
    register()
    try:
        env = gymnasium.make("primax/Corridor-v0", length=4)
        obs, _ = env.reset(seed=0)
        assert obs.shape == (2, 4, 4)
        rewards = [env.step(2)[1] for _ in range(4)]  # east, along the way
        assert rewards == [0.0, 0.0, 1.0, 1.0]
    finally:
        gymnasium.registry.pop("primax/Corridor-v0")


def test_a_world_that_ends_says_so_under_gymnasium(monkeypatch):
    monkeypatch.setitem(WORLDS, "ends", Ends)
    register()
    try:
        env = gymnasium.make("primax/Ends-v0").unwrapped
        env.reset(seed=0)
        _, reward, terminated, truncated, _ = env.step(0)
        assert (reward, terminated, truncated) == (1.0, True, False)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
        with pytest.raises(InputError, match=r"ends may end before its time.*sync"):
            gymnasium.make_vec("primax/Ends-v0", num_envs=2)
    finally:
        gymnasium.registry.pop("primax/Ends-v0")


@pytest.mark.long
def test_prime_in_the_world_can_be_explained(added, capsys, tmp_path):
    run = tmp_path / "run"
    told(capsys, "train", "prime", "corridor", *SMOKE, "--out", run)
    assert "R_int" in told(capsys, "explain", run)
    assert "nothing fails" in told(capsys, "verify", "--run", run)


@pytest.mark.slow
def test_the_reward_beside_the_papers_own(added, capsys, tmp_path, monkeypatch):
    """One more line puts it into the tables that `primax reproduce` writes."""
    variant = Variant("moved", "Moved", "moved", ("tableB",))
    monkeypatch.setitem(VARIANTS, "moved", variant)
    for cell in (Cell(variant, world) for world in ("butterflies", "maze")):
        monkeypatch.setitem(CELLS, cell.name, cell)
    told(capsys, "reproduce", "--scale", "smoke", "--only", "moved", "--out", tmp_path)
    rows = (tmp_path / "tables" / "tableB.md").read_text(encoding="utf-8").splitlines()
    (row,) = (row for row in rows if row.startswith("| Moved "))
    assert "not run" not in row and row.count("±") == 6
    assert "moved_maze" in (tmp_path / "times.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_python_takes_objects_as_well_as_names(added, tmp_path):
    """The same numbers, whether by name or as an object; a folder keeps names only."""
    settings = {"world.length": 5, "reward.reward_scale": 2.0}
    named = primax.train("moved", "corridor", 2, "smoke", settings)
    world = Corridor(CorridorConfig(length=5))
    made = primax.train(MOVED, world, 2, "smoke", {"reward.reward_scale": 2.0})
    assert made.config == named.config
    assert repr(made).startswith("<Result: moved in Corridor, 2 seeds of 2,000 steps, 40 episodes")
    for name, column in named.windows.items():
        np.testing.assert_array_equal(column, made.windows[name])
    assert made.windows["reward"].max() > 0.5  # the most that the default scale could pay


def test_an_object_without_a_name_has_no_folder(tmp_path):
    world = Corridor(CorridorConfig())
    with pytest.raises(InputError, match=r"primax\.METHODS\['moved'\]"):
        primax.train(MOVED, "maze", 1, "smoke", out=tmp_path / "run")
    with pytest.raises(InputError, match=r"primax\.WORLDS\['\.\.\.'\] = Corridor"):
        primax.train("task", world, 1, "smoke", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_anything_else_is_refused_in_one_line():
    """In a process of its own: here a type checker would be faster."""
    script = """
import primax
for method, world in ((None, "maze"), ("task", 3), (["task"], "maze")):
    try:
        primax.train(method, world, 1, "smoke")
    except primax.InputError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "method takes a name or a primax.Method, got None",
        "world takes a name, a primax.World or an object with num_actions, reset(key) -> (obs, state) "
        "and step(key, state, action) -> (obs, state, reward, terminated, truncated); got 3",
        "method takes a name or a primax.Method, got ['task']",
    ]


@pytest.mark.slow
def test_world_and_reward_are_built_once_a_call(added, capsys, monkeypatch, tmp_path):
    built = []
    real = learner.build
    monkeypatch.setattr(learner, "build", lambda *args: built.append(args) or real(*args))
    primax.train("moved", "corridor", 1, "smoke")
    assert len(built) == 1
    primax.train("moved", "corridor", 1, "smoke", out=tmp_path / "run")
    assert len(built) == 2
    told(capsys, "train", "moved", "corridor", *SMOKE[:-1], "1", "--out", tmp_path / "other")
    assert len(built) == 3
    told(capsys, "resume", tmp_path / "other")
    assert len(built) == 4
