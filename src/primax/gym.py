"""The worlds as Gymnasium environments, under the name that ids such as `primax.gym:primax/Maze-v0` use."""

from primax.adapters.gymnasium import WorldEnv, WorldVectorEnv, ids, register

__all__ = ["WorldEnv", "WorldVectorEnv", "ids", "register"]
