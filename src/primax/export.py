"""Exported networks and rewards, read and written: see `runs.export`."""

from primax.runs.export import Exported, export, load

__all__ = ["Exported", "export", "load"]
