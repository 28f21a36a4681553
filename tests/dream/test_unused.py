"""What a dream asks about: memories that nobody used for 90 days."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memd.core.settings import DreamSettings, Settings
from memd.core.text import sha256
from memd.core.values import Actor, MemoryType, Provenance
from memd.dream.unused import MOST_REMOVALS
from memd.review.service import Reviews
from memd.state import cursors, dreams, job_rows, journal
from memd.state.baseline import Baseline
from memd.state.changes import UNUSED, Proposal
from memd.state.database import StateUnusableError, open_database
from memd.state.usage import UsageTable
from memd.state.uses import UNUSED_DAYS
from tests.dream.bench import DAY, NOW, NS, Bench

pytestmark = pytest.mark.anyio
AGES = (NOW - 200 * DAY, NOW - 200 * DAY)
SCHEMAS = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories, of which 100 days were counted."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    made = Bench(tmp_path, database)
    count(made, 100)
    yield made
    database.close()


def count(bench: Bench, days: int) -> None:
    """Say how many days were counted so far."""
    before = bench.clock.now() - UNUSED_DAYS * DAY
    bench.database.write("INSERT OR REPLACE INTO usage_days VALUES (1, ?, 1, 0, ?)", (days, before))


def unused(bench: Bench, *paths: str, body: str = "", begin: float = 0.0) -> None:
    """Write memories that nobody used, each a day younger than the one before."""
    days = bench.database.read("SELECT days FROM usage_days")[0]["days"]
    rows = []
    for number, path in enumerate(paths):
        (bench.memory / path).parent.mkdir(exist_ok=True)
        bench.write(path, body or f"Only {path} says this about number {number}.")
        at = AGES[0] + begin + number * DAY
        rows.append((str(bench.memory), path, at, at, days - 100))
    with bench.database.transaction() as cursor:
        cursor.executemany(
            "INSERT INTO usage (directory, path, since, at, counted) VALUES (?, ?, ?, ?, ?)", rows
        )
    known(bench, *paths)


def known(bench: Bench, *paths: str) -> None:
    """Give files their age, and let memd know them as they are."""
    rows = []
    for path in paths:
        os.utime(bench.memory / path, AGES)
        key = sha256((bench.memory / path).read_bytes())
        rows.append((str(bench.memory), path, key, int(AGES[0] * NS)))
    with bench.database.transaction() as cursor:
        cursor.executemany("INSERT OR REPLACE INTO shadows VALUES (?, ?, ?, '', ?, NULL)", rows)
    Baseline(bench.database).mark_scanned(str(bench.memory), NOW)


def questions(bench: Bench) -> list[list[str]]:
    """Return the paths of each open question."""
    return [
        [edit.path for edit in proposal.edits or () if edit.state == "open"]
        for proposal in bench.proposals.of_directory(str(bench.memory))
        if proposal.asks
    ]


async def dream(bench: Bench, *, asks: bool = True) -> str | None:
    """Dream and return the id of the question, if there is one."""
    settings = replace(Settings(), dream=DreamSettings(unused=asks))
    report = await bench.run(bench.dreams(), settings=settings)
    assert (report.merged, report.removed, report.proposal) == ((), (), None)
    return report.unused


def names(numbers: Iterable[int]) -> list[str]:
    """Return names of memories."""
    return [f"m{number:05}.md" for number in numbers]


async def test_the_longest_unused_are_asked_about_first(bench: Bench) -> None:
    """Ten at most, each with since when; every file stays, and the lock's time counts."""
    unused(bench, *names(range(12)))
    before = bench.content()
    assert await dream(bench) == "p1"
    assert questions(bench) == [names(range(MOST_REMOVALS))]
    (proposal,) = bench.proposals.of_directory(str(bench.memory))
    first = (proposal.edits or ())[0]
    assert (first.content, first.reason) == (
        None,
        "not surfaced, read or changed since 2025-08-14",
    )
    after = bench.content()
    memories = [path for path in before if path in names(range(12))]
    assert len(memories) == 12
    assert all(after[path] == before[path] for path in memories)


async def test_a_question_takes_the_place_of_the_last_one(bench: Bench) -> None:
    """The same one stays; another one replaces it, and one that is settled is taken back."""
    unused(bench, "a.md", "b.md")
    assert await dream(bench) == await dream(bench) == "p1"
    UsageTable(bench.database).read(str(bench.memory), "a.md", "s", NOW)
    assert await dream(bench) not in ("p1", None)
    assert questions(bench) == [["b.md"]]
    UsageTable(bench.database).read(str(bench.memory), "b.md", "s", NOW)
    assert await dream(bench) is None
    assert questions(bench) == []


