"""config and logs."""

from pathlib import Path

from tests.cli.driver import memctl
from tests.cli.home import Home


def test_the_settings_file_is_shown_checked(home: Home) -> None:
    """What differs from the defaults, no key, and a sentence for what is wrong."""
    path = Path(home.places.config)
    assert "the defaults hold" in memctl(home, "config").err
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[recall]\nlimit = 3\n[model]\napi_key = "sk-1"\n')
    assert memctl(home, "config").out.split() == ["recall.limit", "3", "model.api_key", "(set)"]
    assert "extract.enabled" in memctl(home, "config", "--all").out
    path.write_text("[recall]\nlimit = 300\nspeed = 1\n")
    ran = memctl(home, "config")
    assert (ran.status, ran.err.count("recall.")) == (1, 2)
    path.write_text("[recall\n")
    assert "is no TOML" in memctl(home, "config").err


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
