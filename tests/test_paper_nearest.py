"""The second column: the paper's variants under the reading nearest to its numbers, beside the literal one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_paper_case import without_simulation, write_run

from primax.output.sheet import ABSENT, Sheet
from primax.paper.claims import claims
from primax.paper.evidence import LITERAL_ONLY, MissingError, Nearest, Runs, need
from primax.paper.experiments import CELLS, FIT, FITS, VARIANTS
from primax.paper.pages.both import nearest_of, table
from primax.paper.pages.write import all_numbers
from primax.paper.scorecard import card, rule
from primax.paper.tables import readings, results
from primax.runs.read import Run, Unusable

CATCHES = np.repeat([[4.0], [5.0]], 40, axis=1)
"""Two seeds, 40 episodes."""


def wrote(home: Path, **scores: np.ndarray) -> Runs:
    """Runs of some cells alone."""
    for name, values in scores.items():
        write_run(home / name, CELLS[name], values)
    return Runs.under(home)


@pytest.fixture
def runs(tmp_path) -> Runs:
    """Of Butterflies: Extrinsic-DQN under both readings, the walker, and counts."""
    return wrote(
        tmp_path,
        random_butterflies=CATCHES - 2,
        task_butterflies=CATCHES + 1,
        task_fit_butterflies=CATCHES,
        count_butterflies=CATCHES,
    )


def test_every_variant_of_the_paper_has_one_that_stands_for_it():
    papers = {name for name, v in VARIANTS.items() if v.is_papers}
    assert set(FITS) == papers and FITS["random"] == "random"
    for name in papers - {"random"}:
        literal, fit = VARIANTS[name], VARIANTS[FITS[name]]
        assert fit.settings == literal.settings | FIT[literal.method] != literal.settings
        assert (fit.method, fit.seeds, fit.is_papers) == (literal.method, 15, False)
        for world in ("butterflies", "maze"):
            apart = FIT[literal.method]
            config = CELLS[f"{name}_fit_{world}"].config("paper")
            assert config.critics.truncation == "end" == apart["critics.truncation"]
            if literal.method == "prime":
                assert config.reward.truncation == "end"
            elif literal.method != "task":
                assert config.reward.normaliser == "standard"


def test_the_same_runs_asked_under_the_nearest_reading(runs):
    nearest = Nearest(runs)
    assert nearest.is_there and nearest_of(runs) is not None
    for source, average in ((runs, 5.5), (nearest, 4.5)):
        assert need(source, "task", "butterflies", "average").mean() == average
        assert need(source, "random", "butterflies", "average").mean() == 2.5
    assert nearest.settings("task", "butterflies")["critics.truncation"] == "end"
    assert runs.settings("task", "butterflies")["critics.truncation"] == "bootstrap"
    with pytest.raises(MissingError, match=LITERAL_ONLY):
        need(nearest, "count", "butterflies", "average")
    gone = nearest.run("task", "maze")
    assert isinstance(gone, Unusable) and gone.why == "not run"
    assert isinstance(nearest.run("task", "butterflies"), Run)


def test_without_such_runs_there_is_no_second_column(tmp_path):
    runs = wrote(tmp_path, random_butterflies=CATCHES, task_butterflies=CATCHES)
    assert nearest_of(runs) is None
    assert table("table1", runs, None) == results.table1(runs)
    assert card.sheet(all_numbers_of(runs)).columns == card.COLUMNS


def test_columns_are_woven(runs):
    sheet = table("table1", runs, nearest_of(runs))
    metric = ("Butterflies catch/ep", "nearest", "paper")
    assert sheet.columns[:4] == ("method", *metric) and sheet.columns.count("nearest") == 3
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert rows["Ext-DQN"][:3] == ("5.50 ± 0.71", "4.50 ± 0.71", "4.11 ± 0.67")
    assert rows["Random walker"][:2] == ("2.50 ± 0.71",) * 2
    assert rows["Counts"][:3] == ("4.50 ± 0.71", ABSENT, ABSENT)
    assert rows["RND"][:2] == ("(not run)",) * 2
    assert sheet.notes[-1] == readings.NOTE


def test_rows_are_stacked_and_those_that_have_no_run_are_left_out(runs):
    def make(source: Runs) -> Sheet:
        names = ("task", "count")
        cell = results.shown(source, lambda x: f"{x.mean():.1f}")
        rows = [(name, cell(name, "butterflies", "average")) for name in names]
        return Sheet("x", "X", ("method", "catches"), tuple(rows))

    sheet = readings.stacked(make, runs, Nearest(runs))
    assert sheet.columns == ("reading", "method", "catches")
    assert sheet.rows == (
        ("literal", "task", "5.5"),
        ("literal", "count", "4.5"),
        ("nearest", "task", "4.5"),
    )
    seeds = table("table7", runs, nearest_of(runs))
    of = [row for row in seeds.rows if row[2] == "Ext-DQN" and row[1] == "Butterflies catch/ep"]
    assert [(row[0], *row[3:5]) for row in of] == [
        ("literal", "5.00", "6.00"),
        ("nearest", "4.00", "5.00"),
    ]


def test_a_table_that_has_rows_of_both_says_which_are_a_fit(runs):
    with without_simulation():
        sheet, plain = table("tableB", runs, nearest_of(runs)), table("tableB", runs, None)
    assert "Ext-DQN, nearest" in [row[0] for row in sheet.rows]
    assert sheet == replace(plain, notes=(*plain.notes, readings.NOTE))


def test_settings_say_how_they_differ(runs):
    notes = {name: table(name, runs, nearest_of(runs)).notes[-1] for name in ("table3", "table4")}
    assert notes["table3"] == (
        "Nearest: PRIME has `critics.truncation=end` `reward.truncation=end`; all else is the same."
    )
    assert "RND has `critics.truncation=end` `reward.normaliser=standard`" in notes["table4"]


def all_numbers_of(runs: Runs) -> card.Numbers:
    with without_simulation():
        return all_numbers(runs)


def test_a_number_under_both_readings(tmp_path):
    """RND catches the paper's 3.26 under one, and 5.5 under the other."""
    flat = np.ones((15, 40))
    runs = wrote(tmp_path, rnd_butterflies=5.5 * flat, rnd_fit_butterflies=3.26 * flat)
    ours, fit = all_numbers_of(runs), all_numbers_of(Nearest(runs))
    sheet = card.sheet(ours, fit)
    assert sheet.columns == (*card.COLUMNS[:-1], *card.FIT, "remark")
    row = next(row for row in sheet.rows if row[0] == "`mean.rnd.butterflies.average`")
    assert (row[4], row[6]) == ("5.50 ± 0.00", rule.ABOVE)
    assert (row[7], row[9]) == ("3.26 ± 0.00", rule.REPRODUCED)
    assert len(sheet.above) == 4 and sheet.above[2].startswith(card.NEAREST)
    assert sheet.above[:2] == card.sheet(ours).above
    missed = card.missed(ours, fit)
    assert row in missed.rows and missed.columns == sheet.columns
    explained = card.explained(ours, fit)
    found = {who: (int(num), ids) for who, num, ids in explained.rows}
    assert "`mean.rnd.butterflies.average`" in found[card.WHO[False, True]][1]
    assert sum(num for num, _ in found.values()) == sum(n.is_learnt for n in ours)
    assert list(found) == list(card.WHO.values())


def test_claims_under_both_readings(runs):
    with without_simulation():
        ours, fit = claims.tested(runs), claims.tested(Nearest(runs))
        sheet = claims.claims_sheet(runs, ours, fit)
    assert sheet.columns[-2:] == ("nearest", "nearest: evidence")
    rows = {row[0]: row for row in sheet.rows}
    assert rows["`five_seeds_floor`"][-2] == "cannot fail here"
    assert rows["`highest_blind`"][-2] == rows["`highest_blind`"][4]
    assert rows["`collapse_is_neutrality`"][-2] == "not run"
    assert len(sheet.above) == 2 and sheet.above[1].startswith("Under the nearest reading: Of 38")
