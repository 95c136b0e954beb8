"""What worlds of other suites share: a state that keeps what the suite said last, and keys as noise."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields, make_dataclass
from functools import partial
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, Shaped

from primax.config.fields import Range, check
from primax.errors import InputError, canonical, check_range, hint
from primax.worlds.base import World

Said = tuple[PyTree, Shaped[Array, "..."], Any, Any, Any]
HORIZON = "Steps after which an episode is cut; none: as the suite has it."
MOST_ACTIONS = 256
"""A row of the ring keeps its action in a byte."""
SIMPLE = (bool, int, float, str)
"""Types of parameters that can be set."""


class Environment(NamedTuple):
    """An environment of a suite, its parameters filled in; the functions are of one stream."""

    reset: Callable[[PRNGKeyArray], tuple[PyTree, Shaped[Array, "..."]]]
    """From a key to the first state and what it shows."""
    step: Callable[[PRNGKeyArray, PyTree, Int[Array, ""]], Said]
    """From a key, a state and an action to the state, what it shows, the task, terminated, truncated."""
    num_actions: int
    horizon: int
    """Steps after which an episode is cut."""
    kind: str
    """What is shown: binary `planes` (channels first), an `image` of bytes, or a `vector`."""
    channels: tuple[str, ...] = ()
    """Names of the planes, where they have any."""


class SuiteState(eqx.Module):
    """A suite's own state, and what it said of the step that led there."""

    inner: PyTree
    shown: Shaped[Array, "..."]
    paid: Float[Array, ""]
    has_ended: Bool[Array, ""]
    is_cut: Bool[Array, ""]


class SuiteNoise(eqx.Module):
    """Suites draw for themselves: a key for every step."""

    key: Key[Array, "*steps"]


class SuiteWorld(World[SuiteState, SuiteNoise]):
    """A world of another suite; it tells no states apart, so they are counted by hashed observations."""

    has_keys = False
    can_end = True
    score = "the suite's reward, summed over an episode"
    steps = 200_000

    config: Any = eqx.field(static=True)
    environment: Environment = eqx.field(static=True)
    leaves: tuple[Any, ...] = eqx.field(static=True)
    tree: Any = eqx.field(static=True)
    """Of `like`, as what can be hashed: a suite's state may hold a dictionary."""
    horizon: int = eqx.field(static=True)
    num_keys: None = eqx.field(static=True)
    channels: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, options: Any):
        made = options.environment()
        check_range(f"actions of {options.world_name}", made.num_actions, 1, MOST_ACTIONS)
        self.config, self.environment = options, made
        leaves, self.tree = jax.tree.flatten(built(options.world_name, lambda: _like(made)))
        self.leaves = tuple(leaves)
        self.horizon, self.num_keys, self.channels = made.horizon, None, made.channels

    @property
    def like(self) -> Any:
        """Shapes and types of a suite's state and observation: resets and steps give others."""
        return jax.tree.unflatten(self.tree, self.leaves)

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.environment.num_actions)))

    @property
    def kind(self) -> str:
        return self.environment.kind

    @property
    def obs_shape(self) -> tuple[int, ...]:
        return tuple(self.like[1].shape)

    @classmethod
    def of_defaults(cls) -> "SuiteWorld":
        """The world as the suite has it."""
        return cls(cls.options()())

    def reset(self, key: PRNGKeyArray) -> SuiteState:
        inner, shown = _typed(self.environment.reset(key), self.like)
        never = jnp.bool_(False)
        return SuiteState(inner, shown, jnp.float32(0), never, never)

    def noise(self, key: PRNGKeyArray, num_steps: int) -> SuiteNoise:
        return SuiteNoise(jax.random.split(key, num_steps))

    def step(self, state: SuiteState, action: Int[Array, ""], noise: SuiteNoise) -> SuiteState:
        *seen, paid, ended, cut = self.environment.step(noise.key, state.inner, action)
        inner, shown = _typed(tuple(seen), self.like)
        ended, cut = (jnp.asarray(x, bool) for x in (ended, cut))
        return SuiteState(inner, shown, jnp.asarray(paid, jnp.float32), ended, cut)

    def observe(self, state: SuiteState) -> Shaped[Array, "..."]:
        return state.shown

    def state_key(self, state: SuiteState) -> Int[Array, ""]:
        raise InputError("a suite's world tells no states apart")

    def task(self, state: SuiteState) -> Float[Array, ""]:
        return state.paid

    def truncated(self, state: SuiteState) -> Bool[Array, ""]:
        return state.is_cut & ~state.has_ended

    def terminated(self, state: SuiteState) -> Bool[Array, ""]:
        return state.has_ended


