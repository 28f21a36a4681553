"""Merge changed sections into session notes. Pure."""

from msgspec.structs import replace

from memd.notes import local, sections
from memd.notes.sections import NotesSection, SessionNotes


def merged(
    before: SessionNotes, after: SessionNotes, conflicts: dict[str, None], now: SessionNotes
) -> SessionNotes:
    """Return the notes ``now`` with the sections that a run changed from ``before`` to ``after``.

    A section that somebody else changed too stays, and is added to ``conflicts``.
    """
    for old, new in zip(before.sections, after.sections, strict=True):
        current = now.section(old.title)
        if new == old:
            continue
        if current is None or local.authored(current.body) != local.authored(old.body):
            conflicts[f'"{old.title}" was changed meanwhile; it is as it is now'] = None
        elif current == old:
            now = now.with_section(new)
        else:  # only the local writer changed its lines
            now = now.with_section(with_local_lines_of(current, new))
    return now


def with_local_lines_of(current: NotesSection, section: NotesSection) -> NotesSection:
    """Return a section with the local writer's lines from the ``current`` one."""
    _, lines = sections.split_local(current.body)
    return replace(section, body=sections.with_local(section.body, lines))
