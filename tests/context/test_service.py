"""What memd decides about conversations: durable, frozen, and never at the price of an answer."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.context.errors import ConversationChangedError, MessagesRefusedError
from memd.context.keeping import BegunPlan
from memd.context.requests import PlannedContext
from memd.context.results import ResultsPlace
from memd.context.service import Contexts
from memd.context.values import KEEP, SPILL, Decision
from memd.core.settings import ContextSettings, Settings
from memd.projects.project import SessionRefusedError
from memd.state.database import Database
from memd.state.tables import ContextTable
from memd.testing.faults import Countdown, FaultyDisk
from tests.context.bench import HASH, LARGE, TALK, Bench, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Make a bench in a folder of its own."""
    with closing(Bench(tmp_path)) as made:
        yield made


def content(planned: PlannedContext) -> list[str | None]:
    """Return what is sent in the place of blocks."""
    return [edit.content for edit in planned.edits]


async def test_a_large_result_is_stored_and_its_beginning_sent(bench: Bench) -> None:
    """The file has every byte, the answer names it, and both are there when the answer is."""
    planned = await bench.plan(TALK)
    (edit,), (decision,) = planned.edits, planned.decisions
    assert (edit.message, edit.block, edit.tool_use_id) == (2, 0, "t1")
    assert Path(decision.path).read_text() == LARGE
    assert decision.path in (edit.content or "")
    assert bench.table.decisions(str(Path(decision.path).parent))[0][:3] == ("t1", HASH, SPILL)
    assert (planned.have, planned.level, planned.problems) == (3, "ok", ())


async def test_decisions_outlive_a_restart_and_their_file(bench: Bench) -> None:
    """The client sends its messages again, and the same bytes come out of it."""
    first = await bench.plan(TALK)
    Path(first.decisions[0].path).unlink()
    bench.restart()
    bench.settings = Settings(context=ContextSettings(spill=False))
    resync = await bench.plan(call(2), place=3, hash=first.hash)
    assert (resync.status, resync.have, resync.reason) == ("resync", 0, "changed")
    again = await bench.plan([*TALK, *call(2)], reader="")
    assert content(again) == content(first)
    assert [each.action for each in again.decisions] == [SPILL, KEEP]


async def test_checkpoints_say_where_to_go_on(bench: Bench) -> None:
    """One every 64 messages, and the last."""
    talk = [{"role": "user", "content": str(number)} for number in range(150)]
    known = await bench.plan(talk)
    resync = await bench.plan([], place=150, hash="00")
    assert [each.messages for each in resync.checkpoints] == [0, 64, 128, 150]
    assert resync.checkpoints[-1].hash == known.hash == resync.hash
    middle = resync.checkpoints[1]
    assert (await bench.plan(talk[64:], place=64, hash=middle.hash)).hash == known.hash


@pytest.mark.parametrize("name", ["create", "write", "fsync", "move", "sync_folder"])
async def test_what_the_disk_refuses_stays(tmp_path: Path, name: str) -> None:
    """The problem is named, and the result is never taken out later: it was sent."""
    countdown = Countdown(1, ever=True, only=(name,))
    bench = Bench(tmp_path, disk=FaultyDisk(countdown))
    with closing(bench):
        planned = await bench.plan(TALK)
        assert (planned.edits, planned.decisions[0].action) == ((), KEEP)
        assert "t1: " in planned.problems[0]
        countdown.fail_at = 0
        more = await bench.plan([*TALK, *call(2)])
        assert [each.tool_use_id for each in more.edits] == ["t2"]
        bench.restart()
        assert content(await bench.plan([*TALK, *call(2)])) == content(more)


@pytest.mark.parametrize("forked", [False, True])
async def test_old_results_are_cleared_where_nobody_else_has_them(
    bench: Bench, *, forked: bool
) -> None:
    """After an hour, also of a daemon that was restarted; a fork's prefix stays as it was."""
    bench.settings = Settings(context=ContextSettings(clear=True, spill=False))
    talk = [*TALK, *(part for number in range(2, 9) for part in call(number))]
    done = [{"role": "assistant", "content": "done"}, {"role": "user", "content": "on"}]
    known = await bench.plan(talk)
    if forked:
        await bench.plan(talk, conversation="fork")
    bench.clock.advance(3_600)
    wanted = await bench.plan(done, place=known.have, hash=known.hash)
    assert (wanted.status, wanted.reason) == (("ok", "") if forked else ("resync", "clear"))
    bench.restart()
    bench.clock.advance(3_600 if forked else 0)
    planned = await bench.plan([*talk, *done])
    assert [edit.tool_use_id for edit in planned.edits] == ([] if forked else ["t1", "t2", "t3"])
    assert (await bench.plan([*talk, *done])).edits == planned.edits


