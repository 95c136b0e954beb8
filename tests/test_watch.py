"""Watching and evaluating from the command line: trained agents, recorded episodes, refusals."""

import base64
import csv
import json
from pathlib import Path

import jax
import numpy as np
import pytest
from report_case import full_run

import primax
from primax.cli import main
from primax.errors import InputError
from primax.runs import replays
from primax.runs.read import open_run
from primax.worlds import make_world
from primax.worlds.drawing.film import scenes, seen
from primax.worlds.rollout import play
from primax.worlds.scripted import make_policy

PAPER = Path(__file__).parents[1] / "results" / "paper" / "runs"
SMOKE = ("train", "task", "maze", "--preset", "smoke", "--seeds", "2")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A small run that is through."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main([*SMOKE, "--out", str(folder)]) == 0
    return folder


def told(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 0
    return capsys.readouterr().out


def refused(capsys, *args) -> str:
    assert main([str(arg) for arg in args]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("primax: ")
    return captured.err


def test_evaluate_prints_a_row_a_seed_and_their_mean(run, capsys, tmp_path):
    path = tmp_path / "episodes.csv"
    text = told(capsys, "evaluate", run, "--episodes", 25, "--epsilon", 0.5, "--csv", path)
    assert "task in Maze: last networks, of step 2,000, play 25 episodes a seed at ε 0.5" in text
    assert "random 0.085, sweep 1.000" in text and "only two seeds" in text
    assert "score: share of episodes that reach the flag; reach:" in text
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["seed", "episode", "score", "reach", "coverage", "distance"]
    assert [(row["seed"], row["episode"]) for row in rows[:26]] == [
        *(("0", str(i)) for i in range(25)),
        ("1", "0"),
    ]
    done = primax.evaluate(run, 25, epsilon=0.5)
    scores = np.array([float(row["score"]) for row in rows]).reshape(2, 25)
    np.testing.assert_array_equal(scores, done.score)
    cells = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    for seed in (0, 1):
        mean, half = scores[seed].mean(), 1.96 * scores[seed].std(ddof=1) / 5
        ends = (f"{mean - half:.3f}", "to", f"{mean + half:.3f}")
        shares = (f"{np.mean(scores[seed] > 0):.3f}", f"{done.coverage[seed].mean():.3f}")
        assert cells[str(seed)] == [str(seed), "25", f"{mean:.3f}", *ends, *shares]
    low, high = sorted(scores.mean(axis=1))
    both = [f"{scores.mean():.3f}", f"{low:.3f}", "to", f"{high:.3f}*"]
    assert cells["mean"][1:6] == ["50", *both], "two seeds redrawn: from one to the other"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--episodes", 0), "--episodes must be between 1 and"),
        (("--epsilon", 2), "--epsilon must be between 0 and 1"),
        (("--key", -1), "--key must be between 0"),
        (("--which", "bst"), "--which has no value 'bst'; did you mean best?"),
        (("--seeds", "1"), "--seeds 1 is ambiguous: write 1-1 for seed 1 alone"),
        (("--seeds", "0,3"), "seed 3 is not one of the run's seeds: 0, 1"),
        (("--csv", "/proc/none/a.csv"), "cannot write /proc/none/a.csv: there is no such folder"),
    ],
)
def test_evaluate_refuses_in_one_line(run, capsys, args, says):
    assert says in refused(capsys, "evaluate", run, *args)


def test_watch_plays_the_agent_that_evaluate_counts(run, capsys, tmp_path):
    done = primax.evaluate(run, 4, epsilon=0.5)
    text = told(capsys, "watch", run, "--seed", 1, "--episode", 3, "--epsilon", 0.5)
    assert "Maze · Ext-DQN, seed 1, ε 0.5" in text and "time 100/100" in text
    assert f"score {done.score[1, 3]:g}" in text
    gif, file = tmp_path / "a.gif", tmp_path / "agents.npz"
    text = told(capsys, "watch", run, "--which", "best", "--gif", gif, "--cell", 8)
    assert f"{gif}: Maze · Ext-DQN (best), seed 0, greedy: 101 frames, score" in text
    assert gif.read_bytes()[:6] == b"GIF89a"
    told(capsys, "export", run, "--out", file, "--seeds", "1-1")
    text = told(capsys, "watch", file)
    assert "Maze · Ext-DQN, seed 1, greedy" in text
    assert "has no recorded episodes" in refused(capsys, "watch", file, "--recorded")


def test_watch_plays_what_a_run_recorded(run, capsys):
    lines = open_run(run).replays()
    last = [line for line in lines if line["seed"] == 0][-1]
    text = told(capsys, "watch", run, "--recorded")
    assert "Maze · Ext-DQN, seed 0, step 2,000 of the run" in text
    assert f"score {last['score']:g}" in text
    text = told(capsys, "watch", run, "--recorded", "--seed", 1, "--episode", 9)
    assert "seed 1, step 1,000 of the run" in text
    says = refused(capsys, "watch", run, "--recorded", "--episode", 10)
    assert "episode 10 of seed 0 was not recorded: there are episodes 9, 14, 19" in says
    says = refused(capsys, "watch", run, "--recorded", "--seed", 5)
    assert "has no recorded episode of seed 5: there are episodes of seeds 0, 1" in says


