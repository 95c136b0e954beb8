"""A reward for someone's own environment and agent: what `primax.bonus` gives."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from primax.anywhere import door, files
from primax.anywhere.config import BonusConfig, Critics, Episodes
from primax.anywhere.core import BonusState, Core
from primax.anywhere.space import Space
from primax.anywhere.transition import Transition
from primax.config.fields import flatten, override
from primax.errors import InputError
from primax.methods import Method, find_method
from primax.nn.encoders import Encoder, Own
from primax.nn.encoders import encoder as encoder_of
from primax.rewards.base import Reward, Spec
from primax.rewards.keys import Given, Keys, Same, SimHash, check_counts, find
from primax.rewards.transition import Batch

IMAGES = 20_000
"""Transitions kept where observations are images, unless said: they take much memory."""


class Bonus:
    """A reward, with its memory and its schedule, over `envs` environments.

    Every function is pure and takes and gives the whole state; called outside `jax.jit`, `step` and
    `learn` use up the state they are given.
    """

    def __init__(self, space: Space, core: Core):
        self.space, self.core = space, core
        self._init = jax.jit(self._precisely(core.init))
        self._step = jax.jit(self._precisely(core.step), donate_argnums=0)
        self._score = jax.jit(self._precisely(self._scored))
        self._learn = jax.jit(self._precisely(self._learnt), donate_argnums=0)
        self._parts = jax.jit(self._precisely(self._made_of))
        self._memo = jax.jit(core.memo)
        self._view = jax.jit(core.reward.view)

    def _precisely(self, function: Any) -> Any:
        """Traced in the precision that the networks are to have."""
        is_highest = self.config.net.precision == "highest"

        def traced(*args: Any) -> Any:
            with jax.default_matmul_precision("highest" if is_highest else None):
                return function(*args)

        return traced

    @property
    def config(self) -> BonusConfig:
        """All settings."""
        return self.core.config

    @property
    def envs(self) -> int:
        """Environments that are stepped together."""
        return self.config.envs

    @property
    def view_shape(self) -> tuple[int, ...]:
        """The shape of what the agent should see (see `view`)."""
        return self.core.reward.view_shape

    def __repr__(self) -> str:
        space = self.space
        sizes = (x.size * x.dtype.itemsize for x in jax.tree.leaves(self._like))
        shown = f"{space.kind} {list(space.obs)}, {space.num_actions} actions"
        keys = "" if isinstance(self.core.keys, Same) else f", keys {self.core.keys!r}"
        envs = f"{self.envs} environment{'s' if self.envs > 1 else ''}"
        return f"Bonus({self.config.method}: {shown}, {envs}{keys}, {sum(sizes) / 1e6:.1f} MB)"

    def init(self, seed: int | Any = 0) -> BonusState:
        """The state before the first step, from a seed's number or a jax key."""
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            if not 0 <= seed < 2**31:
                raise InputError(f"seed takes a whole number from 0 to {2**31 - 1}, got {seed}")
            # As in the engine: seed 3 here is seed 3 of a run.
            seed = jax.random.fold_in(jax.random.key(0), int(seed))
        elif not (isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)):
            raise InputError(f"seed takes a whole number or a jax.random.key, got {seed!r}")
        return self._init(seed)

    def step(self, state: BonusState, steps: Transition) -> tuple[BonusState, Any]:
        """Takes steps in, in the order of time, and says what each is worth: [time, envs].

        Counts, learns and freezes as is due. A reward is that of the window its step was taken in.
        """
        self._check(state, steps)
        given = door.lead(self.space, steps.obs)
        whole = door.step_lead(self.space, self.envs, steps.obs)
        for name in ("terminated", "truncated"):
            if getattr(steps, name) is None:
                raise InputError(f"{name}: expected true or false for every step, got nothing")
        made = door.take(self.space, self.core.keys, steps, given, whole)
        if self.core.reward.needs_horizon:
            door.check_lengths(made, state.time, self.config.world.horizon)
        if not isinstance(steps.obs, jax.Array) and door.is_known(state.clock):
            door.check_clock(state.clock, whole)
        state, worth = self._step(state, replace(made, memo=(), next_memo=()))
        return state, _like(steps.obs, worth.reshape(given))

    def score(self, state: BonusState, steps: Transition) -> Any:
        """What any transitions are worth now; nothing is learnt. Leading axes are kept."""
        self._check(state, steps)
        if self.core.reward.pays_once and not jax.tree.leaves(steps.next_memo):
            raise InputError(
                "score: this reward is paid once, when a step is taken: take what `step` gives"
            )
        given, made = self._rows(steps)
        return _like(steps.obs, self._score(state, made).reshape(given))

    def learn(self, state: BonusState, steps: Transition) -> tuple[BonusState, dict[str, Any]]:
        """One update of the reward's own networks on a minibatch of the agent's, and what it measured.

        Needed only where `update_every` is 0: otherwise `step` learns by itself.
        """
        self._check(state, steps)
        given, made = self._rows(steps)
        if 0 in given:
            raise InputError("learn: expected at least one transition, got none")
        return self._learn(state, made)

    def parts(self, state: BonusState, steps: Transition) -> dict[str, Any]:
        """What PRIME's reward of transitions is made of, by name."""
        if not hasattr(self.core.reward, "parts"):
            raise InputError(f"parts: {self.config.method} has none; prime has")
        self._check(state, steps)
        given, made = self._rows(steps)
        found = self._parts(state, made)
        return {name: _like(steps.obs, x.reshape(given)) for name, x in vars(found).items()}

    def memo(self, state: BonusState, obs: Any) -> Any:
        """What the reward keeps with the observation that every environment shows now: [envs]."""
        self._check(state, None)
        time, envs = door.step_lead(self.space, self.envs, obs)
        if time > 1:
            raise InputError(f"memo: expected what each environment shows now, got {time} steps")
        given = door.lead(self.space, obs)
        seen = door.observations(self.space, "obs", obs, given)
        return self._memo(state, seen.reshape(envs, *self.space.shape))

    def view(self, obs: Any, memo: Any = ()) -> Any:
        """What the agent should see: for some rewards more than the observation."""
        self._check_memo(memo, "view")
        given = door.lead(self.space, obs)
        seen = door.observations(self.space, "obs", obs, given)
        return _like(obs, self._view(seen, memo))

    def save(self, state: BonusState, path: str | Path) -> None:
        """Writes a state to one file."""
        self._check(state, None)
        if np.ndim(state.clock):
            raise InputError(
                "save takes the state of one seed: jax.tree.map(lambda x: x[0], states)"
            )
        files.save(self._about(), state, Path(path))

    def load(self, path: str | Path) -> BonusState:
        """The state that was saved, to the last bit."""
        return files.load(self._about(), self._like, Path(path))

    @cached_property
    def _like(self) -> BonusState:
        """Shapes and types of a state."""
        return jax.eval_shape(self.core.init, jax.random.key(0))

    def _about(self) -> dict[str, Any]:
        """What a saved state must agree with."""
        parts = {
            "space": self.space,
            "keys": self.core.keys,
            "encoder": self.core.reward.spec.encoder,
        }
        return flatten(self.config) | {name: repr(part) for name, part in parts.items()}

    def _rows(self, steps: Transition) -> tuple[tuple[int, ...], Transition]:
        """Transitions in one row, and the axes they came in."""
        if self.core.reward.reads_memo:
            self._check_memo(steps.memo, "memo")
        if self.core.reward.reads_next_memo and not jax.tree.leaves(steps.next_memo):
            raise InputError(
                f"next_memo: {self.config.method} keeps something with what a step led to: after"
                " `step` it is state.memo; or take what `step` gives"
            )
        given = door.lead(self.space, steps.obs)
        num = int(np.prod(given, dtype=int))
        return given, door.take(self.space, self.core.keys, steps, given, (num,))

    def _check(self, state: Any, steps: Any) -> None:
        if not isinstance(state, BonusState):
            raise InputError(f"state: expected what init gives, got {type(state).__name__}")
        if steps is not None and not isinstance(steps, Transition):
            raise InputError(f"expected a primax.Transition, got {type(steps).__name__}")
        key = state.key  # newer versions of jax keep what has been looked at, as the clock has
        if isinstance(key, jax.Array) and door.is_known(key) and key.is_deleted():
            raise InputError(
                "this state was used up by an earlier call: go on with the state which that returned"
            )

    def _check_memo(self, memo: Any, where: str) -> None:
        like = self._like.memo
        if jax.tree.structure(memo) != jax.tree.structure(like):
            name = self.config.method
            raise InputError(
                f"{where}: {name} keeps a memo with every observation: give bonus.memo(state, obs)"
                if jax.tree.leaves(like)
                else f"{where}: {name} keeps no memo, leave it out"
            )

    def _scored(self, state: BonusState, rows: Transition) -> Any:
        return self.core.score(state, self.core.batch(state, rows))

    def _learnt(self, state: BonusState, rows: Transition) -> Any:
        return self.core.learn(state, self.core.batch(state, rows))

    def _made_of(self, state: BonusState, rows: Transition) -> Any:
        reward: Any = self.core.reward
        batch: Batch = self.core.batch(state, rows)
        return reward.parts(state.reward, batch)


