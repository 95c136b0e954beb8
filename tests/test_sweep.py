"""`primax sweep`: plans read by hand, cells worked through by a stand-in, and one run for real."""

import fcntl
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from primax.agent.training import Progress
from primax.cli import main
from primax.cli import sweep as cli_sweep
from primax.errors import RunError, StoppedError
from primax.output.sheet import clock
from primax.paper.predict import predict_run, side_by_side
from primax.presets import configure
from primax.runs.config_json import as_json
from primax.runs.progress import Reporter
from primax.runs.stops import claim, is_claimed, locked
from primax.sweep import launch, logs, stand, work
from primax.sweep.board import Board
from primax.sweep.launch import Ended, Work, local
from primax.sweep.plan import plan_cells, read_plan
from primax.sweep.stand import Home

PLAN = """
methods = ["task", "count"]
worlds = ["maze"]
preset = "smoke"
seeds = "1"
"""

# --- what a plan says ---------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "plan.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_plan_is_the_product_in_order_with_names_and_settings(tmp_path):
    cells = read_plan(
        written(
            tmp_path,
            """
            methods = ["prime", "Task+Count"]
            worlds = ["maze", "butterflies"]
            seeds = 3
            [set]
            "explore.fraction" = 0.5
            [grid]
            critics.gamma = [0.9, 0.99]
            [[vary]]
            name = "gate0"
            methods = ["prime"]
            worlds = ["maze"]
            seeds = "5-6"
            set = { reward.gate_weight = 0, critics.gamma = 0.5 }
            """,
        )
    ).cells
    assert [cell.name for cell in cells] == [
        "prime_maze_gamma-0.9",
        "prime_maze_gamma-0.99",
        "prime_maze_gate0",
        "prime_butterflies_gamma-0.9",
        "prime_butterflies_gamma-0.99",
        "task-count_maze_gamma-0.9",
        "task-count_maze_gamma-0.99",
        "task-count_butterflies_gamma-0.9",
        "task-count_butterflies_gamma-0.99",
    ]
    first, _, gate, *_ = cells
    assert first.settings == {"explore.fraction": "0.5", "critics.gamma": "0.9"}
    assert first.config == configure("prime", "maze", "paper", first.settings)
    assert first.given_seeds == (0, 1, 2) and cells[-1].method == "task+count"
    assert gate.config.reward.gate_weight == 0 and gate.config.critics.gamma == 0.5
    assert gate.given_seeds == (5, 6), "a variant's word goes before the plan's"


def test_runs_may_be_named_one_by_one_with_or_without_a_product(tmp_path):
    named = """
        seeds = 3
        [set]
        critics.gamma = 0.5
        [[cell]]
        name = "mine"
        method = "Prime"
        world = "maze"
        seeds = "7-7"
        set = { reward.gate_weight = 0 }
        [[cell]]
        name = "other"
        method = "rnd"
        world = "maze"
    """
    one, other = read_plan(written(tmp_path, named)).cells
    settings = {"critics.gamma": "0.5", "reward.gate_weight": "0"}
    assert (one.name, one.method, one.given_seeds) == ("mine", "prime", (7,))
    assert one.config == configure("prime", "maze", "paper", settings)
    assert other.config == configure("rnd", "maze", "paper", {"critics.gamma": "0.5"})
    beside = "methods = ['task']\nworlds = ['maze']\n" + named
    names = [cell.name for cell in read_plan(written(tmp_path, beside)).cells]
    assert names == ["task_maze", "mine", "other"]


