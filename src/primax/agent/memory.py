"""Whether a run fits into memory, estimated before anything is compiled or written."""

import math
import os
from pathlib import Path
from typing import Any

import jax

from primax.agent.learner import Learner
from primax.agent.training import state_like
from primax.errors import InputError

TIMES = 2.0
"""A seed's state, and as much again for temporaries. docs/engine.md has what was measured."""
COMPILER = 10**9
"""Bytes for the compiler and the libraries, where the host's memory is the device's."""
LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where a container says what it may have."""


def check_room(learner: Learner, num_seeds: int, devices: int = 1) -> None:
    """Refuses more seeds than a device has memory for, and says how many fit."""
    have, taken = memory()
    a_seed = TIMES * seed_bytes(learner)
    # CPU devices are parts of one machine, and share its memory.
    num = num_seeds if jax.default_backend() == "cpu" else num_seeds // devices
    need = taken + num * a_seed
    if have is not None and need > have:
        fits = max(0, int((have - taken) // a_seed))
        where = "" if num == num_seeds else f" on each of {devices} devices"
        raise InputError(
            f"{num:,} seeds{where} need about {need / 1e9:.1f} GB of memory and there are "
            f"{have / 1e9:.1f} GB, enough for about {fits:,}: give fewer seeds, or a smaller replay; "
            "--anyway (in Python anyway=True) tries all the same"
        )


def seed_bytes(learner: Learner) -> int:
    """Of a seed's state, from shapes alone."""
    return sum(map(_bytes, jax.tree.leaves(state_like(learner, 1))))


def _bytes(leaf: Any) -> int:
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    plain = jax.eval_shape(jax.random.key_data, leaf) if is_key else leaf
    return math.prod(plain.shape) * plain.dtype.itemsize


def memory() -> tuple[int | None, int]:
    """Bytes that the first device has, None where that is not known; and those taken already."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return (device.memory_stats() or {}).get("bytes_limit"), 0
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = LIMIT.read_text().strip() if LIMIT.is_file() else "max"
    return min(machine, int(limit)) if limit.isdecimal() else machine, COMPILER
