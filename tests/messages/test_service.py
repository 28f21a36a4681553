"""Messages between agents: sent, leased, read, ended, each end told."""

from pathlib import Path

import anyio
import pytest

from memd.core.errors import MemdError
from memd.messages.errors import (
    AgentNotFoundError,
    MailboxFullError,
    MessageNotFoundError,
    MessageNotHeldError,
    MessageRefusedError,
    MessageSizeError,
    MessagesOffError,
    RequestNotOpenError,
    TooManyMessagesError,
)
from memd.messages.service import LeaseHolder
from tests.messages.mailrooms import mailroom

pytestmark = pytest.mark.anyio


async def test_what_is_leased_comes_again_when_the_lease_ends(tmp_path: Path) -> None:
    """A message that nobody acknowledged is delivered again after 30 s, with its number."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben")
        assert [m.delivery for m in (await room.receive("ben")).messages] == [1]
        await room.pass_time(29)
        assert (await room.receive("ben")).messages == ()
        await room.pass_time(1)
        (again,) = (await room.receive("ben")).messages
        assert (again.id, again.delivery, await room.state(sent.id)) == (sent.id, 2, "leased")
        await room.pass_time(31)
        assert await room.acknowledge("ben", [sent.id]) == 1
        assert await room.state(sent.id) == "read"
        assert (await room.receive("ben")).messages == ()


async def test_a_lease_ends_with_its_connection(tmp_path: Path) -> None:
    """Who lost the connection gets the same message again at once."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.send("ann", "ben")
        await room.receive("ben", holder=LeaseHolder("one", lambda: False))
        assert await room.bodies("ben") == ["text"]


async def test_later_messages_of_a_pair_wait_for_a_leased_one(tmp_path: Path) -> None:
    """Order per pair holds across deliveries; other pairs and control kinds do not wait."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.register("cat")
        kid = "kid"
        await room.register(kid, parent="ann")
        await room.send("ann", "ann/kid", "1")
        await room.send("ann", "ann/kid", "2")
        assert await room.bodies(kid, limit=1) == ["1"]
        assert await room.bodies(kid) == []
        await room.send("cat", "ann/kid", "other")
        await room.send("ann", "ann/kid", "stop", kind="shutdown_request")
        assert await room.bodies(kid) == ["stop", "other"]
        await room.pass_time(30)
        assert await room.bodies(kid) == ["stop", "1", "2", "other"]


async def test_the_fifth_delivery_is_the_last(tmp_path: Path) -> None:
    """A message that nobody acknowledges is parked after five deliveries, and its sender told."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben")
        for delivery in range(1, 6):
            assert [m.delivery for m in (await room.receive("ben")).messages] == [delivery]
            await room.pass_time(31)
        assert (await room.receive("ben")).messages == ()
        assert await room.state(sent.id) == "parked"
        (notice,) = (await room.receive("ann")).messages
        assert (notice.kind, notice.reply_to, notice.sender) == ("notice", sent.id, "memd")
        assert "parked" in notice.body
        assert await room.acknowledge("ben", [sent.id]) == 0


async def test_the_last_lease_outlives_its_connection(tmp_path: Path) -> None:
    """Who had the fifth delivery and lost the connection may still acknowledge it."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben")
        for _ in range(5):
            await room.receive("ben", holder=LeaseHolder("one", lambda: False))
        assert (await room.receive("ben")).messages == ()
        assert await room.state(sent.id) == "leased"
        assert await room.acknowledge("ben", [sent.id]) == 1


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0 * 40])
async def test_a_message_expires_by_no_clock_that_is_set(tmp_path: Path, jump: float) -> None:
    """A message expires when its time has passed, whatever the system's clock is set to."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben", ttl=120.0)
        room.clock.jump(jump)
        await room.pass_time(119)
        assert await room.state(sent.id) == "queued"
        await room.pass_time(1)
        assert await room.state(sent.id) == "expired"
        assert "expired" in (await room.bodies("ann"))[0]


