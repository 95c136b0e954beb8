"""PRIME's reward in eager PyTorch: statistics heads, inverse model, counts, and the frozen window.

The estimates depend on a transition's count key alone, so a window's reward is a table.
"""

from dataclasses import dataclass

import numpy as np
import torch_nets
from torch_nets import torch

from primax.config.schema import Config
from primax.rewards.base import Spec

nn, functional = torch.nn, torch.nn.functional
ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class Batch:
    """Transitions; every tensor leads with them."""

    obs: torch.Tensor
    action: torch.Tensor
    task: torch.Tensor
    next_obs: torch.Tensor
    terminated: torch.Tensor
    key: torch.Tensor
    next_key: torch.Tensor


@dataclass(frozen=True)
class Draws:
    """What a window's beginning draws: rows to calibrate on, and the probes."""

    chosen: torch.Tensor
    phi: torch.Tensor
    psi: torch.Tensor


class Inverse(nn.Module):
    """φ and the classifier that tells the action from (s, s')."""

    def __init__(self, spec: Spec, features: int):
        super().__init__()
        self.encoder = torch_nets.trunk(spec.shape, spec.net, features)
        self.hidden = nn.Linear(2 * features, spec.net.embedding)
        self.out = nn.Linear(spec.net.embedding, spec.num_actions)

    def encode(self, obs: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.encoder(obs))

    def forward(self, obs: torch.Tensor, next_obs: torch.Tensor) -> torch.Tensor:
        pairs = torch.cat(self.encode(torch.cat([obs, next_obs])).chunk(2), dim=1)
        return self.out(torch.relu(self.hidden(pairs)))


