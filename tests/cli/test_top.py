"""memctl top: what it counts, what it shows, and a terminal that is given back."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.cli.output import Screen, columns
from memd.cli.top import SORTS, TopInterval, TopPicture, TopReading, TopView, sorted_by
from memd.core.histogram import BOUNDS
from memd.testing.daemon import Home as DaemonHome
from memd.testing.daemon import daemon_process, memctl_command
from memd.testing.scripted_daemon import HangUp, ScriptedDaemon
from tests.cli.driver import Stream, memctl
from tests.cli.home import Home
from tests.cli.terminal import ENTER, LEAVE, on_a_terminal

STATUS: dict[str, Any] = {
    "name": "memd",
    "version": "1.2",
    "pid": 7,
    "uptime": 100.0,
    "connections": 2,
    "rss": 45 * 1024**2,
    "jobs": {"running": 1, "queued": 2},
    "running": [
        {"job": "j1", "kind": "dream", "directory": "/p", "phase": "merging", "since": None}
    ],
    "sessions": [{"client": "editor", "session": "s", "project": "/h/p", "at": 0.0}],
    "spend": {"used": {"dollars": 0.25}, "dollars_per_day": 1.0, "caps": {}},
    "health": [],
}


def metrics(cpu: float = 1.0, errors: int = 0, **counts: int) -> dict[str, Any]:
    """Return metrics in which each method was answered so often within a millisecond."""
    place = BOUNDS.index(0.001)
    histogram = [
        {
            "labels": {"method": name.replace("_", ".")},
            "value": 0.1,
            "counts": [0] * place + [count] + [0] * (len(BOUNDS) - place),
        }
        for name, count in counts.items()
    ]
    failed = [{"labels": {"method": "hello", "kind": "busy"}, "value": errors, "counts": []}]
    families = {
        "memd_request_seconds": histogram,
        "memd_request_errors": failed if errors else [],
        "process_cpu_seconds": [{"labels": {}, "value": cpu, "counts": []}],
    }
    return {"families": [{"name": name, "samples": s} for name, s in families.items()]}


def interval(before: dict[str, Any], after: dict[str, Any], **status: Any) -> TopInterval:
    """Return what happened between two looks that are ten seconds apart."""
    first = TopReading.of(5.0, STATUS, before)
    return TopInterval.between(first, TopReading.of(15.0, STATUS | status, after))


def test_what_happened_is_the_difference_of_two_looks() -> None:
    """Rates, times and errors are of the time in between, totals of the daemon's life."""
    happened = interval(metrics(hello=5), metrics(cpu=2.0, errors=3, hello=25, memory_list=1))
    (hello, listed) = sorted_by(happened.methods, "rate")
    assert (hello.method, hello.rate, hello.errors, hello.total) == ("hello", 2.0, 3, 25)
    assert hello.p50 == pytest.approx(0.00075)
    assert (listed.method, listed.rate) == ("memory.list", 0.1)
    assert (happened.cpu, happened.since_start) == (0.1, False)
    still = interval(metrics(hello=5), metrics(hello=5)).methods[0]
    assert (still.rate, still.p50, still.total) == (0.0, None, 5)


def test_a_daemon_that_began_anew_is_told_since_its_start() -> None:
    """Its counts began at zero, so the earlier look is no guide."""
    anew = interval(metrics(hello=500), metrics(hello=20), pid=8, uptime=4.0)
    assert (anew.methods[0].rate, anew.methods[0].total, anew.since_start) == (5.0, 20, True)
    first = TopInterval.between(None, TopReading.of(1.0, STATUS, metrics(hello=200)))
    assert (first.methods[0].rate, first.since_start) == (2.0, True)


