"""Find the origin of tools' output and the paths that their calls write. Pure.

Rules of this file
- A tool is identified by its name alone. Web tools and the tools of MCP servers bring words from
  outside; memd's own tools are neither, and their output is memd's own text.
- A write is a path, absolute; a patch names several.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memd.conversation.pieces import AGENT, string

MEMORY_ROOT = "/memories"  # the folder that the Messages API's memory tool uses in its paths
SHORT_CHARACTERS = 200  # of one call in short form
TOOL, WEB, MCP = "tool", "web", "mcp"
OTHERS = (WEB, MCP, AGENT)  # origins that are neither the person nor this machine

_WRITERS = dict.fromkeys(("Write", "Edit", "MultiEdit", "write_file", "replace"), "file_path")
_WRITERS["NotebookEdit"] = "notebook_path"
_MEMORY_COMMANDS = ("create", "str_replace", "insert", "delete", "rename")
_WEB = frozenset(
    ("webfetch", "websearch", "web_fetch", "web_search", "fetch_webpage", "google_web_search")
)
# The members shown for a call, the first present one; not a file's whole content.
_PATH_MEMBERS = ("file_path", "notebook_path", "path")
_SHOWN_MEMBERS = (
    *_PATH_MEMBERS,
    *("command", "cmd", "pattern", "query", "url", "description", "prompt"),
)
_MCP = "mcp__"  # the beginning of the names of MCP servers' tools
_MEMORY_TOOL = "memory"  # of the Messages API
_MEMD = "mcp__(?:plugin_memd_)?memd_+(.+)"  # memd's own server, and its tools
# memd's tools that change memories; the suggestions only with the action.
_OWN_WRITERS, _SUGGESTIONS, _ACCEPT = ("save", "forget"), "suggestions", "accept"
_COMMAND_MEMBERS = ("command", "cmd", "input")
_READ_MESSAGES = "read_messages"  # memd's tool
# memd's command, or its method through any program that speaks to the socket.
_READING_COMMAND = r"\bmessage(?:\s+(?:-\S+\s+)*(?:read|wait|log)\b|\.(?:receive|log)\b)"
_PATCHED = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$"
_PATCH = "*** Begin Patch"


def origin(name: str) -> str:
    """Return the origin of a tool's output: ``web``, ``mcp``, or ``tool`` for any other."""
    if name.lower() in _WEB:
        return WEB
    return MCP if name.startswith(_MCP) and not re.match(_MEMD, name) else TOOL


def is_own(name: str) -> bool:
    """Return whether a tool's output is memd's own text: its MCP tools and the memory tool."""
    return name == _MEMORY_TOOL or re.match(_MEMD, name) is not None


def brings_messages(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether a call's output has messages of other agents."""
    own = re.match(_MEMD, name)
    if own is not None:
        return own[1] == _READ_MESSAGES
    for member in _COMMAND_MEMBERS:
        command = given.get(member) or ""
        line = " ".join(map(str, command)) if isinstance(command, list) else str(command)
        if re.search(_READING_COMMAND, line):
            return True
    return False


def short(name: str, given: Mapping[str, Any]) -> str:
    """Return a call in one line: the tool's name and its most informative argument."""
    value = next((given[name] for name in _SHOWN_MEMBERS if given.get(name)), "")
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(f"{name} {words[:SHORT_CHARACTERS]}".split())[:SHORT_CHARACTERS]


def writes(name: str, given: Mapping[str, Any], cwd: str) -> Iterator[str]:
    """Yield the absolute paths that a call writes; those of memory tools are below MEMORY_ROOT."""
    if name in _WRITERS:
        path = string(given.get(_WRITERS[name]))
        if path and "\0" not in path:
            yield absolute(path, cwd)
    elif name == _MEMORY_TOOL and given.get("command") in _MEMORY_COMMANDS:
        path = string(given.get("path")) or string(given.get("new_path"))
        yield posixpath.normpath(posixpath.join(MEMORY_ROOT, path))
    elif (own := re.match(_MEMD, name)) and _changes(own[1], given):
        path = string(given.get("path")) or string(given.get("name"))
        yield posixpath.join(MEMORY_ROOT, path.lstrip("/"))


def _changes(tool: str, given: Mapping[str, Any]) -> bool:
    """Return whether a call of memd's own server changes a memory."""
    return tool in _OWN_WRITERS or (tool == _SUGGESTIONS and given.get("action") == _ACCEPT)


def patched(text: str, cwd: str) -> Iterator[str]:
    """Yield the paths that a patch in a text adds, changes, removes or moves to."""
    if _PATCH in text:
        for path in re.findall(_PATCHED, text):
            if "\0" not in path:
                yield absolute(path.strip(), cwd)


def absolute(path: str, cwd: str) -> str:
    """Return an absolute path; a relative one starts at ``cwd``, or at the root if that is ""."""
    return posixpath.normpath(posixpath.join(cwd or "/", path))
