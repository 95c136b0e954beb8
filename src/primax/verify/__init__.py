"""What the paper promises, checked on the objects this package really runs: `primax verify`."""

from primax.verify.checks import Bench, run_checks
from primax.verify.row import Row

__all__ = ["Bench", "Row", "run_checks"]
