"""How a run shows itself: one live line in a terminal, plain lines elsewhere."""

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


def is_watched() -> bool:
    """Whether a person reads stderr: in a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def plain_lines() -> Console:
    """Lines on stderr: no live line, which would mix with what the caller prints."""
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

    def __init__(self, console: Console, num_seeds: int, name: str = "", is_live: bool = True):
        self.console, self.num_seeds, self.name = console, num_seeds, name
        self.told_at = time.perf_counter()
        self.since: tuple[float, int] | None = None
        """When learning began, and at which step."""
        self.scores = np.empty(0)
        is_live = is_live and console.is_terminal
        self.live = Live(console=console, refresh_per_second=4) if is_live else None

    def __enter__(self) -> "Reporter":
        if self.live:
            self.live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.live.__exit__(kind, error, trace)

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        is_first = self.since is None and bool(progress.window)  # the warm-up is no measure
        if is_first:
            self.since = now - progress.seconds, progress.clock - progress.steps
        in_time = np.argsort(progress.episodes["step"], kind="stable")
        whole = np.concatenate([self.scores, progress.episodes["score"][in_time]])
        self.scores = whole[-ROLLING * self.num_seeds :]
        line = self._line(progress, now)
        if self.live:
            self.live.update(line)
        elif is_first or progress.clock == progress.total or now - self.told_at > PLAIN_EVERY_S:
            self.told_at = now
            self.console.print(line)

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


class Counter:
    """Told how many of all are done; says so now and then, and how long the rest will take."""

    def __init__(self, console: Console, what: str):
        self.console, self.what = console, what
        self.began = self.told_at = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if done < total and now - self.told_at > PLAIN_EVERY_S:
            self.told_at = now
            left = clock((now - self.began) * (total - done) / done)
            self.console.print(f"{done:,}/{total:,} {self.what}  {left} left")
