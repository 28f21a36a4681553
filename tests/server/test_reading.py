"""Pages, history, audit and what is forgotten, the same on both databases."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memd.core.text import sha256
from memd.server.accepting import DAY
from memd.server.errors import (
    EntriesChangedError,
    MalformedRequestError,
    MarkGoneError,
    NotThereError,
)
from memd.server.storage import PAGE_BYTES
from memd.server.values import Role
from tests.server.desk import Desk, entry, memory, new_id


def test_removed_bodies_are_for_maintainers(desk: Desk) -> None:
    """What stood there before a removal is shown to maintainers; others see that it was."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    desk.remove("anna", "a.md", 1)
    desk.put("anna", entry("a.md", "new life", base=2))

    def contents(*, maintainer: bool) -> list[bytes | None]:
        versions = desk.storage.history(desk.repository.id, "a.md", maintainer=maintainer)
        assert [version.revision for version in versions] == [3, 2, 1]
        return [version.content for version in versions]

    assert contents(maintainer=False) == [memory("new life"), None, None]
    assert contents(maintainer=True) == [memory("new life"), None, memory("one")]


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


def test_since_a_mark(desk: Desk) -> None:
    """Since a mark only what changed later is told; a mark of another epoch is gone."""
    desk.join("anna")
    desk.put("anna", entry("a.md"), entry("b.md"))
    mark = desk.fresh().mark
    assert desk.live(mark) == {}
    desk.put("anna", entry("b.md", "new", base=1))
    desk.remove("anna", "a.md", 1)
    page = desk.storage.page(desk.repository.id, mark)
    assert [version.key for version in page.entries] == ["b.md"]
    assert [version.key for version in page.removed] == ["a.md"]
    ahead = f"{desk.repository.epoch}.99"
    assert desk.storage.page(desk.repository.id, ahead).revision == 3
    with pytest.raises(MarkGoneError):
        desk.storage.page(desk.repository.id, f"{'0' * 16}.1")


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


def test_what_is_old_is_forgotten(desk: Desk) -> None:
    """Answers go after 7 days, replaced bodies after 180, tombstones and the audit after 400."""
    desk.join("anna", Role.MAINTAINER)
    number = new_id()
    desk.put("anna", entry("a.md", "one"), number=number)
    desk.put("anna", entry("a.md", "two", base=1), entry("b.md"))
    desk.remove("anna", "b.md", 2)
    mark = desk.fresh().mark
    start = desk.now
    desk.storage.expire(start + 6 * DAY)
    assert desk.put("anna", entry("a.md", "one"), number=number)["revision"] == 1
    desk.storage.expire(start + 8 * DAY)
    with pytest.raises(EntriesChangedError):
        desk.put("anna", entry("a.md", "one"), number=number)
    desk.storage.expire(start + 179 * DAY)
    assert desk.storage.history(desk.repository.id, "a.md")[1].content == memory("one")
    desk.storage.expire(start + 181 * DAY)
    assert [v.content for v in desk.storage.history(desk.repository.id, "a.md")] == [
        memory("two"),
        None,
    ]
    desk.storage.expire(start + 399 * DAY)
    old = f"{desk.repository.epoch}.2"
    assert len(desk.storage.page(desk.repository.id, old).removed) == 1
    desk.storage.expire(start + 401 * DAY)
    with pytest.raises(MarkGoneError):
        desk.storage.page(desk.repository.id, old)
    assert desk.storage.page(desk.repository.id, mark).removed == ()
    assert desk.storage.history(desk.repository.id, "b.md") == ()
    assert desk.live() == {"a.md": memory("two")}
    assert desk.storage.audit() == ()


def test_a_clock_that_jumps_makes_nothing_old(desk: Desk) -> None:
    """A clock that is years ahead is believed a day at a time, one that is right again at once."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    start = desk.now
    assert desk.storage.sound_time(start + 4_000 * DAY) == start + DAY
    assert desk.storage.sound_time(start + 4_000 * DAY) == start + 2 * DAY
    assert desk.storage.sound_time(start + DAY / 2) == start + DAY / 2
    assert desk.storage.sound_time(start + DAY) == start + DAY


def test_a_key_that_lives_again_does_not_expire(desk: Desk) -> None:
    """A tombstone that another version has replaced takes nothing with it."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    desk.remove("anna", "a.md", 1)
    desk.put("anna", entry("a.md", "two", base=2))
    desk.storage.expire(desk.now + 401 * DAY)
    assert desk.live() == {"a.md": memory("two")}
    assert desk.fresh().oldest == 0


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
    acts = [each for each in desk.storage.audit() if each.key == "a.md"]
    assert [each.act for each in acts] == ["purge", "put", "put"]
    assert {(each.before, each.after) for each in acts} == {("", "")}
    with pytest.raises(NotThereError):
        desk.storage.purge(desk.repository.id, "never.md", now=desk.now)
    assert desk.live() == {"b.md": memory()}
    folder = Path(address).parent
    assert not [path for path in folder.glob("team.db*") if text.encode() in path.read_bytes()]


def test_each_act_is_recorded(desk: Desk) -> None:
    """The audit says who did what, from where, to which key, by the hashes."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    desk.put("anna", entry("a.md", "two", base=1))
    desk.remove("anna", "a.md", 2)
    one, two = sha256(memory("one")), sha256(memory("two"))
    entries = desk.storage.audit(repository=desk.repository.id, member="anna")
    assert [(each.act, each.key, each.before, each.after) for each in entries] == [
        ("remove", "a.md", two, ""),
        ("put", "a.md", one, two),
        ("put", "a.md", "", one),
    ]
    assert {each.device for each in entries} == {"laptop"}
    older = desk.storage.audit(before=entries[-1].number)
    assert [each.act for each in older] == ["join", "invite", "grant member", "repository"]
    assert desk.storage.audit(limit=1) == entries[:1]
