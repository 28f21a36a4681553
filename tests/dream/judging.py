"""Memories, edits and verdicts in few words, for the tests of the judge."""

from collections.abc import Mapping

from memd.core.values import FileEdit, MemoryType
from memd.documents.document import Document, new, parse
from memd.dream.judge import judge
from memd.dream.values import JudgeResult, Merge, Wanted

USER, FEEDBACK = MemoryType.USER, MemoryType.FEEDBACK
PROJECT, REFERENCE = MemoryType.PROJECT, MemoryType.REFERENCE
TOTAL = 40  # so many that a third is far away


def file(body: str, kind: MemoryType = REFERENCE, description: str = "About it") -> bytes:
    """Return a memory."""
    return new("a-name", description, kind, body, session="", modified="2026-01-02T00:00:00Z")


def rule(body: str, description: str = "About it") -> bytes:
    """Return a memory of what a person said."""
    return file(body, FEEDBACK, description)


def doc(body: str, kind: MemoryType = REFERENCE, description: str = "About it") -> Document:
    """Return a memory as it is read."""
    return parse(file(body, kind, description), "a.md")


def wanted(
    edits: Mapping[str, bytes | None], merges: Mapping[str, str] = {}, reason: str = ""
) -> Wanted:
    """Return what a dream wants; ``merges`` map what would go to where it went."""
    return Wanted(
        tuple(FileEdit(path, content) for path, content in edits.items()),
        tuple(Merge(into, source) for source, into in merges.items()),
        {path: reason for path, content in edits.items() if content is None and reason},
    )


def judged(
    before: Mapping[str, bytes],
    edits: Mapping[str, bytes | None],
    merges: Mapping[str, str] = {},
    reason: str = "",
) -> JudgeResult:
    """Return the verdict on a dream in a large memory directory."""
    return judge(before, wanted(edits, merges, reason), total=TOTAL)
