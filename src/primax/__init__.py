"""Primax: PRIME in JAX."""

__version__ = "0.1.0"

from primax.errors import InputError
from primax.methods import METHODS, configure
from primax.training import Result, train
from primax.worlds import WORLDS, make_world

__all__ = [
    "METHODS",
    "WORLDS",
    "InputError",
    "Result",
    "__version__",
    "configure",
    "make_world",
    "train",
]
