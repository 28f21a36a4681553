"""What a sync does about each key."""

import pytest

from memd.team import planning
from memd.team.values import REMOVED, Act, Base, RemoteEntry

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
    assert planning.act(local, base, remote) is act
