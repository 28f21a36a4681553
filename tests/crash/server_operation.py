"""One act of the team server's storage, as a process of its own so that it can be killed.

Usage: ``server_operation.py <root> <operation> run``. Prints ``acknowledged`` when it is done.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.server.values import Role, Session
from tests.server.desk import Desk, entry, open_desk

IDS = "00000000-0000-4000-8000-00000000000"
CODE = "a-code"


def prepare(root: Path) -> None:
    """Make a repository with live, replaced and removed entries, and a member to come."""
    with open_desk(str(root / "team.db")) as desk:
        desk.join("anna", Role.MAINTAINER)
        desk.put("anna", entry("a.md", "one"), entry("b.md", "x" * 9000), number=f"{IDS}1")
        desk.put("anna", entry("c.md", "two", base=None), number=f"{IDS}2")
        desk.remove("anna", "c.md", 2, number=f"{IDS}3")


@contextmanager
def reopened(root: Path) -> Iterator[Desk]:
    """Open the storage as the next server process does."""
    with open_desk(str(root / "team.db")) as desk:
        token = desk.storage.tokens()[0]
        desk.sessions["anna"] = Session(token.number, token.member, token.device)
        yield desk


def put(desk: Desk) -> None:
    """Change an entry, write a new one, and one on its tombstone."""
    entries = (entry("a.md", "new", base=1), entry("d.md", "y" * 9000), entry("c.md", "z", base=3))
    desk.put("anna", *entries, number=f"{IDS}4")


def remove(desk: Desk) -> None:
    """Remove an entry."""
    desk.remove("anna", "b.md", 1, number=f"{IDS}5")


def purge(desk: Desk) -> None:
    """Erase an entry with all its versions."""
    if "b.md" in desk.live():
        desk.storage.purge(desk.repository.id, "b.md", now=desk.now)


def grant(desk: Desk) -> None:
    """Let another member in."""
    desk.storage.invite("ben", {desk.repository.id: Role.MEMBER}, now=desk.now)


OPERATIONS: dict[str, Callable[[Desk], None]] = {
    operation.__name__: operation for operation in (put, remove, purge, grant)
}


def state(desk: Desk) -> list[object]:
    """Return all that a member or the operator can read."""
    storage, number = desk.storage, desk.repository.id
    return [
        desk.fresh(),
        desk.live(),
        [storage.history(number, f"{key}.md", maintainer=True) for key in "abcd"],
        storage.members(),
        storage.tokens(),
    ]


def judged(root: Path, name: str, before: object, after: object, *, acknowledged: bool) -> str:
    """Return what is wrong after a death and a repeated request, "" when all is well."""
    with reopened(root) as desk:
        found = state(desk)
        wrong = {
            "neither before nor after": found not in (before, after),
            "acknowledged and lost": acknowledged and found != after,
            "damaged": bool(desk.damage()),
        }
        if name != "grant" or found == before:
            OPERATIONS[name](desk)
        wrong["the retry did not end in after"] = state(desk) != after
    return "; ".join(words for words, true in wrong.items() if true)


def main() -> None:
    """Run an operation and say that it is done."""
    root, name = sys.argv[1:3]
    with reopened(Path(root)) as desk:
        OPERATIONS[name](desk)
        print("acknowledged", flush=True)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
