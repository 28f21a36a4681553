"""The errors of the state file."""

from memd.core.errors import MemdError


class StateUnusableError(MemdError):
    """The state file cannot be opened, read or written at the moment."""

    code = 1012
    kind = "state_unusable"
    retryable = True
    of_disk = True
    hint = "free disk space or mend the permissions of the state directory; no restart is needed"
    exit_status = 75

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the state file {path} cannot be used: {cause}", path=path, cause=cause)


class StateFaultError(StateUnusableError):
    """SQLite refused a statement of memd's own; only the log has the cause, under this id.

    The file is as before and can be used, so whoever can do without the statement's result goes on.
    """

    code = -32603
    kind = "internal"
    retryable = False
    of_disk = False
    hint = "memctl logs shows the entry with this error id"
    exit_status = 70

    def __init__(self, error_id: str) -> None:
        sentence = f"memd failed unexpectedly; its log has error {error_id}"
        MemdError.__init__(self, sentence, error=error_id)


class StateNotMigratedError(StateUnusableError):
    """The state file of an older memd could not be migrated to this format; it is unchanged."""

    kind = "state_not_migrated"
    retryable = False
    hint = (
        "go back to the older memd, or move the state file away and restart memd: "
        "that costs history, never a memory"
    )
    exit_status = 78

    def __init__(self, path: str, formats: tuple[int, int], cause: str) -> None:
        old, new = formats
        super().__init__(
            path,
            f"it stays as it was, for it cannot be brought from format {old} to {new}: {cause}",
        )
        self.formats, self.cause = formats, cause


class StateTooNewError(MemdError):
    """The state file was written by a newer memd; nothing was changed.

    ``formats`` are the file's format and the newest that this memd knows. ``programs`` are the
    versions of the memd that wrote it ("" if unknown) and of this one. ``copy`` is the path of a
    copy in a format that this memd can read, or "".
    """

    code = 1015
    kind = "state_too_new"
    hint = "start the newer memd, or put the copy in the file's place: that costs history"
    exit_status = 78

    def __init__(
        self, path: str, formats: tuple[int, int], programs: tuple[str, str], copy: str
    ) -> None:
        (file_format, known_format), (writer, this) = formats, programs
        name = f"memd {writer}" if writer else "a later memd"
        older = (
            f"put {copy}, which is from before it, in its place" if copy else "move the file away"
        )
        super().__init__(
            f"the state file {path} was written by {name} (format {file_format}), and this is"
            f" memd {this}, which knows format {known_format}; nothing was changed. Start the"
            f" newer memd again, or {older}: that costs history, never a memory",
            path=path,
            version=file_format,
            writer=writer,
            copy=copy,
        )
