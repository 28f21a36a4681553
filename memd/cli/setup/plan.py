"""What a set-up would change, file by file, and doing it."""

import difflib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from memd.cli.setup import files
from memd.cli.setup.clients import ClientRow
from memd.cli.setup.hooks import MESSAGES
from memd.cli.setup.pieces import ABSENT, FOREIGN, INSTALLED, OUTDATED, Copy, JsonFile, Piece


class ClientEdit(Struct, frozen=True):
    """One file of a client, its bytes now and as they are to be; ``None`` for no file."""

    piece: Piece
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        path = self.piece.path
        old, new = (
            (content or b"").decode(errors="replace").splitlines(keepends=True)
            for content in (self.before, self.after)
        )
        lines = difflib.unified_diff(old, new, path, f"{path} (changed)")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def apply(self) -> str | None:
        """Write the file and return where it is as it was, if there was one.

        Raises FileRefusedError and FileChangedError.
        """
        path, ours = self.piece.path, isinstance(self.piece, Copy)
        backup = None
        if self.before is not None and self.after is not None and not ours:
            backup = files.back_up(path, self.before)
        files.write(path, self.after, self.before)
        if ours and self.after is None:
            with suppress(OSError):
                os.removedirs(os.path.dirname(path))  # as far as nothing else is in them
        return backup


def changes(client: ClientRow, *, remove: bool) -> tuple[ClientEdit, ...]:
    """Return what a set-up, or its removal, changes. Raises FileRefusedError, then for all."""
    plan = []
    for piece in client.pieces:
        before = files.read(piece.path)
        after = _removed(piece, before) if remove else piece.installed(before)
        if after != before:
            files.refuse_read_only(piece.path)
            plan.append(ClientEdit(piece, before, after))
    return tuple(plan)


def state(client: ClientRow) -> str:
    """Return whether a client is set up: what all its files say, else outdated.

    Raises FileRefusedError.
    """
    states = {piece.state(files.read(piece.path)) for piece in client.pieces}
    return states.pop() if len(states) == 1 else FOREIGN if FOREIGN in states else OUTDATED


def in_use(client: ClientRow, environ: Mapping[str, str]) -> bool:
    """Return whether a client seems to be installed here."""
    path = environ.get("PATH", os.defpath)
    programs = (shutil.which(name, path=path) for name in client.programs.split())
    return any(programs) or os.path.isdir(client.folder)


def uses_hooks(client: ClientRow) -> bool:
    """Return whether a client runs memd's hook file."""
    return any(getattr(piece, "hooks", None) for piece in client.pieces)


def can(client: ClientRow, extra: str) -> bool:
    """Return whether memd can bring messages, or be asked by rules, in a client."""
    return any(piece.can(extra) for piece in _with_extras(client))


def has(client: ClientRow, extra: str) -> bool:
    """Return whether a client is set up with messages, or rules. Raises FileRefusedError."""
    return any(piece.has(extra, files.read(piece.path)) for piece in _with_extras(client))


def delivers(client: ClientRow) -> bool:
    """Return whether a client is set up with messages. Raises FileRefusedError."""
    return has(client, MESSAGES)


def hooks_are_used(clients: Sequence[ClientRow]) -> bool:
    """Return whether the files of any of these clients still name the hook file."""
    for client in filter(uses_hooks, clients):
        try:
            if state(client) != ABSENT:
                return True
        except files.FileRefusedError:
            return True
    return False


def _with_extras(client: ClientRow) -> list[JsonFile | Copy]:
    return [piece for piece in client.pieces if isinstance(piece, JsonFile | Copy)]


def _removed(piece: Piece, before: bytes | None) -> bytes | None:
    if before is None or piece.state(before) not in {INSTALLED, OUTDATED}:
        return before
    return piece.removed(before, files.original(piece.path, partial(_is_ours, piece)))


def _is_ours(piece: Piece, content: bytes) -> bool:
    try:
        return piece.state(content) in {INSTALLED, OUTDATED}
    except files.FileRefusedError:
        return True  # of no use as an original
