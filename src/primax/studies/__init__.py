"""Questions beyond the paper, each with its runs, its claims and its tables as data."""
