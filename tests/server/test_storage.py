"""Writes and removals, the same on both databases."""

import pytest

from memd.core.team import Limits
from memd.core.text import sha256
from memd.server.accepting import DAY, HOUR
from memd.server.errors import (
    EntriesChangedError,
    EntriesRefusedError,
    IdReusedError,
    MalformedRequestError,
    NotThereError,
    OverLimitError,
    RoleMissingError,
    SlowDownError,
)
from memd.server.values import Role
from tests.server.desk import Desk, entry, memory, new_id, open_desk


def test_a_write_gives_one_revision(desk: Desk) -> None:
    """All entries of a write get the repository's next revision, and stay as they came."""
    desk.join("anna")
    answer = desk.put("anna", entry("a.md"), entry("x/b.md", "other"))
    assert answer == {
        "revision": 1,
        "entries": [
            {"key": "a.md", "revision": 1, "status": "created"},
            {"key": "x/b.md", "revision": 1, "status": "created"},
        ],
    }
    [version, _] = desk.storage.page(desk.repository.id).entries
    assert (version.content, version.hash) == (memory(), sha256(memory()))
    assert (version.member, version.device, version.at) == ("anna", "laptop", desk.now)


def test_bytes_that_are_there_match(desk: Desk) -> None:
    """An entry whose bytes are there is unchanged whatever its base, and takes no revision."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    again = desk.put("anna", entry("a.md", base=None))
    assert again["entries"] == [{"key": "a.md", "revision": 1, "status": "unchanged"}]
    mixed = desk.put("anna", entry("a.md", base=77), entry("b.md"))
    assert [each["status"] for each in mixed["entries"]] == ["unchanged", "created"]
    assert desk.revision() == 2


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


def test_a_base_of_nothing_differs(desk: Desk) -> None:
    """An entry based on a revision of a key that the server does not know is refused."""
    desk.join("anna")
    with pytest.raises(EntriesChangedError) as error:
        desk.put("anna", entry("a.md", base=3))
    assert error.value.details == {"entries": [{"key": "a.md", "revision": 0, "hash": ""}]}


def test_an_update_keeps_what_was(desk: Desk) -> None:
    """A new version leaves the one before in the history, with its author and bytes."""
    desk.join("anna")
    desk.join("ben")
    desk.put("anna", entry("a.md", "one"))
    desk.put("ben", entry("a.md", "two", base=1))
    new, old = desk.storage.history(desk.repository.id, "a.md")
    assert (new.member, new.content, new.revision) == ("ben", memory("two"), 2)
    assert (old.member, old.content, old.revision) == ("anna", memory("one"), 1)
    assert desk.storage.history(desk.repository.id, "a.md", before=2) == (old,)


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


def test_a_removal_is_told(desk: Desk) -> None:
    """A tombstone says who removed a key, when and why."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    desk.now += 5
    desk.remove("anna", "a.md", 1)
    page = desk.storage.page(desk.repository.id)
    assert page.entries == ()
    [tombstone] = page.removed
    assert (tombstone.key, tombstone.revision, tombstone.reason) == ("a.md", 2, "it is wrong")
    assert (tombstone.member, tombstone.at, tombstone.content) == ("anna", desk.now, None)


def test_a_removal_names_what_it_saw(desk: Desk) -> None:
    """A removal of another revision, or of what is removed, changes nothing."""
    desk.join("anna")
    desk.put("anna", entry("a.md", "one"))
    desk.put("anna", entry("a.md", "two", base=1))
    with pytest.raises(EntriesChangedError):
        desk.remove("anna", "a.md", 1)
    desk.remove("anna", "a.md", 2)
    with pytest.raises(EntriesChangedError):
        desk.remove("anna", "a.md", 3)
    for key in ("never.md", "MEMORY.md", "../x", "\0"):
        with pytest.raises(NotThereError):
            desk.remove("anna", key, 1)
    assert desk.revision() == 3


def test_members_remove_what_they_made(desk: Desk) -> None:
    """An entry is removed by the member who made it, whoever edited it since, or a maintainer."""
    for name, role in (("anna", Role.MEMBER), ("ben", Role.MEMBER), ("mia", Role.MAINTAINER)):
        desk.join(name, role)
    desk.put("anna", entry("a.md", "one"), entry("b.md"))
    desk.put("ben", entry("a.md", "two", base=1))
    with pytest.raises(RoleMissingError):
        desk.remove("ben", "a.md", 2)
    desk.remove("anna", "a.md", 2)
    desk.remove("mia", "b.md", 1)
    desk.put("ben", entry("a.md", "mine now", base=3))
    with pytest.raises(RoleMissingError):
        desk.remove("anna", "a.md", 5)
    desk.remove("ben", "a.md", 5)


def test_roles_limit_what_is_done(desk: Desk) -> None:
    """Readers write and remove nothing; strangers do not learn that there is a repository."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    desk.join("rob", Role.READER)
    desk.join("eve")
    desk.storage.grant("eve", desk.repository.id, None, now=desk.now)
    for name, error in (("rob", RoleMissingError), ("eve", NotThereError)):
        with pytest.raises(error):
            desk.put(name, entry("b.md"))
        with pytest.raises(error):
            desk.remove(name, "a.md", 1)
    assert desk.live() == {"a.md": memory()}


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


def test_a_write_has_1_to_100_entries(desk: Desk) -> None:
    """A write with too many entries is refused by the limit, one without any is malformed."""
    desk.join("anna")
    with pytest.raises(OverLimitError) as error:
        desk.put("anna", *(entry(f"{number}.md") for number in range(101)))
    assert error.value.details == {"limit": "put_entries", "max": 100, "have": 101}
    with pytest.raises(MalformedRequestError):
        desk.put("anna")


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


def test_removals_are_slowed_down(desk: Desk) -> None:
    """A member removes 20 entries an hour, and a fifth of a repository a day."""
    desk.join("anna", Role.MAINTAINER)
    desk.join("ben", Role.MAINTAINER)
    for number in range(3):
        desk.put("anna", *(entry(f"{number}/{each}.md") for each in range(100)))
    desk.remove("anna", "0/0.md", 1)
    desk.now += 60
    for number in range(1, 20):
        desk.remove("anna", f"0/{number}.md", 1)
    with pytest.raises(SlowDownError) as error:
        desk.remove("anna", "0/20.md", 1)
    assert error.value.retry_after == HOUR - 60
    desk.remove("ben", "0/20.md", 1)
    for folder, count in ((1, 20), (2, 19)):
        desk.now += HOUR
        for number in range(count):
            desk.remove("anna", f"{folder}/{number}.md", folder + 1)
    with pytest.raises(SlowDownError) as error:
        desk.remove("anna", "2/19.md", 3)
    assert error.value.retry_after == DAY - 60 - 2 * HOUR


def test_a_small_repository_can_be_tidied(desk: Desk) -> None:
    """Of a few entries a member may remove five a day."""
    desk.join("anna")
    desk.put("anna", *(entry(f"{number}.md") for number in range(6)))
    for number in range(5):
        desk.remove("anna", f"{number}.md", 1)
    with pytest.raises(SlowDownError):
        desk.remove("anna", "5.md", 1)
    desk.now += DAY + 1
    desk.remove("anna", "5.md", 1)
