"""What a client puts back once a conversation is compacted: a list, which it fills itself. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memd.conversation.history import blocks_of, members_of, tool_kind
from memd.conversation.pieces import members, string

FILES, FILE_TOKENS, FILES_TOKENS = 5, 5_000, 50_000
SKILL_TOKENS, SKILLS_TOKENS = 5_000, 25_000
# Clients load these by themselves.
_LOADED = frozenset(("agents.md", "claude.md", "claude.local.md", "gemini.md", "memory.md"))
# What is in no message, or not as it is now; the client knows whether there is any.
_OTHERS = ("plan", "deferred_tools", "agents", "mcp_instructions", "session_start_hooks", "title")


@dataclass(frozen=True, slots=True)
class RestoredItem:
    """One thing to put back: a ``file`` or a ``skill`` by its ``name``, or another kind.

    ``tokens`` is how many it has at most, 0 for no bound.
    """

    kind: str
    name: str = ""
    tokens: int = 0


def restored(
    messages: Sequence[Mapping[str, Any]], start: int, end: int, memory_dir: str
) -> tuple[RestoredItem, ...]:
    """Return what to put back when ``messages[start:end]`` are gone, what was used last first."""
    stays = {*_used(messages[:start]), *_used(messages[end:])}
    gone = dict.fromkeys(reversed(list(_used(messages[start:end]))))
    used = [(kind, name) for kind, name in gone if (kind, name) not in stays]
    files = [name for kind, name in used if kind == "file" and not _loaded(name, memory_dir)]
    skills = [name for kind, name in used if kind == "skill"]
    most = min(FILES, FILES_TOKENS // FILE_TOKENS)
    return (
        *(RestoredItem("file", name, FILE_TOKENS) for name in files[:most]),
        *(
            RestoredItem("skill", name, SKILL_TOKENS)
            for name in skills[: SKILLS_TOKENS // SKILL_TOKENS]
        ),
        *map(RestoredItem, _OTHERS),
    )


def _used(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the files that were read and the skills that were used, in order; failed calls not."""
    blocks = [b for message in messages for b in blocks_of(message.get("content")) or ()]
    failed = {string(b.get("tool_use_id")) for b in blocks if b.get("is_error") is True}
    for block in blocks:
        if block["type"] != "tool_use" or string(block.get("id")) in failed:
            continue
        name, given = string(block.get("name")), members(block.get("input"))
        if tool_kind(name) == "read":
            yield from (("file", path) for path in members_of(given, "path"))
        elif name.lower() == "skill":
            skill = next(filter(None, (string(given.get(n)) for n in ("skill", "command"))), "")
            yield from (("skill", skill),) if skill else ()


def _loaded(path: str, memory_dir: str) -> bool:
    """Tell whether a file is a memory, or one of instructions, which clients load themselves."""
    return path.startswith(f"{memory_dir}/") or path.rpartition("/")[2].lower() in _LOADED
