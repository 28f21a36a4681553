"""Plan and apply what ``memctl setup`` changes in the files of a client."""

import os
from contextlib import suppress
from typing import NamedTuple

from memd.base.errors import Refused
from memd.cli.setup import files
from memd.cli.setup.clients import ClientRow
from memd.cli.setup.hooks import Extras
from memd.cli.setup.parts import (
    FOREIGN,
    INSTALLED,
    OUTDATED,
    Copy,
    FilePart,
    SettingsPart,
    can_have,
)


class ClientEdit(NamedTuple):
    """One file of a client with its bytes before and after the edit; ``None`` for no file."""

    part: FilePart
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The edit as a unified diff."""
        import difflib  # noqa: PLC0415 - not every run needs it

        path = self.part.path
        old, new = (
            (content or b"").decode(errors="replace").splitlines(keepends=True)
            for content in (self.before, self.after)
        )
        lines = difflib.unified_diff(old, new, path, f"{path} (changed)")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def apply(self) -> str | None:
        """Write the file and return the path of its backup, ``None`` if none was made.

        A backup is made when memd comes into a file. Raise Refused and Busy.
        """
        path, before, backup = self.part.path, self.before, None
        is_new = before is None or not self.part.is_in(before)
        if self.after is not None and is_new:
            files.keep_one_backup(path, before)
            backup = None if before is None else path + files.BACKUP
        files.write(path, self.after, before)
        if isinstance(self.part, Copy) and self.after is None:
            with suppress(OSError):
                os.removedirs(os.path.dirname(path))  # deletes only folders that are empty
        return backup


def edits(client: ClientRow, extras: Extras, *, remove: bool) -> tuple[ClientEdit, ...]:
    """Return the edits that set a client up with extras, or remove its set-up.

    Raise Refused if any one file cannot be edited: then none is.
    """
    plan = []
    for part in client.parts:
        before = files.read(part.path)
        after = before
        if not remove:
            after = part.put(before, extras)
        elif before is not None and part.is_in(before):
            after = part.without(before, _original(part))
        if after != before:
            files.check_may_be_written(part.path)
            plan.append(ClientEdit(part, before, after))
    return tuple(plan)


def tidy(client: ClientRow) -> list[str]:
    """Keep the one backup of each file that has memd's part, and no copy of any other file.

    Return the paths that were deleted. Raise Refused.
    """
    deleted = []
    for part in client.parts:
        content = files.read(part.path)
        is_set_up = content is not None and part.is_in(content)
        deleted += files.keep_one_backup(part.path, _original(part) if is_set_up else None)
    return deleted


def state(client: ClientRow) -> str:
    """Return the state that all of a client's files share; if they differ, foreign or outdated.

    Without files it is installed. Raise Refused.
    """
    states = {part.state(files.read(part.path)) for part in client.parts} or {INSTALLED}
    if len(states) == 1:
        return states.pop()
    return FOREIGN if FOREIGN in states else OUTDATED


def is_connected(client: ClientRow, *, by_hooks: bool = False) -> bool:
    """Return whether memd is in a client's files, or its hooks; ``True`` if they cannot be read."""
    try:
        return any(
            part.is_in(files.read(part.path) or b"")
            for part in client.parts
            if not by_hooks or (isinstance(part, SettingsPart) and part.hooks)
        )
    except Refused:
        return True


def leaves_traces(client: ClientRow) -> bool:
    """Return whether a removal finds anything: memd in a client's files, or copies beside them."""
    return is_connected(client) or any(files.copies(part.path) for part in client.parts)


def can_have_extra(client: ClientRow, extra: str) -> bool:
    """Return whether a client can be set up with an extra: MESSAGES or RULES."""
    return any(extra in can_have(part) for part in client.parts)


def has_extra(client: ClientRow, extra: str) -> bool:
    """Return whether a client is set up with an extra. Raise Refused."""
    return any(part.extras(files.read(part.path) or b"").get(extra, False) for part in client.parts)


def _original(part: FilePart) -> bytes | None:
    """Return a file's content from before memd came in, ``None`` if no backup has it."""

    def may_be_in(content: bytes) -> bool:
        try:
            return part.is_in(content)
        except Refused:
            return True  # unreadable: cannot serve as the original

    return files.original(part.path, may_be_in)
