"""A PRIME window in plain numpy float64, written from the paper: slow, and with nothing shared.

Taken from the program are the layout of a network's parameters and three random draws, the probes
and the rows that calibrate; networks arrive as trees of numpy arrays with the heads' axis first.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Rows:
    """The snapshot, oldest row first."""

    obs: np.ndarray
    action: np.ndarray
    key: np.ndarray
    next_key: np.ndarray
    next_obs: np.ndarray
    is_valid: np.ndarray
    weight: np.ndarray
    is_last: np.ndarray

    @property
    def speak(self) -> np.ndarray:
        """Which rows count: written, and of a world that had not ended."""
        return self.is_valid & (self.weight > 0)


@dataclass
class Nets:
    """Parameters."""

    online: Any
    prior: Any
    encoder: Any


@dataclass
class Draws:
    """What only a random key decides."""

    phi_probes: np.ndarray
    psi_probes: np.ndarray
    calibration: np.ndarray
    """Rows whose next states calibrate."""


@dataclass
class World:
    """Of count keys: ((row * cols + col) * levels + level) * actions + action."""

    cols: int
    levels: int
    num_actions: int

    def place(self, key: int) -> np.ndarray:
        state = key // self.num_actions
        cell, level = state // self.levels, state % self.levels
        return np.array([cell // self.cols, cell % self.cols, level], float)


def conv3x3(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """x is (n, rows, cols, c); the weight's inputs go by row shift, column shift, channel."""
    n, rows, cols, c = x.shape
    kernel = weight.reshape(3, 3, c, -1)
    padded = np.zeros((n, rows + 2, cols + 2, c))
    padded[:, 1:-1, 1:-1] = x
    out = np.zeros((n, rows, cols, kernel.shape[-1])) + bias
    for i in range(3):
        for j in range(3):
            out += padded[:, i : i + rows, j : j + cols] @ kernel[i, j]
    return out


def trunk(params: Any, obs: np.ndarray, at: Any = ()) -> np.ndarray:
    """Two convolutions with ReLU and a linear embedding; `at` picks a head."""
    x = np.moveaxis(np.asarray(obs, float), 1, -1)
    for layer in (params.first, params.second):
        x = np.maximum(conv3x3(x, layer.weight[at], layer.bias[at]), 0.0)
    return x.reshape(len(x), -1) @ params.embed.weight[at] + params.embed.bias[at]


def phi(encoder: Any, obs: np.ndarray) -> np.ndarray:
    return np.tanh(trunk(encoder, obs))


def psi(obs: np.ndarray) -> np.ndarray:
    flat = np.asarray(obs, float).reshape(len(obs), -1)
    length = np.sqrt((flat**2).sum(axis=1, keepdims=True))
    return np.divide(flat, length, out=np.zeros_like(flat), where=length > 0)


def quantiles(nets: Nets, k: int, obs: np.ndarray, num_actions: int, config: Any) -> np.ndarray:
    """q_{k,i}(s, a) as (n, actions, quantiles): the prior is inside the tanh."""
    raw = [
        trunk(net.trunk, obs, k) @ net.head.weight[k] + net.head.bias[k]
        for net in (nets.online, nets.prior)
    ]
    q = config.quantile_bound * np.tanh(raw[0] + config.prior_strength * raw[1])
    return q.reshape(len(obs), num_actions, -1)


def softmax(x: np.ndarray) -> np.ndarray:
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


def calibrate(logit: np.ndarray, reference: np.ndarray, config: Any) -> tuple[float, float]:
    """(a, b) of one head: a fitted and clamped, then b fitted to that a and clamped."""
    x, y = logit.ravel(), reference.ravel()
    design = np.stack([x, np.ones_like(x)], axis=1)
    slope = np.linalg.lstsq(design, y, rcond=None)[0][0]
    a = min(max(slope, config.a_min), config.a_max)
    b = sum(y - a * x) / len(x)
    return a, min(max(b, -config.b_max), config.b_max)


def v_count(count: float, config: Any, gamma: float) -> float:
    return config.count_scale * gamma**2 * math.tanh(1 / math.sqrt(count + 1)) ** 2


