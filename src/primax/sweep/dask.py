"""Cells as tasks of a Dask cluster that somebody has started.

A task is `subprocess.run` of the standard library with a list of strings: Dask pickles a function by
its name, so no object of ours travels, and workers need Primax only as a command.
"""

import os
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

from primax.errors import InputError, one_line
from primax.sweep.launch import Ended, Work
from primax.sweep.remote import Job, Sweep, follow

CONNECT_S = 10
"""Seconds in which a scheduler answers."""


def client(address: str | None) -> Any:
    """The connection to a cluster; refused in one line where there is none."""
    if not address:
        raise InputError("--launcher dask needs --address, such as tcp://host:8786")
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--launcher dask needs dask: pip install 'primax-rl[dask]'") from None
    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {one_line(error)}") from error


def dask(works: Iterator[Work], client: Any, sweep: Sweep) -> Iterator[Ended]:
    """Hands over all cells at once, the longest first; each worker's threads say how many it takes."""
    jobs = {}
    for i, work in enumerate(works):
        future = client.submit(
            subprocess.run,
            sweep.command(work.name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=os.getcwd(),
            key=f"primax-{work.name}-{uuid.uuid4()}",
            priority=-i,
        )
        jobs[work.name] = _job(future)
    yield from follow(sweep, jobs)


def _job(future: Any) -> Job:
    def why() -> str:
        """The last words of a command that ended, or why it could not be run."""
        if future.status == "finished":
            lines = future.result().stderr.decode("utf-8", "replace").splitlines()
            return one_line(lines[-1]) if lines else ""
        return one_line(future.exception()) if future.status == "error" else future.status

    return Job(future.done, future.cancel, why)
