"""When a number counts as reproduced, and the paper's claims on its own seeds."""

from collections import Counter

import numpy as np
import pytest
from test_paper_case import opened, plausible, whole_scores, write_run

from primax import stats
from primax.paper.claims.claims import CANNOT_FAIL, CLAIMS, FAILS, HOLDS
from primax.paper.claims.scores import Case
from primax.paper.evidence import Published, Runs
from primax.paper.experiments import CELLS
from primax.paper.pages.write import all_numbers
from primax.paper.published import published
from primax.paper.scorecard import card, effects, fixed, numbers, rule, scalars, spreads
from primax.paper.scorecard.card import Number
from primax.paper.tables.comparisons import FAMILY


@pytest.mark.parametrize(
    ("difference", "band", "expected"),
    [
        ((-0.1, 0.1), (-0.25, 0.25), rule.REPRODUCED),
        ((-0.25, 0.25), (-0.25, 0.25), rule.REPRODUCED),  # the ends belong to it
        ((0.05, 0.2), (-0.25, 0.25), rule.REPRODUCED),  # not zero, but near enough
        ((0.1, 0.3), (-0.25, 0.25), rule.ABOVE),
        ((-0.3, -0.1), (-0.25, 0.25), rule.BELOW),
        ((-0.1, 0.3), (-0.25, 0.25), rule.UNDECIDED),
        ((-9.0, 9.0), (-0.25, 0.25), rule.UNDECIDED),
        ((np.nan, np.nan), (-0.25, 0.25), rule.UNDECIDED),
        ((np.inf, np.inf), (-0.25, 0.25), rule.ABOVE),
    ],
)
def test_the_rule_by_hand(difference, band, expected):
    assert rule.verdict(difference, band) == expected


@pytest.mark.parametrize(
    ("difference", "text", "is_apart"),
    [
        ((0.001, 0.2), "[+0.00, +0.20]", True),  # although its text seems to hold zero
        ((-0.2, -0.05), "[-0.20, -0.05]", True),
        ((-0.05, 0.2), "[-0.05, +0.20]", False),
        ((0.0, 0.2), "[+0.00, +0.20]", False),
        ((1e-16, 1e-16), "[+0.00, +0.00]", False),  # two equal means, summed otherwise
    ],
)
def test_a_number_inside_the_margin_may_be_reliably_apart(difference, text, is_apart):
    found = rule.against("1.00", difference, (-0.25, 0.25))
    assert found == ("1.00", text, rule.REPRODUCED, is_apart)


def test_what_is_reproduced_and_yet_apart_is_counted():
    """Two of three; the one that is above, and is apart too, is another verdict."""
    near, off = ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1)), ((0.3, 0.4),)
    judged = [rule.against("1", difference, (-0.25, 0.25)) for difference in near + off]
    found = [Number(str(i), "tab:x", "w", "1", *j) for i, j in enumerate(judged)]
    found.append(Number("d", "tab:x", "w", "1", "1", "—", rule.REPRODUCED))
    told = "4 reproduced (2 of them differ reliably, but by less than the margin)"
    assert card.sheet(found).above[0] == f"Of 5 numbers that depend on learning: {told}, 1 above."
    few = "Of 3 numbers that depend on learning: 2 reproduced, 1 above."
    assert card.sheet(found[2:]).above[0] == few
    # What needs no learning is counted apart, and not by kind.
    found.append(Number("log5", "tab:x", "w", "1", "1", "—", rule.REPRODUCED))
    assert card.sheet(found[2:]).above[0] == f"{few} Of 1 that need none: 1 reproduced."
    assert "log5" not in card.KINDS and "1 of 1 differences" in card.sheet(found).above[1]


def test_a_value_without_spread_is_never_called_apart():
    """Printed as 6.0e-3 it may be 6.04e-3; and no zero has a sign."""
    found = rule.against_value("1.1", np.full(5, 1.1), 1.0, (-0.25, 0.25))
    assert found == ("1.1", "[+0.10, +0.10]", rule.REPRODUCED, False)
    assert rule.against("1", (-1e-5, 0.1), (-1.0, 1.0)).interval == "[+0.00, +0.10]"


