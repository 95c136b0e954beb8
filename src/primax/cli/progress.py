"""How a run shows itself: one live line in a terminal, plain lines elsewhere."""

import time
from collections import deque
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from primax.agent.training import Progress

ROLLING = 20
PLAIN_EVERY_S = 10.0


class Reporter:
    """Told of every window; says how fast, how far and how well."""

    def __init__(self, console: Console, num_seeds: int, name: str = "", is_live: bool = True):
        self.console, self.num_seeds, self.name = console, num_seeds, name
        self.start = self.told_at = time.perf_counter()
        self.first_clock: int | None = None
        self.scores: deque[np.ndarray] = deque(maxlen=ROLLING)
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
        if self.first_clock is None:
            self.start, self.first_clock = now, progress.clock
        self.scores.extend(progress.episodes["score"].reshape(self.num_seeds, -1).T)
        line = self._line(progress, now)
        if self.live:
            self.live.update(line)
        elif progress.clock == progress.total or now - self.told_at > PLAIN_EVERY_S:
            self.told_at = now
            self.console.print(line)

    def _line(self, progress: Progress, now: float) -> Text:
        """Steps a second are over all seeds, from the first finished window on; the score is the
        mean of the last 20 episodes."""
        done = progress.clock - (self.first_clock or 0)
        rate = done / max(now - self.start, 1e-9)
        left = (progress.total - progress.clock) / rate if done else float("nan")
        filled = round(10 * progress.clock / progress.total)
        score = f"{np.mean(np.stack(self.scores)):.2f}" if self.scores else "…"
        speed = f"{rate * self.num_seeds:,.0f} steps/s  {_clock(left)} left" if done else "…"
        bar = f"{self.name}{'━' * filled}{'╌' * (10 - filled)}"
        return Text(
            f"{bar} {progress.clock:,}/{progress.total:,}  {speed}  "
            f"score {score}  ε {progress.epsilon:.2f}"
        )


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
