"""One self-contained page for runs' folders: curves, seeds, maps, replays, audits, settings."""

from primax.report.page import make

__all__ = ["make"]
