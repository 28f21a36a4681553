"""Pages, history and what is dropped, the same on both databases."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memd.server import accepting
from memd.server.errors import (
    MalformedRequestError,
    MarkGoneError,
    NotThereError,
    UnauthorisedError,
)
from memd.server.storage import PAGE_BYTES
from memd.server.values import Role
from tests.server.desk import Desk, entry, memory, new_id


def test_the_history_of_all_keys(desk: Desk) -> None:
    """Without a key the history is that of the repository, each write whole, without contents."""
    desk.join("anna")
    for folder in range(3):
        desk.put("anna", *(entry(f"{folder}/{number}.md") for number in range(4)))
    desk.remove("anna", "0/0.md", 1)
    seen: list[tuple[int, str]] = []
    before = 99
    while part := desk.storage.history(desk.repository.id, "", before=before, limit=2):
        assert {version.content for version in part} == {None}
        seen += [(version.revision, version.key) for version in part]
        before = part[-1].revision
    assert [revision for revision, _ in seen] == [4, *[3] * 4, *[2] * 4, *[1] * 4]
    assert len(set(seen)) == 13


def test_pages_miss_nothing(desk: Desk) -> None:
    """Page by page, with writes in between, everything is there as it is or was a moment ago."""
    desk.join("anna")
    desk.put("anna", *(entry(f"{number}.md") for number in range(10)))
    desk.put("anna", *(entry(f"x/{number}.md") for number in range(10)))
    seen: dict[str, int] = {}
    cursor: str | None = ""
    turn = 0
    while cursor is not None:
        page = desk.storage.page(desk.repository.id, cursor=cursor, limit=3)
        assert len(page.entries) + len(page.removed) <= 3
        seen |= {version.key: version.revision for version in (*page.entries, *page.removed)}
        cursor = page.next
        turn += 1
        if turn < 4:
            desk.put("anna", entry(f"{turn}.md", "new", base=seen.get(f"{turn}.md", 1)))
    whole = desk.storage.page(desk.repository.id)
    assert seen == {version.key: version.revision for version in whole.entries}
    assert page.revision == whole.revision == 5


def test_a_page_is_bounded_in_bytes(desk: Desk) -> None:
    """Large entries come on several pages; without contents they are on one."""
    desk.join("anna")
    large = memory("x" * 60_000)
    count = PAGE_BYTES // len(large) + 1
    for number in range(count):
        desk.put("anna", entry(f"{number}.md", large))
    first = desk.storage.page(desk.repository.id)
    assert sum(version.size for version in first.entries) <= PAGE_BYTES
    assert len(desk.live()) == count
    hashes = desk.storage.page(desk.repository.id, view="hashes")
    assert len(hashes.entries) == count
    assert {version.content for version in hashes.entries} == {None}


@pytest.mark.parametrize(
    "text", ["x", "1", ".", "é" * 16 + ".1", "0" * 16 + ".-1", "0" * 16 + "." + "9" * 5000, "\0"]
)
def test_marks_and_cursors_are_input(desk: Desk, text: str) -> None:
    """What is no mark, cursor or view of this server's is malformed."""
    storage, number = desk.storage, desk.repository.id
    with pytest.raises(MalformedRequestError):
        storage.page(number, since=text)
    with pytest.raises(MalformedRequestError):
        storage.page(number, cursor=text)
    with pytest.raises(MalformedRequestError):
        storage.page(number, view=text)


@pytest.mark.parametrize("number", ["", "x", "0" * 16, "\0" * 16, "\ud800", "0" * 100_000])
def test_repositories_are_input(desk: Desk, number: str) -> None:
    """An id that is none finds nothing, whatever stands in it."""
    anna = desk.join("anna")
    storage, entries = desk.storage, [entry("a.md")]
    calls: tuple[Callable[[], object], ...] = (
        lambda: storage.page(number),
        lambda: storage.history(number, "a.md"),
        lambda: storage.purge(number, "a.md", now=0.0),
        lambda: storage.put(anna, number, entries, id=new_id(), body_hash="", now=0.0),
    )
    for call in calls:
        with pytest.raises(NotThereError):
            call()


