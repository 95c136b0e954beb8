"""The rewards in Stable-Baselines3's agents (the extra `sb3`)."""

from primax.adapters.sb3 import BonusCallback, BonusReplayBuffer, load_bonus, save_bonus

__all__ = ["BonusCallback", "BonusReplayBuffer", "load_bonus", "save_bonus"]
