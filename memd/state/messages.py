"""Store messages between agents: a row for each message and one for each receiver's copy.

Rules of this file
- A message and its copies are stored in one durable transaction; so is the end of copies.
- A copy that has ended never changes its state. When the last copy of a message ends, the message's
  body is deleted; the rest of the row stays as the log.
- The state file may be damaged: rows with invalid values are skipped.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from memd.base.agents import LOGGED_MESSAGES, MessageKind, MessageState, Sender
from memd.state.database import Cursor, Database, Row

SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sender INTEGER NOT NULL,
    address TEXT NOT NULL,
    client TEXT NOT NULL,
    root TEXT NOT NULL,
    project TEXT NOT NULL,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    body TEXT NOT NULL,
    reply_to TEXT NOT NULL,
    request INTEGER NOT NULL,
    approve INTEGER,
    sent REAL NOT NULL,
    answer_by REAL,
    ttl REAL NOT NULL,
    request_id TEXT
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS messages_requests ON messages (sender, request_id)
    WHERE request_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS messages_answers ON messages (answer_by) WHERE answer_by IS NOT NULL;
CREATE TABLE IF NOT EXISTS message_copies (
    message INTEGER NOT NULL,
    receiver INTEGER NOT NULL,
    address TEXT NOT NULL,
    sender INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    control INTEGER NOT NULL,
    notice INTEGER NOT NULL,
    size INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    until REAL NOT NULL,
    ended REAL,
    PRIMARY KEY (message, receiver)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS message_copies_open ON message_copies (receiver, control DESC, message)
    WHERE ended IS NULL;
CREATE INDEX IF NOT EXISTS message_copies_until ON message_copies (until) WHERE ended IS NULL;
"""
# Kinds that are delivered before all others.
_CONTROL_KINDS = (
    MessageKind.SHUTDOWN_REQUEST,
    MessageKind.SHUTDOWN_RESPONSE,
    MessageKind.PLAN_REQUEST,
    MessageKind.PLAN_RESPONSE,
)
_NEVER = 1e15  # ``answer_by`` of a request once its sender was told that no answer came


class MailboxUse(Struct, frozen=True):
    """How many messages wait in a mailbox, without memd's own notices, and their bytes."""

    messages: int = 0
    bytes: int = 0


class NewMessage(Struct, frozen=True):
    """A message to be stored; times are seconds since 1970."""

    sender: Sender
    kind: MessageKind
    summary: str
    body: str
    sent: float
    reply_to: str = ""
    request: int = 0  # the number of the request that a response answers, 0 for none
    approve: bool | None = None
    answer_by: float | None = None  # when an answer is due, ``None`` if none is wanted
    ttl: float = inf  # seconds that the message may wait
    request_id: str = ""  # the sender's own id of the call, "" for none


class MessageCopy(Struct, frozen=True):
    """One receiver's copy of a message; times are seconds since 1970."""

    message: int  # its number
    receiver: int  # the id of an agent, like ``sender``
    address: str
    sender: int
    state: MessageState
    reason: str = ""
    control: bool = False  # it is delivered before others
    size: int = 0
    deliveries: int = 0  # how often it was delivered
    until: float = inf  # when it expires
    ended: float | None = None


class StoredMessage(NewMessage, frozen=True, kw_only=True):
    """A stored message with its number; the body is "" once all copies have ended."""

    number: int


Notice = tuple[NewMessage, MessageCopy]  # a message of memd's own about another message
T = TypeVar("T")


