"""Only a parent asks its child to end; each request is answered once, by whom it was asked."""

from collections.abc import Iterator

import pytest

from memd.client.errors import RemoteError
from tests.messages.office import Office, office


@pytest.fixture
def family() -> Iterator[Office]:
    """Register a parent, its child and a stranger of the same project."""
    with office() as made:
        made.register("anna")
        made.register("bert")
        address = made.register("kid", parent="anna", key=made.keys["anna"])
        assert address == "anna/kid"
        yield made


def test_only_the_parent_may_ask(family: Office) -> None:
    """A stranger, the child itself and the unregistered ask nobody to shut down."""
    for sender, to in (("bert", "anna/kid"), ("kid", "anna"), ("shell", "anna/kid")):
        with pytest.raises(RemoteError) as caught:
            family.send(sender, to, "", kind="shutdown_request")
        assert caught.value.kind == "message_refused"
    assert family.receive("kid") == []


@pytest.mark.parametrize("restart", [False, True])
def test_a_request_is_answered_once(family: Office, *, restart: bool) -> None:
    """One answer of the child counts; a second, a stranger's and one to nothing do not."""
    request = family.send("anna", "anna/kid", "", kind="shutdown_request")["id"]
    if restart:
        family.restart(crash=True)
    answer = {"kind": "shutdown_response", "approve": True}
    for sender, named in (("bert", request), ("kid", "m999")):
        with pytest.raises(RemoteError) as caught:
            family.send(sender, "anna", "", request=named, **answer)
        assert caught.value.code in {1013, 1063}
    family.send("kid", "anna", "", request=request, **answer)
    if restart:
        family.restart(crash=True)
    with pytest.raises(RemoteError) as caught:
        family.send("kid", "anna", "", request=request, **answer)
    assert (caught.value.kind, caught.value.code) == ("request_not_open", 1013)
    rows = [row for row in family.receive("anna") if row["kind"] != "notice"]
    assert [(row["kind"], row["request"], row["approve"]) for row in rows] == [
        ("shutdown_response", request, True)
    ]


@pytest.mark.parametrize("restart", [False, True])
def test_silence_is_told(family: Office, *, restart: bool) -> None:
    """After 60 s without an answer the sender hears so, once, and nobody has ended."""
    request = family.send("anna", "anna/kid", "", kind="shutdown_request")["id"]
    if restart:
        family.restart(crash=True)
    family.advance(61.0)
    for _ in range(300):
        rows = family.receive("anna")
        if rows:
            break
    assert [(row["kind"], row["reply_to"]) for row in rows] == [("notice", request)]
    assert "no_answer" in rows[0]["body"] or "gone" in rows[0]["body"]
    listed = family.call("status", "agent.list", cwd=family.project)["agents"]
    assert {row["agent"] for row in listed if row["state"] == "ended"} == set()


def test_control_comes_first(family: Office) -> None:
    """A request overtakes older texts, also while a text of the pair is leased."""
    for body in ("1", "2"):
        family.send("anna", "anna/kid", body)
    family.receive("kid", limit=1)
    family.send("anna", "anna/kid", "", kind="shutdown_request")
    assert [row["kind"] for row in family.receive("kid")] == ["shutdown_request"]
    family.advance(31.0)
    kinds = [row["kind"] for row in family.receive("kid")]
    assert kinds == ["shutdown_request", "text", "text"]
