"""Every figure and page, from folders made up for it: twice the same bytes, and with holes."""

import csv
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_paper_case import plausible, without_simulation, write_all_cells, write_run

from primax.errors import InputError
from primax.output.figure import matplotlib
from primax.paper import references
from primax.paper.evidence import Runs
from primax.paper.experiments import CELLS
from primax.paper.figures import figures
from primax.paper.figures.drawing import curve, not_drawn
from primax.paper.figures.figures import FIGURES, FIT_TITLE
from primax.paper.pages.both import TABLES
from primax.paper.pages.write import FIGURES_FIT, write_all


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return Runs.under(write_all_cells(tmp_path_factory.mktemp("runs"), episodes=60, seeds=2))


@pytest.fixture(scope="module")
def none(tmp_path_factory) -> Runs:
    """Only one run, so that scripted policies are simulated for as long as it, and no other."""
    home = tmp_path_factory.mktemp("few")
    for world in ("butterflies", "maze"):
        cell = CELLS[f"random_{world}"]
        scores, _, columns = plausible(cell, 60, 2)
        write_run(home / cell.name, cell, scores, {"loss": np.ones((2, 10))}, **columns)
    return Runs.under(home)


def content(folder) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_everything_is_written_twice_to_the_same_bytes(runs, tmp_path):
    said: list[str] = []
    for name in ("one", "two"):
        with without_simulation():
            write_all(runs, tmp_path / name, said.append)
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    expected = {f"tables/{name}.{kind}" for name in TABLES for kind in ("md", "csv")}
    drawn = (*FIGURES, *(f"{name}_fit" for name in FIGURES_FIT))
    expected |= {f"figures/{name}.svg" for name in drawn} | {"index.md", "references.json"}
    pages = ("scorecard", "claims", "rules", "runs", "audit", "times")
    expected |= {f"{name}.{kind}" for name in pages for kind in ("md", "csv")}
    assert set(one) == expected
    assert [name for name in one if one[name] != two[name]] == []
    assert b"not run" not in one["tables/table5.md"] + one["tables/tableB.md"]
    assert b"Random walker" in one["tables/table1.csv"] and len(said) == 8
    assert (
        "A random walker reaches the goal in 0.25% of episodes." in said[-1]
        and said[-1].encode() in one["index.md"]
    )
    assert all(f"figures/{name}.svg".encode() in one["index.md"] for name in drawn)
    titled = [
        name for name in drawn if f"<title>{FIT_TITLE}<".encode() in one[f"figures/{name}.svg"]
    ]
    assert titled == [f"{name}_fit" for name in FIGURES_FIT]
    shown = [
        name for name in drawn if f"<!-- {FIT_TITLE} -->".encode() in one[f"figures/{name}.svg"]
    ]
    assert shown == titled
    rows = list(csv.DictReader(one["scorecard.csv"].decode().splitlines()))
    assert len(rows) == 173 and not any(row["verdict"] == "not run" for row in rows)
    assert b"6,000 steps" in one["runs.md"]
    for page in ("index.md", "scorecard.md", "claims.md"):
        assert b"64 of these runs are not at the paper's settings" in one[page]


@pytest.mark.slow
def test_holes_are_named_in_every_page_and_figure(none, tmp_path):
    with without_simulation():
        write_all(none, tmp_path, lambda said: None)
    found = content(tmp_path)
    assert all(b"</svg>" in found[f"figures/{name}.svg"] for name in FIGURES)
    assert not any(b"nearest" in found[name] for name in found if name.startswith("tables/table1"))
    assert not any(name.endswith("_fit.svg") for name in found)
    for name in ("table1", "table2", "table5", "table6", "table7", "table8", "tableA", "tableB"):
        assert b"not run" in found[f"tables/{name}.md"]
    assert b"cannot be decided yet" in found["claims.md"]
    for page in ("index.md", "scorecard.md", "claims.md"):
        assert (
            b"62 of 64 cells (14 of the paper's own 16) have no finished run yet. They are left out of every verdict."
            in found[page]
        )


