r"""Find the memories that have some words, with SQLite's FTS5 over the table ``file``.

Rules of this file
- Words come from ``memd.text.words``; FTS5 only splits them at the spaces again. It has its own
  copy of no text: triggers bring it into step with ``file.words`` in the same transaction.
- Each word is indexed as ``7:word``, where 7 is the id of the directory. So counts and hits are
  those of one directory, and directories may share the table.
- FTS5 keeps the words of a deleted row in its lists until it merges them; ``forget`` merges all.
- Each transaction adds a list, and a query looks into all of them. So FTS5 merges four lists of one
  size instead of sixteen: the words of a long prompt are counted in two thirds of the time, and a
  write takes some 20 µs more.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import accumulate, islice

from msgspec import Struct

from memd.state.database import Database

SCHEMA = r"""
CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(
    words, content='', columnsize=0, detail=none,
    tokenize='ascii tokenchars ''!"#$%&''''()*+,-./:;<=>?@[\]^_`{|}~'''
);
CREATE VIRTUAL TABLE IF NOT EXISTS search_word USING fts5vocab(search, row);
CREATE TRIGGER IF NOT EXISTS directory_created AFTER INSERT ON directory BEGIN
    INSERT INTO search (search, rank) VALUES ('crisismerge', 4);
END;
CREATE TRIGGER IF NOT EXISTS file_created AFTER INSERT ON file BEGIN
    INSERT INTO search (rowid, words)
    VALUES (new.id, replace(rtrim(new.words), ' ', ' ' || new.directory || ':'));
END;
CREATE TRIGGER IF NOT EXISTS file_changed AFTER UPDATE OF words ON file
WHEN old.words <> new.words BEGIN
    INSERT INTO search (search, rowid, words)
    VALUES ('delete', old.id, replace(rtrim(old.words), ' ', ' ' || old.directory || ':'));
    INSERT INTO search (rowid, words)
    VALUES (new.id, replace(rtrim(new.words), ' ', ' ' || new.directory || ':'));
END;
CREATE TRIGGER IF NOT EXISTS file_deleted AFTER DELETE ON file BEGIN
    INSERT INTO search (search, rowid, words)
    VALUES ('delete', old.id, replace(rtrim(old.words), ' ', ' ' || old.directory || ':'));
END;
"""
# The tables of FTS5 can only be asked for one word at a time, hence the order of the joins.
_COUNT = """
SELECT word.value AS word, search_word.doc AS count
FROM directory CROSS JOIN json_each(?) AS word
CROSS JOIN search_word ON search_word.term = directory.id || ':' || word.value
WHERE directory.path = ?
"""
_FIND = """
SELECT file.id, file.path, file.hash, file.mtime_ns, file.name, file.description, file.type,
    file.words, file.heading
FROM search CROSS JOIN file ON file.id = search.rowid
WHERE search.search MATCH (
    SELECT coalesce(
        group_concat('"' || directory.id || ':' || replace(word.value, '"', '""') || '"', ' OR '),
        '""'
    ) FROM directory CROSS JOIN json_each(?) AS word WHERE directory.path = ?
)
ORDER BY search.rowid DESC LIMIT ?
"""


class SearchRow(Struct, frozen=True, gc=False):
    """What the search knows of a memory; ``words`` and ``heading`` are of ``search_text``."""

    path: str
    hash: str
    mtime_ns: int
    name: str
    description: str
    type: str | None
    words: str
    heading: int


class WordSearch:
    """The search over the memories of all directories. Methods block and raise Storage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, directory: str, words: Iterable[str]) -> dict[str, int]:
        """Return how many memories of a directory (a real path) have each of these words, if any.

        Left out are words that none has.
        """
        rows = self._database.read(_COUNT, (json.dumps(list(words)), directory))
        return dict(map(tuple, rows))

    def find(
        self, directory: str, counts: Mapping[str, int], most: int, memories: int
    ) -> list[SearchRow]:
        """Return up to ``most`` memories with any of the words that ``count`` returned.

        Those with the rarest words come first; of a word that many have, the newest rows. The
        directory has about so many ``memories``.
        """
        rows: dict[int, SearchRow] = {}  # by id
        words = sorted(counts, key=counts.__getitem__)
        while words and len(rows) < most:
            # As many words at once as surely have no more rows than are wanted.
            number, total = 1, counts[words[0]]
            while number < len(words) and min(total + counts[words[number]], memories) <= most:
                total += counts[words[number]]
                number += 1
            query = (json.dumps(words[:number]), directory, most)
            del words[:number]
            for id_, *facts in self._database.read(_FIND, query):
                if id_ not in rows:
                    rows[id_] = SearchRow(*facts)
        return list(islice(rows.values(), most))

    def forget(self) -> None:
        """Drop the words of deleted memories from the lists of FTS5.

        Their bytes are gone once the state file is compacted.
        """
        self._database.write("INSERT INTO search (search) VALUES ('optimize')")


def rarest(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the rarest of the words that ``count`` returned, as ``most`` memories have in all."""
    words = sorted(counts, key=counts.__getitem__)
    totals = accumulate(counts[word] for word in words)
    return {word: counts[word] for word, total in zip(words, totals, strict=True) if total <= most}
