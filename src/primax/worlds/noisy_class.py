"""The class of a world with noise beside it: its options are the world's own, and when there is noise."""

from dataclasses import field, make_dataclass
from functools import cache
from typing import Annotated, Any

import equinox as eqx

from primax.config.fields import Choice, check, walk
from primax.errors import InputError
from primax.worlds.base import GridWorld, World
from primax.worlds.noisy import NOISE, Noisy, NoisyGrid

WHEN = ("always", "region", "switch")
REGIONS = ("by_seed", "left", "right")
DOCS = {
    "noise_when": "When there is noise: `always`, in a `region` where the agent stands, or after the "
    "action of a `switch`.",
    "noise_region": "The half with noise in it, where noise_when is region: `left`, `right`, or "
    "`by_seed` (left for even seeds, right for odd).",
}


def has_noise(kind: type[World]) -> bool:
    """Whether a world shows a plane of noise already; no suite calls a plane so."""
    return issubclass(kind, GridWorld) and NOISE in kind.of(kind.options()()).channels


@cache
def noisy_class(kind: type[World], name: str) -> type[World]:
    """The class of a world with noise beside it, whose whole name is `name`."""
    if issubclass(kind, Noisy) or has_noise(kind):
        raise InputError(f"{name} is refused: that world has noise of its own")
    is_grid = issubclass(kind, GridWorld)
    members = {
        "__module__": __name__,
        "__doc__": f"{str(kind.__doc__).splitlines()[0]} Beside it there is noise that never ends.",
        "__annotations__": {"config": _options(kind.options(), name, is_grid)},
        "config": eqx.field(static=True),
        "beside": kind,
        **{item: getattr(kind, item) for item in ("has_keys", "can_end", "score", "steps")},
        **({"takes_targets": kind.takes_targets} if is_grid else {}),
    }
    base: Any = NoisyGrid if is_grid else Noisy
    return type(base)(f"Noisy{kind.__name__}", (base,), members)


def _options(own: type, name: str, is_grid: bool) -> type:
    """The world's own options, and when there is noise; the region only where there is a grid."""
    choices = {"noise_when": WHEN, **({"noise_region": REGIONS} if is_grid else {})}
    more = [
        (item, Annotated[str, Choice(of)], field(default=of[0])) for item, of in choices.items()
    ]

    def checked(self: Any) -> None:
        getattr(own, "__post_init__", check)(self)
        check(self)  # of a class that checks nothing itself
        if self.noise_when == "region" and not is_grid:
            raise InputError(f"noise_when=region needs a world on a grid: {name} is none")

    return make_dataclass(
        f"Noisy{own.__name__}",
        more,
        bases=(own,),
        frozen=True,
        namespace={
            "__doc__": f"Options of {name}.",
            "__module__": __name__,
            "__post_init__": checked,
            "world_name": name,
            "DOCS": {item.name: item.doc for item in walk(own())} | DOCS,
        },
    )
