"""Primax: PRIME in JAX."""

__version__ = "0.1.0"

from primax import export
from primax.api import train
from primax.errors import InputError
from primax.methods import METHODS, configure
from primax.training import Result
from primax.worlds import WORLDS, make_world

__all__ = [
    "METHODS",
    "WORLDS",
    "InputError",
    "Result",
    "__version__",
    "configure",
    "export",
    "make_world",
    "train",
]
