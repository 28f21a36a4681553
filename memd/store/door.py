"""Checks of what a change set may contain: names, sizes, types and secrets. Pure.

They run before the set is recorded, and nothing here touches a file, so a refusal leaves no trace.
"""

from collections.abc import Iterable, Sequence

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import (
    INDEX,
    INDEXES,
    TEAM,
    TEAM_INDEX,
    check_name,
    check_odd_name,
    check_stored_name,
    in_catalogue,
    name_refused,
)
from memd.base.text import decode
from memd.base.values import Effect, FileEdit, MemoryType, Suggestion
from memd.store import memory
from memd.store.secret import find as find_secrets

_LINES_AROUND_CHANGE = 100  # that are searched too: credentials of several lines are shorter
_NOT_A_TOPIC = "only topic files are written here"


class ConflictError(MemdError):
    """The file is not what the writer had read, and the two versions cannot be merged.

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
    """A new line looks like a credential; the error does not contain the value."""

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
    """The name of a new file looks like a credential; the error does not contain it."""

    hint = "name the file by what it is about instead of the secret"

    def __init__(self, rule: str) -> None:
        # Not the init of SecretRefusedError, whose sentence has the path.
        MemdError.__init__(
            self,
            f"the name of the file looks like a secret ({rule}); nothing was written",
            rule=rule,
        )


class TooLargeError(MemdError):
    """A memory is larger than the limit for writing."""

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


class NotSharedError(MemdError):
    """A team memory is of type user, or has no type."""

    code = 1011
    kind = "not_shared"
    hint = "give it the type project, reference or feedback, or write it without scope team"

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(
            f"{path} is not written: team memories have a type that is shared, not {kind}",
            path=path,
            type=kind,
        )


class TooManyFilesError(MemdError):
    """A change set has more files than the limit."""

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
    """Refuse names, and numbers of files, that no change set may have.

    A writer may name the index only with the hash of the index that it read. A draft that
    ``restores`` may name any memory of this disk, and any number of them. Raises Refused,
    TooManyFilesError and NameClashError (one name twice).
    """
    if len(edits) > limits.CHANGE_FILES and not restores:
        raise TooManyFilesError(len(edits), limits.CHANGE_FILES)
    seen: set[str] = set()
    for edit in edits:
        # The team's index is derived, but a person's own lines in it may come back.
        is_index = edit.path == INDEX and edit.base is not None
        is_restored_team_index = edit.path == TEAM_INDEX and restores
        if not is_index and not is_restored_team_index:
            if not restores:
                # What is there already may have a name that a person chose.
                check = check_name if edit.content is not None else check_stored_name
                check(edit.path)
            if not in_catalogue(edit.path):
                raise name_refused(edit.path, _NOT_A_TOPIC)
        if edit.path in seen:
            raise NameClashError(edit.path, edit.path)
        seen.add(edit.path)


def check_imports(edits: Sequence[FileEdit]) -> None:
    """Refuse names and numbers of files that no import may bring.

    Names may be odd: a person's files come back as they were. Raises Refused,
    TooManyFilesError and NameClashError (one name twice).
    """
    paths = [check_odd_name(edit.path) for edit in edits]
    if len(paths) > limits.IMPORT_FILES + len(INDEXES):
        raise TooManyFilesError(len(paths), limits.IMPORT_FILES)
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise NameClashError(path, path)
        seen.add(path)


def check_size(path: str, content: bytes, limit: int = limits.MEMORY_BYTES) -> None:
    """Refuse a body of more than ``limit`` bytes. Raises TooLargeError."""
    if len(content) > limit:
        raise TooLargeError(path, len(content), limit)


def check_shared(path: str, content: bytes) -> None:
    """Refuse a memory below ``team/`` without a type that a team shares. Raises NotSharedError."""
    if not path.startswith(TEAM):
        return
    kind = memory.parse(content, path).type
    if kind in (None, MemoryType.USER):
        raise NotSharedError(path, kind.value if kind else "none")


def check_secrets(path: str, before: bytes | None, after: bytes) -> None:
    """Refuse a credential in a line that is new in the file, or in a new file's name.

    Lines that were there before pass, or a person could not edit such a file at all. Raises
    SecretRefusedError, and SecretInNameError where there was no file.
    """
    in_name = find_secrets(path) if before is None else ()
    if in_name:
        raise SecretInNameError(in_name[0].rule)
    # A search of a large text is slow, so the changed part is searched first.
    is_large = len(after) > limits.MEMORY_BYTES
    if is_large and not find_secrets(_changed_part(before or b"", after)):
        return
    new_text = decode(after)
    new_secrets = find_secrets(new_text)
    if not new_secrets:
        return
    old_text = decode(before or b"")
    old_lines, new_lines = old_text.split("\n"), new_text.split("\n")
    old_secrets = find_secrets(old_text)
    old_secret_lines = {(secret.rule, old_lines[secret.line - 1]) for secret in old_secrets}
    for secret in new_secrets:
        if (secret.rule, new_lines[secret.line - 1]) not in old_secret_lines:
            raise SecretRefusedError(path, secret.rule, secret.line)


def without_secrets(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return effects without the suggestions that look like a credential."""
    return tuple(effect for effect in effects if not _is_secret_suggestion(effect))


def _is_secret_suggestion(effect: Effect) -> bool:
    """Say whether an effect is a suggestion, and one of its texts looks like a credential."""
    if not isinstance(effect, Suggestion):
        return False
    texts = (effect.text, effect.reason, effect.type, effect.session)
    return bool(find_secrets("\n".join(texts)))


def _changed_part(before: bytes, after: bytes) -> str:
    """Return the new text from its first to its last changed line, with lines around them."""
    old, new = before.split(b"\n"), after.split(b"\n")
    start = _common_start(old, new)
    same_end = _common_start(old[start:][::-1], new[start:][::-1])
    first = max(0, start - _LINES_AROUND_CHANGE)
    end = len(new) - same_end + _LINES_AROUND_CHANGE
    return decode(b"\n".join(new[first:end]))


def _common_start(lines: Sequence[bytes], other_lines: Sequence[bytes]) -> int:
    """Return how many lines two texts have in common at their beginning."""
    for number, (line, other_line) in enumerate(zip(lines, other_lines, strict=False)):
        if line != other_line:
            return number
    return min(len(lines), len(other_lines))
