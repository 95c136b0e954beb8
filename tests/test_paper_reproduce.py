"""`primax reproduce` and `primax stats` of folders, as a person uses them."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from test_paper_case import plausible, without_simulation, write_run

from primax.cli import command_of, main
from primax.errors import InputError, RunError, StoppedError
from primax.methods import METHODS
from primax.paper import plan, reproduce
from primax.paper.experiments import CELLS, SCALES, VARIANTS, select
from primax.runs import disk
from primax.sweep.plan import read_plan
from primax.sweep.stand import Home as Sweep

CELL = CELLS["task_maze"]
ROOT = Path(__file__).parents[1]
CPU_ROWS = json.loads((ROOT / "results" / "bench" / "table_cpu.json").read_text())["rows"]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("COLUMNS", "120")
    with without_simulation():
        yield


def primax(capsys, *args: object) -> str:
    assert main([str(arg) for arg in args]) == 0
    return capsys.readouterr().out


def refused(capsys, *args: object, status: int = 2) -> str:
    assert main([str(arg) for arg in args]) == status
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("primax: ")
    return captured.err


def test_the_plan_lists_every_cell_with_its_seconds(capsys, tmp_path):
    text = primax(capsys, "reproduce", "--plan", "--scale", "paper", "--out", tmp_path / "out")
    assert all(name in text for name in CELLS)
    assert "to run" in text and "measured on" in text and "in all" in text
    assert not (tmp_path / "out").exists() and "not part of this scale" not in text


def test_the_plan_says_what_a_scale_goes_without(capsys, tmp_path):
    text = primax(capsys, "reproduce", "--plan", "--scale", "quick", "--out", tmp_path)
    assert "48 more runs are not part of this scale" in text and "moss_maze" not in text
    text = primax(
        capsys, "reproduce", "--plan", "--scale", "quick", "--only=moss", "--out", tmp_path
    )
    assert "moss_maze" in text and "not part" not in text


def test_the_plan_of_a_figure_has_its_cells_only(capsys, tmp_path):
    text = primax(capsys, "reproduce", "--plan", "--only", "figure3", "--out", tmp_path)
    assert "prime_maze" in text and "task_maze" not in text


def test_a_method_that_is_not_there_yet_is_listed_as_such(capsys, tmp_path, monkeypatch):
    monkeypatch.delitem(METHODS, "task")
    text = primax(capsys, "reproduce", "--plan", "--only", "task", "--out", tmp_path)
    assert len(re.findall("task_.* not available yet", text)) == 2


KILLED = """
import sys
from functools import partial
from primax.cli import main
from primax.paper import reproduce
reproduce.proceed = partial(reproduce.proceed, every_s=0.0)  # a checkpoint a window
main(sys.argv[1:])
"""


def kill_at(checkpoint: Path, args: list[str]) -> None:
    """Kills a call, as nothing can be caught, once a checkpoint is there."""
    # As in this process, so that a compiled program serves both.
    arithmetic = {"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}
    command = [sys.executable, "-c", KILLED, *args]
    process = subprocess.Popen(command, env=os.environ | arithmetic, stdout=subprocess.DEVNULL)
    while not checkpoint.exists():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_killed_it_goes_on_to_the_same_pages_and_then_has_nothing_to_do(
    capsys, tmp_path, optimised
):
    """Really killed in the middle of a run, called again, called once more; beside it, left alone."""
    killed, whole = (["reproduce", "--only", "task_maze", "--out", tmp_path / n] for n in "ab")
    folder = tmp_path / "a" / "runs" / "task_maze"
    primax(capsys, *whole)
    kill_at(folder / "checkpoints" / "000001000", [str(arg) for arg in killed])
    assert "finished" not in json.loads((folder / "manifest.json").read_text())
    assert not (tmp_path / "a" / "index.md").exists()
    assert "to go on" in primax(capsys, *killed, "--plan")
    home, cell = reproduce.open_home(tmp_path / "a", "smoke"), CELLS["task_maze"]
    (task,) = reproduce.plan(home, [cell], "cpu")
    assert task.done >= 1_000 and task.seconds < reproduce.predict(cell, "smoke", "cpu")
    text = primax(capsys, *killed)
    assert "task_maze: to go on" in text and "going on from step 1," in text
    ours, theirs = (pages(tmp_path / name) for name in "ab")
    assert set(ours) == set(theirs) and len(ours) > 35
    assert [name for name in ours if ours[name] != theirs[name]] == []
    text = primax(capsys, *killed)
    assert "nothing to run" in text and "index.md" in text and pages(tmp_path / "a") == theirs
    assert "finished" in primax(capsys, *killed, "--plan")
    row = next(r for r in theirs["tables/table1.md"].decode().splitlines() if "Ext-DQN" in r)
    assert "±" in row.split("|")[6] and "(not run)" in row.split("|")[2]
    assert "steps 2000" in theirs["runs.md"].decode()


def pages(out: Path) -> dict[str, bytes]:
    """All that a call leaves but accounts of how it was made: pages, figures, tables of runs."""
    files = (path for path in out.rglob("*") if path.is_file() and "checkpoints" not in path.parts)
    found = {str(path.relative_to(out)): path.read_bytes() for path in files}
    return {
        name: raw for name, raw in found.items() if Path(name).stem not in ("manifest", "times")
    }


# --- side by side, without any learning --------------------------------------------------------


@pytest.fixture
def side_by_side(tmp_path, monkeypatch):
    """Three cells two at a time; `proceed` is what a test says it is."""
    home = reproduce.open_home(tmp_path, "smoke")
    lengths = {"task_maze": 3.0, "rnd_maze": 2.0, "smirl_maze": 1.0}
    tasks = [reproduce.Task(CELLS[name], "to run", length) for name, length in lengths.items()]
    seen: list[str] = []

    @contextmanager
    def watch(task):
        seen.append(task.cell.name)
        yield reproduce.Listener()
        seen.append(f"{task.cell.name} done")

    def run(proceed) -> list[str]:
        monkeypatch.setattr(reproduce, "proceed", proceed)
        reproduce.work_all(home, tasks, 2, watch, seen.append)
        return seen

    run.seen = seen
    return run


def wait_for(is_so) -> None:
    for _ in range(2_000):
        if is_so():
            return
        time.sleep(0.005)
    raise AssertionError("nothing happened for ten seconds")


def test_two_run_at_once_and_the_third_when_there_is_room(side_by_side):
    meet = threading.Barrier(2, timeout=10)

    def proceed(job, listener):
        if job.folder.name != "smirl_maze":
            meet.wait()  # neither gets past here alone

    seen = side_by_side(proceed)
    assert set(seen[:2]) == {"task_maze", "rnd_maze"} and seen[-1] == "smirl_maze done"


def test_the_first_to_fail_stops_the_others_and_is_what_is_told(side_by_side):
    def proceed(job, listener):
        if job.folder.name == "rnd_maze":
            raise RunError("the disk is full")
        wait_for(listener.is_asked)
        raise StoppedError("stopped at step 500")

    with pytest.raises(RunError, match="the disk is full"):
        side_by_side(proceed)
    assert set(side_by_side.seen) == {"task_maze", "rnd_maze"}


def test_a_signal_does_not_hide_a_failure(side_by_side):
    """Before the signal or after it."""

    def proceed(job, listener):
        if job.folder.name == "task_maze":
            os.kill(os.getpid(), signal.SIGTERM)
        wait_for(listener.is_asked)
        raise RunError("the disk is full")

    with pytest.raises(RunError, match="the disk is full"):
        side_by_side(proceed)


def test_a_second_interrupt_does_not_wait(side_by_side, monkeypatch, capfd):
    left = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda status: left.set() if status == 130 else None)

    def proceed(job, listener):
        if job.folder.name == "task_maze":
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                wait_for(listener.is_asked)
        assert left.wait(10)
        raise StoppedError("stopped at step 500")

    with pytest.raises(StoppedError):
        side_by_side(proceed)
    assert "stopped at once; what was saved stays" in capfd.readouterr().err


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_at_the_end_of_their_windows(side_by_side, kind):
    def is_answered() -> bool:
        return any(
            said.startswith("stopping after the current windows") for said in side_by_side.seen
        )

    def proceed(job, listener):
        if job.folder.name == "task_maze":
            os.kill(os.getpid(), kind)
        wait_for(lambda: listener.is_asked() and is_answered())
        raise StoppedError("stopped at step 500")

    with pytest.raises(RunError, match="the same command goes on"):
        side_by_side(proceed)
    assert "smirl_maze" not in side_by_side.seen and is_answered()


def test_how_many_side_by_side(monkeypatch):
    assert reproduce.jobs("gpu") == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 1, 2}, raising=False)
    assert reproduce.jobs("cpu") == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: set(range(64)))
    assert reproduce.jobs("cpu") == reproduce.MOST_JOBS
    tasks = [reproduce.Task(CELL, "to run", float(s)) for s in (5, 4, 3)]
    assert [reproduce.in_all(tasks, num, "gpu") for num in (1, 2, 9)] == [12, 7, 5]
    assert [reproduce.in_all(tasks, num, "cpu") for num in (1, 2, 9)] == [12, 7, 5]
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 1})
    assert [reproduce.in_all(tasks, num, "cpu") for num in (1, 2, 9)] == [12, 14, 15]
    done = [reproduce.Task(CELL, "finished", 0.0)] * 3
    assert reproduce.in_all(tasks[:1] + done, 2, "cpu") == 5
    assert reproduce.in_all(done, 2, "cpu") == 0
    tasks.append(reproduce.Task(CELLS["prime_maze"], "to run", 1.0))
    assert [task.seconds for task in reproduce.in_order(tasks)] == [1, 5, 4, 3]


def test_scales_do_not_mix_in_a_folder(capsys, tmp_path):
    (tmp_path / "scale").write_text("paper\n")
    text = refused(capsys, "reproduce", "--scale", "smoke", "--plan", "--out", tmp_path)
    assert "scale paper" in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--only", "tabel5"), "did you mean table5"),
        (("--only", "tableZ"), "did you mean tableF"),
        (("--only", "prime_mase"), "did you mean prime_maze"),
        (("--scale", "papers"), "--scale takes smoke, quick, paper"),
        (("--outt", "x"), "unknown argument '--outt'"),
    ],
)
def test_unknown_names_are_refused_in_one_line(capsys, tmp_path, args, said):
    assert said in refused(capsys, "reproduce", "--plan", "--out", tmp_path, *args)


@pytest.mark.slow
def test_pages_from_runs_kept_elsewhere(capsys, tmp_path):
    scores, windows, columns = plausible(CELL, 60, 2)
    write_run(tmp_path / "kept" / CELL.name, CELL, scores, windows, True, **columns)
    args = ("--runs", tmp_path / "kept", "--out", tmp_path / "out", "--no-run")
    text = primax(capsys, "reproduce", *args)
    assert "scorecard.md" in text and not (tmp_path / "out" / "runs").exists()
    assert f"1 of 64 runs are in {tmp_path / 'kept'}\n" in text
    assert "2 seeds, 6,000 steps" in (tmp_path / "out" / "runs.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_many_may_begin_at_once(tmp_path):
    """None may take another's file away."""
    home = reproduce.open_home(tmp_path / "out", "smoke")
    begin = "import sys; from pathlib import Path; from primax.paper import reproduce as r; "
    begin += "home = r.open_home(Path(sys.argv[1]), 'smoke'); [r.begin(home) for _ in range(50)]"
    command = [sys.executable, "-c", begin, str(home.path)]
    several = [subprocess.Popen(command) for _ in range(3)]
    assert [one.wait() for one in several] == [0, 0, 0]
    assert [path.name for path in home.path.iterdir()] == ["scale"]


