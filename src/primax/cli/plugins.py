"""Methods and worlds of other people's packages: a package puts them into `primax.METHODS` and \
`primax.WORLDS` when it is imported.

A package is imported because the command line names it, or because it was installed with an entry
point of the group `primax.plugins`; never because a run's folder asks for it.
"""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

from primax.errors import InputError, canonical
from primax.methods import METHODS, Method
from primax.worlds import WORLDS, World

GROUP = "primax.plugins"


def load(named: Sequence[str]) -> None:
    """Imports the installed packages, then those named; one that is installed and broken is only told of."""
    for entry in entry_points(group=GROUP):
        try:
            _add(f"the installed package {entry.value}", entry.load)
        except InputError as error:
            sys.stderr.write(f"primax: {error}; primax goes on without it\n")
    if named and os.getcwd() not in sys.path:
        sys.path.append(
            os.getcwd()
        )  # as `python -m` would: a file beside the runs is a package too
    for name in named:
        is_new = name not in sys.modules
        found = _add(f"--plugin {name}", lambda name=name: importlib.import_module(name))
        if is_new and not found:
            raise InputError(
                f"--plugin {name} added nothing: when it is imported, it must put its methods into "
                "primax.METHODS or its worlds into primax.WORLDS"
            )


def _add(what: str, read: Callable[[], Any]) -> bool:
    """Whether a package added anything; what it added wrongly is taken back and refused."""
    before = dict(METHODS), dict(WORLDS)
    try:
        read()
    except Exception as error:  # a stranger's code may raise anything
        _restore(before)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{what} cannot be imported ({reason})") from error
    if fault := _fault(*before):
        _restore(before)
        raise InputError(f"{what} {fault}")
    return before != (METHODS, WORLDS)


def _restore(before: tuple[dict, dict]) -> None:
    for table, entries in zip((METHODS, WORLDS), before, strict=True):
        table.clear()
        table.update(entries)


def _fault(methods: dict[str, Method], worlds: dict[str, type[World]]) -> str:
    """What is wrong with what was added, in the words that follow the package's name."""
    for kind, table, before in (("method", METHODS, methods), ("world", WORLDS, worlds)):
        for name, entry in before.items():
            if table.get(name) is not entry:
                return f"takes the place of the {kind} {name}: choose another name"
        for name in table.keys() - before.keys():
            if name != canonical(name):
                return f"calls a {kind} {name!r}: write {canonical(name)!r}"
    for name in METHODS.keys() - methods.keys():
        if not isinstance(METHODS[name], Method) or METHODS[name].name != name:
            return f"has no primax.Method of the name {name!r} in primax.METHODS[{name!r}]"
    for name in WORLDS.keys() - worlds.keys():
        if not (isinstance(WORLDS[name], type) and issubclass(WORLDS[name], World)):
            return f"has no class of worlds in primax.WORLDS[{name!r}]"
    return ""
