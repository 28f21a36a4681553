"""Writes and removals, the same on both databases."""

import pytest

from memd.base.team import Limits
from memd.server.errors import EntriesRefusedError, OverLimitError
from tests.server.desk import Desk, entry, memory, new_id, open_desk


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
    with pytest.raises(EntriesRefusedError):
        desk.put("anna", entry("b.md"), number=number)
    with pytest.raises(EntriesRefusedError):
        desk.remove("anna", "a.md", 4, number=number)
    desk.storage.session("", now=desk.now)
    desk.join("anna", device="phone")
    assert desk.sessions["anna"].token != anna.token
    desk.put("anna", entry("b.md"), number=number)
    assert set(desk.live()) == {"a.md", "b.md"}


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
