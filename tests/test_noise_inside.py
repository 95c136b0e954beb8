"""What PRIME's reward was made of in the wings of TwoWings: maps and visits by hand, crossings, pages."""

import json
from pathlib import Path

import numpy as np
import pytest

from primax.cli import main
from primax.errors import InputError
from primax.runs import npz
from primax.runs.config_json import create
from primax.runs.proceed import reopen
from primax.runs.read import Run, open_run
from primax.runs.tables import digest_of
from primax.studies.noise import inside, reward_pages
from primax.studies.noise.cells import VARIANTS
from primax.studies.noise.found import BY_NAME, Found
from primax.studies.noise.inside import Inside
from primax.studies.noise.pages import write_all
from primax.studies.noise.predict import Numbers

PRIME = VARIANTS["prime"]
CONFIG = BY_NAME["prime", "two_wings"].config("smoke")
NUMBERS = Numbers.of(CONFIG)
STEPS = np.array([1_000, 1_500, 2_000])
"""Ends of the windows of 500 steps that are kept at this size."""
SHAPE = (3, 2, 3, 10)
"""Of every map: [window, seed, rows, cols]."""
LEFT = np.broadcast_to(np.arange(10) < 5, (3, 10))
NOISY = np.stack([LEFT, ~LEFT])
"""Which cells of seed 0 and of seed 1 are noisy."""


def kept_run(place: Path, name: str = "prime", **maps: np.ndarray) -> Run:
    """A finished run of seeds 0 and 1: ten visits of every noisy cell in a window that is kept; of
    the parts of the reward four in the noisy wing, one in the silent one."""
    folder = place / f"{name}_two_wings"
    create(folder, BY_NAME[name, "two_wings"].config("smoke"), (0, 1))
    (folder / "manifest.json").write_text(json.dumps({"steps": 2_000, "finished": "now"}))
    drawn = {"visits": np.broadcast_to(10 * NOISY, SHAPE).astype(np.int32)}
    drawn |= {part: np.broadcast_to(np.where(NOISY, 4.0, 1.0), SHAPE) for part in inside.READ}
    drawn |= {"step": STEPS, "seed": np.array([0, 1])} | maps
    (folder / "maps.npz").write_bytes(npz.to_bytes(drawn.items()))
    rows = [f"{seed},{i},{100 * i + 100},0.5" for i in range(20) for seed in (0, 1)]
    (folder / "episodes.csv").write_text("\n".join(["seed,episode,step,score", *rows, ""]))
    return open_run(folder)


def over(*values: float) -> np.ndarray:
    """Maps that have the same value everywhere in each of three windows."""
    return np.broadcast_to(np.array(values)[:, None, None, None], SHAPE)


def lose_maps(run: Run) -> None:
    """As `primax pack --keep episodes` leaves it."""
    kept = {"episodes.csv": digest_of((run.path / "episodes.csv").read_bytes())}
    manifest = run.manifest | {"files": kept}
    (run.path / "maps.npz").unlink()
    (run.path / "manifest.json").write_text(json.dumps(manifest))


def test_the_wing_of_each_seed_and_not_the_other(tmp_path):
    """The noisy wing's cells have 4 and the silent wing's 1, on either side."""
    run = kept_run(tmp_path)
    for is_noisy, value in ((True, 4.0), (False, 1.0)):
        for name in inside.READ:
            found = inside.wing(run, is_noisy)[name]
            np.testing.assert_array_equal(found, np.full((2, 3), value), name)
    np.testing.assert_array_equal(inside.wing(run, False)["visits"], 0)


def test_the_wings_are_those_of_the_seeds_in_the_order_of_the_maps(tmp_path):
    run = kept_run(tmp_path, seed=np.array([1, 0]))
    np.testing.assert_array_equal(inside.wing(run, True)["v_ale"], 1.0)


def test_visits_of_a_state_and_action_until_the_reward_was_frozen(tmp_path):
    """10 visits of a cell in each kept time, 5 actions. The first time is 1,000 steps long and its
    last window 500, so half of 10 is taken off; the others are one window each, so all 10 are."""
    found = inside.wing(kept_run(tmp_path), True)
    np.testing.assert_allclose(found["visits"], [[1, 2, 4]] * 2)
    np.testing.assert_array_equal(found["steps"], [[500, 1_000, 1_500]])