def bonus(
    method: str | Method,
    space: Space,
    envs: int = 1,
    gamma: float | None = None,
    keys: Any = None,
    encoder: Encoder | Any = None,
    settings: Mapping[str, object] | None = None,
) -> Bonus:
    """A reward for environments of this space: `prime`, `rnd`, ... or a `primax.Method`.

    `envs` environments are stepped together. `gamma` is the agent's discount. `keys` says which
    observations count as one state: 'given', (function, how many), 'simhash', or learnt: 'place',
    'codes', 'encoded'; 'simhash' unless said, or what the space gives. `encoder` is a network of
    yours: (key, width) to a module. `settings` are fields by name: {"window": 2_000,
    "reward.heads": 3}.
    """
    entry = find_method(method)
    if entry.mix:
        raise InputError(f"{entry.name} is a mix: take the bonus alone, and add it to your task")
    if not isinstance(space, Space):
        raise InputError(f"space takes a primax.Space, got {type(space).__name__}: Space.of(env)")
    changes = {"envs": envs} | ({} if gamma is None else {"critics.gamma": gamma})
    given = {name: str(value) for name, value in (changes | dict(settings or {})).items()}
    config = _configured(entry, space, given)
    known = _known(space, config, encoder)
    told = find(keys, space.num_keys).fitted(known)
    reward = _built(entry, config, space, known, told)
    if not reward.uses_keys:
        told = Same()
        reward = _built(entry, config, space, known, told)
    elif keys is None and isinstance(told, SimHash):
        warnings.warn(
            f"{entry.name} counts states, and no keys were given: observations are told apart by"
            f" {told}. keys='simhash' says so; keys='place', 'codes' or 'encoded' (learnt),"
            " keys='given' or keys=(function, how many) changes it",
            stacklevel=2,
        )
    if reward.needs_horizon and space.horizon is None and "world.horizon" not in given:
        raise InputError(
            f"{entry.name} must know how long episodes are: Space(horizon=...) says the most steps"
        )
    check_counts(told, reward, entry.name)
    if hasattr(config.reward, "check_fits"):
        config.reward.check_fits(config)
    return Bonus(space, Core(config, reward, told))