def test_columns_sort_and_the_list_scrolls() -> None:
    """Arrows choose the column, letters name it, and what is above all is not scrolled to."""
    view = TopView()
    assert SORTS[view.sort] == "rate"
    for key, sort in (("right", "p50"), ("left", "rate"), ("t", "total"), ("m", "method")):
        view.press(key)
        assert SORTS[view.sort] == sort
    view.press("left")
    assert SORTS[view.sort] == "total"
    view.press("up")
    view.press("down")
    assert view.scrolled == 1
    view.press("h")
    assert view.help
    view.press("x")
    assert not view.help


NAMES = st.text(max_size=40)


@settings(max_examples=60)
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,30}", fullmatch=True), st.integers(0, 9), max_size=40),
    st.lists(st.tuples(NAMES, NAMES), max_size=20),
    st.integers(20, 120),
    st.integers(2, 50),
    st.lists(st.sampled_from(["down", "up", "left", "h", "e"]), max_size=9),
)
def test_a_picture_fits_whatever_it_shows(
    counts: dict[str, int],
    sessions: list[tuple[str, str]],
    wide: int,
    high: int,
    keys: list[str],
) -> None:
    """No line is wider and there are no more lines than the terminal has; nothing steers it."""
    seen = [{"client": a, "session": "s", "project": b, "at": 0.0} for a, b in sessions]
    happened = interval(metrics(), metrics(**counts), sessions=seen)
    view = TopView()
    for key in keys:
        view.press(key)
    screen = Screen(Stream(terminal=True), Stream(), {}, color="always")
    lines = TopPicture(happened, screen, "/h", 10.0).lines(view, wide, high)
    assert len(lines) == high
    assert all(columns(line) <= wide for line in lines)
    assert not any("\x1b" in line or "\n" in line or "\u202e" in line for line in lines)


def test_pictures_are_printed_for_scripts(home: Home) -> None:
    """One picture is of the time since the start; more are lines of JSON where that is asked."""
    told = {"status": STATUS, "metrics": metrics(hello=500, memory_list=3)}
    with ScriptedDaemon(home.places.socket, told):
        once = memctl(home, "top", "--once").out.splitlines()
        twice = memctl(home, "top", "--batch", "2", "--every", "0.01", "--json").out.splitlines()
    assert once[0] == "memd 1.2  up 1 min 40 s  45.0 MiB  cpu 1.0%  2 connections"
    assert once[1] == "spent $0.2500 of $1.00 today  all is well"
    assert [line.split()[:2] for line in once[4:7]] == [
        ["method", "/s"],
        ["hello", "5.0"],
        ["memory.list", "0.0"],
    ]
    assert "j1  dream in /p: merging" in once
    first, second = map(json.loads, twice)
    assert [first["methods"][0][name] for name in ("method", "total")] == ["hello", 500]
    assert (second["methods"][0]["rate"], second["spend"]["used"]["dollars"]) == (0.0, 0.25)


