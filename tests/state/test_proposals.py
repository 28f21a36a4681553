"""Proposals of dreams: change sets that nothing but a person's decision makes true."""

import json
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.text import sha256
from memd.core.values import Actor, ProposalDecided, Provenance
from memd.state import journal
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.proposals import Proposal, ProposalTable, RefusedEdits
from memd.state.proposed import ProposedEdit
from memd.state.purge import Purge
from memd.state.retention import Retention
from tests.changes import history

OLD, NEW = b"old", b"new"
BASE = sha256(OLD)
BYTES = st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode())
WORDS = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), max_size=12)
EDITS = st.builds(
    ProposedEdit,
    WORDS.map(lambda text: f"{text}.md"),
    st.none() | BYTES,
    st.just(BASE),
    st.just(OLD),
    WORDS,
    WORDS,
    mtime_ns=st.none() | st.integers(0, 2**63 - 1),
) | st.builds(ProposedEdit, WORDS.map(lambda text: f"new-{text}.md"), BYTES)


@pytest.fixture
def table(database: Database) -> ProposalTable:
    """Return the table of proposals."""
    return ProposalTable(database)


def wanted(*edits: ProposedEdit, directory: str = "/a", at: float = 1.0) -> Proposal:
    """Return what a dream proposes."""
    return Proposal("", directory, at, job="j1", problems=("naïve",), edits=edits)


def edit(name: str, content: bytes | None = NEW) -> ProposedEdit:
    """Return an edit of one memory."""
    return ProposedEdit(f"{name}.md", content, BASE, OLD)


def propose(table: ProposalTable, proposal: Proposal, model: str = "") -> str:
    """Keep a proposal as a dream does."""
    return table.propose(proposal, Provenance(Actor.DREAM, model=model))


def decided(proposal: str, state: str, *names: str, reason: str = "") -> ProposalDecided:
    """Return a decision about some memories."""
    paths = json.dumps([f"{name}.md" for name in names])
    return ProposalDecided(proposal, state, paths, reason)


def find(table: ProposalTable, proposal: str, directory: str = "/a") -> Proposal:
    """Return a proposal that is there."""
    results = table.find(directory, proposal)
    assert results is not None
    return results


def damage(database: Database, **cells: object) -> None:
    """Overwrite cells of all change sets, as anything might."""
    with database.transaction() as cursor:
        for column, value in cells.items():
            cursor.execute(f"UPDATE changes SET {column} = ?", (value,))  # noqa: S608


@given(st.lists(EDITS, max_size=4, unique_by=lambda edit: edit.path))
def test_edits_survive(edits: list[ProposedEdit]) -> None:
    """Whatever the bytes of a text, what was proposed is what is read."""
    with TemporaryDirectory() as folder:
        database = open_database(f"{folder}/state.db", [journal.SCHEMA])
        table = ProposalTable(database)
        results = find(table, propose(table, wanted(*edits)))
        database.close()
    assert results.edits == tuple(edits)


def test_the_same_request_is_kept_once_while_it_is_open(table: ProposalTable) -> None:
    """What is proposed again is the open proposal, whatever the dream says of it this time."""
    first = propose(table, wanted(edit("a")))
    assert propose(table, replace(wanted(edit("a")), said="two", job="j2")) == first
    assert propose(table, wanted(edit("a"), directory="/b")) != first
    assert propose(table, wanted(edit("a", b"other"))) != first
    table.decide(decided(first, "rejected", "a"), 7.0)
    assert propose(table, wanted(edit("a"))) != first
    bare = propose(table, wanted())
    assert propose(table, wanted()) == bare


def test_a_directory_has_twenty_open_proposals_at_most(table: ProposalTable) -> None:
    """The oldest open one goes, is closed where something of it was decided; others stay."""
    first = propose(table, wanted(edit("first")))
    table.decide(decided(first, "accepted", "first"), 1.0)
    half = propose(table, wanted(edit("a"), edit("b")))
    table.decide(decided(half, "rejected", "b"), 2.0)
    ids = [propose(table, wanted(edit(f"n{n}"))) for n in range(22)]
    assert [results.id for results in table.of_directory("/a")] == ids[:1:-1]
    assert table.waiting() == {"/a": 20}
    old = table.of_directory("/a", decided=True)[-2:]
    assert [(results.id, results.state) for results in old] == [
        (half, "partly"),
        (first, "accepted"),
    ]
    assert table.refused_edits("/a") == {("b.md", BASE)}


def test_texts_that_are_too_large_are_not_kept(table: ProposalTable) -> None:
    """Report and problems stay, with a sentence about the texts."""
    large = replace(wanted(edit("a", b"x" * 5_000_000)), said="y" * 30_000)
    results = find(table, propose(table, large))
    assert (results.edits, len(results.said)) == ((), 20_000)
    assert results.problems == ("naïve", "the texts of 1 files are too large to be kept")
    odd = find(table, propose(table, wanted(ProposedEdit("a\udc80.md", b"x"))))
    assert odd.edits == ()


