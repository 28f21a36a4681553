"""Messages between agents: sending, leasing, reading, kinds (10.3, 10.4)."""

import json
import threading
from typing import Any

import pytest

from tests.net.crew import Crew
from tests.net.kit import Project
from tests.net.wire import Json, RpcError

TOKEN = "token: ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def crew(project: Project) -> Crew:
    """Return three agents of one project."""
    return Crew(project, "anna", "bert", "cleo")


@pytest.fixture
def family(project: Project) -> Crew:
    """Return a parent with a child, and a stranger."""
    made = Crew(project, "lead", "bert")
    made.child("lead", "kid")
    return made


def refusal(crew: Crew, *given: str, **more: Json) -> RpcError:
    """Return why a message is refused."""
    with pytest.raises(RpcError) as caught:
        crew.send(*given, **more)
    return caught.value


def test_a_message_is_read_once(crew: Crew) -> None:
    """A message is queued, leased, read, and does not come again."""
    sent = crew.send("anna", "bert", "Check section 5.", summary="A review")
    assert (sent["state"], [row["address"] for row in sent["recipients"]]) == ("queued", ["bert"])
    answer = crew.received("bert")
    (row,) = answer["messages"]
    assert (row["id"], row["from"], row["kind"]) == (sent["id"], "anna", "text")
    assert (row["body"], row["summary"], row["delivery"]) == ("Check section 5.", "A review", 1)
    assert row["sent_at"]
    assert row["age"] >= 0
    assert crew.state(sent["id"]) == "leased"
    assert crew.receive("bert") == []
    assert (crew.ack("bert", sent["id"]), crew.ack("bert", sent["id"])) == (1, 0)
    assert crew.state(sent["id"]) == "read"
    assert crew.receive("bert") == []


def test_twenty_come_at_once_in_the_order_sent(crew: Crew) -> None:
    """Of 25 messages 20 come first, then five, each once."""
    for number in range(25):
        crew.send("anna", "bert", f"m{number}")
    for expected in (range(20), range(20, 25), range(0)):
        answer = crew.received("bert")
        assert [row["body"] for row in answer["messages"]] == [f"m{n}" for n in expected]
        assert answer["more"] == (len(expected) == 20)
        crew.ack("bert", *[row["id"] for row in answer["messages"]])


def test_64_kib_come_at_once(crew: Crew) -> None:
    """No more than 64 KiB of texts are leased at once."""
    for number in range(4):
        crew.send("anna", "bert", f"{number}".ljust(30_000, "."))
    rows = crew.receive("bert")
    assert [row["body"][0] for row in rows] == ["0", "1"]


def test_a_lease_blocks_its_pair_only(crew: Crew) -> None:
    """While one of Anna's is leased her next one waits, and Cleo's comes."""
    crew.send("anna", "bert", "1")
    crew.receive("bert")
    crew.send("anna", "bert", "2")
    crew.send("cleo", "bert", "3")
    assert crew.bodies("bert") == ["3"]


def test_another_agent_ends_no_message(crew: Crew) -> None:
    """Only its receiver acknowledges a message."""
    sent = crew.send("anna", "bert")["id"]
    assert crew.ack("cleo", sent) == 0
    assert crew.bodies("bert") == ["text"]


def test_all_means_each_other_agent_of_the_project(crew: Crew) -> None:
    """``*`` is one copy for each that is there, less the sender, under one id."""
    far = Crew(crew.project.home.project(), "far")
    sent = crew.send("anna", "*")
    assert sorted(row["address"] for row in sent["recipients"]) == ["bert", "cleo"]
    crew.register("late")
    found = {name: len(crew.receive(name)) for name in ("anna", "bert", "cleo", "late")}
    assert found == {"anna": 0, "bert": 1, "cleo": 1, "late": 0}
    assert far.receive("far") == []


def test_a_broadcast_reaches_no_ended_agent(crew: Crew) -> None:
    """Whoever has ended is no receiver of ``*``."""
    crew.home.call("agent.end", key=crew.keys["cleo"])
    assert [row["address"] for row in crew.send("anna", "*")["recipients"]] == ["bert"]


@pytest.mark.parametrize(
    "to",
    ["nobody", "anna/nobody", "bert@nowhere", "", " ", "../bert", "bert\n", "user", "all", "**"],
)
def test_an_address_that_nobody_has_is_an_error(crew: Crew, to: str) -> None:
    """An unknown or malformed address is refused in plain characters, and nothing is stored."""
    error = refusal(crew, "anna", to)
    assert error.code in {1001, 1006, 1011, -32602}
    assert error.message.isprintable()
    assert crew.project.call("message.log")["messages"] == []


