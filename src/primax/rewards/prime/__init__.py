"""PRIME, a file for each part of the paper's method section; `reward.py` joins them."""

from primax.rewards.prime.config import PrimeConfig
from primax.rewards.prime.reward import Prime

__all__ = ["Prime", "PrimeConfig"]
