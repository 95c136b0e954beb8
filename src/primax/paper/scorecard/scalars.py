"""The magnitudes the paper gives in its text: with a spread, without one, as a range, left open."""

from collections.abc import Iterator

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, bracket, plus_minus
from primax.paper.evidence import Runs, need
from primax.paper.published import published
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged


def short(value: float) -> str:
    """Three figures."""
    return f"{value:.3g}"


def with_spread(runs: Runs) -> Iterator[Number]:
    """Means ± std of PRIME."""
    paper = published()
    cells = {
        ("mi.butterflies", "tab:mi", "butterflies", "tail:mutual_information"): paper[
            "mutual_information"
        ]["butterflies"],
        ("mi.maze", "tab:mi", "maze", "tail:mutual_information"): paper["mutual_information"][
            "maze"
        ],
        ("last.maze", "sec:eval-h1", "maze", "last"): paper["evaluation"][
            "prime_maze_last_rolling"
        ],
        ("coverage_fall", "sec:eval-butter", "butterflies", "coverage_fall"): paper["behaviour"][
            "coverage_fall"
        ],
        ("distance", "sec:eval-butter", "butterflies", "distance_tail"): paper["behaviour"][
            "min_distance_tail20"
        ],
        ("greedy_entropy", "sec:eval-butter", "maze", "tail:greedy_entropy"): paper["behaviour"][
            "argmax_q_entropy_maze_tail20"
        ],
    }
    for world, given in paper["discussion"]["reference_policy_distance_tail20"].items():
        cells[f"delta_pi.{world}", "sec:discussion", world, "tail:pi_ref_from_u"] = given
    for (name, where, world, measure), given in cells.items():
        digits = len(str(given["std"]).partition(".")[2])
        what = f"PRIME on {world.capitalize()}: {measure.replace('tail:', 'tail-20% ')}"
        printed = f"{given['mean']:g} ± {given['std']:g}"
        stated = Stated(name, where, what.replace("_", " "), printed)
        yield stated.found(lambda w=world, m=measure, g=given, d=digits: _spread(runs, w, m, g, d))


def _spread(runs: Runs, world: str, measure: str, given: dict, digits: int) -> Judged:
    ours = need(runs, "prime", world, measure)
    difference = rule.from_spread(ours, given["mean"], given["std"], 15)
    band = rule.within(rule.MARGINS[world, measure])
    text = plus_minus(*stats.mean_std(ours), digits)
    return rule.against(text, difference, band, f".{digits}f")


def magnitudes(runs: Runs) -> Iterator[Number]:
    """Values without a spread: a factor of two."""
    parts = published()["components"]
    cells = []
    for name, column in (("cross_head_variance", "v_lotv"), ("count", "v_count")):
        for world, given in parts[name].items():
            for when, kind in (("first_decile", "first"), ("tail20", "tail")):
                if when in given:
                    cells.append((f"{name}.{world}.{when}", world, f"{kind}:{column}", given[when]))
    for world, value in published()["ablation_text"]["aleatoric_tail20"].items():
        cells.append((f"aleatoric.{world}.tail20", world, "tail:v_ale", value))
    for name, world, measure, value in cells:
        words = name.replace(f".{world}", "").replace(".", ", ").replace("_", " ")
        what = f"PRIME on {world.capitalize()}: {words}"
        stated = Stated(name, "app:estimators, sec:eval-gate", what, short(value))
        yield stated.found(lambda w=world, m=measure, v=value: _factor(runs, w, m, v))


def _factor(runs: Runs, world: str, measure: str, value: float) -> Judged:
    ours = need(runs, "prime", world, measure)
    text = short(float(ours.mean()))
    return rule.against_value(text, ours, value, rule.factor_band(value), ".2g")


def ranges(runs: Runs) -> Iterator[Number]:
    """Ranges over seeds: our mean within a factor of two of their middle; the peak's by its margin."""
    for world, (low, high) in published()["ceiling"]["target_magnitude_tail20"].items():
        what = f"PRIME on {world.capitalize()}: tail-20% |y|, range over seeds"
        stated = Stated(f"y_abs.{world}", "sec:eval-theory", what, bracket(low, high))
        middle = (low + high) / 2
        ends = (middle / rule.FACTOR, middle * rule.FACTOR)
        yield stated.found(lambda w=world, e=ends: _range(runs, w, "tail:y_abs", e))
    low, high = published()["evaluation"]["prime_maze_peak_range"]
    stated = Stated(
        "peak_range.maze",
        "sec:eval-h1",
        "PRIME on Maze: peak, range over seeds",
        bracket(low, high),
    )
    margin = rule.MARGINS["maze", "peak"]
    yield stated.found(lambda: _range(runs, "maze", "peak", (low - margin, high + margin), True))


def _range(
    runs: Runs, world: str, measure: str, ends: tuple[float, float], is_each: bool = False
) -> Judged:
    ours = need(runs, "prime", world, measure)
    middle = sum(ends) / 2
    low, high = (ours.min(), ours.max()) if is_each else stats.interval(ours, np.mean)
    band = (ends[0] - middle, ends[1] - middle)
    verdict = rule.verdict((float(low) - middle, float(high) - middle), band)
    return Judged(bracket(float(ours.min()), float(ours.max())), ABSENT, verdict)


def open_points(runs: Runs) -> Iterator[Number]:
    """What the text does not settle."""
    for world, value in published()["ablation_text"]["gate_clamped_share_of_batches"].items():
        what = f'PRIME on {world.capitalize()}: share the gate clamps, "of batches"'
        yield Stated(f"gate_clamp.{world}", "sec:eval-gate", what, f"{value:.2f}").found(
            lambda w=world: _clamped(runs, w)
        )
    value = published()["ceiling"]["largest_rolling_q_taken"]
    what = "PRIME on Butterflies: largest rolling-20 of |q_taken|max over seeds"
    yield Stated("q_taken.rolling", "sec:eval-theory", what, f"{value:.2f}").found(
        lambda: _largest(runs)
    )


def _clamped(runs: Runs, world: str) -> Judged:
    shares = {
        "of elements with data": "clamp_share",
        "of minibatches": "tail:clamped_batch",
        "no data": "tail:no_data",
    }
    parts = [f"{need(runs, 'prime', world, m).mean():.2f} {name}" for name, m in shares.items()]
    return Judged("; ".join(parts), ABSENT, rule.UNDETERMINED)


def _largest(runs: Runs) -> Judged:
    ours = need(runs, "prime", "butterflies", "rolling:q_taken_abs_max")
    return Judged(f"{ours.max():.2f}", ABSENT, rule.UNDETERMINED)
