"""What is shown while a shop is prepared and rushed: live on a terminal, plain lines anywhere else.

Nothing here draws from a thread of its own: processes are started meanwhile, and a fork wants no other threads.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from benchmarks.leaving import leave_if_told
from benchmarks.plan import Plan, Progress

LINE_SECONDS = 1.0  # Between two lines of progress where nothing can be drawn.
DRAW_SECONDS = 0.1
BAR_WIDTH = 40

# Told the buyers' progress and the orders in MySQL.
Show = Callable[[Progress, int], None]


class Screen:
    """Steps and progress on standard output; `doing` is the step under way, for a message should it fail."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.doing = "starting"
        self._begun_at = time.monotonic()

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show that a step is under way for the length of the block, and on a terminal how long it took."""
        leave_if_told()
        self.doing = text
        if not self.console.is_terminal:
            self.line(text)
            yield
            return
        begun_at = time.monotonic()
        self.console.print(f"[dim]… {text}[/]", end="\r")
        try:
            yield
        except BaseException:
            self.console.print()  # Whatever is said of it begins on a line of its own.
            raise
        self.console.print(f"[green]✓[/] {text} [dim]{time.monotonic() - begun_at:.1f} s[/]")

    @contextmanager
    def rush(self, plan: Plan, *, units: int) -> Iterator[Show]:
        """Show a rush for the length of the block, by what is told to the function it gives."""
        self.doing = "letting the buyers in"
        if not self.console.is_terminal:
            yield PrintedRush(self.line, plan=plan)
            return
        with Bars(
            TextColumn("{task.description:<22}"),
            BarColumn(bar_width=BAR_WIDTH),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            auto_refresh=False,
        ) as bars:
            yield DrawnRush(bars, plan=plan, units=units)

    def line(self, text: str) -> None:
        """Print a line that begins with the seconds since the start."""
        self.console.print(f"{time.monotonic() - self._begun_at:5.1f} s  {text}", markup=False, soft_wrap=True)


class DrawnRush:
    """One bar each for tickets, buyers with an answer, and orders."""

    def __init__(self, bars: Bars, *, plan: Plan, units: int) -> None:
        self._bars = bars
        self._opens_at = plan.opens_at
        self._next_at = 0.0
        self._tickets = bars.add_task("tickets", total=len(plan.shoppers), note="")
        self._ended = bars.add_task("buyers with an answer", total=len(plan.shoppers), note="")
        self._orders = bars.add_task("orders in MySQL", total=min(units, len(plan.shoppers)), note="")

    def __call__(self, progress: Progress, orders: int) -> None:
        """Move the bars, unless it has just been done."""
        is_last = progress.ended == self._bars.tasks[self._ended].total
        if time.monotonic() < self._next_at and not is_last:
            return
        self._next_at = time.monotonic() + DRAW_SECONDS
        answered = f"{progress.accepted} accepted, {progress.turned_away} turned away"
        self._bars.update(self._tickets, completed=progress.tickets, note=_until_opening(self._opens_at))
        self._bars.update(self._ended, completed=progress.ended, note=answered)
        self._bars.update(self._orders, completed=orders)
        self._bars.refresh()


class PrintedRush:
    """A line now and then."""

    def __init__(self, line: Callable[[str], None], *, plan: Plan) -> None:
        self._line = line
        self._plan = plan
        self._next_at = 0.0
        self._told: tuple[Progress, int] | None = None

    def __call__(self, progress: Progress, orders: int) -> None:
        """Print the counts if they have changed, unless it has just been done."""
        if time.monotonic() < self._next_at or (progress, orders) == self._told:
            return
        self._next_at = time.monotonic() + LINE_SECONDS
        self._told = progress, orders
        buyers = len(self._plan.shoppers)
        if (note := _until_opening(self._plan.opens_at)) and progress.ended == 0:
            self._line(f"{progress.tickets} of {buyers} buyers have a ticket, {note}")
            return
        self._line(f"{progress.accepted} accepted, {progress.turned_away} turned away, {orders} orders in MySQL")


def _until_opening(opens_at: float) -> str:
    seconds = opens_at - time.time()
    return f"opens in {seconds:.0f} s" if seconds > 0 else ""
