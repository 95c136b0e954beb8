"""`primax plot`: learning curves for a paper."""

import subprocess
import sys

import numpy as np
import pytest
from test_paper_case import opened, plausible, write_run

from primax.cli import main
from primax.paper.experiments import CELLS
from primax.report import figure
from primax.report.parts import curves
from primax.runs.curves import grid
from primax.runs.measures import rolling


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    for name in ("prime_maze", "prime_no_gate_maze", "task_maze"):
        scores, windows, columns = plausible(CELLS[name], 60)
        write_run(home / name, CELLS[name], scores, windows, **columns)
    return home


def plotted(*args: object) -> None:
    assert main(["plot", *map(str, args)]) == 0


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_every_format_and_the_same_bytes_twice(runs, tmp_path, kind, capsys):
    paths = [tmp_path / f"{name}.{kind}" for name in ("a", "b")]
    for path in paths:
        plotted(runs / "prime_maze", runs / "task_maze", "--out", path)
    starts = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
    assert paths[0].read_bytes().startswith(starts[kind])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "2 runs; mean over 3 seeds, shaded its 95% interval" in capsys.readouterr().out


def test_lines_are_named_by_what_differs_and_axes_by_what_they_count(runs, tmp_path):
    path = tmp_path / "curves.svg"
    plotted(runs, "--out", path)  # a folder of runs
    text = path.read_text(encoding="utf-8")  # letters are drawn; what they say stands beside them
    for said in (
        "PRIME",
        "PRIME, α = 0",
        "Ext-DQN",
        "Maze 10 × 10",
        "thousand steps",
        "share of episodes that reach the flag",
        "blind sweep 1.00",
    ):
        assert f"<!-- {said} -->" in text
    assert text.count('id="FillBetweenPolyCollection') == 3, "a shade for each"


def test_curves_are_smoothed_as_on_the_page(runs):
    run = opened(runs / "task_maze")
    steps, values = figure._curve(run, "score")
    np.testing.assert_array_equal(steps, 100 * (1 + np.arange(19, 60)))
    np.testing.assert_allclose(values, rolling(run.grid("episodes", "score"), 20))
    page = curves.episodes(grid(run.episodes, run.seeds))
    assert page["steps"] == steps.astype(int).tolist()


def test_colours_and_dashes_tell_every_line_apart(runs):
    found = [opened(path) for path in sorted(runs.iterdir())]
    labels = ["PRIME", "Ext-DQN", *(f"PRIME, x = {i}" for i in range(12))]
    styles = figure._styles(found, labels)
    assert styles["PRIME"] == ("#0072B2", "-") and list(styles) == labels
    assert len({str(style) for style in styles.values()}) == len(labels)


def test_of_one_seed_there_is_a_line_alone(tmp_path):
    write_run(tmp_path / "run", CELLS["task_maze"], np.ones((1, 40)))
    plotted(tmp_path / "run", "--out", tmp_path / "a.svg")
    assert "FillBetween" not in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--out", "a.jpg"], "cannot draw a.jpg: its name must end in .pdf, .svg, .png"),
        (["--column", "scor"], "unknown column 'scor'; did you mean score?"),
        (["--column", "r_int"], "has no r_int: the run did not record it"),
        (["--out", "none/a.svg"], "cannot write none/a.svg"),
    ],
)
def test_wrong_input_is_refused_in_one_line(runs, capsys, monkeypatch, tmp_path, args, says):
    monkeypatch.chdir(tmp_path)
    assert main(["plot", str(runs / "task_maze"), *args]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and says in said


def test_matplotlib_is_loaded_to_draw_and_not_before():
    script = "import sys, primax.cli.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
