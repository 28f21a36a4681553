"""What syncs of team memory remember."""

from pathlib import Path

import pytest

from memd.base.team import (
    Base,
    Conflict,
    HeldEntry,
    LeftOut,
    Outgoing,
    PushBatch,
)
from memd.base.text import sha256
from memd.state.database import Database
from memd.state.teams import TeamTable, bases_moved, forget_bodies
from tests.bases import move_bases
from tests.store.bench import open_bench, topic

BODIES = {sha256(text): text for text in (b"one", b"two", b"three")}
ONE, TWO, THREE = BODIES
BASE = Base("a.md", ONE, 3, "anna", "laptop", 5.0)
OUT = PushBatch("id-1", 7.0, (Outgoing("b.md", TWO, None), Outgoing("a.md", THREE, 3)))


def test_a_pull_moves_all_in_one_transaction(database: Database) -> None:
    """Bases, what is held and conflicts become true together, with the id of the change."""
    table = TeamTable(database)
    move_bases(table, "/m", [BASE, Base("old.md", TWO, 1)])
    table.save("/m", HeldEntry("a.md", ONE, "removed"))
    table.save("/m", LeftOut("a.md", 2, ONE, "secret"))
    conflict = Conflict("c.md", ONE, TWO, at=3.0)
    held = HeldEntry("h.md", TWO, "removed")
    new = [Base("a.md", TWO, 4), Base("h.md", "", 5)]
    effect = bases_moved("/m", new, ["old.md"], [held], [conflict])
    with database.transaction() as cursor:
        effect(cursor, "c1")
    assert table.bases("/m") == {"a.md": Base("a.md", TWO, 4), "h.md": Base("h.md", "", 5)}
    assert (table.held("/m"), table.left_out("/m")) == ({"h.md": held}, {})
    assert table.conflicts("/m") == {"c.md": Conflict("c.md", ONE, TWO, change="c1", at=3.0)}
    move_bases(table, "/m", [Base("c.md", THREE, 9)])
    assert list(table.conflicts("/m")) == ["c.md"]
    table.drop("/m", Conflict, "c.md")
    assert table.conflicts("/m") == {}


def test_bodies_go_once_nothing_names_them(database: Database) -> None:
    """A text goes only once no base, batch or conflict of any directory names it."""
    table = TeamTable(database)
    table.keep("/m", BODIES)
    move_bases(table, "/m", [BASE])
    with database.transaction() as cursor:
        bases_moved("/m", conflicts=[Conflict("c.md", TWO, ONE)])(cursor, None)
    table.begin("/m", PushBatch("i", 1.0, (Outgoing("d.md", THREE, None),)), {})
    for expected in (BODIES.keys(), {ONE, TWO}, {ONE}):
        table.prune("/m")
        assert {key for key in BODIES if table.body("/m", key) == BODIES[key]} == expected
        if expected == {ONE, TWO}:
            table.drop("/m", Conflict, "c.md")
        table.end("/m", [], batch="i")


def test_a_text_of_the_history_is_given_for_its_own_directory(tmp_path: Path) -> None:
    """A hash alone gets nobody's text: a file below team/ of the directory must have had it."""
    with open_bench(tmp_path) as bench:
        shared = b"---\nname: a\ndescription: d\ntype: project\n---\n\none\n"
        bench.write("team/a.md", shared)
        bench.write("b.md", topic("b"))
        table = TeamTable(bench.database, bench.log.team_text)
        assert table.recorded(bench.directory, sha256(shared)) == shared
        assert table.recorded(bench.directory, sha256(topic("b"))) is None
        assert table.recorded("/other", sha256(shared)) is None


def test_a_purge_takes_the_bodies_of_a_team(database: Database) -> None:
    """The texts that a sync keeps go with their hash, and with a pattern that they have."""
    table = TeamTable(database)
    table.keep("/m", BODIES)
    with database.transaction() as cursor:
        forget_bodies(cursor, [ONE], lambda body: body == b"two")
    assert [table.body("/m", each) for each in (ONE, TWO, THREE)] == [None, None, b"three"]


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", b"[" * 9999, b'{"key": 1}', b"null"])
def test_a_damaged_row_does_nothing(database: Database, value: bytes) -> None:
    """A row that memd did not write is as if it were not there, and the others are read."""
    table = TeamTable(database)
    move_bases(table, "/m", [BASE, Base("b.md", TWO, 1)])
    table.begin("/m", OUT, {})
    table.save("/m", LeftOut("b.md", 1, TWO, "name"))
    database.write("UPDATE docs SET value = CAST(? AS TEXT) WHERE key <> 'a.md'", (value,))
    assert (table.bases("/m"), table.batch("/m"), table.left_out("/m")) == (
        {"a.md": BASE},
        None,
        {},
    )
    assert table.conflicts("/m") == {}
