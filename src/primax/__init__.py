"""Primax: PRIME in JAX. What is named here is loaded when it is first asked for."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from primax import export
    from primax.api import train
    from primax.errors import InputError
    from primax.methods import METHODS, Method
    from primax.presets import configure
    from primax.runs.loop import Result
    from primax.worlds import WORLDS, World, make_world

_HOMES = {
    "METHODS": "primax.methods",
    "WORLDS": "primax.worlds",
    "InputError": "primax.errors",
    "Method": "primax.methods",
    "Result": "primax.runs.loop",
    "World": "primax.worlds",
    "configure": "primax.presets",
    "export": "primax.export",
    "make_world": "primax.worlds",
    "train": "primax.api",
}
"""jax takes a second to load, which `primax --help` need not wait for."""

__all__ = [
    "METHODS",
    "WORLDS",
    "InputError",
    "Method",
    "Result",
    "World",
    "__version__",
    "configure",
    "export",
    "make_world",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'primax' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if _HOMES[name].endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
