"""What the journal answers to the questions of people."""

import pytest

from memd.core.values import Actor, Provenance
from memd.state.database import Database
from memd.state.history import Filter, JournalHistory, compose
from memd.state.journal import Journal
from memd.state.records import FAILED, ChangeRecord, PlannedChange, Step

DREAM = Provenance(Actor.DREAM, "memd", "s2")
PERSON = Provenance(Actor.CLIENT, "editor", "s1")


@pytest.fixture
def history(database: Database) -> JournalHistory:
    """Fill a journal: c1 to c4 in /m at 10, 20, 30 and 25 (the clock was put back), c5 in /n."""
    book = Journal(database)
    sets = [
        ("/m", 10.0, PERSON, (Step("a.md", None, "1"), Step("MEMORY.md", None, "i1"))),
        ("/m", 20.0, DREAM, (Step("a.md", "1", "2"), Step("b.md", None, "3"))),
        ("/m", 30.0, PERSON, (Step("b.md", "3", None),)),
        ("/m", 25.0, PERSON, (Step("a.md", "2", "1"),)),
        ("/n", 40.0, PERSON, (Step("a.md", None, "1"),)),
    ]
    for directory, at, by, steps in sets:
        book.mark_applied(
            book.record(PlannedChange(directory, at, by, "", "0123abcd", steps, {})), at
        )
    failed = PlannedChange("/m", 50.0, PERSON, "", "0123abcd", (Step("a.md", "1", "9"),), {})
    book.mark_ended(book.record(failed), FAILED)
    return JournalHistory(book)


def test_an_answer_is_cut_where_sets_are_very_large(database: Database) -> None:
    """One set is always told; more only while their files fit into an answer."""
    book = Journal(database)
    steps = tuple(Step(f"{number}.md", None, "1") for number in range(6000))
    for _ in range(2):
        book.mark_applied(
            book.record(PlannedChange("/m", 1.0, PERSON, "", "0123abcd", steps, {})), 1.0
        )
    assert [change.id for change in JournalHistory(book).changes(Filter("/m"), 50)] == ["c2"]


def test_a_time_stands_for_the_last_set_up_to_it(history: JournalHistory) -> None:
    """Order is by number: a clock that was put back does not hide what came later."""
    times = (9.0, 10.0, 26.0, 1e9)
    assert [history.last_number("/m", at) for at in times] == [0, 1, 4, 4]
    assert history.last_number("/m") == 4
    assert [record.id for record in history.sets_between("/m", 2, 3)] == ["c2", "c3"]


def test_the_sets_of_a_file_hold_its_steps_and_the_index(
    history: JournalHistory, database: Database
) -> None:
    """A file's sets come oldest first without the other files; rows that make no sense go."""
    results = history.sets_of_file("/m", "a.md")
    assert [[step.path for step in record.steps] for record in results] == [
        ["a.md", "MEMORY.md"],
        ["a.md"],
        ["a.md"],
    ]
    with database.transaction() as cursor:
        cursor.execute("UPDATE change_files SET before = x'ff' WHERE path = 'a.md' AND change = 2")
    assert [record.id for record in history.sets_of_file("/m", "a.md")] == ["c1", "c4"]


@pytest.mark.parametrize(
    ("step", "actor", "known"),
    [
        (Step("a.md", "1", "2"), Actor.DREAM, True),
        (Step("b.md", None, "3"), Actor.DREAM, True),
        (Step("a.md", "1", "9"), Actor.DREAM, False),
        (Step("a.md", "7", "2"), Actor.DREAM, False),
        (Step("a.md", "1", None), Actor.DREAM, False),
        (Step("b.md", "3", None), Actor.DREAM, False),
        (Step("b.md", "3", None), Actor.CLIENT, True),
        (Step("MEMORY.md", None, "another"), Actor.CLIENT, True),
        (Step("MEMORY.md", "i1", "i1"), Actor.CLIENT, False),
    ],
)
def test_a_step_that_was_made_before_is_known(
    history: JournalHistory, step: Step, actor: Actor, *, known: bool
) -> None:
    """Path, actor and both ends must be the same; of the index only what it began with."""
    assert history.repeated_paths("/m", actor, [step]) == (
        frozenset({step.path}) if known else frozenset()
    )
    assert history.repeated_paths("/n", Actor.DREAM, [step]) == frozenset()


def test_a_gap_between_sets_is_told() -> None:
    """A file that changed unseen between two sets is no step of the whole, and is named."""
    steps = (
        (Step("a.md", "1", "2"), Step("MEMORY.md", "i1", "i2")),
        (Step("a.md", "7", "8"), Step("b.md", "1", "2", conflict=True)),
        (Step("MEMORY.md", "i9", "i3"), Step("c.md", "1", "2")),
    )
    span = compose(
        [ChangeRecord(n, "/m", "applied", 1.0, DREAM, "", s) for n, s in enumerate(steps)]
    )
    assert span is not None
    assert [step.path for step in span.record.steps] == ["c.md"]
    assert (span.gaps, span.first_index) == (("a.md",), "i1")
