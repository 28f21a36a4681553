"""The search over the rows of all directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state import search
from memd.state.database import Database, open_database
from memd.state.search import WordSearch, rarest_first
from memd.store.log import SCHEMA as LOG
from memd.store.sync import SCHEMA as FILES

DIRECTORIES = {1: "/a", 12: "/b"}
_WORDS = st.sampled_from(["quorum", "lease", "shard", "a.b/c", "größe", "接口"])
_TEXTS = st.lists(_WORDS, max_size=4).map(lambda words: f" {' '.join((*words, ''))}")
_STEPS = st.lists(
    st.tuples(st.sampled_from([*DIRECTORIES]), st.sampled_from("xyz"), _TEXTS | st.none())
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Open an empty state file with two directories."""
    path = tmp_path_factory.mktemp("search") / "state.db"
    database = open_database(str(path), [LOG, FILES, search.SCHEMA])
    with database.transaction() as cursor:
        cursor.executemany("INSERT INTO directory VALUES (?, ?)", [*DIRECTORIES.items()])
    yield database
    database.close()


def put(database: Database, directory: int, path: str, words: str | None) -> None:
    """Write the row of a memory, or delete it."""
    if words is None:
        database.write("DELETE FROM file WHERE (directory, path) = (?, ?)", (directory, path))
        return
    database.write(
        "INSERT INTO file (directory, path, hash, stamp, mtime_ns, mode, size, name, description,"
        " type, origin, damaged, words, heading) VALUES (?, ?, ?, '', 7, 0, 0, 'n', 'd', 'user',"
        " '', 0, ?, 1) ON CONFLICT (directory, path) DO UPDATE SET words = excluded.words,"
        " hash = excluded.hash",
        (directory, path, f"hash of {words}", words),
    )


@settings(max_examples=60)
@given(_STEPS)
def test_history_leaves_no_trace(
    database: Database, steps: list[tuple[int, str, str | None]]
) -> None:
    """After any changes each directory finds the memories that have a word now, and no others."""
    database.write("DELETE FROM file")
    rows: dict[tuple[int, str], str] = {}
    for number, path, words in steps:
        put(database, number, path, words)
        rows.pop((number, path), None)
        if words is not None:
            rows[number, path] = words
    searched = WordSearch(database)
    for number, directory in DIRECTORIES.items():
        for word in ("quorum", "lease", "shard", "a.b/c", "größe", "接口"):
            expected = {
                path for (at, path), text in rows.items() if at == number and f" {word} " in text
            }
            found = searched.find(directory, [word, "none"])
            assert found.keys() == ({word} if expected else set())
            hits = searched.rows(found.get(word, []))
            assert {row.path for row in hits.values()} == expected


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" ")).filter(bool))
def test_any_word_is_found_or_harmless(database: Database, word: str) -> None:
    """A word of any characters breaks no query; one without control characters is found."""
    database.write("DELETE FROM file")
    word = word.lower()
    put(database, 1, "x", f" {word} ")
    searched = WordSearch(database)
    found = searched.find("/a", [word])
    assert [row.path for ids in found.values() for row in searched.rows(ids).values()] in (
        [],
        ["x"],
    )
    assert found.keys() == {word} or not word.isprintable()


def test_the_rarest_words_come_first(database: Database) -> None:
    """Where more memories have the words than are wanted, it is those with the rare ones."""
    database.write("DELETE FROM file")
    for number in range(20):
        put(database, 1, f"{number:02}", " quorum lease " if number == 3 else " quorum ")
    searched = WordSearch(database)
    found = searched.find("/a", ["quorum", "lease"])
    assert {word: len(ids) for word, ids in found.items()} == {"quorum": 20, "lease": 1}
    rows = searched.rows(ids := rarest_first(found, 4, 9))
    assert [rows[id_].path for id_ in ids] == ["03", "19", "18", "17"]
    assert searched.find("/none", ["quorum", "lease"]) == {}


def test_a_deleted_memory_leaves_no_word(tmp_path: Path) -> None:
    """Once forgotten and compacted, the state file has none of a deleted memory's words."""
    path = tmp_path / "state.db"
    database = open_database(str(path), [LOG, FILES, search.SCHEMA])
    database.write("INSERT INTO directory VALUES (1, '/a')")
    put(database, 1, "x", " hushhush quorum ")
    put(database, 1, "y", " quorum ")
    put(database, 1, "x", " quorum ")
    put(database, 1, "z", " hushhush ")
    put(database, 1, "z", None)
    WordSearch(database).forget()
    database.compact()
    assert b"hushhush" not in path.read_bytes()
    found = WordSearch(database).find("/a", ["quorum", "hushhush"])
    assert {word: len(ids) for word, ids in found.items()} == {"quorum": 2}
    database.close()
