"""Proposals of dreams in the state file."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memd.core.values import ProposalDecided
from memd.state import dreams
from memd.state.ages import Bound
from memd.state.database import Database, open_database
from memd.state.dreams import DreamTable
from memd.state.proposals import Proposal, Refusal
from memd.state.proposed import ProposedEdit

OLD = """
CREATE TABLE proposals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    job TEXT NOT NULL,
    at REAL NOT NULL,
    content TEXT NOT NULL
) STRICT;
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open a state file with the tables of dreams alone."""
    opened = open_database(str(tmp_path / "state.db"), [dreams.SCHEMA])
    yield opened
    opened.close()


@pytest.fixture
def table(database: Database) -> DreamTable:
    """Return the table of dreams."""
    return DreamTable(database)


def content(*edits: ProposedEdit, **more: Any) -> dict[str, Any]:
    """Return what a dream proposes."""
    return {"problems": ["naïve"], "edits": [edit.facts() for edit in edits], **more}


def edit(name: str, body: bytes | None = b"new", base: str = "0") -> ProposedEdit:
    """Return an edit of one memory."""
    return ProposedEdit(f"{name}.md", body, base, b"old")


def decided(proposal: str, state: str, *names: str, reason: str = "") -> ProposalDecided:
    """Return a decision about some memories."""
    paths = json.dumps([f"{name}.md" for name in names])
    return ProposalDecided(proposal, state, paths, reason)


def read(table: DreamTable, proposal: str) -> Proposal:
    """Return a proposal that is there."""
    found = table.proposal(proposal)
    assert found is not None
    return found


def test_proposals_are_kept_by_directory(table: DreamTable) -> None:
    """A proposal comes back as it was kept, the newest first, for its directory alone."""
    first = table.propose("/a", "j1", 5.0, content(edit("a"), said="Hm", engine="fixed"))
    table.propose("/b", "j2", 6.0, content(edit("a")))
    third = table.propose("/a", "j3", 7.0, content(edit("b")))
    found = table.proposals("/a")
    assert [proposal.id for proposal in found] == [third, first]
    old = found[1]
    assert (old.job, old.at, old.directory, old.state, old.decided) == ("j1", 5, "/a", "open", None)
    assert (old.problems, old.words("said"), old.words("none")) == (("naïve",), "Hm", "")
    assert old.edits == (edit("a"),)
    assert read(table, first) == old
    assert [table.proposal(name) for name in ("p9", "9", "p", "p1; DROP", "")] == [None] * 5
    assert table.waiting() == {"/a": 2, "/b": 1}


def test_the_same_wish_is_kept_once_while_it_is_open(table: DreamTable) -> None:
    """What is proposed again is the open proposal, whatever the dream says of it this time."""
    first = table.propose("/a", "j1", 5.0, content(edit("a"), said="one"))
    assert table.propose("/a", "j2", 6.0, content(edit("a"), said="two")) == first
    assert table.propose("/b", "j2", 6.0, content(edit("a"))) != first
    assert table.propose("/a", "j2", 6.0, content(edit("a", b"other"))) != first
    table.decide(decided(first, "rejected", "a"), 7.0)
    assert table.propose("/a", "j3", 8.0, content(edit("a"))) != first
    bare = table.propose("/a", "j4", 9.0, {"problems": ["x"], "edits": []})
    assert table.propose("/a", "j5", 9.0, {"edits": [], "problems": ["x"]}) == bare


def test_a_directory_has_twenty_open_proposals_at_most(table: DreamTable) -> None:
    """The oldest open one goes; what is decided stays and does not count."""
    first = table.propose("/a", "j", 1.0, content(edit("first")))
    table.decide(decided(first, "accepted", "first"), 1.0)
    ids = [table.propose("/a", "j", 2.0, content(edit(f"n{n}"))) for n in range(22)]
    assert [found.id for found in table.proposals("/a")] == ids[:1:-1]
    assert table.waiting() == {"/a": 20}
    assert table.proposals("/a", only="")[-1].id == first
    assert [found.id for found in table.proposals("/a", only="accepted")] == [first]


def test_texts_that_are_too_large_are_not_kept(table: DreamTable) -> None:
    """Report and problems stay, with a sentence about the texts."""
    large = content(edit("a", b"x" * 5_000_000), said="y" * 30_000, engine=7)
    found = read(table, table.propose("/a", "j", 1.0, large))
    assert found.edits == ()
    assert found.problems == ("naïve", "the texts of 1 files are too large to be kept")
    assert (len(found.words("said")), found.words("engine")) == (20_000, "")
    table.propose("/a", "j", 1.0, {"edits": "x" * 5_000_000})
    assert table.proposals("/a")[0].problems == ("the texts of 0 files are too large to be kept",)


def test_a_proposal_is_decided_file_by_file(table: DreamTable) -> None:
    """It is open until its last file is decided, and nothing is decided twice."""
    name = table.propose("/a", "j", 1.0, content(edit("a"), edit("b"), edit("c", None)))
    table.decide(decided(name, "accepted", "a"), 5.0)
    assert (read(table, name).state, read(table, name).decided) == ("open", 5.0)
    table.decide(decided(name, "rejected", "a", "b", reason="no"), 6.0)
    states = [found.state for found in read(table, name).edits or ()]
    assert states == ["accepted", "rejected", "open"]
    table.decide(decided(name, "rejected", "c"), 7.0)
    last = read(table, name)
    assert (last.state, last.reason, last.decided) == ("partly", "no", 7.0)
    for again in (decided(name, "accepted", "b"), decided("p99", "accepted", "a")):
        table.decide(again, 8.0)
    for odd in ("null", "[1]", "["):
        table.decide(ProposalDecided(name, "accepted", odd), 8.0)
    table.decide(decided(name, "partly", "a"), 8.0)
    assert read(table, name) == last
    assert table.proposals("/a") == ()


def test_what_was_refused_is_told_to_the_next_dream(table: DreamTable) -> None:
    """Refusals come by decision, newest first, with what was wanted and of which text."""
    one = table.propose("/a", "j", 1.0, content(edit("a"), edit("b", None), edit("c")))
    table.decide(decided(one, "rejected", "a", "b", reason="I need both"), 5.0)
    table.decide(decided(one, "rejected", "c"), 6.0)
    table.decide(decided(table.propose("/b", "j", 1.0, content(edit("x"))), "rejected", "x"), 7.0)
    assert table.rejected("/a", 5) == (
        Refusal(("c.md",), "change c.md", "", 6.0),
        Refusal(("a.md", "b.md"), "change a.md; remove b.md", "I need both", 5.0),
    )
    assert [found.paths for found in table.rejected("/a", 1)] == [("c.md",)]
    assert table.refused_edits("/a") == {("a.md", "0"), ("b.md", "0"), ("c.md", "0")}
    assert table.refused_edits("/c") == frozenset()


def test_what_was_decided_is_forgotten_in_time(table: DreamTable) -> None:
    """A decided proposal and its refusals go after the journal's days; open ones stay."""
    name = table.propose("/a", "j", 1.0, content(edit("a")))
    kept = table.propose("/a", "j", 1.0, content(edit("b")))
    table.decide(decided(name, "rejected", "a"), 5.0)
    assert table.prune(Bound(5.0, proposal=9)) == 0
    assert table.prune(Bound(6.0)) == 0
    assert table.prune(Bound(6.0, proposal=9)) == 2
    assert [found.id for found in table.proposals("/a", only="")] == [kept]
    assert table.refused_edits("/a") == frozenset()