class Oracle:
    """A frozen window: `policy`, `slope`, `offset`, and the parts of the reward at any (s, a)."""

    def __init__(
        self,
        rows: Rows,
        counts: np.ndarray,
        nets: Nets,
        draws: Draws,
        world: World,
        config: Any,
        gamma: float,
    ):
        self.rows, self.counts, self.nets, self.world = rows, counts, nets, world
        self.config, self.gamma = config, gamma
        num = world.num_actions
        logits = np.stack(
            [
                quantiles(nets, k, rows.next_obs, num, config).mean(axis=-1)
                for k in range(config.heads)
            ]
        )
        self.policy = softmax(logits[0] / config.temperature)
        probe = self.policy.argmax(axis=1)
        at = draws.calibration
        fits = [calibrate(logit[at], logits[0][at], config) for logit in logits]
        self.slope, self.offset = np.array(fits).T

        returns = np.zeros((len(rows.key), config.heads))
        for k in range(config.heads):
            calibrated = self.slope[k] * logits[k] + self.offset[k]
            centred = calibrated - calibrated.mean(axis=1, keepdims=True)
            returns[:, k] = gamma * (self.policy * centred).sum(axis=1)
        self.returns = returns
        self.phi_readings = gamma * phi(nets.encoder, rows.next_obs) @ draws.phi_probes.T
        self.psi_readings = gamma * psi(rows.next_obs) @ draws.psi_probes.T
        self.places = self._places(rows.obs, rows.key)
        after_places = self._places(rows.next_obs, rows.next_key * num)
        after = [
            self._v_epi(rows.next_key[i] * num + probe[i], probe[i], after_places[i])
            for i in range(len(rows.key))
        ]
        self.ahead = np.array([self._look_ahead(after, i) for i in range(len(after))])

    def _places(self, obs: np.ndarray, key: np.ndarray) -> np.ndarray:
        if self.config.moments == "knn16":
            return phi(self.nets.encoder, obs)
        return np.stack([self.world.place(k) for k in key])

    def _rows(self, key: int, action: int, place: np.ndarray) -> tuple[list[int], np.ndarray]:
        """The rows that speak for (s, a), and their weights."""
        rows = self.rows
        if self.config.moments == "bucket":
            found = [i for i in range(len(rows.key)) if rows.speak[i] and rows.key[i] == key]
            return found, np.full(len(found), 1 / max(len(found), 1))
        alike = [i for i in range(len(rows.key)) if rows.speak[i] and rows.action[i] == action]
        away = {i: float(((self.places[i] - place) ** 2).sum()) for i in alike}
        found = sorted(alike, key=lambda i: (away[i], -i))[: self.config.neighbours]
        if not found:
            return [], np.zeros(0)
        far = np.array([away[i] for i in found])
        width = far[(len(far) - 1) // 2]
        weight = np.ones(len(far))
        if self.config.weights == "gaussian" and width > 0:
            weight = np.exp(-far / (2 * width))
        if self.config.weights == "rank":
            weight = 1 / (1 + np.arange(len(far)))
        return found, weight / weight.sum()

    def _moments(self, found: list[int], weight: np.ndarray, channels: np.ndarray):
        """Weighted mean and biased variance; zeros without rows."""
        if not found:
            return np.zeros(channels.shape[1]), np.zeros(channels.shape[1])
        x = channels[found]
        mean = (weight[:, None] * x).sum(axis=0)
        return mean, (weight[:, None] * (x - mean) ** 2).sum(axis=0)

    def _v_lotv(self, found: list[int], weight: np.ndarray) -> float:
        mean, _ = self._moments(found, weight, self.returns)
        return ((mean - mean.mean()) ** 2).sum() / len(mean)

    def _v_epi(self, key: int, action: int, place: np.ndarray) -> float:
        count = v_count(self.counts[key], self.config, self.gamma)
        return max(self._v_lotv(*self._rows(key, action, place)), count)

    def _look_ahead(self, after: list[float], i: int) -> float:
        total = 0.0
        for j in range(1, self.config.gate_horizon + 1):
            total += self.config.gate_decay ** (j - 1) * after[i + j - 1]
            if self.rows.is_last[i + j - 1] or i + j == len(after):
                break
        return total

    def parts(self, obs: np.ndarray, action: np.ndarray, key: np.ndarray) -> dict[str, np.ndarray]:
        """Everything the reward is made of, at many (s, a)."""
        places = self._places(obs, key)
        every = [self._part(*query) for query in zip(key, action, places, strict=True)]
        return {name: np.array([one[name] for one in every]) for name in every[0]}

    def _part(self, key: int, action: int, place: np.ndarray) -> dict[str, Any]:
        config = self.config
        found, weight = self._rows(key, action, place)
        _, noise = self._moments(found, weight, self.returns)
        _, noise_phi = self._moments(found, weight, self.phi_readings)
        _, noise_psi = self._moments(found, weight, self.psi_readings)
        ahead = self._moments(found, weight, self.ahead[:, None])[0][0]
        count, lotv = v_count(self.counts[key], config, self.gamma), self._v_lotv(found, weight)
        v_epi, v_ale = max(count, lotv), max(noise.mean(), noise_phi.mean(), noise_psi.mean())
        bracket = max(v_ale - config.gate_weight * ahead, 0.0)
        r_int = v_epi - config.aleatoric_weight * math.log(1 + bracket / config.log_scale)
        clip = config.reward_clip
        return {
            "v_count": count,
            "v_lotv": lotv,
            "v_epi": v_epi,
            "v_ale_heads": noise.mean(),
            "v_ale_phi": noise_phi.mean(),
            "v_ale_psi": noise_psi.mean(),
            "v_ale": v_ale,
            "v_ahead": ahead,
            "bracket": bracket,
            "has_data": bool(found),
            "r_int": r_int,
            "reward": min(max(config.reward_scale * r_int, -clip), clip),
        }


def quantile_huber(q: np.ndarray, targets: np.ndarray) -> float:
    """κ = 1: a sum over own quantiles of means over targets, by loops."""
    total = 0.0
    for i in range(len(q)):
        level = (2 * i + 1) / (2 * len(q))
        for target in targets:
            error = target - q[i]
            huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
            total += abs(level - (error < 0)) * huber / len(targets)
    return total


def inverse_loss(
    model: Any, obs: np.ndarray, next_obs: np.ndarray, action: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """Mean cross-entropy over the minibatch, and the share of weighted rows guessed right."""
    pair = np.concatenate([phi(model.encoder, obs), phi(model.encoder, next_obs)], axis=1)
    hidden = np.maximum(pair @ model.hidden.weight + model.hidden.bias, 0.0)
    chance = softmax(hidden @ model.out.weight + model.out.bias)
    rows = np.arange(len(action))
    surprise = -np.log(chance[rows, action])
    right = chance.argmax(axis=1) == action
    return (weight * surprise).mean(), (weight * right).sum() / weight.sum()
