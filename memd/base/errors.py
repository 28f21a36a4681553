"""The root of every failure that a caller may see.

A failure is a class beside its raiser. It takes the facts and builds its own sentence. Its class
attributes are for the wire and the command line: RPC code, kind, whether to retry, hint, status.
"""

from typing import ClassVar

Fact = str | int | float | bool | None


class MemdError(Exception):
    """A failure with a sentence for a person and facts for a program.

    Subclasses build the sentence in ``__init__`` and pass the facts on by name.
    """

    code: ClassVar[int] = 1000
    kind: ClassVar[str] = "failed"
    retryable: ClassVar[bool] = False
    of_model: ClassVar[bool] = False  # a model or its server failed; counts for a job's breaker
    of_disk: ClassVar[bool] = False  # the disk failed; callers that wait for a job get it at once
    hint: str = ""
    exit_status: ClassVar[int] = 1

    def __init__(self, sentence: str, **facts: Fact) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.facts: dict[str, Fact] = facts


class WrongParameterError(MemdError):
    """A parameter has a value that the method, or the command, cannot take."""

    code = -32602
    kind = "invalid_params"
    exit_status = 2
