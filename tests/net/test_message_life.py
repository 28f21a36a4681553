"""What becomes of messages: leases, silence, expiry, crashes, bounds (10.3, 10.4)."""

from collections.abc import Iterator

import pytest

from tests.net.clocked_home import clocked_home, pass_until
from tests.net.crew import Crew
from tests.net.kit import Home, until
from tests.net.wire import Json, RpcError


@pytest.fixture(scope="module")
def clocked() -> Iterator[Home]:
    """Return a home with the test clock that these tests share."""
    with clocked_home() as home:
        yield home


@pytest.fixture
def crew(clocked: Home) -> Iterator[Crew]:
    """Return three agents of a new project."""
    yield Crew(clocked.project(), "anna", "bert", "cleo")
    clocked.close_clients()
    clocked.configure("")


def told(crew: Crew, name: str, about: str) -> list[Json]:
    """Wait until an agent has a notice about a message; return its rows."""

    def look() -> list[Json]:
        rows = crew.receive(name)
        return rows if any(row["reply_to"] == about for row in rows) else []

    return list(until(look, "the sender is told"))


def refused(crew: Crew, *given: str) -> str:
    """Send a message; return the kind of the error, "" if it is taken."""
    try:
        crew.send(*given)
    except RpcError as error:
        return error.kind
    return ""


def test_a_lease_lasts_30_seconds(crew: Crew) -> None:
    """What is not acknowledged comes again after 30 s, with its number and the same id."""
    sent = crew.send("anna", "bert")["id"]
    assert [row["delivery"] for row in crew.receive("bert")] == [1]
    crew.home.pass_time(seconds=25)
    assert crew.receive("bert") == []
    crew.home.pass_time(seconds=6)
    (again,) = crew.receive("bert", wait=10)
    assert (again["id"], again["delivery"]) == (sent, 2)
    crew.home.pass_time(seconds=31)
    assert crew.ack("bert", sent) == 1  # who was too slow may still acknowledge
    assert crew.receive("bert") == []


def test_silence_is_told(clocked: Home) -> None:
    """After 60 s without an answer the sender hears so, nobody has ended, a late answer counts."""
    crew = Crew(clocked.project(), "lead")
    crew.child("lead", "kid")
    request = crew.send("lead", "lead/kid", "", kind="shutdown_request")["id"]
    clocked.pass_time(seconds=50)
    assert crew.receive("lead") == []
    clocked.pass_time(seconds=12)
    rows = told(crew, "lead", request)
    text = str(rows)
    assert "no_answer" in text or "gone" in text
    assert "ended" not in {row["state"] for row in crew.agents().values()}
    answer: dict[str, Json] = {"request": request, "approve": True}
    crew.send("kid", "lead", "", kind="shutdown_response", **answer)
    crew.hang_up()


def test_a_message_expires_by_its_own_time_only(crew: Crew) -> None:
    """After its ``ttl`` a message does not come and its sender is told once; others stay."""
    short = crew.send("anna", "bert", "short", ttl=60)["id"]
    crew.send("anna", "bert", "long")
    crew.home.pass_time(seconds=61)
    told(crew, "anna", short)
    assert crew.state(short) == "expired"
    assert crew.bodies("bert") == ["long"]


def test_no_message_expires_by_age(crew: Crew) -> None:
    """A message without a time of its own is there after 60 days."""
    crew.send("anna", "bert", "kept")
    crew.home.pass_time(days=60)
    crew.home.call("status")
    crew.register("bert")
    assert crew.bodies("bert") == ["kept"]


@pytest.mark.full
def test_a_message_comes_until_it_is_read(crew: Crew) -> None:
    """What is never acknowledged comes again, the eighth time too."""
    crew.send("anna", "bert", "again")
    for delivery in range(1, 9):
        assert [row["delivery"] for row in crew.receive("bert", wait=2)] == [delivery]
        crew.home.pass_time(seconds=31)


def test_nobody_but_the_person_decides_a_held_message(crew: Crew) -> None:
    """A held message waits, and comes once it is accepted; refused, its sender is told."""
    far = Crew(crew.home.project(), "dora")
    address = next(
        row["address"]
        for row in crew.project.call("agent.list", all=True)["agents"]
        if row["address"].startswith("dora@") and far.project.path.name in row["address"]
    )
    sent = [crew.send("anna", address, f"text {number}") for number in range(2)]
    assert {each["state"] for each in sent} == {"held"}
    assert far.receive("dora") == []
    assert sorted(row["text"] for row in far.held()) == ["text 0", "text 1"]
    assert far.decide(sent[0]["id"], accept=True) == "queued"
    assert far.decide(sent[1]["id"], accept=False) == "refused"
    assert far.bodies("dora") == ["text 0"]
    told(crew, "anna", sent[1]["id"])
    with pytest.raises(RpcError):
        far.decide(sent[1]["id"], accept=True)


