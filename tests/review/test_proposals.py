"""Proposals that a person looks at, accepts and rejects, on a real store."""

import errno
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.errors import Conflict, MemdError, NotFound, Refused
from memd.base.values import Actor, Provenance, Reasoned
from memd.state.proposals import ProposedEdit
from tests.review.bench import NOW, Bench, accepted, open_bench, topic
from tests.support.faults import Countdown, FaultyDatabase, FaultyDisk
from tests.undoing import undo

pytestmark = pytest.mark.anyio

ME = Provenance(Actor.UNDO, client="test")
TOKEN = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"  # looks like one, and opens nothing
INDEX = b"# Mine\n- [A](a.md)\n- [B](b.md)\n"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with two memories and an index."""
    with open_bench(tmp_path) as made:
        made.write("a.md", topic("We ship on Mondays."))
        made.write("b.md", topic("We ship on Mondays, Ana says."))
        made.write("MEMORY.md", INDEX)
        yield made


def merge(bench: Bench) -> tuple[ProposedEdit, ProposedEdit]:
    """Return the edits that put b.md into a.md, which then says it."""
    return (
        bench.edit("a.md", topic("We ship on Mondays (Ana).")),
        bench.edit("b.md", None, into="a.md", reason="said twice"),
    )


async def test_accepting_is_one_change_of_a_client(bench: Bench) -> None:
    """Files and index change together, the history names the proposal, and one undo restores."""
    before = bench.files()
    name = bench.propose(*merge(bench))
    done = await bench.accept(name, client="memctl")
    assert (done.state, done.paths, done.left) == ("accepted", ("a.md", "b.md"), ())
    assert bench.files() == {
        "a.md": accepted("We ship on Mondays (Ana)."),
        "MEMORY.md": INDEX.replace(b"- [B](b.md)\n", b""),
    }
    change = (await to_thread.run_sync(bench.store.history, bench.directory))[0]
    assert (change.id, change.by.actor, change.by.client) == (done.change, Actor.CLIENT, "memctl")
    assert change.by.reason == f"accepted proposal {name} of a dream"
    kept = bench.proposal(name)
    assert (kept.state, kept.decided) == ("accepted", NOW)
    with pytest.raises(Conflict):
        await bench.accept(name)
    with pytest.raises(Conflict):
        await bench.reject(name)
    await undo(bench.store, bench.directory, change.id, ME)
    assert bench.files() == before


async def test_a_proposal_is_decided_file_by_file(bench: Bench) -> None:
    """What is accepted first stands; what is rejected then is told to the next dream."""
    name = bench.propose(*merge(bench), bench.edit("c.md", topic("C")))
    none = await bench.accept(name, ["b.md"])
    assert (none.paths, [left.path for left in none.left]) == ((), ["b.md"])
    assert "a.md, which does not say what it says" in none.left[0].reason
    with pytest.raises(NotFound):
        await bench.accept(name, ["a.md", "x.md"])
    first = await bench.accept(name, ["a.md"])
    assert (first.state, first.paths) == ("open", ("a.md",))
    second = await bench.accept(name, ["b.md"])
    assert (second.state, second.paths) == ("open", ("b.md",))
    last = await bench.reject(name, ["c.md"], reason=f"key {TOKEN}\nno")
    assert (last.state, last.paths) == ("partly", ("c.md",))
    (refused,) = bench.table.refused(bench.directory, 5)
    assert (refused.path, refused.decided) == ("c.md", NOW)
    assert "no" in refused.refusal
    assert TOKEN not in refused.refusal
    assert "\n" not in refused.refusal
    assert sorted(bench.files()) == ["MEMORY.md", "a.md"]


async def test_what_others_did_meanwhile_wins(bench: Bench) -> None:
    """A file that cannot be merged stays open with why, and the rest is accepted."""
    name = bench.propose(*merge(bench), bench.edit("c.md", topic("C")))
    bench.write("a.md", topic("We ship on Fridays."))
    done = await bench.accept(name)
    assert (done.state, done.paths) == ("open", ("c.md",))
    assert done.left == (
        Reasoned("a.md", "it was changed since the dream had read it"),
        Reasoned("b.md", "it was to go into a.md, which does not say what it says"),
    )
    assert bench.states(name) == {"a.md": "open", "b.md": "open", "c.md": "accepted"}
    again = await bench.accept(name)
    assert (again.change, again.paths, len(again.left)) == (None, (), 2)
    assert bench.files()["a.md"] == topic("We ship on Fridays.")


async def test_only_the_person_decides_about_their_rules(bench: Bench) -> None:
    """An assistant's program accepts no edit of a rule of the person; of a fact it may."""
    text = topic("Never push to main.").replace(b"type: project", b"type: feedback")
    bench.write("rule.md", text)
    rule = bench.propose(bench.edit("rule.md", None, reason="stale"))
    fact = bench.propose(bench.edit("a.md", topic("We ship on Tuesdays.")))
    listed = {item.id: item.person_only for item in await bench.review()}
    assert listed == {rule: True, fact: False}
    with pytest.raises(Refused):
        await bench.accept(rule, assistant=True)
    assert (bench.proposal(rule).state, "rule.md" in bench.files()) == ("open", True)
    assert (await bench.accept(fact, assistant=True)).state == "accepted"
    assert (await bench.accept(rule)).state == "accepted"


