"""Why session notes cannot be read or written."""

from memd.core import names
from memd.core.errors import MemdError, WrongParameterError


class SessionRefusedError(WrongParameterError):
    """A session's id is no plain name, so no file can bear it."""

    hint = "a session id has 1 to 128 letters, digits, '_' and '-'"

    def __init__(self, session: str) -> None:
        shown = names.printable(session[:128])
        super().__init__(f"{shown} is no id of a session", session=shown)


class NotesNotFoundError(MemdError):
    """The session has no notes."""

    code = 1001
    kind = "not_found"
    hint = "memctl notes list shows the sessions that have notes"
    exit_status = 66

    def __init__(self, session: str) -> None:
        super().__init__(f"the session {session} has no notes", session=session)


class SectionUnknownError(MemdError):
    """The notes have no section of this title."""

    code = 1041
    kind = "section_unknown"
    hint = "notes.read names the sections"
    exit_status = 66

    def __init__(self, title: str) -> None:
        shown = names.printable(title[:200])
        super().__init__(f"the notes have no section {shown}", section=shown)


class ForeignNotesError(MemdError):
    """The notes belong to the client itself; memd reads them and never writes them."""

    code = 1042
    kind = "foreign_notes"
    hint = "move the file away to let memd keep the notes of this session"

    def __init__(self, path: str) -> None:
        shown = names.printable(path)
        super().__init__(f"{shown} is the client's own; nothing was written", path=shown)


class NotesConflictError(MemdError):
    """The notes are not what the writer had read; hashes are "" where there is no file."""

    code = 1002
    kind = "conflict"
    hint = "read the notes again and repeat the change on what they say now"

    def __init__(self, path: str, expected: str, actual: str) -> None:
        shown = names.printable(path)
        super().__init__(
            f"{shown} was changed since it was read; nothing was written",
            path=shown,
            expected=expected,
            found=actual,
        )


class NotesTooLargeError(MemdError):
    """Notes, or a section of them, are larger than what may be written."""

    code = 1007
    kind = "too_large"
    hint = "notes say what a session is about; leave out what is in the transcript"
    exit_status = 65

    def __init__(self, what: str, size: int, limit: int) -> None:
        shown = names.printable(what)
        super().__init__(
            f"{shown} would have {size} bytes; {limit} are written at most",
            what=shown,
            size=size,
            limit=limit,
        )


class UnwrittenNotesError(MemdError):
    """The disk refused; the old notes are as they were."""

    code = 1012
    kind = "storage_failed"
    retryable = True
    of_disk = True
    hint = "free space or mend the disk or its permissions; no restart is needed"
    exit_status = 75

    def __init__(self, path: str, cause: str) -> None:
        shown = names.printable(path)
        super().__init__(f"{shown} cannot be written: {cause}", path=shown, cause=cause)
