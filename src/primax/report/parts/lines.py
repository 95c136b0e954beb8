"""Level lines: what policies that learn nothing score, computed exactly."""

from functools import cache
from typing import Any

from primax.paper.references import POLICIES
from primax.report.naming import Place
from primax.report.packing import number
from primax.worlds import bare_name, world_kind
from primax.worlds.exact import expected_score

BY_WORLD = {"butterflies": ("random", "sweep", "centre_stay"), "maze": ("random", "sweep")}
"""Those the paper's figures have."""


def lines(place: Place) -> list[dict[str, Any]]:
    """Name and mean score of each policy; none where it cannot be had without simulation."""
    if place.world is None:
        return []
    found = []
    for policy in BY_WORLD.get(bare_name(place.name), ("random",)):
        value = _expected(place.name, place.world.config, policy)
        if value is not None:
            found.append({"name": POLICIES[policy], "value": number(value)})
    return found


@cache
def _expected(name: str, options: Any, policy: str) -> float | None:
    return expected_score(world_kind(name).of(options), policy)