def test_what_was_refused_is_told_to_the_next_dream(table: ProposalTable) -> None:
    """Refusals come by decision, newest first, with what was wanted and of which text."""
    gone = replace(edit("b", None), reason="out of\ndate")
    merged = replace(edit("d", None), merged_into="a.md", reason="same")
    edits = (edit("a"), gone, edit("c"), merged, ProposedEdit("e.md", NEW))
    one = propose(table, wanted(*edits))
    table.decide(decided(one, "rejected", "a", "b", reason="I need both"), 5.0)
    table.decide(decided(one, "rejected", "c", "d", "e"), 6.0)
    other = propose(table, wanted(edit("x"), directory="/b"))
    table.decide(decided(other, "rejected", "x"), 7.0)
    reported = "change c.md; merge d.md into a.md; create e.md"
    assert table.refusals("/a", 5) == (
        RefusedEdits(("c.md", "d.md", "e.md"), reported, "", 6.0),
        RefusedEdits(("a.md", "b.md"), "change a.md; remove b.md: out of date", "I need both", 5.0),
    )
    again = propose(table, wanted(edit("a")))
    table.decide(decided(again, "rejected", "a"), 8.0)
    assert [results.paths for results in table.refusals("/a", 9)] == [
        ("a.md",),
        ("c.md", "d.md", "e.md"),
        ("b.md",),
    ]
    assert [results.paths for results in table.refusals("/a", 1)] == [("a.md",)]
    changed = {(f"{name}.md", BASE) for name in "abcd"}
    assert table.refused_edits("/a") == changed | {("e.md", "")}
    assert table.refused_edits("/c") == frozenset()


def prune(database: Database, most: int) -> int:
    """Prune until nothing is left to do; return how many sets went."""
    retention = Retention(database, most)
    gone, batch = 0, retention.batch()
    while batch.more:
        gone, batch = gone + batch.changes, retention.batch()
    return gone


def test_what_was_decided_is_forgotten_with_the_history(
    database: Database, table: ProposalTable
) -> None:
    """A decided proposal, its texts and refusals go where there is too much; open ones stay."""
    name = propose(table, wanted(edit("a", b"refused")))
    kept = propose(table, wanted(edit("b", b"open")))
    table.decide(decided(name, "rejected", "a"), 5.0)
    assert prune(database, 2**40) == 0
    assert prune(database, 0) == 1
    assert [results.id for results in table.of_directory("/a", decided=True)] == [kept]
    assert table.refused_edits("/a") == frozenset()
    assert Journal(database).blob(sha256(b"refused")) is None
    assert find(table, kept).edits == (edit("b", b"open"),)


def test_nothing_of_the_journal_sees_a_proposal(database: Database, table: ProposalTable) -> None:
    """It is no change, nothing to roll forward, and makes no path known."""
    name = propose(table, wanted(edit("a")))
    book = Journal(database)
    table.decide(decided(name, "rejected"), 2.0)
    propose(table, wanted(edit("b")))
    assert (book.pending(), history(book, "/a"), book.change("/a", "c1")) == ((), (), None)
    assert book.known_paths("/a", ["a.md", "b.md"]) == frozenset()
    assert all(step.temp == "" for step in book.steps(2))


def test_a_purged_text_makes_a_proposal_unreadable(
    database: Database, table: ProposalTable
) -> None:
    """The text is gone, the purge names the proposal, and it can only be rejected."""
    name = propose(table, wanted(edit("a", b"a secret")))
    purge = Purge(database)
    (body,) = purge.removable_texts(purge.hashes_of_bodies(lambda text: b"secret" in text))
    assert (body.paths, body.changes) == (("a.md",), (name,))
    purge.remove([body.hash])
    assert find(table, name).edits is None
    table.decide(decided(name, "rejected"), 2.0)
    assert find(table, name).state == "rejected"
    assert table.refused_edits("/a") == frozenset()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 100_000, '{"files": 3}', '{"files": []}', '{"files": [{}, {}]}', None, 7]
    + [f'{{"files": [{{"state": {state}}}]}}' for state in ('"odd"', "[]", "1")],
)
def test_a_damaged_row_can_only_be_rejected(
    table: ProposalTable, database: Database, text: object
) -> None:
    """It has no edits, accepting it does nothing, and rejecting it ends it."""
    name = propose(table, wanted(edit("a")))
    damage(database, proposal=text, at=9e999)
    results = find(table, name)
    assert (results.state, results.edits, results.problems) == ("open", None, ())
    table.decide(decided(name, "accepted", "a"), 2.0)
    assert find(table, name).state == "open"
    table.decide(decided(name, "rejected", reason="broken"), 3.0)
    assert (find(table, name).state, find(table, name).reason) == ("rejected", "broken")
    assert table.refusals("/a", 5) == ()


@pytest.mark.parametrize(
    "damaged", ["path = 'b.md'", "path = x'07'", "after = 'odd'", "after = x'00'"]
)
def test_damaged_files_make_a_proposal_unreadable(
    table: ProposalTable, database: Database, damaged: str
) -> None:
    """Two files of one name, and a text that is not there, are nothing that could be accepted."""
    name = propose(table, wanted(edit("a"), edit("b")))
    with database.transaction() as cursor:
        cursor.execute(f"UPDATE change_files SET {damaged} WHERE path = 'a.md'")  # noqa: S608
    assert find(table, name).edits is None


def test_words_that_cannot_be_sent_are_mended(table: ProposalTable) -> None:
    """A lone surrogate in what a dream said becomes a question mark."""
    odd = replace(wanted(edit("a")), said="a\udc80", problems=("b\ud800",))
    results = find(table, propose(table, odd))
    assert (results.said, results.problems) == ("a?", ("b?",))
