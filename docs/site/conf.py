"""The site of these pages: `make site`. Sources stay where they are; links between them keep their paths."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Primax"
author = "The Primax authors"
copyright = "The Primax authors, MIT licence"

REFERENCE = "docs/site/reference"
NAV = {
    "README": {
        "Start": ["docs/examples", "docs/notebooks", "docs/commands", "docs/agents"],
        "Rewards": [
            *("docs/anywhere", "docs/sb3", "docs/beyond", "docs/keys", "docs/suite"),
            *("docs/noise", "docs/curiosity_critic"),
        ],
        "Worlds": ["docs/worlds", "docs/other_worlds", "docs/gymnasium"],
        "Runs": ["docs/runs", "docs/scale", "docs/tracking", "docs/report", "docs/statistics"],
        "The paper": [
            "docs/method",
            "docs/rewards",
            "docs/guarantees",
            "docs/reproduction",
            "docs/verdicts",
            "docs/levels",
            "docs/preliminary",
            "results/paper/index",
        ],
        "Reference": [
            f"{REFERENCE}/training",
            f"{REFERENCE}/bonus",
            f"{REFERENCE}/methods",
            f"{REFERENCE}/worlds",
            f"{REFERENCE}/gymnasium",
            f"{REFERENCE}/sb3",
            f"{REFERENCE}/export",
            f"{REFERENCE}/settings",
        ],
        "Inside": [
            "docs/architecture",
            "docs/engine",
            "docs/performance",
            "docs/benchmarks",
            "CONTRIBUTING",
            "CHANGELOG",
        ],
    },
    "results/paper/index": {
        "Sheets": [
            *(f"results/paper/{name}" for name in ("scorecard", "rules", "claims")),
            *(f"results/paper/{name}" for name in ("runs", "audit", "times")),
            "results/readings/readings",
        ]
    },
}
"""Every page under the page and the heading that lists it; one that is missing stops the build."""

# Quotes and dashes stay as they are written: many belong to something to copy.
smartquotes = False

root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    f"{REFERENCE}/*.md",
    "results/paper/*.md",
    "results/readings/*.md",
]
exclude_patterns = [".*", "site", "build"]
extensions = ["sphinx.ext.autodoc", "myst_parser", "pages"]
# Sheets that are parts of other pages begin with a small heading.
suppress_warnings = ["myst.header"]
myst_heading_anchors = 4

# Docstrings are prose, with `names` in single backticks.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["stable_baselines3"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "Primax"
html_css_files = ["site.css"]
html_static_path = ["static"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
