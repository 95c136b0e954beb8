"""How a sweep shows itself while it runs."""

import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from primax.paper.predict import at_pace
from primax.sweep.stand import Home, Stand, stand
from primax.sweep.work import Account

LIVE_EVERY_S, PLAIN_EVERY_S = 1.0, 60.0
"""Seconds between looks at the folders, in a terminal and elsewhere."""


class Board:
    """How far the cells are: lines that change in a terminal, plain ones elsewhere."""

    def __init__(
        self,
        console: Console,
        home: Home,
        stands: list[Stand],
        account: Account,
        platform: str,
    ):
        self.console, self.home, self.account = console, home, account
        self.stands, self.platform = stands, platform
        self.began_at = {one.cell.name: one.share for one in stands}
        self.seconds = {one.cell.name: one.left(platform) for one in stands}
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self.every_s = LIVE_EVERY_S if self.live else PLAIN_EVERY_S
        self.began = self.looked_at = time.monotonic()

    def __enter__(self) -> "Board":
        if self.live:
            self.live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.update("", refresh=True)
            self.live.__exit__(None, None, None)

    def say(self, line: str) -> None:
        self.console.print(line, soft_wrap=True)

    def tick(self) -> None:
        """Looks at the folders now and then, and says how far the running cells are."""
        if time.monotonic() - self.looked_at < self.every_s:
            return
        self.looked_at = time.monotonic()
        text = "\n".join(self._lines())
        if self.live:
            self.live.update(Text(text), refresh=True)
        else:
            self.say(text)

    def _lines(self) -> list[str]:
        at_work = [stand(self.home, cell) for cell in self.account.running.values()]
        rows = [f"{one.cell.name}: {one.done:,} ({one.share:.0%})" for one in at_work]
        over = {*self.account.through, *self.account.failed, *self.account.held}
        shares = {one.cell.name: self._since(one) for one in at_work} | dict.fromkeys(over, 1.0)
        done = sum(self.seconds[name] * share for name, share in shares.items())
        through = f"{len(self.account.through)} of {len(self.seconds)} runs are finished"
        left = at_pace(time.monotonic() - self.began, done, sum(self.seconds.values()))
        return [*rows, f"{through}; {left}"]

    def _since(self, one: Stand) -> float:
        """Of what was to be done of a cell, the share that is."""
        before = self.began_at[one.cell.name]
        return max(0.0, one.share - before) / (1 - before) if before < 1 else 1.0