def test_a_purge_leaves_a_tombstone(desk: Desk, address: str) -> None:
    """After a purge no byte of the text is left, and members are told that the key is removed."""
    desk.join("anna", Role.MAINTAINER)
    text = "CANARY-5f3a-CANARY"
    desk.put("anna", entry("a.md", text), entry("b.md"))
    desk.put("anna", entry("a.md", f"{text} more", base=1))
    desk.storage.purge(desk.repository.id, "a.md", now=desk.now)
    [tombstone] = desk.storage.page(desk.repository.id).removed
    assert (tombstone.key, tombstone.revision, tombstone.reason) == ("a.md", 3, "purged")
    assert desk.storage.history(desk.repository.id, "a.md", maintainer=True) == (tombstone,)
    with pytest.raises(NotThereError):
        desk.storage.purge(desk.repository.id, "never.md", now=desk.now)
    assert desk.live() == {"b.md": memory()}
    folder = Path(address).parent
    assert not [path for path in folder.glob("team.db*") if text.encode() in path.read_bytes()]


def test_old_texts_are_bounded_by_size(desk: Desk) -> None:
    """Above the bound the key with most old bytes loses its oldest text, and no other key does."""
    desk.storage.bounds = accepting.Bounds(old_bytes=10 * len(memory("x" * 100)))
    desk.join("anna")
    desk.put("anna", entry("quiet.md", "one"))
    desk.put("anna", entry("quiet.md", "two", base=1))
    revision = None
    for number in range(30):
        answer = desk.put("anna", entry("loud.md", f"{number:0100}", base=revision))
        revision = answer["revision"]
    contents = [each.content for each in desk.storage.history(desk.repository.id, "loud.md")]
    assert [content is not None for content in contents] == [True] * 10 + [False] * 20
    assert desk.storage.history(desk.repository.id, "quiet.md")[1].content == memory("one")
    assert desk.damage() == []


def test_tombstones_are_bounded_by_number(desk: Desk) -> None:
    """A mark from before the dropped tombstones is gone; a key that lives again is not dropped."""
    desk.storage.bounds = accepting.Bounds(tombstones=3)
    desk.join("anna")
    desk.put("anna", *(entry(f"{number}.md") for number in range(30)))
    revisions = [desk.remove("anna", f"{number}.md", 1)["revision"] for number in range(2)]
    desk.put("anna", entry("0.md", "again", base=revisions[0]))
    first = desk.fresh().mark
    for number in range(2, 5):
        desk.remove("anna", f"{number}.md", 1)
    assert len(desk.storage.page(desk.repository.id, f"{desk.repository.epoch}.3").removed) == 3
    assert len(desk.storage.page(desk.repository.id, first).removed) == 3
    desk.now += 2 * accepting.DAY
    desk.remove("anna", "5.md", 1)
    removed = [each.key for each in desk.storage.page(desk.repository.id).removed]
    assert removed == ["3.md", "4.md", "5.md"]
    with pytest.raises(MarkGoneError):
        desk.storage.page(desk.repository.id, first)
    assert desk.live()["0.md"] == memory("again")
    assert desk.storage.history(desk.repository.id, "2.md") == ()


def test_answers_are_bounded_by_number(desk: Desk) -> None:
    """The newest 200 ids of a token get their first answer, also with a clock that was set back."""
    desk.join("anna")
    numbers = [new_id() for _ in range(accepting.REQUESTS + 1)]
    for index, number in enumerate(numbers):
        desk.now -= 100
        desk.put("anna", entry(f"{index}.md"), number=number)
    revision = desk.revision()
    assert desk.put("anna", entry("1.md"), number=numbers[1])["revision"] == 2
    assert desk.revision() == revision
    with desk.storage.driver.reading() as transaction:
        assert transaction.rows("SELECT count(*) FROM requests") == [(accepting.REQUESTS,)]


def test_renewed_repositories_know_no_old_mark(desk: Desk) -> None:
    """After a copy was put back marks and bases of before match nothing, and codes are void."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    code, mark = desk.storage.invite("ben", {}, now=desk.now), desk.fresh().mark
    desk.storage.renew()
    with pytest.raises(MarkGoneError):
        desk.storage.page(desk.repository.id, mark)
    assert desk.put("anna", entry("a.md", "two", base=1))["revision"] > 1_000_000
    with pytest.raises(UnauthorisedError):
        desk.storage.join(code, "laptop", now=desk.now)
    assert desk.live() == {"a.md": memory("two")}
