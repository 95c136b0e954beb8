"""Anyone's environment as a world: an object with `reset` and `step`, or one of a suite."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from primax.errors import InputError
from primax.worlds.base import World
from primax.worlds.suites import gymnax, navix, pgx, xminigrid
from primax.worlds.suites.base import Environment, SuiteWorld, as_vector, built, world_class

HORIZON = 1_000
"""Steps after which an episode is cut, where an object does not say."""
EXPECTED = (
    "an object with num_actions, reset(key) -> (obs, state) and "
    "step(key, state, action) -> (obs, state, reward, terminated, truncated)"
)


def of_object(given: Any) -> World:
    """A world of an object, or of (environment, parameters) of a suite."""
    return world_of(given, f"own:{type(_parts(given)[0]).__name__}").of_defaults()


def world_of(given: Any, name: str) -> type[SuiteWorld]:
    """The same as a class under a name; its one option is the horizon."""
    env, params = _parts(given)

    def make(chosen: Any) -> Environment:
        return environment(env, params, name.partition(":")[2], chosen.get("horizon"))

    about = str(type(env).__doc__ or "").strip().split("\n")[0] or f"{name}."
    return world_class(name, about, {}, make)


def _parts(given: Any) -> tuple[Any, Any]:
    return given if isinstance(given, tuple) and len(given) == 2 else (given, None)


def environment(env: Any, params: Any, name: str, horizon: int | None) -> Environment:
    """By what an object has: a suite's own functions, or plain reset and step."""
    if hasattr(env, "step_env"):
        params = env.default_params if params is None else params
        params = params if horizon is None else params.replace(**{gymnax.LIMIT: horizon})
        return gymnax.environment(env, params, getattr(env, "name", name))
    if hasattr(env, "transitions_fn"):
        env = env if horizon is None else env.replace(max_steps=horizon)
        return navix.environment(env, partial=False, carries=True)
    if hasattr(env, "num_players"):
        return pgx.environment(env, horizon or pgx.HORIZON)
    if hasattr(env, "_generate_problem"):
        if params is None:
            raise InputError(
                "an environment of xminigrid needs its parameters: world=(env, params)"
            )
        params = params if horizon is None else params.replace(max_steps=horizon)
        return xminigrid.environment(env, params, carries=True)
    own = getattr(env, "horizon", None)
    return plain(env, next(limit for limit in (horizon, own, HORIZON) if limit is not None))


def plain(env: Any, horizon: int) -> Environment:
    """An object with reset and step; a count of steps is kept beside its state."""
    if isinstance(env, type):
        raise InputError(f"world takes an object, not a class: {env.__name__}(...) makes one")
    if hasattr(env, "action_space") and hasattr(env, "observation_space"):
        says = "primax.bonus or primax.sb3 put rewards beside it"
        raise InputError(f"{type(env).__name__} is no world of jax functions: {says}")
    if not all(hasattr(env, name) for name in ("reset", "step", "num_actions")):
        raise InputError(f"world takes a name, a primax.World or {EXPECTED}; got {env!r}")
    num = _whole(env.num_actions, "num_actions")
    horizon = _whole(horizon, "horizon")
    first = built("reset(key)", lambda: jax.eval_shape(env.reset, jax.random.key(0)))
    if not (isinstance(first, tuple) and len(first) == 2 and hasattr(first[0], "shape")):
        raise InputError(f"reset must give (obs, state), obs an array: world takes {EXPECTED}")
    kind = _kind(first[0])

    def see(obs: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        return as_vector(obs) if kind == "vector" else jnp.asarray(obs, jnp.uint8)

    def reset(key):
        obs, state = env.reset(key)
        return (state, jnp.int32(0)), see(obs)

    def step(key, state, action):
        inner, time = state
        said = env.step(key, inner, action)
        if not isinstance(said, tuple) or len(said) not in (5, 6):  # the sixth may be gymnax's info
            raise InputError(f"step must give five values: world takes {EXPECTED}")
        obs, inner, reward, terminated, truncated = said[:5]
        time = time + 1
        is_cut = jnp.asarray(truncated, bool) | (time >= horizon)
        return (inner, time), see(obs), reward, terminated, is_cut

    channels = tuple(map(str, range(first[0].shape[0]))) if kind == "planes" else ()
    return Environment(reset, step, num, horizon, kind, channels)


def _whole(value: Any, name: str) -> int:
    """A number of an object, Python's or NumPy's."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not 1 <= value <= 10**8:
        raise InputError(f"{name} of a world takes a whole number from 1 to 10^8, got {value!r}")
    return int(value)


def _kind(obs: Any) -> str:
    """Booleans on three axes are planes (channels first), bytes an image (channels last)."""
    if len(obs.shape) == 3 and obs.dtype in (jnp.bool_, jnp.uint8):
        return "planes" if obs.dtype == jnp.bool_ else "image"
    return "vector"