def test_what_is_reproduced_is_counted_by_kind():
    words = (
        ("mean.x", "above"),
        ("iqm.x", "reproduced"),
        ("d.x", "reproduced"),
        ("std.x", "undecided"),
        ("y_abs.x", "below"),
    )
    found = [Number(name, "tab:x", "w", "1", "1", "—", verdict) for name, verdict in words]
    assert card.sheet(found).above[1] == (
        "Reproduced by kind: 1 of 2 means and IQMs of scores, 0 of 1 standard deviations, "
        "1 of 1 differences and effect sizes, 0 of 1 others."
    )


def test_a_factor_of_two_by_hand():
    assert rule.factor_band(8.0) == (-4.0, 8.0)
    assert rule.factor_band(-8.0) == (-8.0, 4.0)
    for ours, expected in ((4.1, rule.REPRODUCED), (15.9, rule.REPRODUCED), (16.1, rule.ABOVE),
                           (3.9, rule.BELOW)):  # fmt: skip
        values = np.full(5, ours)
        assert rule.verdict(rule.from_value(values, 8.0), rule.factor_band(8.0)) == expected


def test_a_first_decile_is_what_is_printed():
    """0.050 may be 0.0495 to 0.0505: no factor of two, but the value."""
    for ours, spread, expected in (
        (0.0544, 0.0005, rule.ABOVE),
        (0.0456, 0.0005, rule.BELOW),
        (0.0504, 0.0001, rule.REPRODUCED),  # as it is rounded
        (0.0520, 0.0100, rule.REPRODUCED),  # the interval holds it
        (0.0520, 0.2000, rule.UNDECIDED),  # and much else
        (0.2000, 0.0010, rule.ABOVE),
    ):
        values = ours + spread * np.array([-1.0, 0.0, 1.0, 0.5, -0.5])
        assert rule.against_printed("x", values, 0.05, ".2g").verdict == expected, ours


def test_standard_deviations_by_hand():
    """Eleven seeds of std 3: theirs of 3 is inside a factor of two of it, theirs of 0.5 is not."""
    values = np.repeat(np.arange(15.0), 20)
    std = values.std(ddof=1)
    low, high = rule.from_std(values, std, 300)
    assert low < 0 < high < 0.2 * std
    wide = rule.from_std(values, std, 15)
    # The std of 15 normal seeds has a relative error of 1 / sqrt(28).
    assert (wide[1] - wide[0]) / 2 == pytest.approx(1.96 * std / np.sqrt(28), rel=0.1)
    assert spreads.band(0.67, 2) == pytest.approx((-0.335, 0.67))
    assert spreads.band(0.0, 2) == (-0.005, 0.005)  # printed as 0.00
    assert rule.verdict(rule.from_std(values, std / 6, 15), spreads.band(std / 6, 2)) == rule.ABOVE


def test_effects_of_redraws_are_those_of_single_samples():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, (2, 4, 15)) / 20
    for i in range(4):
        d, poi = effects.cohens_d(a, b)[i], effects.improvement(a, b)[i]
        assert d == pytest.approx(stats.cohens_d(a[i], b[i]))
        assert poi == pytest.approx(stats.probability_of_improvement(a[i], b[i]))
    same = rule.effect_difference((a[0], b[0]), (a[0], b[0]), effects.cohens_d)
    assert same[0] < 0 < same[1]
    alike = (
        np.array([[1.0, 1.0], [1.0, 1.0], [0.3, 0.3]]),
        np.array([[1.0, 1.0], [0.0, 0.0], [1, 1]]),
    )
    assert effects.cohens_d(*alike).tolist() == [0.0, np.inf, -np.inf]
    gone = rule.effect_difference((a[0], b[0]), (a[0] + 9, b[0]), effects.cohens_d)
    assert gone[1] < 0