def test_visits_are_averaged_over_all_of_the_wing(tmp_path):
    """300 visits of one of fifteen cells, in each kept time: twice those that ten of every cell are."""
    visits = np.zeros(SHAPE, np.int32)
    visits[:, 0, 1, 4] = visits[:, 1, 1, 5] = 300
    found = inside.wing(kept_run(tmp_path, visits=visits), True)
    np.testing.assert_allclose(found["visits"], [[2, 4, 8]] * 2)


def test_a_run_with_all_of_its_windows_is_read_as_a_packed_one(tmp_path):
    """It has one more, the warm-up, which has no reward; its 7 and 3 visits are 10 until step 1,000."""
    parts = {name: over(1, 2, 3) for name in inside.READ}
    warm_up = np.full((1, *SHAPE[1:]), np.nan)
    more = {name: np.concatenate([warm_up, values]) for name, values in parts.items()}
    more |= {"visits": np.stack([n * NOISY for n in (7, 3, 10, 10)]).astype(np.int32)}
    whole = kept_run(tmp_path / "whole", step=np.array([500, *STEPS]), **more)
    found = inside.wing(whole, True)
    same = inside.wing(kept_run(tmp_path / "packed", **parts), True)
    assert found.keys() == same.keys() > set(inside.READ)
    for name, values in found.items():
        np.testing.assert_array_equal(values, same[name], name)


def test_cells_that_the_newest_rows_do_not_hold_are_left_out(tmp_path):
    values = np.full(SHAPE, 2.0)
    values[:, :, 1] = 8.0
    values[:, :, 0] = np.nan  # a row of three
    values[1, 0] = np.nan  # a time at which seed 0 holds nothing
    found = inside.wing(kept_run(tmp_path, v_ale=values), True)
    np.testing.assert_array_equal(found["v_ale"], [[5, np.nan, 5], [5, 5, 5]])
    np.testing.assert_allclose(found["held"], [[2 / 3, 0, 2 / 3], [2 / 3] * 3])
    joined = inside.joined([found], NUMBERS)
    np.testing.assert_array_equal(joined.v_ale, [5, 5, 5])
    np.testing.assert_allclose(joined.held, [2 / 3, 1 / 3, 2 / 3])


def test_gate_and_penalty_are_made_of_what_is_read(tmp_path):
    """α = 0.5 of a look-ahead of 3; 7 of novelty less a reward of 5."""
    run = kept_run(tmp_path, v_ahead=over(3, 3, 3), v_epi=over(7, 7, 7), r_int=over(5, 5, 5))
    found = inside.joined([inside.wing(run, True)] * 2, NUMBERS)
    np.testing.assert_array_equal(found.gate, 1.5)
    np.testing.assert_array_equal(found.penalty, 2.0)


def test_the_mean_is_over_the_seeds_of_all_runs(tmp_path):
    """Two seeds of 1 and two of 2: at the paper's size the seeds of a variant are two folders."""
    runs = [kept_run(tmp_path / str(n), v_ale=over(n, n, n)) for n in (1, 2)]
    found = inside.joined([inside.wing(run, True) for run in runs], NUMBERS)
    np.testing.assert_array_equal(found.v_ale, [1.5, 1.5, 1.5])
    np.testing.assert_array_equal(found.steps, [500, 1_000, 1_500])


def test_maps_that_lack_a_window_are_refused(tmp_path):
    run = kept_run(tmp_path, step=np.array([500, 1_500, 2_000]))
    with pytest.raises(InputError, match=r"maps\.npz of .*prime_two_wings lacks windows"):
        inside.wing(run, True)


def seen(**values: list[float]) -> Inside:
    """At three steps; what is not given is nought."""
    given = {"steps": [0.0, 10.0, 20.0]} | values
    return Inside(**{name: np.array(given.get(name, [0.0] * 3)) for name in Inside.__annotations__})


