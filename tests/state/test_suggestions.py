"""Rows of suggestions: filed with a change set, bounded, decided once."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import Suggestion, SuggestionDecided
from memd.state import effects, suggestions
from memd.state.database import Database, open_database
from memd.state.suggestions import (
    DISMISSED,
    OPEN_MOST,
    TAKEN,
    SuggestionCounts,
    SuggestionTable,
)

NOW = 1_772_450_000.0


def file(database: Database, *texts: str, at: float = NOW, origin: str = "user") -> SuggestionTable:
    """File suggestions as a change set does."""
    wanted = [Suggestion("s", text, at, origin, "feedback", "unmarked") for text in texts]
    with database.transaction() as cursor:
        effects.carry_out(cursor, "/m", wanted, "c1", at)
    return SuggestionTable(database)


def texts(table: SuggestionTable) -> list[str]:
    """Return the open suggestions."""
    return [each.text for each in table.open_in("/m")]


def test_a_suggestion_says_what_was_said_where_and_when(database: Database) -> None:
    """All of its facts come back, in its directory alone."""
    table = file(database, "Tabs, never spaces.")
    (each,) = table.open_in("/m")
    assert (each.text, each.session, each.at) == ("Tabs, never spaces.", "s", NOW)
    assert (each.origin, each.type, each.reason) == ("user", "feedback", "unmarked")
    assert table.open_in("/other") == ()


def test_the_same_text_twice_is_one(database: Database) -> None:
    """Case, spaces and signs do not make another text; a model's wording replaces no quotation."""
    table = file(database, "Tabs, never spaces.", "tabs never   SPACES!", "… ?!", "")
    assert texts(table) == ["tabs never   SPACES!"]
    file(database, "TABS NEVER SPACES", origin="assistant")
    assert texts(table) == ["tabs never   SPACES!"]


def test_the_oldest_go_first(database: Database) -> None:
    """There are never more than the bound, and what went is counted and holds no text."""
    table = file(database, *(f"rule {number}" for number in range(OPEN_MOST + 3)))
    assert len(texts(table)) == OPEN_MOST
    assert not {"rule 0", "rule 1", "rule 2"} & set(texts(table))
    assert table.counts() == SuggestionCounts(open=OPEN_MOST, expired=3)
    rows = database.read("SELECT DISTINCT text FROM suggestions WHERE state = 'expired'")
    assert [row["text"] for row in rows] == [""]


def test_what_was_decided_does_not_come_back(database: Database) -> None:
    """A text that was taken or dismissed is never open again, and is decided only once."""
    table = file(database, "Tabs.", "Spaces.")
    spaces, tabs = (each.id for each in table.open_in("/m"))
    wanted = [SuggestionDecided(spaces, DISMISSED), SuggestionDecided(tabs, TAKEN)]
    assert table.decide("/other", wanted) == frozenset()
    assert table.decide("/m", [*wanted, SuggestionDecided(tabs, "open")]) == {spaces, tabs}
    assert table.decide("/m", wanted) == frozenset()
    file(database, "tabs", "spaces")
    assert texts(table) == []
    assert table.counts() == SuggestionCounts(taken=1, dismissed=1)


def test_a_suggestion_goes_out_twice_at_most(database: Database) -> None:
    """Each time it is to another session, and saying it again does not begin anew."""
    table = file(database, "Tabs.")
    (each,) = table.open_in("/m")
    going = [table.surface([each.id], name) for name in ("a", "a", "b", "b", "c")]
    assert going == [{each.id}, set(), {each.id}, set(), set()]
    file(database, "Tabs.")
    assert table.surface([each.id], "d") == set()
    assert table.counts() == SuggestionCounts(open=1, offered=2)
    assert table.open_in("/m")[0].offered == ("a", "b")


@contextmanager
def emptied() -> Iterator[Database]:
    """Open a state file for one example of a property."""
    with TemporaryDirectory() as folder:
        database = open_database(f"{folder}/state.db", [suggestions.SCHEMA])
        yield database
        database.close()


@given(st.text(max_size=30), st.text(max_size=5), st.floats() | st.integers())
def test_no_text_keeps_a_change_from_coming_true(text: str, session: str, at: float) -> None:
    """Whatever a suggestion holds, its row is written, or it is none."""
    with emptied() as database:
        wanted = effects.from_text(effects.to_text([Suggestion(session, text, at, text)]))
        with database.transaction() as cursor:
            effects.carry_out(cursor, "/m", wanted, "c1", NOW)
        table = SuggestionTable(database)
        assert len(table.open_in("/m")) == bool(suggestions.letters(text))
        table.surface(["s1", "", "s", "s\u0663", text], session)


@given(st.lists(st.sampled_from("abcd"), max_size=8))
def test_a_damaged_row_harms_no_other(words: list[str]) -> None:
    """A state or an origin that nobody knows is read as it stands."""
    with emptied() as database:
        table = file(database, "Tabs.", "Spaces.")
        with database.transaction() as cursor:
            state = "".join(words)
            cursor.execute(
                "UPDATE suggestions SET state = ?, at = 9e999 WHERE number = 1", (state,)
            )
        assert texts(table) == ["Spaces."]
        assert table.counts().open == 1
