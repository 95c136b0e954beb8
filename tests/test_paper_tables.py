"""The paper's tables: from its own seeds, from folders that hold them, and with holes."""

import dataclasses
import json
import re

import numpy as np
import pytest
from test_paper_case import plausible, whole_scores, write_run

from primax import stats
from primax.output.sheet import Sheet, number
from primax.paper.evidence import MissingError, Published, Runs, pair
from primax.paper.experiments import CELLS, FITS, VARIANTS
from primax.paper.pages.times import times_sheet
from primax.paper.published import published
from primax.paper.tables import beside, comparisons, course, results

FROM_SEEDS = (results.table1, results.table2, results.table6, results.table7, results.table8)


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Runs:
    """Run folders whose measures are the paper's per-seed values."""
    home = tmp_path_factory.mktemp("papers")
    for name, cell in CELLS.items():
        found = {
            m: Published().sample(cell.variant.name, cell.world, m) for m in ("average", "peak")
        }
        values = {m: sample.values for m, sample in found.items() if sample is not None}
        if values:
            information = Published().sample("prime", cell.world, "tail:mutual_information")
            windows = {"mutual_information": np.repeat(information.values[:, None], 10, axis=1)}
            scores = whole_scores(values)
            write_run(home / name, cell, scores, windows if cell.variant.name == "prime" else None)
    return Runs.under(home)


