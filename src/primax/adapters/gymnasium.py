"""The worlds as Gymnasium environments, one at a time and natively batched.

Importing this module registers every world: `primax/Butterflies-v0`, `primax/Maze-v0` and so on;
an id such as `primax.gym:primax/Maze-v0` makes gymnasium import it.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from primax.errors import InputError, check_choice
from primax.worlds import WORLDS, GridWorld, make_world, on_grid
from primax.worlds.base import gather
from primax.worlds.drawing import render

RENDERERS = {"rgb_array": render.rgb, "ansi": render.ansi}
BLOCK = 128  # steps whose noise is drawn at once: a long horizon must not fill the memory


class View(NamedTuple):
    """Of every stream, what an observer gets."""

    obs: Any
    n_alive: Any
    """Targets left."""
    state_key: Any
    """What the count is kept of, together with the action."""
    task: Any
    """The task signal."""

    @property
    def info(self) -> dict[str, Any]:
        return {"n_alive": self.n_alive, "state_key": self.state_key, "task": self.task}


def _key(words, purpose):
    """A key from two random words, whatever generator jax is set to."""
    return jax.random.fold_in(jax.random.wrap_key_data(words, impl="threefry2x32"), purpose)


def _view(world: GridWorld, state, task):
    alive = jnp.sum(world.targets(state)[1], dtype=jnp.int32)
    return View(world.observe(state), alive, world.state_key(state), task)


@jax.jit
def _begin(world: GridWorld, seeds, words):
    """First states; no step led to them, so their task signal is zero."""

    def one(seed, words):
        mine = world.for_seed(seed)
        state = mine.reset(_key(words, 0))
        return state, _view(mine, state, jnp.zeros(()))

    return jax.vmap(one)(seeds, words)


@partial(jax.jit, static_argnames="steps")
def _draw(world: GridWorld, words, block, steps: int):
    """The noise of an episode's `block`-th run of `steps` steps."""
    return jax.vmap(lambda words: world.noise(_key(words, block + 1), steps))(words)


@partial(jax.jit, static_argnames="steps")
def _advance(world: GridWorld, seeds, noise, states, actions, steps: int):
    def one(seed, noise, state, action):
        mine = world.for_seed(seed)
        now = jax.tree.map(lambda leaf: gather(leaf, state.time % steps), noise)
        state = mine.step(state, action, now)
        return state, _view(mine, state, mine.task(state))

    return jax.vmap(one)(seeds, noise, states, actions)


def _checked(known: tuple[str, ...], actions: Any, num: int, given: Any) -> np.ndarray:
    """One action a stream as numbers, or one line that says what was needed and what `given`."""
    try:
        array = np.asarray(actions)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    is_whole = array.shape == (num,) and array.dtype.kind in "iu"
    if not is_whole or array.min() < 0 or array.max() >= len(known):
        what = "action must be an integer" if num == 1 else f"actions must be {num} integers"
        names = f"0 to {len(known) - 1} ({', '.join(known)})"
        raise InputError(f"{what} {names}, got {' '.join(repr(given).split())[:80]}")
    return array.astype(np.int32)


