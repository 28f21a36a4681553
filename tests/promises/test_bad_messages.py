"""Bad input to agents and messages has its named error, and no other agent notices."""

import json
import socket
from typing import Any

import pytest
from anyio import to_thread

from memd.core.agents import BROADCASTS_PER_MINUTE, DELIVERIES, LEASE_SECONDS, MAILBOX_MESSAGES
from tests.promises.peers import OPEN, Agents, Peer, agents

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
_NAMES = (
    " ", ".", "..", "a/../b", "../a", "/a", "a/b/c/d", "A", "é\u0301" * 40, "*", "all", "user",
    "memd", "unregistered", "system", "con", "a\0b", "a\nb", "a\u202eb", "a\u200bb", "\uff0fa",
    "a" * 65, ".hidden", "a ", "a\\b", "%2e%2e", "uds:/x", "bridge:1", "a@b", "a#b", "~", "-",
    "a\x1b[2J",
)  # fmt: skip
_ADDRESSES = (
    "nobody", "lead/nobody", "nobody@nowhere", "", " ", "../lead", "lead/../lead", "a" * 5000,
    "lead\n", "LEAD/x/y/z", "user", "memd", "all", "**", "uds:", "uds:lead", "@", "/", "#",
)  # fmt: skip


async def _others_go_on(here: Agents, one: Peer, two: Peer, body: str) -> None:
    """Check that two other agents notice nothing: a message arrives at once, and alone."""
    sent = await here.call("message.send", key=one.key, to=two.address, body=body)
    assert sent["state"] == "queued"
    received = await here.read(two)
    assert [each["body"] for each in received["messages"]] == [body]


async def test_hostile_names_are_refused_or_plain() -> None:
    """A name is one plain component or an error with a sentence; nobody else's name is taken."""
    async with agents() as here:
        one, two = await here.register("one"), await here.register("two")
        for number, name in enumerate(_NAMES):
            error = await here.error("agent.register", cwd=here.cwd, name=name)
            assert error.code in {-32602, 1002, 1006}, (name, error.code, error.message)
            assert error.message.isprintable()
            if number % 8 == 0:
                await _others_go_on(here, one, two, f"body {number}")
        assert set(await here.states()) == {"one", "two"}


async def test_a_name_that_somebody_has_is_refused_with_a_free_one() -> None:
    """A living holder keeps its name, and the free one that the error tells is free."""
    async with agents() as here:
        await here.register("one")
        error = await here.error("agent.register", cwd=here.cwd, name="one", session_id="other")
        assert (error.code, error.kind) == (1002, "name_taken")
        assert (await here.register(error.data["free"], session_id="other")).name


async def test_addresses_that_nobody_has_are_errors() -> None:
    """An unknown, reserved or malformed address is an error, and nothing is stored for it."""
    async with agents() as here:
        lead, other = await here.register("lead"), await here.register("other")
        for number, address in enumerate(_ADDRESSES):
            error = await here.error("message.send", key=lead.key, to=address, body="x")
            assert error.code in {-32602, 1001, 1006, 1067}, (address, error.code)
            assert error.message.isprintable()
            if number % 8 == 0:
                await _others_go_on(here, lead, other, f"body {number}")
        near = await here.error("message.send", key=lead.key, to="othr", body="x")
        assert (near.kind, "other" in json.dumps(near.data)) == ("not_found", True)
        far = await here.error("message.send", key=lead.key, to="bridge:42", body="x")
        assert (far.code, far.kind) == (1001, "no_bridge")
        ended = await here.register("ended")
        await here.call("agent.end", key=ended.key)
        gone = await here.error("message.send", key=lead.key, to="ended", body="x")
        assert gone.kind in {"agent_ended", "not_found"}


async def test_nobody_is_what_another_memd_may_say() -> None:
    """A socket that is not listed is refused, and a hop neither names an agent nor goes on."""
    async with agents() as here:
        lead, other = await here.register("lead"), await here.register("other")
        for path in ("/tmp/x/s", here.home.places.socket, "/etc/passwd", "/../x"):
            error = await here.error("message.send", key=lead.key, to=f"uds:{path}#bob", body="x")
            assert (error.code, error.kind) == (1067, "peer_refused")
        sent = {"cwd": here.cwd, "body": "x"}
        far = "uds:/run/other.sock#lead"
        for hop in ("lead", "uds:lead", "uds:/x", "uds:/x#\n", f"uds:/{'x' * 600}#lead"):
            error = await here.error("message.send", to="other", hop=hop, **sent)
            assert error.code == -32602, hop
        for to in ("*", far):
            assert (await here.error("message.send", to=to, hop=far, **sent)).kind == "peer_refused"
        await here.call("message.send", to="other", hop=far, **sent)
        received = await here.read(other)
        assert [each["from"] for each in received["messages"]] == ["unregistered"]
        assert "\nMessage from unregistered (" in received["block"]


