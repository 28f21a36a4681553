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
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from memd.state.database import Database

SCHEMA = r"""
CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5(
    words, content='', columnsize=0, detail=none,
    tokenize='ascii tokenchars ''!"#$%&''''()*+,-./:;<=>?@[\]^_`{|}~'''
);
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
_FIND = """
SELECT word.value, (
    SELECT json_group_array(rowid) FROM search
    WHERE search MATCH '"' || directory.id || ':' || replace(word.value, '"', '""') || '"'
) FROM directory CROSS JOIN json_each(?) AS word WHERE directory.path = ?
"""
_ROWS = """
SELECT id, path, hash, mtime_ns, name, description, type, words, heading
FROM file WHERE id IN (SELECT value FROM json_each(?))
"""
_SPLIT = re.compile(r"[\0-\x1f\x7f]")  # where FTS5 splits words besides the spaces


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

    def find(self, directory: str, words: Iterable[str]) -> dict[str, list[int]]:
        """Return the ids of a directory's memories that have each of these words.

        The directory is a real path. Left out are words that none has, and those with a control
        character.
        """
        searched = json.dumps([word for word in words if not _SPLIT.search(word)])
        rows = self._database.read(_FIND, (searched, directory))
        return {word: ids for word, text in rows if (ids := json.loads(text))}

    def rows(self, ids: Collection[int]) -> dict[int, SearchRow]:
        """Return the memories with these ids, if they still exist."""
        rows = self._database.read(_ROWS, (json.dumps(list(ids)),))
        return {id_: SearchRow(*facts) for id_, *facts in rows}

    def forget(self) -> None:
        """Drop the words of deleted memories from the lists of FTS5.

        Their bytes are gone once the state file is compacted.
        """
        self._database.write("INSERT INTO search (search) VALUES ('optimize')")


def rarest_first(ids_of: Mapping[str, Sequence[int]], most: int, memories: int) -> list[int]:
    """Return up to ``most`` of the ids by word that ``find`` returned.

    The directory has so many ``memories``. Those of the rarest words come first; of a word that
    many have, the newest rows.
    """
    result: dict[int, None] = {}
    words = sorted(ids_of, key=lambda word: (len(ids_of[word]), word))
    while words and len(result) < most:
        # As many words at once as surely have no more rows than are wanted.
        number, total = 1, len(ids_of[words[0]])
        while number < len(words) and min(total + len(ids_of[words[number]]), memories) <= most:
            total += len(ids_of[words[number]])
            number += 1
        ids = set[int]().union(*(ids_of[word] for word in words[:number]))
        result |= dict.fromkeys(sorted(ids, reverse=True)[:most])
        del words[:number]
    return list(result)[:most]
