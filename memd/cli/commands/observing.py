"""metrics and top: the daemon's numbers, once or live."""

import time

from memd.cli import open_metrics, top
from memd.cli.full_screen import CLOSED, RESIZED, FullScreen
from memd.cli.invocation import Invocation
from memd.client.errors import DaemonUnavailableError

_EVERY_SECONDS = 2.0


def metrics(invocation: Invocation) -> None:
    """Print the metrics as OpenMetrics text."""
    answer = invocation.request(cwd=None)
    invocation.screen.answer(answer, open_metrics.text(answer["families"]))


def live(invocation: Invocation) -> None:
    """Show the daemon's activity until q is pressed, or print frames; by default every 2 s."""
    options = invocation.options
    every = options.every or _EVERY_SECONDS
    if options.once or options.batch or options.json:
        _print(invocation, options.batch or 1, every)
        return
    term = invocation.environ.get("TERM", "")
    reading = _read(
        invocation
    )  # before the full screen, so that an error is printed on the usual one
    with FullScreen(invocation.screen, invocation.around.stdin, term) as full:
        _show(invocation, full, reading, every)


def _print(invocation: Invocation, frames: int, every: float) -> None:
    screen, before = invocation.screen, None
    for number in range(frames):
        if number:
            time.sleep(every)
        reading = _read(invocation)
        interval, before = top.TopInterval.between(before, reading), reading
        if screen.as_json:
            screen.record(interval.facts())
            continue
        frame = top.TopPicture(interval, screen, invocation.around.home, time.time())
        lines = frame.lines(top.TopView(), screen.width or 1000, None)
        screen.line("\n".join([*([""] if number else []), *lines]))


def _show(invocation: Invocation, full: FullScreen, reading: top.TopReading, every: float) -> None:
    view, before = top.TopView(), None
    while True:
        due = time.monotonic() + every
        interval, before = top.TopInterval.between(before, reading), reading
        key = RESIZED
        while key:  # a key or a new size only draws again, without a new reading
            columns, height = invocation.screen.size
            frame = top.TopPicture(interval, invocation.screen, invocation.around.home, time.time())
            full.draw(frame.lines(view, columns, height))
            key = full.key(due - time.monotonic())
            if key in {"q", CLOSED}:
                return
            if key == " ":
                break
            view.press(key)
        if (following := _read_again(invocation, full, every)) is None:
            return
        reading = following


def _read_again(invocation: Invocation, full: FullScreen, every: float) -> top.TopReading | None:
    """Return the next reading, waiting for a daemon; ``None`` if the person quits meanwhile."""
    while True:
        try:
            return _read(invocation)
        except DaemonUnavailableError:
            invocation.close()
        full.draw(["memd went away; waiting for it (q to quit)"])
        if full.key(every) in {"q", CLOSED}:
            return None


def _read(invocation: Invocation) -> top.TopReading:
    status, numbers = invocation.call("status"), invocation.call("metrics")
    invocation.options.no_start = True  # a daemon that is stopped from now on stays so
    return top.TopReading.of(time.monotonic(), status, numbers)
