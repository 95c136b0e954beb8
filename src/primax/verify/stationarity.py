"""Prop. 1, first half: within a window the reward is a fixed function of the transition."""

from typing import Any

import jax
import numpy as np

from primax.verify.lab import Lab
from primax.verify.row import Row, verdict


def stationarity(lab: Lab, name: str) -> Row:
    """Stored rows scored at a window's beginning, at its end, and after the next boundary."""
    before = lab.score(lab.watch.boundary)
    after = lab.score(lab.watch.now)
    later = lab.score(lab.ends[1].reward.boundary)
    changed, jumped = _rows_that_differ(before, after), _rows_that_differ(before, later)
    num, updates = len(before[0]), lab.config.window // lab.config.update_every
    moved = live_changes(lab)
    is_moved = min(moved.values()) > 0
    what = ", ".join(moved) if is_moved else "not everything live"
    return Row(
        name=name,
        statement="Prop. 1: within a window stored rows score to the same bits "
        f"({lab.config.reward.moments}); at the next boundary they move",
        bound="0 rows change, then some",
        measured=f"{changed} of {num} rows over {updates} updates that changed {what}; "
        f"{jumped} at the boundary",
        verdict=verdict(changed == 0 and jumped > 0, is_moved),
        numbers={"rows": num, "changed": changed, "jumped": jumped, "updates": updates, **moved},
    )


def live_changes(lab: Lab) -> dict[str, float]:
    """By how much each live part of the reward moved while the window lasted."""
    was, now = lab.watch.boundary, lab.watch.now
    parts = {
        "counts": (was.novelty, now.novelty),
        "heads": (was.online, now.online),
        "φ": (was.inverse.encoder, now.inverse.encoder),
    }
    return {name: _farthest(*pair) for name, pair in parts.items()}


def _farthest(a: Any, b: Any) -> float:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.max(np.abs(np.asarray(x) - np.asarray(y)))) for x, y in pairs)


def _rows_that_differ(a: Any, b: Any) -> int:
    """How many rows differ in any bit of any leaf."""
    differ = False
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = (np.ascontiguousarray(z).view(np.uint8).reshape(len(z), -1) for z in (x, y))
        differ = differ | np.any(x != y, axis=1)
    return int(np.sum(differ))
