"""Checks of what a change may contain: names, sizes, types and secrets. Pure.

They run before anything is written, so a refusal leaves no trace.
"""

from collections.abc import Container, Iterable, Sequence

from memd.base import limits
from memd.base.errors import Conflict, Invalid, NotFound, Refused, Secret, TooLarge
from memd.base.names import (
    INDEX,
    INDEXES,
    TEAM,
    TEAM_INDEX,
    check_name,
    check_odd_name,
    check_stored_name,
    in_catalogue,
)
from memd.base.text import decode, sha256
from memd.base.values import FileEdit, MemoryType
from memd.store import memory, secret
from memd.store.packing import common

NewText = tuple[str, bytes | None, bytes]  # path, the text before, the new text

_LINES_AROUND_CHANGE = 100  # that are searched too: credentials of several lines are shorter
_BETWEEN = "\n\n\0\n\n"  # two texts that are searched together: no credential has such lines


class ImportedTexts:
    """Checks the texts of an import, and skips a text that has already passed."""

    def __init__(self) -> None:
        self._passed: set[tuple[str, str]] = set()  # paths with hashes

    def check(self, path: str, before: bytes | None, content: bytes) -> None:
        """Refuse a text that no import may bring. Raises TooLarge and Secret.

        The type is not checked: no file of an import is shared with a team.
        """
        path_and_hash = (path, sha256(content))
        if content == before or path_and_hash in self._passed:
            return
        check_size(path, content, limits.READ_BYTES)
        check_secrets(path, before, content)
        if before is None:  # no earlier line excused a credential of this text
            self._passed.add(path_and_hash)


def check_edits(
    edits: Sequence[FileEdit], *, restores: bool = False, imports: bool = False
) -> None:
    """Refuse names, and numbers of files, that no change may have.

    A writer may name the index only with the hash of the index that it read. What ``restores`` may
    name any memory of this disk, and any number of them; an import brings what a person named.
    Raises Refused and TooLarge.
    """
    most = limits.IMPORT_FILES + len(INDEXES) if imports else limits.CHANGE_FILES
    if len(edits) > most and not restores:
        sentence = f"the change has {len(edits)} files; one may have {most}"
        raise TooLarge(sentence, files=len(edits), limit=most)
    seen: set[str] = set()
    for edit in edits:
        if imports:
            check_odd_name(edit.path)
        else:
            # The team's index is derived, but a person's own lines in it may come back.
            is_index = edit.path == INDEX and edit.base is not None
            if not is_index and not (edit.path == TEAM_INDEX and restores):
                if not restores:
                    # What is there already may have a name that a person chose.
                    check = check_name if edit.content is not None else check_stored_name
                    check(edit.path)
                if not in_catalogue(edit.path):
                    why = "only topic files are written here"
                    sentence = f"the name {edit.path} is refused: {why}"
                    raise Refused(sentence, kind="name_refused", name=edit.path, rule=why)
        if edit.path in seen:
            raise name_clash(edit.path, edit.path)
        seen.add(edit.path)


def no_memory(path: str) -> NotFound:
    """Return the error of a memory that is not there."""
    hint = "list the memories to see their paths"
    return NotFound(f"there is no memory {path}", hint=hint, path=path)


def name_clash(path: str, other: str) -> Refused:
    """Return the error of two names that some systems take for one file."""
    return Refused(
        f"{path} differs from {other} only in case",
        kind="name_refused",
        hint="choose a name that differs in more than case",
        path=path,
        other=other,
    )


def conflict(path: str, expected: str, actual: str, change: str = "") -> Conflict:
    """Return the error of two versions that cannot be merged; hashes are "" for no file.

    ``change`` is the id under which the log keeps what was to be written, "" where it keeps none.
    """
    stored = f"; what was refused is kept as {change}" if change else ""
    return Conflict(
        f"{path} was changed since it was read; nothing was written{stored}",
        hint="read the file again and repeat the change on what it says now",
        path=path,
        expected=expected,
        found=actual,
        change=change,
    )


def check_size(path: str, content: bytes, limit: int = limits.MEMORY_BYTES) -> None:
    """Refuse a body of more than ``limit`` bytes. Raises TooLarge."""
    if len(content) > limit:
        sentence = f"{path} would have {len(content)} bytes; a memory may have {limit}"
        hint = "keep one fact per memory and split the rest"
        raise TooLarge(sentence, hint=hint, path=path, size=len(content), limit=limit)


def check_shared(path: str, content: bytes) -> None:
    """Refuse a memory below ``team/`` without a type that a team shares. Raises Invalid."""
    if not path.startswith(TEAM):
        return
    kind = memory.parse(content, path).type
    if kind in (None, MemoryType.USER):
        shown = kind.value if kind else "none"
        sentence = f"{path} is not written: team memories have a type that is shared, not {shown}"
        hint = "give it the type project, reference or feedback, or write it without scope team"
        raise Invalid(sentence, hint=hint, path=path, type=shown)


def check_new_texts(texts: Iterable[NewText], by_lines: Container[str] = ()) -> None:
    """Refuse a credential in the texts of one change, all searched together. Raises Secret.

    ``by_lines`` are paths of which each new line says something of its own.
    """
    new_texts = list(texts)
    parts = (
        _new_part(*text, around=0 if text[0] in by_lines else _LINES_AROUND_CHANGE)
        for text in new_texts
    )
    if secret.find(_BETWEEN.join(parts)):
        for text in new_texts:
            check_secrets(*text)


def check_secrets(path: str, before: bytes | None, after: bytes) -> None:
    """Refuse a credential in a line that is new in the file, or in the name of a new file.

    Lines that were there before pass, or a person could not edit such a file at all. Raises Secret,
    which never has the value.
    """
    if not secret.find(_new_part(path, before, after)):
        return
    in_name = secret.find(path) if before is None else ()
    if in_name:
        raise Secret(
            f"the name of the file looks like a secret ({in_name[0].rule}); nothing was written",
            hint="name the file by what it is about instead of the secret",
            rule=in_name[0].rule,
        )
    old, new = decode(before or b"").split("\n"), decode(after).split("\n")
    old_lines = {(each.rule, old[each.line - 1]) for each in secret.find("\n".join(old))}
    for each in secret.find("\n".join(new)):
        if (each.rule, new[each.line - 1]) not in old_lines:
            raise Secret(
                f"line {each.line} of {path} looks like a secret ({each.rule});"
                " nothing was written",
                hint="write where the secret is kept instead of the secret",
                path=path,
                rule=each.rule,
                line=each.line,
            )


def _new_part(
    path: str, before: bytes | None, after: bytes, *, around: int = _LINES_AROUND_CHANGE
) -> str:
    """Return the name of a new file, and the text from its first to its last changed line.

    So many lines ``around`` the change are included; what else stood there need not be searched
    again, and a search of a large text is slow.
    """
    if before is None:
        return f"{path}{_BETWEEN}{decode(after)}"
    old, new = before + b"\n", after + b"\n"  # so that each line ends
    start = new.rfind(b"\n", 0, common(old, new)) + 1
    backwards = (b"\n" + new[start:])[::-1]
    same = common(backwards, (b"\n" + old[start:])[::-1])
    end = len(new) - 1 - backwards.rfind(b"\n", 0, same)
    for _ in range(around and min(around, new.count(b"\n"))):
        start = new.rfind(b"\n", 0, max(0, start - 1)) + 1
        end = max(end, new.find(b"\n", end + 1))
    return decode(new[start : max(0, end)])
