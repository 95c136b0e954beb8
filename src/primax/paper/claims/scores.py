"""Tests of claims about scores; a test's docstring says when its claim holds."""

from dataclasses import dataclass

import numpy as np

from primax import stats
from primax.output.sheet import bracket
from primax.paper.evidence import MissingError, Runs, Source, need, pair
from primax.paper.references import average
from primax.paper.tables.comparisons import FAMILY, Pair, compared

Result = tuple[bool, str]
ALPHA = 0.05


@dataclass(frozen=True)
class Case:
    """Whose numbers are asked, and the runs whose worlds give the references."""

    source: Source
    runs: Runs

    def get(self, variant: str, world: str, measure: str) -> stats.Floats:
        """A value a seed."""
        return need(self.source, variant, world, measure)

    @property
    def is_ours(self) -> bool:
        """Whether the numbers are those of the runs."""
        return self.source is self.runs

    def exact(self, world: str, policy: str) -> float:
        """A scripted policy's average."""
        return average(self.runs, world, policy)


def mean_interval(values: stats.Floats) -> tuple[float, float, str]:
    """The ends of the mean's interval, and a text."""
    low, high = stats.interval(values, np.mean)
    return low, high, f"{values.mean():.3g} [{low:.3g}, {high:.3g}]"


def smirl_fails_maze(case: Case) -> Result:
    """The interval of its mean peak lies below 0.1, two episodes of twenty."""
    _, high, text = mean_interval(case.get("smirl", "maze", "peak"))
    return high < 0.1, f"peak {text}"


def disagreement_below_random(case: Case) -> Result:
    """The interval of its mean catch lies below the random walker's exact mean."""
    _, high, text = mean_interval(case.get("disagreement", "butterflies", "average"))
    walker = case.exact("butterflies", "random")
    return high < walker, f"catch {text}, walker {walker:.2f}"


def _attains_both(case: Case, variant: str) -> Result:
    blind = case.exact("butterflies", "centre_stay")
    catch, _, catch_text = mean_interval(case.get(variant, "butterflies", "average"))
    peak, _, peak_text = mean_interval(case.get(variant, "maze", "peak"))
    evidence = f"catch {catch_text} against {blind:.2f}; Maze peak {peak_text}"
    return catch > blind and peak > 0.5, evidence


def rnd_attains_both(case: Case) -> Result:
    """Catches lie above the position-only comparator and the Maze peak above 0.5, by their intervals."""
    return _attains_both(case, "rnd")


def prime_attains_both(case: Case) -> Result:
    """Catches lie above the position-only comparator and the Maze peak above 0.5, by their intervals."""
    return _attains_both(case, "prime")


def gate_off_attains_both(case: Case) -> Result:
    """As for PRIME, with the gate off."""
    return _attains_both(case, "prime_no_gate")


def above_blind_sweep(case: Case) -> Result:
    """The interval of its mean catch lies above a blind sweep's exact mean, not only above a blind stay's."""
    low, _, text = mean_interval(case.get("prime", "butterflies", "average"))
    sweep = case.exact("butterflies", "sweep")
    return low > sweep, f"catch {text}, sweep {sweep:.2f}"


def highest_blind(case: Case) -> Result:
    """A blind sweep, row by row, scores no more than going to the centre and staying (both exact)."""
    stay, sweep = (case.exact("butterflies", policy) for policy in ("centre_stay", "sweep"))
    return sweep <= stay, f"stay {stay:.2f}, sweep {sweep:.2f}"


def baselines_win_maze(case: Case) -> Result:
    """The paired interval of the difference is below zero, for PRIME minus RND and for PRIME minus Disagreement."""
    found = []
    for other in ("rnd", "disagreement"):
        a, b = pair(case.source, ("prime", other), "maze", "peak")
        found.append((other, *stats.paired_interval(a, b)))
    text = "; ".join(f"minus {name} {bracket(low, high, 2, '+')}" for name, low, high in found)
    return all(high < 0 for _, _, high in found), text


def late_collapse(case: Case) -> Result:
    """For PRIME, RND and Disagreement the mean last rolling-20 is at most half the mean peak."""
    parts, is_held = [], True
    for variant in ("prime", "rnd", "disagreement"):
        peak, last = (case.get(variant, "maze", m).mean() for m in ("peak", "last"))
        is_held &= bool(last <= peak / 2)
        parts.append(f"{variant} {peak:.2f} to {last:.2f}")
    return is_held, "; ".join(parts)


