"""The words of memories in their rows, which the search finds them by.

When ``memd.text.words`` gives other words than it did when the rows were written, a start makes all
of them anew.
"""

from msgspec import Struct

from memd.base.names import INDEXES
from memd.base.values import Header
from memd.state import docs
from memd.store import memory
from memd.store.log import ChangeLog
from memd.store.memory import Memory
from memd.text.words import ANALYSIS, search_text


class Analysis(Struct, frozen=True):
    """The version of ``memd.text.words`` that gave the words of all rows."""

    version: int


def words_of(header: Header, parsed: Memory | None) -> tuple[str, int]:
    """Return the words of a memory for the search, and how many characters its heading has.

    Without the memory only its heading has words; an index has none.
    """
    if header.path in INDEXES:
        return "", 0
    body = _searched_body(parsed) if parsed is not None else ""
    kind = header.type.value if header.type else ""
    return search_text(header.path, header.name, header.description, kind, body)


def _searched_body(parsed: Memory) -> str:
    """Return a memory's body, with what its head says of when it is needed."""
    when = parsed.metadata.get("when", "")
    return f"{parsed.body}\n{when}" if when else parsed.body


def renew_words(log: ChangeLog) -> None:
    """Make the words of all rows anew if they are of another analysis. Blocks; raises Storage."""
    with log.database.transaction() as cursor:
        if docs.get(cursor, Analysis) == Analysis(ANALYSIS):
            return
        cursor.execute("SELECT id, path, hash, name, description, type FROM file WHERE words <> ''")
        for row in cursor.fetchall():
            content = log.body(row["hash"])
            body = _searched_body(memory.parse(content, row["path"])) if content is not None else ""
            facts = (row["path"], row["name"], row["description"], row["type"] or "", body)
            query = "UPDATE file SET words = ?, heading = ? WHERE id = ?"
            cursor.execute(query, (*search_text(*facts), row["id"]))
        docs.put(cursor, Analysis(ANALYSIS))