class _Streams:
    """Episodes of one world side by side, all at the same step; numpy in, numpy out."""

    def __init__(self, world: GridWorld, num: int, render_mode: str | None):
        if render_mode is not None:
            check_choice("render_mode", render_mode, RENDERERS)
        self.world, self.num, self._mode = world, num, render_mode
        self._steps = min(BLOCK, world.horizon)
        self._seeds = np.zeros(num, np.int32)
        self._time: int | None = None
        self._trail: deque = deque(maxlen=render.SHOWN)

    @property
    def is_over(self) -> bool:
        """Whether the episodes' time is up."""
        return self._time is not None and self._time >= self.world.horizon

    @property
    def has_ended(self) -> bool:
        """Whether the world itself is at an end, which some can be before their time."""
        if not self.world.can_end or self._time is None:
            return False
        ended = jax.vmap(lambda seed, state: self.world.for_seed(seed).terminated(state))
        return bool(np.all(ended(self._seeds, self._states)))

    def reset(self, seeds: Sequence[int | None], rngs: Sequence[np.random.Generator]) -> View:
        """New episodes; a stream without a seed keeps the world of its last one."""
        # A seed may have any size; jax takes 31 bits.
        both = zip(seeds, self._seeds, strict=True)
        self._seeds = np.array([old if new is None else new % 2**31 for new, old in both], np.int32)
        self._words = np.stack([rng.integers(2**32, size=2, dtype=np.uint32) for rng in rngs])
        self._states, self._seen = _begin(self.world, self._seeds, self._words)
        self._time, self._score, self._total = 0, np.zeros(self.num), self._seen.n_alive
        self._trail.clear()
        return self._numpy()

    def step(self, actions: np.ndarray) -> View:
        if self._time is None or self.is_over or self.has_ended:
            raise ResetNeeded("no episode is running: call reset() before step()")
        if self._time % self._steps == 0:
            block = self._time // self._steps
            self._noise = _draw(self.world, self._words, block, steps=self._steps)
        self._trail.append(self._states.agent)
        self._states, self._seen = _advance(
            self.world, self._seeds, self._noise, self._states, actions, steps=self._steps
        )
        self._time += 1
        view = self._numpy()
        self._score += view.task
        return view

    def _numpy(self) -> View:
        """Copies: the caller may write on them."""
        kinds = (None, np.int64, np.int64, np.float64)
        return View(*(np.array(seen, kind) for seen, kind in zip(self._seen, kinds, strict=True)))

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text of every stream."""
        if self._mode is None:
            gymnasium.logger.warn("render() has nothing to do: make() was given no render_mode")
            return None
        if self._time is None:
            raise ResetNeeded("there is nothing to show: call reset() before render()")
        trail = np.array([*self._trail], int).reshape(-1, self.num)
        view = self._numpy()
        total = np.asarray(self._total)
        scenes = [
            render.Scene(
                planes=view.obs[i],
                channels=self.world.channels,
                trail=tuple(trail[:, i].tolist()),
                time=self._time,
                horizon=self.world.horizon,
                score=float(self._score[i]),
                alive=int(view.n_alive[i]),
                total=int(total[i]),
            )
            for i in range(self.num)
        ]
        return tuple(map(RENDERERS[self._mode], scenes))


def _spaces(world: GridWorld) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    box = gymnasium.spaces.Box(0, 1, world.obs_shape, np.uint8)
    return box, gymnasium.spaces.Discrete(world.num_actions)


class WorldEnv(gymnasium.Env[np.ndarray, int]):
    """One episode at a time; the reward is the world's task signal, the end its horizon.

    `world` is a name, `options` are those of `primax.make_world`. `render_mode` is `rgb_array` or `ansi`.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDERERS), "render_fps": 8}  # noqa: RUF012

    def __init__(self, world: str, render_mode: str | None = None, **options: Any):
        self.metadata = dict(self.metadata)  # gymnasium's vector envs write into it
        self.render_mode = render_mode
        self.world = on_grid(make_world(world, **options), "this adapter")
        self.observation_space, self.action_space = _spaces(self.world)
        self._streams = _Streams(self.world, 1, render_mode)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode; `options` are not used."""
        super().reset(seed=seed)
        view = self._streams.reset([seed], [self.np_random])
        return view.obs[0], {name: values.item() for name, values in view.info.items()}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Moves the agent: N, S, E, W or Stay."""
        view, streams = (
            self._streams.step(_checked(self.world.actions, [action], 1, action)),
            self._streams,
        )
        info = {name: values.item() for name, values in view.info.items()}
        return view.obs[0], info["task"], streams.has_ended, streams.is_over, info

    def render(self) -> Any:
        """A picture (`rgb_array`) or a text (`ansi`) of this moment."""
        frames = self._streams.render()
        return frames and frames[0]


class WorldVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many episodes in one compiled step; they start and end together.

    Sub-environment i is, bit for bit, the `WorldEnv` with its seed. Worlds that end before their time
    are refused.
    """

    metadata: dict[str, Any] = WorldEnv.metadata

    def __init__(
        self,
        num_envs: int,
        world: str,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **options: Any,
    ):
        if num_envs < 1:
            raise InputError(f"num_envs must be at least 1, got {num_envs}")
        self.world = on_grid(make_world(world, **options), "this adapter")
        if self.world.can_end:
            how = 'gymnasium.make_vec(..., vectorization_mode="sync")'
            raise InputError(f"{world} may end before its time, here all end together: use {how}")
        if isinstance(autoreset_mode, str):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space, self.single_action_space = _spaces(self.world)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._streams = _Streams(self.world, num_envs, render_mode)
        self._sources = [seeding.np_random() for _ in range(num_envs)]

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # ty: ignore[incompatible-property-override]
        """Every sub-environment's generator, as in gymnasium's own vector environments."""
        return tuple(rng for rng, _ in self._sources)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # ty: ignore[incompatible-property-override]
        """The seed each of them was made of."""
        return tuple(seed for _, seed in self._sources)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts all episodes; a whole number seeds sub-environment i with `seed + i`."""
        if not np.all((options or {}).get("reset_mask", True)):
            raise InputError("reset_mask must be all True: the environments run in lockstep")
        if not isinstance(seed, Sequence):
            seed = [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise InputError(f"{self.num_envs} seeds are needed, got {len(seed)}")
        self._sources = [
            old if new is None else seeding.np_random(new)
            for new, old in zip(seed, self._sources, strict=True)
        ]
        return self._restart(seed)

    def _restart(self, seeds: Sequence[int | None]) -> tuple[np.ndarray, dict[str, Any]]:
        view = self._streams.reset(seeds, self.np_random)
        return view.obs, self._info(**view.info)

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action each; at the horizon what `autoreset_mode` says."""
        actions, never = (
            _checked(self.world.actions, actions, self.num_envs, actions),
            np.zeros(self.num_envs, bool),
        )
        anew = [None] * self.num_envs
        if self._streams.is_over and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            obs, info = self._restart(anew)
            return obs, np.zeros(self.num_envs), never, never.copy(), info
        view = self._streams.step(actions)
        obs, task = view.obs, view.task.copy()  # info has its own
        truncated = np.full(self.num_envs, self._streams.is_over)
        info = self._info(**view.info)
        if self._streams.is_over and self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = np.empty(self.num_envs, object)
            for i, row in enumerate(obs):
                final[i] = row
            last = self._info(final_obs=final, final_info=info)
            obs, info = self._restart(anew)
            info |= last
        return obs, task, never, truncated, info

    def _info(self, **values: Any) -> dict[str, Any]:
        """Each value with gymnasium's mask of who has it: everyone."""
        masks = {f"_{name}": np.ones(self.num_envs, bool) for name in values}
        return {**values, **masks}

    def render(self) -> tuple[Any, ...] | None:
        """A picture or a text of every sub-environment."""
        return self._streams.render()


def ids() -> dict[str, str]:
    """Every world under its id: `primax/Maze-v0` for `maze`."""
    return {f"primax/{kind.__name__}-v0": name for name, kind in WORLDS.items()}


def register() -> None:
    """Adds the ids to gymnasium's registry, leaving alone those that are there.

    It is called on import; call it again after adding a world of your own to `primax.WORLDS`.
    """
    for env_id, world in ids().items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point="primax.gym:WorldEnv",
                vector_entry_point="primax.gym:WorldVectorEnv",
                kwargs={"world": world},
            )


register()