async def test_an_answer_fits_a_message(bench: Bench) -> None:
    """However much waits, all of it is listed, and what has no room is shown by its id."""
    words = "".join(f"line {number} of a long text\n" for number in range(1500))
    names = [bench.propose(bench.edit(f"n{n}.md", topic(f"{n}\n{words}"))) for n in range(20)]
    listed = await bench.review()
    assert sorted(item.id for item in listed) == sorted(names)
    assert len(json.dumps(msgspec.to_builtins(listed))) < 1_000_000
    last = listed[-1]
    assert (last.files, "its id shows more" in last.why[-1]) == ((), True)
    (whole,) = await bench.review(last.id)
    assert "line 1499" in whole.files[0].diff


async def test_of_two_at_once_one_decides(bench: Bench) -> None:
    """Two clients accept and reject at the same time: one does it, the other gets the conflict."""
    name = bench.propose(*merge(bench))
    ends: list[str] = []

    async def decide(accepts: bool) -> None:  # noqa: FBT001 - start_soon takes no keywords
        try:
            done = await (bench.accept(name) if accepts else bench.reject(name))
            ends.append(done.state)
        except Conflict:
            ends.append("conflict")

    async with anyio.create_task_group() as group:
        for accepts in (True, False, True, False):
            group.start_soon(decide, accepts)
    assert ends.count("conflict") == 3
    (decided,) = set(ends) - {"conflict"}
    assert decided in ("accepted", "rejected")  # whichever thread came first
    changes = await to_thread.run_sync(bench.store.history, bench.directory)
    made = sum(change.by.actor is Actor.CLIENT for change in changes)
    assert made == (decided == "accepted")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["open", "accepted", "\udc80"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["reason", "merged_into", "state", "decided", "files", "problems"]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
PATHS = st.sampled_from(["../x.md", "/etc/x.md", "a.md", "", "link/a.md", "b.md\0"])
STATES = st.sampled_from(["open", "partly", "rejected", "accepted", "odd"])


@settings(max_examples=25, deadline=None)
@given(JUNK | st.just([{}, {}]), PATHS, STATES)
def test_no_row_breaks_a_review(files: object, path: str, state: str) -> None:
    """Whatever stands in a row, each method answers or raises, and no recovery applies it."""

    async def trial(bench: Bench) -> None:
        bench.write("a.md", b"mine")
        name = bench.propose(bench.edit("a.md", b"its"), bench.edit("b.md", b"new"))
        (row,) = bench.database.read("SELECT value FROM docs WHERE kind = 'Proposal'")
        facts = json.loads(row["value"]) | {"state": state}
        facts["edits"][0]["path"] = path
        if files != [{}, {}]:
            facts["edits"] = files
        query = "UPDATE docs SET value = ? WHERE kind = 'Proposal'"
        bench.database.write(query, (json.dumps(facts),))
        await bench.store.recover()
        there = bench.files()
        there.pop("MEMORY.md", None)
        assert there == {"a.md": b"mine"}
        views = await bench.review()
        assert len(views) <= 1
        with suppress(MemdError):
            await bench.accept(name)
        with suppress(MemdError):
            await bench.reject(name)
        assert {path.name for path in bench.folder.iterdir()} <= KNOWN

    with tempfile.TemporaryDirectory() as folder, open_bench(Path(folder)) as bench:
        anyio.run(trial, bench)


KNOWN = {"memory", "state.db", "state.db-wal", "state.db-shm"}


async def _accept(bench: Bench, name: str) -> bool:
    try:
        return (await bench.accept(name)).state == "accepted"
    except MemdError:
        return False


@pytest.mark.parametrize("ever", [False, True])
async def test_a_fault_leaves_files_and_decision_together(tmp_path: Path, *, ever: bool) -> None:
    """Whichever call fails, after a recovery both are there or neither, and once is enough."""
    ends: set[tuple[bool, bool]] = set()
    for number in range(1, 200):
        folder = tmp_path / "here"
        folder.mkdir()
        with open_bench(folder) as bench:
            bench.write("a.md", topic("A"))
            bench.write("b.md", topic("B"))
            await to_thread.run_sync(bench.store.history, bench.directory)
            name = bench.propose(bench.edit("a.md", topic("A2")), bench.edit("b.md", None))
            countdown = Countdown(number, errno.EIO, ever=ever)
            faulty = Bench(folder, FaultyDatabase(bench.database, countdown), FaultyDisk(countdown))
            said = await _accept(faulty, name)
            bench.clock.advance(5)
            await bench.store.recover()
            state = set(bench.states(name).values())
            files = {path: text for path, text in bench.files().items() if path != "MEMORY.md"}
            done = files == {"a.md": accepted("A2")}
            assert done or files == {"a.md": topic("A"), "b.md": topic("B")}
            assert state == ({"accepted"} if done else {"open"})
            assert done or not said
            ends.add((said, done))
            if not done:
                assert await _accept(bench, name)
            changes = await to_thread.run_sync(
                partial(bench.store.history, bench.directory, path="a.md")
            )
            assert sum(change.by.actor is Actor.CLIENT for change in changes) == 1
        shutil.rmtree(folder)
        if not countdown.reached:
            break
    assert 10 < number < 199
    assert (False, True) in ends  # rolled forward by the recovery
