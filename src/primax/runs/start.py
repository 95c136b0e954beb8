"""The networks a run begins with, where it does not begin with new ones: `primax train --from`.

A seed begins with the control heads of the same seed of another run; targets are copies, and the
optimiser, the ring and the reward are new. The heads are kept in the folder as `start.npz`, a file
like those of `primax export`, so that a run depends on nothing outside its folder.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.agent import critics as critic
from primax.agent.learner import Learner
from primax.agent.training import Program, state_like
from primax.config.schema import Config, StartConfig
from primax.errors import InputError
from primax.runs.export import find, load, only_critics, to_bytes
from primax.runs.loop import Say, compiled

Source = bytes | Path | None
"""The content of a file of networks, its path, or no networks."""
FILE = "start.npz"
ALIKE = ("first_channels", "second_channels", "embedding", "activation")
"""Fields of `net` in which the networks must agree."""


def begin_with(
    path: str | Path,
    which: str | None,
    part: str,
    config: Config,
    seeds: tuple[int, ...],
    say: Say = lambda line: None,
) -> tuple[Config, bytes]:
    """A configuration that begins with the networks of a run or an exported file, and those.

    `which` need not be given: of a run it is the last, and an exported file has only one.
    """
    found = find(path, which, seeds, say)
    kept = only_critics(found, seeds)
    start = StartConfig(
        method=found.config.method,
        steps=found.about["reward_step"],
        which=found.which,
        take=part,
        digest=kept.digest,
    )
    for name in ALIKE:
        there, here = (getattr(net, name) for net in (found.config.net, config.net))
        if there != here:
            raise InputError(f"{path} has networks of net.{name}={there}, and this run {here}")
    heads = found.config.critics.heads
    if part == "whole" and heads < config.critics.heads:
        raise InputError(
            f"{path} has {heads} critics, and this run {config.critics.heads}: whole copies would be "
            f"the same; set critics.heads={heads}, or take the trunk"
        )
    return replace(config, start=start), to_bytes(kept)


def begin_program(
    learner: Learner, seeds: tuple[int, ...], source: Source, say: Say, devices: int = 1
) -> Program:
    """The compiled program; with networks to begin with, if there are any, that are looked at first."""
    if source is None:
        return compiled(learner, seeds, say, devices)
    given = networks(source, learner, seeds)
    return replace(compiled(learner, seeds, say, devices), networks=given)


def networks(source: bytes | Path, learner: Learner, seeds: tuple[int, ...]) -> Any:
    """Control heads [seed, head, ...] to begin with, or their trunks alone.

    Of more heads than are needed the first are taken, and of fewer each as often as is needed.
    """
    start, found = learner.config.start, load(source, FILE)
    if start is None or found.digest != start.digest:
        raise InputError(f"{FILE} is not what this run began with: restore it from a copy")
    given: Any = jax.tree.map(lambda *x: jnp.stack(x), *(found.critics(seed) for seed in seeds))
    first = np.arange(learner.config.critics.heads) % found.config.critics.heads
    given = jax.tree.map(lambda x: x[:, first], given)
    if learner.is_shared:
        given = jax.vmap(critic.with_one_trunk)(given)
    like = state_like(learner, len(seeds)).critics.online
    if start.take == "trunk":
        given, like = given.trunk, like.trunk
    has, needs = ([leaf.shape[2:] for leaf in jax.tree.leaves(net)] for net in (given, like))
    if has != needs:
        raise InputError(
            f"networks of {found.config.method} cannot begin this run: they have layers of {has}, "
            f"and this run of {needs}; another world, or other observations of it, needs other ones"
        )
    # With the static parts of this run's networks: how they are computed is not taken over.
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(given))
