"""What comes in from outside is checked here, before anything is written.

Shapes and types are always checked; values (finite, in range) where they are known, which inside
somebody's `jax.jit` they are not.
"""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from primax.anywhere.space import Space
from primax.anywhere.transition import Transition
from primax.errors import InputError
from primax.rewards.keys import Function, Given, Keys, Same


def is_known(x: Any) -> bool:
    """Whether an array's values can be looked at."""
    return not isinstance(x, Tracer)


def _array(name: str, x: Any) -> Any:
    if isinstance(x, jax.Array | np.ndarray):
        return x
    try:
        made = np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name}: expected an array, got {type(x).__name__}") from error
    if made.dtype == object:
        raise InputError(f"{name}: expected an array of numbers, got {type(x).__name__}")
    return made


def lead(space: Space, obs: Any) -> tuple[int, ...]:
    """The axes before an observation's own."""
    shape, own = np.shape(obs), space.obs
    if shape[len(shape) - len(own) :] != own or len(shape) < len(own):
        raise InputError(f"obs: expected [..., {_listed(own)}], got {list(shape)}")
    return shape[: len(shape) - len(own)]


def step_lead(space: Space, envs: int, obs: Any) -> tuple[int, int]:
    """Time and environments of what a step is given: [time, envs], [envs], or none for one."""
    found = lead(space, obs)
    time, wide = (*[1] * (2 - len(found)), *found)[-2:]
    if len(found) > 2 or wide != envs or time < 1:
        own = _listed(space.obs)
        raise InputError(
            f"obs: expected [time, {envs}, {own}] or [{envs}, {own}] for {envs} environments,"
            f" got {list(np.shape(obs))}"
        )
    return time, wide


def _listed(shape: tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in shape)


def take(
    space: Space, keys: Keys, steps: Transition, given: tuple[int, ...], wanted: tuple[int, ...]
) -> Transition:
    """Transitions with every field there and checked, their leading axes `given` made `wanted`."""
    valid = _flags("valid", steps.valid, given, default=True)
    fields: dict[str, Any] = {
        "valid": valid,
        "obs": _observations(space, "obs", steps.obs, given, valid),
        "next_obs": _observations(space, "next_obs", steps.next_obs, given, valid),
        "action": _whole("action", steps.action, given, space.num_actions, valid),
        "terminated": _flags("terminated", steps.terminated, given, default=False) & valid,
        "truncated": _flags("truncated", steps.truncated, given, default=False) & valid,
        "task": _numbers("task", steps.task, given, valid),
    }
    fields |= _keys(keys, steps, fields, given)
    shaped = {name: jnp.reshape(x, (*wanted, *x.shape[len(given) :])) for name, x in fields.items()}
    memo, next_memo = (_memos(tree, given, wanted) for tree in (steps.memo, steps.next_memo))
    return replace(Transition(**shaped), memo=memo, next_memo=next_memo)


def _check_shape(name: str, x: Any, wanted: tuple[int, ...]) -> None:
    if np.shape(x) != wanted:
        raise InputError(f"{name}: expected shape {list(wanted)}, got {list(np.shape(x))}")


def observations(space: Space, name: str, obs: Any, given: tuple[int, ...]) -> Any:
    """Observations alone, all of them valid."""
    return _observations(space, name, obs, given, jnp.ones(given, bool))


def _observations(space: Space, name: str, obs: Any, given: tuple[int, ...], valid: Any) -> Any:
    """Of the right shape and kind, and zero where a row is not valid."""
    obs = _array(name, obs)
    _check_shape(name, obs, (*given, *space.obs))
    if space.kind == "image" and obs.dtype != np.uint8:
        raise InputError(f"{name}: expected uint8 for an image, got {obs.dtype}")
    if obs.dtype.kind not in "buif":
        raise InputError(f"{name}: expected numbers, got {obs.dtype}")
    if space.kind != "image" and is_known(obs) and is_known(valid):
        seen = np.asarray(obs)[np.asarray(valid)]
        if not np.all(np.isfinite(seen)):
            raise InputError(f"{name}: expected finite numbers, got {_first_odd(seen)}")
        if space.kind == "planes" and not np.all((seen == 0) | (seen == 1)):
            raise InputError(f"{name}: expected planes of zeros and ones, got other numbers")
        if space.kind == "vector" and np.any(np.abs(seen) > np.finfo(np.float32).max):
            raise InputError(f"{name}: expected numbers that float32 can hold")
    mask = jnp.reshape(valid, (*given, *[1] * len(space.obs)))
    if space.kind == "vector" and is_known(obs):
        obs = np.asarray(obs, np.float32)  # jax would cut a long whole number to 32 bits
    seen = jnp.asarray(obs)
    return space.turned(jnp.where(mask, seen, jnp.zeros((), seen.dtype)))


