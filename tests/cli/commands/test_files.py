"""config and logs."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.driver import following, memctl
from tests.cli.home import Home


def test_the_settings_file_is_shown_checked(home: Home) -> None:
    """What differs from the defaults, no key, and a sentence for what is wrong."""
    path = Path(home.places.config)
    assert "the defaults hold" in memctl(home, "config").err
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text('[recall]\nlimit = 3\n[model]\napi_key = "sk-1"\n')
    assert memctl(home, "config").out.split() == ["recall.limit", "3", "model.api_key", "(set)"]
    assert "extract.enabled" in memctl(home, "config", "--all").out
    path.write_text("[recall]\nlimit = 300\nspeed = 1\n")
    ran = memctl(home, "config")
    assert (ran.status, ran.err.count("recall.")) == (1, 2)
    path.write_text("[recall\n")
    ran = memctl(home, "config")
    assert (ran.status, "is not valid TOML" in ran.err) == (1, True)


def test_a_file_that_does_not_count_is_told(home: Home) -> None:
    """What others may write, or read a key in, is named and not shown as if it held."""
    path = Path(home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("enabled = false\n")
    path.chmod(0o666)
    ran = memctl(home, "config")
    assert (ran.status, ran.out, "may be written by others" in ran.err) == (1, "", True)
    path.write_text('[model]\napi_key = "sk-1"\n')
    path.chmod(0o644)
    ran = memctl(home, "config")
    assert (ran.status, ran.out, "may be read by others" in ran.err) == (1, "", True)


def test_the_log_is_readable(home: Home) -> None:
    """Its last lines come one a line with their facts, whatever stands there."""
    assert "is not there" in memctl(home, "logs").err
    log = Path(home.places.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    line = '{"pid": 7, "event": "ready", "level": "info", "timestamp": "2026-11-22T21:36:57.5Z"}'
    log.write_text(f"first\nno json\x1b[2J\n{line}\n")
    assert memctl(home, "logs", "--lines", "2", terminal=True).out.splitlines() == [
        "no json\\u001b[2J",
        "2026-11-22T21:36:57 info    ready pid=7",
    ]


LINES = [
    {"event": "ready", "level": "info", "timestamp": "2026-11-22T10:00:00Z", "pid": 7},
    {"event": "clock", "level": "warning", "timestamp": "2026-11-22T11:00:00Z"},
    {"event": "fault", "level": "error", "timestamp": "2026-11-22T12:00:00Z", "client": "editor"},
]


@pytest.mark.parametrize(
    ("options", "events"),
    [
        ((), ["ready", "clock", "fault"]),
        (("--level", "warning"), ["clock", "fault"]),
        (("--event", "ready"), ["ready"]),
        (("--client", "editor"), ["fault"]),
        (("--since", "2026-11-22T11:00:00Z"), ["clock", "fault"]),
        (("--since", "2026-11-22T11:00:00Z", "--level", "error", "--lines", "5"), ["fault"]),
    ],
)
def test_lines_of_the_log_are_chosen(
    home: Home, options: tuple[str, ...], events: list[str]
) -> None:
    """By level, event, client and time; a line that is no JSON passes where nothing is chosen."""
    log = Path(home.places.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    text = "Traceback\n" + "".join(f"{json.dumps(line)}\n" for line in LINES)
    log.write_text(text)
    answer = memctl(home, "logs", "--json", *options).json
    assert answer["file"] == str(log)
    assert [json.loads(line)["event"] for line in answer["lines"] if line != "Traceback"] == events
    assert ("Traceback" in answer["lines"]) == (not options)
    piped = memctl(home, "logs", "-f", "-", "--json", *options, stdin=text).out.splitlines()
    assert [event for line in piped if (event := json.loads(line).get("event"))] == events


def test_a_log_is_followed_while_it_is_put_aside(home: Home) -> None:
    """The last lines come first, then each as it is written, whichever file it is in."""
    log = Path(home.places.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"line {number}\n" for number in range(99)))
    with following(home, "logs", "-f", "--lines", "2") as memctl_:
        assert memctl_.lines(2) == ["line 97", "line 98"]
        with log.open("a") as file:
            file.write(json.dumps(LINES[0]) + "\n")
        assert memctl_.lines(1) == ["2026-11-22T10:00:00 info    ready pid=7"]
        log.rename(f"{log}.1")
        log.write_text("anew\n")
        assert memctl_.lines(1) == ["anew"]
        assert memctl_.ended(signal.SIGINT) == 130
