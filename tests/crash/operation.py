"""One operation of the store, run as a process of its own so that it can be killed.

Usage: ``operation.py <root> <operation> prepare|run|recover|faulty``. ``prepare`` makes the state
that the operation starts from. Prints ``acknowledged`` when the store said that the change is
done; with ``faulty`` also ``failed <kind>`` for a typed error, and ``next`` or ``failed …`` for the
same request once more, more than a second later by the store's clock, in the same process.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.crash.core import REFUSED, Core, open_core
from tests.crash.core_import import take_in
from tests.crash.kit import Edit, Edits, Effect, Memory, sha256, topic

OLD_TIME = 1_600_000_000_000_000_000
REQUEST = "request-1"
LONG = "one line of a longer memory\n" * 60
HAND = b"# Memories\n\nA line by hand.\n\n- [A](a.md) \xe2\x80\x94 about a\n"


def prepare(core: Core) -> None:
    """Make four memories, an index with hand-written lines, and one change to be undone."""
    (core.path / "MEMORY.md").write_bytes(HAND)
    (core.path / "a.md").write_bytes(topic("a", LONG))
    core.commit([Edit(f"{name}.md", topic(name, LONG)) for name in ("b", "c", "sub/d")])
    for name in ("a", "b", "c", "sub/d"):
        os.utime(core.path / f"{name}.md", ns=(OLD_TIME, OLD_TIME))
    core.commit([Edit("b.md", topic("b", "later")), Edit("c.md", None)])


def write(core: Core) -> None:
    """Write one memory."""
    core.commit([Edit("new.md", topic("new", LONG))], REQUEST)


def extraction(core: Core) -> None:
    """Add a topic in a new folder, update one, add an index line, move the cursor, suggest."""
    fresh = Edit("fresh/e.md", topic("e", LONG), line=("E", "the hook"))
    effects = (Effect("cursor", "session", 4096), Effect("suggestion", "session", "said"))
    core.commit([fresh, Edit("a.md", topic("a", "learned"))], REQUEST, *effects)


def dream(core: Core) -> None:
    """Merge a memory into another that keeps its time, and remove two."""

    def plan(read: Callable[[str], Memory | None]) -> Edits:
        target = read("a.md")
        assert target is not None
        base = sha256(target.content)
        merged = Edit("a.md", target.content + b"merged\n", base, target.mtime_ns)
        return [merged, Edit("b.md", None), Edit("sub/d.md", None)]

    core.commit(plan, REQUEST)


def undo(core: Core) -> None:
    """Undo that change: one file gets its text and time back, one comes back."""
    core.undo(core.history("c.md")[0], REQUEST)  # once it is done the request is known


def delete(core: Core) -> None:
    """Delete a memory in a folder; its index line goes with it."""
    core.commit([Edit("sub/d.md", None)], REQUEST)


def pull(core: Core) -> None:
    """Write two memories of a team, with the bases that move with them."""
    files = {f"{name}.md": topic(name, LONG).replace(b"user", b"project") for name in "xy"}
    bases = Effect("bases", "", {key: sha256(body) for key, body in files.items()})
    core.commit([Edit(f"team/{key}", body) for key, body in files.items()], REQUEST, bases)


def bulk(core: Core) -> None:
    """Write nine files in three folders in one set: six new, two changed, one removed."""
    fresh = [Edit(f"{folder}n{n}.md", topic(f"n{n}")) for folder in ("", "x/", "y/") for n in "12"]
    changed = [Edit(f"{name}.md", topic(name, "bulk")) for name in "ab"]
    core.commit([*fresh, *changed, Edit("sub/d.md", None)], REQUEST)


def imported(core: Core) -> None:
    """Take an import in: new files with their times, one beside another, and an index's lines."""
    files = {
        "a.md": topic("a", "elsewhere"),
        "an odd n\u00e4me.md": topic("odd", LONG),
        "team/t.md": topic("t", LONG),
        "MEMORY.md": b"Theirs\n- [A](a.md)\n",
    }
    take_in(core, files, OLD_TIME, REQUEST)


OPERATIONS = {
    "write": write,
    "extraction": extraction,
    "dream": dream,
    "undo": undo,
    "delete": delete,
    "pull": pull,
    "bulk": bulk,
    "import": imported,
}


def faulty(root: Path, name: str) -> None:
    """Do the operation where a system call fails, say how it ended, and send it once more."""
    try:
        with open_core(root) as core:
            core.pause = 3.0
            for words in ("acknowledged", "next"):
                try:
                    OPERATIONS[name](core)
                except REFUSED as error:
                    words = f"failed {error.kind}"  # noqa: PLW2901 - how it ended
                _say(words)
    except REFUSED as error:  # the state file could not be opened
        _say(f"failed {error.kind}")


def _say(words: str) -> None:
    os.writev(1, [f"{words}\n".encode()])  # no call of the store, so that it can fail alone


def main() -> None:
    """Do what the arguments say."""
    root, name, step = sys.argv[1:]
    if step == "faulty":
        faulty(Path(root), name)
        return
    with open_core(Path(root)) as core:
        if step == "prepare":
            prepare(core)
        elif step == "recover":
            core.recover()
        else:
            OPERATIONS[name](core)
        os.write(1, b"acknowledged\n")


if __name__ == "__main__":
    main()
