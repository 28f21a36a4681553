"""Read Codex's own memories: ``MEMORY.md`` and ``memory_summary.md`` of its folder. Pure."""

import re
from collections.abc import Iterator

from memd.base.values import MemoryType
from memd.portable.bullets import entry
from memd.portable.decoding import files, text
from memd.portable.memories import ReadingBuilder

_SUMMARY, _VERSION = "memory_summary.md", "v1"
_TYPES = {"user profile": MemoryType.USER, "user preferences": MemoryType.FEEDBACK}
# Headings of sections that only list where something stands.
_INDEX_SECTIONS = r"task \d+.*|what.?s in memory.*"
_HEADING = r"(#{1,6})[ \t]+(\S.*)"
_REFERENCES = r"(?:[ \t]*\[Task \d{1,6}\])+\Z"
_SECTION_LEVELS = 2  # levels of headings that name a section; deeper ones only order its entries
_SESSION_NOTES = "Codex's notes on single sessions, of which its memories are made"
_SKIPPED = {
    "raw_memories.md": _SESSION_NOTES,
    "rollout_summaries": _SESSION_NOTES,
    "skills": "skills are no memories",
}


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each entry of ``MEMORY.md`` and ``memory_summary.md``."""
    # The summary first: of equal texts the first is taken, and the summary's has the better type.
    for name in reversed(files(builder, ".md")):
        parts = name.split("/")
        if parts[-1] in ("MEMORY.md", _SUMMARY):
            _add_file(builder, name, text(builder.source, name))
        else:
            reasons = (_SKIPPED[part] for part in parts if part in _SKIPPED)
            builder.leave_out(name, next(reasons, f"it is neither MEMORY.md nor {_SUMMARY}"))


def _add_file(builder: ReadingBuilder, name: str, content: str) -> None:
    """Propose the entries of a file as memories, or leave them out with a reason."""
    if name.endswith(_SUMMARY):
        version, _, content = content.partition("\n")
        if version != _VERSION:
            builder.leave_out(name, f"its first line is not {_VERSION}")
            return
    at = builder.changed_at(name)
    lines_above = 1 if name.endswith(_SUMMARY) else 0  # the version, which is not in ``content``
    for number, section, scope, lines in _entries(content):
        where = f"{name}:{number + lines_above}"
        if re.fullmatch(_INDEX_SECTIONS, section):
            builder.leave_out(where, f"Codex's own index ({section})")
            continue
        statement = re.sub(_REFERENCES, "", "\n".join(lines).rstrip())
        if statement.startswith("Related skill:"):
            builder.leave_out(where, _SKIPPED["skills"])
            continue
        context = f"Scope: {scope}" if scope else ""
        builder.add(statement, where, kind=_TYPES.get(section), at=at, context=context)


def _entries(content: str) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield the line number, section, scope and lines of each bullet and paragraph.

    The scope is the task group that a statement holds for.
    """
    section, scope, start, lines = "", "", 0, list[str]()
    for number, line in enumerate((*content.split("\n"), ""), 1):
        heading, bullet = re.fullmatch(_HEADING, line), entry(line)
        is_at_margin = bullet is not None and not bullet[0]
        if lines and (heading or is_at_margin or not line.strip()):
            yield start, section, scope, lines
            lines = []
        if heading:
            if len(heading[1]) <= _SECTION_LEVELS:
                section = heading[2].strip().casefold()
            if len(heading[1]) == 1:
                scope = heading[2].removeprefix("Task Group:").strip()
        elif line.startswith(("scope:", "applies_to:")):
            scope = f"{scope}; {line.removeprefix('scope:').strip()}"
        elif line.strip():
            start = start if lines else number
            lines.append(bullet[2] if bullet and is_at_margin else line)
