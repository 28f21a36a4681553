"""metrics and debug: the daemon in numbers.

Labels and names come from memd's own tables: methods, kinds of errors, states, kinds of work. They
never have a text of a person or a model, a path, a session or a query.
"""

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import asdict

from memd import __version__
from memd.api.doctor import quick_checks
from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.histogram import BOUNDS
from memd.core.options import shareable
from memd.rpc.connection import Call
from memd.state.tables import StateTables, SuggestionCounts

_LIBRARIES = ("anyio", "jsonrpcserver", "msgspec", "psutil", "structlog", "tantivy", "watchdog")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sample(Result):
    """One value of a family. In a histogram ``value`` is the sum of the observed values.

    ``counts`` then has the number of values between the bounds; the last is above them all.
    """

    value: float
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    counts: list[int] = msgspec.field(default_factory=list)


class Family(Result):
    """One metric; ``type`` is counter, gauge, histogram or info, as OpenMetrics names them.

    ``bounds`` are those of a histogram; a value equal to a bound counts below it.
    """

    name: str
    type: str
    help: str
    samples: list[Sample]
    unit: str = ""
    bounds: tuple[float, ...] = ()


class Metrics(Result):
    """All metrics. Counters begin at 0 with the daemon."""

    families: list[Family]


class FolderSize(Result):
    """How many files are in a folder and its subfolders, and their size in bytes."""

    files: int = 0
    bytes: int = 0


class DebugFacts(Result):
    """Facts that help to find a fault, without any text of a person.

    ``settings`` has the value of numbers, switches and names of a fixed set; for others it says
    whether they are set. ``checks`` are names and states of ``doctor``'s self-checks that ask no
    server. ``tasks`` and ``threads`` count those of the daemon.
    """

    versions: dict[str, str]
    platform: str
    uptime: float
    state: StateTables
    folders: dict[str, FolderSize]
    settings: dict[str, bool | int | float | str]
    settings_problems: int
    checks: dict[str, str]
    tasks: int
    threads: int


@method("metrics", "read")
async def metrics(services: Services, _call: Call) -> Metrics:
    """Latencies, errors, caches, extractions, suggestions, sizes and spending, as numbers."""
    return Metrics(
        families=[
            *_request_metrics(services),
            *_extraction_metrics(services),
            *await to_thread.run_sync(_state_metrics, services),
            _suggestion_metric(await services.suggestions.counts()),
            *await to_thread.run_sync(_process_metrics, services),
        ]
    )


@method("debug", "read")
async def debug(services: Services, call: Call) -> DebugFacts:
    """Versions, sizes and counts that help to find a fault, without any text of a person.

    It counts every row of the state file, which takes a while where there are many.
    """
    settings, problems = await services.store.settings(None)
    checks = await quick_checks(services, call, settings, problems)
    places = services.places
    folders = {
        "index": f"{places.state_dir}/index",
        "headers": places.headers,
        "spool": places.spool,
    }
    return DebugFacts(
        versions=await to_thread.run_sync(_versions),
        platform=f"{sys.platform} {platform.machine()}",
        uptime=round(services.clock.monotonic() - services.started, 3),
        state=await to_thread.run_sync(services.figures.tables),
        folders={
            name: await to_thread.run_sync(_folder_size, path) for name, path in folders.items()
        },
        settings=dict(shareable(settings)),
        settings_problems=len(problems),
        checks={check.name: check.state for check in checks},
        tasks=len(anyio.get_running_tasks()),
        threads=_count_entries("/proc/self/task"),
    )


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, 0 on a system without /proc."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES  # the second number: resident pages
    except OSError:  # pragma: no cover - a system without /proc
        return 0


def _request_metrics(services: Services) -> Iterable[Family]:
    """Yield the metrics of requests and caches."""
    times = services.hub.times
    yield Family(
        name="memd_request_seconds",
        type="histogram",
        unit="seconds",
        help="How long requests took to answer, by method.",
        bounds=BOUNDS,
        samples=[
            Sample(value=each.sum, labels={"method": name}, counts=list(each.counts))
            for name, each in sorted(times.seconds.items())
        ],
    )
    yield Family(
        name="memd_request_errors",
        type="counter",
        help="Requests that were answered with an error, by method and kind of the error.",
        samples=[
            Sample(value=count, labels={"method": name, "kind": kind})
            for (name, kind), count in sorted(times.errors.items())
        ],
    )
    caches = {
        "catalogue": services.store.reading.cache,
        "index": services.recall.cache,
        "instructions": services.instructions.cache,
    }
    hits = {name: each.hits for name, each in caches.items()}
    lookups = {name: each.lookups for name, each in caches.items()}
    yield _labelled("cache", hits, "memd_cache_hits", "Lookups that a cache could answer.")
    yield _labelled("cache", lookups, "memd_cache_lookups", "Lookups in a cache.")


