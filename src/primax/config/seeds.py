"""Which seeds a run has, from what a person writes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from primax.errors import InputError, check_range

MOST_SEEDS = 10_000
"""In one program."""
LAST_SEED = 2**31 - 1


def parse_seeds(text: str | int, name: str = "seeds") -> tuple[int, ...]:
    """`15` is seeds 0 to 14; `0-4` and `3,7,9` name them. `name` is what the caller calls it."""
    try:
        text = str(text)
        if "-" not in text and "," not in text:
            ends = [[0, int(text) - 1]]
        else:
            ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",")]
    except ValueError:
        takes = "a number (15), a range (0-4) or a list (3,7,9)"
        got = repr(text) if isinstance(text, str) else "more digits than can be read"
        raise InputError(f"{name} takes {takes}, got {got}") from None
    if odd := [end for end in ends if 0 <= end[-1] < end[0]]:
        raise InputError(f"{name} takes a range that goes upwards, got {odd[0][0]}-{odd[0][-1]}")
    for end in ends:  # before they are counted through: a range may go to any number
        check_range(name, max(0, end[-1] - end[0] + 1), 1, MOST_SEEDS)
    seeds = [seed for end in ends for seed in range(end[0], end[-1] + 1)]
    check_seeds(seeds, name)
    return tuple(seeds)


def parse_some(
    seeds: str | int | Sequence[int] | None, name: str = "seeds"
) -> tuple[int, ...] | None:
    """The seeds named; a number alone is refused: elsewhere it says how many, here it looks like one."""
    if seeds is None:
        return None
    if not isinstance(seeds, str | int | list | tuple | range):
        raise InputError(
            f"{name} takes a list of whole numbers, or text such as 0,3, got {seeds!r}"
        )
    if not isinstance(seeds, str | int):
        check_seeds(seeds, name)
        return tuple(seeds)
    text = str(seeds).strip()
    if text.isdecimal():
        which = (
            f"write {text}-{text} for seed {text} alone, or "
            f"0-{max(int(text) - 1, 0)} for the first {text}"
        )
        raise InputError(f"{name} {text} is ambiguous: {which}")
    return parse_seeds(text, name)


def check_seeds(seeds: Sequence[Any], name: str = "seeds") -> None:
    """Refuses what is not some whole numbers, each once."""
    if not seeds:
        raise InputError(f"{name} takes whole numbers, got none")
    check_range(name, len(seeds), 1, MOST_SEEDS)
    for seed in seeds:
        if type(seed) is not int:
            raise InputError(f"{name} takes whole numbers, got {seed!r}")
        check_range(name, seed, 0, LAST_SEED)
    if len(set(seeds)) != len(seeds):
        raise InputError(f"{name} names a seed twice: {Counter(seeds).most_common(1)[0][0]}")