def test_names_tell_fields_apart_and_have_no_odd_characters():
    def names(**grid):
        content = {"methods": ["prime"], "worlds": ["maze"], "plain": False}
        return [cell.name for cell in plan_cells(content | {"vary": [{"name": "v", "grid": grid}]})]

    both = names(critics={"heads": [2]}, reward={"heads": [3]})
    assert both == ["prime_maze_v_critics.heads-2_reward.heads-3"]
    assert names(**{"world.layout": ["long", "longest"]}) == [
        "prime_maze_v_layout-long",
        "prime_maze_v_layout-longest",
    ]
    assert names(**{"net.kernels": [True], "critics.gamma": [5e-1]}) == [
        "prime_maze_v_kernels-true_gamma-0.5"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("methods = [", "is not TOML"),
        ("worlds = ['maze']", "methods is missing"),
        ("methods = 'prime'\nworlds = ['maze']", "methods takes a list, got 'prime'"),
        ("methods = []\nworlds = ['maze']", "methods takes a list of names, got []"),
        ("methods = [1]\nworlds = ['maze']", "methods takes a list of names, got [1]"),
        (
            "methods = ['prme']\nworlds = ['maze']",
            "methods: unknown method 'prme'; did you mean pr",
        ),
        ("methods = ['rnd']\nworlds = ['mase']", "worlds: unknown world 'mase'; did you mean maze"),
        (PLAN + "sets = 1", "unknown key 'sets'; did you mean set"),
        (PLAN.replace("smoke", "smok"), "task_maze: unknown preset 'smok'; did you mean smoke"),
        (PLAN.replace('"1"', "1.5"), "seeds takes a number"),
        (PLAN.replace('"1"', "true"), "seeds takes a number"),
        (PLAN.replace('"1"', '"a"'), "seeds takes a number"),
        (PLAN + "plain = 1", "plain takes true or false, got 1"),
        (PLAN + "plain = false", "it has 0 cells"),
        (PLAN + "set = 3", "set takes a table, got 3"),
        (PLAN + "[set]\nstep = 3", "task_maze: no field 'step'; did you mean steps"),
        (PLAN + "[set]\ncritics.gama = 3", "task_maze: no field 'critics.gama'; did you mean crit"),
        (PLAN + "[set]\ncritics.gamma = 3", "task_maze: critics.gamma must be between"),
        (PLAN + "[set]\ncritics.gamma = [0.9]", "set: critics.gamma takes a number, text"),
        (PLAN + "[set]\nsteps = 2024-01-01", "set: steps takes a number, text"),
        (
            PLAN + "[set]\n'critics.gamma' = 0.9\ncritics.gamma = 0.8",
            "critics.gamma is given twice",
        ),
        (PLAN + "[set]\nmethod = 'rnd'", "task_maze: method is not a field to set"),
        (
            PLAN + "[grid]\ncritics.gamma = 0.9",
            "grid: critics.gamma takes a list of values, got 0.9",
        ),
        (PLAN + "[grid]\ncritics.gamma = []", "grid: critics.gamma takes a list of values, got []"),
        (PLAN + "[grid]\nsteps = [1]\n[set]\nsteps = 2", "grid: steps is in set too"),
        (PLAN + "[grid]\nsteps = [9, 9]", "two cells are called task_maze_steps-9"),
        (
            PLAN + "[grid]\nworld.layout = ['" + "a" * 200 + "']",
            "length of its name must be between",
        ),
        (
            PLAN + "vary = [3]",
            "vary, entry 1: takes a table, got 3",
        ),
        (PLAN + "[[vary]]\nseeds = '3'", "vary, entry 1: name is missing"),
        (PLAN + "[[vary]]\nname = 'a/b'", "vary 'a/b': name takes letters"),
        (PLAN + "[[vary]]\nname = 'a'\nmethods = ['rnd']", "vary 'a': methods: 'rnd' is not among"),
        (PLAN + "[[vary]]\nname = 'a'\nworlds = ['mace']", "did you mean maze"),
        (
            PLAN + "[[vary]]\nname = 'a'\nworld = ['maze']",
            "vary 'a': unknown key 'world'; did you mean",
        ),
        (PLAN + "cell = [3]", "cell, entry 1: takes a table, got 3"),
        (PLAN + "[[cell]]\nmethod = 'rnd'", "cell, entry 1: name is missing"),
        (PLAN + "[[cell]]\nname = 'a/b'", "cell, entry 1: name takes letters"),
        (PLAN + "[[cell]]\nname = 'Logs'", "name 'Logs' is that of a file of every sweep"),
        (PLAN + "[[cell]]\nname = 'a'\nmethod = 'rnd'", "cell, entry 1: a: world is missing"),
        (
            PLAN + "[[cell]]\nname = 'a'\nmethod = 'rmd'",
            "a: unknown method 'rmd'; did you mean rnd",
        ),
        (PLAN + "[[cell]]\nname = 'a'\nvary = 1", "cell, entry 1: unknown key 'vary'"),
        (
            PLAN + "[[cell]]\nname = 'task_maze'\nmethod = 'rnd'\nworld = 'maze'",
            "two cells are called task_maze",
        ),
        (PLAN + "[[vary]]\nname = 'a'\n" * 2, "two cells are called task_maze_a"),
        (PLAN + "[[vary]]\nname = 'a'\n[[vary]]\nname = 'A'", "two cells are called task_maze_A"),
        (
            PLAN + "[grid]\n" + "".join(f"a{i} = {[1] * 30}\n" for i in range(9)),
            "cells: a plan has",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_with_file_and_key(tmp_path, capsys, text, said):
    path = written(tmp_path, text)
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert said in err and str(path) in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists(), "nothing has started"


def test_a_file_that_is_not_there_and_jobs_that_cannot_be(tmp_path, capsys):
    assert main(["sweep", str(tmp_path / "no.toml")]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert main(["sweep", str(written(tmp_path, PLAN)), "--jobs", "0"]) == 2
    assert "--jobs must be between 1" in capsys.readouterr().err


# --- working through it, with a stand-in for `python -m primax` ----------------------------------

FAKE = """
import json, os, shutil, signal, sys, time
from pathlib import Path
verb, rest = sys.argv[1], sys.argv[2:]
folder = Path(rest[rest.index("--out") + 1] if verb == "train" else rest[0])
home = folder.parents[1]
rule = json.loads((home / "rules.json").read_text()).get(folder.name, "")
with open(home / "order", "a") as order:
    order.write(f"{verb} {folder.name}\\n")
if rule == "fail":
    sys.exit("primax: the disk is full")
folder.mkdir(exist_ok=True)
shutil.copy(home / f"{folder.name}.json", folder / "config.json")
if rule == "wait":
    def stop(*_):
        print("primax: stopped at step 500", flush=True)
        sys.exit(1)
    signal.signal(signal.SIGTERM, stop)
    (home / f"{folder.name}.pid").write_text(str(os.getpid()))
    (home / f"{folder.name}.waits").write_text("")
    for _ in range(20_000):  # not for ever, whatever a test does
        if (home / "go").exists():
            break
        time.sleep(0.01)
content = json.loads((folder / "config.json").read_text())
(folder / "manifest.json").write_text(json.dumps({"finished": "now", "steps": content["steps"]}))
is_alone = os.getpgrp() == os.getpid()  # a terminal's Ctrl-C does not reach it
print("done", os.environ.get("CUDA_VISIBLE_DEVICES"), is_alone)
"""


class Stage:
    """A folder with a plan, and processes that only play at training."""

    def __init__(self, folder: Path, text: str = PLAN):
        self.folder, self.path = folder, written(folder, text)
        self.home, self.said = Home(folder / "plan"), []
        (folder / "fake.py").write_text(FAKE, encoding="utf-8")
        self.plan = read_plan(self.path)
        for cell in self.plan.cells:
            content = as_json(cell.config, cell.given_seeds)
            (folder / f"{cell.name}.json").write_text(json.dumps(content), encoding="utf-8")
        self.rule()

    def rule(self, **rules: str) -> None:
        (self.folder / "rules.json").write_text(json.dumps(rules), encoding="utf-8")

    def go(self, jobs: int = 1, launcher=None) -> work.Account:
        stand.check_home(self.home, self.plan)
        stand.begin(self.home, self.plan)
        account, launcher = work.Account(), launcher or partial(local, places=[{}] * jobs)
        stands = [stand.stand(self.home, cell) for cell in self.plan.cells]
        stands = stand.in_order(stands, "cpu")
        work.work_all(self.home, stands, launcher, account, self.said.append, ["--plugin", "x"])
        return account

    def order(self) -> list[str]:
        return (self.folder / "order").read_text().splitlines()

    def states(self) -> dict[str, str]:
        return {cell.name: stand.stand(self.home, cell).state for cell in self.plan.cells}

    def wait_for(self, name: str) -> None:
        wait_for((self.folder / name).exists)


def wait_for(is_so, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "PRIMAX", (sys.executable, str(tmp_path / "fake.py")))
    monkeypatch.setattr(launch, "POLL_S", 0.01)
    return Stage(tmp_path)


def test_the_longest_first_and_nothing_twice(stage):
    first, second = stage.plan.cells
    assert predict_run(first.config, 1, "cpu") < predict_run(second.config, 1, "cpu")
    assert stage.states() == {"task_maze": "waiting", "count_maze": "waiting"}
    assert stage.go().through == ["count_maze", "task_maze"]
    assert stage.order() == ["train count_maze", "train task_maze"]
    assert stage.states() == {"task_maze": "finished", "count_maze": "finished"}
    assert stage.go().through == ["task_maze", "count_maze"] and len(stage.order()) == 2
    assert (stage.home.path / "plan.toml").read_bytes() == stage.path.read_bytes()


def test_the_command_line_is_one_that_a_person_would_type(stage):
    cell = plan_cells(
        {"methods": ["prime"], "worlds": ["maze"], "set": {"reward": {"gate_weight": 0}}}
    )[0]
    line = work.command(stage.home, cell, ["--save-every", "9"])[2:]
    out = str(stage.home.path / "prime_maze")
    said = "train prime maze --preset paper --seeds 15 --set reward.gate_weight=0 --out"
    assert line == [*said.split(), out, "--save-every", "9"]
    stage.go()
    line = work.command(stage.home, stage.plan.cells[0], [])[2:]
    assert line == ["resume", str(stage.home.path / "task_maze")]


def test_a_cell_that_fails_is_named_with_its_log_and_the_others_finish(stage):
    stage.rule(count_maze="fail")
    with pytest.raises(RunError, match="1 of 2 cells failed: count_maze; their logs are in"):
        stage.go()
    log = stage.home.path / "logs" / "count_maze.log"
    assert f"count_maze: failed (status 1): primax: the disk is full; see {log}" in stage.said
    assert stage.states() == {"task_maze": "finished", "count_maze": "failed"}
    table = "\n".join(
        stand.told(stage.home, [stand.stand(stage.home, stage.plan.cells[1])], 1, "cpu")
    )
    assert f"count_maze failed: primax: the disk is full; see {log}" in table
    stage.rule()
    assert set(stage.go().through) == {"task_maze", "count_maze"}
    assert stage.order()[2:] == ["train count_maze"], "the same command tries it again"


def test_more_cells_fail_than_there_are_places(stage, capsys, monkeypatch):
    """Each is told of, none keeps its place, and the next call tries those again that failed."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    methods = ["task", "count", "rnd", "disagreement", "smirl"]
    full = Stage(stage.folder, PLAN.replace('["task", "count"]', json.dumps(methods)))
    args = ["sweep", str(full.path), "--out", str(full.home.path), "--jobs", "2"]
    names = {cell.name for cell in full.plan.cells}
    for good in (set(), {"rnd_maze"}):
        bad = names - good
        full.rule(**dict.fromkeys(bad, "fail"))
        assert main(args) == 1
        said = capsys.readouterr()
        found = re.fullmatch(
            r"primax: (\d) of 5 cells failed: ([^;]*); their logs are .*\n", said.err
        )
        assert found and int(found[1]) == len(bad) and set(found[2].split(", ")) == bad
        for cell in full.plan.cells:
            told = f"{cell.name}: failed (status 1): primax: the disk is full; see "
            assert (f"{told}{full.home.log(cell)}\n" in said.out) == (cell.name in bad)
            assert full.states()[cell.name] == ("failed" if cell.name in bad else "finished")
    assert sorted(full.order()) == sorted(f"train {name}" for name in names for _ in range(2))
    full.rule()
    assert main(args) == 0 and set(full.states().values()) == {"finished"}
    assert set(full.order()[10:]) == {f"train {name}" for name in bad} and len(full.order()) == 14


def test_a_process_that_cannot_start_stops_no_other(stage):
    stage.home.log(stage.plan.cells[1]).mkdir(parents=True)
    with pytest.raises(RunError, match="1 of 2 cells failed: count_maze"):
        stage.go()
    assert (
        "count_maze: failed (status 127): " in stage.said[1] and "Is a directory" in stage.said[1]
    )
    assert stage.states()["task_maze"] == "finished"


def test_a_launcher_is_given_command_lines_and_says_how_each_ended(stage):
    """The seam: another launcher, which takes all at once and starts nothing."""
    taken: list[Work] = []

    def launcher(works):
        taken.extend(works)
        yield from (Ended(one.name, 0 if one.name == "task_maze" else -9) for one in taken)

    with pytest.raises(RunError, match="count_maze"):
        stage.go(launcher=launcher)
    assert [one.name for one in taken] == ["count_maze", "task_maze"]
    assert taken[0].command[2:4] == ["train", "count"] and taken[0].command[-2:] == [
        "--plugin",
        "x",
    ]
    log = stage.home.log(stage.plan.cells[1])
    assert f"count_maze: killed (signal 9); see {log}" in stage.said
    assert stage.states() == {"task_maze": "waiting", "count_maze": "killed"}


def test_a_cell_that_was_killed_goes_on_from_its_checkpoint_which_is_named(stage):
    """Not from its last episode: what the tables have beyond the checkpoint is made again."""
    cell = stage.plan.cells[1]
    folder, log = stage.home.folder(cell), stage.home.log(cell)
    (folder / "checkpoints" / "000001000").mkdir(parents=True)
    (folder / "config.json").write_text((stage.folder / "count_maze.json").read_text())
    (folder / "episodes.csv").write_text("seed,episode,step,score\n0,0,1500,1\n")

    def killed(works):
        for one in works:
            one.log.write_text(f"compiled\n{moving(80)}")
            yield Ended(one.name, -9)

    with pytest.raises(RunError, match="2 of 2 cells failed"):
        stage.go(launcher=killed)
    assert sorted(stage.said) == [
        "count_maze: goes on from 1,000",
        f"count_maze: killed (signal 9); checkpoint at step 1,000; see {log}",
        "task_maze: begins",
        f"task_maze: killed (signal 9); see {stage.home.log(stage.plan.cells[0])}",
    ]


def moving(width: int) -> str:
    """What a run says of how far it is, longer than a terminal's line."""
    console, episodes = Console(file=io.StringIO(), width=width), {"score": [1.0], "step": [1]}
    columns = {name: np.array(values) for name, values in episodes.items()}
    window = {"loss": np.zeros(1)}
    progress = Progress(2_000_000, 100_000_000, columns, window, 0.05, {}, 1_000_000, 0.001)
    Reporter(console, 1_000)(progress)
    return console.file.getvalue()


@pytest.mark.parametrize("end", ["", f"{logs.ENDED} 1\n"])
def test_how_far_a_run_was_is_not_its_last_word(tmp_path, end):
    line, log = moving(80), tmp_path / "log"
    assert line.count("\n") == 1 and len(line) > 80
    for said in (line, line.encode("ascii", "replace").decode()):  # some logs can have no bars
        log.write_text(f"$ primax train\nprimax: the disk is full\n{said}{end}")
        assert logs.last_words(log) == (1 if end else 0, "primax: the disk is full")
        log.write_text(f"{said}{end}")
        assert logs.last_words(log)[1] == ""
    log.write_text("1,000/2,000 episodes, score 3 of 4\n")
    assert logs.last_words(log)[1].startswith("1,000/2,000"), "anything else is"


def test_two_at_a_time_each_in_its_own_place(stage):
    stage.rule(task_maze="wait", count_maze="wait")
    both = launch.places(1, ["3", "5"])

    def release():
        for name in ("task_maze", "count_maze"):  # neither ends before both have begun
            stage.wait_for(f"{name}.waits")
        assert stage.states() == {"task_maze": "running", "count_maze": "running"}
        (stage.folder / "go").write_text("")

    thread = threading.Thread(target=release)
    thread.start()
    stage.go(launcher=partial(local, places=both))
    thread.join()
    logs = [stage.home.log(cell).read_text() for cell in stage.plan.cells]
    assert {log.splitlines()[-1] for log in logs} == {"done 3 True", "done 5 True"}


def test_two_sweeps_at_once_leave_each_others_cells_alone(stage):
    """The first waits in a cell; the second goes by it, and makes the rest."""
    stage.rule(count_maze="wait")
    first = threading.Thread(target=stage.go)
    first.start()
    stage.wait_for("count_maze.waits")
    second = stage.go()
    assert second.held == ["count_maze"] and second.through == ["task_maze"] and not second.failed
    assert "count_maze: another process is at it" in stage.said
    (stage.folder / "go").write_text("")
    first.join()
    assert sorted(stage.order()) == ["train count_maze", "train task_maze"]
    assert set(stage.states().values()) == {"finished"}


def test_what_others_have_not_finished_has_an_exit_status_of_its_own(stage, capsys, monkeypatch):
    """`sweep && pack` must not go on without them; what they have finished meanwhile is no reason."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    args = ["sweep", str(stage.path), "--out", str(stage.home.path)]
    stage.rule(count_maze="wait")
    first = threading.Thread(target=stage.go)
    first.start()
    stage.wait_for("count_maze.waits")
    assert main(args) == 3
    said = capsys.readouterr()
    assert "1 of 2 runs are finished; see" in said.out and said.err.count("\n") == 1
    assert "primax: left to other processes, and not finished: count_maze; when" in said.err
    real, looks = cli_sweep.stand, []

    def finishing(home, cell):
        looks.append(cell.name)
        if len(looks) > 2:  # after both were looked at before anything began
            (stage.folder / "go").write_text("")
            first.join()
        return real(home, cell)

    monkeypatch.setattr(cli_sweep, "stand", finishing)
    assert main(args) == 0 and looks == ["task_maze", "count_maze", "count_maze"]
    said = capsys.readouterr()
    assert "2 of 2 runs are finished; see" in said.out and not said.err
    assert "count_maze: another process is at it" in said.out


def test_that_a_run_failed_goes_before_that_one_was_left(stage, capsys, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    stage.rule(task_maze="fail", count_maze="wait")
    first = threading.Thread(target=stage.go, kwargs={"launcher": first_only})
    first.start()
    stage.wait_for("count_maze.waits")
    assert main(["sweep", str(stage.path), "--out", str(stage.home.path)]) == 1
    assert "1 of 2 cells failed: task_maze" in capsys.readouterr().err
    (stage.folder / "go").write_text("")
    first.join()


def first_only(works):
    """A launcher of the first cell alone."""
    return local(itertools.islice(works, 1), [{}])


def test_of_two_launchers_one_has_the_log_and_the_other_starts_nothing(tmp_path):
    """Between a look at a cell and its start another sweep may have begun it."""
    work = Work("a", [sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "a.log")
    with claim(work.log):
        assert list(local(iter([work]), [{}])) == [Ended("a", None)]
    assert list(local(iter([work]), [{}])) == [Ended("a", 3)]


def test_a_cell_that_someone_resumes_by_hand_is_left_to_them(stage):
    folder = stage.home.path / "count_maze"
    folder.mkdir(parents=True)
    content = (stage.folder / "count_maze.json").read_text()
    (folder / "config.json").write_text(content)
    with locked(folder):
        assert is_claimed(folder / "lock") and stage.states()["count_maze"] == "running"
        assert stage.go().held == ["count_maze"]
    assert not is_claimed(folder / "lock") and stage.states()["count_maze"] == "killed"
    assert stage.go().through == ["task_maze", "count_maze"]
    assert stage.order() == ["train task_maze", "resume count_maze"]


def test_whoever_looks_at_a_lock_keeps_nobody_from_taking_it(tmp_path):
    with open(tmp_path / "lock", "wb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        timer = threading.Timer(0.01, fcntl.flock, (looking, fcntl.LOCK_UN))
        timer.start()
        with locked(tmp_path):
            assert is_claimed(tmp_path / "lock") and claim(tmp_path / "lock") is None
        timer.join()
    assert not is_claimed(tmp_path / "lock") and not is_claimed(tmp_path / "none")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_children_which_save_and_the_next_call_goes_on(stage, kind):
    stage.rule(count_maze="wait")

    def send():
        stage.wait_for("count_maze.waits")
        os.kill(os.getpid(), kind)

    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(StoppedError, match="stopped; the same command goes on with what is left"):
        stage.go(launcher=partial(local, places=[{}], say=stage.said.append))
    thread.join()
    assert "primax: stopped at step 500" in stage.home.log(stage.plan.cells[1]).read_text()
    assert any(line.startswith("stopping after") for line in stage.said)
    assert stage.said[-1] == "count_maze: stopped at 0" and len(stage.order()) == 1
    assert stage.states() == {"task_maze": "waiting", "count_maze": "killed"}
    stage.rule()
    stage.go()
    assert stage.order()[1:] == ["resume count_maze", "train task_maze"]


def test_a_second_ctrl_c_kills(stage):
    """In a process of its own, for it ends at once."""
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); "
    stubborn += "time.sleep(60)"
    log = stage.folder / "stubborn.log"
    body = f"""
from pathlib import Path
from primax.sweep.launch import Work, local
list(local(iter([Work("a", [{sys.executable!r}, "-c", {stubborn!r}], Path({str(log)!r}))]), [{{}}]))
"""
    process = subprocess.Popen([sys.executable, "-c", body], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: log.exists() and "\nhere\n" in log.read_text())
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    assert "stopped at once" in process.communicate(timeout=10)[1] and process.returncode == 130
    wait_for(lambda: not is_claimed(log))


# --- where it lives -----------------------------------------------------------------------------


def test_another_plan_in_the_folder_may_add_cells_but_not_change_them(stage, capsys):
    stage.go()
    longer = stage.path.read_text().replace('"count"', '"count", "rnd"')
    other = written(stage.folder, longer, "longer.toml")
    args = ["sweep", "--out", str(stage.home.path), "--status"]
    assert main([*args, str(other)]) == 0
    assert "rnd_maze" in (text := capsys.readouterr().out) and "2 finished, 1 waiting" in text
    changed = written(stage.folder, longer + "[set]\nsteps = 3000", "changed.toml")
    assert main([*args, str(changed)]) == 2
    assert "plan.toml has other settings for task_maze, count_maze: give" in capsys.readouterr().err
    (stage.home.path / "plan.toml").unlink()
    assert main([*args, str(changed)]) == 2, "the runs themselves tell too"
    assert "task_maze holds a run with other settings" in capsys.readouterr().err


def test_a_runs_own_folder_is_no_place_for_a_sweep(stage, capsys):
    stage.go()
    out = str(stage.home.path / "task_maze")
    assert main(["sweep", str(stage.path), "--out", out]) == 2
    assert "is the folder of a run" in capsys.readouterr().err


def test_a_broken_folder_is_a_cell_that_failed(stage):
    stage.go()
    (stage.home.path / "task_maze" / "config.json").write_text("{")
    one = stand.stand(stage.home, stage.plan.cells[0])
    assert one.state == "failed" and "config.json is damaged" in one.why


def test_the_whole_command_and_its_status(stage, capsys, monkeypatch):
    """From the plan's own folder, where OUT is the plan's name; then by that folder alone."""
    monkeypatch.chdir(stage.folder)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert main(["sweep", "plan.toml", "--plan"]) == 0
    text = capsys.readouterr().out
    assert "task_maze   1 × 2,000      waiting" in text and "2 runs, each in plan/CELL" in text
    assert not stage.home.path.exists()
    stage.rule(task_maze="fail")
    assert main(["sweep", "plan.toml"]) == 1
    said = capsys.readouterr()
    assert "2 of 2 runs to do, 1 at a time: about" in said.out
    assert said.err.startswith("primax: 1 of 2 cells failed: task_maze")
    stage.rule()
    assert main(["sweep", "plan"]) == 0
    text = capsys.readouterr().out
    assert "1 of 2 runs to do" in text and "task_maze: done, 2 of 2" in text
    assert main(["sweep", "plan", "--status"]) == 0
    text = capsys.readouterr().out
    assert text.count("finished") == 3 and "left" not in text


def test_finished_runs_take_no_place_where_time_is_predicted(stage, capsys, monkeypatch):
    """On two cores two runs side by side take twice as long each; one that is left has both cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 1}, raising=False)
    assert side_by_side([16.0, 0.0], 2, "cpu") == side_by_side([16.0], 1, "cpu") == 16.0
    assert side_by_side([16.0, 10.0, 0.0], 2, "cpu") == 32.0 and side_by_side([0.0], 2, "cpu") == 0
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    stage.rule(task_maze="fail")
    args = ["sweep", str(stage.path), "--out", str(stage.home.path), "--jobs", "2"]
    assert main(args) == 1
    rest = clock(stand.stand(stage.home, stage.plan.cells[0]).left("cpu"))
    capsys.readouterr()
    assert main([*args, "--status"]) == 0
    assert f"about {rest} left, 2 at a time, by" in capsys.readouterr().out
    assert main([*args[:-2], "--status"]) == 0, "the folder does not say what a sweep was told"
    assert f"about {rest} left if they run 1 at a time, by" in capsys.readouterr().out
    stage.rule()
    assert main(args) == 0
    assert f"1 of 2 runs to do, 2 at a time: about {rest}\n" in capsys.readouterr().out


def test_a_run_that_goes_on_shows_its_step_and_share(stage):
    cell = stage.plan.cells[0]
    folder = stage.home.folder(cell)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text((stage.folder / "task_maze.json").read_text())
    (folder / "episodes.csv").write_text("seed,episode,step,score\n0,0,500,1\n0,1,6")
    parts = [{"started": "2020-01-01T00:00:00+00:00", "compile_s": 2.5, "run_s": 3.0}]
    (folder / "manifest.json").write_text(json.dumps({"parts": parts}))
    one = stand.stand(stage.home, cell)
    assert (one.state, one.done, one.share, one.taken) == ("killed", 500, 0.25, 5.5)
    assert one.left("cpu") == predict_run(cell.config, 1, "cpu", 500)
    with locked(folder):
        lines = list(stand.told(stage.home, [stand.stand(stage.home, cell)], 1, "cpu"))
    assert "running at 500 (25%)" in lines[1]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_board_says_how_far_the_running_cells_are(stage, is_terminal):
    cell, other = stage.plan.cells
    folder, text = stage.home.folder(cell), io.StringIO()
    folder.mkdir(parents=True)
    (folder / "config.json").write_text((stage.folder / "task_maze.json").read_text())
    rows = "seed,episode,step,score\n0,0,1000,1\n"
    (folder / "episodes.csv").write_text(rows)
    stands = [stand.stand(stage.home, one) for one in (cell, other)]
    left, whole = (one.left("cpu") for one in stands)
    (folder / "episodes.csv").write_text(f"{rows}0,1,1500,1\n")
    account = work.Account(running={cell.name: cell})
    console = Console(file=text, force_terminal=is_terminal, markup=False, highlight=False)
    with Board(console, stage.home, stands, account, "cpu") as board:
        board.tick()
        assert "1,500" not in text.getvalue(), "it looks now and then only"
        board.looked_at -= 100
        board.began -= 600 * left / 2  # half of what was left of the one, at that pace
        board.tick()
    assert "task_maze: 1,500 (75%)" in text.getvalue()
    rest = clock(600 * (left / 2 + whole))
    assert f"0 of 2 runs are finished; about {rest} left" in text.getvalue()


# --- GPUs -----------------------------------------------------------------------------------------


def test_devices_are_those_jax_may_see(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    for given, found in (("0,2", ["0", "2"]), ("", []), ("-1", []), ("GPU-ab, 1", ["GPU-ab", "1"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert launch.devices() == found
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        "#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\necho 'GPU 1: NVIDIA H200'\n"
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.devices() == ["0", "1"]
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert launch.devices() == []
    monkeypatch.delenv("JAX_PLATFORMS")
    smi.unlink()
    assert launch.devices() == []


def test_places_fill_the_gpus_evenly_and_share_memory_where_they_must():
    assert launch.places(2, []) == [{}, {}]
    assert launch.places(1, ["0", "1"]) == [
        {"CUDA_VISIBLE_DEVICES": "0"},
        {"CUDA_VISIBLE_DEVICES": "1"},
    ]
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert launch.places(2, ["0", "1"]) == [
        {"CUDA_VISIBLE_DEVICES": gpu} | shared for gpu in "0101"
    ]


def test_sweeps_of_one_cell_side_by_side_fill_the_gpus_evenly(tmp_path, monkeypatch):
    """As the workers of a cluster start them: every one may take any GPU."""
    monkeypatch.setattr(launch, "POLL_S", 0.01)
    gpus = [f"{name}-{uuid.uuid4()}" for name in "abc"]  # nobody else's
    places, threads = launch.places(1, gpus), {}
    wait = "import os, pathlib, sys, time; print('on', os.environ['CUDA_VISIBLE_DEVICES'], flush=1)"
    wait += "\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"

    def begin(name: str) -> str:
        """The GPU it has got."""
        log, until = tmp_path / f"{name}.log", str(tmp_path / f"{name}.go")
        works = iter([Work(name, [sys.executable, "-c", wait, until], log)])
        threads[name] = threading.Thread(target=lambda: list(local(works, places)))
        threads[name].start()
        wait_for(lambda: log.exists() and "\non " in log.read_text())
        return log.read_text().split()[-1]

    def end(name: str) -> None:
        (tmp_path / f"{name}.go").write_text("")
        threads.pop(name).join()

    first, second, third = gpus
    assert [begin(name) for name in "abc"] == [first, second, third]
    assert begin("d") == first, "each has one"
    end("b")
    assert begin("e") == second, "which nobody uses now"
    assert begin("f") == second and begin("g") == third and begin("h") == first
    for name in list(threads):
        end(name)


def test_runs_that_take_several_gpus_see_all(stage, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert main(["sweep", str(stage.path), "--out", str(stage.home.path), "--devices", "all"]) == 0
    logs = [stage.home.log(cell).read_text() for cell in stage.plan.cells]
    assert {log.splitlines()[-1] for log in logs} == {"done 0,1 True"}
    assert all("--devices all" in log for log in logs)


def test_devices_that_do_not_divide_the_seeds_are_refused_before_anything_starts(stage, capsys):
    text = PLAN.replace('"1"', '"8"') + "[[vary]]\nname = 'few'\nseeds = 6"
    args = ["sweep", str(written(stage.folder, text, "plan.toml")), "--out", str(stage.home.path)]
    said = "task_maze_few: --devices 4 does not divide its number of seeds, which is 6: take 1, 2, 3, 6"
    for more in ([], ["--status"], ["--only", "task_maze_few"]):
        assert main([*args, "--devices", "4", *more]) == 2
        err = capsys.readouterr().err
        assert f"{said}\n" in err and err.count("\n") == 1 and not stage.home.path.exists()
    for fits in (["2"], ["all"], ["8", "--only", "task_maze"]):
        assert main([*args, "--status", "--devices", *fits]) == 0


def test_devices_need_not_fit_a_run_that_is_finished(stage, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    stage.go()
    args = ["sweep", str(stage.path), "--out", str(stage.home.path), "--devices", "4"]
    assert main(args) == 0
    (stage.home.path / "task_maze" / "manifest.json").unlink()
    assert main(args) == 2 and len(stage.order()) == 2


def test_the_sharing_service_is_advised_where_it_does_not_run(stage, capsys, monkeypatch):
    monkeypatch.chdir(stage.folder)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(stage.folder))
    assert main(["sweep", "plan.toml", "--jobs", "2"]) == 0
    assert capsys.readouterr().out.count("nvidia-cuda-mps-control -d") == 1
    (stage.folder / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")
    assert launch.has_mps() and main(["sweep", "plan.toml", "--jobs", "2"]) == 0
    assert "mps-control" not in capsys.readouterr().out
    (stage.folder / "nvidia-cuda-mps-control.pid").write_text("0x")
    assert not launch.has_mps()


# --- for real -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_a_cell_goes_on_to_the_bytes_of_a_plain_run(tmp_path, capsys, monkeypatch):
    """One cell, really killed in the middle; beside it, the same run by `primax train`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    # A program that other tests need too: whoever comes first compiles it.
    plain = [sys.executable, "-m", "primax", "train", "task", "maze", "--preset", "smoke"]
    plain += ["--seeds", "2", "--out", "plain"]
    subprocess.run(plain, check=True, stdout=subprocess.DEVNULL)
    one = PLAN.replace(', "count"', "").replace('seeds = "1"', 'seeds = "2"')
    written(tmp_path, one, "s.toml")
    started = []
    real = launch._start
    monkeypatch.setattr(launch, "_start", lambda *a: started.append(real(*a)) or started[-1])
    folder = tmp_path / "s" / "task_maze"

    def kill():
        wait_for((folder / "checkpoints" / "000001000").exists, 300)
        started[0].kill()

    thread = threading.Thread(target=kill)
    thread.start()
    assert main(["sweep", "s.toml", "--save-every", "0"]) == 1
    thread.join()
    assert "task_maze: killed (signal 9); checkpoint at step 1,000; see" in capsys.readouterr().out
    assert main(["sweep", "s.toml", "--status"]) == 0
    assert "killed at 1," in capsys.readouterr().out
    assert main(["sweep", "s.toml"]) == 0
    assert "goes on from 1,000" in capsys.readouterr().out
    for name in ("config.json", "episodes.csv", "windows.csv", "maps.npz", "replays.jsonl"):
        assert (folder / name).read_bytes() == (tmp_path / "plain" / name).read_bytes(), name
    state = Path("checkpoints", "000002000", "state.npz")
    assert (folder / state).read_bytes() == (tmp_path / "plain" / state).read_bytes()
    assert main(["sweep", "s"]) == 0 and len(started) == 2, "finished: nothing is run again"