def test_predictions_follow_the_measured_rates():
    """On an H200: 103 s for 15 seeds of PRIME, 60 with K = 1, compiling apart; less on Maze."""
    prime, task, maze, half = (
        CELLS[name]
        for name in ("prime_butterflies", "task_butterflies", "prime_maze", "prime_k1_butterflies")
    )
    seconds = {
        cell.name: reproduce.predict(cell, "paper", "gpu") for cell in (prime, task, maze, half)
    }
    assert seconds["prime_butterflies"] == pytest.approx(45 + 103)
    assert seconds["task_butterflies"] == pytest.approx(20 + 23.5)
    assert seconds["prime_maze"] == pytest.approx(45 + 0.8 * 103)
    assert seconds["prime_k1_butterflies"] == pytest.approx(45 + 60.1)
    few = reproduce.predict(CELLS["prime_window200_butterflies"], "paper", "gpu")
    assert few == pytest.approx(45 + 103 * (0.38 + 0.62 / 3)), "five seeds of fifteen"
    for platform in ("gpu", "cpu"):
        whole, left, none = (
            reproduce.predict(prime, "paper", platform, done) for done in (0, 200_000, 250_000)
        )
        assert left - none == pytest.approx((whole - none) / 5) and none > 0
    everything = sum(
        reproduce.predict(c, "paper", "gpu") for c in select([], "paper") if c.variant.is_available
    )
    assert 2_000 < everything < 6_000


