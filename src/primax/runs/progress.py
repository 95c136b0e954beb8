"""How a run shows itself: one live line in a terminal or a notebook, plain lines elsewhere."""

import re
import sys
import time
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from primax.agent.training import Progress
from primax.output.sheet import clock

ROLLING = 20
PLAIN_EVERY_S = 10.0
LIVE_EVERY_S = 0.25
MOVES = re.compile(r"\S{10} [\d,]+/[\d,]+  .*  score \S+  ")
"""In a line of progress, also where what writes it has no bars and no ε."""


def is_watched() -> bool:
    """Whether a person reads along: in a terminal or a notebook."""
    return sys.stderr.isatty() or is_notebook()


def is_notebook() -> bool:
    return "ipykernel" in sys.modules


class Cell:
    """What a notebook shows under a cell: lines that stay, and below them one that moves.

    Both in one piece of output, which is replaced; lines on stderr would be a red heap.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.moving, self.shown_at, self.handle = "", 0.0, None

    def print(self, line: object, soft_wrap: bool = True) -> None:
        self.lines.append(str(line))
        self._show()

    def update(self, line: object, refresh: bool = False) -> None:
        """As of rich's live line: shown now and then, and at once if it is to be refreshed."""
        self.moving = str(line)
        if refresh or time.perf_counter() - self.shown_at > LIVE_EVERY_S:
            self._show()

    def _show(self) -> None:
        from IPython.display import display

        self.shown_at = time.perf_counter()
        shown = {"text/plain": "\n".join(filter(None, [*self.lines, self.moving]))}
        if self.handle is None:
            self.handle = display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


def plain_lines() -> Console | Cell:
    """Where calls from Python say how they go: under a notebook's cell, else in lines on stderr.

    In a terminal no live line, which would mix with what the caller prints.
    """
    return Cell() if is_notebook() else stderr_lines()


def stderr_lines() -> Console:
    """Plain ones, whoever reads them."""
    return Console(
        stderr=True,
        markup=False,
        highlight=False,
        soft_wrap=True,
        force_terminal=False,
        force_jupyter=False,
    )


class Reporter:
    """Told of every window; says how fast, how far and how well."""

    def __init__(
        self, console: Console | Cell, num_seeds: int, name: str = "", is_live: bool = True
    ):
        self.console, self.num_seeds, self.name = console, num_seeds, name
        self.told_at = time.perf_counter()
        self.since: tuple[float, int] | None = None
        """When learning began, and at which step."""
        self.scores = np.empty(0)
        self.live = _live(console) if is_live else None

    def __enter__(self) -> "Reporter":
        if isinstance(self.live, Live):
            self.live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(self.live, Live):
            self.live.__exit__(kind, error, trace)

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        is_first = self.since is None and bool(progress.window)  # the warm-up is no measure
        if is_first:
            self.since = now - progress.seconds, progress.clock - progress.steps
        in_time = np.argsort(progress.episodes["step"], kind="stable")
        whole = np.concatenate([self.scores, progress.episodes["score"][in_time]])
        self.scores = whole[-ROLLING * self.num_seeds :]
        line, is_last = self._line(progress, now), progress.clock == progress.total
        if self.live:
            self.live.update(line, refresh=is_last)
        elif is_first or is_last or now - self.told_at > PLAIN_EVERY_S:
            self.told_at = now
            self.console.print(line, soft_wrap=True)  # whoever reads a log finds it whole

    def _line(self, progress: Progress, now: float) -> Text:
        """Steps a second are over all seeds, since learning began; the score is the mean of the
        last 20 episodes a seed."""
        speed = "…"
        if self.since:
            start, first = self.since
            rate = (progress.clock - first) / max(now - start, 1e-9)
            left = clock((progress.total - progress.clock) / rate)
            speed = f"{rate * self.num_seeds:,.0f} steps/s  {left} left"
        filled = round(10 * progress.clock / progress.total)
        score = f"{np.mean(self.scores):.2f}" if self.scores.size else "…"
        bar = f"{self.name}{'━' * filled}{'╌' * (10 - filled)}"
        return Text(
            f"{bar} {progress.clock:,}/{progress.total:,}  {speed}  "
            f"score {score}  ε {progress.epsilon:.2f}"
        )


def _live(console: Console | Cell) -> Live | Cell | None:
    if isinstance(console, Cell):
        return console
    per_second = 1 / LIVE_EVERY_S
    return Live(console=console, refresh_per_second=per_second) if console.is_terminal else None


class Counter:
    """Told how many of all are done; says so now and then, and how long the rest will take."""

    def __init__(self, console: Console | Cell, what: str):
        self.console, self.what = console, what
        self.began = self.told_at = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        left = clock((now - self.began) * (total - done) / done)
        line = f"{done:,}/{total:,} {self.what}  {left} left"
        if isinstance(self.console, Cell):
            self.console.update(line, refresh=done == total)
        elif done < total and now - self.told_at > PLAIN_EVERY_S:
            self.told_at = now
            self.console.print(line)
