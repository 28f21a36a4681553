"""prefetch with a model that chooses."""

import json
from threading import Lock

import anyio
import pytest

from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.model.errors import ModelUnavailableError
from memd.model.port import Ask, Reply, Usage
from memd.recall.indexes import Indexes
from memd.recall.service import Recall
from memd.state.database import Database
from memd.state.ledger import Ledger
from tests.recall.shelf import FREEZE, PROJECT, Shelf, ask, remembering
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


class Chooser:
    """A model that answers as it is told, or fails; keeps what it was asked."""

    calls_tools = True

    def __init__(self, *answers: str | MemdError) -> None:
        self.answers = list(answers)
        self.requested: list[Ask] = []

    def for_(self, settings: Settings) -> "Chooser":  # noqa: ARG002 - one for all
        """Return the model."""
        return self

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - one for all
        """Return its name."""
        return f"small-{kind}"

    async def ask(self, ask: Ask, on_usage: object = None) -> Reply:  # noqa: ARG002 - the port's shape
        """Answer, or wait for ever when there is nothing to say."""
        self.requested.append(ask)
        if not self.answers:
            await anyio.sleep_forever()
        answer = self.answers.pop(0)
        if isinstance(answer, MemdError):
            raise answer
        return Reply(answer, (), "end_turn", (), Usage(), ask.model)


def chosen(*names: str) -> str:
    """Return a model's answer that names memories."""
    return json.dumps({"selected_memories": names})


async def test_a_model_chooses(shelf: Shelf, database: Database) -> None:
    """What it names comes, what it invents does not, never twice and never more than the limit."""
    model = Chooser(chosen("pnpm.md", "made-up.md", "pnpm.md"), chosen(), chosen("freeze.md"))
    recall = remembering(shelf, Ledger(database), model)
    first = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ([memory.name for memory in first.memories], first.strategy) == (["pnpm"], "model")
    silent = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert (silent.memories, silent.strategy, silent.skipped) == ((), "model", None)
    again = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert [memory.name for memory in again.memories] == ["freeze"]
    assert model.requested[0].model == "small-recall"
    assert "pnpm.md" not in str(model.requested[2].messages)  # the session has it


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I would pick freeze.md", "the local ranker answered"),
        ('{"selected_memories": "freeze.md"}', "the local ranker answered"),
        (ModelUnavailableError("it broke off"), "it broke off; the local ranker answered"),
    ],
)
async def test_a_model_that_fails_costs_nothing(
    shelf: Shelf, database: Database, answer: str | MemdError, said: str
) -> None:
    """Junk and failures are answered by the local ranker, and the answer says so."""
    recall = remembering(shelf, Ledger(database), Chooser(answer))
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ([memory.name for memory in results.memories], results.strategy) == (["freeze"], "local")
    assert said in (results.note or "")


async def test_a_model_that_hangs_is_left_at_the_deadline(shelf: Shelf, database: Database) -> None:
    """The local answer is there when the time is up; with too little time nobody is asked."""
    model, clock = Chooser(), FakeClock()
    recall = Recall(shelf, Ledger(database), clock, Indexes(shelf, Lock), model)

    async def pass_time() -> None:
        while not model.requested:
            await anyio.lowlevel.checkpoint()
        clock.advance(0.47)  # of which it has 0.46

    said = ("the model did not answer in time", "there was no time to ask the model")
    async with anyio.create_task_group() as group:
        group.start_soon(pass_time)
        for seconds, words in zip((0.5, 0.2), said, strict=True):
            results = await ask(
                recall, PROJECT, Settings(), session=f"{seconds}", query=FREEZE, seconds=seconds
            )
            about = len(results.memories), results.strategy, len(model.requested)
            assert about == (1, "local", 1)
            assert words in (results.note or "")
    local = await ask(recall, PROJECT, Settings(), session="l", query=FREEZE, strategy="local")
    assert (local.strategy, local.note, len(model.requested)) == ("local", None, 1)


async def test_a_model_with_nothing_to_choose_from_is_not_asked(
    shelf: Shelf, database: Database
) -> None:
    """Where every memory is known to the client, the model is left in peace."""
    model = Chooser()
    recall = remembering(shelf, Ledger(database), model)
    read = ["freeze.md", "pnpm.md"]
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, read_paths=read)
    assert (results.skipped, model.requested) == ("no_candidates", [])


async def test_a_model_that_never_has_time_is_noticed(shelf: Shelf, database: Database) -> None:
    """Three prompts without an answer in time say so; one answer is enough to say nothing."""
    model = Chooser(chosen(), chosen())
    recall = remembering(shelf, Ledger(database), model)
    for number in range(3):
        assert not recall.model_is_too_slow
        await ask(recall, PROJECT, Settings(), session=f"{number}", query=FREEZE, seconds=0.2)
    assert recall.model_is_too_slow
    assert model.requested == []
    await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert not recall.model_is_too_slow
