"""Primax: PRIME in JAX."""

from importlib.metadata import version

from primax.errors import InputError
from primax.worlds import WORLDS, make_world

__version__ = version("primax")
__all__ = ["WORLDS", "InputError", "__version__", "make_world"]
