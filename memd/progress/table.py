"""Describe a tool call in one line without a model: a verb, and a file, host or word. Pure.

Rules of this file
- Every result is a valid line (``lines.is_line``), whatever the call contains.
- Of a path only the last part is shown, of a URL the host, and of a command its program and at most
  two words before any switch, since a word behind a switch may be a password.
- If a line may contain a credential, a line without a name is used.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from msgspec import toml

from memd.base.package_files import read_text
from memd.conversation.history import members_of, tool_kind
from memd.conversation.pieces import RecordedCall, string
from memd.progress.lines import is_line
from memd.store import secret
from memd.text import invisible

_NAME_CHARACTERS = 40  # the longest name in a line
_NAME_WORDS = 4  # the most words of a name
_READ_CHARACTERS = 2_000  # of a command, a pattern or a path; the rest is ignored
_COMMAND_END = r"&&|\|\||[;&|\n]"  # the end of one command in a line of a shell
_ASSIGNMENT = r"[A-Za-z_]\w*="
_NUMBER = r"[\d.]+[smhd]?"  # as in "timeout 5m"
_PLAIN = r"[A-Za-z0-9_][\w.+@:/-]*"
_FILE = r"[\w+-][\w.+-]*\.[A-Za-z]\w{0,5}"  # a name with an ending
_WORD = r"\w[\w.-]*\w"
_MCP_SEPARATOR = "__"  # MCP tools are named mcp__SERVER__TOOL
_AGENT_MEMBER = "subagent_type"


@cache
def _table() -> dict[str, Any]:
    """Return ``table.toml``: verbs, and the programs that are known."""
    table: dict[str, Any] = toml.decode(read_text("progress/table.toml"))
    return table


def line_of(call: RecordedCall) -> str:
    """Return a line that describes a tool call, such as "Reading config.py"."""
    kind = tool_kind(call.name)
    if kind == "shell":
        kind, name = _command_words(members_of(call.given, "command"))
    else:
        name = _NAMERS.get(kind, _tool_name)(call)
    return _compose(kind, name)


def _compose(kind: str, name: str) -> str:
    """Return the verb of a kind of tool with a name, or a general line if that is not safe."""
    table = _table()
    row = table.get(kind or "other", table["other"])
    line = f"{row['verb']} {name}"
    is_safe = name and is_line(line) and not secret.find(line)
    return line if is_safe else f"{row['verb']} {row['rest']}"


def _path_name(call: RecordedCall) -> str:
    """Return the name of the first file that a call writes or names, "" for none."""
    paths = call.writes or members_of(call.given, "path")
    return _last_part(paths[0]) if paths else ""


def _search_words(call: RecordedCall) -> str:
    """Return the file that a call searches, or else "for" and a search word, or else the folder."""
    place = _path_name(call)
    if re.fullmatch(_FILE, place):
        return place
    pattern = string(call.given.get("pattern")) or string(call.given.get("query"))
    return _search_target(pattern, place)


def _query_words(call: RecordedCall) -> str:
    """Return "for" and the first three words of a web search, "" for none."""
    words = re.findall(_WORD, string(call.given.get("query"))[:_READ_CHARACTERS])
    return f"for {_shortened(' '.join(words[:3]))}" if words else ""


def _host_name(call: RecordedCall) -> str:
    """Return the host of the URL that a call fetches, "" for none."""
    return _host_of(string(call.given.get("url")))


def _agent_name(call: RecordedCall) -> str:
    """Return "the NAME agent" for a call that starts a sub-agent, "" without a name of one word."""
    name = _last_part(string(call.given.get(_AGENT_MEMBER)))
    return f"the {name} agent" if name and " " not in name else ""


def _no_name(_call: RecordedCall) -> str:
    """Return "": calls of this kind have nothing to name."""
    return ""


def _tool_name(call: RecordedCall) -> str:
    """Return the name of a tool; that of an MCP tool is without its server."""
    return _last_part(call.name.rpartition(_MCP_SEPARATOR)[2])


_NAMERS = {
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
    """Return the kind of the first command in a shell line that does work, and words to name it.

    ``parts`` are the arguments of the tool call: one line, or a program and its arguments.
    """
    # Of ``bash -c COMMAND`` only the command counts.
    is_shell = parts and _last_part(parts[0]) in _table()["programs"]["shells"]
    text = parts[-1] if is_shell else " ".join(parts)
    for part in re.split(_COMMAND_END, text[:_READ_CHARACTERS]):
        words = _command_and_arguments(part)
        program = _last_part(words[0]) if words else ""
        if (
            not program
            or program in _table()["programs"]["silent"]
            or not re.fullmatch(_PLAIN, program)
        ):
            continue
        arguments = words[1:]
        if program in _table()["programs"]["web"]:
            hosts = [host for host in map(_host_of, arguments) if host]
            return "web", hosts[0] if hosts else ""
        if program in _table()["programs"]["read"]:
            return "read", _first_file(arguments)
        if program in _table()["programs"]["search"]:
            pattern = next((word for word in arguments if not word.startswith("-")), "")
            return "search", _first_file(arguments) or _search_target(pattern, "")
        if program.startswith("python") and arguments[:1] == ["-m"]:
            module = _last_part("".join(arguments[1:2]))
            program, arguments = module or program, arguments[2:]
        shown_words = [word for word in (program, *_plain_words(arguments)) if word]
        return "shell", " ".join(shown_words)
    return "shell", ""


def _command_and_arguments(part: str) -> list[str]:
    """Return a command's words from its program on, without assignments, sudo and the like."""
    words = [word.strip("\"'()") for word in part.split()]
    while words and (
        re.match(_ASSIGNMENT, words[0])
        or words[0] in _table()["programs"]["before"]
        or re.fullmatch(_NUMBER, words[0])
    ):
        del words[0]
    return words


