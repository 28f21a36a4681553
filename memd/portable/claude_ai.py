"""Read the memories in the ``memories.json`` of a claude.ai data export. Pure."""

import re

import msgspec

from memd.core.values import MemoryType
from memd.portable.decoding import each, entries, files
from memd.portable.memories import ReadingBuilder

_HEADING = re.compile(r"(?:#{1,6}[ \t]+|\*\*)(.{1,120})")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_PROJECTS = re.compile(r"(?:.*/)?projects(?:/[^/]+)?\.json")
_NO_MEMORIES = "no memories; with --from chats --learn memd learns from conversations"
_OTHER_FILES = re.compile(r"(?:.*/)?(?:conversations|users)[^/]*\.json")


class _Account(msgspec.Struct):
    """The memories of an account: of its conversations, and by project id."""

    conversations_memory: str | None = None
    project_memories: dict[str, str] | None = None


class _Project(msgspec.Struct):
    """A project, for its name."""

    uuid: str
    name: str


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each paragraph; those of a project go to that project's id."""
    for name in files(builder, ".json"):
        if _OTHER_FILES.fullmatch(name):
            builder.leave_out(name, _NO_MEMORIES)
        elif _PROJECTS.fullmatch(name):
            for _, project in each(builder, name, entries(builder, name)[0], _Project):
                builder.names[project.uuid] = project.name
        else:
            for where, account in each(builder, name, entries(builder, name)[0], _Account):
                memory = account.conversations_memory or ""
                at = builder.changed_at(name)
                _add_paragraphs(builder, f"{where}.conversations_memory", memory, at, "")
                for project_id, text in (account.project_memories or {}).items():
                    place = f"{where}.project_memories[{project_id}]"
                    _add_paragraphs(builder, place, text, at, project_id)


def _add_paragraphs(
    builder: ReadingBuilder, place: str, text: str, at: float, project: str
) -> None:
    """Propose each paragraph of a text, with the last heading above it as its topic.

    ``place`` is where the text stands in the source. ``at`` is in seconds since 1970.
    """
    topic = ""
    kind = MemoryType.PROJECT if project else MemoryType.USER
    for number, paragraph in enumerate(_PARAGRAPH.split(text.replace("\r\n", "\n")), 1):
        first_line, _, rest = paragraph.strip().partition("\n")
        match = _HEADING.fullmatch(first_line.strip())
        statement = paragraph
        if match and (first_line.startswith("#") or first_line.rstrip(" :").endswith("**")):
            topic, statement = match[1].strip(" \t#*:"), rest
        if statement.strip():
            body = f"{topic}:\n\n{statement}" if topic else statement
            where = f"{place}, paragraph {number}"
            builder.add(body, where, kind=kind, at=at, project=project)
