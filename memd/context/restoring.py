"""List what a client loads again after a conversation is compacted. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memd.conversation.history import blocks_of, members_of, tool_kind
from memd.conversation.pieces import members, string

# At most so many files and tokens; FILE_TOKENS and SKILL_TOKENS are of one, the others of all.
FILES, FILE_TOKENS, FILES_TOKENS = 5, 5_000, 50_000
SKILL_TOKENS, SKILLS_TOKENS = 5_000, 25_000
# Files that clients load by themselves.
_LOADED_BY_CLIENTS = frozenset(
    ("agents.md", "claude.md", "claude.local.md", "gemini.md", "memory.md")
)
# Kinds whose present state is in no message; only the client knows whether it has any.
_OTHER_KINDS = (
    "plan",
    "deferred_tools",
    "agents",
    "mcp_instructions",
    "session_start_hooks",
    "title",
)


class RestoredItem(Struct, frozen=True):
    """One item to load again: a ``file`` or a ``skill`` by its ``name``, or another kind.

    ``tokens`` is the most that the client should load of it, 0 for no limit.
    """

    kind: str
    name: str = ""
    tokens: int = 0


def items_to_restore(
    messages: Sequence[Mapping[str, Any]], start: int, end: int, memory_dir: str
) -> tuple[RestoredItem, ...]:
    """Return what to load again when ``messages[start:end]`` are removed, last used first.

    Left out are items that other messages use too, and files that clients load by themselves.
    """
    still_used = {*_used_items(messages[:start]), *_used_items(messages[end:])}
    used_in_removed = list(_used_items(messages[start:end]))
    removed = dict.fromkeys(reversed(used_in_removed))  # each once, at its last use
    no_longer_used = [item for item in removed if item not in still_used]
    files = [
        name
        for kind, name in no_longer_used
        if kind == "file" and not _is_loaded_by_clients(name, memory_dir)
    ]
    skills = [name for kind, name in no_longer_used if kind == "skill"]
    most_files = min(FILES, FILES_TOKENS // FILE_TOKENS)
    most_skills = SKILLS_TOKENS // SKILL_TOKENS
    return (
        *(RestoredItem("file", name, FILE_TOKENS) for name in files[:most_files]),
        *(RestoredItem("skill", name, SKILL_TOKENS) for name in skills[:most_skills]),
        *(RestoredItem(kind) for kind in _OTHER_KINDS),
    )


def _used_items(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield ("file", path) or ("skill", name) for each that a successful call used, in order."""
    blocks = [block for message in messages for block in blocks_of(message.get("content")) or ()]
    failed = {string(block.get("tool_use_id")) for block in blocks if block.get("is_error") is True}
    for block in blocks:
        if block["type"] != "tool_use" or string(block.get("id")) in failed:
            continue
        name, arguments = string(block.get("name")), members(block.get("input"))
        if tool_kind(name) == "read":
            for path in members_of(arguments, "path"):
                yield "file", path
        elif name.lower() == "skill":
            skill = string(arguments.get("skill")) or string(arguments.get("command"))
            if skill:
                yield "skill", skill


def _is_loaded_by_clients(path: str, memory_dir: str) -> bool:
    """Return whether clients load a file by themselves: a memory or an instructions file."""
    return (
        path.startswith(f"{memory_dir}/") or path.rpartition("/")[2].lower() in _LOADED_BY_CLIENTS
    )
