"""Failures on the wire."""

from memd.rpc.errors import (
    BusyError,
    InternalError,
    InvalidRequestError,
    MessageTooLargeError,
    UnknownMethodError,
    error_reply,
    to_wire,
)


def test_an_error_carries_code_sentence_and_data() -> None:
    """A failure becomes its code, its sentence, and data with kind, retryable, hint and facts."""
    assert to_wire(BusyError("connections", 128)) == {
        "code": 1004,
        "message": "memd takes at most 128 connections",
        "data": {
            "what": "connections",
            "limit": 128,
            "kind": "busy",
            "retryable": True,
            "hint": "try again when an answer has come",
        },
    }


def test_the_id_is_null_where_none_was_understood() -> None:
    """An answer to something that is no request has a null id."""
    reply = error_reply(None, InvalidRequestError("it is a number"))
    assert (reply["jsonrpc"], reply["id"], reply["error"]["code"]) == ("2.0", None, -32600)


def test_what_a_client_sent_is_cut() -> None:
    """A method name of any length comes back on one line of bounded length."""
    wire = to_wire(UnknownMethodError("x\n" * 100_000))
    assert len(wire["message"]) < 200
    assert "\n" not in wire["message"]


def test_an_internal_error_names_only_its_id() -> None:
    """The client learns the id under which the log knows more."""
    assert to_wire(InternalError("e7"))["data"]["error"] == "e7"


def test_a_limit_is_named() -> None:
    """What is too large is told with the limit that it exceeds."""
    assert "at most 100 items" in to_wire(MessageTooLargeError("a batch", 100, "items"))["message"]