class FullState(Database):
    """A state file that refuses to commit while it is full."""

    full = False

    def commit(self, cursor: Any) -> None:
        """Fail or commit."""
        if self.full:
            raise OSError(28, "No space left on device")
        super().commit(cursor)


async def test_what_the_state_file_refuses_is_not_decided(bench: Bench) -> None:
    """The result stays, now and later, and that is written as soon as it can be."""
    state = FullState(bench.database.file)
    contexts = Contexts(bench.clock, ContextTable(state))
    state.full = True
    planned = await contexts.plan(bench.request(TALK))
    assert (planned.edits, planned.decisions[0].action) == ((), KEEP)
    assert "No space left" in planned.problems[0]
    state.full = False
    assert (await contexts.plan(bench.request(TALK))).edits == ()
    bench.restart()
    assert (await bench.plan(TALK)).decisions[0].action == KEEP


def begun(bench: Bench, messages: list[Any]) -> BegunPlan:
    """Return a plan of the session s whose results are not stored yet."""
    result = bench.keeper.begin(bench.request(messages))
    assert isinstance(result, BegunPlan)
    return result


def test_of_two_calls_that_race_one_is_made_again(bench: Bench) -> None:
    """The second one to end would decide by what is not so any more."""
    first, second = begun(bench, TALK), begun(bench, [*TALK, *call(2)])
    bench.keeper.store(first)
    assert bench.keeper.end(first).edits
    bench.keeper.store(second)
    with pytest.raises(ConversationChangedError):
        bench.keeper.end(second)
    assert isinstance(bench.keeper.begin(bench.request(TALK)), PlannedContext)


def test_who_forgets_meanwhile_is_not_overruled(bench: Bench) -> None:
    """A plan that began before the session was forgotten writes nothing."""
    plan = begun(bench, TALK)
    bench.keeper.store(plan)
    bench.keeper.forget(bench.request([]))
    with pytest.raises(ConversationChangedError):
        bench.keeper.end(plan)
    assert bench.table.rows("") == ()


async def test_a_fork_has_the_decisions_of_its_session(bench: Bench) -> None:
    """Its bytes are the same, and the file goes with the last session that names it."""
    first = await bench.plan(TALK)
    path = Path(first.decisions[0].path)
    fork = bench.request([], session="fork")
    assert await bench.contexts.restore(fork, [], "s") == 1
    forked = await bench.plan(TALK, session="fork")
    assert content(forked) == content(first)
    assert await bench.contexts.forget(bench.request([])) is True
    assert path.exists()
    assert await bench.contexts.forget(fork) is True
    assert not path.parent.exists()
    assert await bench.contexts.forget(fork) is False


async def test_what_a_client_sent_stands(bench: Bench) -> None:
    """Above what memd decided, now and after a restart."""
    await bench.plan(TALK)
    sent = Decision("t1", HASH, KEEP)
    assert await bench.contexts.restore(bench.request([]), [sent], "") == 1
    bench.restart()
    planned = await bench.plan(TALK)
    assert (planned.edits, planned.decisions) == ((), (sent,))


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "burn"},
        {"content": "\ud800"},
        {"tool_use_id": "\udfff"},
        {"path": "\ud800"},
        {"size": -1},
        {"size": 2**63},
    ],
)
async def test_decisions_of_a_client_are_input(bench: Bench, wrong: dict[str, Any]) -> None:
    """One that makes no sense is refused with its place, and none of them is taken over."""
    good = Decision("t1", HASH, KEEP)
    with pytest.raises(MessagesRefusedError, match=r"decisions\.1: "):
        await bench.contexts.restore(bench.request([]), [good, replace(good, **wrong)], "")
    assert bench.table.rows("") == ()


async def test_who_forgets_removes_no_file_of_another_program(bench: Bench) -> None:
    """A client may restore decisions that name what its own program stored."""
    planned = await bench.plan(TALK)
    stored = Path(planned.decisions[0].path)
    others = [stored.with_name("b1234.txt"), stored.with_name("t7.txt")]
    for path in others:
        path.write_text("not memd's")
    lies = [
        Decision(call, "0", SPILL, "x", str(path), 5)
        for call, path in zip(("t8", "t7"), others, strict=True)
    ]
    await bench.contexts.restore(bench.request([]), lies, "")
    assert await bench.contexts.forget(bench.request([]))
    assert [path.exists() for path in (stored, *others)] == [False, True, True]


