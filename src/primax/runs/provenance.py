"""What produced a number: code, versions, machine."""

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

import primax
from primax.nn import kernels

SAME_RUN = ("primax", "code", "jax", "jaxlib", "numpy", "device", "kernels", "flags")
"""What must be the same for a resumed run to give the bits of an uninterrupted one."""
CODE = ("agent", "config", "nn", "rewards", "worlds")
"""The rooms that a run's numbers depend on."""


def provenance() -> dict[str, Any]:
    """Code, versions and machine, for any file that reports a number."""
    device = jax.devices()[0]
    return {
        "commit": commit(),
        "primax": primax.__version__,
        "code": code(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device.device_kind if device.platform != "cpu" else f"{os.cpu_count()} CPU cores",
        "kernels": kernels.works(),
        "flags": os.environ.get("XLA_FLAGS", ""),
    }


@cache
def code() -> str:
    """A digest of all source that a run's numbers depend on, committed or not."""
    digest, home = hashlib.sha256(), Path(primax.__file__).parent
    files = [path for name in CODE for path in (home / name).rglob("*.py")]
    for path in sorted([*files, home / "methods.py"]):
        digest.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What would make a resumed run's bits differ; what an older version did not keep is not asked."""
    known = [name for name in SAME_RUN if name in then]
    return [
        f"{name} was {then[name]!r}, is now {now[name]!r}"
        for name in known
        if _alike(name, then[name]) != _alike(name, now[name])
    ]


def _alike(name: str, value: Any) -> Any:
    """The number of a CPU's cores does not change the bits."""
    is_cpu = name == "device" and str(value).endswith("CPU cores")
    return "CPU" if is_cpu else value


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
