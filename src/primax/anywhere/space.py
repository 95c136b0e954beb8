"""What an environment shows and takes: the shape and kind of observations, the number of actions."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from primax.errors import InputError, check_choice, check_range
from primax.nn.encoders import KINDS
from primax.worlds import GridWorld, World

MOST_ACTIONS = 1_000


@dataclass(frozen=True)
class Space:
    """Observations and actions of an environment.

    Space(obs=(84, 84, 3), num_actions=6) is an image, Space(obs=(4,), num_actions=2) a vector.
    """

    obs: tuple[int, ...]
    """The shape of an observation."""
    num_actions: int
    """Actions are whole numbers from 0 up to this, exclusive."""
    kind: str = ""
    """`planes` (zeros and ones), `image` (bytes) or `vector`; three axes are an image unless said."""
    channels: str = ""
    """Where the channels' axis is, `first` or `last`: last in images and first in planes, unless said."""
    num_keys: int | None = None
    """How many states the environment tells apart, where it gives each a number (a key)."""
    horizon: int | None = None
    """The most steps an episode has, where there is a limit."""
    planes: tuple[str, ...] = ()
    """Names of the planes, where they have any."""
    has_cells: bool = False
    """Whether a key is a cell of the grid times a level, as in the worlds of this package."""

    def __post_init__(self):
        obs = self.obs
        if not isinstance(obs, tuple) or not all(isinstance(n, int) and n > 0 for n in obs):
            raise InputError(f"Space: obs takes a tuple of whole numbers above 0, got {obs!r}")
        if isinstance(self.num_actions, np.integer):  # as Gymnasium's spaces have it
            object.__setattr__(self, "num_actions", int(self.num_actions))
        if not isinstance(self.num_actions, int) or isinstance(self.num_actions, bool):
            raise InputError(f"Space: num_actions takes a whole number, got {self.num_actions!r}")
        check_range("Space: num_actions", self.num_actions, 1, MOST_ACTIONS)
        if not self.kind:
            object.__setattr__(self, "kind", {1: "vector", 3: "image"}.get(len(obs), ""))
        if len(obs) not in (1, 3) or (self.kind == "vector") != (len(obs) == 1):
            raise InputError(
                f"Space: an observation is a vector (one axis) or planes or an image (three), got {obs}"
                f"{f' as {self.kind}' if self.kind else ''}; flatten it, or give it a channels' axis"
            )
        check_choice("Space: kind", self.kind, tuple(KINDS))
        if not self.channels:
            object.__setattr__(self, "channels", "last" if self.kind == "image" else "first")
        check_choice("Space: channels", self.channels, ("first", "last"))
        for name in ("num_keys", "horizon"):
            if (value := getattr(self, name)) is not None:
                if not isinstance(value, int):
                    raise InputError(f"Space: {name} takes a whole number, got {value!r}")
                check_range(f"Space: {name}", value, 1, 10**9)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an observation as rewards see it: planes with channels first, images with channels last."""
        if not self._is_turned:
            return self.obs
        *sides, channels = self.obs if self.kind == "planes" else (*self.obs[1:], self.obs[0])
        return (channels, *sides) if self.kind == "planes" else (*sides, channels)

    @property
    def _is_turned(self) -> bool:
        return (self.kind, self.channels) in (("planes", "last"), ("image", "first"))

    @property
    def dtype(self) -> Any:
        """What observations are kept in."""
        return jnp.float32 if self.kind == "vector" else jnp.uint8

    def turned(self, obs: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """Observations as rewards see them, whatever the axes before."""
        if self._is_turned:
            obs = jnp.moveaxis(obs, *((-1, -3) if self.kind == "planes" else (-3, -1)))
        return obs.astype(self.dtype)

    @classmethod
    def of(cls, env: Any, params: Any = None) -> "Space":
        """The space of a Gymnasium environment (one or many), a gymnax environment, or one of our worlds.

        `params` are gymnax's; the environment's defaults unless given.
        """
        if isinstance(env, World):
            return cls(
                obs=env.obs_shape,
                num_actions=env.num_actions,
                kind=env.kind,
                num_keys=env.num_keys,
                horizon=env.horizon,
                planes=env.channels,
                has_cells=isinstance(env, GridWorld),
            )
        seen, done = (
            getattr(env, f"single_{name}", None) or getattr(env, name, None)
            for name in ("observation_space", "action_space")
        )
        if seen is None or done is None:
            raise InputError(f"Space.of takes an environment with spaces, got {type(env).__name__}")
        if callable(seen):  # gymnax: of its parameters
            params = env.default_params if params is None else params
            seen, done = seen(params), done(params)
        return cls.of_spaces(seen, done)

    @classmethod
    def of_spaces(cls, seen: Any, done: Any) -> "Space":
        """The same from an observation space and an action space, Gymnasium's or gymnax's."""
        return cls(num_actions=_num_actions(done), **_seen(seen))


def _num_actions(space: Any) -> int:
    if type(space).__name__ != "Discrete":
        raise InputError(
            f"actions are {type(space).__name__}: the rewards here need discrete actions"
            " (PRIME's reference policy sums over them); wrap the environment to have some"
        )
    if int(getattr(space, "start", 0)) != 0:
        raise InputError(f"actions start at {space.start}: shift them to start at 0")
    return int(space.n)


def _seen(space: Any) -> dict[str, Any]:
    """Shape and kind of an observation space; what is not supported is refused by name."""
    name, shape = type(space).__name__, tuple(int(n) for n in getattr(space, "shape", None) or ())
    if name == "MultiBinary" and len(shape) == 3:
        return {"obs": shape, "kind": "planes"}
    if name not in ("Box", "MultiBinary") or len(shape) not in (1, 3):
        raise InputError(
            f"observations are {name}{list(shape)}: a vector, planes or an image is needed;"
            " gymnasium.wrappers.FlattenObservation makes a vector of most spaces"
        )
    if len(shape) == 1:
        return {"obs": shape, "kind": "vector"}
    dtype, high = np.dtype(space.dtype), np.max(space.high)
    if dtype == np.bool_ or (dtype == np.uint8 and high <= 1):
        first = shape[0] < min(shape[1:]) or shape[2] >= min(shape[:2])
        return {"obs": shape, "kind": "planes", "channels": "first" if first else "last"}
    if dtype == np.uint8:
        first = shape[0] < min(shape[1:])
        return {"obs": shape, "kind": "image", "channels": "first" if first else "last"}
    raise InputError(
        f"observations are {dtype} of shape {shape}: if they are zeros and ones say"
        f" Space(obs={shape}, ..., kind='planes', channels='last'); an image takes uint8"
    )
