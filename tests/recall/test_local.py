"""What the local ranker answers."""

from collections.abc import Iterator
from pathlib import Path
from threading import Lock

import pytest
from msgspec.structs import replace

from memd.core.values import MemoryType
from memd.recall import local
from memd.recall.explain import NO_ROOM, NOT_SELECTED, SESSION_BUDGET, UNREADABLE, Row
from memd.recall.indexes import Indexes
from memd.recall.local import RecallRequest
from memd.state.database import Database, open_database
from memd.state.ledger import SCHEMA, Item, Ledger
from tests.recall.shelf import NOW, Shelf

WISH = RecallRequest(
    directory="/m",
    query="when does the merge freeze begin?",
    limit=5,
    surfaced={},
    now=NOW,
    monotonic=lambda: 0.0,
    until=1.0,
)


@pytest.fixture
def shelf() -> Shelf:
    """Return three memories, one of which fits."""
    shelf = Shelf()
    shelf.put("freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.")
    shelf.put("pnpm.md", "User prefers pnpm over npm", mtime_ns=5)
    shelf.put("old.md", "The quorum is three", mtime_ns=3)
    return shelf


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


def test_what_fits_is_offered(shelf: Shelf) -> None:
    """An offer is the memory as it goes out and what the ledger will count."""
    choice = local.select_memories(Indexes(shelf, Lock), shelf, WISH)
    (propose,) = choice.offers
    assert propose.item == Item("/m/freeze.md", "1:1759740800000000000:21", 21, "/m", "freeze.md")
    assert propose.memory.content == "Begins on 2026-03-05."
    assert (choice.empty, choice.left, choice.count, choice.rows) == (False, 0, 3, ())


def test_a_prompt_waits_for_the_index_until_its_time_is_up(shelf: Shelf) -> None:
    """Within its time everything is indexed; without any, what is there already answers."""
    for number in range(200):
        shelf.put(f"x{number}.md", "nothing of interest")
    shelf.put("freeze.md", "Merge freeze", mtime_ns=1)  # the oldest comes last
    indexes = Indexes(shelf, Lock)
    none = local.select_memories(indexes, shelf, replace(WISH, until=0.0))
    assert (none.left, none.offers) == (153, ())
    times = iter(range(100))
    some = local.select_memories(
        indexes, shelf, replace(WISH, monotonic=lambda: float(next(times)), until=3.0)
    )
    assert 0 < some.left < 153
    done = local.select_memories(indexes, shelf, WISH)
    assert (done.left, len(done.offers)) == (0, 1)


def test_nothing_to_choose_from_is_told(shelf: Shelf) -> None:
    """When every memory is closed by a rule there is none to choose from; else none fits."""
    read = ("freeze.md", "/m/pnpm.md", "old.md")
    indexes = Indexes(shelf, Lock)
    assert local.select_memories(indexes, shelf, replace(WISH, read_paths=read)).empty
    assert not local.select_memories(indexes, shelf, replace(WISH, read_paths=read[:2])).empty
    many = Shelf()
    for number in range(201):
        many.put(f"{number}.md", "word")
    closed = replace(WISH, read_paths=tuple(many.files["/m"]), query="what about the word?")
    assert not local.select_memories(Indexes(many, Lock), many, closed).empty


def test_what_a_model_may_choose_from(shelf: Shelf) -> None:
    """All that no rule closes, newest first; in a large directory what the ranker puts first."""
    indexes = Indexes(shelf, Lock)
    wish = replace(WISH, options=3, read_paths=("old.md",))
    options = local.select_memories(indexes, shelf, wish).options
    assert [header.path for header in options] == ["freeze.md", "pnpm.md"]
    few = local.select_memories(
        indexes, shelf, replace(wish, options=2, query="npm or a quorum?")
    ).options
    assert [header.path for header in few] == ["pnpm.md"]


def test_a_memory_that_went_away_is_left_out(shelf: Shelf) -> None:
    """What cannot be read any more is not offered, and the order of the others stays."""
    offers = local.make_candidates(shelf, WISH, ["pnpm.md", "gone.md", "freeze.md"])
    assert [propose.memory.name for propose in offers] == ["pnpm", "freeze"]


def test_what_its_index_line_says_is_not_said_again(shelf: Shelf) -> None:
    """Where the session has the line of a memory, one that says no more is left out."""
    shelf.put("short.md", "use pnpm, never npm", 'Use pnpm, never npm.\n\n**Said:** "pnpm!"\n')
    shelf.put("long.md", "use pnpm, never npm", "Use pnpm, never npm 9.")
    line = "- [Use pnpm]({}) - use pnpm, never npm"
    index = "\n".join(map(line.format, ("short.md", "long.md", "other.md")))
    for known, comes in (("", ["short", "long"]), (index, ["long"]), (line, ["short", "long"])):
        offers = local.make_candidates(shelf, replace(WISH, index=known), ["short.md", "long.md"])
        assert [offer.memory.path.removeprefix("/m/")[:-3] for offer in offers] == comes
    (offer,) = local.make_candidates(shelf, replace(WISH, index=index), ["long.md"])
    assert (offer.memory.description, offer.memory.content) == ("", "Use pnpm, never npm 9.")