def body(sheet: Sheet, skip: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [row for row in sheet.rows if row[0] not in skip]


def test_tables_1_and_2_are_the_papers_to_the_digit():
    for make in (results.table1, results.table2):
        for row in body(make(Published())):
            for ours, paper in zip(row[1::2], row[2::2], strict=True):
                assert ours == paper or ours == "(not given by seed)", row


def test_table_6_is_the_papers_to_the_documented_rounding():
    """One IQM of 21 differs by 0.01 (catches are printed rounded), interval ends by 0.01."""
    differing = 0
    for row in results.table6(Published()).rows:
        for ours, paper in zip(row[1::2], row[2::2], strict=True):
            a, b = ([float(x) for x in re.findall(r"[\d.]+", text)] for text in (ours, paper))
            np.testing.assert_allclose(a, b, atol=0.0101)
            differing += a[0] != b[0]
    assert differing == 1


def test_table_5_is_the_papers_to_the_documented_rounding():
    sheet = results.table5(Published())
    for row, given in zip(sheet.rows, published()["comparisons"]["rows"], strict=True):
        delta, interval, d, poi, p_w, p_u = row[1:7]
        assert float(delta) == pytest.approx(given["delta"], abs=0.0011)
        ends = [float(x) for x in re.findall(r"[-+][\d.]+", interval)]
        np.testing.assert_allclose(ends, given["interval"], atol=0.0101)
        assert float(d) == pytest.approx(given["d"], abs=0.051)
        assert poi == f"{given['poi']:.2f}" and row[8] == "15"
        for text, name in ((p_w, "holm_wilcoxon"), (p_u, "holm_mann_whitney")):
            theirs = given[name]
            is_below = isinstance(theirs, dict) or theirs < 0.05
            assert text.startswith("**") == is_below, row
            if isinstance(theirs, dict):
                assert text == "**<0.001**"
            else:
                assert float(text.strip("*<")) == pytest.approx(theirs, abs=0.0831)


def test_table_8_is_the_papers_to_the_digit():
    for row in results.table8(Published()).rows:
        assert row[-1] == row[-2]
        given = published()["mutual_information"][row[0]]["values"]
        assert list(row[2:17]) == [f"{value:.3f}" for value in given]


@pytest.mark.parametrize("make", FROM_SEEDS)
def test_folders_with_the_papers_seeds_give_the_same_tables(papers, make):
    ours, theirs = make(papers), make(Published())
    assert ours.columns == theirs.columns
    for a, b in zip(ours.rows, theirs.rows, strict=True):
        assert [x.replace("not run", "not given by seed") for x in a] == list(b)


def test_the_eleven_comparisons_from_folders(papers):
    assert results.table5(papers).rows == results.table5(Published()).rows


def test_the_completed_family_has_what_the_paper_leaves_out(papers):
    sheet = comparisons.completed(papers)
    rows = {row[0]: row for row in sheet.rows}
    assert rows["PRIME - RND (Maze, peak)"][1] == "-0.207"
    assert rows["PRIME - SMIRL (Butterflies, average)"][1].startswith("+0.75")
    assert rows["PRIME - RND, γ = 0.9 (Maze, peak)"][1] == "(rnd_gamma_maze: not run)"
    assert "9 of 24 comparisons are not there yet." in sheet.notes
    # Fifteen p values are corrected together: none is smaller than in the family of eleven.
    alone = {row[0]: row for row in results.table5(papers).rows}
    for name, row in alone.items():
        ours, theirs = (float(r[5].strip("*<")) for r in (rows[name], row))
        assert ours >= theirs - 1e-9


def test_every_variant_with_all_its_seeds_is_compared_with_prime():
    pairs = (*comparisons.FAMILY, *comparisons.LEFT_OUT, *comparisons.REST)
    assert len(pairs) == len(set(pairs)) and len(comparisons.REST) == 25
    named = {name for each in pairs for name in (each.first, each.second)}
    counts = {
        "count",
        "count_gamma",
        "count_heads5",
        "count_heads5_gamma",
    }  # no family changed for them
    fitted = {*FITS.values(), "prime_fit_shared"}  # a second column, and what stands beside it
    alone = {"prime_window200", "prime_window4000", *counts, *fitted}
    assert set(VARIANTS) - named == alone and "random" in alone
    for artefact, family in (("table5", comparisons.FAMILY), ("tableD", comparisons.REST)):
        needed = {name for each in family for name in (each.first, each.second)}
        assert needed <= {name for name, v in VARIANTS.items() if artefact in v.feeds}
    needed = {name for each in comparisons.LEFT_OUT for name in (each.first, each.second)}
    assert needed <= {name for name, v in VARIANTS.items() if "tableA" in v.feeds}


def test_no_zero_has_a_sign_and_no_dust_is_a_number():
    row = stats.compare_all({"a": np.arange(5.0), "b": np.arange(5.0)}, [("a", "b")])[0]
    result = dataclasses.replace(row.result, delta=-1e-17, d=-2.2e-15, low=-1e-9, high=0.25)
    cells = comparisons._cells(dataclasses.replace(row, result=result), 5)
    assert cells[:3] == ("+0.000", "[+0.000, +0.250]", "0.00")
    assert number(-0.0) == "0.00" and number(4.2e-12) == "4.2e-12"


def test_a_part_that_kept_no_time_makes_a_sum_a_least_one(tmp_path):
    stopped, last = {"from_step": 0}, {"from_step": 100, "compile_s": 1.5, "run_s": 40.0}
    for name, parts in (("task_maze", [stopped, last]), ("rnd_maze", [last])):
        folder = write_run(tmp_path / name, CELLS[name], np.zeros((2, 40)), None)
        manifest = json.loads((folder / "manifest.json").read_text()) | {"parts": parts}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    sheet = times_sheet(Runs.under(tmp_path))
    assert {row[0]: row[4:7] for row in sheet.rows} == {
        "rnd_maze": ("1", "2", "40"),
        "task_maze": ("2", "2+", "40+"),
    }
    assert "2 runs took more than 83 seconds in all" in sheet.above[0]
    (tmp_path / "task_maze" / "manifest.json").unlink()
    alone = times_sheet(Runs.under(tmp_path))
    assert "more than" not in alone.above[0] and len(alone.notes) == 1


def test_window_lengths_are_compared_on_the_seeds_both_have(tmp_path):
    for name, seeds, jump in (
        ("prime_butterflies", 6, 10.0),
        ("prime_maze", 6, 777.0),
        ("prime_window200_butterflies", 2, 3.0),
    ):
        by_seed = np.arange(float(seeds))[:, None]
        windows = {key: jump * by_seed + np.zeros(20) for key in ("reward_jump", "pi_act_from_ref")}
        write_run(tmp_path / name, CELLS[name], by_seed + np.zeros(40), windows)
    rows = {row[0]: row[1:] for row in beside.table_c(Runs.under(tmp_path)).rows}
    half, whole = "0.50 ± 0.71 (n = 2)", "2.50 ± 1.87 (n = 6)"
    assert rows["PRIME"][:4] == ("1,000", half, half, whole)  # no other length on Maze
    assert rows["PRIME"][4] == "5.0000 ± 7.0711 (n = 2)"
    assert rows["PRIME, window 200"][4:] == ("1.5000 ± 2.1213 (n = 2)", "1.500 ± 2.121 (n = 2)")


def test_peaks_and_bursts_by_hand():
    """Of 60 episodes 41 have 19 before them; the 21st of these ends at step 4,000."""
    scores = np.zeros((3, 60))
    scores[0, :10] = scores[0, 40:50] = 1.0  # half of 20 at once, then from step 5,000 to the end
    scores[1, 40:] = 1.0  # one in twenty more with each episode from the 41st on
    found = course.Course.of(scores, 100.0 * np.arange(1, 61))
    assert found.bursts == [[1, 11], [11], []]
    assert course.maze_cells(found, 4000, "0.79") == (
        "0.50",
        "6,000",
        "0.00",
        "0.50",
        "0.17 ± 0.29",
        "0.50 ± 0.50",
        "0.79",
        "2,000 (2,000 to 6,000)",
        "1 (0 to 2)",
        "11 (0 to 11)",
        "2 of 3",
    )
    assert course.maze_cells(found, 60_000, "")[2:6] == ("0.50", "0.50", *["0.50 ± 0.50"] * 2)


def test_catches_and_distance_early_and_late_by_hand(tmp_path):
    """Eight of forty episodes are a fifth."""
    for name, start, tail in (("prime", 1, 5), ("prime_no_penalty", 1, 6), ("random", 2, 2)):
        scores = np.full((2, 40), 2.0)
        scores[:, :8], scores[:, 32:] = start, tail
        cell = CELLS[f"{name}_butterflies"]
        write_run(tmp_path / cell.name, cell, scores, distance=10 - scores)
    rows = {row[0]: row[1:] for row in course.table_f(Runs.under(tmp_path)).rows}
    means = ("2.40", "1.00", "5.00", "9.00", "5.00")
    assert rows["PRIME"] == tuple(f"{mean} ± 0.00" for mean in means)
    deltas = ("+0.20", "+0.00", "+1.00", "+0.00", "-1.00")
    assert rows["penalty off - PRIME"] == tuple(f"{d} [{d}, {d}]" for d in deltas)
    assert rows["PRIME - Random walker"][1].startswith("-1.00")
    assert set(rows["RND"]) == {"(not run)"}
    feeding = {name for name, v in VARIANTS.items() if {"tableE", "tableF"} <= set(v.feeds)}
    assert feeding == {*course.SHOWN, *(FITS[name] for name in course.SHOWN if name in FITS)}


def test_tables_without_any_run_say_so(tmp_path):
    runs = Runs.under(tmp_path)
    for make in (
        *FROM_SEEDS,
        results.table5,
        comparisons.completed,
        comparisons.rest,
        beside.table_c,
        course.table_e,
        course.table_f,
    ):
        text = make(runs).markdown()
        assert "not run" in text and "| |" not in text and "nan" not in text
    assert all(row[-1] == "yes" for row in beside.table3(runs).rows)
    assert all(row[-1] == "yes" for row in beside.table4(runs).rows)
    assert len(beside.table9().rows) == 6


def test_a_setting_that_is_not_the_papers_shows(tmp_path):
    cell = CELLS["prime_butterflies"]
    scores, windows, columns = plausible(cell)
    folder = write_run(tmp_path / cell.name, cell, scores, windows, **columns)
    text = (folder / "config.json").read_text().replace('"gate_weight": 0.5', '"gate_weight": 0.7')
    (folder / "config.json").write_text(text)
    runs = Runs.under(tmp_path)
    wrong = [row for row in beside.table3(runs).rows if row[-1] == "NO"]
    assert [row[0] for row in wrong] == ["alpha_gate"]
    assert "reward.gate_weight 0.7" in runs.changes(CELLS["prime_butterflies"])


def test_another_map_shows(tmp_path):
    cell = CELLS["task_maze"]
    folder = write_run(tmp_path / cell.name, cell, np.zeros((2, 2000)))
    assert Runs.under(tmp_path).changes(CELLS["task_maze"]) == []
    content = json.loads((folder / "config.json").read_text())
    content["world"]["layout"] = "one_wide"
    (folder / "config.json").write_text(json.dumps(content))
    assert Runs.under(tmp_path).changes(CELLS["task_maze"]) == ["world.layout one_wide"]


def test_an_unfinished_run_shows_as_such(papers, tmp_path):
    cell = CELLS["task_maze"]
    folder = write_run(tmp_path / cell.name, cell, np.zeros((2, 40)))
    (folder / "manifest.json").write_text("{}")
    row = next(row for row in results.table1(Runs.under(tmp_path)).rows if row[0] == "Ext-DQN")
    assert row[5] == "(unfinished)"


def test_pairs_are_made_of_common_seeds(tmp_path):
    for name, seeds in (("task_maze", 3), ("prime_maze", 2)):
        write_run(tmp_path / name, CELLS[name], np.arange(seeds * 40.0).reshape(seeds, 40))
    a, b = pair(Runs.under(tmp_path), ("task", "prime"), "maze", "average")
    np.testing.assert_allclose(a, [19.5, 59.5])
    np.testing.assert_allclose(a, b)
    with pytest.raises(MissingError, match="rnd_maze: not run"):
        pair(Runs.under(tmp_path), ("task", "rnd"), "maze", "average")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234, "1.23"), (0.0, "0.00"), (2.29e-3, "2.3e-03"), (np.inf, "∞"), (np.nan, "—")],
)
def test_numbers_as_people_read_them(value, text):
    assert number(float(value)) == text