def test_settings_say_what_comes_in(crew: Crew) -> None:
    """``messages.inbound`` holds or refuses; a project's file may only be stricter."""
    crew.home.configure('[messages]\ninbound = "hold"\ninbound_unregistered = "refuse"\n')
    assert crew.send("anna", "bert")["state"] == "held"
    assert refused(crew, "shell", "bert") == "refused"
    (crew.project.path / ".memd.toml").write_text('[messages]\ninbound = "accept"\n')
    assert crew.send("anna", "cleo")["state"] == "held"
    crew.home.configure("")
    (crew.project.path / ".memd.toml").write_text('[messages]\ninbound = "refuse"\n')
    assert refused(crew, "anna", "cleo") == "refused"


def test_answers_without_the_person_have_a_bound(crew: Crew) -> None:
    """The ninth answer between two agents is held; others go on, and ten minutes later they do."""
    states = [crew.send("anna", "bert")["state"]]
    for number in range(9):
        sender, to = ("bert", "anna") if number % 2 == 0 else ("anna", "bert")
        states.append(crew.send(sender, to)["state"])
    assert states == ["queued"] * 9 + ["held"]
    assert crew.send("bert", "cleo")["state"] == "queued"
    assert crew.send("bert", "anna")["state"] == "held"
    crew.home.pass_time(seconds=601)
    assert crew.send("bert", "anna")["state"] == "queued"


@pytest.mark.parametrize("number", [9, 15])
def test_what_was_answered_queued_is_there_after_a_crash(own: Home, number: int) -> None:
    """After a signal messages, their order, reads, requests and held ones are as they were."""
    crew = Crew(own.start().project(), "anna", "bert")
    crew.child("anna", "kid")
    read = crew.send("anna", "bert", "read")["id"]
    crew.receive("bert")
    crew.ack("bert", read)
    leased = crew.send("anna", "bert", "leased")["id"]
    crew.receive("bert")
    first = crew.send("anna", "bert", "queued", request_id="r1")
    held = crew.send("shell", "bert", "held")["id"]
    request = crew.send("anna", "anna/kid", "", kind="shutdown_request")["id"]
    crew.hang_up()
    own.stop(number)
    own.start()
    states = {name: crew.state(each) for name, each in {"read": read, "held": held}.items()}
    assert states == {"read": "read", "held": "held"}
    assert crew.send("anna", "bert", "queued", request_id="r1")["id"] == first["id"]
    rows = crew.receive("bert")
    assert [(row["id"], row["body"]) for row in rows] == [
        (leased, "leased"),
        (first["id"], "queued"),
    ]
    assert [row["id"] for row in crew.receive("kid")] == [request]
    crew.send("kid", "anna", "", kind="shutdown_response", request=request, approve=True)


@pytest.mark.full
def test_60_messages_a_minute(crew: Crew) -> None:
    """The 61st message of a sender within a minute is refused, others go on, and later it may."""
    for number in range(60):
        crew.send("anna", "bert" if number % 2 else "cleo", str(number))
    with pytest.raises(RpcError) as caught:
        crew.send("anna", "bert", "one more")
    assert caught.value.kind == "too_many_messages"
    assert crew.send("cleo", "bert")["state"] == "queued"
    crew.home.pass_time(seconds=61)
    assert crew.send("anna", "bert", "later")["state"] == "queued"


@pytest.mark.full
@pytest.mark.parametrize(("body", "room"), [("x", 200), ("y" * (32 * 1024 - 5), 32)])
def test_a_full_mailbox_drops_nothing(crew: Crew, body: str, room: int) -> None:
    """At 200 messages or 1 MiB a sender hears so; all that was queued comes, and makes room."""
    names = [f"s{number}" for number in range(8)]
    for name in names:
        crew.register(name)
    taken, kind = 0, ""
    while not kind:
        kind = refused(crew, names[taken % 8], "bert", f"{taken:05}{body}")
        taken += not kind
    assert (kind, taken in {room, room - 1}) == ("mailbox_full", True)
    sent = crew.send("anna", "*", "to all")
    states = {row["address"]: row["state"] for row in sent["recipients"]}
    assert states["cleo"] == "queued"
    assert states.get("bert") != "queued"
    numbers: list[int] = []
    while rows := crew.receive("bert"):
        numbers += [int(row["body"][:5]) for row in rows if row["kind"] == "text"]
        crew.ack("bert", *[row["id"] for row in rows])
    assert sorted(numbers) == list(range(taken))
    assert crew.send("anna", "bert", "again")["state"] == "queued"


@pytest.mark.full
def test_strangers_fill_no_mailbox(crew: Crew) -> None:
    """What is held has a bound of its own and takes no room of colleagues."""
    held, kind = 0, ""
    while not kind:
        if held % 50 == 49:
            crew.home.pass_time(seconds=61)
        kind = refused(crew, "shell", "bert")
        held += not kind
    assert (kind, held) == ("mailbox_full", 200)
    assert crew.send("anna", "bert")["state"] == "queued"


@pytest.mark.full
def test_a_request_to_end_expires_after_ten_minutes(clocked: Home) -> None:
    """A shutdown request that nobody read is gone after 10 minutes."""
    crew = Crew(clocked.project(), "lead")
    crew.child("lead", "kid")
    request = crew.send("lead", "lead/kid", "", kind="shutdown_request")["id"]
    clocked.pass_time(seconds=601)
    pass_until(clocked, lambda: crew.state(request) == "expired")
    assert crew.receive("kid") == []
    crew.hang_up()
