"""Which seeds a run has, from what a person writes."""

from primax.errors import InputError, check_range

MOST_SEEDS = 10_000
"""In one program."""


def parse_seeds(text: str | int, name: str = "seeds") -> tuple[int, ...]:
    """`15` is seeds 0 to 14; `0-4` and `3,7,9` name them. `name` is what the caller calls it."""
    text = str(text)
    try:
        if "-" not in text and "," not in text:
            spans = [range(int(text))]
        else:
            ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",")]
            spans = [range(end[0], end[-1] + 1) for end in ends]
    except ValueError:
        takes = "a number (15), a range (0-4) or a list (3,7,9)"
        raise InputError(f"{name} takes {takes}, got {text!r}") from None
    for span in spans:
        check_range(name, len(span), 1, MOST_SEEDS)
        check_range(name, span[-1], 0, 2**31 - 1)
    seeds = tuple(seed for span in spans for seed in span)
    if len(set(seeds)) != len(seeds):
        raise InputError(f"{name} names a seed twice: {text!r}")
    return seeds
