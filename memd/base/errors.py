"""The fourteen families of errors that a caller may see.

Whoever raises an error brings its sentence for a person, a hint what to do, and facts for a
program: ``raise NotFound("there is no memory x.md", hint="list the memories", path="x.md")``.
The family decides the code on the wire and the exit status of a command; a finer kind that clients
test is given by keyword. Exceptions that stay inside a room are plain ones.
"""

from typing import ClassVar

Fact = str | int | float | bool | None


class MemdError(Exception):
    """A failure with a sentence for a person and facts for a program. Raise one of its families.

    ``retryable`` says whether the same call may succeed later.
    """

    code: int = -32603
    kind: str = "internal"
    retryable: bool = False
    exit_status: int = 1
    of_model: ClassVar[bool] = False  # a model or its server failed; counts for a job's breaker
    of_disk: ClassVar[bool] = False  # the disk failed; callers that wait for a job get it at once
    hint: str = ""

    def __init__(
        self,
        sentence: str,
        *,
        kind: str | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
        exit_status: int | None = None,
        **facts: Fact,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.facts: dict[str, Fact] = facts
        if kind is not None:
            self.kind = kind
        if hint is not None:
            self.hint = hint
        if retryable is not None:
            self.retryable = retryable
        if exit_status is not None:
            self.exit_status = exit_status


class Invalid(MemdError):
    """A parameter, a file or the command line is not what it must be."""

    code = -32602
    kind = "invalid_params"
    exit_status = 2


class NotFound(MemdError):
    """There is no such memory, change, job, agent or other thing."""

    code = 1001
    kind = "not_found"


class Conflict(MemdError):
    """Something has changed since, or has been decided already."""

    code = 1002
    kind = "conflict"


class Secret(MemdError):
    """A text holds a credential; the facts name the rule and the line, never the text."""

    code = 1003
    kind = "secret"


class Busy(MemdError):
    """There is no room for this just now."""

    code = 1004
    kind = "busy"
    retryable = True
    exit_status = 75


class Refused(MemdError):
    """A rule forbids it, whoever asks again."""

    code = 1006
    kind = "refused"


class TooLarge(MemdError):
    """Something is larger than a limit; the facts name both."""

    code = 1007
    kind = "too_large"


class Off(MemdError):
    """A switch is off; the sentence names it."""

    code = 1010
    kind = "memory_off"


class Storage(MemdError):
    """The disk or the state file cannot be read or written at the moment."""

    code = 1012
    kind = "storage_failed"
    retryable = True
    exit_status = 75
    of_disk = True


class Model(MemdError):
    """A model gave no usable answer; whether to ask again depends on the cause.

    ``may_cost`` says that the server may have charged the request although no reply came back.
    ``retry_after`` is how many seconds the server asks to wait, ``None`` if it does not.
    """

    code = 1019
    kind = "model_failed"
    of_model = True
    may_cost: bool = False
    retry_after: float | None = None


class Limit(MemdError):
    """A cap is reached; it ends by itself, and the sentence says when."""

    code = 1020
    kind = "cap_reached"
    exit_status = 75


class Unavailable(MemdError):
    """The daemon or a server does not answer, or not as it must."""

    code = 1025
    kind = "unavailable"
    retryable = True
    exit_status = 69


class Cancelled(MemdError):
    """The request was cancelled, by its client or because the daemon stops."""

    code = -32800
    kind = "cancelled"
    exit_status = 130


class Internal(MemdError):
    """A fault of memd's own; only the log has its cause, under the id that the facts name."""

    code = -32603
    kind = "internal"


FAMILIES = (
    Invalid,
    NotFound,
    Conflict,
    Secret,
    Busy,
    Refused,
    TooLarge,
    Off,
    Storage,
    Model,
    Limit,
    Unavailable,
    Cancelled,
    Internal,
)
