"""`primax reproduce` and `primax stats` of folders, as a person uses them."""

import json
import shutil

import numpy as np
import pytest
from test_paper_case import plausible, without_simulation, write_run

from primax.cli import main
from primax.errors import InputError, RunError
from primax.methods import METHODS
from primax.paper import reproduce
from primax.paper.experiments import CELLS, VARIANTS, select

CELL = CELLS["task_maze"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Compiled programs are shared between the tests of a session, and with nobody else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
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


@pytest.fixture(scope="module")
def quiet():
    """Nobody to tell."""
    return lambda said: None


def test_the_plan_lists_every_cell_with_its_seconds(capsys, tmp_path):
    text = primax(capsys, "reproduce", "--plan", "--scale", "paper", "--out", tmp_path / "out")
    assert all(name in text for name in CELLS)
    assert "to run" in text and "a rough prediction" in text and "in all" in text
    assert not (tmp_path / "out").exists()


def test_the_plan_of_a_figure_has_its_cells_only(capsys, tmp_path):
    text = primax(capsys, "reproduce", "--plan", "--only", "figure3", "--out", tmp_path)
    assert "prime_maze" in text and "task_maze" not in text


def test_a_method_that_is_not_there_yet_is_listed_as_such(capsys, tmp_path, monkeypatch):
    monkeypatch.delitem(METHODS, "task")
    text = primax(capsys, "reproduce", "--plan", "--only", "task", "--out", tmp_path)
    assert text.count("not available yet") == 2


def test_what_is_missing_is_run_once_and_taken_up_where_it_stopped(capsys, tmp_path, monkeypatch):
    """Stopped before the last window, called again, then called once more with nothing to do."""
    args = ("reproduce", "--scale", "smoke", "--only", "task_maze", "--out", tmp_path)
    work = reproduce.runs.proceed

    def stop_soon(folder, say, on_window, every_s=0.0, allow=frozenset()):
        def tell(progress):
            on_window(progress)
            if progress.clock == 1_500:
                raise RunError("stopped")

        return work(folder, say, tell, 0.0, allow)

    with monkeypatch.context() as patch:
        patch.setattr(reproduce.runs, "proceed", stop_soon)
        assert "stopped" in refused(capsys, *args, status=1)
    assert "to go on" in primax(capsys, *args, "--plan")
    text = primax(capsys, *args)
    assert "[1 of 1] task_maze, to go on" in text and "going on from step" in text
    folder = tmp_path / "runs" / "task_maze"
    assert json.loads((folder / "manifest.json").read_text())["finished"]
    before = {path: path.read_bytes() for path in folder.glob("*.csv")}
    text = primax(capsys, *args)
    assert "nothing to run" in text and "index.md" in text
    assert before == {path: path.read_bytes() for path in folder.glob("*.csv")}
    assert "finished" in primax(capsys, *args, "--plan")
    table = (tmp_path / "tables" / "table1.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if line.startswith("| Ext-DQN"))
    assert "±" in row.split("|")[6] and "(not run)" in row.split("|")[2]
    assert "steps 2000" in (tmp_path / "runs.md").read_text(encoding="utf-8")


def test_scales_do_not_mix_in_a_folder(capsys, tmp_path):
    (tmp_path / "scale").write_text("paper\n")
    text = refused(capsys, "reproduce", "--scale", "smoke", "--plan", "--out", tmp_path)
    assert "scale paper" in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--only", "tabel5"), "did you mean table5"),
        (("--only", "prime_mase"), "did you mean prime_maze"),
        (("--scale", "papers"), "--scale takes smoke, quick, paper"),
        (("--outt", "x"), "unknown argument '--outt'"),
    ],
)
def test_unknown_names_are_refused_in_one_line(capsys, tmp_path, args, said):
    assert said in refused(capsys, "reproduce", "--plan", "--out", tmp_path, *args)


