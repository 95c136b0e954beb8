"""What produced a number: code, versions, machine."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np

import primax
from primax.nn import kernels

SAME_RUN = ("primax", "jax", "device", "kernels", "flags")
"""What must be the same for a resumed run to give the bits of an uninterrupted one."""


def provenance() -> dict[str, Any]:
    """Code, versions and machine, for any file that reports a number."""
    device = jax.devices()[0]
    return {
        "commit": commit(),
        "primax": primax.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device.device_kind if device.platform != "cpu" else f"{os.cpu_count()} CPU cores",
        "kernels": kernels.works(),
        "flags": os.environ.get("XLA_FLAGS", ""),
    }


def commit() -> str:
    """The commit this package runs from, `+` where files differ from it.

    What PRIMAX_COMMIT says goes first: a copy sent to another machine may lie in some other
    repository. Outside git, without it, nothing is known.
    """
    if os.environ.get("PRIMAX_COMMIT"):
        return os.environ["PRIMAX_COMMIT"]
    here = Path(__file__).parent
    try:
        ask = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*"]
        done = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