@pytest.mark.parametrize("row", CPU_ROWS, ids=lambda row: f"{row['method']}:{row['preset']}")
def test_predictions_on_a_cpu_are_those_of_its_table(row):
    """Alone on two cores, compiling apart; steps a second are of all seeds together."""
    cell, scale = CELLS[f"{row['method']}_butterflies"], row["preset"]
    steps = cell.config(scale).total_steps
    whole, none = (reproduce.predict(cell, scale, "cpu", done) for done in (0, steps))
    measured = len(cell.seeds(scale)) * steps / row["steps_per_s"]
    assert whole - none == pytest.approx(measured, rel=0.2)
    assert none == pytest.approx(row["compile_s"], rel=0.2)


def test_a_plan_says_where_each_cell_stands_and_where_it_goes(tmp_path):
    """One cell of each state, by hand; the seconds are those that are left."""
    home, task = reproduce.open_home(tmp_path, "paper"), partial(reproduce.Task, CELL)
    tasks = [
        task(reproduce.TO_RUN, 1_600.0),
        task(reproduce.HALFWAY, 800.0, done=100_000),
        task(reproduce.FINISHED, 0.0),
        task("broken", 0.0, "maze/config.json cannot be read"),
    ]
    assert list(plan.told(home, tasks, 2, "gpu")) == [
        "cell       seeds × steps  state                  seconds",
        "task_maze  15 × 200,000   to run                   1,600",
        "task_maze  15 × 200,000   to go on from 100,000      800",
        "task_maze  15 × 200,000   finished",
        "task_maze  15 × 200,000   broken",
        "",
        "task_maze cannot be used: maze/config.json cannot be read",
        f"4 runs, each in {tmp_path}/runs/CELL: 1 to run, 1 to go on, 1 finished, 1 broken",
        "about 1,600 seconds in all (27 min), 2 side by side, from rates measured on an H200",
    ]
    assert list(plan.told(home, tasks[2:3], 1, "cpu"))[-1].endswith("/CELL: 1 finished")


