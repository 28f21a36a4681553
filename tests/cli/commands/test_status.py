"""status, on one screen."""

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.cli.commands.status import StatusView
from memd.cli.output import Screen, columns, facts
from tests.cli.driver import Stream, memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

STATUS: dict[str, Any] = {
    "name": "memd",
    "version": "1.2",
    "pid": 7,
    "uptime": 61.0,
    "socket": "/s",
    "state_dir": "/d",
    "connections": 1,
    "rss": 45 * 1024**2,
    "jobs": {"completed": 2},
    "projects": ["/h/.claude/projects/-h-p/memory", "/q/memory"],
    "notes": ["something was mended"],
}


def lines(home: Home, **more: Any) -> list[str]:
    """Return the lines of a daemon that tells more than the least."""
    with ScriptedDaemon(home.places.socket, {"status": STATUS | more}):
        return memctl(home, "status").out.splitlines()


def test_the_status_of_a_daemon_that_tells_little(home: Home) -> None:
    """An older one tells its version, size, jobs and places; how to have this version is said."""
    with ScriptedDaemon(home.places.socket, {"status": STATUS}):
        ran = memctl(home, "status")
        small = memctl(home, "status", "--json")
    assert ran.out.splitlines()[0] == "memd      1.2, up 1 min 1 s, pid 7, 45.0 MiB, 1 connection"
    assert ran.out.splitlines()[1].startswith("          memd scripted runs, and this is memctl")
    assert ran.out.splitlines()[2:] == [
        "waiting   nothing for you",
        "working   nothing runs",
        "projects  2: -h-p, /q/memory",
        "note      something was mended",
        "socket    /s",
        "state     /d",
    ]
    assert (small.json, ran.status) == (STATUS, 0)


def test_what_is_wrong_comes_first_with_its_remedy(home: Home) -> None:
    """All is well, or the worst check, what helps, and how many more there are."""
    assert "health    all is well" in lines(home, health=[])
    checks = [
        {"name": "settings", "state": "warning", "detail": "a typo", "remedy": "mend it"},
        {"name": "socket", "state": "failed", "detail": "mode 0666", "remedy": "chmod it"},
    ]
    assert lines(home, health=checks)[2:4] == [
        "health    failed: socket: mode 0666",
        "          → chmod it (1 more: memctl doctor)",
    ]


def test_what_waits_for_the_person_has_its_command(home: Home) -> None:
    """Proposals, suggestions, held messages and files of a team, each counted."""
    shown = lines(
        home,
        proposals={"/h/.claude/projects/-h-p/memory": 2},
        suggestions={"open": 1, "offered": 0, "taken": 3},
        held=3,
        teams={"/m/a": "equal", "/m/b": "waits", "/m/c": "changed"},
        conflicts={"/m/a": 1},
    )
    assert shown[2:7] == [
        "waiting   2 proposals in -h-p: memctl dream review",
        "          1 suggestion in all projects: memctl suggestions",
        "          3 messages for agents: memctl message held --all",
        "          1 team file: memctl team status",
        "          team: waits in /m/b: memctl team status",
    ]


def test_what_it_does_now_and_what_keeps_it(home: Home) -> None:
    """Running jobs with where they are, a pause, and where no model is asked, with the reason."""
    now = time.time()
    job = {"job": "j1", "kind": "dream", "directory": "/p/memory", "phase": "merging"}
    shown = lines(
        home,
        running=[job | {"since": now - 7200.5, "progress": {"turn": 3}}],
        jobs={"running": 1, "queued": 2, "parked": 1, "failed": 1},
        paused_since=now - 3600.5,
        breakers=[{"directory": "/p/memory", "until": now + 7230, "why": "it is overloaded"}],
    )
    assert shown[3:8] == [
        "working   dream in /p/memory: merging, turn 3, 2 h",
        "          2 queued, 1 failed, 1 parked (memctl job list --parked)",
        "paused    for 1 h; memctl resume lets background work go on",
        "no model  for /p/memory in the next 2 h: it is overloaded",
        "projects  2: -h-p, /q/memory",
    ]


def test_the_model_its_cost_and_the_last_dream(home: Home) -> None:
    """Who answers, today's money and what stands still, the last dream, and who was there."""
    now = time.time()
    used = {"dollars": 0.5, "requests": 4}
    spend = {"used": used, "dollars_per_day": 1.0, "caps": {"dream": "spend.dream_share"}}
    names = {"recall": "small", "extract": "small", "dream": "big"}
    model = {"configured": True, "problem": "", "host": "localhost:1", "names": names}
    counts = {"created": 0, "merged": 2, "removed": 1}
    dream = {"job": "j", "directory": f"{home.path}/x", "state": "completed", "counts": counts}
    seen = {"client": "editor", "session": "s", "project": home.path, "at": now - 7200.5}
    totals = {"conversations": 3, "results": 2, "bytes": 2 * 1024**2, "breaks": 1, "missed": 5_000}
    shown = lines(
        home,
        model=model,
        spend=spend,
        last_dream=dream | {"at": now - 7200.5},
        sessions=[seen],
        contexts=totals,
    )
    assert shown[4:11] == [
        "spend       $0.5000 of $1.00, 4 requests today",
        "            dream stands still until tomorrow: spend.dream_share",
        "model       big, small at localhost:1",
        "last dream  2 h ago in ~/x: 2 merged, 1 removed",
        "sessions    editor in ~ 2 h ago",
        "projects    2: -h-p, /q/memory",
        "context     3 conversations, 2 results, 2.0 MiB; caches lost: 1, 5,000 tokens paid again",
    ]
    none = {"configured": False, "problem": "no key", "host": "", "names": {}}
    assert lines(home, model=none)[4] == "model     none: no key"


NAMES = st.text(max_size=200)
CHECKS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "state": st.sampled_from(["failed", "warning"])}
        | {"detail": NAMES, "remedy": NAMES}
    ),
    max_size=5,
)


@settings(max_examples=50)
@given(CHECKS, st.lists(NAMES, max_size=30), st.dictionaries(NAMES, st.integers(1, 9), max_size=9))
def test_no_line_is_wider_than_the_terminal(
    checks: list[dict[str, str]], texts: list[str], counts: dict[str, int]
) -> None:
    """Whatever a daemon tells, each line fits and what waits for a person stands near the top."""
    answer = STATUS | {"health": checks, "notes": texts, "projects": texts, "proposals": counts}
    screen = Screen(Stream(terminal=True), Stream(), {}, color="never")
    page = facts(StatusView(answer, "/h").pairs(screen), 80).splitlines()
    assert all(columns(line) <= 80 for line in page)
    assert any("waiting" in line for line in page[:5])
    assert len(page) <= 23


def test_a_small_terminal_gets_the_most_important(home: Home) -> None:
    """On a terminal the end is left out where it does not fit, and in a pipe nothing is."""
    rows = [{"directory": f"/{n}", "until": time.time() + 60, "why": "busy"} for n in range(40)]
    answer = STATUS | {"breakers": rows, "notes": [f"note {n}" for n in range(40)]}
    answer |= {"teams": dict.fromkeys(map(str, range(99)), "waits")}
    with ScriptedDaemon(home.places.socket, {"status": answer}):
        shown = memctl(home, "status", terminal=True).out.splitlines()
    assert len(shown) <= 23
    assert shown[0].startswith("memd ")
