"""The magnitudes the paper gives in its text: with a spread, without one, as a range, left open."""

from collections.abc import Callable, Iterator

import numpy as np

from primax import stats
from primax.output.sheet import ABSENT, bracket, plus_minus
from primax.paper.evidence import Runs, need
from primax.paper.published import published
from primax.paper.scorecard import rule
from primax.paper.scorecard.card import Number, Stated
from primax.paper.scorecard.rule import Judged
from primax.paper.scorecard.stated import in_text


def short(value: float) -> str:
    """Three figures."""
    return f"{value:.3g}"


def with_spread(runs: Runs) -> Iterator[Number]:
    """Means ± std of PRIME."""
    for name, where, world, measure, what, given in in_text():
        digits = len(str(given["std"]).partition(".")[2])
        stated = Stated(name, where, what, f"{given['mean']:g} ± {given['std']:g}")
        yield stated.found(lambda w=world, m=measure, g=given, d=digits: _spread(runs, w, m, g, d))


def _spread(runs: Runs, world: str, measure: str, given: dict, digits: int) -> Judged:
    ours = need(runs, "prime", world, measure)
    difference = rule.from_spread(ours, given["mean"], given["std"], 15)
    band = rule.within(rule.MARGINS[world, measure])
    text = plus_minus(*stats.mean_std(ours), digits)
    return rule.against(text, difference, band, f".{digits}f")


def magnitudes(runs: Runs) -> Iterator[Number]:
    """Values without a spread: a factor of two; of a first decile, what is printed."""
    cells = []
    for name, column in (("cross_head_variance", "v_lotv"), ("count", "v_count")):
        for world, given in published()["components"][name].items():
            for when, kind, judge in (
                ("first_decile", "first", _printed),
                ("tail20", "tail", _factor),
            ):
                if when in given:
                    cell = (f"{name}.{world}.{when}", world, f"{kind}:{column}", given[when], judge)
                    cells.append(cell)
    for world, value in published()["ablation_text"]["aleatoric_tail20"].items():
        cells.append((f"aleatoric.{world}.tail20", world, "tail:v_ale", value, _aleatoric))
    for name, world, measure, value, judge in cells:
        words = name.replace(f".{world}", "").replace(".", ", ").replace("_", " ")
        what = f"PRIME on {world.capitalize()}: {words}"
        stated = Stated(name, "app:estimators, sec:eval-gate", what, short(value))
        ours = lambda w=world, m=measure: need(runs, "prime", w, m)  # noqa: E731
        absent = lambda w=world: need(runs, "prime", w, "tail:no_data")  # noqa: E731
        yield stated.found(lambda j=judge, o=ours, v=value, a=absent: j(o(), v, a))


def _factor(ours: stats.Floats, value: float, _: Callable[[], stats.Floats]) -> Judged:
    text = short(float(ours.mean()))
    return rule.against_value(text, ours, value, rule.factor_band(value), ".2g")


def _printed(ours: stats.Floats, value: float, _: Callable[[], stats.Floats]) -> Judged:
    """Where the schedule decides more than the policy, twice the value is another value."""
    return rule.against_printed(short(float(ours.mean())), ours, value, ".2g")


def _aleatoric(ours: stats.Floats, value: float, absent: Callable[[], stats.Floats]) -> Judged:
    """Of all rows, those without data as zeros, and of rows with data; where that decides, neither."""
    readings = ours, ours / np.maximum(1 - absent(), 1e-12)
    judged = [_factor(of, value, absent) for of in readings]
    text = f"{judged[0].ours}; {judged[1].ours} of rows with data"
    if judged[0].verdict != judged[1].verdict:
        return Judged(text, ABSENT, rule.UNDETERMINED)
    return judged[0]._replace(ours=text)


def ranges(runs: Runs) -> Iterator[Number]:
    """Ranges over seeds: our mean within a factor of two of their middle; the peak's by its margin."""
    for world, (low, high) in published()["ceiling"]["target_magnitude_tail20"].items():
        what = f"PRIME on {world.capitalize()}: tail-20% |y|, range over seeds"
        stated = Stated(f"y_abs.{world}", "sec:eval-theory", what, bracket(low, high))
        middle = (low + high) / 2
        ends = (middle / rule.FACTOR, middle * rule.FACTOR)
        yield stated.found(lambda w=world, e=ends: _largest_targets(runs, w, e))
    low, high = published()["evaluation"]["prime_maze_peak_range"]
    stated = Stated(
        "peak_range.maze",
        "sec:eval-h1",
        "PRIME on Maze: peak, range over seeds",
        bracket(low, high),
    )
    margin = rule.MARGINS["maze", "peak"]
    yield stated.found(lambda: _range(runs, "maze", "peak", (low - margin, high + margin), True))


def _largest_targets(runs: Runs, world: str, ends: tuple[float, float]) -> Judged:
    """The sentence says that targets stay below a ceiling: it is about the largest, not the mean."""
    is_kept = runs.sample("prime", world, "tail:y_abs_top") is not None
    measure, of = ("y_abs_top", "minibatch") if is_kept else ("y_abs_max", "window")
    judged = _range(runs, world, f"tail:{measure}", ends)
    mean = need(runs, "prime", world, "tail:y_abs")
    beside = f"all targets {bracket(float(mean.min()), float(mean.max()))}"
    return judged._replace(ours=f"{judged.ours} (largest of each {of}; {beside})")


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