def test_the_work_is_one_config_and_its_seeds(tmp_path):
    home = reproduce.open_home(tmp_path, "smoke")
    tasks = reproduce.plan(home, [CELL, CELLS["prime_maze"]], "cpu")
    assert [task.state for task in tasks] == ["to run", "to run"]
    assert CELL.seeds("smoke") == (0, 1) and VARIANTS["prime_window200"].seeds == 5
    write_run(home.folder(CELL), CELL, np.zeros((2, 40)))
    with pytest.raises(InputError, match="other settings"):
        reproduce.work(home, CELL, reproduce.Listener())


@pytest.mark.long
def test_prime_is_seen_to_learn_at_quick(capsys, tmp_path, monkeypatch, optimised):
    """On the small Maze its curve passes one half, where a random walker arrives in less than a tenth."""
    shorter = replace(SCALES["quick"], settings={"maze": {"steps": "20_000"}})
    monkeypatch.setitem(SCALES, "quick", shorter)
    text = primax(
        capsys, "reproduce", "--scale", "quick", "--only", "prime_maze", "--out", tmp_path
    )
    told = text[text.index("PRIME on Maze:") :]
    top, _, chance = (float(share) for share in re.findall(r"([\d.]+)%", told))
    assert top > 50 > 5 * chance


# --- primax stats of folders -------------------------------------------------------------------


def test_stats_of_folders(capsys, tmp_path):
    """Rows are called by what sets the runs apart, whatever their folders are called."""
    first = write_run(tmp_path / "first", CELL, np.full((3, 40), 1.0))
    second = write_run(tmp_path / "elsewhere", CELLS["task_relu_maze"], np.full((3, 40), 3.0))
    text = primax(capsys, "stats", first, second, "--measure", "average")
    assert "task - task net.activation=relu" in text and "-2.000" in text
    assert "measure: average" in text and "elsewhere" not in text
    other = "task net.activation=relu - task "
    for name in ("elsewhere", second, "task net.activation=relu"):
        assert other in primax(capsys, "stats", first, second, "--against", name)
    says = "no run is called 'tsk'; did you mean task?"
    assert says in refused(capsys, "stats", first, second, "--against", "tsk")
    text = primax(capsys, "stats", second)
    assert "3.000" in text and "first" not in text.split("mean of")[0] and "measure: peak" in text


def test_stats_of_runs_that_differ_in_nothing_says_their_folders(capsys, tmp_path):
    for name in ("first", "second"):
        write_run(tmp_path / name, CELL, np.zeros((3, 40)))
    text = primax(capsys, "stats", tmp_path / "first", tmp_path / "second")
    assert "task (first) - task (second)" in text


