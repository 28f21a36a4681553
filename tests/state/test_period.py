"""What happened in a span of time."""

import json
from typing import Any

import pytest

from memd.core.values import Actor, Provenance, Suggestion, SuggestionDecided
from memd.state import suggestions
from memd.state.database import Database
from memd.state.journal import Journal
from memd.state.period import OTHER_WORDS, Period, Span, SuggestionFates
from memd.state.records import PlannedChange, Step
from memd.state.suggestions import SuggestionTable

M = "/m"
ALL = Span(0.0, 1000.0)


def applied(database: Database, at: float, *steps: Step, **by: Any) -> None:
    """Journal a change set that was made, by a client unless something else is given."""
    journal = Journal(database)
    facts = {"actor": Actor.CLIENT, "directory": M} | by
    directory = facts.pop("directory")
    intent = PlannedChange(directory, at, Provenance(**facts), "", "ab", steps, {})
    journal.mark_applied(journal.record(intent), at)


def kinds(database: Database, span: Span = ALL) -> dict[str, list[str]]:
    """Return the paths of each list that is not empty."""
    events = Period(database).memories(span)
    lists = {name: getattr(events, name) for name in ("learnt", "changed", "merged", "removed")}
    return {name: [event.path for event in found] for name, found in lists.items() if found}


def dreamt(database: Database, at: float, directory: str, result: object) -> None:
    """Note that a dream ended."""
    database.write(
        "INSERT INTO jobs (kind, lane, directory, session, request, state, result, created, ended)"
        " VALUES ('dream', '', ?, '', '{}', 'completed', ?, ?, ?)",
        (directory, json.dumps(result), at, at),
    )


def test_each_memory_is_in_one_list(database: Database) -> None:
    """By what it was at the beginning of the span and is at its end, whatever came between."""
    applied(database, 5.0, *(Step(f"{n}.md", None, "0") for n in "acdemu"))
    applied(database, 20.0, Step("new.md", None, "1"), Step("a.md", "0", "2"))
    applied(database, 30.0, Step("new.md", "1", "3"), Step("passing.md", None, "4"))
    applied(database, 40.0, Step("passing.md", "4", None), Step("d.md", "0", None))
    applied(database, 50.0, Step("e.md", "0", None), actor=Actor.DREAM)
    dreamt(database, 50.0, M, {"change": "c5", "merged": [{"into": "a.md", "from": ["e.md"]}]})
    applied(database, 60.0, Step("m.md", "0", None), Step("moved.md", None, "0"))
    applied(database, 70.0, Step("u.md", "0", "7"))
    applied(database, 71.0, Step("u.md", "7", "0"), actor=Actor.UNDO)
    applied(database, 80.0, Step("MEMORY.md", "1", "2"))
    wanted = {"learnt": ["new.md"], "changed": ["moved.md", "a.md"]}
    wanted |= {"merged": ["e.md"], "removed": ["d.md"]}
    assert kinds(database, Span(10.0, 100.0)) == wanted
    assert kinds(database, Span(10.0, 100.0, M)) == wanted
    assert kinds(database, Span(10.0, 100.0, "/other")) == {}
    assert kinds(database, Span(75.0, 100.0)) == {}


@pytest.mark.parametrize(
    "by", [{"origin": "import:mem0"}, {"actor": Actor.TEAM}, {"actor": Actor.UNDO}]
)
def test_what_others_brought_was_not_learnt(database: Database, by: dict[str, Any]) -> None:
    """Nor changed nor removed: it came from an import or a team, or was taken back."""
    applied(database, 10.0, Step("a.md", None, "1"), Step("b.md", "1", "2"), **by)
    applied(database, 20.0, Step("c.md", "1", None), **by)
    assert kinds(database) == {}


def test_what_was_taken_back_was_not_learnt(database: Database) -> None:
    """A memory that came and was undone is in no list."""
    applied(database, 10.0, Step("a.md", None, "1"), actor=Actor.EXTRACT)
    assert kinds(database) == {"learnt": ["a.md"]}
    applied(database, 20.0, Step("a.md", "1", None), actor=Actor.UNDO)
    assert kinds(database) == {}


@pytest.mark.parametrize("result", [None, 5, {"merged": 3}, {"merged": [{"from": 1}, 7]}])
def test_damaged_rows_are_passed_over(database: Database, result: object) -> None:
    """A dream counts whatever its result holds; a time that is none is in no span."""
    dreamt(database, 10.0, M, result)
    dreamt(database, 5000.0, M, {})
    assert Period(database).memories(ALL).dreams == 1
    applied(database, 10.0, Step("a.md", None, "1"))
    database.write("UPDATE changes SET at = 'soon'")
    assert kinds(database) == {}


def test_fates_of_suggestions(database: Database) -> None:
    """What was made, accepted as it was or in other words, dismissed, and what waits now."""
    with database.transaction() as cursor:
        for number in range(4):
            suggestions.save(cursor, M, Suggestion("s", f"fact {number}", 1.0, "user"), 10.0)
    SuggestionTable(database).decide(M, [SuggestionDecided("s1", "dismissed")])
    applied(database, 20.0, Step("a.md", None, "1"), reason="accepted suggestion s2")
    applied(database, 30.0, Step("b.md", None, "1"), reason=f"accepted suggestion s3 {OTHER_WORDS}")
    assert Period(database).fates(ALL) == SuggestionFates(4, 1, 1, 1, 3)
    assert Period(database).fates(Span(15.0, 25.0, M)) == SuggestionFates(0, 1, 0, 0, 3)
    assert Period(database).fates(Span(0.0, 100.0, "/other")) == SuggestionFates()
