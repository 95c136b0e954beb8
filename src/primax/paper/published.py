"""What the paper states, from `published.json`."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """Every table cell, per-seed value and quoted scalar of the paper."""
    return json.loads((files("primax.paper") / "published.json").read_text(encoding="utf-8"))


def scripted_score(world: str, policy: str) -> str:
    """The paper's score of a scripted policy, as it prints it; empty where it gives none."""
    main = published()["main"]
    if (world, policy) == ("butterflies", "random"):
        cell = main["butterflies"]["catch"]["random"]
        return f"{cell['mean']:.2f} ± {cell['std']:.2f}"
    if (world, policy) == ("butterflies", "centre_stay"):
        return f"{published()['evaluation']['position_only_catch']:.2f}"
    if (world, policy) == ("maze", "random"):
        return f"{main['maze']['peak']['random']['mean']:.2f}"
    return ""