def test_an_unknown_name_is_answered_with_the_nearest(crew: Crew) -> None:
    """NotFound names who is called alike."""
    error = refusal(crew, "anna", "brt")
    assert (error.code, "bert" in json.dumps(error.data)) == (1001, True)


def test_nothing_leaves_the_machine(crew: Crew) -> None:
    """``bridge:`` is understood and refused."""
    error = refusal(crew, "anna", "bridge:42")
    assert error.kind == "no_bridge"
    assert "machine" in error.message


def test_uds_to_this_daemon_is_delivered(crew: Crew) -> None:
    """``uds:`` with this daemon's socket is delivered."""
    crew.send("anna", f"uds:{crew.home.socket}#bert", "hello")
    assert crew.bodies("bert") == ["hello"]


def test_uds_to_another_daemon_is_refused(crew: Crew) -> None:
    """``uds:`` with another socket is refused: no message goes to another daemon."""
    for path in ("/tmp/nowhere/x.sock", "/etc/passwd", "/../x"):
        assert refusal(crew, "anna", f"uds:{path}#bert").code in {1006, 1067}


def test_no_setting_opens_another_daemon(crew: Crew) -> None:
    """Also a listed socket is Refused, in the words of 10.3."""
    crew.home.configure('[messages]\npeers = ["/tmp/nowhere/x.sock"]\n')
    error = refusal(crew, "anna", "uds:/tmp/nowhere/x.sock#bert")
    assert (error.code, "only agents of this daemon" in error.message) == (1006, True)


def test_the_same_request_is_one_message(crew: Crew) -> None:
    """A send that is repeated with its request id has one effect, also after it was read."""
    first = crew.send("anna", "bert", request_id="r1")
    assert crew.send("anna", "bert", request_id="r1")["id"] == first["id"]
    assert crew.send("cleo", "bert", request_id="r1")["id"] != first["id"]
    rows = crew.receive("bert")
    assert len(rows) == 2
    crew.ack("bert", *[row["id"] for row in rows])
    assert crew.send("anna", "bert", request_id="r1")["id"] == first["id"]
    assert crew.receive("bert") == []


def test_who_waits_has_a_message_at_once(crew: Crew) -> None:
    """``wait`` ends when a message comes, and with nothing when its time is over."""
    assert crew.receive("bert", wait=0.05) == []
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.extend(crew.bodies("bert", wait=60)))
    waiting.start()
    crew.send("anna", "bert", "now")
    waiting.join(60)
    assert found == ["now"]


def test_a_dropped_connection_gives_messages_back(crew: Crew) -> None:
    """What was leased on a connection that closes comes again with the same id."""
    sent = crew.send("anna", "bert")["id"]
    with crew.home.connect() as client:
        (row,) = client.call("message.receive", key=crew.keys["bert"])["messages"]
        assert row["delivery"] == 1
    rows = crew.receive("bert", wait=20)
    assert [(row["id"], row["delivery"]) for row in rows] == [(sent, 2)]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("message.send", {"to": "bert", "body": "x", "kind": "notice"}),
    ("message.send", {"to": "bert", "body": "x", "kind": "order"}),
    ("message.send", {"to": "bert", "body": "x", "ttl": 0}),
    ("message.send", {"to": "bert", "body": "x", "ttl": -5}),
    ("message.send", {"to": "bert", "body": 7}),
    ("message.send", {"to": ["bert"], "body": "x"}),
    ("message.send", {"to": "bert", "body": "x", "summary": "s" * 121}),
    ("message.send", {"to": "bert", "body": "x" * (32 * 1024 + 1)}),
    ("message.send", {"to": "bert", "body": "x", "reply_to": "m999999"}),
    ("message.receive", {"wait": -1}),
    ("message.receive", {"wait": 61}),
    ("message.receive", {"limit": 0}),
    ("message.ack", {"ids": "m1"}),
    ("message.ack", {"ids": [7]}),
]


@pytest.mark.parametrize(("method", "params"), WRONG)
def test_what_cannot_be_meant_is_an_error(crew: Crew, method: str, params: dict[str, Any]) -> None:
    """A wrong kind, size, time, number or id is refused, and nothing is stored."""
    with pytest.raises(RpcError) as caught:
        crew.home.call(method, key=crew.keys["anna"], **params)
    assert caught.value.code in {-32602, 1001, 1006, 1007, 1011, 1063}
    assert crew.receive("bert") == []


@pytest.mark.parametrize("part", ["body", "summary"])
def test_credentials_do_not_travel(crew: Crew, part: str) -> None:
    """A message that holds a credential is refused, and the error has none of it."""
    error = refusal(crew, "anna", "bert", **{"body": "x", part: TOKEN})
    assert error.code == 1003
    assert TOKEN[-20:] not in json.dumps([error.message, error.data])
    assert crew.receive("bert") == []