def test_what_the_formulas_make_of_the_visits():
    """N = 3: 0.405 tanh²(1/√4) = 0.0864887, α of four steps 0.5 · 3.709875 · 0.0864887 = 0.160431.
    Noise of 1 is 0.839569 above that: 0.5 ln(1 + 0.839569/0.5) = 0.492748 is charged, -0.406259 left.
    Noise of 0.1 is below the gate, and costs nothing."""
    says = inside.from_visits(seen(visits=[3.0] * 3), NUMBERS, 1.0)
    for name, value in {
        "v_epi": 0.0864887,
        "gate": 0.160431,
        "penalty": 0.492748,
        "r_int": -0.406259,
        "v_ale": 1.0,
        "visits": 3.0,
        "steps": [0.0, 10.0, 20.0],
    }.items():
        np.testing.assert_allclose(getattr(says, name), np.broadcast_to(value, 3), atol=1e-6)
    hidden = inside.from_visits(seen(visits=[3.0] * 3), NUMBERS, 0.1)
    np.testing.assert_array_equal(hidden.penalty, 0.0)
    np.testing.assert_allclose(hidden.r_int, 0.0864887, atol=1e-6)


def test_where_values_first_rise_above_zero():
    """From -1 at 10 to 3 at 20: a quarter of the way."""
    steps = np.array([0.0, 10.0, 20.0])
    assert inside.first(steps, np.array([-2.0, -1.0, 3.0])) == 12.5
    assert inside.first(steps, np.array([1.0, -1.0, 3.0])) == 0.0
    assert inside.first(steps, np.array([-1.0, 0.0, -1.0])) is None
    assert inside.first(steps, np.array([-1.0, np.nan, 3.0])) == 20.0


def test_what_is_looked_for_is_noise_above_the_gate_and_a_reward_below_zero():
    found = seen(v_ale=[0.0, 1.0, 4.0], gate=[2.0, 2.0, 1.0], r_int=[3.0, 1.0, -1.0])
    assert inside.gate_opens(found) == 12.5
    assert inside.noise_costs(found) == 15.0


def test_the_tables(tmp_path):
    """N is 100, 200, 400. By the formulas the gate opens where α times the look-ahead, from 7.389 to
    3.725, passes V_ale, 6.187 thousandths: at 500 + 500 · 1.202/3.664 = 664. The reward falls from
    3.984 to -0.448: it passes zero at 500 + 500 · 3.984/4.431 = 949. What is found was made up:
    V_ale less αṼ is -1, -0.5, 1.5, the reward 3, 1, -1."""
    visits = np.broadcast_to(1_000 * NOISY, SHAPE).astype(np.int32)
    parts = {"v_ale": over(0, 0.5, 2.5), "v_ahead": over(2, 2, 2), "v_epi": over(3, 2, 1)}
    kept_run(tmp_path, visits=visits, r_int=over(3, 1, -1), **parts)
    found = Found(tmp_path, "smoke")
    table = reward_pages.turns(found)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["PRIME"] == ("18,000", "664", "1,125", "27,900", "949", "1,250")
    assert rows["PRIME, λ = 0"] == ("18,000", "—", "—", "never", "—", "—")
    assert len(rows) == 7 and "A dash: not run, or no maps were kept." in table.notes
    table = reward_pages.over_time(found)
    assert [row[:3] for row in table.rows] == [
        ("500", "100", "1.00"),
        ("1,000", "200", "1.00"),
        ("1,500", "400", "1.00"),
    ]
    assert dict(zip(table.columns[3:], table.rows[1][3:], strict=True)) == {
        "V_epi": "2000.0 / 2.0",
        "V_ale": "500.0 / 6.2",
        "αṼ": "1000.0 / 3.7",
        "penalty": "1000.0 / 2.5",
        "R_int": "1000.0 / -0.4",
    }


def test_what_was_so_from_the_beginning_and_what_never_was(tmp_path):
    """N is 1, 2, 4. Without a gate all noise is above it; and the reward is 4, as is what is new."""
    kept_run(tmp_path, "no_gate")
    rows = {row[0]: row[1:] for row in reward_pages.turns(Found(tmp_path, "smoke")).rows}
    assert rows["PRIME, α = 0"] == ("0", "by 500", "by 500", "9,750", "never", "never")


def test_a_time_at_which_no_cell_was_held_is_a_dash(tmp_path):
    kept_run(tmp_path, **{name: over(1, np.nan, 1) for name in inside.READ})
    row = reward_pages.over_time(Found(tmp_path, "smoke")).rows[1]
    assert row[2] == "0.00" and row[3].startswith("— / ") and row[-1].startswith("— / ")


