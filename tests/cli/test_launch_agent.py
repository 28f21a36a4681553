"""The launch agent of macOS, as far as it can be checked without a Mac."""

import plistlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.base.limits import DRAIN_SECONDS
from memd.cli import service_unit
from memd.client.launch import LAUNCHD_LABEL

UID = 501
PYTHON = "/opt/pipx/venvs/memdir-daemon/bin/python"
DEFAULT_EXIT_SECONDS = 20  # what launchd gives a job to end in
Check = Callable[[Any], bool]


def _is(kind: type) -> Check:
    return lambda value: type(value) is kind


def _list_of(kind: type) -> Check:
    return lambda value: type(value) is list and value != [] and all(type(v) is kind for v in value)


def _table(keys: dict[str, Check]) -> Check:
    return lambda value: type(value) is dict and value != {} and not _wrong(value, keys)


# launchd.plist(5): the keys that an agent of memd may have, and what each has to be. launchd says
# nothing of a key that it does not know or of a value of another type: it goes on without.
KEEP_ALIVE = {"SuccessfulExit": _is(bool), "Crashed": _is(bool)}
SOCKET = {"SockPathName": _is(str), "SockPathMode": _is(int), "SockType": _is(str)}
SESSIONS = {"Aqua", "Background", "LoginWindow", "StandardIO", "System"}
KEYS: dict[str, Check] = {
    "Label": _is(str),
    "ProgramArguments": _list_of(str),
    "EnvironmentVariables": lambda value: _table(dict.fromkeys(value, _is(str)))(value),
    "WorkingDirectory": _is(str),
    "RunAtLoad": _is(bool),
    "KeepAlive": lambda value: _is(bool)(value) or _table(KEEP_ALIVE)(value),
    "ThrottleInterval": _is(int),
    "ExitTimeOut": _is(int),
    "Umask": _is(int),
    "ProcessType": lambda value: value in {"Background", "Standard", "Adaptive", "Interactive"},
    "LimitLoadToSessionType": lambda value: _list_of(str)(value) and set(value) <= SESSIONS,
    "StandardOutPath": _is(str),
    "StandardErrorPath": _is(str),
    "Sockets": lambda value: _table(dict.fromkeys(value, _table(SOCKET)))(value),
}


def _wrong(agent: dict[str, Any], keys: dict[str, Check]) -> list[str]:
    """Return the keys that launchd would not know, or not take for what they are meant."""
    return [key for key, value in agent.items() if key not in keys or not keys[key](value)]


def _template() -> dict[str, Any]:
    path = Path(service_unit.UNITS, f"{LAUNCHD_LABEL}.plist")
    agent: dict[str, Any] = plistlib.loads(path.read_bytes())
    return agent


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Keepalive", True),
        ("ExecStart", "memd"),
        ("RunAtLoad", "true"),
        ("RunAtLoad", 1),
        ("Umask", "0077"),
        ("ExitTimeOut", 75.0),
        ("ProgramArguments", "memd serve"),
        ("ProgramArguments", []),
        ("KeepAlive", {"SuccessfulExit": "no"}),
        ("KeepAlive", {"OnFailure": True}),
        ("ProcessType", "background"),
        ("LimitLoadToSessionType", ["Desktop"]),
        ("Sockets", {"Listener": {"SockPathName": "/s", "SockPathMode": "0600"}}),
    ],
)
def test_a_slip_in_the_agent_would_be_seen(key: str, value: object) -> None:
    """A key that launchd does not know, and a value that it would read as another, are found."""
    assert _wrong(_template() | {key: value}, KEYS) == [key]


def test_the_agent_says_what_launchd_understands() -> None:
    """Each key is known and has its type, and the values are those that memd needs."""
    agent = _template()
    assert _wrong(agent, KEYS) == []
    assert {"Label", "ProgramArguments"} <= set(agent)
    assert agent["Label"] == LAUNCHD_LABEL == service_unit.LABEL
    # It begins with the session, comes back when it fails, and rests once it ended as it was told.
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert agent["ExitTimeOut"] > max(DRAIN_SECONDS, DEFAULT_EXIT_SECONDS)
    assert agent["Umask"] == 0o077  # a property list has no octal numbers
    assert agent["ProcessType"] == "Background"
    # With `Background` it is there for a login over ssh too.
    assert set(agent["LimitLoadToSessionType"]) == {"Aqua", "Background"}
    assert "Sockets" not in agent  # memd makes its own, in a directory whose owner it has checked


@pytest.mark.parametrize(
    "home",
    [
        "Users/u",
        "Users/with a space",
        "Users/a & b",
        "Users/<plist a>",
        "Users/]]> --> &amp; %h $HOME ~",
        'Users/"it\'s"',
        "Users/Zoë 山田 🙂 \u202e",
        "Users/e\u0301",
    ],
)
def test_what_is_installed_is_the_agent_with_paths(tmp_path: Path, home: str) -> None:
    """Whatever a home and an interpreter are called, the file differs in paths alone."""
    there = f"{tmp_path}/{home}"
    python = f"{there}{PYTHON}"
    service = service_unit.launchd(python, there, UID)
    (path,) = service_unit.write(service)
    assert path == f"{there}/Library/LaunchAgents/{LAUNCHD_LABEL}.plist"  # launchd wants its label
    content = Path(path).read_bytes()
    agent = plistlib.loads(content)
    filled = {
        "ProgramArguments": [python, "-P", "-m", "memd", "serve"],
        "StandardErrorPath": f"{there}/Library/Logs/memd.log",
    }
    assert agent == _template() | filled
    assert _wrong(agent, KEYS) == []
    paths = (agent["ProgramArguments"][0], agent["StandardErrorPath"])
    assert all(each.startswith("/") for each in paths)  # launchd expands neither ~ nor variables
    assert content.count(service_unit.MARK.encode()) == 1
    assert service_unit.states(service) == {path: "installed"}
    assert service.enable_commands == (("launchctl", "bootstrap", f"gui/{UID}", path),)
    assert service_unit.remove(service) == (path,)
