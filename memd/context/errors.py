"""Errors of planning, storing and compacting a conversation."""

from memd.base.errors import MemdError, WrongParameterError


class MessagesRefusedError(WrongParameterError):
    """The Messages API would refuse these messages, so memd stores nothing about them.

    ``place`` is the path of the fault, as ``messages.3.content.0``; ``rule`` is what it violates.
    """

    kind = "invalid_messages"
    hint = "the messages are sent as the client has them, without edits"

    def __init__(self, place: str, rule: str) -> None:
        super().__init__(f"{place}: {rule}", place=place, rule=rule)


class SummaryFailedError(MemdError):
    """A model wrote no summary; the conversation is unchanged."""

    kind = "summary_failed"
    code = 1044
    of_model = True
    hint = "memctl job show tells what the model did"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)


class BreakerOpenError(MemdError):
    """Summaries of this session failed three times in a row, so models are paused for a while."""

    kind = "breaker_open"
    code = 1045
    hint = "context.compact with retry asks a model at once"

    def __init__(self) -> None:
        super().__init__("models failed to summarise this session and are left alone for a while")


class StoredResultTooLargeError(MemdError):
    """A result, or all results of its session or of this user, would pass the size limit."""

    code = 1007
    kind = "too_large"

    def __init__(self, what: str, size: int, limit: int) -> None:
        sentence = f"{what} would have {size} bytes; {limit} are stored at most"
        super().__init__(sentence, what=what, size=size, limit=limit)
