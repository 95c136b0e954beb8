"""What the paper promises, checked on the objects this package really runs: `primax verify`."""

from primax.guarantees.checks import Bench, run_checks
from primax.guarantees.row import Row

__all__ = ["Bench", "Row", "run_checks"]
