"""Small facts as documents of the state file."""

from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Struct

from memd.daemon.app import SCHEMAS
from memd.instructions.reading import Approval
from memd.projects.known import Visit, last_visits, remember_visit
from memd.state import docs
from memd.state.database import Database, open_database
from memd.state.docs import Docs

HERE = Visit("/p", "c", {"MEMD_BASE_DIR": "/b"}, session="s")
DAY = 86_400.0


class Fact(Struct, frozen=True):
    """A fact of these tests."""

    text: str


class Other(Struct, frozen=True):
    """Another fact with the same fields."""

    text: str


def test_a_document_is_of_one_kind_place_and_key(database: Database) -> None:
    """The last value counts, of the same class, place and key alone, also after a restart."""
    table = Docs(database)
    for text in ("first", "last"):
        table.put(Fact(text), "/m", "k")
    table.put(Other("other"), "/m", "k")
    table.put(Fact("elsewhere"), "/n", "k")
    database.close()
    table = Docs(open_database(database.path, SCHEMAS))
    assert table.get(Fact, "/m", "k") == Fact("last")
    assert (table.get(Fact, "/m"), table.get(Fact, "/", "k")) == (None, None)
    assert table.list_all(Fact) == {("/m", "k"): Fact("last"), ("/n", "k"): Fact("elsewhere")}
    assert [table.delete(Fact, "/m", "k") for _ in range(2)] == [True, False]
    assert table.list_in(Other, "/m") == {"k": Other("other")}


def test_the_newest_are_those_that_were_put_last(database: Database) -> None:
    """A document that is put again is the newest, and the oldest of the kind are deleted."""
    table = Docs(database)
    for key in ("a", "b", "c", "a"):
        table.put(Fact(key), "/m", key)
    table.put(Fact("d"), "/n", "d")
    table.put(Other("x"), "/m", "x")
    assert list(table.list_in(Fact, "/m")) == ["b", "c", "a"]
    with table.transaction() as cursor:
        docs.keep_newest(cursor, Fact, 2, "/m")
    assert list(table.list_in(Fact, "/m")) == ["c", "a"]
    with table.transaction() as cursor:
        docs.keep_newest(cursor, Fact, 2)
        assert list(docs.list_in(cursor, Fact, "/m")) == ["a"]
    assert [key for _, key in table.list_all(Fact)] == ["a", "d"]
    assert table.list_in(Other, "/m") == {"x": Other("x")}


def test_a_transaction_that_fails_stores_nothing(database: Database) -> None:
    """What was put and deleted before the error is as before, and no number is used up."""
    table = Docs(database)
    table.put(Fact("kept"))
    for _ in range(2):
        with suppress(ZeroDivisionError), table.transaction() as cursor:
            docs.put(cursor, Fact("new"), "/m")
            docs.delete_all(cursor, Fact)
            assert docs.next_number(cursor, Fact) == 1
            assert docs.get(cursor, Fact) is None
            raise ZeroDivisionError
    assert table.list_all(Fact) == {("", ""): Fact("kept")}


def test_a_number_is_never_given_twice(database: Database) -> None:
    """Numbers of a kind go up by one, whatever was deleted."""
    table, numbers = Docs(database), []
    for _ in range(3):
        with table.transaction() as cursor:
            numbers.append(docs.next_number(cursor, Fact))
            docs.delete_all(cursor, Fact)
            assert docs.next_number(cursor, Other) == numbers[-1]
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize(
    "value", [b"no json", b"{}", b'{"text":1}', b"[" * 9999, b'{"text":"\xff"}']
)
def test_a_damaged_document_is_skipped(database: Database, value: bytes) -> None:
    """What is no value of its class is not there; the others of its kind are."""
    table = Docs(database)
    table.put(Fact("fine"), "/m", "fine")
    with database.transaction() as cursor:
        query = "INSERT INTO docs (kind, place, key, value) VALUES ('Fact', ?, ?, CAST(? AS TEXT))"
        cursor.execute(query, ("/m", "bad", value))
        cursor.execute(query, ("/n", "bad", value))
    assert table.get(Fact, "/m", "bad") is None
    assert table.list_in(Fact, "/m") == {"fine": Fact("fine")}
    assert table.list_all(Fact) == {("/m", "fine"): Fact("fine")}


def test_half_a_character_is_stored_as_a_question_mark(database: Database) -> None:
    """A text that UTF-8 cannot encode does not prevent the rest from being stored."""
    Docs(database).put(Fact("a\udcffb"))
    assert Docs(database).get(Fact) == Fact("a?b")


def test_a_purge_cleans_keys_and_values_but_no_place(database: Database) -> None:
    """Each text is cleaned within its JSON; a place is the path of what is there and stays."""
    table = Docs(database)
    table.put(Fact('say "heron"'), "/home/heron", "heron.md")
    table.put(Approval(allowed=False), "/home/heron")
    with table.transaction() as cursor:
        assert docs.clean(cursor, lambda text: text.replace("heron", "x")) == 1
    assert table.list_all(Fact) == {("/home/heron", "x.md"): Fact('say "x"')}
    assert table.get(Approval, "/home/heron") == Approval(allowed=False)


def test_the_same_visit_is_written_once_a_day(tmp_path: Path, database: Database) -> None:
    """A visit that tells nothing new costs no write, whichever way the clock went."""
    table, times = Docs(database), []
    for at in (DAY, DAY + 5.0, 1.5, 2 * DAY, DAY):
        remember_visit(table, "/m", HERE, at)
        times.append(last_visits(table)[0].at)
    assert times == [DAY, DAY, DAY, 2 * DAY, DAY]
    remember_visit(table, str(tmp_path), HERE, 0.0)
    assert [visit.session for visit in last_visits(table)] == ["", ""]