def test_a_spread_widens_the_interval():
    ours = np.array([1.0, 1.1, 0.9])
    exact_ends, wide = rule.from_value(ours, 1.0), rule.from_spread(ours, 1.0, 1.0, 4)
    assert wide[0] < exact_ends[0] < 0 < exact_ends[1] < wide[1]
    # std / sqrt(4) = 0.5 and 0.05 of ours: 1.96 times their root sum of squares.
    assert wide[1] - wide[0] == pytest.approx(2 * 1.96 * np.hypot(0.5, 0.047), rel=0.05)


def test_difference_interval_by_hand():
    assert stats.difference_interval([2.0, 2.0], [1.0, 1.0, 1.0]) == (1.0, 1.0)
    # Means of two redraws of {0, 1} on both sides: from -1 to 1, each end with a chance of 1/16.
    assert stats.difference_interval([0, 1], [0, 1]) == (-1.0, 1.0)
    a, b = np.random.default_rng(0).normal([[1.0], [0.0]], 1.0, (2, 30))
    low, high = stats.difference_interval(a, b)
    error = np.sqrt(a.var() / 30 + b.var() / 30)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.05)
    assert stats.difference_interval(a, b, stats.iqm)[0] < stats.iqm(a) - stats.iqm(b)


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Runs:
    """Folders that hold the paper's own numbers."""
    home = tmp_path_factory.mktemp("papers")
    mi = {w: published()["mutual_information"][w]["values"] for w in ("butterflies", "maze")}
    for name, cell in CELLS.items():
        found = {
            m: Published().sample(cell.variant.name, cell.world, m) for m in ("average", "peak")
        }
        values = {m: sample.values for m, sample in found.items() if sample is not None}
        if values:
            windows = {"mutual_information": np.repeat(np.array(mi[cell.world])[:, None], 10, 1)}
            write_run(home / name, cell, whole_scores(values), windows)
    return Runs.under(home)


def test_the_papers_own_seeds_are_reproduced(papers):
    """All but a few whose seeds differ so much that even they themselves could not be told."""
    found = [*numbers.means(papers), *numbers.iqms(papers), *effects.comparisons(papers)]
    found += spreads.of_scores(papers)
    assert len(found) == 2 * (15 + 6) + 21 + 11 * 6
    odd = {n.id: n.verdict for n in found if n.verdict != rule.REPRODUCED}
    wide = {
        "mean.task.butterflies.average",
        "mean.task.maze.peak",
        "iqm.task.butterflies.average",
        "iqm.smirl.butterflies.peak",
        "delta.prime-prime_k1.maze.peak",
    }
    assert set(odd.values()) == {rule.UNDECIDED}
    # Fifteen seeds hardly tell an effect size or a standard deviation to a factor of two.
    vague = Counter(name.partition(".")[0] for name in odd if name not in wide)
    assert wide <= set(odd) and vague == {"d": 9, "PoI": 7, "std": 7}


def test_a_number_without_a_run_says_which(tmp_path):
    found = list(numbers.means(Runs.under(tmp_path)))
    assert {n.verdict for n in found} == {rule.NOT_RUN}
    assert found[0].ours == "(smirl_butterflies: not run)"


def changed(tmp_path, shift: float) -> dict[str, Number]:
    """Numbers of two runs; the second's peaks lie `shift` above the first's published ones."""
    for name in ("prime_maze", "smirl_maze"):
        values = {"peak": Published().sample(name.removesuffix("_maze"), "maze", "peak").values}
        if name == "prime_maze":
            values["peak"] = np.clip(values["peak"] + shift, 0, 1)
        write_run(tmp_path / name, CELLS[name], whole_scores(values))
    runs = Runs.under(tmp_path)
    return {n.id: n for n in (*numbers.means(runs), *effects.comparisons(runs))}


