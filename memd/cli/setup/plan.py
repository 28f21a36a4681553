"""Plan and apply what ``memctl setup`` changes in the files of a client."""

import difflib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from memd.base.errors import Refused
from memd.cli.setup import files
from memd.cli.setup.clients import ClientRow
from memd.cli.setup.hooks import MESSAGES
from memd.cli.setup.pieces import ABSENT, FOREIGN, INSTALLED, OUTDATED, Copy, JsonFile, Piece


class ClientEdit(Struct, frozen=True):
    """One file of a client with its bytes before and after the edit; ``None`` for no file."""

    piece: Piece
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The edit as a unified diff."""
        path = self.piece.path
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
        piece, backup = self.piece, None
        if self.after is not None and not _has_piece(piece, self.before):
            files.keep_one_backup(piece.path, self.before)
            backup = None if self.before is None else piece.path + files.BACKUP
        files.write(piece.path, self.after, self.before)
        if isinstance(piece, Copy) and self.after is None:
            with suppress(OSError):
                os.removedirs(os.path.dirname(piece.path))  # deletes only folders that are empty
        return backup


def changes(client: ClientRow, *, remove: bool) -> tuple[ClientEdit, ...]:
    """Return the edits that set a client up, or remove its set-up.

    Raise Refused if any one file cannot be edited: then none is.
    """
    plan = []
    for piece in client.pieces:
        before = files.read(piece.path)
        after = _without_piece(piece, before) if remove else piece.with_part(before)
        if after != before:
            files.check_is_writable(piece.path)
            plan.append(ClientEdit(piece, before, after))
    return tuple(plan)


def tidy(client: ClientRow) -> list[str]:
    """Keep the one backup of each file that has memd's part, and no copy of any other file.

    Return the paths that were deleted. Raise Refused.
    """
    deleted = []
    for piece in client.pieces:
        is_set_up = _has_piece(piece, files.read(piece.path))
        deleted += files.keep_one_backup(piece.path, _original(piece) if is_set_up else None)
    return deleted


def has_copies(client: ClientRow) -> bool:
    """Return whether an earlier setup left backups or drafts beside a client's files."""
    return any(files.copies(piece.path) for piece in client.pieces)


def state(client: ClientRow) -> str:
    """Return the state that all of a client's files share; if they differ, foreign or outdated.

    Without files it is installed. Raise Refused.
    """
    states = {piece.state(files.read(piece.path)) for piece in client.pieces} or {INSTALLED}
    if len(states) == 1:
        return states.pop()
    return FOREIGN if FOREIGN in states else OUTDATED


def in_use(client: ClientRow, environ: Mapping[str, str]) -> bool:
    """Return whether a client seems installed: a program on PATH, or its folder exists."""
    path = environ.get("PATH", os.defpath)
    programs = (shutil.which(name, path=path) for name in client.programs.split())
    return any(programs) or os.path.isdir(client.folder)


def uses_hooks(client: ClientRow) -> bool:
    """Return whether a client's configuration runs memd's hook file."""
    return any(getattr(piece, "hooks", None) for piece in client.pieces)


def can_have_duty(client: ClientRow, duty: str) -> bool:
    """Return whether memd can take on a duty, MESSAGES or RULES, in a client."""
    return any(piece.can_have_duty(duty) for piece in _pieces_with_duties(client))


def has_duty(client: ClientRow, duty: str) -> bool:
    """Return whether a client is set up for a duty, MESSAGES or RULES. Raise Refused."""
    return any(
        piece.has_duty(duty, files.read(piece.path)) for piece in _pieces_with_duties(client)
    )


def delivers(client: ClientRow) -> bool:
    """Return whether a client is set up to deliver messages. Raise Refused."""
    return has_duty(client, MESSAGES)


def hooks_are_used(clients: Sequence[ClientRow]) -> bool:
    """Return whether the files of any of these clients still name the hook file."""
    for client in filter(uses_hooks, clients):
        try:
            if state(client) != ABSENT:
                return True
        except Refused:
            return True  # it may name the hook file
    return False


def _pieces_with_duties(client: ClientRow) -> list[JsonFile | Copy]:
    """Return the files of a client that can have duties: MESSAGES or RULES."""
    return [piece for piece in client.pieces if isinstance(piece, JsonFile | Copy)]


def _without_piece(piece: Piece, before: bytes | None) -> bytes | None:
    """Return a file's content without memd's part; ``before`` itself if memd has no part in it."""
    if before is None or not _has_piece(piece, before):
        return before
    return piece.without_part(before, _original(piece))


def _original(piece: Piece) -> bytes | None:
    """Return a file's content from before memd came in, ``None`` if no backup has it."""
    return files.original(piece.path, lambda content: _may_have_piece(piece, content))


def _has_piece(piece: Piece, content: bytes | None) -> bool:
    """Return whether a content has memd's part. Raise Refused."""
    return piece.state(content) in {INSTALLED, OUTDATED}


def _may_have_piece(piece: Piece, content: bytes) -> bool:
    """Return whether a content has memd's part; also if it cannot be read."""
    try:
        return _has_piece(piece, content)
    except Refused:
        return True  # unreadable: cannot serve as the original
