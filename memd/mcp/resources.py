"""Offer memories and session notes as resources, and the system prompt as a prompt.

``memory://index`` is the index, ``memory://memories/PATH`` a memory, ``memory://notes`` the notes
that changed last and ``memory://notes/SESSION`` those of a session. A memory with foreign words
begins with a line that says so.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from memd.mcp.protocol import NO_RESOURCE, PARAMS, ProtocolError, declaration, text_of
from memd.mcp.tools import Ask, quoted_head
from memd.text.quoting import neutralise

INDEX = "memory://index"
MEMORY = "memory://memories/"
NOTES = "memory://notes"
_INDEX_FILE = "MEMORY.md"
_PAGE_LIMIT = 200  # resources
_MARKDOWN = "text/markdown"
_NO_NOTES = "No conversation of this project has notes yet.\n"
_NO_URI = "no such resource"
_NO_PROMPT = "no such prompt; prompts/list has those that there are"
_NO_STATEMENT = "remember needs the argument statement"


def list_page(ask: Ask, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of the resources: on the first page index and notes, then memories by age."""
    cursor = text_of(params.get("cursor"))
    place = {"after": cursor} if cursor else {}
    page = ask("memory.list", limit=_PAGE_LIMIT, **place)
    resources = [
        {
            "uri": f"{MEMORY}{quote(memory['path'])}",
            "name": memory["path"],
            "title": neutralise(memory["name"]),
            "description": neutralise(memory["description"]),
            "mimeType": _MARKDOWN,
            "size": memory["size"],
            "annotations": {"lastModified": memory["mtime"]},
        }
        for memory in page["memories"]
    ]
    if not cursor:
        resources = [*declaration("resource"), *resources]
    result: dict[str, Any] = {"resources": resources}
    if page["next"]:
        result["nextCursor"] = page["next"]
    return result


def read(ask: Ask, uri: str, *, modern: bool) -> dict[str, Any]:
    """Return the text of a resource. Raises ProtocolError for a URI of another kind."""
    if uri == INDEX or uri.startswith(MEMORY):
        path = _INDEX_FILE if uri == INDEX else unquote(uri.removeprefix(MEMORY))
        memory = ask("memory.read", path=path)
        content = f"{quoted_head(memory['origin'])}{neutralise(memory['content'])}"
    elif uri == NOTES or uri.startswith(f"{NOTES}/"):
        session = unquote(uri.removeprefix(NOTES)[1:]) or _newest_session(ask)
        content = ask("notes.read", session_id=session)["content"] if session else _NO_NOTES
        content = neutralise(content)
    else:
        raise ProtocolError(PARAMS if modern else NO_RESOURCE, _NO_URI, {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": _MARKDOWN, "text": content}]}


def _newest_session(ask: Ask) -> str:
    """Return the session whose notes changed last, "" where the project has none."""
    notes = ask("notes.list", limit=1)["notes"]
    return text_of(notes[0]["session"]) if notes else ""


def prompt_messages(ask: Ask, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages of a prompt. Raises ProtocolError for an unknown one."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name == "load_prompt":
        loaded = ask("load_prompt")
        words = loaded["prompt"] or f"Memory is off here: {loaded['reason']}"
    elif name == "remember":
        statement = text_of(arguments.get("statement")) if isinstance(arguments, dict) else ""
        if not statement.strip():
            raise ProtocolError(PARAMS, _NO_STATEMENT)
        words = declaration("remember").format(statement=statement)
    else:
        raise ProtocolError(PARAMS, _NO_PROMPT)
    return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
