"""What a pass comes to on a directory."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import Actor, Draft, FileEdit, Header, MemoryType, Provenance, Tree
from memd.dream.pass_result import PassResult, ReadyPass, find, orphans, size
from memd.dream.values import DirectorySize, Left, Merge, Wanted
from memd.model.port import Usage
from memd.state import cursors, dreams, job_rows, journal, runs
from memd.state.database import open_database
from memd.store.history import Past
from tests.dream.bench import Bench
from tests.dream.shelf import Shelf

pytestmark = pytest.mark.anyio
BY = Provenance(Actor.DREAM)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # as such a token looks


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with two memories."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA, runs.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    made = Bench(tmp_path, database)
    made.write("a.md", "Ana owns the deploys on Tuesdays.\n")
    made.write("b.md", "Bo owns the rollbacks on Fridays.\n")
    (made.memory / INDEX).write_text("# Mine\n- [A](a.md) — x\n")
    yield made
    database.close()


async def results(bench: Bench, wanted: Wanted, **facts: object) -> PassResult:
    """Return what a pass comes to."""
    seen: list[PassResult] = []

    def plan(past: Past, tree: Tree) -> Draft:
        done = ReadyPass(lambda _: lambda _tree: wanted, **facts)  # type: ignore[arg-type]
        seen.append(find(tree, done, past))
        return Draft()

    directory = str(bench.memory)
    await bench.store.take_back(
        directory, lambda past: lambda tree: plan(past, tree), BY, dry_run=True
    )
    return seen[0]


async def test_a_pass_is_judged_with_all_that_it_names(bench: Bench) -> None:
    """Files and targets of claims are read, and what is no name at all is nothing."""
    both = (bench.memory / "a.md").read_bytes() + b"\nBo owns the rollbacks on Fridays.\n"
    edits = (FileEdit("a.md", both), FileEdit("b.md", None))
    left = (Left("c.md", "somebody changed it"),)
    good = await results(bench, Wanted(edits, (Merge("a.md", "b.md"),), left=left))
    report = good.report()
    assert (report.merged, report.problems, report.left) == ((Merge("a.md", "b.md"),), (), left)
    assert report.before is not None
    assert (report.before.memories, report.before.index_lines) == (2, 2)
    bad = await results(bench, Wanted(edits[1:], (Merge("../../etc/passwd", "b.md"),)))
    assert bad.judged.problems != ()
    assert (bad.report().removed, bad.report().merged) == ((), ())


async def test_a_proposal_holds_what_a_person_needs_and_no_secret(bench: Bench) -> None:
    """Each file before and after with its reason; the text with a secret is kept nowhere."""
    secret = bench.write("s.md", f"The token is {TOKEN}.\n", MemoryType.REFERENCE).read_bytes()
    os.unlink(bench.memory / "s.md")
    wanted = Wanted(
        (
            FileEdit("a.md", None, "h"),
            FileEdit("b.md", None, "h"),
            FileEdit("s.md", secret, ""),
            FileEdit(INDEX, b"# Mine\n", "h"),
        ),
        (Merge("b.md", "a.md"),),
        {"b.md": "it is over since May"},
    )
    result = await results(bench, wanted, engine="large", said="Done.", usage=Usage(1))
    kept = result.proposal("/m", "j1", 5.0)
    assert (kept.directory, kept.job, kept.at, kept.said) == ("/m", "j1", 5.0, "Done.")
    assert kept.problems != ()
    edits = {edit.path: edit for edit in kept.edits or ()}
    assert list(edits) == ["a.md", "b.md", INDEX]
    assert (edits["a.md"].merged_into, edits["a.md"].content) == ("b.md", None)
    assert edits["b.md"].reason == "it is over since May"
    assert edits[INDEX].before == "# Mine\n- [A](a.md) — x\n".encode()
    assert {edit.state for edit in edits.values()} == {"open"}
    assert TOKEN not in str(kept)


async def test_a_proposal_holds_exact_bytes_and_what_was_read(bench: Bench) -> None:
    """A byte that is no text comes back, and each file has its base, said or not."""
    foreign = (bench.memory / "a.md").read_bytes() + b"caf\xe9\r\n"
    (bench.memory / "b.md").write_bytes(foreign)
    wanted = Wanted(
        (FileEdit("a.md", foreign, mtime_ns=7), FileEdit("b.md", None), FileEdit("c.md", b""))
    )
    edits = (await results(bench, wanted)).proposal("/m", "j1", 5.0).edits
    assert edits is not None
    assert [(edit.content, edit.mtime_ns) for edit in edits] == [
        (foreign, 7),
        (None, None),
        (b"", None),
    ]
    assert [edit.before for edit in edits[1:]] == [foreign, None]
    assert [edit.base for edit in edits[1:]] == [sha256(foreign), ""]


def test_a_directory_has_a_size() -> None:
    """Nothing is nothing; an index counts in lines and bytes."""
    assert size((), None) == DirectorySize()
    assert size((), b"# One\n- two") == DirectorySize(index_lines=2, index_bytes=11)


def test_what_no_line_names_is_an_orphan() -> None:
    """Memories without a pointer are named, of very many only some."""
    headers = [
        Header(f"m{number}.md", "m", "", None, 0, 1, damaged=False, inode=number)
        for number in range(100)
    ]
    assert orphans(headers[:3], b"- [M](m1.md) - x\n") == ("m0.md", "m2.md")
    assert len(orphans(headers, None)) == 50


def test_the_fixed_pass_has_no_model() -> None:
    """Only a pass by a model names one."""
    assert ReadyPass(lambda _: lambda _tree: Wanted()).by_model == ""
    assert ReadyPass(lambda _: lambda _tree: Wanted(), "large").by_model == "large"


@pytest.mark.parametrize(
    ("path", "content", "holds"),
    [
        ("a.md", b"Ana owns nothing.", False),
        ("new.md", b"Dee was here first.", False),
        (INDEX, b"- [A](a.md) - y\n", False),
        ("c.md", b"Cy owns the alerts.", True),
    ],
)
async def test_what_was_found_holds_while_its_files_stay(
    bench: Bench, path: str, content: bytes, *, holds: bool
) -> None:
    """Another text in a file that would be touched, or in the index, calls for another look."""
    edits = (FileEdit("a.md", None), FileEdit("new.md", b"Cy owns the alerts."))
    early = await results(bench, Wanted(edits, reasons={"a.md": "is over"}))
    files = {file.name: file.read_bytes() for file in bench.memory.glob("*.md")}
    assert early.holds(Shelf(files))
    assert early.holds(Shelf(files | {path: content})) is holds
