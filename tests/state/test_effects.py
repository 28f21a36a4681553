"""Effects of a change set."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import (
    Actor,
    CursorMove,
    Effect,
    JobEnd,
    LockTaken,
    ProposalDecided,
    Provenance,
    Suggestion,
    SuggestionDecided,
    TeamMoved,
)
from memd.state import cursors, dreams, effects, job_rows, jobs, journal
from memd.state.database import open_database
from memd.state.proposals import Proposal, ProposalTable
from memd.state.proposed import ProposedEdit

TEXT = st.text(max_size=8)
EFFECTS = st.lists(
    st.builds(CursorMove, TEXT, TEXT, st.integers(0, 2**40), TEXT)
    | st.builds(JobEnd, TEXT, TEXT, TEXT)
    | st.builds(LockTaken, TEXT, st.integers())
    | st.builds(ProposalDecided, TEXT, TEXT, TEXT, TEXT)
    | st.builds(Suggestion, TEXT, TEXT, st.floats(0, 1e10) | st.integers(0, 9), TEXT, TEXT)
    | st.builds(SuggestionDecided, TEXT, TEXT)
    | st.builds(TeamMoved, TEXT, TEXT, TEXT, TEXT),
    max_size=3,
)


@given(EFFECTS)
def test_effects_survive_their_text(wanted: list[Effect]) -> None:
    """What was recorded is what will be carried out."""
    assert effects.from_text(effects.to_text(wanted)) == tuple(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[1, null, []]",
        '[{"kind": "cursor"}]',
        '[{"kind": "job", "job": 1, "state": "", "result": ""}]',
        '[{"kind": "lock", "directory": "/m", "taken_ns": "1"}]',
        '[{"kind": "lock", "directory": "/m", "taken_ns": true}]',
        '[{"kind": "shell", "command": "true"}]',
        "[" * 100_000,
    ],
)
def test_a_hostile_text_has_no_effects(text: str) -> None:
    """What memd did not write itself is carried out by nobody."""
    assert effects.from_text(text) == ()


def test_a_job_ends_with_the_change_it_made(tmp_path: Path) -> None:
    """The result of a job names its change; a result that is no object stays as it is."""
    database = open_database(str(tmp_path / "state.db"), [cursors.SCHEMA, job_rows.SCHEMA])
    table = jobs.JobTable(database)
    new = jobs.NewJob("extract", "/m", "/m", "s", {})
    first, second = table.add(new, 1.0), table.add(new, 1.0)
    with database.transaction() as cursor:
        ends = (JobEnd(first, "done", '{"saved": []}'), JobEnd(second, "done", "[]"))
        effects.carry_out(cursor, "/m", ends, "c7", 5.0)
        effects.carry_out(cursor, "/m", (CursorMove("s", "t", 1, "m"),), None, 5.0)
    rows = database.read("SELECT state, result FROM jobs ORDER BY number")
    assert [row["state"] for row in rows] == ["done", "done"]
    assert [json.loads(row["result"]) for row in rows] == [{"saved": [], "change": "c7"}, []]
    assert cursors.Cursors(database).get("/m", "s") == CursorMove("s", "t", 1, "m")
    database.close()


def test_a_locks_time_stands_with_the_change(tmp_path: Path) -> None:
    """The time of a dream is what its lock gets back once its change is true, and not before."""
    database = open_database(str(tmp_path / "state.db"), [cursors.SCHEMA, dreams.SCHEMA])
    table = dreams.DreamTable(database)
    table.remember(dreams.LockRow("/m", 7, 2**70, None))
    assert not table.locks()[0].finished
    with database.transaction() as cursor:
        effects.carry_out(cursor, "/real/m", (LockTaken("/m", 2**70),), "c7", 5.0)
    assert table.locks() == (dreams.LockRow("/m", 7, 2**70, 2**70),)
    assert table.locks()[0].finished
    database.close()


def test_a_decision_stands_with_the_change(tmp_path: Path) -> None:
    """What a person accepted of a proposal is accepted once the change is true."""
    database = open_database(str(tmp_path / "state.db"), [journal.SCHEMA])
    table = ProposalTable(database)
    wanted = Proposal("", "/m", 1.0, edits=(ProposedEdit("a.md", b"x"),))
    name = table.propose(wanted, Provenance(Actor.DREAM))
    with database.transaction() as cursor:
        decided = ProposalDecided(name, "accepted", '["a.md"]')
        effects.carry_out(cursor, "/real/m", (decided,), "c7", 5.0)
    (results,) = table.of_directory("/m", decided=True)
    assert (results.state, results.decided) == ("accepted", 5.0)
    database.close()


def test_a_cursor_of_before_has_no_message() -> None:
    """What an older version wrote without the message's id is still a cursor that moves."""
    old = {"kind": "cursor", "session": "s", "source": "t", "position": 1, "marker": "m"}
    (results,) = effects.from_text(json.dumps([old]))
    assert results == CursorMove("s", "t", 1, "m")
    (new,) = effects.from_text(json.dumps([{**old, "message": "u7"}]))
    assert isinstance(new, CursorMove)
    assert new.message == "u7"
    assert effects.from_text(json.dumps([{**old, "more": 1}])) == ()