def test_a_broken_folder_is_refused_in_one_line(capsys, tmp_path):
    folder = tmp_path / "runs" / "task_maze"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{")
    args = ("reproduce", "--only", "task_maze", "--out", tmp_path)
    assert "config.json cannot be read" in refused(capsys, *args)
    (folder / "config.json").write_text('{"seeds": [0], "method": "task"}')
    assert "is not a configuration of this version" in refused(capsys, *args)
    write_run(tmp_path / "other", CELL, np.zeros((2, 40)))
    (tmp_path / "other" / "manifest.json").unlink()
    shutil.copy(tmp_path / "other" / "config.json", folder / "config.json")
    assert "other settings" in refused(capsys, *args)


def test_pages_from_runs_kept_elsewhere(capsys, tmp_path):
    scores, windows, columns = plausible(CELL, 60, 2)
    write_run(tmp_path / "kept" / CELL.name, CELL, scores, windows, True, **columns)
    args = ("--runs", tmp_path / "kept", "--out", tmp_path / "out", "--no-run")
    text = primax(capsys, "reproduce", *args)
    assert "scorecard.md" in text and not (tmp_path / "out" / "runs").exists()
    assert "2 seeds, 6,000 steps" in (tmp_path / "out" / "runs.md").read_text(encoding="utf-8")


def test_predictions_follow_the_measured_rates():
    """On an H200: 226 s for 15 seeds of PRIME, 52 s for one seed or one head, less on Maze."""
    prime, task, maze = (
        CELLS[f"{name}"] for name in ("prime_butterflies", "task_butterflies", "prime_maze")
    )
    seconds = {
        cell.name: reproduce.predict(cell, "paper", "gpu") - 21 for cell in (prime, task, maze)
    }
    assert seconds["prime_butterflies"] == pytest.approx(226, rel=0.1)
    assert seconds["task_butterflies"] == pytest.approx(52, rel=0.15)
    assert seconds["prime_maze"] == pytest.approx(0.8 * seconds["prime_butterflies"], rel=0.01)
    assert reproduce.predict(prime, "paper", "cpu") > 50 * reproduce.predict(prime, "quick", "cpu")
    everything = sum(
        reproduce.predict(c, "paper", "gpu") for c in select([]) if c.variant.is_available
    )
    assert 3_000 < everything < 15_000


def test_the_work_is_one_config_and_its_seeds(tmp_path, quiet):
    home = reproduce.open_home(tmp_path, "smoke")
    tasks = reproduce.plan(home, [CELL, CELLS["prime_maze"]], "cpu")
    assert [task.state for task in tasks] == ["to run", "to run"]
    assert CELL.seeds("smoke") == (0, 1) and VARIANTS["prime_window200"].seeds == 5
    write_run(home.folder(CELL), CELL, np.zeros((2, 40)))
    with pytest.raises(InputError, match="other settings"):
        reproduce.work(home, tasks[0], quiet, lambda progress: None)


# --- primax stats of folders -------------------------------------------------------------------


def test_stats_of_folders(capsys, tmp_path):
    for name, level in (("first", 1.0), ("second", 3.0)):
        write_run(tmp_path / name, CELL, np.full((3, 40), level))
    text = primax(capsys, "stats", tmp_path / "first", tmp_path / "second", "--measure", "average")
    assert "first - second" in text and "-2.000" in text
    text = primax(capsys, "stats", tmp_path / "second")
    assert "3.000" in text and "first" not in text


def test_stats_of_folders_refuses_in_one_line(capsys, tmp_path):
    first = write_run(tmp_path / "first", CELL, np.zeros((3, 40)), {"loss": np.ones((3, 10))})
    other = write_run(tmp_path / "other", CELL, np.zeros((2, 40)))
    assert "different seeds" in refused(capsys, "stats", first, other)
    assert "called first" in refused(capsys, "stats", first, first)
    assert "not run" in refused(capsys, "stats", tmp_path)
    assert "did you mean peak" in refused(capsys, "stats", first, "--measure", "peek")
    assert "did not record" in refused(capsys, "stats", first, "--measure", "clamp_share")
    file = tmp_path / "scores.csv"
    file.write_text("seed,a,b\n0,1,2\n1,2,3\n")
    assert "a - b" in primax(capsys, "stats", file)
    assert "is not a folder" in refused(capsys, "stats", file, first)
    assert "is not a folder" in refused(capsys, "stats", file, "--measure", "peak")
