"""One run over several devices: each has as many of the seeds, and runs the program of that many.

It is the program that one device would run with those seeds alone, compiled for each device and
called on each; the state is one tree of arrays whose axis of seeds is sharded. `shard_map` would do
it in one call, and was tried: the compiler takes other passes for a program of several devices, so a
seed's last digits were no longer those it has on one. Shardings alone would also leave it to the
compiler to find out that no seed needs another, and it cannot look into the GPU kernels.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from primax.errors import InputError

AXIS = "seeds"
ALL = "all"
"""As many as there are."""


def seed_sharding(num: int) -> NamedSharding | None:
    """Where arrays of all seeds lie on so many devices; None on one, where nothing need be said."""
    if num == 1:
        return None
    return NamedSharding(Mesh(np.array(jax.devices()[:num]), (AXIS,)), PartitionSpec(AXIS))


def each_device(sharding: NamedSharding | None) -> list[AbstractContextManager[Any]]:
    """Contexts in which a program is lowered for one device after the other.

    Said in this way, it has the text of a program for the only device.
    """
    if sharding is None:
        return [nullcontext()]
    return [jax.default_device(device) for device in sharding.mesh.devices.flat]


@dataclass(frozen=True)
class OnEach:
    """A part of a program on several devices: the same part on each, called with what lies there."""

    each: tuple[Callable[..., Any], ...]
    """In the order of the mesh."""
    sharding: NamedSharding

    def __call__(self, *args: Any) -> Any:
        """Arguments without an axis of seeds go to every device. Nobody waits in between."""
        split = [[self._split(leaf) for leaf in jax.tree.leaves(arg)] for arg in args]
        made = []
        for i, part in enumerate(self.each):
            own = [[leaf[i] for leaf in leaves] for leaves in split]
            trees = zip(args, own, strict=True)
            made.append(part(*(jax.tree.unflatten(jax.tree.structure(a), x) for a, x in trees)))
        return jax.tree.map(self._joined, *made)

    def _split(self, leaf: jax.Array) -> list[jax.Array]:
        if leaf.sharding != self.sharding:
            return [leaf] * len(self.each)
        return [leaf.addressable_data(i) for i in range(len(self.each))]  # in the mesh's order

    def _joined(self, *shards: jax.Array) -> jax.Array:
        shape = (sum(shard.shape[0] for shard in shards), *shards[0].shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self.sharding, list(shards))


def num_devices(given: int | str, num_seeds: int, name: str = "devices") -> int:
    """How many a person asks for, if there are so many and each gets as many seeds."""
    there = jax.devices()
    num = parse_devices(given, name) or len(there)
    if num > len(there):
        are = f"{'is' if len(there) == 1 else 'are'} {len(there)}"
        kinds = ", ".join(f"{device} ({device.device_kind})" for device in there)
        raise InputError(f"{name} {num}: there {are} here, {kinds}")
    if len(kinds := {device.device_kind for device in there[:num]}) > 1:
        only = "take those of one kind by CUDA_VISIBLE_DEVICES"
        raise InputError(f"{name} {num}: they are of several kinds, {', '.join(kinds)}; {only}")
    if num_seeds % num:
        fit = ", ".join(str(n) for n in range(1, len(there) + 1) if num_seeds % n == 0)
        raise InputError(
            f"{num_seeds} seeds cannot be shared out evenly among {num} devices: here {name} can be "
            f"{fit}; or take {num_seeds + -num_seeds % num} seeds, which need no longer"
        )
    return num


def parse_devices(given: int | str, name: str = "devices") -> int | None:
    """A number of devices, None for all of them; how many there are is not asked."""
    text = str(given).strip().lower()
    if text == ALL:
        return None
    if isinstance(given, bool) or not (text.isdecimal() and len(text) < 9 and int(text) > 0):
        raise InputError(f"{name} takes a number from 1 on, or {ALL}, got {given!r}")
    return int(text)
