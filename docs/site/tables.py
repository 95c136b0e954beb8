"""Tables of the reference, from the code: names, presets and every field that can be set."""

from collections.abc import Iterable

from primax.anywhere.config import BonusConfig
from primax.config.fields import Choice, Field, Range, walk
from primax.config.schema import KeysConfig, MixConfig
from primax.methods import METHODS
from primax.presets import PRESETS, paper
from primax.worlds import WORLDS, world_kind

OWN = ("method", "reward", "world")
"""Groups with a table of their own, and what is no setting."""


def methods() -> str:
    """Every method."""
    rows = [[f"`{name}`", method.label, method.what] for name, method in METHODS.items()]
    return _table(["name", "label", "what it pays for"], rows)


def worlds() -> str:
    """Every world."""
    rows = [
        [f"`{name}`", f"{kind.steps:,}", str(kind.__doc__).splitlines()[0]]
        for name, kind in WORLDS.items()
    ]
    return _table(["name", "steps of a run", "what it is"], rows)


def presets() -> str:
    """What each changes."""
    rows = []
    for name, (what, settings, small) in PRESETS.items():
        changes = [f"`{field}={value}`" for field, value in (settings | small).items()]
        rows.append([f"`{name}`", what, " ".join(changes)])
    return _table(["preset", "for", "changes"], rows)


def run() -> str:
    """Of every run, whatever its method and its world."""
    return _fields(field for field in walk(paper("prime", "maze")) if _group(field) not in OWN)


def mix() -> str:
    """Of a bonus beside the task."""
    return _fields(walk(MixConfig(), "mix."))


def keys() -> str:
    """Of keys that come from observations."""
    return _fields(walk(KeysConfig(), "keys."))


def rewards() -> str:
    """Of each method's reward."""
    users: dict[type, list[str]] = {}
    for name, method in METHODS.items():
        users.setdefault(method.options, []).append(name)
    return "\n\n".join(
        f"### {', '.join(names)}\n\n{_fields(fields)}"
        for options, names in users.items()
        if (fields := list(walk(options(), "reward.")))
    )


def world() -> str:
    """Of each world."""
    tables = [
        f"### {name}\n\n{_fields(walk(kind.options()(), 'world.'))}"
        for name, kind in WORLDS.items()
    ]
    own, noisy = (
        list(walk(world_kind(name).options()(), "world.")) for name in ("maze", "noisy:maze")
    )
    return "\n\n".join([*tables, f"### noisy:WORLD\n\n{_fields(noisy[len(own) :])}"])


def bonus() -> str:
    """Of a reward beside someone's own agent."""
    config = BonusConfig("prime", METHODS["prime"].options())
    return _fields(field for field in walk(config) if _group(field) not in ("method", "reward"))


def _group(field: Field) -> str:
    return field.name.partition(".")[0]


def _fields(fields: Iterable[Field]) -> str:
    rows = [
        [f"`{field.name}` {field.symbol}", f"`{field.value}`", f"{field.doc} {_takes(field)}"]
        for field in fields
    ]
    return _table(["field", "default", "what it is"], rows)


def _takes(field: Field) -> str:
    """What a value may be, where the line above does not list it."""
    for rule in field.rules:
        if isinstance(rule, Choice) and any(f"`{name}`" not in field.doc for name in rule.names):
            return f"One of {', '.join(f'`{name}`' for name in rule.names)}."
        if isinstance(rule, Range):
            return f"From {_number(rule.low)} to {_number(rule.high)}."
    return ""


def _number(value: float) -> str:
    """Powers of ten as such where they are long."""
    short = f"{value:g}".replace("e+0", "e").replace("e-0", "e-")
    return short if "e" in short else f"{value:,}".removesuffix(".0")


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
