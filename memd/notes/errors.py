"""Errors of reading and writing session notes."""

from memd.base.errors import MemdError
from memd.base.names import printable


class NotesNotFoundError(MemdError):
    """The session has no notes."""

    code = 1001
    kind = "not_found"
    hint = "memctl notes list shows the sessions that have notes"

    def __init__(self, session: str) -> None:
        super().__init__(f"the session {session} has no notes", session=session)


class ForeignNotesError(MemdError):
    """The notes are the client's or a person's; memd reads them and never writes them."""

    code = 1042
    kind = "foreign_notes"
    hint = "move the file away to let memd keep the notes of this session"

    def __init__(self, path: str) -> None:
        super().__init__(f"{printable(path)} is the client's own; nothing was written", path=path)


class NotesConflictError(MemdError):
    """The notes changed since the writer read them; a hash is "" if there is no file."""

    code = 1002
    kind = "conflict"
    hint = "read the notes again and repeat the change on what they say now"

    def __init__(self, path: str, expected: str, actual: str) -> None:
        sentence = f"{printable(path)} was changed since it was read; nothing was written"
        super().__init__(sentence, path=path, expected=expected, found=actual)


class NotesTooLargeError(MemdError):
    """The notes would be larger than allowed."""

    code = 1007
    kind = "too_large"

    def __init__(self, what: str, size: int, limit: int) -> None:
        sentence = f"{printable(what)} would have {size} bytes; {limit} are written at most"
        super().__init__(sentence, what=what, size=size, limit=limit)
