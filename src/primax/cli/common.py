"""What several commands share."""

from collections.abc import Iterable

from primax.errors import lookup
from primax.settings import override, parse_pairs
from primax.worlds import WORLDS, World


def world_from(name: str, pairs: Iterable[str]) -> World:
    """A world by name, with `OPTION=VALUE` pairs; `world.OPTION` is the same option."""
    build, config = lookup("world", name, WORLDS)
    settings = {key.removeprefix("world."): value for key, value in parse_pairs(pairs).items()}
    return build(override(config(), settings))
