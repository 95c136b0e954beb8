"""Primax: PRIME in JAX."""

from primax.errors import InputError
from primax.worlds import WORLDS, make_world

__version__ = "0.1.0"
__all__ = ["WORLDS", "InputError", "__version__", "make_world"]
