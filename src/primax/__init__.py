"""Primax: PRIME in JAX. What is named here is loaded when it is first asked for."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from primax import export
    from primax.adapters.trackers import tracker
    from primax.anywhere.bonus import bonus
    from primax.anywhere.space import Space
    from primax.anywhere.transition import Transition
    from primax.api import train
    from primax.errors import InputError
    from primax.methods import METHODS, Method
    from primax.presets import configure
    from primax.rewards.keys import Codes, Encoded, Place, SimHash
    from primax.runs.evaluation import Evaluation, evaluate
    from primax.runs.loop import Result
    from primax.worlds import WORLDS, World, make_world, register_world, with_noise

_HOMES = {
    "Codes": "primax.rewards.keys",
    "Encoded": "primax.rewards.keys",
    "METHODS": "primax.methods",
    "Place": "primax.rewards.keys",
    "SimHash": "primax.rewards.keys",
    "Space": "primax.anywhere.space",
    "Transition": "primax.anywhere.transition",
    "WORLDS": "primax.worlds",
    "Evaluation": "primax.runs.evaluation",
    "InputError": "primax.errors",
    "Method": "primax.methods",
    "Result": "primax.runs.loop",
    "World": "primax.worlds",
    "bonus": "primax.anywhere.bonus",
    "configure": "primax.presets",
    "evaluate": "primax.runs.evaluation",
    "export": "primax.export",
    "make_world": "primax.worlds",
    "register_world": "primax.worlds",
    "tracker": "primax.adapters.trackers",
    "train": "primax.api",
    "with_noise": "primax.worlds",
}
"""jax takes a second to load, which `primax --help` need not wait for."""
_MODULES = {"export"}
"""Those of them that are modules."""

__all__ = [
    "METHODS",
    "WORLDS",
    "Codes",
    "Encoded",
    "Evaluation",
    "InputError",
    "Method",
    "Place",
    "Result",
    "SimHash",
    "Space",
    "Transition",
    "World",
    "__version__",
    "bonus",
    "configure",
    "evaluate",
    "export",
    "make_world",
    "register_world",
    "tracker",
    "train",
    "with_noise",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'primax' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if name in _MODULES else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
