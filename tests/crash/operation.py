"""One operation of the store, run as a process of its own so that it can be killed.

Usage: ``operation.py <root> <operation> prepare|run|recover|faulty``. ``prepare`` makes the state
that the operation starts from. Prints ``acknowledged`` when the store said that the change is
done; with ``faulty`` also ``failed <kind>`` for a typed error, and ``next`` or ``failed …`` for the
same request once more, more than a second later by the store's clock, in the same process.
"""

import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.core.errors import MemdError
from memd.core.team import Base, moved
from memd.core.text import sha256
from memd.core.values import CursorMove, Draft, FileEdit, Pointer, Suggestion, Tree
from memd.portable.importing import remember_originals
from memd.portable.merging import plan_import
from memd.portable.plan import Incoming, KnownFiles
from memd.portable.values import ProposedMemory
from memd.state.tables import ImportTable
from tests.store.bench import Bench, open_bench, topic

OLD_TIME = 1_600_000_000_000_000_000
REQUEST = "request-1"
LONG = "one line of a longer memory\n" * 60
HAND = b"# Memories\n\nA line by hand.\n\n- [A](a.md) \xe2\x80\x94 about a\n"


def prepare(bench: Bench) -> None:
    """Make four memories, an index with hand-written lines, and one change to be undone."""
    (bench.path / "MEMORY.md").write_bytes(HAND)
    (bench.path / "a.md").write_bytes(topic("a", LONG))
    bench.commit(
        Draft(tuple(FileEdit(f"{name}.md", topic(name, LONG)) for name in ("b", "c", "sub/d")))
    )
    for name in ("a", "b", "c", "sub/d"):
        os.utime(bench.path / f"{name}.md", ns=(OLD_TIME, OLD_TIME))
    bench.commit(Draft((FileEdit("b.md", topic("b", "later")), FileEdit("c.md", None))))


def write(bench: Bench) -> None:
    """Write one memory."""
    bench.commit(Draft((FileEdit("new.md", topic("new", LONG)),)), REQUEST)


def extraction(bench: Bench) -> None:
    """Add a topic in a new folder, update one, add an index line, move the cursor, suggest."""
    draft = Draft(
        (FileEdit("fresh/e.md", topic("e", LONG)), FileEdit("a.md", topic("a", "learned"))),
        {"fresh/e.md": Pointer("E", "the hook")},
        (
            CursorMove("session", "/t.jsonl", 4096, "uuid"),
            Suggestion("session", "said", 4.0, "user"),
        ),
    )
    bench.commit(draft, REQUEST)


def dream(bench: Bench) -> None:
    """Merge a memory into another that keeps its time, and remove two."""

    def plan(tree: Tree) -> Draft:
        target = tree.read("a.md")
        assert target is not None
        merged = FileEdit("a.md", target.content + b"merged\n", target.hash, target.header.mtime_ns)
        return Draft((merged, FileEdit("b.md", None), FileEdit("sub/d.md", None)))

    bench.commit(plan, REQUEST)


def undo(bench: Bench) -> None:
    """Undo the second change: one file gets its text and time back, one comes back."""
    bench.undo("c2", REQUEST)


def delete(bench: Bench) -> None:
    """Delete a memory in a folder; its index line goes with it."""
    bench.commit(Draft((FileEdit("sub/d.md", None),)), REQUEST)


def pull(bench: Bench) -> None:
    """Write two memories of a team, with the bases that move with them."""
    files = {f"{name}.md": topic(name, LONG).replace(b"user", b"project") for name in "xy"}
    bases = [Base(key, sha256(body), 7, "anna") for key, body in files.items()]
    edits = tuple(FileEdit(f"team/{key}", body) for key, body in files.items())
    bench.commit(Draft(edits, effects=(moved(bases),)), REQUEST)


def bulk(bench: Bench) -> None:
    """Write nine files in three folders in one set: six new, two changed, one removed."""
    fresh = [
        FileEdit(f"{folder}n{n}.md", topic(f"n{n}")) for folder in ("", "x/", "y/") for n in "12"
    ]
    changed = [FileEdit(f"{name}.md", topic(name, "bulk")) for name in "ab"]
    bench.commit(Draft((*fresh, *changed, FileEdit("sub/d.md", None))), REQUEST)


def imported(bench: Bench) -> None:
    """Take an import in: new files with their times, one beside another, and an index's lines."""
    files = [
        ProposedMemory("a.md", topic("a", "elsewhere"), OLD_TIME, exact=True),
        ProposedMemory("an odd n\u00e4me.md", topic("odd", LONG), OLD_TIME, exact=True),
        ProposedMemory("team/t.md", topic("t", LONG), OLD_TIME, exact=True),
        ProposedMemory("MEMORY.md", b"Theirs\n- [A](a.md)\n", OLD_TIME, exact=True),
    ]
    table = ImportTable(bench.database)

    def plan(tree: Tree) -> Draft:
        versions = partial(bench.journal.versions, bench.directory)
        known = KnownFiles(table.of_directory(bench.directory), versions, bench.journal.blob)
        made = plan_import(Incoming(files, "memd", OLD_TIME), tree, known)
        remember_originals(table, bench.directory, made, bench.at)
        return made.draft()

    bench.commit(plan, REQUEST)


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
        with open_bench(root) as bench:
            for words in ("acknowledged", "next"):
                try:
                    bench.at += 2
                    OPERATIONS[name](bench)
                except MemdError as error:
                    words = f"failed {error.kind}"  # noqa: PLW2901 - how it ended
                _say(words)
    except MemdError as error:  # the state file could not be opened
        _say(f"failed {error.kind}")


def _say(words: str) -> None:
    os.writev(1, [f"{words}\n".encode()])  # no call of the store, so that it can fail alone


def main() -> None:
    """Do what the arguments say."""
    root, name, step = sys.argv[1:]
    if step == "faulty":
        faulty(Path(root), name)
        return
    with open_bench(Path(root)) as bench:
        if step == "prepare":
            prepare(bench)
        elif step == "recover":
            bench.changes.recover(1.0)
        else:
            OPERATIONS[name](bench)
        os.write(1, b"acknowledged\n")


if __name__ == "__main__":
    main()