class MessageTable:
    """The messages of all agents. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, message: NewMessage, copies: Iterable[MessageCopy]) -> int:
        """Store a message with its copies and return its new number.

        A response closes its request in the same transaction.
        """
        with self._database.transaction() as cursor:
            number = _insert_message(cursor, message)
            for copy in copies:
                _insert_copy(cursor, number, message, copy)
            # This is the response, so none is due any more.
            if message.request:
                cursor.execute(
                    "UPDATE messages SET answer_by = NULL WHERE number = ?", (message.request,)
                )
            # If every receiver refused the message, no copy is open.
            _delete_unused_bodies(cursor, (number,))
        return number

    def earlier(self, sender: int, request_id: str) -> int:
        """Return the number of the message that a sender sent with this request id, 0 for none."""
        rows = self._database.read(
            "SELECT number FROM messages WHERE (sender, request_id) = (?, ?)", (sender, request_id)
        )
        return int(rows[0]["number"]) if rows else 0

    def get(self, numbers: Collection[int]) -> tuple[StoredMessage, ...]:
        """Return the messages with these numbers, in the same order; skip missing ones."""
        slots = ",".join("?" * len(numbers))
        rows = self._database.read(
            f"SELECT * FROM messages WHERE number IN ({slots})",  # noqa: S608 - question marks alone
            tuple(numbers),
        )
        messages = {message.number: message for message in _read_messages(rows)}
        return tuple(messages[number] for number in numbers if number in messages)

    def copies(self, number: int) -> tuple[MessageCopy, ...]:
        """Return all copies of a message, one for each receiver."""
        return self._select_copies("message = ?", number)

    def waiting(self, receiver: int, most: int = -1) -> tuple[MessageCopy, ...]:
        """Return a receiver's queued copies: control kinds first, then in the order sent.

        Return at most ``most``, all for -1.
        """
        return self._select_copies(
            "receiver = ? AND ended IS NULL AND state = 'queued'"
            " ORDER BY control DESC, message LIMIT ?",
            *(receiver, most),
        )

    def unread_of(self, receiver: int) -> int:
        """Return the number of a receiver's queued copies."""
        (row,) = self._database.read(
            "SELECT count(*) AS rows FROM message_copies"
            " WHERE receiver = ? AND ended IS NULL AND state = 'queued'",
            (receiver,),
        )
        return int(row["rows"])

    def held_count(self) -> int:
        """Return the number of messages that are held back until a person decides."""
        (row,) = self._database.read(
            "SELECT count(DISTINCT message) FROM message_copies"
            " WHERE ended IS NULL AND NOT notice AND state = 'held'"
        )
        return int(row[0])

    def unread(self) -> dict[int, int]:
        """Return the number of queued copies by receiver."""
        rows = self._database.read(
            "SELECT receiver, count(*) AS rows FROM message_copies"
            " WHERE ended IS NULL AND state = 'queued' GROUP BY receiver"
        )
        return {int(row["receiver"]): int(row["rows"]) for row in rows}

    def use(self, receiver: int, *, held: bool) -> MailboxUse:
        """Return how much waits for a receiver; with ``held``, what a person must decide about."""
        (row,) = self._database.read(
            "SELECT count(*) AS rows, coalesce(sum(size), 0) AS bytes FROM message_copies"
            " WHERE receiver = ? AND ended IS NULL AND NOT notice AND (state = 'held') = ?",
            (receiver, held),
        )
        return MailboxUse(int(row["rows"]), int(row["bytes"]))

    def delivered(self, receiver: int, numbers: Sequence[int]) -> None:
        """Add one to the delivery count of copies; the count may be lost in a power cut."""
        with self._database.transaction(synced=False) as cursor:
            cursor.executemany(
                "UPDATE message_copies SET deliveries = deliveries + 1"
                " WHERE (message, receiver) = (?, ?)",
                [(number, receiver) for number in numbers],
            )

    def end(
        self,
        copies: Iterable[tuple[int, int]],
        state: MessageState,
        now: float,
        reason: str = "",
        notices: Mapping[tuple[int, int], Notice] | None = None,
    ) -> frozenset[tuple[int, int]]:
        """End copies, given as (message, receiver); return those that had not ended before.

        ``notices`` has the notice to store for a copy that ends, in the same transaction.
        """
        newly_ended = set()
        with self._database.transaction() as cursor:
            for number, receiver in copies:
                cursor.execute(
                    "UPDATE message_copies SET state = ?, reason = ?, ended = ?"
                    " WHERE (message, receiver) = (?, ?) AND ended IS NULL",
                    (state.value, reason, now, number, receiver),
                )
                if not cursor.rowcount:  # the copy had ended before
                    continue
                newly_ended.add((number, receiver))
                notice = (notices or {}).get((number, receiver))
                if notice is not None:
                    _insert_notice(cursor, notice)
            _delete_unused_bodies(cursor, {number for number, _ in newly_ended})
        return frozenset(newly_ended)

    def accept(self, number: int, receiver: int, until: float) -> bool:
        """Queue a held copy until a time in seconds since 1970; return whether it was held."""
        return bool(
            self._database.write(
                "UPDATE message_copies SET state = 'queued', reason = '', until = ?"
                " WHERE (message, receiver) = (?, ?) AND state = 'held' AND ended IS NULL",
                (until, number, receiver),
            )
        )

    def close(self, number: int, notices: Iterable[Notice]) -> bool:
        """Store notices that a request got no answer in time; return whether one was due.

        The request stays open: a later answer is still accepted.
        """
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE messages SET answer_by = ? WHERE number = ? AND answer_by < ?",
                (_NEVER, number, _NEVER),
            )
            closed = cursor.rowcount > 0
            for notice in notices if closed else ():
                _insert_notice(cursor, notice)
        return closed

    def of_receiver(self, receiver: int) -> tuple[MessageCopy, ...]:
        """Return a receiver's copies that have not ended, in the order sent."""
        return self._select_copies("receiver = ? AND ended IS NULL ORDER BY message", receiver)

    def overdue(self, now: float) -> tuple[MessageCopy, ...]:
        """Return the copies that expired before ``now`` and have not ended."""
        return self._select_copies("ended IS NULL AND until <= ?", now)

    def unanswered(self, now: float) -> tuple[StoredMessage, ...]:
        """Return the requests whose answer was due before ``now``."""
        rows = self._database.read("SELECT * FROM messages WHERE answer_by <= ?", (now,))
        return _read_messages(rows)

    def next_due(self) -> float | None:
        """Return when the next copy expires or answer is due; ``None`` if nothing is due."""
        (row,) = self._database.read(
            "SELECT min(due) AS due FROM (SELECT min(until) AS due FROM message_copies"
            " WHERE ended IS NULL AND until < ? UNION ALL SELECT min(answer_by) FROM messages"
            " WHERE answer_by < ?)",
            (_NEVER, _NEVER),
        )
        return None if row["due"] is None else float(row["due"])

    def log(
        self,
        *,
        agent: int = 0,
        root: str = "",
        state: str = "",
        before: int = 0,
        limit: int = 50,
    ) -> tuple[StoredMessage, ...]:
        """Return messages without memd's notices, newest first.

        ``agent`` selects those sent or received by an agent, ``root`` those of a project's agents,
        and ``state`` those with a copy in this state. ``before`` is a number that all results are
        below.
        """
        # The conditions have only fixed words; all input goes into ``values``.
        conditions = ["m.kind <> 'notice'"]
        values: list[object] = []
        if before:
            conditions.append("m.number < ?")
            values.append(before)
        if state:
            conditions.append(
                "EXISTS (SELECT 1 FROM message_copies c WHERE c.message = m.number AND c.state = ?)"
            )
            values.append(state)
        if agent:
            conditions.append(
                "(m.sender = ? OR EXISTS (SELECT 1 FROM message_copies c"
                " WHERE c.message = m.number AND c.receiver = ?))"
            )
            values += [agent, agent]
        elif root:
            conditions.append(
                "(m.root = ? OR EXISTS (SELECT 1 FROM message_copies c"
                " JOIN docs a ON a.kind = 'StoredAgent' AND a.key = CAST(c.receiver AS TEXT)"
                " WHERE c.message = m.number AND json_extract(a.value, '$.agent.root') = ?))"
            )
            values += [root, root]
        where = " AND ".join(conditions)
        rows = self._database.read(
            f"SELECT m.* FROM messages m WHERE {where} ORDER BY m.number DESC LIMIT ?",  # noqa: S608
            (*values, limit),
        )
        return _read_messages(rows)

    def _select_copies(self, condition: str, *values: object) -> tuple[MessageCopy, ...]:
        """Return the copies that meet an SQL condition of this file."""
        rows = self._database.read(f"SELECT * FROM message_copies WHERE {condition}", values)  # noqa: S608 - fixed words
        return _read_rows(map(dict, rows), MessageCopy)

    def forget(self) -> None:
        """Delete the messages of which no copy is open, but for the newest ``LOGGED_MESSAGES``."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "DELETE FROM messages WHERE number IN (SELECT number FROM messages WHERE NOT EXISTS"
                " (SELECT 1 FROM message_copies c WHERE c.message = number AND c.ended IS NULL)"
                " ORDER BY number DESC LIMIT -1 OFFSET ?)",
                (LOGGED_MESSAGES,),
            )
            cursor.execute(
                "DELETE FROM message_copies WHERE message NOT IN (SELECT number FROM messages)"
            )


def _insert_message(cursor: Cursor, message: NewMessage) -> int:
    """Insert a message's row and return its number."""
    columns = asdict(message)
    sender = asdict(columns.pop("sender"))
    columns |= {"sender": sender.pop("agent"), "request_id": message.request_id or None}
    _insert(cursor, "messages", columns | sender)
    return int(cursor.lastrowid or 0)