def test_a_curve_is_the_rolling_mean_with_gaps_filled(tmp_path):
    cell = CELLS["task_butterflies"]
    scores = np.tile(np.arange(60.0), (2, 1))
    distance = scores.copy()
    distance[0, 0], distance[1, 30] = np.nan, np.nan
    write_run(tmp_path / cell.name, cell, scores, None, distance=distance)
    run = Runs.under(tmp_path).run("task", "butterflies")
    assert not isinstance(run, str)
    steps, values = curve(run, "episodes", "score")
    np.testing.assert_allclose(values[0], np.arange(41) + 9.5)
    np.testing.assert_array_equal(steps, 2000 + 100 * np.arange(41))
    _, gaps = curve(run, "episodes", "distance")
    assert gaps[0, 0] == pytest.approx(9.5 + 1 / 20)  # the first takes the next one's value
    assert gaps[1, 30] == pytest.approx(39.5 - 1 / 20)  # the other that of the one before
    assert curve(run, "episodes", "nothing") is None


def test_few_windows_are_smoothed_less(tmp_path):
    """Twenty windows under a mean over twenty would be a single point."""
    cell = CELLS["prime_maze"]
    windows = {"v_epi": np.tile(np.arange(20.0), (2, 1))}
    write_run(tmp_path / cell.name, cell, np.zeros((2, 40)), windows)
    run = Runs.under(tmp_path).run("prime", "maze")
    assert not isinstance(run, str)
    steps, values = curve(run, "windows", "v_epi")
    np.testing.assert_allclose(values[0], np.arange(19) + 0.5)
    assert (steps[0], steps[-1]) == (400, 4000)


def test_what_is_not_drawn_is_said_once_and_by_reason():
    both = [("RND", "not run"), ("SMIRL", "not run"), ("PRIME", "broken")]
    said = not_drawn({"butterflies": both, "maze": list(both)})
    assert said == "not drawn (not run): RND; SMIRL\nnot drawn (broken): PRIME"
    said = not_drawn({"butterflies": [], "maze": both[:1]})
    assert said == "Maze, not drawn (not run): RND"
    assert not_drawn({"butterflies": [], "maze": []}) == ""
    many = not_drawn({"": [(f"PRIME, reading {i}", "not run") for i in range(20)]})
    assert all(len(line) <= 110 for line in many.splitlines()) and "\n" in many
    assert not any(line.startswith("reading") for line in many.splitlines()), "names stay whole"


def test_maze_is_cropped_only_where_it_is_longer(tmp_path, monkeypatch):
    """A panel that is cropped and one that is whole would be the same of a short run."""
    counts = []
    for name, episodes in (("short", 60), ("long", 800)):
        cell = CELLS["prime_maze"]
        write_run(tmp_path / name / cell.name, cell, np.zeros((2, episodes)))

        def look(path, size, draw, title):
            figure = Figure()
            draw(figure)
            counts.append([axes.get_title() for axes in figure.axes])

        monkeypatch.setattr(figures, "make", look)
        with without_simulation():
            figures.figure1(Runs.under(tmp_path / name), tmp_path)
    assert counts == [
        ["Butterflies", "Maze"],
        ["Butterflies", "Maze, cropped as in the paper", "Maze, whole"],
    ]


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'primax-rl\[report\]'"):
        matplotlib()


def test_a_place_that_cannot_be_written_is_refused_in_one_line(none, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_all(none, tmp_path / "file", lambda said: None)


def test_references_are_what_is_known_of_them(runs):
    """Exact means of the paper's worlds; a sweep of 100 steps stands on every cell."""
    assert references.average(runs, "butterflies", "random") == pytest.approx(2.2837, abs=1e-4)
    assert references.average(runs, "maze", "random") == pytest.approx(0.0024539, abs=1e-6)
    sweep = references.reference(runs, "butterflies", "sweep")
    assert sweep.coverage == pytest.approx(1.0) and sweep.peak > sweep.average
    density = references.density(runs)
    assert 0 < density.typical < 0.01 < density.worst < 0.2
