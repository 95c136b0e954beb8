"""`python -m primax`."""

import sys

from primax.cli import main

sys.exit(main())
