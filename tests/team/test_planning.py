"""What a sync does about each key."""

import pytest

from memd.core.team import REMOVED, Base, HeldEntry, Outgoing
from memd.team import planning
from memd.team.values import Act, RemoteEntry

OLD, OURS, THEIRS = "old", "ours", "theirs"
BASE = Base("a.md", OLD, 5)
TOMBSTONE = Base("a.md", REMOVED, 5)


def entry(content: str, revision: int = 6, key: str = "a.md") -> RemoteEntry:
    """Return a key's entry as a server tells it."""
    return RemoteEntry(key, content, revision, "anna", "laptop", 1.0)


@pytest.mark.parametrize(
    ("local", "base", "remote", "act"),
    [
        # The server told nothing since the base.
        (None, None, None, Act.NOTHING),
        (OLD, BASE, None, Act.NOTHING),
        (OURS, BASE, None, Act.PUSH),
        (OURS, None, None, Act.PUSH),
        (None, BASE, None, Act.RESTORE),
        (None, TOMBSTONE, None, Act.NOTHING),
        (OURS, TOMBSTONE, None, Act.PUSH),
        # It told something that the base has already.
        (OURS, BASE, entry(THEIRS, 5), Act.PUSH),
        (OLD, BASE, entry(REMOVED, 4), Act.NOTHING),
        # It has another text.
        (OLD, BASE, entry(THEIRS), Act.TAKE),
        (None, None, entry(THEIRS), Act.TAKE),
        (None, TOMBSTONE, entry(THEIRS), Act.TAKE),
        (OURS, BASE, entry(THEIRS), Act.MERGE),
        (OURS, None, entry(THEIRS), Act.CONFLICT),
        (OURS, TOMBSTONE, entry(THEIRS), Act.CONFLICT),
        (None, BASE, entry(THEIRS), Act.RESTORE),
        # It has the same text as the file, or as the base, under a new revision.
        (THEIRS, BASE, entry(THEIRS), Act.ADOPT),
        (OURS, None, entry(OURS), Act.ADOPT),
        (OLD, BASE, entry(OLD), Act.ADOPT),
        (OURS, BASE, entry(OLD), Act.PUSH),
        (None, BASE, entry(OLD), Act.RESTORE),
        # It has a tombstone.
        (OLD, BASE, entry(REMOVED), Act.REMOVE),
        (OURS, BASE, entry(REMOVED), Act.HOLD),
        (OURS, None, entry(REMOVED), Act.HOLD),
        (OURS, TOMBSTONE, entry(REMOVED), Act.HOLD),
        (None, BASE, entry(REMOVED), Act.FORGET),
        (None, None, entry(REMOVED), Act.FORGET),
    ],
)
def test_the_table(
    local: str | None, base: Base | None, remote: RemoteEntry | None, act: Act
) -> None:
    """Each of the cases that file, base and server can be in has its one act."""
    assert planning.act_for(local, base, remote) is act


def test_only_a_tombstone_removes() -> None:
    """What a page, or all pages, lack is never removed, whatever stands here."""
    local = {"a.md": OLD, "b.md": OURS}
    bases = {"a.md": BASE}
    assert planning.plan_pull(local, bases, []) == ()
    plans = planning.plan_missing(local, bases, (), ())
    assert [(plan.act, plan.reason, plan.base_after) for plan in plans] == [
        (Act.HOLD, "only_here", None)
    ]
    assert [plan.act for plan in planning.plan_missing(local, bases, (), (), accepted=True)] == [
        Act.PUSH
    ]


def test_a_page_can_come_twice() -> None:
    """A page whose entries are the bases does nothing; the stamp of one's own write is taken."""
    theirs = entry(THEIRS)
    once = planning.plan_pull({"a.md": OLD}, {"a.md": BASE}, [theirs])
    assert [plan.act for plan in once] == [Act.TAKE]
    assert once[0].base_after == theirs.base
    assert planning.plan_pull({"a.md": THEIRS}, {"a.md": theirs.base}, [theirs]) == ()
    unstamped = Base("a.md", THEIRS, 6)
    stamped = planning.plan_pull({"a.md": OURS}, {"a.md": unstamped}, [theirs])
    assert [(plan.act, plan.base_after) for plan in stamped] == [(Act.PUSH, theirs.base)]


def test_a_file_that_is_deleted_here_is_written_again() -> None:
    """A deletion removes for nobody: the base's text returns, a removed key does not."""
    bases = {"a.md": BASE, "b.md": Base("b.md", REMOVED, 2), "c.md": Base("c.md", OLD, 3)}
    plans = planning.plan_restores({"c.md": OURS}, bases)
    assert [(plan.key, plan.act, plan.base) for plan in plans] == [("a.md", Act.RESTORE, BASE)]


