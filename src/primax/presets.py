"""The configuration of a run: a method's and a world's defaults, changed by a preset and by settings."""

from collections.abc import Mapping
from dataclasses import replace

from primax.config.fields import flatten, override
from primax.config.schema import Config, KeysConfig
from primax.errors import InputError, lookup
from primax.methods import Method, find_method, find_world
from primax.worlds.layouts import read


def paper(method: str | Method, world: object) -> Config:
    """The paper's configuration."""
    entry, (kind, options) = find_method(method), find_world(world)
    return Config(
        method=entry.name,
        world=options,
        reward=entry.options(),
        steps=kind.steps,
        critics=entry.critics,
        explore=entry.explore,
        mix=entry.mix,
        keys=None if kind.has_keys else KeysConfig(),
    )


QUICK = {
    "steps": "40_000",
    "recent": "2_000",
    "critics.heads": "2",
    "net.first_channels": "8",
    "net.second_channels": "16",
    "net.embedding": "32",
    "critics.batch": "32",
}
SMOKE = {
    "steps": "2_000",
    "window": "500",
    "warmup": "500",
    "replay": "1_000",
    "recent": "500",
    "critics.heads": "2",
    "net.first_channels": "4",
    "net.second_channels": "4",
    "net.embedding": "8",
    "critics.batch": "8",
    "critics.sync_every": "500",
}
SMALL = {
    "world.size": "6",
    "reward.heads": "2",
    "reward.calibration": "64",
}
PRESETS = {
    "paper": ("the paper's settings", {}, {}),
    "quick": ("small worlds and networks, for two cores", QUICK, SMALL),
    "smoke": ("seconds; shows that it runs, not that it learns", SMOKE, SMALL),
}
"""What each is for, its settings, and those for worlds and rewards that have such a field."""


def configure(
    method: str | Method,
    world: object,
    preset: str = "paper",
    settings: Mapping[str, object] | None = None,
) -> Config:
    """The configuration of a run: the paper's, changed by a preset, then by `settings`.

    `method` and `world` are names or objects, as in `train`. `preset` is `paper`, `quick` or `smoke`.
    `settings` are values by the names of fields: {"critics.gamma": 0.9, "steps": 50_000}. A value may
    also be text, as on the command line: "0.9".
    """
    config = paper(method, world)
    _, changes, small = lookup("preset", preset, PRESETS)
    known = flatten(config)
    if config.is_free:  # other people's worlds stay as they are
        small = {name: value for name, value in small.items() if not name.startswith("world.")}
    changes = changes | {name: value for name, value in small.items() if name in known}
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise InputError(f"settings takes values by the names of fields, got {settings!r}")
    if "method" in settings:
        raise InputError("method is not a field to set: give it as the first argument")
    if not config.mix and (odd := [name for name in settings if name.startswith("mix.")]):
        bonus = "prime" if config.method in ("task", "none", "random") else config.method
        raise InputError(f"{odd[0]} is of a mix: task+{bonus} is one")
    if odd := [name for name in settings if name.startswith("start.")]:
        raise InputError(f"{odd[0]} cannot be set: train --from says what a run begins with")
    odd = [name for name in settings if name.startswith("keys.")]
    if config.keys is None and "keys.kind" in odd:
        config = replace(config, keys=KeysConfig())  # in place of the world's own
    elif config.keys is None and odd:
        raise InputError(f"{odd[0]} is of keys that come from observations: set keys.kind as well")
    # All at once, so that fields which must fit each other can be changed together.
    try:
        given = {name: str(value) for name, value in settings.items()}
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"settings has a value that cannot be written: {error}") from error
    config = override(config, changes | given)
    if hasattr(config.world, "layout"):
        # The map itself, so that a run does not depend on a file that may change.
        config = replace(config, world=replace(config.world, layout=read(config.world.layout)))
    return config
