"""Tests of claims about policy and reward; a test's docstring says when its claim holds."""

import math
from typing import Any

from primax import stats
from primax.output.sheet import bracket
from primax.paper.claims.scores import Case, Result, mean_interval
from primax.paper.evidence import MissingError
from primax.paper.references import density, reference, world_of

WORLDS = ("butterflies", "maze")


def one_configuration(case: Case) -> Result:
    """Every setting of the two runs but the world's and the number of steps is the same."""
    if not case.is_ours:
        raise MissingError("prime", "not given by seed")
    for world in WORLDS:
        case.get("prime", world, "peak")
    first, second = (case.runs.settings("prime", world) for world in WORLDS)
    apart = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    rest = sorted(key for key in apart if key != "steps" and not key.startswith("world."))
    return not rest, f"differ: {', '.join(rest) or 'nothing else'}"


def targets_bounded(case: Case) -> Result:
    """The largest |y| of any minibatch is at most R_r + γ·Q_max on every seed of both worlds."""
    tops = [case.get("prime", world, "top:y_abs_max").max() for world in WORLDS]
    ceiling = case.runs.ceiling()
    late = [case.get("prime", world, "late:y_abs_max").max() for world in WORLDS]
    text, later = (
        ", ".join(f"{world} {top:.2f}" for world, top in zip(WORLDS, found, strict=True))
        for found in (tops, late)
    )
    evidence = (
        f"largest {text}; ceiling {ceiling:g}; in the last fifth, which the paper gives, {later}"
    )
    return bool(max(tops) <= ceiling), evidence


def coverage_contracts(case: Case) -> Result:
    """The coverage of the first quintile minus that of the last is positive on every seed."""
    falls = case.get("prime", "butterflies", "coverage_fall")
    return bool((falls > 0).all()), f"{(falls > 0).sum()} of {len(falls)}; mean {falls.mean():.3f}"


def close_pursuit(case: Case) -> Result:
    """The interval of the mean tail distance lies below a random walker's."""
    _, high, text = mean_interval(case.get("prime", "butterflies", "distance_tail"))
    walker = reference(case.runs, "butterflies", "random").distance
    return high < walker, f"distance {text}, walker {walker:.2f}"


def uniform_density(case: Case) -> Result:
    """A butterfly nobody catches is within 0.01 of uniform in total variation at the end (exact)."""
    found = density(case.runs)
    text = f"total variation {found.typical:.4f}; {found.worst:.3f} from the slowest single cell"
    return found.typical < 0.01, text


def near_deterministic(case: Case) -> Result:
    """The tail entropy of the greedy action is below a twentieth of log 5."""
    _, high, text = mean_interval(case.get("prime", "maze", "tail:greedy_entropy"))
    return high < math.log(5) / 20, f"{text} nats"


def mi_positive(case: Case) -> Result:
    """Every seed's tail value lies between zero and log 5 in both worlds."""
    values = [case.get("prime", world, "tail:mutual_information") for world in WORLDS]
    text = ", ".join(bracket(x.min(), x.max(), 3) for x in values)
    return all(bool(((x > 0) & (x < math.log(5))).all()) for x in values), f"ranges {text}"


def mi_larger(case: Case) -> Result:
    """The interval of the difference of means lies above zero."""
    values = [case.get("prime", world, "tail:mutual_information") for world in WORLDS]
    low, high = stats.difference_interval(values[0], values[1])
    return low > 0, f"difference {bracket(low, high, 3, '+')}"


def mi_walker(case: Case) -> Result:
    """Its mean tail value is below 0.02 nats in both worlds."""
    values = [case.get("random", w, "tail:mutual_information").mean() for w in WORLDS]
    return bool(max(values) < 0.02), ", ".join(f"{value:.4f}" for value in values)


def gate_order(case: Case) -> Result:
    """The mean clamp share of elements with data is larger on Maze."""
    first, second = (case.get("prime", world, "clamp_share").mean() for world in WORLDS)
    return bool(second > first), f"Butterflies {first:.2f}, Maze {second:.2f}"


def lotv_collapses(case: Case) -> Result:
    """Its mean tail is below 1e-6 in both worlds."""
    tails = [case.get("prime", world, "tail:v_lotv").mean() for world in WORLDS]
    return bool(max(tails) < 1e-6), ", ".join(f"{tail:.1e}" for tail in tails)