@pytest.mark.parametrize("session", ["", "a/b", "..", "memory", "\ud800", "x" * 129])
async def test_a_session_is_a_plain_name(bench: Bench, session: str) -> None:
    """It is a folder's."""
    with pytest.raises(SessionRefusedError):
        await bench.plan(TALK, session=session)
    with pytest.raises(SessionRefusedError):
        await bench.contexts.restore(bench.request([]), [], session or "/")


@pytest.mark.parametrize(
    ("size", "words"),
    [(512 * 2**20, "the results of the session"), (4 * 2**30 - 1, "the results of all sessions")],
)
async def test_a_full_quota_leaves_the_result(bench: Bench, size: int, words: str) -> None:
    """The problem says which one it is."""
    session = "s" if words.endswith("session") else "other"
    folder = ResultsPlace(str(bench.folder / "projects"), "-p", session).folder
    stored = Decision("t0", "0" * 64, SPILL, "x", f"{folder}/t0.txt", size)
    await bench.contexts.restore(bench.request([], session=session), [stored], "")
    planned = await bench.plan(TALK)
    assert planned.edits == ()
    assert words in planned.problems[0]


async def test_sessions_that_nobody_used_go(bench: Bench) -> None:
    """With their files; a session that was planned since stays, however old its first plan is."""
    old = await bench.plan(TALK)
    bench.clock.advance(1_000)
    new = await bench.plan(TALK, session="new")
    bench.clock.advance(1_000)
    await bench.plan(TALK[:1], session="new", conversation="agent")
    assert await bench.contexts.prune(bench.clock.now() - 500) == 1
    assert not Path(old.decisions[0].path).exists()
    assert Path(new.decisions[0].path).exists()
    assert [row.conversation for row in bench.table.rows("")] == ["agent", ""]


async def test_facts_of_messages_are_bounded(bench: Bench) -> None:
    """Those of the conversation planned longest ago go, and what was decided stays."""
    first = await bench.plan(TALK)
    talk = [{"role": "user", "content": "x"}] * 60_000
    for name in ("a", "b", "c"):
        await bench.plan(talk, session=name)
    gone = await bench.plan([], place=3, hash=first.hash)
    assert (gone.status, gone.have) == ("resync", 0)
    assert content(await bench.plan(TALK)) == content(first)
    known = await bench.plan([], session="c", place=60_000, hash="00")
    assert known.have == 60_000


def usage(read: int) -> dict[str, int]:
    """Return what a server counted."""
    return {"input_tokens": 1, "cache_read_input_tokens": read, "output_tokens": 1}


async def test_a_reply_that_is_told_of_counts_in_the_next_plan(bench: Bench) -> None:
    """As if its usage came with that plan, and no longer than that."""
    one = await bench.plan(TALK[:1])
    await bench.contexts.observe(bench.request([]), usage(70_000), None)
    two = await bench.plan(call(1, "short"), place=1, hash=one.hash)
    assert (two.count.tokens > 70_000, two.count.source) == (True, "usage")
    three = await bench.plan(call(2, "short"), place=3, hash=two.hash)
    assert three.count.tokens < 70_100


async def test_a_lost_cache_is_noted_once(bench: Bench) -> None:
    """Whether the client tells of the reply at once or with its next plan."""
    reply = {"role": "assistant", "content": "Done."}
    one = await bench.plan(TALK, model="m")
    assert await bench.contexts.observe(bench.request([]), usage(50_000), None) is None
    two = await bench.plan([reply], place=3, hash=one.hash, model="n", usage=usage(50_000))
    assert two.cache_break is None
    at = {"place": 4, "hash": two.hash, "model": "n"}
    three = await bench.plan([TALK[0]], **at, usage=usage(1_000))
    assert three.cache_break is not None
    assert (three.cache_break.cause, three.cache_break.tokens) == ("model", 49_000)
    again = await bench.plan([TALK[0]], **at, usage=usage(1_000))
    assert again.cache_break is None
    totals = await bench.contexts.totals()
    assert (totals.conversations, totals.results, totals.bytes) == (1, 1, len(LARGE))
    assert (totals.breaks, totals.missed) == (1, 49_000)