def test_a_rule_of_the_person_comes_although_the_index_has_it(shelf: Shelf) -> None:
    """The index calls its lines notes, so a rule is brought as an instruction."""
    rule = {"type": MemoryType.FEEDBACK, "origin": "user"}
    shelf.put(
        "fmt.md", "run cargo fmt before you commit", "Run cargo fmt before you commit.", **rule
    )
    wish = replace(WISH, index="- [Fmt](fmt.md) - run cargo fmt before you commit")
    (offer,) = local.make_candidates(shelf, wish, ["fmt.md"])
    assert (offer.memory.description, offer.memory.content) == (
        "",
        "Run cargo fmt before you commit.",
    )


def test_an_explanation_tells_what_came_of_each(shelf: Shelf, database: Database) -> None:
    """What was weighed and what a rule closed is there, with the parts of its score."""
    shelf.put("freeze2.md", "Merge freeze for the desktop release")
    indexes = Indexes(shelf, Lock)
    wish = replace(WISH, explain=True, read_paths=("freeze2.md",))
    rows = local.select_memories(indexes, shelf, wish).rows
    by_path = {row.path: row for row in rows}
    assert by_path["freeze.md"].kept
    assert sum(by_path["freeze.md"].parts.values()) == pytest.approx(
        by_path["freeze.md"].score, abs=1e-4
    )
    assert (by_path["freeze2.md"].kept, by_path["freeze2.md"].reason) == (False, "already read")
    ledger = Ledger(database)
    ledger.mark("s", [Item("/m/freeze.md", "1", 10)], 100, 7.0)
    seen = local.rows_with_sightings(ledger, "/m", rows)
    assert {row.path: row.last_surfaced for row in seen} == {
        "freeze.md": "1970-01-01T00:00:07.000Z",
        "freeze2.md": None,
    }


def test_an_explanation_is_settled_by_what_goes_out(shelf: Shelf) -> None:
    """A row is kept when it is in the answer; else it says why not."""
    rows = (Row("freeze.md", "freeze", kept=True), Row("pnpm.md", "pnpm", reason="below the floor"))
    offers = local.make_candidates(shelf, WISH, ["pnpm.md", "freeze.md"])
    going = [replace(offers[0].memory, path="/m/c.md"), offers[0].memory]
    settled = local.finished_rows(rows, "/m", going, offers[:1], by_model=True)
    assert [(row.path, row.kept, row.reason) for row in settled] == [
        ("freeze.md", False, NOT_SELECTED),
        ("pnpm.md", True, ""),
        ("c.md", True, ""),
    ]
    settled = local.finished_rows(rows, "/m", [], offers, by_model=False)
    assert [row.reason for row in settled] == [SESSION_BUDGET, SESSION_BUDGET]
    assert local.finished_rows(rows, "/m", [], (), by_model=False)[0].reason == UNREADABLE


def test_an_explanation_knows_that_a_block_is_full(shelf: Shelf) -> None:
    """What the block has no room for is told so."""
    paths = [f"{number}{'x' * 90}.md" for number in range(20)]
    for path in paths:
        shelf.put(path, "d " * 300)
    offers = local.make_candidates(shelf, WISH, paths)
    rows = [Row(path, path, kept=True) for path in paths]
    settled = local.finished_rows(rows, "/m", [], offers, by_model=False)
    assert {row.reason for row in settled} == {SESSION_BUDGET, NO_ROOM}


def test_search_waits_for_the_whole_index(shelf: Shelf) -> None:
    """A search answers from all memories, however many are not indexed yet."""
    for number in range(600):
        shelf.put(f"x{number}.md", "nothing of interest")
    shelf.put("last.md", "the lease", "renewed each minute", mtime_ns=1)
    (hit,) = local.search(Indexes(shelf, Lock), shelf, "/m", "lease", 5)
    assert (hit.path, hit.snippet) == ("last.md", "renewed each minute")


@pytest.mark.parametrize("query", ["who-is-who", "WHO", "hello", "say hello"])
def test_words_that_are_too_common_are_found_as_they_are_written(shelf: Shelf, query: str) -> None:
    """A memory is found by its name and by words of which the index has none."""
    shelf.put("who-is-who.md", "Who is who", "first\nSay hello to Kim.")
    shelf.put("other.md", "something else", "Of no interest.")
    (hit,) = local.search(Indexes(shelf, Lock), shelf, "/m", query, 5)
    assert hit.path == "who-is-who.md"
    assert ("Say hello" in hit.snippet) == ("hello" in query)
    assert local.search(Indexes(shelf, Lock), shelf, "/m", "the of nowhere", 5) == ()
    assert local.search(Indexes(shelf, Lock), shelf, "/m", "", 5) == ()