def _first_odd(seen: np.ndarray) -> str:
    return str(seen[~np.isfinite(seen)].flat[0])


def _whole(name: str, x: Any, given: tuple[int, ...], num: int, valid: Any) -> Any:
    """Whole numbers below `num`, zero where a row is not valid."""
    if x is None:
        raise InputError(f"{name}: expected whole numbers below {num}, got nothing")
    x = _array(name, x)
    _check_shape(name, x, given)
    if x.dtype.kind not in "ui":
        raise InputError(f"{name}: expected whole numbers, got {x.dtype}")
    if is_known(x) and is_known(valid):
        seen = np.asarray(x)[np.asarray(valid)]
        odd = seen[(seen < 0) | (seen >= num)]
        if odd.size:
            raise InputError(
                f"{name}: expected whole numbers from 0 to {num - 1}, got {odd.flat[0]}"
            )
    return jnp.where(valid, jnp.asarray(x).astype(jnp.int32), 0)


def _flags(name: str, x: Any, given: tuple[int, ...], default: bool) -> Any:
    if x is None:
        return jnp.full(given, default)
    x = _array(name, x)
    _check_shape(name, x, given)
    is_flag = x.dtype == np.bool_
    if not is_flag and is_known(x):
        is_flag = x.dtype.kind in "uif" and bool(
            np.all((np.asarray(x) == 0) | (np.asarray(x) == 1))
        )
    if not is_flag:
        raise InputError(f"{name}: expected true or false, got {x.dtype}")
    return jnp.asarray(x).astype(bool)


def _numbers(name: str, x: Any, given: tuple[int, ...], valid: Any) -> Any:
    if x is None:
        return jnp.zeros(given, jnp.float32)
    x = _array(name, x)
    _check_shape(name, x, given)
    if x.dtype.kind not in "buif":
        raise InputError(f"{name}: expected numbers, got {x.dtype}")
    if is_known(x) and is_known(valid):
        seen = np.asarray(x)[np.asarray(valid)]
        if not np.all(np.isfinite(seen)):
            raise InputError(f"{name}: expected finite numbers, got {_first_odd(seen)}")
    return jnp.where(valid, jnp.asarray(x).astype(jnp.float32), 0.0)


def _keys(
    keys: Keys, steps: Transition, fields: dict[str, Any], given: tuple[int, ...]
) -> dict[str, Any]:
    """Given keys; or those of a function whose answers can be looked at; or none, if none is read."""
    valid, pair = fields["valid"], (steps.key, steps.next_key)
    if isinstance(keys, Same):
        return {}
    if isinstance(keys, Given):
        if any(x is None for x in pair):
            raise InputError(
                f"key, next_key: expected with every transition, whole numbers below {keys.num};"
                " keys='simhash' does without"
            )
    elif any(x is not None for x in pair):
        raise InputError(
            "key, next_key: not expected, for keys come from observations here;"
            " keys='given' with Space(num_keys=...) takes yours"
        )
    elif isinstance(keys, Function) and is_known(fields["obs"]):
        pair = tuple(_called(keys, fields[name], given) for name in ("obs", "next_obs"))
    else:
        return {}
    names = ("key", "next_key")
    return {n: _whole(n, x, given, keys.num, valid) for n, x in zip(names, pair, strict=True)}


def _called(keys: Function, obs: Any, given: tuple[int, ...]) -> Any:
    found = jax.vmap(keys.function)(obs.reshape(-1, *obs.shape[len(given) :]))
    if np.shape(found) != (math.prod(given),):
        raise InputError(
            f"keys: the function gave {list(np.shape(found)[1:])}, expected one number"
        )
    return jnp.reshape(found, given)


def _memos(tree: Any, given: tuple[int, ...], wanted: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda x: jnp.reshape(x, (*wanted, *np.shape(x)[len(given) :])), tree)


def check_clock(clock: Any, more: tuple[int, int]) -> None:
    """Refuses transitions that a clock of 32 bits cannot count."""
    if int(clock) + math.prod(more) >= 2**31:
        raise InputError("a bonus counts 2,147,483,647 transitions at most: init another")


def check_lengths(steps: Transition, time: Any, horizon: int) -> None:
    """Refuses an episode that is longer than was said."""
    known = (steps.valid, steps.terminated, steps.truncated, time)
    if not all(is_known(x) for x in known):
        return
    valid, ended, cut, time = (np.array(x) for x in known)
    for tick in range(valid.shape[0]):
        time += valid[tick]
        if np.any(time > horizon):
            raise InputError(
                f"an episode has more than {horizon} steps: give Space(horizon=...) the most there are"
            )
        time[valid[tick] & (ended[tick] | cut[tick])] = 0