def _insert_notice(cursor: Cursor, notice: Notice) -> None:
    """Insert a notice of memd's own with its one copy."""
    message, copy = notice
    _insert_copy(cursor, _insert_message(cursor, message), message, copy)


def _insert_copy(cursor: Cursor, number: int, message: NewMessage, copy: MessageCopy) -> None:
    """Insert one receiver's copy of a message."""
    message_columns = {
        "message": number,
        "sender": message.sender.agent,
        "control": message.kind in _CONTROL_KINDS,
    }
    initial_columns = {"notice": message.kind is MessageKind.NOTICE, "deliveries": 0}
    _insert(cursor, "message_copies", asdict(copy) | message_columns | initial_columns)


def _insert(cursor: Cursor, table: str, row: Mapping[str, object]) -> None:
    """Insert a row, given by column names."""
    slots = ", ".join("?" * len(row))
    query = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({slots})"  # noqa: S608 - our own names
    cursor.execute(query, tuple(row.values()))


def _delete_unused_bodies(cursor: Cursor, numbers: Iterable[int]) -> None:
    """Empty the bodies of those messages whose copies have all ended."""
    cursor.executemany(
        "UPDATE messages SET body = '' WHERE number = ? AND NOT EXISTS"
        " (SELECT 1 FROM message_copies WHERE message = number AND ended IS NULL)",
        [(number,) for number in numbers],
    )


def _read_messages(rows: Iterable[Row]) -> tuple[StoredMessage, ...]:
    """Return the messages in rows, with the sender's columns as one member."""
    # Without NULLs, so that the defaults of the class apply.
    messages = []
    for row in rows:
        columns = {name: value for name, value in dict(row).items() if value is not None}
        messages.append(columns | {"sender": columns | {"agent": columns["sender"]}})
    return _read_rows(messages, StoredMessage)


def _read_rows(rows: Iterable[Mapping[str, object]], shape: type[T]) -> tuple[T, ...]:
    """Return rows as objects of a class with the columns' names, without damaged rows."""
    result = []
    for row in rows:
        with suppress(msgspec.ValidationError):
            result.append(msgspec.convert(row, shape, strict=False))  # booleans are numbers here
    return tuple(result)