async def test_what_was_queued_outlives_the_daemon(tmp_path: Path) -> None:
    """A daemon that begins anew has each message, the count of its deliveries, and no lease."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.send("ann", "ben", "1")
        await room.send("ann", "ben", "2")
        await room.receive("ben", limit=1)
        keys = room.keys
    async with mailroom(tmp_path) as room:
        room.keys.update(keys)
        messages = (await room.receive("ben")).messages
        assert [(m.body, m.delivery) for m in messages] == [("1", 2), ("2", 1)]


async def test_a_request_id_is_answered_once(tmp_path: Path) -> None:
    """The same request again stores nothing and has the same id."""
    async with mailroom(tmp_path) as room:
        await room.two()
        first = await room.send("ann", "ben", request_id="r1 hash-with-the-old-key")
        await room.register("ann")
        assert await room.send("ann", "ben", request_id="r1 hash-with-the-new-key") == first
        assert (await room.send("ann", "ben", "other", request_id="r1 hash")).id != first.id
        assert (await room.send("ben", "ben", request_id="r1 hash")).id != first.id
        assert await room.bodies("ben") == ["text", "other", "text"]


async def test_a_full_mailbox_refuses_and_drops_nothing(tmp_path: Path) -> None:
    """The 201st message is refused for now; a read one makes room; others notice nothing."""
    async with mailroom(tmp_path, per_minute=1_000) as room:
        await room.two()
        await room.register("cat")
        for number in range(200):
            await room.send("ann", "ben", str(number))
        with pytest.raises(MailboxFullError) as caught:
            await room.send("ann", "ben")
        assert caught.value.retryable
        assert (await room.send("ann", "cat")).state == "queued"
        received = await room.receive("ben")
        assert ([m.body for m in received.messages], received.more) == (
            [str(number) for number in range(20)],
            True,
        )
        await room.acknowledge("ben", [received.messages[0].id])
        assert (await room.send("ann", "ben")).state == "queued"


async def test_to_all_is_one_copy_for_each_other_agent(tmp_path: Path) -> None:
    """A message to all goes to who is there, not to the sender, and to nobody is an error."""
    async with mailroom(tmp_path) as room:
        await room.register("ann")
        with pytest.raises(AgentNotFoundError):
            await room.send("ann", "*")
        await room.register("ben")
        await room.register("cat")
        await room.register("far", root="/elsewhere")
        sent = await room.send("ann", "*")
        assert [each.address for each in sent.recipients] == ["ben", "cat"]
        await room.register("dan")
        for name, count in (("ann", 0), ("ben", 1), ("cat", 1), ("dan", 0), ("far", 0)):
            assert len(await room.bodies(name)) == count


async def test_a_sender_has_so_many_messages_a_minute(tmp_path: Path) -> None:
    """The 61st message and the 7th to all within a minute are refused, those of others are not."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.register("cat")
        for _ in range(6):
            await room.send("ann", "*")
        with pytest.raises(TooManyMessagesError):
            await room.send("ann", "*")
        for _ in range(54):
            await room.send("ann", "ben")
        with pytest.raises(TooManyMessagesError):
            await room.send("ann", "ben")
        await room.send("cat", "ben")
        await room.pass_time(60)
        await room.send("ann", "ben")


async def test_the_ninth_answer_is_held_until_the_person_speaks(tmp_path: Path) -> None:
    """Two agents that answer each other are stopped after eight answers, by whatever way."""
    for number, to in enumerate(({"ann": "ben", "ben": "ann"}, {"ann": "*", "ben": "*"})):
        (folder := tmp_path / str(number)).mkdir()
        async with mailroom(folder) as room:
            await room.two()
            pair = ("ann", "ben")
            states = []
            for turn in range(10):
                states.append((await room.send(pair[turn % 2], to[pair[turn % 2]])).state)
                if turn == 8:
                    await room.pass_time(61)
            assert states == ["queued"] * 9 + ["held"]
            assert "1 message waits" in room.messages.notices("test", "ann")
            room.messages.prompted("test", "ben")
            assert (await room.send("ben", to["ben"])).state == "queued"


async def test_the_person_decides_what_is_held(tmp_path: Path) -> None:
    """A held message is delivered once accepted; a refused one and an old one are told."""
    async with mailroom(tmp_path, inbound="hold") as room:
        await room.two()
        first, second, third = [(await room.send("ann", "ben", b)).id for b in "123"]
        assert await room.bodies("ben") == []
        assert (await room.messages.decide(first, accept=True)).state == "queued"
        assert (await room.messages.decide(second, accept=False)).state == "refused"
        with pytest.raises(MessageNotHeldError, match="is not held: it is refused"):
            await room.messages.decide(second, accept=True)
        with pytest.raises(MessageNotFoundError):
            await room.messages.decide("m999", accept=True)
        assert await room.bodies("ben") == ["1"]
        await room.pass_time(86_400)
        assert await room.state(third) == "expired"
        told = await room.bodies("ann")
        assert [second in told[0], third in told[1]] == [True, True]


