"""Offer memories and session notes as resources, and the system prompt as a prompt.

``memory://index`` is the index, ``memory://memories/PATH`` a memory, ``memory://notes`` the notes
that changed last and ``memory://notes/SESSION`` those of a session. A memory with foreign words
begins with a line that says so.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from memd.base.errors import Invalid
from memd.mcp.protocol import McpRequest, MethodCaller, declaration, no_resource, text_of
from memd.mcp.tools import quoted_head
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


async def list_page(ask: MethodCaller, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of the resources: on the first page index and notes, then memories by age."""
    cursor = text_of(params.get("cursor"))
    place = {"after": cursor} if cursor else {}
    page = await ask("memory.list", limit=_PAGE_LIMIT, **place)
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


async def read(ask: MethodCaller, request: McpRequest) -> dict[str, Any]:
    """Return the text of a resource. Raises NotFound for a URI of another kind."""
    uri = text_of(request.params.get("uri"))
    if uri == INDEX or uri.startswith(MEMORY):
        path = _INDEX_FILE if uri == INDEX else unquote(uri.removeprefix(MEMORY))
        memory = await ask("memory.read", path=path)
        content = f"{quoted_head(memory['origin'])}{neutralise(memory['content'])}"
    elif uri == NOTES or uri.startswith(f"{NOTES}/"):
        content = neutralise(await _notes(ask, unquote(uri.removeprefix(NOTES)[1:])))
    else:
        raise no_resource(request, _NO_URI)
    return {"contents": [{"uri": uri, "mimeType": _MARKDOWN, "text": content}]}


async def _notes(ask: MethodCaller, session: str) -> str:
    """Return the notes of a session, for "" those that changed last."""
    if not session:
        notes = (await ask("notes.list", limit=1))["notes"]
        if not notes:
            return _NO_NOTES
        session = notes[0]["session"]
    return text_of((await ask("notes.read", session_id=session))["content"])


async def prompt(ask: MethodCaller, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages of a prompt. Raises Invalid for an unknown one."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name == "load_prompt":
        loaded = await ask("load_prompt")
        words = loaded["prompt"] or f"Memory is off here: {loaded['reason']}"
    elif name == "remember":
        statement = text_of(arguments.get("statement")) if isinstance(arguments, dict) else ""
        if not statement.strip():
            raise Invalid(_NO_STATEMENT)
        words = declaration("remember").format(statement=statement)
    else:
        raise Invalid(_NO_PROMPT)
    return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