def _like(made: Environment) -> Any:
    """What a state and an observation are after a step; a reset may give numbers of other types."""

    def stepped(key: PRNGKeyArray, at: Any) -> Any:
        *seen, paid, ended, cut = made.step(key, _typed(made.reset(key), at)[0], jnp.int32(0))
        said = {"reward": paid, "terminated": ended, "truncated": cut}
        for name, value in said.items():
            if jnp.shape(value) != ():
                raise InputError(f"a step gives {name} of shape {jnp.shape(value)}: one is needed")
        return tuple(seen)

    key = jax.eval_shape(lambda: jax.random.key(0))
    like = jax.eval_shape(made.reset, key)
    for _ in range(3):  # what a step makes of a state may be of another type once more
        before, like = like, jax.eval_shape(partial(stepped, at=like), key)
        if (was := before[1].shape) != (now := like[1].shape):
            raise InputError(
                f"a step shows {now}, a reset {was}: observations must be of one shape"
            )
        is_same = jax.tree.structure(before) == jax.tree.structure(like)
        if not is_same or _shapes(before) != _shapes(like):
            raise InputError(
                "a step of this environment gives a state of other shapes than a reset"
            )
    return like


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [leaf.shape for leaf in jax.tree.leaves(tree)]


def _typed(made: Any, like: Any) -> Any:
    """The same numbers as arrays of the types they have in every state."""

    def one(x: Any, to: Any) -> Array:
        is_key = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return x if is_key else jnp.asarray(x, to.dtype)

    return jax.tree.map(one, made, like)


def world_class(
    name: str,
    about: str,
    given: Mapping[str, Any],
    make: Callable[[Mapping[str, Any]], Environment],
    docs: Mapping[str, str] | None = None,
) -> type[SuiteWorld]:
    """The class of one environment of a suite, called SUITE:ID; `given` are its parameters' defaults.

    `make` builds the environment of parameters; `horizon` is not among them where it is none.
    `docs` has a line for each parameter that is not the suite's own.
    """
    id_ = name.partition(":")[2]
    simple = {key: value for key, value in given.items() if type(value) in SIMPLE}
    limit = ("horizon", Annotated[int | None, Range(1, 10**8)], field(default=None))
    parts = [(key, type(value), field(default=value)) for key, value in simple.items()]

    def environment(options: Any) -> Environment:
        chosen = {key: getattr(options, key) for key in simple}
        if options.horizon is not None:
            chosen["horizon"] = options.horizon
        return built(name, lambda: make(chosen))

    options = make_dataclass(
        f"{id_}Config",
        [*parts, limit],
        frozen=True,
        namespace={
            "__doc__": f"Options of {name}.",
            "__module__": __name__,
            "__post_init__": lambda self: check(self, "world."),
            "world_name": name,
            "is_free": True,
            "environment": environment,
            "own_horizon": property(lambda self: self.environment().horizon),
            "DOCS": dict.fromkeys(simple, f"As {name.partition(':')[0]} has it.")
            | {**(docs or {}), "horizon": HORIZON},
        },
    )
    members = {
        "__module__": __name__,
        "__doc__": about,
        "__annotations__": {"config": options},
        "config": eqx.field(static=True),
    }
    made: Any = type(SuiteWorld)(id_, (SuiteWorld,), members)
    return made


def built(name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives; whatever a suite objects to is said in one line."""
    try:
        return make()
    except InputError:
        raise
    except jax.errors.ConcretizationTypeError as error:
        says = "reset and step must be jax functions, which cannot branch on values (jnp.where can)"
        raise InputError(f"{name} cannot be made: {says}") from error
    except Exception as error:  # of a suite's own code, which may raise anything
        reason = " ".join(str(error).split())
        raise InputError(f"{name} cannot be made: {reason or type(error).__name__}") from error


def library(name: str, extra: str) -> ModuleType:
    """A suite's package, or one line that says how to have it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        how = f"pip install 'primax-rl[{extra}]', or from a clone pip install '.[{extra}]'"
        raise InputError(
            f"worlds of {name} need a package that is not here ({error}): {how}"
        ) from error


def known_id(suite: str, id_: str, known: tuple[str, ...]) -> str:
    """The id as the suite spells it; an unknown one is refused with the nearest."""
    found = {canonical(name): name for name in known}.get(canonical(id_))
    if found is None:
        near = [name for name in known if canonical(id_) in canonical(name)] or known
        raise InputError(f"{suite} has no environment {id_!r}{hint(id_, near, f'{suite}:')}")
    return found


def parameters(params: Any) -> dict[str, Any]:
    """Fields of a suite's dataclass of parameters."""
    return {item.name: getattr(params, item.name) for item in fields(params)}


def as_planes(obs: Shaped[Array, "..."]) -> Shaped[Array, "c rows cols"]:
    """Zeros and ones with the channels last, or without channels, as binary planes."""
    obs = obs[..., None] if obs.ndim == 2 else obs
    return jnp.moveaxis(obs, -1, 0).astype(jnp.uint8)


def as_vector(obs: Shaped[Array, "..."]) -> Float[Array, " numbers"]:
    """Numbers of any shape in one row."""
    return jnp.asarray(obs, jnp.float32).reshape(-1)
