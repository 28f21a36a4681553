"""Compute and render what ``memctl top`` shows: requests, jobs, sessions and spending. Pure.

A reading is the daemon's state at one moment; an interval is the difference of two readings.
Without an earlier reading of the same daemon the interval begins at the daemon's start.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memd.cli import output
from memd.cli.commands.status import job_words
from memd.core.histogram import quantile

SORTS = ("method", "rate", "p50", "p99", "errors", "total")  # the columns
_RATE = SORTS.index("rate")
KEYS = "q quit   ←→ sort by another column   ↑↓ scroll   h help"
HELP = (
    "Requests that were answered since the last look, by method.",
    "",
    "/s      answers a second",
    "p50     half of them took no longer, p99: 99 of 100 took no longer",
    "errors  answers that were an error",
    "total   answers since the daemon began",
    "",
    "←→ or m r 5 9 e t   sort by a column",
    "↑↓                  scroll the methods",
    "space               look now",
    "q                   quit",
)
_SHORTCUTS = dict(zip("mr59et", SORTS, strict=True))  # the column by the key that sorts by it
_MAX_SESSIONS = 5
_MIN_METHOD_LINES = 3  # of the table of methods, even on a small screen


class MethodUse(Struct, frozen=True):
    """How often a method was called per second, how long answers took, and how many failed.

    Times are seconds: ``p50`` is the median, ``p99`` the time that 99 of 100 answers did not
    exceed, ``None`` without answers.
    """

    method: str
    rate: float
    p50: float | None
    p99: float | None
    errors: int
    total: int


class TopReading(Struct, frozen=True):
    """A daemon's status and metrics at one moment, ``at`` in monotonic seconds.

    ``times`` has for each method the number of answers in each bucket of the histogram, ``errors``
    the number of errors. ``cpu`` is the processor time that the daemon has used, in seconds.
    """

    at: float
    status: Mapping[str, Any]
    times: Mapping[str, tuple[int, ...]]
    errors: Mapping[str, int]
    cpu: float

    @classmethod
    def of(cls, at: float, status: Mapping[str, Any], metrics: Mapping[str, Any]) -> "TopReading":
        """Return a reading of the results of ``status`` and ``metrics``."""
        samples = {each["name"]: each["samples"] for each in metrics["families"]}
        errors: dict[str, int] = {}
        for sample in samples.get("memd_request_errors", ()):
            method = sample["labels"]["method"]
            errors[method] = errors.get(method, 0) + int(sample["value"])
        times = {
            sample["labels"]["method"]: tuple(sample["counts"])
            for sample in samples.get("memd_request_seconds", ())
        }
        cpu = samples.get("process_cpu_seconds") or [{"value": 0.0}]
        return cls(at, status, times, errors, cpu[0]["value"])


class TopInterval(Struct, frozen=True):
    """What a daemon did between two readings, the later of which is ``now``.

    ``since_start`` says that the earlier one is the daemon's start. ``cpu`` is the share of one
    processor that was used.
    """

    now: TopReading
    seconds: float
    since_start: bool
    methods: tuple[MethodUse, ...]
    cpu: float

    @classmethod
    def between(cls, before: TopReading | None, now: TopReading) -> "TopInterval":
        """Return the interval from ``before`` to ``now``, or from the daemon's start.

        It begins at the start if there is no earlier reading or the daemon was replaced.
        """
        identity = ("pid", "version")
        same_daemon = before is not None and all(
            before.status[name] == now.status[name] for name in identity
        )
        if before is None or not same_daemon or now.at <= before.at:
            # The counters of a new daemon began at zero.
            before = TopReading(0.0, {}, {}, {}, 0.0)
            seconds = max(now.status["uptime"], 0.001)
        else:
            seconds = now.at - before.at
        methods = tuple(_method_use(name, before, now, seconds) for name in now.times)
        return cls(now, seconds, not before.status, methods, (now.cpu - before.cpu) / seconds)

    def facts(self) -> dict[str, Any]:
        """Return the interval as JSON values."""
        status = self.now.status
        names = ("version", "uptime", "rss", "connections", "jobs", "running", "sessions", "spend")
        facts: dict[str, Any] = {name: status.get(name) for name in names}
        methods = [asdict(each) for each in sorted_by(self.methods, "rate")]
        return facts | {"seconds": self.seconds, "cpu": self.cpu, "methods": methods}


class TopView(Struct):
    """What the person chose with keys.

    ``sort`` is the index of the column, ``scrolled`` the number of methods above the first one that
    is shown.
    """

    sort: int = _RATE
    scrolled: int = 0
    help: bool = False

    def press(self, key: str) -> None:
        """Apply a key; any key but ``h`` closes the help."""
        if key in _SHORTCUTS:
            self.sort, self.scrolled = SORTS.index(_SHORTCUTS[key]), 0
        elif key in {"left", "right"}:
            step = 1 if key == "right" else -1
            self.sort, self.scrolled = (self.sort + step) % len(SORTS), 0
        elif key in {"up", "down"}:
            self.scrolled = max(0, self.scrolled + (1 if key == "down" else -1))
        self.help = key == "h" and not self.help


def sorted_by(methods: Iterable[MethodUse], sort: str) -> list[MethodUse]:
    """Return methods in the order of a column: names upwards, numbers downwards."""
    if sort == "method":
        return sorted(methods, key=lambda each: each.method)
    return sorted(methods, key=lambda each: (-(getattr(each, sort) or 0), each.method))


class TopPicture:
    """Renders one interval as lines of text."""

    def __init__(self, interval: TopInterval, screen: output.Screen, home: str, now: float) -> None:
        self._interval = interval
        self._status = interval.now.status
        self._screen = screen
        self._home = home
        self._now = now

    def lines(self, view: TopView, columns: int, height: int | None) -> list[str]:
        """Return lines of at most ``columns``; with a ``height``, exactly that many lines."""
        head = self._header_lines()
        if view.help:
            lines = [*head, *HELP]
        else:
            tail = [*self._job_lines(), *self._session_lines()]
            table_lines = None
            if height is not None:
                table_lines = max(height - len(head) - len(tail) - 2, _MIN_METHOD_LINES)
            lines = [*head, *self._method_table(view, table_lines), *tail]
        if height is not None:
            lines = lines[: max(height - 1, 0)]
            blank_lines = [""] * (height - 1 - len(lines))
            lines = [*lines, *blank_lines, self._screen.paint(KEYS, "dim")]
        # Escapes make a line longer, so it is cut afterwards.
        return [output.cut(output.escape(line.replace("\n", " ")), columns) for line in lines]

    def _header_lines(self) -> list[str]:
        """Return the lines about the daemon as a whole: size, cost, health and request rate."""
        status, interval = self._status, self._interval
        count = status["connections"]
        facts = (
            f"{status['name']} {status['version']}",
            f"up {output.duration(status['uptime'])}",
            output.size(status["rss"]),
            f"cpu {interval.cpu:.1%}",
            f"{count} connection{'s' * (count != 1)}",
        )
        spend = status.get("spend") or {}
        today = (spend.get("used") or {}).get("dollars", 0.0)
        limit = f" of ${spend['dollars_per_day']:.2f}" if spend else ""
        rate = sum(each.rate for each in interval.methods)
        errors = sum(each.errors for each in interval.methods)
        span = "since its start" if interval.since_start else f"in {interval.seconds:.1f} s"
        return [
            self._screen.paint("  ".join(facts), "bold"),
            f"spent ${today:.4f}{limit} today  {self._health_words()}",
            f"requests {rate:.1f}/s, {errors} error{'s' * (errors != 1)} {span}",
            "",
        ]

    def _health_words(self) -> str:
        """Return how many problems the daemon's checks found."""
        health = self._status.get("health") or ()
        if not health:
            return self._screen.paint("all is well", "green")
        words = f"{len(health)} problem{'s' * (len(health) > 1)}: memctl status"
        return self._screen.paint(words, "yellow")

    def _method_table(self, view: TopView, max_lines: int | None) -> list[str]:
        """Return the table of methods, at most ``max_lines`` lines, the sort column in bold."""
        sort = SORTS[view.sort]
        rows = sorted_by(self._interval.methods, sort)
        if max_lines is not None:
            max_rows = max_lines - 1  # without the heading
            view.scrolled = min(view.scrolled, max(0, len(rows) - max_rows))
            rows = rows[view.scrolled : view.scrolled + max_rows]
        headings = []
        for name in SORTS:
            heading = "/s" if name == "rate" else name
            headings.append(self._screen.paint(heading, "bold" if name == sort else "dim"))
        cells = [
            (
                each.method,
                f"{each.rate:.1f}",
                _seconds(each.p50),
                _seconds(each.p99),
                str(each.errors) if each.errors else "",
                f"{each.total:,}",
            )
            for each in rows
        ]
        return output.table([headings, *cells]).splitlines()

    def _job_lines(self) -> list[str]:
        """Return the lines about jobs: counts by state, then each running one."""
        jobs = ", ".join(f"{count} {state}" for state, count in self._status["jobs"].items())
        running = []
        for job in self._status.get("running") or ():
            place, words = self._short_place(job["directory"]), job_words(job, self._now)
            running.append(f"{job['job']}  {job['kind']} in {place}: {words}")
        paused = " (paused)" if self._status.get("paused_since") is not None else ""
        heading = f"{self._screen.paint('jobs', 'bold')}  {jobs or 'none'}{paused}"
        return ["", heading, *running]

    def _session_lines(self) -> list[str]:
        """Return the lines about the most recent sessions of clients."""
        sessions = list(self._status.get("sessions") or ())
        rows = [
            (each["client"], self._short_place(each["project"]), output.age(self._now - each["at"]))
            for each in sessions[:_MAX_SESSIONS]
        ]
        note = "" if rows else "  none"
        if len(sessions) > _MAX_SESSIONS:
            note = f"  the last {_MAX_SESSIONS} of {len(sessions)}"
        heading = f"{self._screen.paint('sessions', 'bold')}{note}"
        return ["", heading, *output.table(rows).splitlines()]

    def _short_place(self, path: str) -> str:
        """Return a directory in its short form."""
        return output.place(path, self._home)


def _method_use(name: str, before: TopReading, now: TopReading, seconds: float) -> MethodUse:
    """Return a method's rate, times and errors in the interval between two readings."""
    old_counts = before.times.get(name, ())  # none for a method that was not called before
    pairs = zip_longest(now.times[name], old_counts, fillvalue=0)
    counts = [new - old for new, old in pairs]
    return MethodUse(
        method=name,
        rate=sum(counts) / seconds,
        p50=quantile(counts, 0.5),
        p99=quantile(counts, 0.99),
        errors=now.errors.get(name, 0) - before.errors.get(name, 0),
        total=sum(now.times[name]),
    )


def _seconds(value: float | None) -> str:
    """Return a time in three digits, in ms below a second; "-" for ``None``."""
    if value is None:
        return "-"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
