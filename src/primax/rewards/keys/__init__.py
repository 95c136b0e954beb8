"""Keys by name: which observations count as the same state."""

from typing import Any

from primax.config.schema import KeysConfig
from primax.errors import InputError
from primax.rewards.base import Reward, Spec
from primax.rewards.keys.base import Function, Given, Keys, Same
from primax.rewards.keys.codes import Codes
from primax.rewards.keys.encoded import Encoded
from primax.rewards.keys.place import Place
from primax.rewards.keys.simhash import Projection, SimHash, mixed

BY_NAME: dict[str, type[Keys]] = {
    "simhash": SimHash,
    "encoded": Encoded,
    "codes": Codes,
    "place": Place,
}
"""Those that come from observations; each has options of the names that KeysConfig has."""


def made(config: KeysConfig, spec: Spec) -> Keys:
    """The keys of a run that has none from its world."""
    kind: Any = BY_NAME[config.kind]
    options = {name: getattr(config, name) for name in vars(kind()) if hasattr(config, name)}
    return kind(**options).fitted(spec)


def check_counts(keys: Keys, reward: Reward, name: str) -> None:
    """Refuses a reward whose counts would stay those of keys that are gone."""
    if keys.learns and reward.uses_keys and type(reward).forget is Reward.forget:
        raise InputError(
            f"{name} cannot count again, as learnt keys ask for: take simhash, or keys that are given"
        )


def find(keys: Any, num_keys: int | None) -> Keys:
    """From what a user gives: an object, a name, (function, how many), or nothing."""
    if isinstance(keys, Keys):
        return keys
    if isinstance(keys, tuple) and len(keys) == 2 and callable(keys[0]):
        return Function(*keys)
    if keys is None:
        return SimHash() if num_keys is None else Given(num_keys)
    if isinstance(keys, str) and keys in BY_NAME:
        return BY_NAME[keys]()
    if isinstance(keys, str) and keys == "given":
        if num_keys is None:
            raise InputError("keys='given' needs Space(num_keys=...): how many there are")
        return Given(num_keys)
    names = ", ".join(repr(name) for name in ("given", *BY_NAME))
    raise InputError(
        f"keys takes {names}, primax.SimHash(...) or (function, how many), got {keys!r}"
    )


__all__ = [
    "BY_NAME",
    "Codes",
    "Encoded",
    "Function",
    "Given",
    "Keys",
    "Place",
    "Projection",
    "Same",
    "SimHash",
    "check_counts",
    "find",
    "made",
    "mixed",
]