async def test_a_setting_switches_it_off(bench: Bench) -> None:
    """With ``dream.unused`` off nothing is asked, and what was asked is taken back."""
    unused(bench, "a.md")
    assert await dream(bench)
    assert await dream(bench, asks=False) is None
    assert questions(bench) == []


async def test_some_memories_are_never_asked_about(bench: Bench) -> None:
    """Pinned ones, those of a team or of agents, a secret, an odd name, what changed or is gone."""
    unused(bench, "team/a.md", "agents/a.md", "odd name.md", "gone.md", "changed.md", "asked.md")
    unused(bench, "secret.md", body="The token is ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3eF5")
    for number, line in enumerate(("pinned: true", "metadata:\n  pinned: 'True'", "pinned: yes")):
        unused(bench, f"pin{number}.md")
        (bench.memory / f"pin{number}.md").write_text(f"---\nname: a\n{line}\n---\n\ntext {line}\n")
        known(bench, f"pin{number}.md")
    os.unlink(bench.memory / "gone.md")
    os.utime(bench.memory / "changed.md", (NOW, NOW))
    await dream(bench)
    assert questions(bench) == [["asked.md"]]


async def test_what_the_dream_changes_is_not_asked_about(bench: Bench) -> None:
    """Of two memories that say the same one goes into the other; nobody is asked about them."""
    fact = "Deploys go out on the second day after the weekly review, watched for an hour."
    unused(bench, "a.md", body=fact + " Ana knows more.")
    unused(bench, "b.md", body=fact, begin=DAY)
    report = await bench.run(bench.dreams())
    assert [merge.source for merge in report.merged] == ["b.md"]
    assert questions(bench) == []


async def test_who_refuses_is_not_asked_again_for_180_days(bench: Bench) -> None:
    """By memory, also after it was renamed; other changes of it are no less welcome."""
    unused(bench, "a.md", "b.md", "c.md")
    name = await dream(bench)
    assert name
    reviews = Reviews(bench.store, bench.proposals, bench.clock)
    await reviews.reject(str(bench.memory), name, ["a.md", "b.md"])
    assert questions(bench) == [["c.md"]]
    assert bench.proposals.refused_edits(str(bench.memory)) == frozenset()
    bench.database.write("UPDATE uses SET path = 'd.md' WHERE path = 'b.md'")
    bench.database.write("UPDATE usage SET path = 'd.md' WHERE path = 'b.md'")
    bench.database.write("UPDATE shadows SET path = 'd.md' WHERE path = 'b.md'")
    os.rename(bench.memory / "b.md", bench.memory / "d.md")
    for days, wanted in ((101, ["c.md"]), (280, ["c.md"]), (281, ["a.md", "d.md", "c.md"])):
        count(bench, days)
        UsageTable(bench.database).prune()
        name = await dream(bench)
        assert [sorted(paths) for paths in questions(bench)] == [sorted(wanted)], days
    assert name
    results = await reviews.accept(str(bench.memory), name, ["a.md"], client="memctl")
    assert results.accepted == ("a.md",)
    assert not (bench.memory / "a.md").exists()
    assert (bench.memory / "c.md").exists()


async def test_an_accepted_memory_that_changed_since_stays(bench: Bench) -> None:
    """Who edits a memory between the question and the yes keeps it."""
    unused(bench, "a.md")
    name = await dream(bench)
    bench.write("a.md", "Now it says something else.", MemoryType.REFERENCE)
    reviews = Reviews(bench.store, bench.proposals, bench.clock)
    assert name
    results = await reviews.accept(str(bench.memory), name)
    assert (results.accepted, [left.path for left in results.left]) == ((), ["a.md"])
    assert (bench.memory / "a.md").exists()


@pytest.mark.soak
async def test_ten_of_ten_thousand(bench: Bench) -> None:
    """However many nobody used, ten are asked about, and all files stay."""
    unused(bench, *names(range(10_000)))
    await dream(bench)
    assert questions(bench) == [names(range(MOST_REMOVALS))]
    assert len(list(bench.memory.glob("*.md"))) >= 10_000


async def test_a_question_and_its_successor_are_never_both_open(bench: Bench) -> None:
    """Where the last one cannot be taken back, there is no new one."""
    unused(bench, "a.md", "b.md")
    assert await dream(bench) == "p1"
    UsageTable(bench.database).read(str(bench.memory), "a.md", "s", NOW)
    bench.database.write(
        "CREATE TRIGGER full BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    by = Provenance(Actor.DREAM, reason=UNUSED)
    (edit, _) = bench.proposals.of_directory(str(bench.memory))[0].edits or ()
    successor = Proposal("", str(bench.memory), NOW, edits=(edit,))
    with pytest.raises(StateUnusableError):
        bench.proposals.ask(successor, by)
    assert questions(bench) == [["a.md", "b.md"]]
