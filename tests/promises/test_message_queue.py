"""A message that was answered queued is read, or its end is told; one that was read stays read."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.client.errors import RemoteError
from tests.messages.office import Office, office


@pytest.fixture
def agents() -> Iterator[Office]:
    """Register three agents of one project, and one of another."""
    with office() as made:
        for name in ("anna", "bert", "cleo"):
            made.register(name)
        made.register("dora", "elsewhere")
        yield made


def bodies(rows: list[dict[str, str]]) -> list[str]:
    """Return the bodies of messages, without notices."""
    return [row["body"] for row in rows if row["kind"] != "notice"]


def notices(agents: Office, name: str) -> list[str]:
    """Read all that an agent has; return what the notices say, with the message that each names."""
    results = []
    while rows := agents.receive(name):
        results += [f"{r['reply_to']} {r['summary']} {r['body']}" for r in rows if is_notice(r)]
        agents.ack(name, *[row["id"] for row in rows])
    return results


def refusal(agents: Office, body: str) -> RemoteError | None:
    """Send a message to Bert; return why it is refused, ``None`` if it is not."""
    try:
        agents.send("anna", "bert", body)
    except RemoteError as error:
        return error
    return None


def is_notice(row: dict[str, str]) -> bool:
    """Say whether a message is memd's own."""
    return row["kind"] == "notice"


def test_messages_of_a_pair_come_in_order_and_once(agents: Office) -> None:
    """Twenty-five messages come twenty and five, each once, as they were sent."""
    for number in range(25):
        agents.send("anna", "bert", f"m{number}")
    for expected in (range(20), range(20, 25), range(0)):
        rows = agents.receive("bert")
        agents.ack("bert", *[row["id"] for row in rows])
        assert bodies(rows) == [f"m{n}" for n in expected]


def test_what_is_leased_blocks_later_ones_of_its_pair_only(agents: Office) -> None:
    """While one of Anna's is leased her next one waits, and Cleo's comes."""
    agents.send("anna", "bert", "1")
    agents.receive("bert")
    agents.send("anna", "bert", "2")
    agents.send("cleo", "bert", "3")
    assert bodies(agents.receive("bert")) == ["3"]


@pytest.mark.parametrize("how", ["time", "hang up", "restart", "crash"])
def test_a_lease_that_ends_gives_the_message_back(agents: Office, how: str) -> None:
    """After 30 s, or with its connection or its daemon, a message comes again as its second."""
    sent = agents.send("anna", "bert", "text")["id"]
    assert [row["delivery"] for row in agents.receive("bert")] == [1]
    assert agents.states(sent) == {"bert": "leased"}
    if how == "time":
        agents.advance(29.0)
        assert agents.receive("bert") == []
        agents.advance(1.5)
    elif how == "hang up":
        agents.hang_up("bert")
        assert agents.reaches(sent, "queued")
    else:
        agents.restart(crash=how == "crash")
    (again,) = agents.receive("bert")
    assert (again["id"], again["delivery"]) == (sent, 2)


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_is_set_ends_no_lease_and_keeps_none(agents: Office, days: int) -> None:
    """A lease lasts 30 s whatever the wall clock is set to."""
    agents.send("anna", "bert", "text")
    agents.receive("bert")
    agents.jump(days * 86_400.0)
    agents.advance(29.0)
    assert agents.receive("bert") == []
    agents.advance(1.5)
    assert bodies(agents.receive("bert")) == ["text"]


@pytest.mark.parametrize("restart", [False, True])
def test_the_fifth_delivery_is_the_last(agents: Office, *, restart: bool) -> None:
    """A message that five leases did not end is parked, and its sender is told."""
    sent = agents.send("anna", "bert", "text")["id"]
    for delivery in range(1, 6):
        (row,) = agents.receive("bert")
        assert row["delivery"] == delivery
        if restart:
            agents.restart(crash=True)
        else:
            agents.advance(31.0)
    assert agents.receive("bert") == []
    assert agents.reaches(sent, "parked")
    assert len([words for words in notices(agents, "anna") if sent in words]) == 1


@pytest.mark.parametrize("restart", [False, True])
def test_a_message_that_nobody_reads_expires(agents: Office, *, restart: bool) -> None:
    """After its time to live a message does not come, and its sender is told once."""
    sent = agents.send("anna", "bert", "text", ttl=60)["id"]
    agents.advance(59.0)
    assert agents.states(sent) == {"bert": "queued"}
    if restart:
        agents.stop(crash=True)
        agents.advance(2.0)
        agents.start()
    else:
        agents.advance(2.0)
    assert agents.receive("bert") == []
    assert agents.reaches(sent, "expired")
    assert len([words for words in notices(agents, "anna") if sent in words]) == 1


def test_a_read_message_stays_read(agents: Office) -> None:
    """What was acknowledged does not come after a crash; to acknowledge it again does nothing."""
    sent = agents.send("anna", "bert", "text")["id"]
    agents.receive("bert")
    assert agents.ack("bert", sent) == 1
    agents.restart(crash=True)
    assert agents.receive("bert") == []
    assert agents.states(sent) == {"bert": "read"}
    assert agents.ack("bert", sent) == 0


def test_who_was_too_slow_may_still_acknowledge(agents: Office) -> None:
    """An acknowledgement is good after its lease has ended."""
    sent = agents.send("anna", "bert", "text")["id"]
    agents.receive("bert")
    agents.advance(31.0)
    assert agents.ack("bert", sent) == 1
    assert agents.receive("bert") == []


def test_another_agent_cannot_acknowledge(agents: Office) -> None:
    """Whoever is not its receiver ends no message."""
    sent = agents.send("anna", "bert", "text")["id"]
    assert agents.ack("cleo", sent) == 0
    assert bodies(agents.receive("bert")) == ["text"]