def count_above_lotv(case: Case) -> Result:
    """The ratio of the mean tails, in orders of ten, rounds to three or four in both worlds."""
    orders = []
    for world in WORLDS:
        count, lotv = (case.get("prime", world, f"tail:{c}").mean() for c in ("v_count", "v_lotv"))
        orders.append(math.log10(count / lotv) if count > 0 and lotv > 0 else math.inf)
    text = ", ".join(f"{order:.1f}" for order in orders)
    return all(2.5 <= order < 4.5 for order in orders), f"orders {text}"


def v_epi_is_count(case: Case) -> Result:
    """The mean tails of the two differ by less than one in a hundred in both worlds."""
    ratios = []
    for world in WORLDS:
        both = (case.get("prime", world, f"tail:{c}").mean() for c in ("v_epi", "v_count"))
        epi, count = both
        ratios.append(float(epi / count) if count > 0 else math.inf)
    text = ", ".join(f"{ratio:.4f}" for ratio in ratios)
    return all(abs(ratio - 1) < 0.01 for ratio in ratios), f"ratios {text}"


def decays(case: Case) -> Result:
    """The tail mean is below the first decile's on every seed of both worlds."""
    parts, is_held = [], True
    for world in WORLDS:
        first, tail = (case.get("prime", world, f"{w}:v_count") for w in ("first", "tail"))
        is_held &= bool((tail < first).all())
        parts.append(f"{world} {first.mean():.1e} to {tail.mean():.1e}")
    return is_held, "; ".join(parts)


def noise_separates(case: Case) -> Result:
    """The mean tail of V_ale on Butterflies is at least ten times that on Maze."""
    first, second = (case.get("prime", world, "tail:v_ale").mean() for world in WORLDS)
    return bool(first >= 10 * second and first > 0), f"{first:.1e} and {second:.1e}"


def margin_positive(case: Case) -> Result:
    """The tail mean of the L1 distance is positive on every seed of both worlds."""
    values = [case.get("prime", world, "tail:pi_ref_from_u") for world in WORLDS]
    return all(bool((x > 0).all()) for x in values), ", ".join(
        f"least {x.min():.4f}" for x in values
    )


def heads_supply_penalty(case: Case) -> Result:
    """In the tail the heads' detector is the largest for one in a hundred noisy elements, in both worlds."""
    parts, is_held = [], True
    for world in WORLDS:
        wins = [case.get("prime", world, f"tail:wins_{d}").mean() for d in ("heads", "phi", "psi")]
        own, all_ = (case.get("prime", world, f"tail:{c}").mean() for c in ("v_ale_heads", "v_ale"))
        share = float(wins[0] / sum(wins)) if sum(wins) > 0 else 0.0
        is_held &= share >= 0.01
        parts.append(f"{world} {share:.1%} of elements, {own:.1e} of {all_:.1e}")
    return bool(is_held), "; ".join(parts)


def collapse_is_neutrality(case: Case) -> Result:
    """On Maze the tail's penalty exceeds its novelty, and with λ = 0 the last rolling-20 is above half the peak."""
    novelty, penalty = (case.get("prime", "maze", f"tail:{c}").mean() for c in ("v_epi", "penalty"))
    peak, last = (case.get("prime_no_penalty", "maze", m).mean() for m in ("peak", "last"))
    text = f"novelty {novelty:.1e}, penalty {penalty:.1e}; λ = 0: {peak:.2f} to {last:.2f}"
    return bool(penalty > novelty and last > peak / 2), text


def state_at_peak(case: Case) -> Result:
    """Where a seed's best 20 episodes end, its mutual information is above the most a walker ever has."""
    values = case.get("prime", "maze", "peak:mutual_information")
    walker = case.get("random", "maze", "top:mutual_information").max()
    tail = case.get("prime", "maze", "tail:mutual_information").mean()
    text = f"least {values.min():.3f}, mean {values.mean():.3f}, in the tail {tail:.3f}"
    return bool(values.min() > walker), f"{text}; a walker's largest {walker:.3f}"


def noise_depletes(case: Case) -> Result:
    """Over the last fifth less than half a butterfly is left, on average, when an episode ends."""
    caught = case.get("prime", "butterflies", "score_tail").mean()
    world: Any = world_of(case.runs, "butterflies")
    num = world.num_butterflies
    return bool(num - caught < 0.5), f"{num - caught:.2f} of {num} are left"
