"""What a person sees in a notebook: a line that moves, a table, a curve."""

import base64
import sys
import time
import types

import numpy as np
import pytest

import primax
from primax import cli
from primax.agent.training import Progress
from primax.errors import InputError
from primax.output.sheet import Sheet
from primax.runs import shown
from primax.runs.evaluation import Evaluation
from primax.runs.loop import Result
from primax.runs.measures import over_seeds
from primax.runs.progress import Cell, Counter, Reporter, plain_lines

CONFIG = primax.configure("task", "maze", "smoke")


def told(clock: int) -> Progress:
    episodes = {"score": np.full(2, 3.0), "step": np.array([1, 2])}
    return Progress(clock, 2_000, episodes, {"loss": np.zeros(2)}, 0.05, {}, 500, 2.0)


@pytest.fixture
def outputs(monkeypatch):
    """What IPython shows under a cell, a list for each piece of output, and how that changed."""
    pieces = []

    def display(data, raw, display_id):
        assert raw and display_id
        pieces.append([data["text/plain"]])
        update = lambda data, raw: pieces[-1].append(data["text/plain"])  # noqa: E731
        return types.SimpleNamespace(update=update)

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    library = types.ModuleType("IPython.display")
    library.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", library)
    return pieces


def test_a_run_is_one_piece_of_output_that_moves(outputs, capsys):
    """Lines stay, the last one is replaced; the end is always shown."""
    cell = plain_lines()
    report = Reporter(cell, 2)
    cell.print("compiling …")
    for clock in (500, 1_000, 1_500, 2_000):
        report(told(clock))
    (piece,) = outputs
    assert piece[0] == "compiling …"
    assert piece[-1].startswith("compiling …\n━━━━━━━━━━ 2,000/2,000") and "score 3.00" in piece[-1]
    assert piece[-1].count("\n") == 1, "bars do not pile up"
    said = capsys.readouterr()
    assert not said.out and not said.err


def test_it_is_not_redrawn_at_every_step(outputs, monkeypatch):
    """A notebook keeps up with few changes a second; the last is not left out."""
    monkeypatch.setattr(time, "perf_counter", lambda: 1_000.0)
    count = Counter(Cell(), "episodes")
    for done in range(1, 1_001):
        count(done, 1_000)
    assert outputs == [["1/1,000 episodes  0 s left", "1,000/1,000 episodes  0 s left"]]


def test_elsewhere_lines_are_plain(capsys):
    plain_lines().print("compiling …")
    assert capsys.readouterr().err == "compiling …\n"


def episodes(scores: list[list[float]]) -> dict[str, np.ndarray]:
    """A table of an episode every 100 steps, in the order a run writes it."""
    values = np.array(scores)
    number = np.arange(values.shape[1])
    return {
        "seed": np.tile(np.arange(len(values)), len(number)),
        "episode": np.repeat(number, len(values)),
        "step": np.repeat(100 * (number + 1), len(values)),
        "score": values.T.reshape(-1).astype(np.float32),
    }


def result(scores: list[list[float]], config=CONFIG) -> Result:
    seeds = tuple(range(len(scores)))
    windows = {"seed": np.array(seeds), "step": np.full(len(seeds), 1_000), "loss": np.ones(2)}
    return Result(config, seeds, episodes(scores), windows, None, 0.0, 0.0, {})


def test_the_table_is_worked_by_hand():
    """Averages 1 and 4: mean 2.5, deviation 3/√2."""
    found = over_seeds(episodes([[0.0, 2.0], [4.0, 4.0]]), (0, 1))
    assert found["average"] == pytest.approx((2.5, 3 / np.sqrt(2)))
    html = result([[0.0, 2.0], [4.0, 4.0]])._repr_html_()
    assert "<td>average</td><td>2.500</td><td>2.121</td>" in html
    assert "Ext-DQN in Maze: score, 2 seeds of 2,000 steps" in html