def test_verdicts_follow_the_scores(tmp_path):
    high = changed(tmp_path / "high", 0.2)
    assert high["mean.prime.maze.peak"].verdict == rule.ABOVE
    low = changed(tmp_path / "low", -0.9)
    assert low["mean.prime.maze.peak"].verdict == rule.BELOW
    # PRIME less SMIRL: the effect is gone, and every yes became a no.
    pair = "prime-smirl.maze.peak"
    assert low[f"delta.{pair}"].verdict == rule.BELOW
    assert low[f"d.{pair}"].verdict == rule.BELOW
    assert low[f"interval.{pair}"].verdict == rule.DIFFERS
    assert low[f"holm_wilcoxon.{pair}"].verdict == rule.NOT_RUN, "its family is not whole"


def test_an_effect_in_the_other_direction_is_not_reproduced():
    assert effects.side_of_zero(0.1, 0.2) == "above zero"
    assert effects.side_of_zero(-0.2, -0.1) == "below zero"
    assert effects.side_of_zero(-0.2, 0.1) == "holds zero"
    given = published()["comparisons"]["rows"][9]  # PRIME less gate off, BF peak: not resolved
    values = np.arange(15.0)
    row = stats.compare_all({"a": values, "b": values + 5}, [("a", "b")])[0]
    verdicts = {name: judged()[2] for name, _, judged in effects._outcomes(given, (row, 15), None)}
    assert verdicts["interval"] == verdicts["holm_wilcoxon"] == rule.DIFFERS


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Runs:
    """PRIME, the task's learner, SMIRL and the walker, with telemetry near the paper's."""
    home = tmp_path_factory.mktemp("both")
    for variant in ("prime", "task", "smirl", "random"):  # and neither RND nor Disagreement
        for world in ("butterflies", "maze"):
            cell = CELLS[f"{variant}_{world}"]
            scores, windows, columns = plausible(cell, seeds=5)
            write_run(home / cell.name, cell, scores, windows, **columns)
    return Runs.under(home)


def test_scalars_beside_the_papers(both):
    parts = (scalars.with_spread, scalars.magnitudes, scalars.ranges, scalars.open_points,
             spreads.of_scalars)  # fmt: skip
    found = {n.id: n for part in parts for n in part(both)}
    assert found["count.butterflies.tail20"].verdict == rule.REPRODUCED
    assert found["count.maze.tail20"].verdict == rule.ABOVE  # 6e-3 where the paper has 3e-4
    assert found["aleatoric.maze.tail20"].verdict == rule.REPRODUCED
    assert found["delta_pi.butterflies"].verdict == rule.REPRODUCED
    assert found["y_abs.butterflies"].verdict == rule.REPRODUCED
    assert found["y_abs.maze"].verdict == rule.ABOVE
    assert found["gate_clamp.maze"].verdict == rule.UNDETERMINED
    assert "0.67 of elements with data" in found["gate_clamp.maze"].ours
    assert rule.NOT_RUN not in {n.verdict for n in found.values()}


def test_where_the_rows_without_data_decide_nothing_is_determined(tmp_path):
    """2.3e-3 of all rows is the paper's; were nine tenths without data, those with it have ten times that."""
    cell = CELLS["prime_butterflies"]
    verdicts = []
    for i, absent in enumerate((0.1, 0.9)):
        scores, windows, columns = plausible(cell)
        windows["no_data"] = np.full_like(windows["no_data"], absent)
        write_run(tmp_path / str(i) / cell.name, cell, scores, windows, **columns)
        found = {n.id: n for n in scalars.magnitudes(Runs.under(tmp_path / str(i)))}
        verdicts.append(found["aleatoric.butterflies.tail20"].verdict)
    assert verdicts == [rule.REPRODUCED, rule.UNDETERMINED]


