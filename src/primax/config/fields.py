"""Fields of frozen dataclasses, declared once: type, rule, symbol, default, and a line that says what it is.

    heads: Annotated[int, Range(1, 100), Symbol("K")] = 1
    \"\"\"Critics, each with its own trunk.\"\"\"

One walk over them checks values, lists fields, and sets them from text: `critics.heads=3`.
"""

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from primax.config.symbols import Symbol, bearers
from primax.errors import InputError, check_choice, check_range, hint

T = TypeVar("T")
TAKES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "none",
}
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: int | float
    high: int | float

    def check(self, name: str, value: Any) -> None:
        check_range(name, value, self.low, self.high)


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    names: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        check_choice(name, value, self.names)


@dataclass(frozen=True)
class Later:
    """A field that older versions lacked; its default is what they did. So it refuses nothing."""

    def check(self, name: str, value: Any) -> None:
        pass


Rule = Range | Choice | Later


@dataclass(frozen=True)
class Field:
    """A leaf of a nested dataclass."""

    name: str
    """Dotted: `critics.heads`."""
    kinds: tuple[type, ...]
    """The types it takes."""
    rules: tuple[Rule, ...]
    symbol: str
    """What the paper calls it, if it has a letter there."""
    value: Any
    owner: type
    """The dataclass it is declared in."""

    @property
    def doc(self) -> str:
        """The line under it."""
        return _docs(self.owner).get(self.name.rpartition(".")[2], "")

    def check(self) -> None:
        """Refuses a value of another type, or one that a rule excludes."""
        if Any in self.kinds:
            raise InputError(f"{self.name} takes a dataclass of options, got {self.value!r}")
        accepted = (*self.kinds, int) if float in self.kinds else self.kinds
        is_bool = isinstance(self.value, bool)
        if not isinstance(self.value, accepted) or (is_bool and bool not in self.kinds):
            takes = " or ".join(TAKES.get(kind, kind.__name__) for kind in self.kinds)
            raise InputError(f"{self.name} takes {takes}, got {self.value!r}")
        for rule in self.rules if self.value is not None else ():
            rule.check(self.name, self.value)

    def parse(self, text: str) -> Any:
        """Text as a value of this field; what cannot be read stays text, for `check` to refuse."""
        if text.lower() == "none" and type(None) in self.kinds:
            return None
        if bool in self.kinds and text.lower() in (*YES, *NO):
            return text.lower() in YES
        for number in (int, float):
            if number in self.kinds and _reads(text, number):
                return number(text)
        if int in self.kinds and _reads(text, float) and float(text).is_integer():
            return int(float(text))  # 1e5
        return text


def walk(config: Any, prefix: str = "") -> Iterator[Field]:
    """Every leaf field of a nested dataclass, in the order of declaration; a group may be None."""
    hints = _hints(type(config))
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            yield from walk(value, f"{name}.")
        elif not (value is None and any(map(dataclasses.is_dataclass, hints[field.name][0]))):
            yield Field(name, *hints[field.name], value, type(config))


def check(config: Any, prefix: str = "") -> None:
    """Of a dataclass that is being made: type and rule of every field of its own."""
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    values = {name: value for name, value in own.items() if not dataclasses.is_dataclass(value)}
    check_values(type(config), values, prefix)


def check_values(kind: type, values: Mapping[str, Any], prefix: str = "") -> None:
    """The same for values of which a dataclass is to be made."""
    for name, value in values.items():
        Field(prefix + name, *_hints(kind)[name], value, kind).check()


@cache
def _hints(kind: type) -> dict[str, tuple[tuple[type, ...], tuple[Rule, ...], str]]:
    """Types, rules and symbol by field."""
    found = {}
    for name, hint_ in typing.get_type_hints(kind, include_extras=True).items():
        rules: list[Any] = []
        if typing.get_origin(hint_) is typing.Annotated:
            hint_, *rules = typing.get_args(hint_)
        kinds = hint_.__args__ if isinstance(hint_, types.UnionType) else (hint_,)
        symbol = next((rule.text for rule in rules if isinstance(rule, Symbol)), "")
        found[name] = kinds, tuple(rule for rule in rules if not isinstance(rule, Symbol)), symbol
    return found


@cache
def _docs(kind: type) -> dict[str, str]:
    """The line written under each field of a dataclass; nothing where there is no source.

    A dataclass that is made while the program runs has them as `DOCS`.
    """
    if "DOCS" in vars(kind):
        return vars(kind)["DOCS"]
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    tree = ast.parse(textwrap.dedent(source))
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)).body
    docs = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            docs[ast.unparse(field.target)] = " ".join(ast.literal_eval(below.value).split())
    return docs


def _reads(text: str, number: type) -> bool:
    try:
        number(text)
    except ValueError:
        return False
    return True


def flatten(config: Any) -> dict[str, Any]:
    """Every leaf's value under its dotted name."""
    return {field.name: field.value for field in walk(config)}


def parse_pairs(pairs: Iterable[str], option: str = "--set") -> dict[str, str]:
    """`["a.b=c"]` to `{"a.b": "c"}`; a field given twice is refused."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} takes FIELD=VALUE, got {pair!r}")
        if name.strip() in settings:
            raise InputError(f"{option} gives {name.strip()} twice")
        settings[name.strip()] = value.strip()
    return settings


def override(config: T, settings: dict[str, str]) -> T:
    """A copy of a (nested) dataclass with the named fields set from text, and checked anew."""
    known = {field.name: field for field in walk(config)}
    changes: dict[str, Any] = {}
    for name, text in settings.items():
        if name not in known:
            raise InputError(_unknown(name, known))
        field = dataclasses.replace(known[name], value=known[name].parse(text))
        field.check()
        *groups, last = name.split(".")
        place = changes
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = field.value
    return _replaced(config, changes)


def _replaced(config: Any, changes: dict[str, Any]) -> Any:
    """All of a group's fields at once, so that those which must fit each other can change together."""
    parts = {
        name: _replaced(getattr(config, name), value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return dataclasses.replace(config, **parts)


def _unknown(name: str, known: Mapping[str, Field]) -> str:
    """One line on a name that is no field: a group, a part of a field, a symbol, or the nearest field."""
    if parts := [field for field in known if field.startswith(f"{name}.")]:
        return f"{name} is a group; set one of {', '.join(parts)}"
    leaf = next((field for field in known if name.startswith(f"{field}.")), None)
    if leaf:
        return f"no field {name!r}: {leaf} has no parts"
    group, last = name[: name.rfind(".") + 1], name.rpartition(".")[2]
    symbols = {field: of.symbol for field, of in known.items() if of.symbol}
    meant = [f"{field} ({symbols[field]})" for field in bearers(name, symbols)]
    if meant := meant or [field for field in known if field.rpartition(".")[2] == last]:
        return f"no field {name!r}; did you mean {' or '.join(meant)}?"
    if not group:  # fields of the run itself, and the groups
        return f"no field {name!r}{hint(name, dict.fromkeys(f.partition('.')[0] for f in known))}"
    near = [field.removeprefix(group) for field in known if field.startswith(group)]
    return f"no field {name!r}{hint(last, near, group) if near else hint(name, known)}"
