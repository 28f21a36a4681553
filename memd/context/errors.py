"""Errors of planning, storing and compacting a conversation."""

from memd.base.errors import Invalid, Model, TooLarge


def messages_refused(place: str, rule: str) -> Invalid:
    """Return the error that the Messages API would refuse these messages."""
    return Invalid(
        f"{place}: {rule}",
        kind="invalid_messages",
        hint="the messages are sent as the client has them, without edits",
        place=place,
        rule=rule,
    )


def summary_failed(sentence: str) -> Model:
    """Return the error that a model wrote no summary; the conversation is unchanged."""
    return Model(sentence, kind="summary_failed", hint="memctl job show tells what the model did")


def breaker_open() -> Model:
    """Return the error that summaries of this session failed three times in a row."""
    return Model(
        "models failed to summarise this session and are left alone for a while",
        kind="breaker_open",
        hint="context.compact with retry asks a model at once",
    )


def stored_result_too_large(what: str, size: int, limit: int) -> TooLarge:
    """Return the error that a result, or all results of its session or of this user."""
    sentence = f"{what} would have {size} bytes; {limit} are stored at most"
    return TooLarge(sentence, what=what, size=size, limit=limit)
