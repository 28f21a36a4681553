"""metrics and top: the daemon's numbers, once or live."""

import time

from memd.cli import open_metrics, top
from memd.cli.full_screen import CLOSED, RESIZED, FullScreen
from memd.cli.invocation import Invocation
from memd.client.errors import DaemonUnavailableError

_INTERVAL_SECONDS = 2.0  # without the option --every


def metrics(invocation: Invocation) -> None:
    """Print the metrics as OpenMetrics text."""
    answer = invocation.request(cwd=None)
    invocation.screen.answer(answer, open_metrics.text(answer["families"]))


def live(invocation: Invocation) -> None:
    """Show the daemon's activity until q is pressed, or print frames; by default every 2 s."""
    options = invocation.options
    interval_seconds = options.every or _INTERVAL_SECONDS
    if options.once or options.batch or options.json:
        _print_frames(invocation, options.batch or 1, interval_seconds)
        return
    terminal_type = invocation.environ.get("TERM", "")
    # Read before the full screen opens, so that an error stays visible.
    reading = _read_metrics(invocation)
    with FullScreen(invocation.screen, invocation.surroundings.stdin, terminal_type) as full:
        _show_live(invocation, full, reading, interval_seconds)


def _print_frames(invocation: Invocation, frames: int, interval_seconds: float) -> None:
    """Print a number of frames as text or JSON, ``interval_seconds`` apart."""
    screen, earlier_reading = invocation.screen, None
    for number in range(frames):
        if number:
            time.sleep(interval_seconds)
        reading = _read_metrics(invocation)
        interval, earlier_reading = top.TopInterval.between(earlier_reading, reading), reading
        if screen.as_json:
            screen.record(interval.facts())
            continue
        frame = top.TopPicture(interval, screen, invocation.surroundings.home, time.time())
        lines = frame.lines(top.TopView(), screen.width or 1000, None)
        if number:  # a blank line between two frames
            lines = ["", *lines]
        screen.line("\n".join(lines))


def _show_live(
    invocation: Invocation, full: FullScreen, reading: top.TopReading, interval_seconds: float
) -> None:
    """Draw frames on the full screen after each interval until the person quits."""
    view, earlier_reading = top.TopView(), None
    while True:
        # Counted from here, so that keys and drawing do not delay the next reading.
        due = time.monotonic() + interval_seconds
        interval, earlier_reading = top.TopInterval.between(earlier_reading, reading), reading
        key = RESIZED
        while key:  # a key or a new size only draws again, without a new reading
            columns, height = invocation.screen.size
            frame = top.TopPicture(
                interval, invocation.screen, invocation.surroundings.home, time.time()
            )
            full.draw(frame.lines(view, columns, height))
            key = full.key(due - time.monotonic())
            if key in {"q", CLOSED}:
                return
            if key == " ":
                break
            view.press(key)
        next_reading = _read_again(invocation, full, interval_seconds)
        if next_reading is None:
            return
        reading = next_reading


def _read_again(
    invocation: Invocation, full: FullScreen, interval_seconds: float
) -> top.TopReading | None:
    """Return the next reading, waiting for a daemon; ``None`` if the person quits meanwhile."""
    while True:
        try:
            return _read_metrics(invocation)
        except DaemonUnavailableError:
            invocation.close()
        full.draw(["memd went away; waiting for it (q to quit)"])
        if full.key(interval_seconds) in {"q", CLOSED}:
            return None


def _read_metrics(invocation: Invocation) -> top.TopReading:
    """Return the daemon's status and metrics of this moment."""
    status, numbers = invocation.call("status"), invocation.call("metrics")
    invocation.options.no_start = True  # a daemon that is stopped from now on stays so
    return top.TopReading.of(time.monotonic(), status, numbers)