def _known(space: Space, config: BonusConfig, encoder: Encoder | Any) -> Spec:
    """What is known of environments before their keys are."""
    sees = encoder_of(space.kind, config.net) if encoder is None else encoder
    if not isinstance(sees, Encoder):
        if not callable(sees):
            raise InputError(f"encoder takes a function of (key, width), got {sees!r}")
        sees = Own(sees)
    return Spec(
        shape=space.shape,
        num_actions=space.num_actions,
        num_keys=0,
        horizon=config.world.horizon,
        net=config.net,
        gamma=config.critics.gamma,
        recent=config.recent_ticks * config.envs,
        channels=space.planes,
        kind=space.kind,
        encoder=sees,
        has_cells=False,
    )


def _built(entry: Method, config: BonusConfig, space: Space, known: Spec, keys: Keys) -> Reward:
    """The reward over these keys."""
    has_cells = space.has_cells and isinstance(keys, Given)
    spec = replace(known, num_keys=keys.num * space.num_actions, has_cells=has_cells)
    return entry.reward(spec, config.reward)


def _configured(entry: Method, space: Space, given: dict[str, str]) -> BonusConfig:
    """A reward's defaults in a space, changed by what is given."""
    if "method" in given:
        raise InputError("method is not a field to set: give it as the first argument")
    config = BonusConfig(
        method=entry.name,
        reward=entry.options(),
        critics=Critics(gamma=entry.critics.gamma),
        world=Episodes(**({"horizon": space.horizon} if space.horizon else {})),
        replay=IMAGES if space.kind == "image" else 100_000,
    )
    return override(config, given)


def _like(given: Any, x: Any) -> Any:
    """As numpy where numpy came in, and there are values."""
    return x if isinstance(given, jax.Array) or not door.is_known(x) else np.asarray(x)
