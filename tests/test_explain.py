"""`primax explain`: what it says is what the run's frozen window pays."""

import csv
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from primax import api, explain
from primax.agent import ring
from primax.cli import main
from primax.methods import build
from primax.report import make
from primax.report.parts.frozen import frozen
from primax.runs.read import open_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("explain") / "run"
    steps = {"steps": "1_000", "window": "500"}
    api.train("prime", "butterflies", seeds="3,5", preset="smoke", settings=steps, out=place)
    return place


def said(capsys, *args) -> str:
    assert main(["explain", *map(str, args)]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_every_key_is_worth_what_the_critics_were_paid(folder, tmp_path, capsys):
    """The table against the score of the rows in the ring, to the bit."""
    said(capsys, folder, "--seed", 5, "--csv", tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    result = api.result(folder)
    _, reward = build(result.config)
    state = jax.tree.map(lambda x: x[1], result.state)
    rows = ring.read(state.ring, jnp.int32(1_000), jnp.arange(1, 400), reward.spec.shape)
    paid = np.asarray(reward.score(state.reward, rows))
    places = np.stack([*reward.spec.coordinates(rows.key), rows.action], axis=1)
    for key, place, value in zip(rows.key.tolist(), places.tolist(), paid, strict=True):
        found = table[key]
        assert [int(found[name]) for name in explain.PLACE] == place
        assert np.float32(found["reward"]) == value
        assert int(found["count"]) == state.reward.window.novelty[key]
    assert len({float(line["r_int"]) for line in table}) > 5
    assert len(table) == reward.spec.num_keys


@pytest.mark.slow
def test_the_parts_shown_add_up(folder):
    table = explain.explain(folder, 3).table
    np.testing.assert_array_equal(table["v_epi"], np.maximum(table["v_count"], table["v_lotv"]))
    noise = np.maximum(table["v_ale"] - 0.5 * table["v_ahead"], 0)
    np.testing.assert_allclose(table["bracket"], noise, rtol=1e-5, atol=1e-12)
    r_int = table["v_epi"] - 0.5 * np.log1p(noise / 0.5)
    np.testing.assert_allclose(table["r_int"], r_int, rtol=1e-4)
    np.testing.assert_allclose(table["reward"], np.clip(50 * r_int, -2, 2), rtol=1e-4)
    np.testing.assert_array_equal(table["scaled"], 50 * table["r_int"])


@pytest.mark.slow
def test_one_place_shows_all_its_actions(folder, capsys):
    shown = said(capsys, folder, "--seed", 3, "--at", "0,0")
    assert "seed 3, the window frozen at step 500" in shown
    assert all(f" {action} " in shown for action in ("N", "S", "E", "W", "Stay"))


@pytest.mark.slow
def test_an_exported_file_says_the_same(folder, tmp_path, capsys):
    file = tmp_path / "small.npz"
    assert main(["export", str(folder), "--out", str(file)]) == 0
    ours, theirs = (explain.explain(path, 5).table for path in (folder, file))
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.slow
def test_heat_maps_are_drawn_of_any_window(folder, tmp_path, capsys):
    said(capsys, folder, "--png", tmp_path / "last")  # the file named, and no other
    said(capsys, folder, "--png", tmp_path / "first.png", "--step", 500)
    for name in ("last", "first.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    step, maps = explain.recorded_maps(folder, 3, 900)
    assert step == 1_000
    assert maps["visits"].sum() == 500
    found = explain.explain(folder, 3)
    assert explain.cell_maps(found)["visits"].sum() == found.table["count"].sum() == 500


def test_in_the_picture_walls_are_unlike_cells_without_data(tmp_path):
    """A row of a wall, one of a cell nobody was in, and one of numbers."""
    image = pytest.importorskip("matplotlib.image")
    walls = np.array([[True] * 3, [False] * 3, [False] * 3])
    values = np.array([[np.nan] * 3, [np.nan] * 3, [1.0, 2.0, 4.0]])
    visits = np.array([[0, 0, 0], [0, 0, 0], [1, 2, 4]])
    explain.draw({"visits": visits, "v_epi": values}, walls, "title", tmp_path / "maps")
    drawn = (255 * image.imread(tmp_path / "maps")[..., :3]).round().astype(int)
    seen = Counter("#{:02x}{:02x}{:02x}".format(*pixel) for pixel in drawn.reshape(-1, 3))
    row = seen[explain.WALL] // 2  # both maps have one
    assert row > 5_000 and seen[explain.NO_DATA] == pytest.approx(row, rel=0.1)
    # The three nobody visited, and the lowest of the second map.
    assert seen["#440154"] == pytest.approx(row + row / 3, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--seed", "4"], "seed 4 is not one of the run's seeds: 3, 5"),
        (["--at", "0"], "--at takes ROW,COL or ROW,COL,LEVEL"),
        (["--at", ""], "--at takes ROW,COL or ROW,COL,LEVEL"),
        (["--at", "99,0"], "not a place in this world"),
        (["--top", "0"], "--top must be at least 1"),
        (["--step", "500"], "give --png too"),
        (["--csv", "/nowhere/x.csv"], "cannot write /nowhere/x.csv"),
        (["--png", "/nowhere/x.png"], "cannot write /nowhere/x.png"),
    ],
)
def test_what_cannot_be_explained_is_said_in_a_line(folder, capsys, args, message):
    assert main(["explain", str(folder), *args]) == 2
    assert message in capsys.readouterr().err


def test_a_path_that_holds_nothing_is_refused(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "none"):
        assert main(["explain", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_the_page_of_a_run_shows_what_the_last_recorded_steps_were_paid(folder):
    """From the same frozen window; and of a real folder nothing is missing on its page."""
    found = frozen(open_run(folder))
    assert (found.begins, found.ends) == (500, 1_000) and set(found.tables) == {3, 5}
    for name, column in explain.explain(folder, 5).table.items():
        np.testing.assert_array_equal(found.tables[5][name], column)
    page = make([folder])
    assert "Not here" not in page and page.count('"is_exact":true') == 2
