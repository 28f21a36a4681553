"""The rows of messages."""

from memd.base.agents import LOGGED_MESSAGES, MessageKind, MessageState, Sender
from memd.state.database import Database
from memd.state.messages import MessageCopy, MessageTable, NewMessage

ANN = Sender(1, "ann", "test", "/p", "p")


def _send(table: MessageTable, body: str, *receivers: int) -> int:
    message = NewMessage(ANN, MessageKind.TEXT, "", body, 100.0)
    copies = [
        MessageCopy(0, each, f"agent-{each}", 1, MessageState.QUEUED, size=1, until=200.0)
        for each in receivers
    ]
    return table.add(message, copies)


def _repeated(database: Database, number: int, times: int) -> list[int]:
    """Write the rows of a message so many times more; return the new numbers."""
    numbers = [number + more for more in range(1, times + 1)]
    with database.transaction() as cursor:
        for table, key in (("messages", "number"), ("message_copies", "message")):
            columns = [row["name"] for row in database.read(f"PRAGMA table_info({table})")]
            others = ", ".join(name for name in columns if name != key)
            cursor.executemany(
                f"INSERT INTO {table} ({key}, {others})"  # noqa: S608 - names of this test
                f" SELECT ?, {others} FROM {table} WHERE {key} = ?",
                [(new, number) for new in numbers],
            )
    return numbers


def test_a_body_goes_with_the_last_copy(database: Database) -> None:
    """The text of a message is there until all copies have ended, and not after that."""
    table = MessageTable(database)
    number = _send(table, "words", 2, 3)
    table.end([(number, 2)], MessageState.READ, 110.0)
    assert table.get([number])[0].body == "words"
    table.end([(number, 3)], MessageState.EXPIRED, 120.0)
    assert table.get([number])[0].body == ""
    states = [copy.state for copy in table.copies(number)]
    assert states == [MessageState.READ, MessageState.EXPIRED]


def test_a_copy_ends_once(database: Database) -> None:
    """A copy that has ended keeps its state, and is not returned as ended again."""
    table = MessageTable(database)
    number = _send(table, "words", 2)
    assert table.end([(number, 2)], MessageState.READ, 110.0) == {(number, 2)}
    assert table.end([(number, 2)], MessageState.EXPIRED, 120.0) == frozenset()
    assert table.copies(number)[0].state is MessageState.READ


def test_a_row_that_makes_no_sense_is_passed_over(database: Database) -> None:
    """A damaged row costs its message alone."""
    table = MessageTable(database)
    first, second = _send(table, "1", 2), _send(table, "2", 2)
    database.write("UPDATE messages SET kind = 'song' WHERE number = ?", (first,))
    assert [each.number for each in table.get([first, second])] == [second]
    database.write("UPDATE message_copies SET address = ? WHERE message = ?", ("x", first))
    assert len(table.waiting(2)) == 2


def test_the_log_keeps_the_newest(database: Database) -> None:
    """The oldest messages that have ended go, one that waits stays, and no number comes twice."""
    table = MessageTable(database)
    waiting, first = _send(table, "", 2), _send(table, "", 2)
    table.end([(first, 2)], MessageState.READ, 110.0)
    ended = [first, *_repeated(database, first, LOGGED_MESSAGES + 1)]
    table.forget()
    assert len(table.get(ended[:2])) == 0
    assert len(table.get([waiting, *ended[2:10], ended[-1]])) == 10
    assert table.copies(ended[0]) == ()
    assert _send(table, "3", 2) == ended[-1] + 1


def test_what_nobody_gets_leaves_no_body(database: Database) -> None:
    """A message whose every copy was refused at once is in the log without its text."""
    table = MessageTable(database)
    refused = MessageCopy(0, 2, "ben", 1, MessageState.REFUSED, size=1, until=200.0, ended=100.0)
    number = table.add(NewMessage(ANN, MessageKind.TEXT, "", "words", 100.0), [refused])
    assert [(each.number, each.body) for each in table.get([number])] == [(number, "")]