class Prime:
    """One seed's reward."""

    def __init__(self, spec: Spec, config: Config, device: str):
        self.spec, self.config, self.device = spec, config.reward, device
        reward, outputs = config.reward, spec.num_actions * config.reward.quantiles
        make = lambda: torch_nets.net(spec.shape, spec.net, outputs)  # noqa: E731
        rate, clip = reward.stats_learning_rate, reward.grad_clip
        self.heads = torch_nets.Ensemble(make, reward.heads, rate, clip, device)
        self.priors = torch_nets.frozen([make().to(device) for _ in range(reward.heads)])
        guess = lambda: Inverse(spec, reward.feature_dim)  # noqa: E731
        self.inverse = torch_nets.Ensemble(guess, 1, reward.phi_learning_rate, clip, device)
        self.middle = (torch.arange(reward.quantiles, device=device) + 0.5) / reward.quantiles
        self.counts = np.zeros(spec.num_keys, np.int64)

    def observe(self, key: int) -> None:
        """One step was taken."""
        self.counts[key] += 1

    def score(self, key: torch.Tensor) -> torch.Tensor:
        """What transitions are worth until the next window begins."""
        return self.reward[key]

    def quantiles(self, net: nn.Module, prior: nn.Module, obs: torch.Tensor) -> torch.Tensor:
        """One head's bounded quantiles, (rows, actions, quantiles)."""
        raw = net(obs) + self.config.prior_strength * prior(obs)
        q = self.config.quantile_bound * torch.tanh(raw)
        return q.view(len(obs), self.spec.num_actions, -1)

    # Learning

    @torch.no_grad()
    def ask(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """The frozen heads' quantiles at s', and the next action drawn from π_ref."""
        pairs = zip(self.heads.target, self.priors, strict=True)
        q = torch.stack([self.quantiles(*pair, batch.next_obs) for pair in pairs])
        policy = torch.softmax(q[0].mean(-1) / self.config.temperature, dim=-1)
        return q, torch.multinomial(policy, 1).squeeze(1)

    def learn(self, batch: Batch, q: torch.Tensor, action: torch.Tensor) -> None:
        """One step of the statistics heads and of the inverse model, from what was asked."""
        rows = torch.arange(len(action), device=self.device)
        discount = self.spec.gamma * (1.0 - batch.terminated)
        zeta = self.bonus[batch.key][:, None] + discount[:, None] * q[:, rows, action]
        losses = []
        for net, prior, y in zip(self.heads.online, self.priors, zeta, strict=True):
            taken = self.quantiles(net, prior, batch.obs)[rows, batch.action]
            error = y[:, None, :] - taken[:, :, None]
            tilt = (self.middle[None, :, None] - (error < 0).float()).abs()
            huber = functional.huber_loss(error, torch.zeros_like(error), reduction="none")
            losses.append((tilt * huber).mean(dim=2).sum(dim=1).mean())
        self.heads.step(losses)
        logits = self.inverse.online[0](batch.obs, batch.next_obs)
        self.inverse.step([functional.cross_entropy(logits, batch.action)])

    # The window

    def draw(self, rows: int) -> Draws:
        """Rows without replacement, and probes uniform on the unit sphere."""
        config, device = self.config, self.device
        chosen = torch.randperm(rows, device=device)[: config.calibration]
        sizes = (config.feature_dim, self.spec.num_pixels)
        draws = [torch.randn(config.probes, size, device=device) for size in sizes]
        return Draws(chosen, *(functional.normalize(x, dim=1) for x in draws))

    @torch.no_grad()
    def refresh(self, recent: Batch, is_last: torch.Tensor, draws: Draws) -> None:
        """Freezes the heads and, for every count key, the reward and the continuation bonus."""
        config, num, gamma = self.config, self.spec.num_actions, self.spec.gamma
        self.heads.sync()
        logits, features = self.read_out(recent.next_obs)
        policy = torch.softmax(logits[0] / config.temperature, dim=-1)
        slope, offset = self.calibrate(logits[:, draws.chosen])
        logits = slope[:, None, None] * logits + offset[:, None, None]
        returns = gamma * (policy * (logits - logits.mean(-1, keepdim=True))).sum(-1).T
        flat = recent.next_obs.flatten(1)
        psi = flat / flat.norm(dim=1, keepdim=True).clamp(min=1.0)
        noise = [gamma * features @ draws.phi.T, gamma * psi @ draws.psi.T]

        x = torch.from_numpy(self.counts).to(self.device).add(1.0).rsqrt()
        v_count = config.count_scale * gamma**2 * torch.tanh(x) ** 2
        mean, _ = self.moments(returns, recent.key)
        v_epi = torch.maximum(mean.var(dim=1, correction=0), v_count)
        ahead = self.look_ahead(v_epi[recent.next_key * num + policy.argmax(-1)], is_last)
        mean, variance = self.moments(torch.cat([returns, *noise, ahead[:, None]], 1), recent.key)
        heads, phi, psi, _ = variance.split([config.heads, config.probes, config.probes, 1], dim=1)
        v_ale = torch.stack([part.mean(dim=1) for part in (heads, phi, psi)]).amax(dim=0)
        bracket = torch.relu(v_ale - config.gate_weight * mean[:, -1])
        r_int = v_epi - config.aleatoric_weight * torch.log1p(bracket / config.log_scale)
        clip = config.reward_clip
        self.reward = (config.reward_scale * r_int).clamp(-clip, clip)
        self.bonus = {"tanh": torch.tanh(x), "v_count": v_count, "inv_sqrt": x}[config.bonus]

    def look(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Every head's mean quantiles at many states, and φ of them; some at a time."""
        logits, features = [], []
        for some in obs.split(ROWS_AT_ONCE):
            pairs = zip(self.heads.target, self.priors, strict=True)
            logits.append(torch.stack([self.quantiles(*x, some).mean(-1) for x in pairs]))
            features.append(self.inverse.online[0].encode(some))
        return torch.cat(logits, dim=1), torch.cat(features)

    def calibrate(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Per-head slope and offset: least squares on the first head, with clamps."""
        config, flat = self.config, logits.flatten(1)
        mean = flat.mean(dim=1)
        away = flat - mean[:, None]
        spread, joint = (away**2).mean(dim=1), (away * away[0]).mean(dim=1)
        slope = torch.where(spread > 0, joint / spread, 1.0).clamp(config.a_min, config.a_max)
        slope[0] = min(max(1.0, config.a_min), config.a_max)
        return slope, (mean[0] - slope * mean).clamp(-config.b_max, config.b_max)

    def moments(self, x: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and biased variance of the rows of every key; zero where there are none."""
        zeros = torch.zeros(self.spec.num_keys, x.shape[1], device=self.device)
        size = torch.bincount(key, minlength=self.spec.num_keys).clamp(min=1)[:, None]
        mean = zeros.index_add(0, key, x) / size
        return mean, zeros.index_add(0, key, (x - mean[key]) ** 2) / size

    def look_ahead(self, value: torch.Tensor, is_last: torch.Tensor) -> torch.Tensor:
        """The discounted sum of what is ahead, cut where an episode ends."""
        ahead = torch.zeros_like(value)
        for _ in range(self.config.gate_horizon):
            onward = functional.pad(ahead[1:], (0, 1)).masked_fill(is_last, 0.0)
            ahead = value + self.config.gate_decay * onward
        return ahead
