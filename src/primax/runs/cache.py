"""Where compiled programs are kept for the next process."""

import os
from pathlib import Path

import jax


def use_cache() -> None:
    """One folder for the command line and Python, unless jax was told of another."""
    if jax.config.jax_compilation_cache_dir is None:  # ty: ignore[missing-attribute]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "primax"))
