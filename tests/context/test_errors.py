"""The sentences in which a conversation is refused."""

from memd.context.errors import MessagesRefusedError, StoredResultTooLargeError


def test_an_error_names_the_place_and_the_rule() -> None:
    """Who reads the error finds the block and knows what is wrong with it."""
    error = MessagesRefusedError("messages.3.content.0", "a tool result without its call")
    assert error.sentence == "messages.3.content.0: a tool result without its call"
    assert (error.facts["place"], error.kind) == ("messages.3.content.0", "invalid_messages")


def test_what_is_too_large_is_told_with_its_bound() -> None:
    """A result that is too large is named with its size and the most that is stored."""
    error = StoredResultTooLargeError("the result call_1", 70, 64)
    assert error.sentence == "the result call_1 would have 70 bytes; 64 are stored at most"
