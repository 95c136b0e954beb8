"""Everything a run depends on, and how its fields are declared, checked, listed and set."""
