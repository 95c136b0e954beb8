"""What the paper gives as mean ± std, one by one."""

from collections.abc import Iterator
from typing import Any

from primax.paper.evidence import PAPERS_MEASURE, PAPERS_NAME
from primax.paper.published import published
from primax.paper.tables.results import ABLATIONS, MAIN, METRICS

Given = dict[str, Any]


def scores() -> Iterator[tuple[str, str, str, tuple[str, str], Given]]:
    """Tables 1 and 2: where, variant, the metric's name, world and measure, mean and std."""
    groups = [("tab:main", "main", v) for v in MAIN if v != "random"]
    groups += [("tab:ablations", "ablations", v) for v in ABLATIONS if v != "prime"]
    for where, group, variant in groups:
        name = PAPERS_NAME.get(variant, variant)
        for metric, (world, measure) in METRICS.items():
            given = published()[group][world][PAPERS_MEASURE[measure]][name]
            yield where, variant, metric, (world, measure), given


def in_text() -> Iterator[tuple[str, str, str, str, str, Given]]:
    """PRIME in the text: id, where, world, measure, what it is in words, mean and std."""
    paper = published()
    text, mi = paper["behaviour"], paper["mutual_information"]
    cells = [
        ("mi.butterflies", "tab:mi", "butterflies", "tail:mutual_information", mi["butterflies"]),
        ("mi.maze", "tab:mi", "maze", "tail:mutual_information", mi["maze"]),
        ("last.maze", "sec:eval-h1", "maze", "last", paper["evaluation"]["prime_maze_last_rolling"]),
        ("coverage_fall", "sec:eval-butter", "butterflies", "coverage_fall", text["coverage_fall"]),
        ("distance", "sec:eval-butter", "butterflies", "distance_tail", text["min_distance_tail20"]),
        ("greedy_entropy", "sec:eval-butter", "maze", "tail:greedy_entropy",
         text["argmax_q_entropy_maze_tail20"]),
    ]  # fmt: skip
    for world, given in paper["discussion"]["reference_policy_distance_tail20"].items():
        cells.append((f"delta_pi.{world}", "sec:discussion", world, "tail:pi_ref_from_u", given))
    for name, where, world, measure, given in cells:
        what = f"PRIME on {world.capitalize()}: {measure.replace('tail:', 'tail-20% ')}"
        yield name, where, world, measure, what.replace("_", " "), given