@pytest.mark.parametrize("kind", ["csv", "latex"])
def test_a_warning_is_not_mixed_with_what_a_program_reads(capsys, tmp_path, kind):
    write_run(tmp_path / "first", CELL, np.zeros((3, 40)))
    write_run(tmp_path / "longer", CELL, np.zeros((3, 60)))
    assert main(["stats", str(tmp_path / "first"), str(tmp_path / "longer"), "--format", kind]) == 0
    said = capsys.readouterr()
    assert said.err == "these settings are not the same in all runs: steps\n"
    assert said.out.startswith({"csv": "method,seeds", "latex": "\\begin{tabular}"}[kind])


def test_stats_of_folders_refuses_in_one_line(capsys, tmp_path):
    first = write_run(tmp_path / "first", CELL, np.zeros((3, 40)), {"loss": np.ones((3, 10))})
    other = write_run(tmp_path / "other", CELL, np.zeros((2, 40)))
    assert "different seeds" in refused(capsys, "stats", first, other)
    assert "first is given twice" in refused(capsys, "stats", first, first)
    flying = write_run(tmp_path / "flying", CELLS["task_butterflies"], np.zeros((3, 40)))
    said = refused(capsys, "stats", first, flying)
    assert "in different worlds (maze, butterflies): compare runs in one world" in said
    longer = write_run(tmp_path / "longer", CELL, np.zeros((3, 60)))
    assert "not the same in all runs: steps\n" in primax(capsys, "stats", first, longer)
    assert "different worlds" in refused(capsys, "stats", tmp_path), "a folder with runs is they"
    (tmp_path / "empty").mkdir()
    assert "not run" in refused(capsys, "stats", tmp_path / "empty")
    assert "did you mean peak" in refused(capsys, "stats", first, "--measure", "peek")
    assert "did not record" in refused(capsys, "stats", first, "--measure", "clamp_share")
    file = tmp_path / "scores.csv"
    file.write_text("seed,a,b\n0,1,2\n1,2,3\n")
    assert "a - b" in primax(capsys, "stats", file)
    assert "is not a folder" in refused(capsys, "stats", file, first)
    assert "is not a folder" in refused(capsys, "stats", file, "--measure", "peak")


@pytest.mark.parametrize("scale", SCALES)
def test_the_plan_for_a_sweep_has_the_same_runs_in_the_same_folders(capsys, tmp_path, scale):
    said = primax(capsys, "reproduce", "--scale", scale, "--write-plan", "--out", tmp_path)
    path = tmp_path / "runs" / "plan.toml"
    assert str(path) in said and (tmp_path / "scale").read_text() == f"{scale}\n"
    home, cells = reproduce.open_home(tmp_path, scale), read_plan(path).cells
    wanted = select([], scale)
    assert [cell.name for cell in cells] == [cell.name for cell in wanted]
    for cell, want in zip(cells, wanted, strict=True):
        assert cell.config == want.config(scale) and cell.given_seeds == want.seeds(scale)
        assert Sweep(home.runs).folder(cell) == home.folder(want)


@pytest.mark.slow
def test_a_sweep_of_that_plan_writes_the_bytes_of_a_reproduction(capsys, tmp_path, monkeypatch):
    """As `make paper` does, for one cell; then the pages are made from it."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    whole, only = tmp_path / "whole", ["--only", "task_maze"]
    primax(capsys, "reproduce", "--write-plan", "--out", whole, *only)
    primax(capsys, "sweep", whole / "runs")
    alone = ["-m", "primax", "reproduce", *only, "--no-pages", "--out", str(tmp_path / "alone")]
    subprocess.run([sys.executable, *alone], check=True, capture_output=True)
    ours, theirs = (path / "runs" / "task_maze" for path in (whole, tmp_path / "alone"))
    for name in ("config.json", *disk.FINAL, "checkpoints/000002000/state.npz"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    assert "nothing to run" in primax(capsys, "reproduce", "--no-pages", "--out", whole, *only)


def test_make_paper_goes_by_a_plan_and_a_sweep():
    """Every command is one that is there, and finds what the one before it leaves."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\npaper:")[2].partition("\n\n")[0].replace("$(JOBS)", "5")
    names = re.findall(r"^\t\$\(BIN\)/primax (\w+) (.*)$", recipe, re.MULTILINE)
    asked = [(name, command_of(name)[1].parse_args(rest.split())) for name, rest in names]
    assert [name for name, _ in asked] == ["reproduce", "sweep", "pack", "reproduce", "report"]
    plan, sweep, pack, pages, report = (args for _, args in asked)
    assert plan.write_plan and plan.scale == pages.scale == "paper" and pages.no_run
    assert sweep.plan == plan.out / "runs" and sweep.jobs == 5 and sweep.out is None
    assert pack.dir == [plan.out] and pack.out == pages.out / "runs"
    assert report.dir == [pages.out] and report.out.parent == pages.out
