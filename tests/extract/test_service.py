"""Extraction against a real store: memories, cursor and job's end move together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import CommitResult, Draft, Plan, Provenance, Tree
from memd.state.jobs import JobState
from memd.store.door import SecretInNameError
from memd.store.drafts import SecretRefusedError
from memd.store.service import Store
from tests.extract.bench import Bench, opened
from tests.support import samples

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories and an extraction without a model."""
    with opened(tmp_path) as made:
        made.without_model()
        yield made


RULE = "Never force-push to main because we lost a release once."


async def test_memories_cursor_and_job_move_together(bench: Bench) -> None:
    """One change set holds the memory and its index line, the cursor and the job's result."""
    job = bench.job()
    done = await bench.run(RULE, job=job)
    assert (done.status, done.saved) == (
        "completed",
        ("feedback_never-force-push-to-main-because.md",),
    )
    assert done.change
    assert "lost a release once" in (bench.memory / done.saved[0]).read_text()
    assert done.saved[0] in (bench.memory / "MEMORY.md").read_text()
    assert bench.cursor() is not None
    row = bench.table.get(job)
    assert row.state is JobState.COMPLETED
    assert row.result == {**done.facts(), "change": done.change}
    (change,) = await bench.store.history(str(bench.memory))
    assert (change.by.actor, change.by.origin, change.by.session) == ("extract", "user", "s")


async def test_a_refused_sentence_takes_nothing_with_it(bench: Bench) -> None:
    """What only looks like a credential in its file is refused and counted, the rest is saved."""
    secret = f"Remember that the sandbox key is {samples.secret()[:20]}1234567890"
    done = await bench.run(secret, RULE)
    assert (len(done.saved), len(done.refused)) == (1, 1)
    more = await bench.run(secret, RULE, "Always answer in British English.")
    assert more.saved == ("feedback_always-answer-in-british-english.md",)


RULE_OF_SECRETS = "stripe-key"


class RefusingStore(Store):
    """A store that finds a credential in one file, or in a name that it does not tell."""

    refused = ""

    async def commit(
        self, directory: str, plan: Plan, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Commit what has not the refused file."""

        def checked(tree: Tree) -> Draft:
            draft = plan(tree)
            if draft.edits and not self.refused:
                raise SecretInNameError(RULE_OF_SECRETS)
            if self.refused in {edit.path for edit in draft.edits}:
                raise SecretRefusedError(self.refused, RULE_OF_SECRETS, 3)
            return draft

        return await super().commit(directory, checked, by, request_id=request_id)


@pytest.mark.parametrize(
    ("refused", "saved"),
    [
        ("feedback_never-force-push-to-main-because.md", 1),
        ("", 0),
    ],
)
async def test_a_file_that_the_store_refuses_fails_no_extraction(
    bench: Bench, refused: str, saved: int
) -> None:
    """The other files are committed with the cursor, the refused one is counted."""
    RefusingStore.refused = refused
    bench.store = bench.make(RefusingStore)
    bench.without_model()
    done = await bench.run(RULE, "Always answer in British English.")
    assert (done.status, len(done.saved), done.refused) == ("completed", saved, (RULE_OF_SECRETS,))
    assert bench.cursor() is not None


async def test_of_too_many_the_newest_are_kept(bench: Bench) -> None:
    """450 requests are one change set of 400 memories, and the others are counted."""
    said = [f"Remember that service s{n} is owned by team{n % 7} since v{n}." for n in range(450)]
    job = bench.job()
    done = await bench.run(*said, job=job)
    assert (done.status, len(done.saved)) == ("completed", 400)
    assert done.facts()["passed_over"] == {"too_many": 50}
    assert len(bench.names()) == 401
    texts = "".join(path.read_text() for path in bench.memory.glob("project_*.md"))
    assert "s449" in texts
    assert "s49 " not in texts
    assert bench.table.get(job).result == {**done.facts(), "change": done.change}
    assert (await bench.run(*said)).reason == "nothing_new"
    other = await bench.run(*said[-3:], session="other")
    assert (other.saved, other.updated, other.change) == ((), (), None)
