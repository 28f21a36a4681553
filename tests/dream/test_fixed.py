"""Dreams without a model: nothing is lost, nothing is decided, a second one changes nothing."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.names import INDEX
from memd.base.values import MemoryType
from memd.dream.values import DreamReport
from memd.text.statements import statements
from tests.dream.bench import Bench
from tests.dream.nights import FEEDBACK, USER, bench_in, memory, project, put, reference, rule
from tests.undoing import undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up an empty store."""
    with bench_in(tmp_path) as made:
        yield made


def stored(bench: Bench) -> dict[str, str]:
    """Return every memory and the index."""
    return {path.name: path.read_text() for path in sorted(bench.memory.glob("*.md"))}


async def dream(bench: Bench, **files: str) -> DreamReport:
    """Put memories there, named without their suffix, and dream."""
    for name, text in files.items():
        put(bench, f"{name}.md", text, 1)
    return await bench.run(bench.dreams())


SAME = "The cache is flushed by hand. Ana knows `how`."


@pytest.mark.parametrize(
    ("one", "two", "merged"),
    [
        (reference(SAME), reference(SAME), True),
        (reference(SAME), reference(f"\n{SAME}\n\n"), True),
        (reference(f"{SAME}\n\nIt is in Oslo."), reference(SAME), False),
        (rule(SAME), rule(SAME), True),
        (rule(SAME), rule("Ana knows `how`. The cache is flushed by hand."), False),
        (reference(SAME), project(SAME), False),
        (reference(SAME), reference("The cache is flushed by hand. Ana knows `How`."), False),
        (reference(SAME, "How the cache is flushed"), reference(SAME, "How it is flushed"), True),
        (reference(SAME, "Where port 98 is"), reference(SAME, "Where port 99 is"), False),
        (memory(USER, SAME), memory(FEEDBACK, SAME), False),
    ],
)
async def test_only_what_says_the_same_goes(
    bench: Bench,
    one: str,
    two: str,
    merged: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A memory goes where another one has its body and all its words, and that one stays."""
    report = await dream(bench, one=one, two=two)
    assert len(report.merged) == merged
    after = stored(bench)
    assert {after[name] for name in after if name != INDEX} <= {one, two}
    assert not report.problems
    again = await bench.run(bench.dreams())
    assert (again.change, again.merged) == (None, ())


async def test_what_is_linked_to_stays(bench: Bench) -> None:
    """Of two equal memories the one that something links to stays; of two linked ones both do."""
    links = project("See [one](b.md), [[c]] and [two](d.md).")
    report = await dream(
        bench, a=reference(SAME), b=reference(SAME), c=project(SAME), d=project(SAME), links=links
    )
    assert [(merge.source, merge.into) for merge in report.merged] == [("a.md", "b.md")]


async def test_heads_and_pointers(bench: Bench) -> None:
    """The index is made true, and no word of a memory changes."""
    await dream(bench, gone=reference("It is gone."))
    (bench.memory / "gone.md").unlink()
    put(bench, INDEX, "# Mine\nBy hand.\n- [Gone](gone.md) — x\n- [M](move.md) — next Friday\n", 1)
    damaged = "---\nname: x\nno field\n---\n\nText.\n"
    report = await dream(
        bench,
        move=project("The office moves next Friday."),
        ref=reference("It moves next Friday."),
        damaged=damaged,
        bare="next Friday\n",
    )
    after = stored(bench)
    assert after["move.md"] == project("The office moves next Friday.")
    assert (after["damaged.md"], after["bare.md"]) == (damaged, "next Friday\n")
    assert {left.path for left in report.listed} == {"damaged.md"}
    assert after[INDEX].startswith("# Mine\nBy hand.\n- [M](move.md) — next Friday\n")
    assert "gone.md" not in after[INDEX]
    assert "ref.md" in after[INDEX]
    assert (await bench.run(bench.dreams())).change is None


async def test_what_was_taken_back_stays(bench: Bench) -> None:
    """A merge that a person undid is not made again while the text is the same."""
    await dream(bench, one=reference(SAME), two=reference(SAME))
    (change,) = await to_thread.run_sync(bench.store.history, str(bench.memory))
    await undo(bench.store, str(bench.memory), change.id, change.by)
    report = await bench.run(bench.dreams())
    assert report.merged == ()
    assert {left.path for left in report.left} >= {"two.md"}


WORDS = st.sampled_from(
    [
        "the",
        "cache",
        "port",
        "8080",
        "9090",
        "never",
        "is",
        "flushed",
        "by",
        "Ana",
        "on",
        "Friday",
        "`x`",
        "in",
        "Oslo",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join).map("{}.".format)
TEXTS = st.lists(SENTENCES, min_size=1, max_size=3).map("\n\n".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MemoryType), TEXTS), min_size=2, max_size=8))
def test_nothing_evaporates(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[MemoryType, str]]
) -> None:
    """Each statement stands afterwards in a memory of its type; a second dream changes nothing."""

    async def twice() -> None:
        with bench_in(tmp_path_factory.mktemp("fixed")) as bench:
            files = {f"m{n}": memory(kind, text) for n, (kind, text) in enumerate(drawn)}
            report = await dream(bench, **files)
            assert not report.problems
            after = stored(bench)
            assert (await bench.run(bench.dreams())).change is None
            assert stored(bench) == after
        there = [(drawn[int(name[1:-3])][0], text) for name, text in after.items() if name != INDEX]
        for kind, text in drawn:
            said = {one.key for other, whole in there if other is kind for one in statements(whole)}
            assert {one.key for one in statements(text)} <= said

    anyio.run(twice)