def test_targets_are_judged_by_the_largest_of_each_minibatch_where_a_run_kept_it(both, tmp_path):
    """The mean of all targets is far off here, and so is the largest of a window."""
    cell = CELLS["prime_butterflies"]
    scores, windows, columns = plausible(cell)
    top = windows["y_abs"]
    windows |= {"y_abs_top": top, "y_abs": top / 9, "y_abs_max": 9 * top}
    write_run(tmp_path / cell.name, cell, scores, windows, **columns)
    found = {n.id: n for n in scalars.ranges(Runs.under(tmp_path))}["y_abs.butterflies"]
    assert found.verdict == rule.REPRODUCED and "largest of each minibatch; all" in found.ours
    older = {n.id: n for n in scalars.ranges(both)}["y_abs.butterflies"]
    assert "largest of each window; all" in older.ours


def test_exact_numbers_and_counts(both):
    found = {n.id: n for part in (fixed.exact, fixed.counts) for n in part(both)}
    for name in ("random.catch", "random.maze", "position_only", "floor.wilcoxon", "ceiling", "log5",
                 "floor.mann_whitney", "seeds.coverage"):  # fmt: skip
        assert found[name].verdict == rule.REPRODUCED, found[name]
    # All 32 are the paper's, but two of them decide nothing here.
    assert found["settings.prime"].ours.startswith("30; calibration_b_max has no effect")
    assert found["settings.prime"].verdict == rule.DIFFERS
    assert found["settings.baselines"].verdict == rule.NOT_RUN
    assert found["seeds.smirl"].ours == "5 of 5" and found["seeds.smirl"].verdict == rule.ABOVE


def test_every_id_is_unique_and_every_remark_has_its_number(tmp_path):
    runs = Runs.under(tmp_path)
    found = all_numbers(runs)
    ids = [n.id for n in found]
    assert len(set(ids)) == len(ids)
    assert set(card.remarks()) <= set(ids)
    assert {n.verdict for n in found} <= set(rule.VERDICTS)
    sheet = card.sheet(found)
    assert len(sheet.rows) == len(found) and "not run" in sheet.above[0]


def test_a_remark_stands_beside_its_number(monkeypatch):
    monkeypatch.setattr(card, "remarks", lambda: {"b": "why"})
    rows = [
        Number(i, "tab:x", "w", "1", "2", "—", v)
        for i, v in (("a", rule.ABOVE), ("b", rule.REPRODUCED))
    ]
    assert [row[-1] for row in card.sheet(rows).rows] == ["", "why"]


# --- claims ------------------------------------------------------------------------------------

GIVEN = {  # on the paper's own per-seed values
    "smirl_fails_maze", "disagreement_fails_butterflies", "rnd_attains_both", "prime_attains_both",
    "positions_enter", "baselines_win_maze", "task_iqm", "uniform_density", "mi_positive",
    "mi_larger", "leads_ablations", "ablation_intervals", "k1_catch", "direction_without_gate",
    "baselines_separate", "welch_agrees", "five_seeds_floor", "five_seeds_catch",
}  # fmt: skip


def test_what_the_paper_claims_of_its_seeds_holds_on_them(tmp_path):
    case = Case(Published(), Runs.under(tmp_path))
    verdicts = {claim.id: claim.verdict(case)[0] for claim in CLAIMS}
    assert {name for name, verdict in verdicts.items() if verdict == HOLDS} == GIVEN
    assert {name for name, verdict in verdicts.items() if verdict == FAILS} == {"highest_blind"}
    assert set(verdicts.values()) == {HOLDS, FAILS, "not given by seed"}


def test_claims_can_fail_and_say_why(both):
    case = Case(both, both)
    found = {claim.id: claim.verdict(case) for claim in CLAIMS if claim.id != "close_pursuit"}
    assert found["smirl_fails_maze"][0] == FAILS  # it reaches the goal in these runs
    assert found["mi_walker"][0] == FAILS
    assert found["coverage_contracts"] == (HOLDS, found["coverage_contracts"][1])
    assert found["highest_blind"] == (FAILS, "stay 2.45, sweep 3.29")
    assert found["prime_attains_both"][0] == HOLDS
    assert found["rnd_attains_both"] == ("not run", "rnd_butterflies: not run")