def test_a_packed_run_plays_its_last_recorded_episode_and_says_so(capsys, tmp_path):
    gif = tmp_path / "a.gif"
    text = told(capsys, "watch", PAPER / "prime_butterflies", "--gif", gif, "--cell", 8)
    assert "a packed run has no networks: this is an episode that it recorded" in text
    assert "Butterflies · PRIME, seed 2, step 250,000 of the run: 101 frames, score 5" in text
    for option in (("--which", "last"), ("--epsilon", 0)):
        says = refused(capsys, "watch", PAPER / "prime_butterflies", *option)
        assert "is a packed run, which has no networks" in says


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("watch maze --which best", "--which goes with trained agents"),
        ("watch maze --episode 0", "--episode goes with trained agents"),
        ("watch maze --epsilon 0", "--epsilon goes with trained agents"),
        ("watch maze --recorded", "--recorded goes with trained agents"),
        ("watch RUN --policy chase", "--policy goes with the name of a world"),
        ("watch RUN --set size=6", "--set goes with the name of a world"),
        ("watch RUN --recorded --which best", "--which goes with fresh episodes"),
        ("watch RUN --recorded --epsilon 0", "--epsilon goes with fresh episodes"),
        ("watch RUN --seed 2", "seed 2 is not one of the run's seeds"),
        ("watch RUN --episode -1", "--episode must be between 0"),
        ("watch RUN/none", "is neither a run's folder nor an exported file"),
        ("watch mase", "unknown world 'mase'; did you mean maze?"),
        ("watch RUN/config.json", "cannot be read"),
    ],
)
def test_watch_refuses_options_that_do_not_fit(run, capsys, line, says):
    assert says in refused(capsys, *line.replace("RUN", str(run)).split())


def test_a_folder_with_the_name_of_a_world_needs_a_dot(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "maze").mkdir()
    assert "Maze · chase" in told(capsys, "watch", "maze")
    assert "maze holds no run" in refused(capsys, "watch", "./maze")


def recorded_as(world, episode, score: float) -> dict:
    """A line of replays.jsonl, of an episode of which all is known."""
    planes = np.asarray(jax.vmap(world.observe)(episode.states))
    keys = jax.vmap(world.count_key)(
        jax.tree.map(lambda x: x[:-1], episode.states), episode.actions
    )
    bits = np.packbits(planes.reshape(len(planes), -1), axis=1)
    return {
        "seed": 0,
        "episode": 199,
        "step": 20_000,
        "score": score,
        "actions": "".join(map(str, episode.actions.tolist())),
        "keys": keys.tolist(),
        "observations": base64.b64encode(bits.tobytes()).decode(),
        "planes": list(world.obs_shape),
    }


@pytest.mark.parametrize("name", ["prime_butterflies", "prime_maze"])
def test_a_recorded_episode_looks_as_it_did(name, tmp_path):
    """Every plane, the trail and the butterflies left; only the score comes with the last scene."""
    folder = full_run(tmp_path, name, seeds=1)
    world = make_world(name.removeprefix("prime_"))
    for key in range(3):
        episode = play(world, make_policy("chase", world), jax.random.key(key))
        wanted = scenes(world, episode)
        line = recorded_as(world, episode, wanted[-1].score)
        (folder / "replays.jsonl").write_text(json.dumps(line) + "\n")
        found = replays.find(open_run(folder))
        score = [*[None] * 100, found.score]
        for ours, theirs in zip(seen(world, found.planes, score, found.left), wanted, strict=True):
            np.testing.assert_array_equal(ours.planes, theirs.planes)
            assert (ours.trail, ours.time, ours.horizon) == (theirs.trail, theirs.time, 100)
            if name == "prime_butterflies":
                assert (ours.alive, ours.total) == (theirs.alive, theirs.total)
        assert ours.score == theirs.score


def test_a_catch_in_the_last_step_is_seen_by_the_score(tmp_path):
    """Count keys are of the moments before each step: the last moment has none."""
    folder, world = full_run(tmp_path, "prime_butterflies", seeds=1), make_world("butterflies")
    episode = play(world, make_policy("random", world), jax.random.key(1))
    caught = int(6 - scenes(world, episode)[-1].alive)
    assert 0 < caught < 6
    for score, left in ((caught, 6 - caught), (caught + 1, 5 - caught)):
        line = recorded_as(world, episode, float(score))
        (folder / "replays.jsonl").write_text(json.dumps(line) + "\n")
        assert replays.find(open_run(folder)).left[-2:] == [6 - caught, left]


@pytest.mark.parametrize(
    "change",
    [
        {"observations": "!"},
        {"observations": ""},
        {"planes": [1, 2, 3]},
        {"planes": 4},
        {"score": "x"},
        {"step": None},
        {"seed": "0"},
        {"keys": [1]},
        {"actions": 5},
    ],
)
def test_a_damaged_recording_is_refused_in_one_line(change, tmp_path):
    folder = full_run(tmp_path, "prime_butterflies", seeds=1)
    world = make_world("butterflies")
    episode = play(world, make_policy("random", world), jax.random.key(0))
    line = recorded_as(world, episode, 1.0) | change
    (folder / "replays.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match=r"replays\.jsonl"):
        replays.find(open_run(folder))