def test_of_one_seed_there_is_no_deviation():
    mean, std = over_seeds(episodes([[1.0, 3.0]]), (0,))["average"]
    assert mean == 2.0 and np.isnan(std)


def test_seeds_without_an_episode_are_told_of():
    table = episodes([[1.0, 3.0]])
    html = shown.scores(CONFIG, table, (0, 1)).html()
    assert "of 1 of 2 seeds no episode is over yet" in html and "2.000" in html


def test_the_command_line_prints_the_same_numbers(capsys):
    from primax.agent.learner import make_learner

    made = cli.command_of("train")[0].summary(
        make_learner(CONFIG), episodes([[0.0, 2.0], [4.0, 4.0]]), (0, 1)
    )
    cells = [list(column.cells) for column in made.columns]
    assert cells == [["average", "peak", "last"], ["2.500"] * 3, ["2.121"] * 3]


def test_nothing_of_a_name_is_read_as_html():
    sheet = Sheet("x", "<b>&", ("a<", "b"), (("<i>", '"'),), ("<script>",))
    assert sheet.html() == (
        "<table><caption>&lt;b&gt;&amp;</caption><tr><th>a&lt;</th><th>b</th></tr>"
        "<tr><td>&lt;i&gt;</td><td>&quot;</td></tr></table><p>&lt;script&gt;</p>"
    )


def test_the_curve_is_the_rolling_mean_and_a_notebook_shows_it():
    """Seeds with 30 episodes of score 0, and of 0 to 29: the first 20 of both have a mean of 4.75."""
    pytest.importorskip("matplotlib")
    figure = result([[0.0] * 30, [float(i) for i in range(30)]]).plot()
    (axes,) = figure.axes
    steps, mean = axes.lines[0].get_data()
    np.testing.assert_allclose(steps, 0.1 * np.arange(20, 31))
    np.testing.assert_allclose(mean, 4.75 + 0.5 * np.arange(11))
    assert len(axes.collections) == 1, "a band"
    assert axes.get_ylabel() == "share of episodes that reach the flag"
    assert axes.get_title() == "Ext-DQN in Maze"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_of_windows_every_column_can_be_drawn():
    pytest.importorskip("matplotlib")
    (axes,) = result([[0.0], [1.0]]).plot("loss").axes
    assert axes.get_ylabel() == "Loss" and axes.get_yscale() == "log"


@pytest.mark.parametrize("column", ["scor", "seed", ""])
def test_an_unknown_column_gets_a_hint(column):
    with pytest.raises(InputError, match=f"unknown column '{column}'; (did you|choose).*score"):
        result([[0.0], [1.0]]).plot(column)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'primax-rl\[report\]'"):
        result([[0.0], [1.0]]).plot()


def test_an_evaluation_is_a_table_too():
    """Means of the seeds: 0.5 and 1."""
    done = Evaluation(CONFIG, (0, 1), "last", 0.0, np.array([[0.0, 1.0], [1.0, 1.0]]))
    html = done._repr_html_()
    assert "<td>score</td><td>0.750</td><td>0.354</td>" in html
    assert "<td>reach</td><td>0.750</td>" in html and "coverage" not in html
    assert "Ext-DQN in Maze (last): 2 seeds of 2 episodes" in html


CELLS = (
    "import primax\nresult = primax.train('task', 'maze', 2, 'smoke')",
    "result",
    "result.plot()",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_in_a_real_kernel():
    """Runs where ipykernel and nbclient are installed."""
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    trained, table, curve = (cell.outputs for cell in notebook.cells)
    (live,) = trained
    assert live.output_type == "display_data", "nothing on stderr"
    lines = live.data["text/plain"].splitlines()
    assert lines[0].startswith("compiling for 2 seeds") and "2,000/2,000" in lines[-1]
    assert "<table>" in table[0].data["text/html"]
    assert len(curve) == 1 and base64.b64decode(curve[0].data["image/png"])[1:4] == b"PNG"
