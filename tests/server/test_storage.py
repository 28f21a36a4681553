"""Writes and removals, the same on both databases."""

import pytest

from memd.core.team import Limits
from memd.core.text import sha256
from memd.server.accepting import DAY
from memd.server.errors import (
    EntriesChangedError,
    EntriesRefusedError,
    IdReusedError,
    MalformedRequestError,
    OverLimitError,
    TooMuchError,
)
from tests.server.desk import Desk, entry, memory, new_id, open_desk


@pytest.mark.parametrize("base", [None, 0, 2, 2**63])
def test_another_base_changes_nothing(desk: Desk, base: int | None) -> None:
    """A write with one entry on another base than the server's is refused whole, and says which."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    with pytest.raises(EntriesChangedError) as error:
        desk.put("anna", entry("b.md"), entry("a.md", "new", base=base))
    theirs = {"key": "a.md", "revision": 1, "hash": sha256(memory())}
    assert error.value.details == {"entries": [theirs]}
    assert desk.live() == {"a.md": memory()}
    assert desk.revision() == 1


def test_a_tombstone_is_a_base(desk: Desk) -> None:
    """A removed key is written again on its tombstone alone."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    assert desk.remove("anna", "a.md", 1) == {"revision": 2}
    for base in (None, 1):
        with pytest.raises(EntriesChangedError) as error:
            desk.put("anna", entry("a.md", "old device", base=base))
        assert error.value.details == {"entries": [{"key": "a.md", "revision": 2, "hash": ""}]}
    assert desk.put("anna", entry("a.md", "again", base=2))["entries"][0]["status"] == "created"


def test_one_id_one_effect(desk: Desk) -> None:
    """A write that is repeated under its id gets its first answer, and does nothing."""
    anna = desk.join("anna")
    number = new_id()
    first = desk.put("anna", entry("a.md", "one"), number=number)
    desk.put("anna", entry("a.md", "two", base=1))
    assert desk.put("anna", entry("a.md", "one"), number=number.upper()) == first
    assert desk.live() == {"a.md": memory("two")}
    removal = new_id()
    gone = desk.remove("anna", "a.md", 2, number=removal)
    desk.put("anna", entry("a.md", "three", base=3))
    assert desk.remove("anna", "a.md", 2, number=removal) == gone
    assert desk.live() == {"a.md": memory("three")}
    with pytest.raises(IdReusedError):
        desk.put("anna", entry("b.md"), number=number)
    with pytest.raises(IdReusedError):
        desk.remove("anna", "a.md", 4, number=number)
    desk.storage.session("", now=desk.now)
    desk.join("anna", device="phone")
    assert desk.sessions["anna"].token != anna.token
    desk.put("anna", entry("b.md"), number=number)
    assert set(desk.live()) == {"a.md", "b.md"}


def test_a_refused_write_keeps_its_id_free(desk: Desk) -> None:
    """The id of a write that was refused may be that of the next one."""
    desk.join("anna")
    number = new_id()
    with pytest.raises(EntriesChangedError):
        desk.put("anna", entry("a.md", base=9), number=number)
    assert desk.put("anna", entry("a.md"), number=number)["revision"] == 1


@pytest.mark.parametrize("number", ["", "1", "x" * 36, f"{'0' * 36}\n"])
def test_an_id_is_a_uuid(desk: Desk, number: str) -> None:
    """A write without a UUID is malformed."""
    anna = desk.join("anna")
    with pytest.raises(MalformedRequestError):
        desk.storage.put(
            anna, desk.repository.id, [entry("a.md")], id=number, body_hash="", now=desk.now
        )


def test_if_match_is_of_the_repository(desk: Desk) -> None:
    """With If-Match a write is accepted at this revision and epoch of the repository alone."""
    desk.join("anna")
    start = desk.fresh().mark
    desk.put("anna", entry("a.md"), if_match=start)
    for mark in (start, "other.1", ""):
        with pytest.raises(EntriesChangedError) as error:
            desk.put("anna", entry("b.md"), if_match=mark)
        assert error.value.details == {"entries": []}


def test_a_full_repository_takes_updates(address: str) -> None:
    """What makes a repository larger than its limit is refused; what does not, goes on."""
    size = len(memory("one"))
    with open_desk(address, Limits(max_entries=2, max_bytes=3 * size)) as desk:
        desk.join("anna")
        desk.put("anna", entry("a.md", "one"), entry("b.md", "one"))
        with pytest.raises(OverLimitError) as error:
            desk.put("anna", entry("c.md", "one"))
        assert error.value.details == {"limit": "max_entries", "max": 2, "have": 3}
        with pytest.raises(OverLimitError) as error:
            desk.put("anna", entry("a.md", "long" * size, base=1))
        assert error.value.details["limit"] == "max_bytes"
        desk.put("anna", entry("a.md", "two", base=1))
        desk.remove("anna", "b.md", 1)
        desk.put("anna", entry("c.md", "one"))
        assert set(desk.live()) == {"a.md", "c.md"}
    with open_desk(address, Limits(max_entries=1, max_bytes=1)) as fuller:
        fuller.sessions = desk.sessions
        fuller.put("anna", entry("a.md", "six", base=2))
        with pytest.raises(OverLimitError):
            fuller.put("anna", entry("a.md", "seven", base=5))


def test_keys_that_clash_are_refused(desk: Desk) -> None:
    """A new key that differs from a live one in case alone is refused, until that one is gone."""
    desk.join("anna")
    desk.put("anna", entry("x/a.md"))
    for key in ("x/A.md", "X/b.md"):
        with pytest.raises(EntriesRefusedError) as error:
            desk.put("anna", entry(key))
        assert error.value.details == {"entries": [{"key": key, "rule": "case", "line": 0}]}
    desk.remove("anna", "x/a.md", 1)
    desk.put("anna", entry("X/b.md"))


def test_a_small_repository_can_be_tidied(desk: Desk) -> None:
    """Of a few entries a member may remove five a day."""
    desk.join("anna")
    desk.put("anna", *(entry(f"{number}.md") for number in range(6)))
    for number in range(5):
        desk.remove("anna", f"{number}.md", 1)
    with pytest.raises(TooMuchError):
        desk.remove("anna", "5.md", 1)
    desk.now += DAY + 1
    desk.remove("anna", "5.md", 1)
