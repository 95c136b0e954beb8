"""What PRIME's formulas say of noise that stays, before anything is run.

Every state and action is thought of as met equally often, N times. A noisy one leads to fair coins;
its variance is that of ψ alone, which is known beforehand and is the least that V_ale can be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from primax.config.fields import flatten
from primax.config.schema import Config
from primax.studies.noise.cells import WINGS, Cell, Variant
from primax.worlds import make_world

MOST = 10_000_000
"""Visits beyond which nothing is looked for."""


@dataclass(frozen=True)
class Numbers:
    """The settings that the formulas need."""

    gamma: float
    count_scale: float
    gate_weight: float
    gate_decay: float
    gate_horizon: int
    aleatoric_weight: float
    log_scale: float

    @classmethod
    def of(cls, config: Config) -> "Numbers":
        """Those of a run of PRIME."""
        settings = flatten(config)
        names = [name for name in cls.__annotations__ if name != "gamma"]
        found = {"gamma": settings["critics.gamma"]}
        found |= {name: settings[f"reward.{name}"] for name in names}
        return cls(**found)


def psi_variance(coins: int, pixels: int, gamma: float) -> float:
    """V_ale of ψ, eq. (8), expected over probes: γ² tr(Var ψ)/d, where an agent's cell is set and
    `coins` others are set by chance, and ψ has length one."""
    chances = [math.comb(coins, m) / 2**coins for m in range(coins + 1)]
    lengths = [math.sqrt(1 + m) for m in range(coins + 1)]
    agent = sum(p / length for p, length in zip(chances, lengths, strict=True))
    each = [m / max(coins, 1) / length for m, length in enumerate(lengths)]
    coin = sum(p * x for p, x in zip(chances, each, strict=True))
    return gamma**2 * (1 - agent**2 - coins * coin**2) / pixels


def v_count(num: int | float, numbers: Numbers) -> float:
    """κ γ² tanh²(1/√(N+1)), eq. (7)."""
    return numbers.count_scale * numbers.gamma**2 * math.tanh(1 / math.sqrt(num + 1)) ** 2


def look_ahead(num: int | float, numbers: Numbers) -> float:
    """Eq. (9) where all that comes is as new as what is here."""
    steps = sum(numbers.gate_decay**j for j in range(numbers.gate_horizon))
    return steps * v_count(num, numbers)


def r_int(num: int | float, noise: float, numbers: Numbers) -> float:
    """Eq. (10) of a noisy state and action."""
    bracket = max(0.0, noise - numbers.gate_weight * look_ahead(num, numbers))
    penalty = numbers.aleatoric_weight * math.log1p(bracket / numbers.log_scale)
    return v_count(num, numbers) - penalty


def gate_opens(noise: float, numbers: Numbers) -> int:
    """The least N at which look-ahead no longer hides the noise."""
    return _least(lambda num: noise > numbers.gate_weight * look_ahead(num, numbers))


def turns(noise: float, numbers: Numbers) -> int:
    """The least N at which what is noisy costs more than it pays; MOST where it never does."""
    return _least(lambda num: r_int(num, noise, numbers) < 0)


def _least(holds: Callable[[int], bool]) -> int:
    """By halving: what holds once, holds for every larger N."""
    low, high = -1, MOST
    if not holds(high):
        return MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Predicted:
    """What is to be expected of PRIME in TwoWings."""

    noise: float
    """V_ale of a noisy state and action."""
    opens: int
    """N at which the gate opens."""
    opens_at: int
    """The step of the run at which that is, visits being equal."""
    turns: int
    """N at which noise costs more than it pays."""
    turns_at: int
    """The step of the run at which that is, likewise."""
    share: float | None
    """Of all steps, how many the silent wing should have, if noise is left for good when every noisy
    state and action was met so often; None where it never is."""


def least_noise(config: Config) -> float:
    """V_ale of a noisy state and action of TwoWings, as far as ψ alone sees it."""
    pixels = math.prod(make_world(WINGS.world).obs_shape)
    return psi_variance(config.world.noise_cells, pixels, config.critics.gamma)


def predicted(variant: Variant, scale: str = "paper") -> Predicted:
    """Of a variant of PRIME."""
    config = Cell(variant, WINGS).config(scale)
    numbers, noise = Numbers.of(config), least_noise(config)
    world = make_world(WINGS.world)
    keys = world.num_keys * world.num_actions
    opens, turn = gate_opens(noise, numbers), turns(noise, numbers)
    met = min(keys // 2 * turn, config.total_steps / 2)
    share = None if turn == MOST else 1 - met / config.total_steps
    return Predicted(noise, opens, keys * opens, turn, keys * turn, share)
