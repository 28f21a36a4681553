"""What a change set may contain: the checks that stand before the journal. Pure.

A draft comes in with the tree that it was made from; a list of steps comes out, each with what
was there before. Nothing here touches a file, so a refusal leaves no trace.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.names import INDEX, NameRefusedError, check_name, in_catalogue
from memd.core.text import decode
from memd.core.values import Effect, FileEdit, Suggestion
from memd.documents import secrets

_NEAR_BYTES = 8 * 1024  # around a change: credentials of several lines are shorter
_NOT_A_TOPIC = "only topic files are written here"


@dataclass(frozen=True, slots=True)
class DifferingSpan:
    """What differs: from byte ``start`` of both, up to ``before`` of one, ``after`` of the other.

    The three stand at the beginning of a line or at the end of the text.
    """

    start: int
    before: int
    after: int


class ConflictError(MemdError):
    """The file is not what the writer had read, and what both made of it cannot be merged.

    Hashes are "" where there is no file. ``change`` is the id under which the journal keeps what
    was to be written, "" where it keeps nothing.
    """

    code = 1002
    kind = "conflict"
    hint = "read the file again and repeat the change on what it says now"

    def __init__(self, path: str, expected: str, actual: str, change: str = "") -> None:
        retained = f"; what was refused is kept as {change}" if change else ""
        super().__init__(
            f"{path} was changed since it was read; nothing was written{retained}",
            path=path,
            expected=expected,
            found=actual,
            change=change,
        )
        self.path, self.expected, self.actual = path, expected, actual


class SecretRefusedError(MemdError):
    """A new line looks like a credential; the value itself is told to nobody."""

    code = 1003
    kind = "secret"
    hint = "write where the secret is kept instead of the secret"

    def __init__(self, path: str, rule: str, line: int) -> None:
        super().__init__(
            f"line {line} of {path} looks like a secret ({rule}); nothing was written",
            path=path,
            rule=rule,
            line=line,
        )


class SecretInNameError(SecretRefusedError):
    """The name of a new file looks like a credential; it is told to nobody either."""

    hint = "name the file by what it is about instead of the secret"

    def __init__(self, rule: str) -> None:
        MemdError.__init__(
            self,
            f"the name of the file looks like a secret ({rule}); nothing was written",
            rule=rule,
        )


class TooLargeError(MemdError):
    """A memory is larger than what may be written."""

    code = 1007
    kind = "too_large"
    hint = "keep one fact per memory and split the rest"

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"{path} would have {size} bytes; a memory may have {limit}",
            path=path,
            size=size,
            limit=limit,
        )


class TooManyFilesError(MemdError):
    """A change set names more files than one may."""

    code = 1007
    kind = "too_many_files"

    def __init__(self, files: int, limit: int) -> None:
        super().__init__(
            f"the change has {files} files; one may have {limit}", files=files, limit=limit
        )


class NameClashError(MemdError):
    """Two names differ only in case; on some systems they would be one file."""

    code = 1006
    kind = "name_clash"
    hint = "choose a name that differs in more than case"

    def __init__(self, path: str, other: str) -> None:
        super().__init__(f"{path} differs from {other} only in case", path=path, other=other)


def check_edits(edits: Sequence[FileEdit], *, restores: bool = False) -> None:
    """Refuse names, sizes and numbers of files that no change set may have.

    A writer may name the index only with the hash of the index that it read. A draft that
    ``restores`` may name any memory of this disk, and any number of them. Raises NameRefusedError,
    TooManyFilesError and NameClashError (one name twice).
    """
    if len(edits) > limits.CHANGE_FILES and not restores:
        raise TooManyFilesError(len(edits), limits.CHANGE_FILES)
    seen: set[str] = set()
    for edit in edits:
        if edit.path != INDEX or edit.base is None:
            if not restores:
                check_name(edit.path)
            if not in_catalogue(edit.path):
                raise NameRefusedError(edit.path, _NOT_A_TOPIC)
        if edit.path in seen:
            raise NameClashError(edit.path, edit.path)
        seen.add(edit.path)


def check_size(path: str, content: bytes) -> None:
    """Refuse a body above the size of a memory. Raises TooLargeError."""
    if len(content) > limits.MEMORY_BYTES:
        raise TooLargeError(path, len(content), limits.MEMORY_BYTES)


def check_secrets(path: str, before: bytes | None, after: bytes) -> None:
    """Refuse what looks like a credential in a line that the file did not have, or in its name.

    What was there stays writable, else a person's own file could not be edited at all. Raises
    SecretRefusedError, and SecretInNameError where there was no file.
    """
    named = secrets.find(path) if before is None else ()
    if named:
        raise SecretInNameError(named[0].rule)
    if len(after) > limits.MEMORY_BYTES and not _new_secrets(before or b"", after):
        return
    text = decode(after)
    result = secrets.find(text)
    if not result:
        return
    old_text = decode(before or b"")
    old_lines = old_text.split("\n")
    old = {(item.rule, old_lines[item.line - 1]) for item in secrets.find(old_text)}
    lines = text.split("\n")
    for item in result:
        if (item.rule, lines[item.line - 1]) not in old:
            raise SecretRefusedError(path, item.rule, item.line)


def storable(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return effects without the suggestions that look like a credential."""
    return tuple(
        effect
        for effect in effects
        if not isinstance(effect, Suggestion)
        or not secrets.find(f"{effect.text}\n{effect.reason}\n{effect.type}\n{effect.session}")
    )


def _new_secrets(before: bytes, after: bytes) -> bool:
    """Say whether something looks like a credential where a large index differs, or near it."""
    span = differing(before, after)
    return bool(secrets.find(decode(around(after, span.start, span.after, _NEAR_BYTES))))


def differing(before: bytes, after: bytes) -> DifferingSpan:
    """Return the lines that two texts do not have in common at their beginning and their end."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        start = shorter
    else:
        start = bisect_left(range(shorter), 1, key=lambda n: before[: n + 1] != after[: n + 1])
    start = before.rfind(b"\n", 0, start) + 1
    most = shorter - start
    same = bisect_left(range(most), 1, key=lambda n: not before.endswith(after[-n - 1 :]))
    if not all(_begins_a_line(text, start, len(text) - same) for text in (before, after)):
        line = after.find(b"\n", len(after) - same)
        same = 0 if line < 0 else len(after) - line - 1
    return DifferingSpan(start, len(before) - same, len(after) - same)


def around(text: bytes, start: int, end: int, room: int) -> bytes:
    """Return the lines between two bytes of a text, and at least so many bytes on both sides."""
    first = text.rfind(b"\n", 0, max(0, start - room)) + 1
    last = text.find(b"\n", min(len(text), end + room))
    return text[first : len(text) if last < 0 else last + 1]


def _begins_a_line(text: bytes, start: int, at: int) -> bool:
    """Say whether a line begins at a byte; one does at ``start``."""
    return at == start or text.startswith(b"\n", at - 1)