def test_the_figure_and_the_page(tmp_path):
    kept_run(tmp_path / "runs")
    blocks = write_all(Found(tmp_path / "runs", "smoke"), tmp_path)
    assert "silent wing, found" in (tmp_path / "figures/reward.svg").read_text(encoding="utf-8")
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert page.count("figures/noise.svg") == page.count("figures/reward.svg") == 1
    assert blocks["over_time"].startswith(f"{reward_pages.FIGURE}\n\n| step |")
    assert blocks["turns"].startswith("| variant |") and page.count("| step |") == 1
    assert len((tmp_path / "tables/over_time.csv").read_text(encoding="utf-8").splitlines()) == 4


def test_without_runs_or_without_their_maps(tmp_path):
    """Nothing is drawn, and the table says which of the two it is."""
    lose_maps(kept_run(tmp_path / "runs"))
    for folder, why in (("nowhere", "Not run."), ("runs", "No maps were kept of these runs.")):
        found = Found(tmp_path / folder, "smoke")
        assert inside.inside(found, PRIME, is_noisy=True) is None
        table = reward_pages.over_time(found)
        assert table.rows == () and table.notes == (why,)
        assert reward_pages.turns(found).rows[0][2:4] == ("—", "—")
        assert write_all(found, tmp_path)["over_time"].strip() == why
        assert "reward.svg" not in (tmp_path / "index.md").read_text(encoding="utf-8")
        assert not (tmp_path / "figures/reward.svg").exists()


def test_half_of_the_seeds_is_not_enough(tmp_path):
    """At the paper's size they are two folders; of these the second is not there."""
    cell = BY_NAME["prime", "two_wings"]
    (name, _), _ = cell.folders("paper").items()
    config = cell.config("paper")
    create(tmp_path / name, config, tuple(range(15)))
    about = {"steps": config.total_steps, "finished": "now"}
    (tmp_path / name / "manifest.json").write_text(json.dumps(about))
    found = Found(tmp_path, "paper")
    assert [isinstance(run, Run) for run in found.runs(cell)] == [True, False]
    assert inside.inside(found, PRIME, is_noisy=True) is None
    assert reward_pages.over_time(found).notes == ("Not run.",)


@pytest.mark.slow
def test_a_run_that_was_made(tmp_path, capsys, quick_children):
    """N is what the frozen counts have; and of its kept maps alone the tables are made again."""
    line = ["reproduce", "--study", "noise", "--scale", "smoke", "--out", str(tmp_path)]
    assert main([*line, "--only", "prime_two_wings", "--jobs", "1"]) == 0
    folder = tmp_path / "runs" / "prime_two_wings"
    state = open_run(folder).state(reopen(folder).learner)
    counts = np.asarray(state.reward.window.novelty).reshape(2, 3, 10, 5)
    np.testing.assert_array_equal(counts.sum(axis=(1, 2, 3)), 1_500)
    visits = inside.wing(open_run(folder), True)["visits"]
    np.testing.assert_allclose(visits[:, -1], [counts[i][NOISY[i]].mean() for i in range(2)])

    packed = tmp_path / "packed"
    assert main(["pack", str(folder), "--keep", "maps", "--out", str(packed)]) == 0
    whole, few = Found(folder.parent, "smoke"), Found(packed, "smoke")
    rows = [[row[:3] for row in reward_pages.over_time(found).rows] for found in (whole, few)]
    assert rows[0] == rows[1] and len(rows[0]) == 3
    sides = [inside.inside(found, PRIME, is_noisy=True) for found in (whole, few)]
    for name in Inside.__annotations__:
        # Kept in 16 bits: of a penalty, which is a difference, fewer digits are right.
        atol = 1e-4 if name == "penalty" else 0.0
        values = [getattr(side, name) for side in sides]
        np.testing.assert_allclose(*values, rtol=1e-3, atol=atol, err_msg=name)

    made = (tmp_path / "tables" / "over_time.csv").read_bytes()
    assert main([*line, "--no-run", "--runs", str(packed)]) == 0
    again = (tmp_path / "tables" / "over_time.csv").read_bytes()
    assert again.count(b"\n") == made.count(b"\n") == 4
    capsys.readouterr()
