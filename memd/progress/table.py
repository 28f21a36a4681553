"""The line of a tool's call, without a model: what is done, and to which file, host or word. Pure.

Rules of this file
- Every line is one (``lines.is_line``), whatever a call holds; what cannot be shown is left out.
- Of a path the last part is shown, of an address the host, of a command its program and at most two
  plain words: what stands behind a switch may be a password.
- A line that looks as if it held a credential gives way to one without a name.
"""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from memd.conversation.history import members_of, tool_kind
from memd.conversation.pieces import RecordedCall, string
from memd.documents import secrets
from memd.progress.lines import is_line
from memd.text import invisible

_TABLE: dict[str, Any] = tomllib.loads(
    files("memd.progress").joinpath("table.toml").read_text("utf-8")
)
_PROGRAMS: dict[str, list[str]] = _TABLE["programs"]
_NAME_CHARACTERS = 40
_NAME_WORDS = 4
_READ_CHARACTERS = 2_000  # of a command, a pattern or a path
_END = re.compile(r"&&|\|\||[;&|\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+@:/-]*")
_FILE = re.compile(r"[\w+-][\w.+-]*\.[A-Za-z]\w{0,5}")  # a name with an ending
_WORD = re.compile(r"\w[\w.-]*\w")
_MCP = "__"
_CALLED = "subagent_type"


def line_of(call: RecordedCall) -> str:
    """Return the line that describes a tool call."""
    kind = tool_kind(call.name)
    if kind == "shell":
        kind, name = _command_words(members_of(call.given, "command"))
    else:
        name = _NAME_BY_KIND.get(kind, _tool_name)(call)
    return _line(kind, name)


def _line(kind: str, name: str) -> str:
    """Return a verb and a name; without the name if that makes no safe line."""
    row = _TABLE.get(kind or "other", _TABLE["other"])
    line = f"{row['verb']} {name}"
    shown = name and is_line(line) and not secrets.find(line)
    return line if shown else f"{row['verb']} {row['rest']}"


def _path_name(call: RecordedCall) -> str:
    paths = call.writes or members_of(call.given, "path")
    return _last_part(paths[0]) if paths else ""


def _search_words(call: RecordedCall) -> str:
    """Return the file that is searched; if it is none, what is searched for, else the folder."""
    place = _path_name(call)
    if _FILE.fullmatch(place):
        return place
    pattern = string(call.given.get("pattern")) or string(call.given.get("query"))
    return _search_target(pattern, place)


def _query_words(call: RecordedCall) -> str:
    words = _WORD.findall(string(call.given.get("query"))[:_READ_CHARACTERS])
    return f"for {_shortened(' '.join(words[:3]))}" if words else ""


def _host_name(call: RecordedCall) -> str:
    return _host(string(call.given.get("url")))


def _agent_name(call: RecordedCall) -> str:
    name = _last_part(string(call.given.get(_CALLED)))
    return f"the {name} agent" if name and " " not in name else ""


def _no_name(_call: RecordedCall) -> str:
    return ""


def _tool_name(call: RecordedCall) -> str:
    """Return a tool's name, of an MCP tool without the server's name."""
    return _last_part(call.name.rpartition(_MCP)[2])


_NAME_BY_KIND = {
    "read": _path_name,
    "edit": _path_name,
    "write": _path_name,
    "search": _search_words,
    "web_search": _query_words,
    "web": _host_name,
    "plan": _no_name,
    "task": _no_name,
    "sub_agent": _agent_name,
}


def _command_words(parts: Sequence[str]) -> tuple[str, str]:
    """Return the kind of a shell command, and the words that name what it works on."""
    text = parts[-1] if parts and _last_part(parts[0]) in _PROGRAMS["shells"] else " ".join(parts)
    for part in _END.split(text[:_READ_CHARACTERS]):
        words = _words(part)
        program = _last_part(words[0]) if words else ""
        if not program or program in _PROGRAMS["silent"] or not _PLAIN.fullmatch(program):
            continue
        arguments = words[1:]
        if program in _PROGRAMS["web"]:
            return "web", next(filter(None, map(_host, arguments)), "")
        if program in _PROGRAMS["read"]:
            return "read", _first_file(arguments)
        if program in _PROGRAMS["search"]:
            plain = [word for word in arguments if not word.startswith("-")]
            return "search", _first_file(arguments) or _search_target(plain[0] if plain else "", "")
        if program.startswith("python") and arguments[:1] == ["-m"]:
            program, arguments = _last_part("".join(arguments[1:2])) or program, arguments[2:]
        return "shell", " ".join(filter(None, (program, *_plain_words(arguments))))
    return "shell", ""


def _words(part: str) -> list[str]:
    """Return a command's words from its program on."""
    words = [word.strip("\"'()") for word in part.split()]
    while words and (
        _ASSIGNMENT.match(words[0])
        or words[0] in _PROGRAMS["before"]
        or _NUMBER.fullmatch(words[0])
    ):
        del words[0]
    return words


def _plain_words(arguments: Sequence[str]) -> list[str]:
    """Return at most two words of a command: those before any switch, or a file's name."""
    switch = next((n for n, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    result: list[str] = []
    for word in arguments[: min(switch, 2)]:
        if not _PLAIN.fullmatch(word):
            break
        result.append(_last_part(word))
    return result or [_first_file(arguments)]


def _first_file(arguments: Sequence[str]) -> str:
    """Return the first argument that is the name of a file, "" for none."""
    return next((name for name in map(_last_part, arguments) if _FILE.fullmatch(name)), "")


def _search_target(pattern: str, place: str) -> str:
    """Return "for" and the pattern's longest word; without a word the place."""
    words = _WORD.findall(pattern[:_READ_CHARACTERS])
    word = _shortened(max(words, key=len)) if words else ""
    return f"for {word}" if word else place


def _host(address: str) -> str:
    try:
        host = urlsplit(address.strip("\"'")[:_READ_CHARACTERS]).hostname or ""
    except ValueError:
        return ""
    return _shortened(host) if _PLAIN.fullmatch(host) else ""


def _last_part(path: str) -> str:
    """Return the last part of a path, fit to be shown on one line."""
    last = path[-_READ_CHARACTERS:].replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join(c for c in invisible.removed(last) if (c.isprintable() and c not in "<>"))
    return _shortened(" ".join(shown.split()[:_NAME_WORDS]))


def _shortened(name: str) -> str:
    """Return a name of bounded length, cut in the middle so that its ending stays."""
    if len(name) <= _NAME_CHARACTERS:
        return name
    return f"{name[: _NAME_CHARACTERS - 13]}…{name[-12:]}".replace(" ", "_")