def test_a_daemon_that_was_stopped_stays_so(home: Home) -> None:
    """Whoever looks at the daemon again and again does not start another one."""
    command = memctl_command("--cwd", home.cwd, "top", "--batch", "99", "--every", "0.5", "--json")
    with (
        daemon_process(DaemonHome(home.path, home.environ, home.places)),
        subprocess.Popen(
            command, env=dict(home.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as looking,
    ):
        assert looking.stdout is not None
        assert looking.stdout.readline()
        assert memctl(home, "stop").status == 0
        assert b"no memd answers" in looking.communicate(timeout=30)[1]
        assert looking.returncode == 69
    assert memctl(home, "status").status == 69


def test_without_a_terminal_it_says_what_to_do(home: Home) -> None:
    """Nobody's pipe is filled with codes; a terminal that can do nothing is none."""
    told = {"status": STATUS, "metrics": metrics()}
    with ScriptedDaemon(home.places.socket, told):
        ran = memctl(home, "top")
        assert (ran.status, ran.out, "--once" in ran.err) == (2, "", True)
        with on_a_terminal(home, "top", "--json") as terminal:
            assert terminal.ended() == 0
            assert ENTER not in terminal.text
        with on_a_terminal(home, "top", term="dumb") as terminal:
            assert terminal.ended() == 2
            assert ENTER not in terminal.text


def methods(lines: list[str]) -> list[str]:
    """Return the methods of a picture."""
    return [line.split()[0] for line in lines if line.startswith(("hello ", "memory.list "))]


def test_a_person_looks_sorts_and_leaves(home: Home) -> None:
    """On a real terminal it is drawn anew, obeys keys and the size, and all is put back."""
    numbers = iter(range(1, 10**6))

    def counted(_params: dict[str, Any]) -> Any:
        return metrics(hello=100, memory_list=next(numbers) * 1000)

    project = "/p/\x1b[2J\u202eevil"
    seen = [{"client": "editor", "session": "s", "project": project, "at": time.time()}]
    told = {"status": STATUS | {"sessions": seen}, "metrics": counted}
    with (
        ScriptedDaemon(home.places.socket, told),
        on_a_terminal(home, "top", "--every", "0.2") as terminal,
    ):
        assert ENTER in terminal.until("sessions")
        first = terminal.frame("since its start")
        assert (len(first), first[0].split()[0]) == (24, "memd")
        assert any("\\u001b[2J\\u202eevil" in line for line in first)
        terminal.picture(lambda lines: methods(lines) == ["memory.list", "hello"])
        terminal.press("m")
        terminal.picture(lambda lines: methods(lines) == ["hello", "memory.list"])
        terminal.press("h")
        terminal.frame("half of them")
        terminal.press("h")
        terminal.resize(60, 12)
        small = terminal.picture(lambda lines: len(lines) == 12)
        assert max(map(len, small)) <= 60
        terminal.press("q")
        assert terminal.ended() == 0
        assert LEAVE in terminal.text
        assert terminal.attributes() == terminal.before


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
)
def test_a_signal_gives_the_terminal_back(home: Home, number: signal.Signals, status: int) -> None:
    """Whoever ends it leaves the person the screen and the keys as they were."""
    with (
        ScriptedDaemon(home.places.socket, {"status": STATUS, "metrics": metrics(hello=1)}),
        on_a_terminal(home, "top") as terminal,
    ):
        terminal.frame("since its start")
        terminal.process.send_signal(number)
        assert terminal.ended() == status
        assert LEAVE in terminal.text
        assert terminal.attributes() == terminal.before


def test_a_stop_gives_the_terminal_back_for_a_while(home: Home) -> None:
    """The shell has its screen meanwhile, and the picture comes back with the program."""
    with (
        ScriptedDaemon(home.places.socket, {"status": STATUS, "metrics": metrics(hello=1)}),
        on_a_terminal(home, "top", "--every", "0.1") as terminal,
    ):
        terminal.frame("since its start")
        terminal.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOWAIT)
        terminal.until(LEAVE)
        assert terminal.attributes() == terminal.before
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until(ENTER)
        terminal.frame("hello")
        terminal.press("q")
        assert terminal.ended() == 0


def test_a_daemon_that_goes_away_is_waited_for(home: Home) -> None:
    """It is not started again, the person sees why nothing moves, and a bug is a sentence."""
    results: dict[str, Any] = {"status": STATUS, "metrics": metrics(hello=1)}
    told = {name: lambda _, name=name: results[name] for name in results}
    with (
        ScriptedDaemon(home.places.socket, told),
        on_a_terminal(home, "top", "--every", "0.1") as terminal,
    ):
        terminal.frame("since its start")
        results["status"] = HangUp()
        terminal.frame("memd went away")
        results["status"] = STATUS
        terminal.frame("hello")
        results["status"] = {"name": "something else"}
        assert terminal.ended() == 1
        assert terminal.text.rindex(LEAVE) < terminal.text.rindex("memctl: KeyError")
        assert terminal.attributes() == terminal.before