@pytest.mark.parametrize("accept", [True, False])
def test_a_held_message_waits_for_the_person(agents: Office, *, accept: bool) -> None:
    """A message across projects comes once it is accepted; refused, its sender is told."""
    sent = agents.send("anna", agents.address("dora"), "text")
    assert sent["state"] == "held"
    assert agents.receive("dora") == []
    agents.restart(crash=True)
    state = agents.call("status", "message.decide", id=sent["id"], accept=accept)["state"]
    assert state == ("queued" if accept else "refused")
    assert bodies(agents.receive("dora")) == ["text"] * accept
    assert len([w for w in notices(agents, "anna") if sent["id"] in w]) == (not accept)


def test_what_is_held_for_a_day_ends(agents: Office) -> None:
    """Nobody decides for 24 h: the message ends, and its sender is told."""
    sent = agents.send("anna", agents.address("dora"), "text")["id"]
    agents.advance(24 * 3600.0 + 1)
    assert agents.reaches(sent, "expired", "refused")
    assert len([words for words in notices(agents, "anna") if sent in words]) == 1


def test_the_end_of_an_agent_is_told(agents: Office) -> None:
    """What an agent had not read ends with it, its senders hear of it, and it gets no more."""
    sent = agents.send("anna", "bert", "text")["id"]
    answer = agents.call("bert", "agent.end", key=agents.keys["bert"])
    assert answer == {"ended": True, "returned": 1}
    assert not agents.states(sent).keys() - {"bert"}
    assert agents.reaches(sent, "refused", "expired", "parked")
    assert len([words for words in notices(agents, "anna") if sent in words]) == 1
    for restart in (False, True):
        if restart:
            agents.restart(crash=True)
        with pytest.raises(RemoteError) as caught:
            agents.send("anna", "bert", "more")
        assert caught.value.kind in {"agent_ended", "not_found"}
        with pytest.raises(RemoteError) as caught:
            agents.receive("bert")
        assert caught.value.kind in {"agent_ended", "key_refused"}


@pytest.mark.parametrize(("size", "room"), [(10, 200), (32 * 1024, 32)])
def test_a_full_mailbox_drops_nothing(agents: Office, size: int, room: int) -> None:
    """At 200 messages or 1 MiB the sender hears so; all that was queued comes, and makes room."""
    taken, error = 0, None
    while error is None:
        error = refusal(agents, f"{taken:05}".ljust(size, "."))
        taken += error is None
    assert (error.kind, error.code, error.retryable) == ("mailbox_full", 1004, True)
    assert taken in {room, room - 1}
    assert agents.send("cleo", "anna", "text")["state"] == "queued"
    results = []
    while rows := agents.receive("bert"):
        results += [int(body[:5]) for body in bodies(rows)]
        agents.ack("bert", *[row["id"] for row in rows])
    assert results == list(range(taken))
    assert agents.send("anna", "bert", "again")["state"] == "queued"


@pytest.mark.parametrize("crash", [False, True])
def test_the_same_request_is_one_message(agents: Office, *, crash: bool) -> None:
    """A send that is repeated with its request id is answered as the first and stored once."""
    first = agents.send("anna", "bert", "text", request_id="r1")
    if crash:
        agents.restart(crash=True)
    again = agents.send("anna", "bert", "text", request_id="r1")
    other = agents.send("cleo", "bert", "text", request_id="r1")
    assert again == first
    assert other["id"] != first["id"]
    assert len(agents.receive("bert")) == 2


def test_a_repeated_request_is_answered_after_it_was_read(agents: Office) -> None:
    """Where the receiver was faster than the sender's retry, no second copy comes."""
    first = agents.send("anna", "bert", "text", request_id="r1")
    agents.receive("bert")
    agents.ack("bert", first["id"])
    assert agents.send("anna", "bert", "text", request_id="r1")["id"] == first["id"]
    assert agents.receive("bert") == []


def test_a_broadcast_has_a_copy_for_each(agents: Office) -> None:
    """All of the project but the sender get one copy under one id; who comes later gets none."""
    sent = agents.send("anna", "*", "text")
    agents.register("emil")
    assert set(agents.states(sent["id"])) == {"bert", "cleo"}
    for name, number in {"bert": 1, "cleo": 1, "anna": 0, "dora": 0, "emil": 0}.items():
        assert [row["id"] for row in agents.receive(name)] == [sent["id"]] * number


def test_a_waiting_receiver_is_woken(agents: Office) -> None:
    """A receiver that waits has a message as soon as it is sent, and none is lost on its way."""
    with agents.waiting("bert") as arrived:
        agents.send("anna", "bert", "text")
        assert bodies(arrived()) == ["text"]


@given(st.lists(st.sampled_from(["anna", "cleo"]), min_size=1, max_size=30), st.integers(1, 25))
@settings(max_examples=8)
def test_order_per_pair_holds_across_leases(senders: list[str], limit: int) -> None:
    """With any limit, and every second answer thrown away, each pair's order stays."""
    with office() as made:
        for name in ("anna", "bert", "cleo"):
            made.register(name)
        for number, sender in enumerate(senders):
            made.send(sender, "bert", f"{number:03}")
        results: list[tuple[str, str]] = []
        thrown = False
        while rows := made.receive("bert", limit=limit):
            assert len(rows) <= min(limit, 20)
            thrown = not thrown
            if thrown:
                made.advance(31.0)
                continue
            results += [(row["from"], row["body"]) for row in rows]
            made.ack("bert", *[row["id"] for row in rows])
    for name in ("anna", "cleo"):
        mine = [body for sender, body in results if sender == name]
        assert mine == [f"{n:03}" for n, sender in enumerate(senders) if sender == name]