def test_an_older_state_file_is_understood(tmp_path: Path) -> None:
    """Proposals that an older memd kept are open, and can be decided."""
    path = str(tmp_path / "state.db")
    row = {"edits": [{"path": "a.md", "content": "x", "base": None}], "merged": []}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
        connection.execute(
            "INSERT INTO proposals VALUES (7, '/a', 'j', 5.0, ?)", (json.dumps(row),)
        )
        connection.commit()
    database = open_database(path, [dreams.SCHEMA])
    table = DreamTable(database)
    (found,) = table.proposals("/a")
    assert (found.id, found.state, found.edits) == ("p7", "open", (ProposedEdit("a.md", b"x"),))
    table.decide(decided("p7", "rejected", "a", reason="old"), 6.0)
    assert (read(table, "p7").state, read(table, "p7").reason) == ("rejected", "old")
    assert table.propose("/a", "j", 7.0, content(edit("b"))) == "p8"
    database.close()


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"edits": 3, "problems": 4}'])
def test_a_damaged_row_can_only_be_rejected(
    table: DreamTable, database: Database, text: str
) -> None:
    """It has no edits, accepting it does nothing, and rejecting it ends it."""
    name = table.propose("/a", "j", 1.0, content(edit("a")))
    with database.transaction() as cursor:
        cursor.execute("UPDATE proposals SET content = ?, at = 9e999", (text,))
        cursor.execute("UPDATE proposal_states SET state = 'odd', digest = ''")
    found = read(table, name)
    assert (found.state, found.edits, found.problems) == ("open", None, ())
    table.decide(decided(name, "accepted", "a"), 2.0)
    assert read(table, name).state == "open"
    table.decide(decided(name, "rejected", reason="broken"), 3.0)
    assert (read(table, name).state, read(table, name).reason) == ("rejected", "broken")
    assert table.rejected("/a", 5) == ()


def test_words_that_cannot_be_sent_are_mended(table: DreamTable) -> None:
    """A lone surrogate in what a dream said becomes a question mark; what is no text is left."""
    said = {"said": "a\udc80", "problems": ["b\ud800", 3], "edits": []}
    found = read(table, table.propose("/a", "j", 1.0, said))
    assert (found.words("said"), found.problems) == ("a?", ("b?",))
