"""Proposals of imports, accepted and refused like those of dreams."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.names import INDEX
from memd.core.values import Actor, Provenance
from memd.documents import document
from memd.state.history import Filter
from tests.review.bench import Bench, open_bench, topic
from tests.undoing import undo

pytestmark = pytest.mark.anyio

BY = Provenance(Actor.CLIENT, "memctl", reason="import of a (codex)", origin="import:codex")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with one memory."""
    with open_bench(tmp_path) as made:
        made.write("a.md", topic("We ship on Mondays."))
        yield made


def marked(body: str) -> bytes:
    """Return a memory as an import proposes it."""
    return document.with_fields(topic(body), {"metadata.origin": "import"})


async def test_an_accepted_import_is_one_change_that_says_so(bench: Bench) -> None:
    """Odd names pass, the mark stays, the history names the source, and undo is as before."""
    before = bench.files()
    name = bench.propose(
        bench.edit("an odd name.md", marked("One.")),
        bench.edit("a.md", marked("Two.")),
        bench.edit(INDEX, b"Mine\n"),
        by=BY,
    )
    assert bench.proposal(name).imports
    (view,) = await bench.reviews.review(bench.directory)
    assert view.engine == "import:codex"
    done = await bench.reviews.accept(bench.directory, name, client="memctl")
    assert (done.left, done.state) == ((), "accepted")
    assert document.parse(bench.files()["an odd name.md"], "").origin == "import"
    (change, *_) = await bench.store.history(bench.directory, only=Filter())
    assert (change.id, change.by.origin) == (done.change, "import:codex")
    assert "an import" in change.by.reason
    await undo(bench.store, bench.directory, done.change or "", BY)
    assert bench.files() == before


async def test_an_import_takes_no_name_that_leads_out(bench: Bench) -> None:
    """What no archive may bring is left, whatever a damaged row says."""
    name = bench.propose(bench.edit("b.md", marked("B")), bench.edit("logs/c.md", b"C"), by=BY)
    done = await bench.reviews.accept(bench.directory, name)
    assert [(left.path, done.accepted) for left in done.left] == [("logs/c.md", ("b.md",))]


async def test_what_was_refused_of_an_import_is_no_matter_of_dreams(bench: Bench) -> None:
    """A dream may change a text of which an import was refused."""
    name = bench.propose(bench.edit("a.md", marked("Two.")), by=BY)
    await bench.reviews.reject(bench.directory, name, reason="no")
    assert bench.table.refused_edits(bench.directory) == frozenset()


def test_an_import_may_be_larger_than_a_dream(bench: Bench) -> None:
    """What is too much for a dream's proposal is kept for an import, up to its own bound."""
    large = [bench.edit(f"m{n}.md", bytes([65 + n]) * 4_000_000) for n in range(5)]
    assert len(bench.proposal(bench.propose(*large[:4], by=BY)).edits or ()) == 4
    assert bench.proposal(bench.propose(*large[:4])).edits == ()
    assert bench.proposal(bench.propose(*large, by=BY)).edits == ()