def _plain_words(arguments: Sequence[str]) -> list[str]:
    """Return at most two arguments that stand before any switch, or else the first file's name."""
    result: list[str] = []
    for word in arguments[:2]:
        if word.startswith("-") or not re.fullmatch(_PLAIN, word):
            break
        result.append(_last_part(word))
    return result or [_first_file(arguments)]


def _first_file(arguments: Sequence[str]) -> str:
    """Return the first argument whose last part is a file name with an ending, "" for none."""
    return next((name for name in map(_last_part, arguments) if re.fullmatch(_FILE, name)), "")


def _search_target(pattern: str, place: str) -> str:
    """Return "for" and the longest word of a pattern; without a word, the searched place."""
    words = re.findall(_WORD, pattern[:_READ_CHARACTERS])
    word = _shortened(max(words, key=len)) if words else ""
    return f"for {word}" if word else place


def _host_of(address: str) -> str:
    """Return the host of a URL, "" if it is not valid or has none."""
    try:
        host = urlsplit(address.strip("\"'")[:_READ_CHARACTERS]).hostname or ""
    except ValueError:
        return ""
    return _shortened(host) if re.fullmatch(_PLAIN, host) else ""


def _last_part(path: str) -> str:
    """Return the last part of a path: its first four words without invisible characters."""
    last = path[-_READ_CHARACTERS:].replace("\\", "/").rstrip("/").rpartition("/")[2]
    visible = "".join(c for c in invisible.removed(last) if c.isprintable() and c not in "<>")
    return _shortened(" ".join(visible.split()[:_NAME_WORDS]))


def _shortened(name: str) -> str:
    """Return a name of at most 40 characters, cut in the middle so that its ending stays."""
    if len(name) <= _NAME_CHARACTERS:
        return name
    # As one word, so that the line keeps its limit of words.
    return f"{name[: _NAME_CHARACTERS - 13]}…{name[-12:]}".replace(" ", "_")