async def test_what_memd_declares_is_no_lost_cache(bench: Bench) -> None:
    """A compaction, and decisions that a client restored, begin a new baseline."""
    one = await bench.plan(TALK)
    await bench.contexts.observe(bench.request([]), usage(50_000), None)
    compaction = {"type": "compaction", "content": "What was said.", "signature": "x"}
    compacted = [{"role": "assistant", "content": [compaction]}, TALK[0]]
    await bench.plan(compacted)
    assert await bench.contexts.observe(bench.request([]), usage(0), None) is None
    await bench.contexts.observe(bench.request([]), usage(50_000), None)
    await bench.contexts.restore(bench.request([]), [], "")
    assert await bench.contexts.observe(bench.request([]), usage(0), None) is None
    assert one.status == "ok"


async def spill(bench: Bench, text: str, **given: Any) -> Any:
    """Store one result of a shell as it is born."""
    tool = given.pop("tool", "Bash")
    request = bench.request([], **given)
    return await bench.contexts.spill(request, tool=tool, tool_use_id="t1", content=text)


async def test_a_result_is_stored_as_it_is_born(bench: Bench) -> None:
    """The same comes out of it again, of the plan too, and the reason is said where it stays."""
    assert (await spill(bench, "short")).reason == "small"
    assert (await spill(bench, LARGE, reader="")).reason == "no_reader"
    assert (await spill(bench, LARGE, tool="read_stored")).reason == "reader"
    stored = await spill(bench, LARGE)
    assert Path(stored.path).read_text() == LARGE
    assert await spill(bench, LARGE) == stored
    bench.restart()
    bench.settings = Settings(context=ContextSettings(spill=False))
    assert await spill(bench, LARGE) == stored
    assert content(await bench.plan(TALK)) == [stored.content]
    await bench.contexts.restore(bench.request([]), [Decision("t1", HASH, KEEP)], "")
    assert (await spill(bench, LARGE)).reason == KEEP
    with pytest.raises(MessagesRefusedError):
        await spill(bench, LARGE + "\ud800")


async def test_a_result_may_come_as_a_file(bench: Bench) -> None:
    """One of the user's own; no link is followed."""
    source = bench.folder / "result"
    source.write_text(LARGE)
    link = bench.folder / "link"
    link.symlink_to(source)
    request = bench.request([])
    stored = await bench.contexts.spill(
        request, tool="Bash", tool_use_id="t1", source_path=str(source)
    )
    assert stored.path
    assert Path(stored.path).read_text() == LARGE


async def test_counting_notes_nothing(bench: Bench) -> None:
    """Known messages count with the new ones; without them, what is given."""
    one = await bench.plan(TALK[:1])
    known = await bench.contexts.count(bench.request(call(1), place=1, hash=one.hash))
    alone = await bench.contexts.count(bench.request(call(1), place=1, hash="00"))
    assert known.tokens > alone.tokens > len(LARGE) // 4
    assert (known.source, known.level) == ("estimate", "ok")
    assert bench.table.rows("")[0].messages == 1


async def test_messages_that_the_api_refuses_change_nothing(bench: Bench) -> None:
    """The error names the place, and the next plan goes on from where it was."""
    one = await bench.plan(TALK[:1])
    with pytest.raises(MessagesRefusedError, match=r"messages\.1"):
        await bench.plan(call(1)[1:], place=1, hash=one.hash)
    for wrong in ({"system": "\ud800"}, {"tools": [{"name": "\udfff"}]}):
        with pytest.raises(MessagesRefusedError, match="system or tools: "):
            await bench.plan(call(1), place=1, hash=one.hash, **wrong)
    assert (await bench.plan(call(1), place=1, hash=one.hash)).have == 3


async def test_a_person_sees_what_was_decided(bench: Bench) -> None:
    """The conversations of a session, and its largest results first; no other session's."""
    await bench.plan(TALK[:1], session="s2")
    await bench.plan(TALK)
    await bench.plan([*TALK, *call(2, LARGE * 2)], model="m")
    await bench.plan(TALK[:1], conversation="agent")
    view = await bench.contexts.show(bench.request([]))
    assert [each.conversation for each in view.conversations] == ["", "agent"]
    assert [each.tool_use_id for each in view.largest] == ["t2", "t1"]
    assert view.decisions == {SPILL: 2}
    assert view.stored == 3 * len(LARGE)
    listed = await bench.contexts.list("", 1)
    assert [(each.session, each.model, each.messages) for each in listed] == [("s", "m", 5)]
    assert await bench.contexts.list("/elsewhere", 9) == ()