@pytest.mark.parametrize(
    ("local", "base", "remote", "act"),
    [
        (OURS, BASE, entry(THEIRS, 3), Act.PUSH),  # it lost what ours is based on
        (OLD, BASE, entry(REMOVED, 3), Act.PUSH),
        (None, BASE, entry(THEIRS, 3), Act.RESTORE),  # the base's text, not the older one
        (THEIRS, BASE, entry(THEIRS, 3), Act.ADOPT),
        (OLD, BASE, entry(THEIRS, 9), Act.CONFLICT),  # written since, on top of who knows what
        (OURS, BASE, entry(THEIRS, 9), Act.CONFLICT),
        (OLD, BASE, entry(REMOVED, 9), Act.REMOVE),
        (OURS, BASE, entry(REMOVED, 9), Act.HOLD),
        (OURS, TOMBSTONE, entry(REMOVED, 3), Act.HOLD),
        (None, TOMBSTONE, entry(THEIRS, 3), Act.TAKE),
        (None, None, entry(THEIRS, 3), Act.TAKE),
    ],
)
def test_an_accepted_server_loses_nothing(
    local: str | None, base: Base | None, remote: RemoteEntry, act: Act
) -> None:
    """An older text is written over, another one is a conflict, and each base is the server's."""
    here = {"a.md": local} if local else {}
    (plan,) = planning.plan_after_accept(here, {"a.md": base} if base else {}, [remote])
    assert (plan.act, plan.base_after) == (act, remote.base)
    assert (plan.remote is None) == (act is Act.RESTORE)


def test_an_accepted_server_that_has_the_base_changes_nothing() -> None:
    """The version that was equal last is no news, not even of a server that came back."""
    same = RemoteEntry("a.md", OLD, 5)
    assert planning.plan_after_accept({"a.md": OURS}, {"a.md": BASE}, [same]) == ()


@pytest.mark.parametrize(
    ("local", "base", "held", "accepted", "acts"),
    [
        (OLD, BASE, (), False, [Act.HOLD]),
        (None, BASE, (), False, [Act.FORGET]),
        (None, BASE, (), True, [Act.RESTORE]),
        (OURS, BASE, (), True, [Act.PUSH]),
        (OURS, TOMBSTONE, (), False, [Act.PUSH]),
        (OURS, TOMBSTONE, ("a.md",), False, []),  # it would be sent without a person's word
        (OURS, TOMBSTONE, ("a.md",), True, []),
        (None, TOMBSTONE, ("a.md",), True, [Act.FORGET]),
    ],
)
def test_what_a_server_lacks(
    local: str | None, base: Base, held: tuple[str, ...], acts: list[Act], *, accepted: bool
) -> None:
    """What only this device has is held; what a restored server lost is offered again."""
    here = {"a.md": local} if local else {}
    plans = planning.plan_missing(here, {"a.md": base}, held, {"b.md"}, accepted=accepted)
    assert [plan.act for plan in plans] == acts
    assert all(plan.base_after is None for plan in plans)
    assert planning.plan_missing(here, {"a.md": base}, held, {"a.md"}, accepted=accepted) == ()


@pytest.mark.parametrize(
    ("removed", "entries", "much"),
    [(5, 5, False), (6, 30, False), (6, 29, True), (1_000, 5_000, False), (1_001, 5_000, True)],
)
def test_much_is_more_than_five_and_a_fifth(removed: int, entries: int, *, much: bool) -> None:
    """A person is asked about more than five removals that are more than a fifth."""
    assert planning.removes_too_much(removed, entries) is much


def test_updates_go_before_new_entries_and_the_oldest_first() -> None:
    """What is to be sent stands in that order, each with its base; what is held does not."""
    local = {"a.md": OLD, "b.md": OURS, "c.md": OURS, "d.md": OURS, "e.md": OURS, "f.md": OURS}
    bases = {
        "a.md": BASE,
        "b.md": Base("b.md", OLD, 1),
        "c.md": Base("c.md", OLD, 2),
        "d.md": Base("d.md", REMOVED, 3),
    }
    times = {"b.md": 9.0, "c.md": 1.0, "d.md": 2.0, "e.md": 1.0, "f.md": 0.0}
    assert planning.entries_to_send(local, bases, {"f.md"}, times) == (
        Outgoing("c.md", OURS, 2),
        Outgoing("b.md", OURS, 1),
        Outgoing("e.md", OURS, None),
        Outgoing("d.md", OURS, 3),
    )


@pytest.mark.parametrize(
    ("local", "reason", "room", "released"),
    [
        (OURS, "removed", False, False),
        (THEIRS, "removed", True, False),
        (None, "removed", False, True),
        (OLD, "secret", False, True),  # it is what the server has
        (OURS, "secret", False, False),
        (THEIRS, "secret", False, True),
        (THEIRS, "only_here", False, False),
        (OURS, "full", False, False),
        (OURS, "full", True, True),
    ],
)
def test_a_hold_ends_with_its_cause(
    local: str | None, reason: str, *, room: bool, released: bool
) -> None:
    """A refused text is held while it is that text, what a person decides until it is gone."""
    here = {"a.md": local} if local else {}
    held = {"a.md": HeldEntry("a.md", OURS, reason)}
    keys = planning.keys_to_release(here, {"a.md": BASE}, held, room=room)
    assert keys == (("a.md",) if released else ())