def _extraction_metrics(services: Services) -> Iterable[Family]:
    """Yield the metrics of extractions."""
    tally = services.extract.tally
    yield _labelled("outcome", tally.outcomes, "memd_extractions", "Extractions by how they ended.")
    words = "Memories that extractions saved, updated or removed, and statements they suggested."
    yield _labelled("fate", tally.memories, "memd_extracted_memories", words)


def _state_metrics(services: Services) -> Iterable[Family]:
    """Return the metrics that come from the state file. Blocks."""
    now = services.clock.now()
    counts = services.figures.counts()
    size = services.figures.size(services.clock.monotonic())
    spent = services.spent.kinds_today(now)
    return [
        _gauge("memd_memories", size.memories, "Memories of all directories that memd knows."),
        _gauge("memd_surfaced", size.surfaced, "Times that memories went out with a prompt."),
        _gauge("memd_read", size.read, "Times that an assistant opened a memory."),
        _gauge("memd_acted", size.acted, "Times that a session acted on a memory."),
        _gauge("memd_journal_bytes", size.bytes, "Bytes in use in the state file.", "bytes"),
        _labelled("state", counts.jobs, "memd_jobs", "Background jobs, the newest 200.", "gauge"),
        _gauge("memd_messages_held", counts.held, "Messages that wait for the person."),
        _labelled(
            "kind",
            {kind: round(used.dollars, 6) for kind, used in spent.items()},
            "memd_spend_dollars",
            "US dollars that were spent today, by kind of work.",
            "gauge",
            unit="dollars",
        ),
    ]


def _suggestion_metric(counts: SuggestionCounts) -> Family:
    """Return the metric that counts suggestions."""
    words = "Suggestions that are kept, by what became of them."
    return _labelled("fate", asdict(counts), "memd_suggestions", words, "gauge")


def _process_metrics(services: Services) -> Iterable[Family]:
    """Return the metrics of this process: memory, CPU time, files and threads. Blocks."""
    cpu = os.times()
    uptime = services.clock.monotonic() - services.started
    began = services.clock.now() - uptime

    return [
        Family(
            name="memd_build",
            type="info",
            help="The version that runs.",
            samples=[Sample(value=1, labels={"version": __version__})],
        ),
        _gauge("memd_connections", services.hub.connections(), "Clients that are connected."),
        _gauge("process_resident_memory_bytes", resident_bytes(), "Bytes in memory.", unit="bytes"),
        Family(
            name="process_cpu_seconds",
            type="counter",
            unit="seconds",
            help="Seconds of the processor that were used.",
            samples=[Sample(value=cpu.user + cpu.system)],
        ),
        _gauge("process_open_fds", _count_entries("/proc/self/fd"), "Open file descriptors."),
        _gauge("process_threads", _count_entries("/proc/self/task"), "Threads."),
        _gauge("process_start_time_seconds", began, "When it began, since 1970.", unit="seconds"),
    ]


def _labelled(
    label: str,
    values: Mapping[str, float],
    name: str,
    words: str,
    type_: str = "counter",
    *,
    unit: str = "",
) -> Family:
    """Return a metric with one sample for each of ``values``, its key in the label ``label``.

    ``words`` are its description.
    """
    samples = [Sample(value=value, labels={label: key}) for key, value in sorted(values.items())]
    return Family(name=name, type=type_, help=words, unit=unit, samples=samples)


def _gauge(name: str, value: float, words: str, unit: str = "") -> Family:
    """Return a metric that is one number; ``words`` are its description."""
    return Family(name=name, type="gauge", help=words, unit=unit, samples=[Sample(value=value)])


def _count_entries(folder: str) -> int:
    """Return how many entries a folder of /proc has, 0 on a system without it. Blocks."""
    try:
        return len(os.listdir(folder))
    except OSError:  # pragma: no cover - a system without /proc
        return 0


def _folder_size(path: str) -> FolderSize:
    """Return the size of a folder; files that disappear meanwhile are not counted. Blocks."""
    total = FolderSize()
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total.bytes += os.lstat(f"{folder}/{name}").st_size
                total.files += 1
    return total


def _versions() -> dict[str, str]:
    """Return the versions of memd, Python and the libraries that are installed. Blocks."""
    from importlib import metadata  # noqa: PLC0415 - 1 MB that this method alone needs

    versions = {"memd": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


METHODS = (metrics, debug)
