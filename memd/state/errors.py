"""The errors of the state file."""

from memd.base.errors import MemdError, Storage


class StateUnusableError(Storage):
    """The state file cannot be opened, read or written at the moment.

    It is a class of its own since whoever can do without a small fact goes on after it, and not
    after a failure of the disk that holds memories.
    """

    hint = "free disk space or mend the permissions of the state directory; no restart is needed"

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
    exit_status = 1

    def __init__(self, error_id: str) -> None:
        sentence = f"memd failed unexpectedly; its log has error {error_id}"
        MemdError.__init__(self, sentence, error=error_id)
