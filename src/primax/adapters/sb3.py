"""PRIME and the other rewards in the agents of Stable-Baselines3, in one line.

A replay buffer for those that have one (DQN, QR-DQN), a callback for those that have none (PPO, A2C).
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from primax.adapters.kept import Kept, Options
from primax.anywhere.space import Space
from primax.anywhere.transition import Transition
from primax.errors import InputError

try:
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
except ImportError as error:
    raise ImportError(
        f"Stable-Baselines3 is not there ({error}): pip install 'primax-rl[sb3]'"
    ) from error

GAMMA = 0.99
"""The discount that SB3's agents have unless told otherwise."""


class BonusReplayBuffer(ReplayBuffer):
    """A replay buffer whose rows are worth the task and, as of now, a bonus.

    Keeps the task's rewards alone. The bonus sees every new step once, when it is added. What it is
    made of goes into the agent's `replay_buffer_kwargs`: `bonus`, and the other options by name.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        bonus: Any = "prime",
        **options: Any,
    ):
        if optimize_memory_usage:
            raise InputError(
                "optimize_memory_usage keeps no episode's last observation, which a bonus is paid"
                " for: leave it out, and make buffer_size smaller"
            )
        self._kept: Kept | None = _kept(observation_space, action_space, n_envs, bonus, options)
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            handle_timeout_termination=handle_timeout_termination,
        )

    @property
    def kept(self) -> Kept:
        """The bonus and its state."""
        if self._kept is None:
            raise InputError(
                "this buffer came from a file, which holds no bonus: primax.sb3.load_bonus(model,"
                " path) puts a saved one beside it, load_bonus(model, None) a new one"
            )
        return self._kept

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: Any,
    ) -> None:
        """Stores a step of every environment, and lets the bonus see it."""
        kept, done = self.kept, np.asarray(done, bool)
        for i in np.flatnonzero(done):
            last = infos[i].get("terminal_observation")
            if _is_scaled(obs, last) and not np.array_equal(next_obs[i], last):
                raise _scaled_whole_numbers()
        cut = _cut(done, infos) & self.handle_timeout_termination
        lead = (self.n_envs,)
        kept.step(
            Transition(
                obs, np.reshape(action, lead), next_obs, done & ~cut, cut, task=np.array(reward)
            )
        )
        super().add(obs, next_obs, action, reward, done, infos)

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> ReplayBufferSamples:
        """Rows with the rewards of the bonus's newest window; env is the agent's VecNormalize."""
        kept = self.kept
        # Drawn as SB3 draws them: with weight 0 an agent learns to the bit what it does without.
        at = batch_inds, np.random.randint(0, high=self.n_envs, size=(len(batch_inds),))
        obs, next_obs, actions = (
            x[at] for x in (self.observations, self.next_observations, self.actions)
        )
        done, cut, task = self.dones[at], self.timeouts[at], self.rewards[at]
        rows = Transition(
            obs, actions.reshape(-1), next_obs, done * (1 - cut), done * cut, task=task
        )
        rewards = kept.added(self._normalize_reward(task, env), kept.score(rows), kept.weight())
        data: tuple[Any, ...] = (
            self._normalize_obs(obs, env),
            actions,
            self._normalize_obs(next_obs, env),
            (done * (1 - cut)).reshape(-1, 1),
            rewards.reshape(-1, 1),
        )
        return ReplayBufferSamples(*map(self.to_torch, data))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": None}


class BonusCallback(BaseCallback):
    """Adds a bonus to the rewards of PPO or A2C, step by step, before advantages are computed.

    `options` are the others by name; the callback goes to `learn`.
    """

    def __init__(self, bonus: Any = "prime", verbose: int = 0, **options: Any):
        super().__init__(verbose)
        self._options = Options.of(bonus, options)
        self._kept: Kept | None = None
        self._load: str | Path | None = None

    @property
    def kept(self) -> Kept:
        """The bonus and its state; there is none until learning begins."""
        if self._kept is None:
            raise InputError("this callback has no bonus yet: learn(callback=...) makes it")
        return self._kept

    def _init_callback(self) -> None:
        model = self.model
        if not isinstance(model, OnPolicyAlgorithm):
            raise InputError(
                f"BonusCallback is for PPO and A2C: give {type(model).__name__}"
                " replay_buffer_class=BonusReplayBuffer"
            )
        if self._kept is None:
            space = Space.of_spaces(model.observation_space, model.action_space)
            self._kept = Kept(self._options, space, model.n_envs, model.gamma)
        if self._load is not None:
            self._kept.load(self._load)
            self._load = None
        self._scale = model.get_vec_normalize_env()
        if self._scale is not None and not self._scale.norm_obs:
            self._scale = None

    def _on_training_start(self) -> None:
        self._obs = self._raw(self.model._last_obs)

    def _raw(self, shown: Any) -> np.ndarray:
        """What the environments show, before VecNormalize scales it."""
        return np.array(shown if self._scale is None else self._scale.get_original_obs())

    def _on_step(self) -> bool:
        """A step was taken; its rewards are not stored yet."""
        rewards, done, infos = (self.locals[name] for name in ("rewards", "dones", "infos"))
        if rewards.dtype.kind != "f":
            raise InputError(
                f"rewards are {rewards.dtype}, to which nothing can be added: let the environment"
                " give floats, or wrap it: VecNormalize(env, norm_obs=False, norm_reward=False)"
            )
        done = np.asarray(done, bool)
        obs, shown = self._obs, self._raw(self.locals["new_obs"])
        next_obs = self._led_to(shown, done, infos)
        cut = _cut(done, infos)
        actions = np.reshape(self.locals["actions"], (len(done),))
        worth = self.kept.step(
            Transition(obs, actions, next_obs, done & ~cut, cut, task=np.array(rewards))
        )
        weight = self.kept.weight(self.model._current_progress_remaining)
        rewards[:] = self.kept.added(rewards, worth, weight)
        self._obs = shown
        self.logger.record_mean("rollout/bonus_mean", float(worth.mean()))
        self.logger.record("rollout/bonus_weight", weight)
        return True

    def _led_to(self, shown: np.ndarray, done: np.ndarray, infos: Any) -> np.ndarray:
        """What steps led to: at an episode's end the last observation, not the next one's first."""
        found = shown.copy()
        for i in np.flatnonzero(done):
            last = infos[i].get("terminal_observation")
            if last is None:
                raise InputError(
                    "an episode ended without infos[i]['terminal_observation']: the bonus needs"
                    " the last observation, which the VecEnvs of Stable-Baselines3 give"
                )
            if self._scale is not None:
                if _is_scaled(found, last):
                    raise _scaled_whole_numbers()
                last = self._scale.unnormalize_obs(last)
            found[i] = last
        return found


def save_bonus(where: Any, path: str | Path) -> None:
    """Writes the bonus of a model with a BonusReplayBuffer, or of a BonusCallback, to one file.

    Stable-Baselines3's own files hold the agent and not the bonus.
    """
    _owner(where).kept.save(path)


def load_bonus(where: Any, path: str | Path | None) -> None:
    """Goes on with a saved bonus; with None, a buffer that came from a file gets a new one."""
    owner = _owner(where)
    if isinstance(owner, BonusCallback):
        if owner._kept is None:
            owner._load = path  # learning makes the bonus
            return
    elif owner._kept is None:
        told = {"bonus": "prime"} | where.replay_buffer_kwargs
        names = {field.name for field in dataclasses.fields(Options)}
        told = {name: value for name, value in told.items() if name in names}
        spaces = owner.observation_space, owner.action_space
        owner._kept = _kept(*spaces, owner.n_envs, told.pop("bonus"), told)
    if path is not None:
        owner.kept.load(path)


def _owner(where: Any) -> BonusReplayBuffer | BonusCallback:
    found = where if isinstance(where, BonusCallback) else getattr(where, "replay_buffer", None)
    if not isinstance(found, BonusReplayBuffer | BonusCallback):
        raise InputError(
            f"expected a model with a BonusReplayBuffer, or a BonusCallback, got {where!r}"
        )
    return found


def _kept(seen: Any, done: Any, envs: int, bonus: Any, given: dict[str, Any]) -> Kept:
    options = Options.of(bonus, given)
    if options.is_scheduled and options.steps is None:
        raise InputError(
            "schedule: a replay buffer is not told how far learning is, so say steps=, the number"
            " that learn() gets"
        )
    kept = Kept(options, Space.of_spaces(seen, done), envs, GAMMA)
    reward = kept.bonus.core.reward
    if reward.pays_once or reward.reads_next_memo:
        raise InputError(
            f"what {kept.bonus.config.method} pays depends on when a step was taken, and rows are"
            " replayed here: choose another, or for rnd leave reward.read out"
        )
    return kept


def _cut(done: np.ndarray, infos: Any) -> np.ndarray:
    """Which episodes were cut by a time limit, and did not end by themselves."""
    return done & np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])


def _is_scaled(obs: np.ndarray, last: Any) -> bool:
    """Whether observations are whole numbers and an episode's last one is not."""
    return last is not None and obs.dtype.kind in "bui" and np.asarray(last).dtype.kind == "f"


def _scaled_whole_numbers() -> InputError:
    return InputError(
        "VecNormalize scales observations that are whole numbers, and loses episodes' last ones:"
        " give it norm_obs=False (the bonus scales for itself)"
    )
