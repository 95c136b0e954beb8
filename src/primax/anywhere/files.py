"""A bonus's state in one file, and back."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from primax.errors import InputError
from primax.files import from_json
from primax.runs import npz, trees
from primax.runs.disk import write_whole

ABOUT = "['about']"
"""The name under which the settings lie in the file."""


def save(about: dict[str, Any], state: Any, path: Path) -> None:
    """Writes settings and state, whole or not at all."""
    told = np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    try:
        write_whole(path, trees.dump({"about": told, "state": state}))
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def load(about: dict[str, Any], like: Any, path: Path) -> Any:
    """The state in a file, if it was saved under these settings."""
    try:
        found = dict(npz.read(path, lambda name: name == ABOUT))
        was = from_json(found[ABOUT].tobytes())
    except (npz.NpzError, KeyError, ValueError, AttributeError) as error:
        raise InputError(f"{path} holds no saved bonus that can be read: {error}") from error
    _check_same(was, json.loads(json.dumps(about)), path)
    told = np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    return trees.restore(path, {"about": told, "state": like})["state"]


def _check_same(was: Any, now: dict[str, Any], path: Path) -> None:
    if not isinstance(was, dict):
        raise InputError(f"{path} holds no saved bonus that can be read")
    for name in sorted({*was, *now}):
        if was.get(name) != now.get(name):
            raise InputError(
                f"{path} was saved with {name} = {was.get(name)}, this bonus has {now.get(name)}"
            )