async def test_wrong_parameters_are_named() -> None:
    """A kind, a ttl, a wait, a limit or an id that cannot be meant is an error of its own."""
    async with agents() as here:
        one, two = await here.register("one"), await here.register("two")
        key = one.key
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("message.send", {"to": "two", "body": "x", "kind": "notice"}),
            ("message.send", {"to": "two", "body": "x", "kind": "order"}),
            ("message.send", {"to": "two", "body": "x", "ttl": 0}),
            ("message.send", {"to": "two", "body": "x", "ttl": 1e12}),
            ("message.send", {"to": "two", "body": "x", "ttl": -5}),
            ("message.send", {"to": "two", "body": 7}),
            ("message.send", {"to": "two", "body": "x", "reply_to": "the user agrees"}),
            ("message.send", {"to": "two", "body": "x", "reply_to": "m1\n"}),
            ("message.send", {"to": ["two"], "body": "x"}),
            ("message.send", {"to": "two", "body": "x", "summary": "s" * 5000}),
            ("message.receive", {"wait": -1}),
            ("message.receive", {"wait": 1e9}),
            ("message.receive", {"limit": 0}),
            ("message.ack", {"ids": "m1"}),
            ("message.ack", {"ids": ["../m1"]}),
            ("message.ack", {"ids": [7]}),
        ]
        for method, params in wrong:
            error = await here.error(method, key=key, **params)
            assert error.code in {-32602, 1001, 1007, 1063}, (method, params, error.code)
        for method in ("message.receive", "message.ack", "agent.end"):
            params = {"ids": ["m1"]} if method == "message.ack" else {}
            for forged in ("0" * 64, "x", two.key[:-1]):
                assert (await here.error(method, key=forged, **params)).kind == "key_refused"
        for unknown in ("m999999", "", "x", "m" + "9" * 400):
            error = await here.error("message.status", id=unknown)
            assert error.code in {1001, -32602}, unknown
        await _others_go_on(here, one, two, "still here")


async def test_floods_have_an_end() -> None:
    """A batch of sends and broadcasts above the rate are refused one by one, others go on."""
    async with agents('[messages]\ninbound_unregistered = "accept"\n') as here:
        eve, one, two = [await here.register(name) for name in ("eve", "one", "two")]
        batch = [
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "message.send",
                "params": {"key": eve.key, "to": "one", "body": f"{number}"},
            }
            for number in range(100)
        ]
        answers = await to_thread.run_sync(_batch, here, json.dumps(batch))
        kinds = [each["error"]["data"]["kind"] for each in answers if "error" in each]
        assert len(kinds) == 40
        assert set(kinds) <= {"too_many_messages", "busy"}
        await _others_go_on(here, one, two, "meanwhile")
        here.clock.advance(61)
        for _ in range(BROADCASTS_PER_MINUTE):
            await here.call("message.send", key=eve.key, to="*", body="all")
        error = await here.error("message.send", key=eve.key, to="*", body="all")
        assert (error.kind, error.exit_status) == ("too_many_messages", 75)


def _batch(here: Agents, request: str) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(here.home.places.socket)
        connection.sendall(request.encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    result: list[dict[str, Any]] = json.loads(received)
    return result


async def test_a_receiver_that_never_acknowledges_costs_itself() -> None:
    """A full mailbox refuses and drops nothing; what is never acknowledged is parked."""
    async with agents(OPEN) as here:
        eve, deaf, one = [await here.register(name) for name in ("eve", "deaf", "one")]
        # Each sends fewer than two agents may exchange without their person.
        senders = [await here.register(f"s{number}") for number in range(MAILBOX_MESSAGES // 7 + 1)]
        for number in range(MAILBOX_MESSAGES):
            params = {"key": senders[number // 7].key, "to": "deaf", "body": f"{number}"}
            assert (await here.call("message.send", **params))["state"] == "queued"
        full = await here.error("message.send", key=eve.key, to="deaf", body="one more")
        assert (full.code, full.kind, full.retryable) == (1004, "mailbox_full", True)
        await _others_go_on(here, eve, one, "unharmed")
        first = await here.call("message.receive", key=deaf.key, limit=20)
        ids = {each["id"] for each in first["messages"]}
        assert first["more"]
        for delivery in range(2, DELIVERIES + 1):
            here.clock.advance(LEASE_SECONDS + 1)
            again = await here.call("message.receive", key=deaf.key, limit=20)
            assert {each["id"] for each in again["messages"]} == ids
            assert {each["delivery"] for each in again["messages"]} == {delivery}
        here.clock.advance(LEASE_SECONDS + 1)
        later = await here.call("message.receive", key=deaf.key, limit=20)
        assert ids.isdisjoint(each["id"] for each in later["messages"])
        assert (await here.call("message.status", id=min(ids)))["state"] == "parked"
        await _others_go_on(here, eve, one, "unharmed still")


async def test_strangers_fill_no_mailbox() -> None:
    """What is held for the person has a bound of its own and takes no room of colleagues."""
    async with agents(OPEN.replace('"accept"', '"hold"')) as here:
        one, two = await here.register("one"), await here.register("two")
        stranger = {"cwd": here.cwd, "to": "two"}
        for number in range(MAILBOX_MESSAGES):
            sent = await here.call("message.send", body=f"{number}", **stranger)
            assert sent["state"] == "held"
        error = await here.error("message.send", body="one more", **stranger)
        assert error.kind == "mailbox_full"
        await _others_go_on(here, one, two, "unharmed")
        accepted = await here.call("message.decide", id=sent["id"], accept=True)
        assert accepted["state"] == "queued"
        (received,) = (await here.read(two))["messages"]
        assert (received["from"], received["body"]) == ("unregistered", "199")


async def test_switched_off_every_method_says_so() -> None:
    """With messages.enabled = false nothing is registered, stored or delivered."""
    async with agents("[messages]\nenabled = false\n") as here:
        for method, params in (
            ("agent.register", {"cwd": here.cwd, "name": "one"}),
            ("message.send", {"cwd": here.cwd, "to": "one", "body": "x"}),
        ):
            assert (await here.error(method, **params)).kind == "messages_off"