async def test_a_handshake_is_between_parent_and_child(tmp_path: Path) -> None:
    """Only a parent asks to shut down, only the child answers, once, and only that request."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.register("kid", parent="ann")
        for sender, to, kind in (
            ("ben", "ann/kid", "shutdown_request"),
            ("kid", "ann", "shutdown_request"),
            ("ann", "ann/kid", "plan_approval_request"),
            ("", "ann/kid", "shutdown_request"),
            ("ann", "*", "shutdown_request"),
        ):
            with pytest.raises(MessageRefusedError):
                await room.send(sender, to, kind=kind)
        asked_for = await room.send("ann", "ann/kid", kind="shutdown_request")
        answer = {"kind": "shutdown_response", "approve": True, "reason": "done"}
        with pytest.raises(RequestNotOpenError):
            await room.send("kid", "ann", "", request="m999", **answer)
        await room.send("kid", "ann", "", request=asked_for.id, **answer)
        with pytest.raises(RequestNotOpenError):
            await room.send("kid", "ann", "", request=asked_for.id, **answer)
        (response,) = (await room.receive("ann")).messages
        assert (response.request, response.approve, response.body) == (asked_for.id, True, "done")
        await room.pass_time(61)
        assert await room.bodies("ann") == [response.body]  # again, and no word of no answer


async def test_a_missing_answer_is_told_to_who_wants_it(tmp_path: Path) -> None:
    """After 60 s without an answer the parent hears so, and the child hears nothing of memd."""
    async with mailroom(tmp_path) as room:
        await room.register("ann")
        await room.register("kid", parent="ann")
        plan = await room.send("kid", "ann", "the plan", kind="plan_approval_request")
        await room.pass_time(60)
        await room.bodies("ann")
        (notice,) = await room.bodies("kid")
        assert "no_answer" in notice
        await room.pass_time(200)
        answer = {"kind": "plan_approval_response", "approve": True, "request": plan.id}
        await room.send("ann", "ann/kid", "", **answer)  # who had to think still answers, once
        with pytest.raises(RequestNotOpenError):
            await room.send("ann", "ann/kid", "", **answer)
        await room.send("ann", "ann/kid", kind="shutdown_request")
        await room.pass_time(1)
        await room.bodies("kid")
        assert any("gone" in body for body in await room.bodies("ann"))


async def test_an_agent_that_ends_returns_its_messages(tmp_path: Path) -> None:
    """What an ended agent and those that work for it had not read is refused, and told."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.register("kid", parent="ben")
        await room.register("grandchild", parent="kid")
        sent = [
            await room.send("ann", "ben"),
            await room.send("ann", "ben/kid"),
            await room.send("kid", "kid/grandchild", kind="shutdown_request"),
        ]
        agent = room.messages.register.by_key(room.keys["ben"])
        assert (await room.messages.end(agent)).returned == 3
        assert [await room.state(each.id) for each in sent] == ["refused"] * 3
        assert len(await room.bodies("ann")) == 2


async def test_subscribers_hear_of_messages_and_never_what_they_say(tmp_path: Path) -> None:
    """The events have id, sender, summary and count, and no body."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben", "the body", summary="in short")
        await room.receive("ben")
        await room.acknowledge("ben", [sent.id])
        pending, ended = room.listener.events[-2:]
        assert pending.params == {
            "id": sent.id,
            "address": "ben",
            "sender": "ann",
            "summary": "in short",
            "count": 1,
        }
        assert (ended.topic, ended.params["state"]) == ("message.ended", "read")
        assert "the body" not in str(room.listener.events)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"body": "x" * 32_769}, MessageSizeError),
        ({"summary": "x" * 121}, MessageSizeError),
        ({"body": " "}, MemdError),
        ({"ttl": 59.0}, MemdError),
        ({"ttl": 30 * 86_400.0 + 1}, MemdError),
        ({"kind": "notice"}, MessageRefusedError),
        ({"approve": True}, MemdError),
        ({"to": "bem"}, AgentNotFoundError),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    tmp_path: Path, more: dict[str, object], error: type[MemdError]
) -> None:
    """Each message beyond a limit or of a wrong shape is refused, and nothing is stored."""
    async with mailroom(tmp_path) as room:
        await room.two()
        with pytest.raises(error):
            await room.send("ann", **({"to": "ben"} | more))  # type: ignore[arg-type]
        assert await room.bodies("ben") == []


async def test_messages_may_be_off(tmp_path: Path) -> None:
    """Without messages nobody registers."""
    async with mailroom(tmp_path, enabled=False) as room:
        with pytest.raises(MessagesOffError):
            await room.register("ann")


async def test_nothing_waits_for_a_time_without_messages(tmp_path: Path) -> None:
    """Agents without messages cost no timer."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await anyio.wait_all_tasks_blocked()
        assert room.clock.sleepers == 0
