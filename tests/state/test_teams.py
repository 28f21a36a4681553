"""What syncs of team memory remember."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.team import (
    Base,
    Conflict,
    HeldEntry,
    LeftOut,
    Outgoing,
    PushBatch,
    moved,
)
from memd.base.text import sha256
from memd.base.values import Actor, Provenance, TeamMoved
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.purge import Purge
from memd.state.records import PlannedChange, Step
from memd.state.retention import Pruned, Retention
from memd.state.schemas import SCHEMAS
from memd.state.teams import TeamTable
from tests.bases import move_bases

BODIES = {sha256(text): text for text in (b"one", b"two", b"three")}
ONE, TWO, THREE = BODIES
BASE = Base("a.md", ONE, 3, "anna", "laptop", 5.0)
OUT = PushBatch("id-1", 7.0, (Outgoing("b.md", TWO, None), Outgoing("a.md", THREE, 3)))


def test_a_pull_moves_all_with_its_change_set(database: Database) -> None:
    """Bases, what is held and conflicts become true when the set is applied, and never before."""
    table, journal = TeamTable(database), Journal(database)
    move_bases(table, "/m", [BASE, Base("old.md", TWO, 1)])
    table.save("/m", HeldEntry("a.md", ONE, "removed"))
    table.save("/m", LeftOut("a.md", 2, ONE, "secret"))
    conflict = Conflict("c.md", ONE, TWO, at=3.0)
    held = HeldEntry("h.md", TWO, "removed")
    effect = moved([Base("a.md", TWO, 4), Base("h.md", "", 5)], ["old.md"], [held], [conflict])
    by = Provenance(Actor.TEAM)
    record = journal.record(PlannedChange("/m", 1.0, by, "", "0123abcd", (), {}, (effect,)))
    assert table.bases("/m")["a.md"] == BASE
    journal.mark_applied(record, 2.0)
    assert table.bases("/m") == {"a.md": Base("a.md", TWO, 4), "h.md": Base("h.md", "", 5)}
    assert (table.held("/m"), table.left_out("/m")) == ({"h.md": held}, {})
    assert table.conflicts("/m") == {"c.md": Conflict("c.md", ONE, TWO, change="c1", at=3.0)}
    move_bases(table, "/m", [Base("c.md", THREE, 9)])
    assert list(table.conflicts("/m")) == ["c.md"]
    table.drop("/m", Conflict, "c.md")
    assert table.conflicts("/m") == {}


def test_bodies_outlive_the_journal_while_something_names_them(database: Database) -> None:
    """Retention takes a body only once no base, batch or conflict of any directory names it."""
    table = TeamTable(database)
    table.keep("/m", BODIES)
    move_bases(table, "/m", [BASE])
    journal, by = Journal(database), Provenance(Actor.TEAM)
    effect = moved(conflicts=[Conflict("c.md", TWO, ONE)])
    journal.record_effects(PlannedChange("/m", 1.0, by, "", "", (), {}, (effect,)))
    table.begin("/m", PushBatch("i", 1.0, (Outgoing("d.md", THREE, None),)), {})
    for expected in (BODIES.keys(), {ONE, TWO}, {ONE}):
        table.prune("/m")
        prune(database)
        assert {key for key in BODIES if table.body("/m", key) == BODIES[key]} == expected
        if expected == {ONE, TWO}:
            table.drop("/m", Conflict, "c.md")
        table.end("/m", [], batch="i")


def test_a_text_of_the_journal_is_given_for_its_own_file(database: Database) -> None:
    """A hash alone gets nobody's text: the file and its directory must have had it."""
    table, journal = TeamTable(database), Journal(database)
    steps = (Step("team/a.md", ONE, TWO), Step("b.md", None, THREE))
    by = Provenance(Actor.CLIENT)
    journal.record(PlannedChange("/m", 1.0, by, "", "", steps, BODIES, ()))
    assert [table.recorded("/m", "a.md", each) for each in (ONE, TWO)] == [b"one", b"two"]
    assert table.recorded("/m", "a.md", THREE) is None
    assert table.recorded("/m", "b.md", THREE) is None
    assert table.recorded("/other", "a.md", ONE) is None


def test_a_purge_takes_the_bodies_of_a_team_file(database: Database) -> None:
    """The bodies that a sync names for a file are purged with it, and the secret in any row."""
    table, purge = TeamTable(database), Purge(database)
    table.keep("/m", BODIES)
    move_bases(table, "/m", [BASE])
    table.begin("/m", OUT, {})
    table.save("/m", HeldEntry("x.md", TWO, "secret", "sesame-4711"))
    assert purge.hashes_of_path("/m", "team/a.md") == {ONE, THREE}
    purge.remove([ONE], lambda text: text.replace("sesame-4711", "[x]"))
    assert (table.body("/m", ONE), table.body("/m", THREE)) == (None, b"three")
    assert table.held("/m")["x.md"].detail == "[x]"


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", b"[" * 9999, b'{"key": 1}', b"null"])
def test_a_damaged_row_does_nothing(database: Database, value: bytes) -> None:
    """A row that memd did not write is as if it were not there, and the others are read."""
    table = TeamTable(database)
    move_bases(table, "/m", [BASE, Base("b.md", TWO, 1)])
    table.begin("/m", OUT, {})
    table.save("/m", LeftOut("b.md", 1, TWO, "name"))
    database.write("UPDATE team_rows SET value = ? WHERE key <> 'a.md'", (value,))
    assert (table.bases("/m"), table.batch("/m"), table.left_out("/m")) == (
        {"a.md": BASE},
        None,
        {},
    )
    assert table.conflicts("/m") == {}


@given(st.text(max_size=20) | st.sampled_from(["[" * 9999, '["a"]', '[{"key": "a.md"}]', "[1]"]))
def test_a_damaged_effect_does_nothing(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """An effect whose lists are none moves nothing."""
    database = open_database(str(tmp_path_factory.mktemp("s") / "state.db"), SCHEMAS)
    move_bases(TeamTable(database), "/m", [BASE])
    by = Provenance(Actor.TEAM)
    effect = TeamMoved(text, "{}" if text.startswith('["a') else text, json.dumps(text), text)
    Journal(database).record_effects(PlannedChange("/m", 1.0, by, "", "", (), {}, (effect,)))
    assert TeamTable(database).bases("/m") == {"a.md": BASE}
    database.close()


def prune(database: Database) -> None:
    """Let the journal forget all that it may."""
    retention, total = Retention(database, 0), Pruned(more=True)
    while total.more:
        total += retention.batch()