def task_sustains(case: Case) -> Result:
    """The last rolling-20 is at least 0.95 on 14 of 15 seeds or more (ε leaves one miss in twenty)."""
    values = case.get("task", "maze", "last")
    return bool(np.mean(values >= 0.95) >= 14 / 15), f"{np.sum(values >= 0.95)} of {len(values)}"


def task_iqm(case: Case) -> Result:
    """The IQM of its Maze peak prints as 1.00."""
    value = stats.iqm(case.get("task", "maze", "peak"))
    return value >= 0.995, f"IQM {value:.3f}"


def _family(case: Case, is_ablation: bool) -> dict[Pair, stats.ComparisonRow]:
    """Half of the paper's family, corrected over the whole of it; nothing may be missing."""
    found = compared(case.source, FAMILY)
    rows = {}
    for each, result in found.items():
        if isinstance(result, MissingError):
            raise result
        if each.second.startswith("prime") == is_ablation:
            rows[each] = result[0]
    return rows


def leads_ablations(case: Case) -> Result:
    """All six differences of means are positive."""
    deltas = []
    for each in FAMILY:
        if each.second.startswith("prime"):
            a, b = pair(case.source, (each.first, each.second), each.world, each.measure)
            deltas.append(float(np.mean(a - b)))
    return min(deltas) > 0, f"{sum(x > 0 for x in deltas)} of 6; least {min(deltas):+.3f}"


def ablation_intervals(case: Case) -> Result:
    """The interval lies above zero on five of the six, or on all."""
    rows = _family(case, True)
    above = sum(row.result.low > 0 for row in rows.values())
    return above >= 5, f"{above} of 6"


def k1_catch(case: Case) -> Result:
    """Of twelve corrected ablation p values only that of Mann-Whitney on K = 1 catches is below 0.05."""
    below = {}
    for each, row in _family(case, True).items():
        tests = {"Wilcoxon": row.holm_wilcoxon, "Mann-Whitney": row.holm_mann_whitney}
        if found := [name for name, p in tests.items() if p < ALPHA]:
            below[each] = found
    text = "; ".join(f"{each.label} by {' and '.join(found)}" for each, found in below.items())
    wanted = {"prime-prime_k1.butterflies.average": ["Mann-Whitney"]}
    return {each.id: found for each, found in below.items()} == wanted, f"below: {text or 'none'}"


def baselines_separate(case: Case) -> Result:
    """All five corrected signed-rank p are below 0.05 and all five paired intervals above zero."""
    rows = list(_family(case, False).values())
    clear = sum(row.holm_wilcoxon < ALPHA and row.result.low > 0 for row in rows)
    return clear == 5, f"{clear} of 5; largest p {max(row.holm_wilcoxon for row in rows):.3g}"


def welch_agrees(case: Case) -> Result:
    """The two corrected p values are on the same side of 0.05 in all eleven."""
    rows = [*_family(case, False).values(), *_family(case, True).values()]
    agree = sum((r.holm_welch < ALPHA) == (r.holm_mann_whitney < ALPHA) for r in rows)
    return agree == 11, f"{agree} of 11"


def five_seeds_floor(case: Case) -> Result:
    """Eleven times the smallest p of either rank test at five seeds is above 0.05 (arithmetic)."""
    rising = np.arange(1.0, 6)
    floors = stats.wilcoxon_exact(rising, -rising), stats.mann_whitney_exact(rising, -rising)
    return 11 * min(floors) > ALPHA, f"11 times {floors[0]:.4f} and {floors[1]:.4f}"


def five_seeds_catch(case: Case) -> Result:
    """On seeds 0 to 4 alone neither exact rank test of PRIME against RND on catches is below 0.05."""
    a, b = pair(case.source, ("prime", "rnd"), "butterflies", "average")
    if len(a) < 5:
        raise MissingError("five seeds", "not run")
    found = stats.compare(a[:5], b[:5])
    text = f"p {found.p_wilcoxon:.3f} and {found.p_mann_whitney:.3f}; Δ {found.delta:+.3f}"
    least = min(found.p_wilcoxon, found.p_mann_whitney)
    return least >= ALPHA, f"{text} {bracket(found.low, found.high, 3, '+')}"
