"""Fields of frozen dataclasses, set from text: `critics.heads=3`."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Iterable
from typing import Any, TypeVar

from primax.errors import InputError, hint

T = TypeVar("T")
TAKES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "none",
}
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """`["a.b=c"]` to `{"a.b": "c"}`; a field given twice is refused."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes FIELD=VALUE, got {pair!r}")
        if name.strip() in settings:
            raise InputError(f"--set gives {name.strip()} twice")
        settings[name.strip()] = value.strip()
    return settings


def override(config: T, settings: dict[str, str]) -> T:
    """A copy of a (nested) dataclass with the named fields changed, and validated anew."""
    changes: dict[str, Any] = {}
    for name, text in settings.items():
        _insert(config, changes, name.split("."), name, text)
    return _replace(config, changes)


def _insert(config: Any, changes: dict, path: list[str], name: str, text: str) -> None:
    """Puts one value where its dotted name says, coerced to the field's type."""
    kinds = typing.get_type_hints(type(config))
    head, *rest = path
    known = [field.name for field in dataclasses.fields(config)]
    if head not in known:
        group = name.removesuffix(".".join(path))
        raise InputError(f"no field {name!r}{hint(name, [group + field for field in known])}")
    value = getattr(config, head)
    if rest and dataclasses.is_dataclass(value):
        _insert(value, changes.setdefault(head, {}), rest, name, text)
    elif rest:
        raise InputError(f"no field {name!r}: {head} has no parts")
    elif dataclasses.is_dataclass(value):
        parts = ", ".join(f"{head}.{field.name}" for field in dataclasses.fields(value))
        raise InputError(f"{name} is a group; set one of {parts}")
    else:
        changes[head] = coerce(name, text, kinds[head])


def _replace(config: Any, changes: dict[str, Any]) -> Any:
    parts = {
        name: _replace(getattr(config, name), value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return dataclasses.replace(config, **parts)


def coerce(name: str, text: str, kind: Any) -> Any:
    """Text as a value of type `kind`, or one line that says what the field takes."""
    kinds = _kinds(kind)
    if text.lower() == "none" and type(None) in kinds:
        return None
    if bool in kinds and text.lower() in (*YES, *NO):
        return text.lower() in YES
    for number in (int, float):
        if number in kinds and _reads(text, number):
            return number(text)
    if int in kinds and _reads(text, float) and float(text).is_integer():
        return int(float(text))  # 1e5
    return check_type(name, text, kind)


def check_type(name: str, value: Any, kind: Any) -> Any:
    """`value`, if a field of type `kind` takes it; a whole number will do for a number."""
    kinds = _kinds(kind)
    accepted = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds):
        takes = " or ".join(TAKES.get(part, part.__name__) for part in kinds)
        raise InputError(f"{name} takes {takes}, got {value!r}")
    return value


def _kinds(kind: Any) -> tuple[type, ...]:
    return kind.__args__ if isinstance(kind, types.UnionType) else (kind,)


def _reads(text: str, number: type) -> bool:
    try:
        number(text)
    except ValueError:
        return False
    return True


def field_docs(config: type) -> dict[str, str]:
    """The line written under each field of a dataclass."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(config)))
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)).body
    docs = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            docs[ast.unparse(field.target)] = " ".join(ast.literal_eval(below.value).split())
    return docs


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every leaf field of a nested dataclass under its dotted name."""
    leaves: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            leaves |= flatten(value, f"{name}.")
        else:
            leaves[name] = value
    return leaves