def test_a_test_that_cannot_fail_here_is_no_success(both):
    """Each says what decides it, with numbers from the runs."""
    case = Case(both, both)
    found = {claim.id: claim.verdict(case) for claim in CLAIMS if claim.forced is not None}
    failing = {name for name, (verdict, _) in found.items() if verdict == FAILS}
    assert failing == {"smirl_fails_maze", "mi_walker", "gate_order", "v_epi_is_count"}
    assert {verdict for verdict, _ in found.values()} == {CANNOT_FAIL, FAILS}
    # κγ² = 0.405; 3,500 keys and 1,000 rows not yet counted in a ring of 100,000, and 500 keys.
    assert found["count_decays"][1].endswith("(keys + window)/rows, 1.8e-02 and 6.1e-03")
    margin = both.sample("prime", "maze", "tail:pi_ref_from_u").values.mean()
    assert found["lotv_collapses"][1].endswith(f" and {margin**4:.0e}")
    theirs = Case(Published(), both)
    forced = {c.id: c.verdict(theirs)[0] for c in CLAIMS if c.forced is not None}
    assert CANNOT_FAIL not in forced.values()


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("heads_supply_penalty", {"wins_heads": 0.02, "wins_phi": 0.5}, HOLDS),
        ("heads_supply_penalty", {"wins_heads": 0.002, "wins_phi": 0.5}, FAILS),
        ("collapse_is_neutrality", {"v_epi": 1e-5, "penalty": 1e-4, "last": 1}, HOLDS),
        ("collapse_is_neutrality", {"v_epi": 1e-3, "penalty": 1e-4, "last": 1}, FAILS),
        ("collapse_is_neutrality", {"v_epi": 1e-5, "penalty": 1e-4, "last": 0}, FAILS),
        ("state_at_peak", {"mutual_information": 0.5}, HOLDS),
        ("state_at_peak", {"mutual_information": 0.1}, FAILS),
        ("noise_depletes", {"score": 5.6}, HOLDS),
        ("noise_depletes", {"score": 5.4}, FAILS),
    ],
)
def test_what_the_runs_say_of_the_added_claims(tmp_path, name, changes, expected):
    """PRIME at constant values; with λ = 0 the last episodes end as asked; a walker has MI 0.2."""
    changes = dict(changes)
    score, last = changes.pop("score", 1.0), changes.pop("last", 0)
    columns = ("wins_psi", "v_ale_heads", "v_ale", "mutual_information")
    values = dict.fromkeys(columns, 1e-3) | changes
    for cell in ("prime_butterflies", "prime_maze", "prime_no_penalty_maze", "random_maze"):
        scores = np.full((3, 100), score if cell == "prime_butterflies" else 1.0)
        windows = {column: np.full((3, 10), value) for column, value in values.items()}
        if cell == "prime_no_penalty_maze":
            scores[:, -30:] = last
        if cell == "random_maze":
            windows = {"mutual_information": np.full((3, 10), 0.2)}
        write_run(tmp_path / cell, CELLS[cell], scores, windows)
    runs = Runs.under(tmp_path)
    claim = next(claim for claim in CLAIMS if claim.id == name)
    assert claim.verdict(Case(runs, runs))[0] == expected


def test_one_configuration_sees_a_difference(both, tmp_path):
    for world in ("butterflies", "maze"):
        cell = CELLS[f"prime_{world}"]
        scores, windows, columns = plausible(cell)
        folder = write_run(tmp_path / cell.name, cell, scores, windows, **columns)
    text = (folder / "config.json").read_text().replace('"gamma": 0.9', '"gamma": 0.8')
    (folder / "config.json").write_text(text)
    assert opened(folder).settings["critics.gamma"] == 0.8
    runs = Runs.under(tmp_path)
    claim = next(claim for claim in CLAIMS if claim.id == "one_configuration")
    assert claim.verdict(Case(runs, runs)) == (FAILS, "differ: critics.gamma")


def test_every_claim_says_when_it_holds():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 38
    assert all(claim.rule.endswith(".") and claim.words.endswith(".") for claim in CLAIMS)
    assert len(FAMILY) == 11