def test_the_log_has_no_texts(crew: Crew) -> None:
    """``message.log`` names sender, receiver and state, newest first, without bodies."""
    first = crew.send("anna", "bert", "a secret plan")["id"]
    second = crew.send("bert", "cleo", "another plan")["id"]
    rows = crew.project.call("message.log")["messages"]
    assert [row["id"] for row in rows] == [second, first]
    assert (rows[0]["from"], rows[0]["state"]) == ("bert", "queued")
    assert "plan" not in json.dumps(rows)


@pytest.mark.parametrize(("sender", "to"), [("bert", "lead/kid"), ("kid", "lead"), ("sh", "bert")])
def test_only_a_parent_asks_its_child_to_end(family: Crew, sender: str, to: str) -> None:
    """A stranger, the child itself and the unregistered ask nobody to shut down."""
    error = refusal(family, sender, to, kind="shutdown_request")
    assert error.code in {1006, 1063}
    assert family.receive("kid") == family.receive("bert") == []


def test_a_request_is_answered_once_by_whom_it_asked(family: Crew) -> None:
    """A stranger's answer, one to nothing, and a second one are refused; nobody has ended."""
    request = family.send("lead", "lead/kid", kind="shutdown_request")["id"]
    answer: dict[str, Json] = {"kind": "shutdown_response", "approve": True}
    for sender, named in (("bert", request), ("kid", "m999999")):
        refusal(family, sender, "lead", request=named, **answer)
    family.send("kid", "lead", "", request=request, reason="done", **answer)
    assert refusal(family, "kid", "lead", request=request, **answer).kind == "conflict"
    rows = [row for row in family.receive("lead") if row["kind"] != "notice"]
    assert [(row["kind"], row["request"], row["approve"]) for row in rows] == [
        ("shutdown_response", request, True)
    ]
    assert {row["state"] for row in family.agents().values()} != {"ended"}


def test_a_parent_answers_its_childs_plan(family: Crew) -> None:
    """A plan is answered by the parent, with feedback, and by nobody else."""
    plan = family.send("kid", "lead", "my plan", kind="plan_approval_request")["id"]
    answer: dict[str, Json] = {"kind": "plan_approval_response", "request": plan}
    refusal(family, "bert", "lead/kid", approve=True, **answer)
    sent = family.send("lead", "lead/kid", "", approve=False, feedback="no", **answer)
    assert sent["state"] == "queued"
    (row,) = family.receive("kid")
    assert (row["kind"], row["approve"], "no" in json.dumps(row)) == (
        "plan_approval_response",
        False,
        True,
    )


def test_control_comes_before_texts(family: Crew) -> None:
    """A request overtakes older texts, also while a text of the pair is leased."""
    for body in ("1", "2"):
        family.send("lead", "lead/kid", body)
    family.receive("kid", limit=1)
    family.send("lead", "lead/kid", "", kind="shutdown_request")
    assert [row["kind"] for row in family.receive("kid")] == ["shutdown_request"]


def test_the_end_of_an_agent_is_told(crew: Crew) -> None:
    """What an agent had not read ends with it, and its sender has a notice."""
    sent = crew.send("anna", "bert")["id"]
    crew.home.call("agent.end", key=crew.keys["bert"])
    assert crew.state(sent) in {"refused", "expired"}
    assert crew.notices("anna", sent) == 1


def test_events_have_no_texts(crew: Crew) -> None:
    """``message.pending`` and ``message.ended`` name the message and have no body."""
    with crew.home.connect() as client:
        topics = ["message.pending", "message.ended"]
        client.call("subscribe", topics=topics, cwd=crew.project.cwd)
        sent = crew.send("anna", "bert", "a secret plan")["id"]
        pending = client.event("message.pending")
        (row,) = crew.receive("bert")
        crew.ack("bert", row["id"])
        ended = client.event("message.ended")
        assert sent in json.dumps(pending)
        assert sent in json.dumps(ended)
        assert "secret plan" not in json.dumps(client.events)


def test_the_log_has_one_message(crew: Crew) -> None:
    """The log says what became of one message."""
    sent = crew.send("shell", "bert")["id"]
    (row,) = crew.project.call("message.log", id=sent)["messages"]
    assert (row["id"], row["state"]) == (sent, "held")


def test_held_messages_are_in_the_review(crew: Crew) -> None:
    """A message that is held for the person is an item of the review."""
    sent = crew.send("shell", "bert")["id"]
    assert sent in json.dumps(crew.project.call("review.list"))
