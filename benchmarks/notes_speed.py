"""What session notes cost: an update, the hooks that lead to one, and a daemon's memory.

An update is measured in this process, beside a floor that reads the same file and parses its lines,
and as a client of a daemon sees it. Hooks are measured as a client runs them, in turns with and
without notes, so that noise meets both. All conversations are those of ``notes_cases``.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.hooks import Clients
from benchmarks.measures import Line, Series, each, size, table
from benchmarks.notes_cases import case
from benchmarks.notes_local import local_notes
from benchmarks.notes_shapes import write
from memd.client import hook_file
from memd.projects.project import slug
from tests.support.daemon import Home, daemon_process, throw_away_home

MEGABYTES = (1, 5)
ROUNDS = 50
HOOK_ROUNDS = 60
SESSIONS = 50
EVENTS = ("Stop", "PreCompact", "SessionStart")
_MB = 1_000_000
_CLAUDE_CODE, _CODEX = 0, 1  # seeds of a conversation of each
_OFF = "[notes]\nenabled = false\n"


def run() -> None:
    """Measure and print."""
    head = ("local update of", "p50 / p99 ms", "of the processor", "floor", "through the daemon")
    print(f"\nlocal update, {ROUNDS} rounds each (aim: 100 ms for 5 MB)", flush=True)
    rows = [_update(megabytes, seed) for megabytes in MEGABYTES for seed in (_CLAUDE_CODE, _CODEX)]
    print(table([head, *rows]))
    print("floor: each line parsed, of the processor")
    print(f"\nhooks, {HOOK_ROUNDS} rounds, process start to end; p50 / p95 ms", flush=True)
    print(table(list(_hooks())), flush=True)
    _memory()


def _update(megabytes: int, seed: int) -> tuple[str, str, str, str, str]:
    """Return the figures of an update that has so much new transcript to read."""
    with throw_away_home() as home, daemon_process(home), Line(home.places.socket) as line:
        cwd = home.project()
        path = _place(home, cwd, "long")
        client = _grow(path, cwd, megabytes, seed)
        ours, processor = _timed(lambda: local_notes(path))
        _, floor = _timed(lambda: _parsed(path))

        def ask(number: int) -> None:
            session = {"cwd": cwd, "session_id": f"s{number}"}
            given = {"transcript_path": _place(home, cwd, f"s{number}"), "force": True}
            line.call("notes.update", session | given | {"wait": True})

        asked: list[float] = []
        for number in range(ROUNDS):
            shutil.copy(path, _place(home, cwd, f"s{number}"))
            asked += each(lambda _, number=number: ask(number), 1).times  # type: ignore[misc]
            Path(_place(home, cwd, f"s{number}")).unlink()
    figures = map(_spread, (ours, processor, floor, Series(tuple(asked))))
    return f"{megabytes} MB, {client}", *figures  # type: ignore[return-value]


def _timed(act: Callable[[], object]) -> tuple[Series, Series]:
    """Return how long an act took, and what the processor did of it: other work hardly counts."""
    processor = []

    def once(_: int) -> None:
        begin = time.process_time()
        act()
        processor.append((time.process_time() - begin) * 1000)

    whole = each(once, ROUNDS)
    return whole, Series(tuple(processor))


def _grow(path: str, cwd: str, megabytes: int, seed: int) -> str:
    """Write a conversation of at least so many megabytes, cut there; return the client's name."""
    made = case(seed, episodes=400 * megabytes)
    write(made, path, cwd)
    whole = Path(path).read_bytes()
    assert len(whole) >= megabytes * _MB
    Path(path).write_bytes(whole[: whole.rindex(b"\n", 0, megabytes * _MB) + 1])
    return made.client


def _parsed(path: str) -> int:
    with open(path, "rb") as file:
        return sum(bool(json.loads(line)) for line in file)


def _hooks() -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: each event with notes, without, and the ratio of the two."""
    with ExitStack() as stack:
        ready = [stack.enter_context(_client(settings)) for settings in ("", _OFF)]
        for clients in ready:
            clients.events(3)
        brought = [0 for _ in ready]
        series: list[dict[str, list[float]]] = [{event: [] for event in EVENTS} for _ in ready]
        for _ in range(HOOK_ROUNDS):
            for place, clients in enumerate(ready):
                for event, took in clients.events(1).items():
                    series[place][event] += took.times
                brought[place] += clients.answered["SessionStart"]
    yield ("event", "with notes", "without", "ratio of the medians")
    for event in EVENTS:
        kept, none = (Series(tuple(times[event])) for times in series)
        cells = (f"{one.p50:.1f} / {one.at(0.95):.1f}" for one in (kept, none))
        yield (event, *cells, f"{kept.p50 / none.p50:.2f}")
    yield ("SessionStart brought notes", *map(str, brought), "")


@contextmanager
def _client(settings: str) -> Iterator[Clients]:
    """Run a daemon with settings; yield a client whose sessions have 100 KB behind them."""
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(settings)
        config.chmod(0o600)
        cwd = home.project()
        hook_file.write(home.places)

        def transcript(path: str) -> None:
            write(case(_CLAUDE_CODE), path, cwd)

        with daemon_process(home):
            yield Clients(home, cwd, EVENTS, transcript)


def _memory() -> None:
    """Print how large a daemon is that has kept notes of many sessions."""
    with throw_away_home() as home, daemon_process(home) as process:
        cwd = home.project()
        idle = size(process.pid).resident
        with Line(home.places.socket) as line:
            for number in range(SESSIONS):
                path = _place(home, cwd, f"s{number}")
                write(case(number), path, cwd)
                session = {"cwd": cwd, "session_id": f"s{number}", "transcript_path": path}
                line.call("notes.update", session | {"force": True, "wait": True})
        after = size(process.pid)
    print(f"\nRSS idle {idle:.1f} MB; after notes of {SESSIONS} sessions {after.resident:.1f} MB,")
    print(f"peak {after.peak:.1f} MB")


def _place(home: Home, cwd: str, session: str) -> str:
    return f"{home.path}/.claude/projects/{slug(cwd)}/{session}.jsonl"


def _spread(series: Series) -> str:
    return f"{series.p50:.0f} / {series.p99:.0f}"
