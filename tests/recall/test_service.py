"""prefetch, search and the end of a session."""

import errno
import json
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memd.core.errors import MemdError
from memd.core.events import Event
from memd.core.settings import RecallSettings, Settings, TeamSettings
from memd.core.values import Catalogue, Project
from memd.daemon.clock import SystemClock
from memd.model.errors import ModelUnavailableError
from memd.model.port import Ask, Reply, Usage
from memd.recall.indexes import Indexes
from memd.recall.service import ModelSource, Prefetched, Prompt, Recall
from memd.state import journal
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.ledger import SCHEMA, Ledger
from memd.store.configuration import Configuration
from memd.store.service import Store
from memd.testing.clock import FakeClock
from tests.recall.shelf import NOW, Shelf

pytestmark = pytest.mark.anyio

PROJECT = Project("/r", "/r", "/m", "default", "/t", enabled=True)
FREEZE = "when does the merge freeze begin?"


@pytest.fixture
def shelf() -> Shelf:
    """Return two memories that have nothing in common."""
    shelf = Shelf()
    shelf.put(
        "freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.\nEnds later."
    )
    shelf.put("pnpm.md", "User prefers pnpm over npm", "Use pnpm for installs.")
    return shelf


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


def remembering(shelf: Shelf, ledger: Ledger, models: ModelSource | None = None) -> Recall:
    """Return recall over a shelf."""
    return Recall(shelf, ledger, FakeClock(NOW), Indexes(shelf, Lock), models)


async def ask(recall: Recall, project: Project, settings: Settings, **facts: Any) -> Prefetched:
    """Ask as a client does."""
    return await recall.prefetch(project, settings, Prompt(**facts))


@pytest.fixture
def recall(shelf: Shelf, database: Database) -> Recall:
    """Return recall over the shelf."""
    return remembering(shelf, Ledger(database))


async def test_the_memory_that_fits_comes_back(recall: Recall) -> None:
    """One prompt brings its memory with all that a client needs, and counts its bytes."""
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    (memory,) = found.memories
    assert memory.path == "/m/freeze.md"
    assert memory.header == "Memory (saved 3 days ago): /m/freeze.md:"
    assert (memory.type, memory.scope, memory.truncated) == ("project", "private", False)
    assert (found.skipped, found.strategy, found.note) == ("", "local", "")
    assert found.session_bytes == len(memory.content.encode())
    assert "> Begins on 2026-03-05.\n> Ends later." in found.block


async def test_a_memory_comes_once_per_session(recall: Recall, shelf: Shelf) -> None:
    """It comes again in another session, after a reset, or when its file changed."""
    both = FREEZE + " and does it concern npm or pnpm?"
    first = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    again = await ask(recall, PROJECT, Settings(), session="s", query=both)
    assert [memory.name for memory in again.memories] == ["pnpm"]
    none = await ask(recall, PROJECT, Settings(), session="s", query=both)
    assert (none.memories, none.skipped, none.block) == ((), "no_candidates", "")
    assert none.session_bytes > first.session_bytes
    shelf.put("freeze.md", "Merge freeze moved", "Begins on 2026-03-09.")
    changed = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert changed.memories[0].content == "Begins on 2026-03-09."
    other = await ask(recall, PROJECT, Settings(), session="t", query=FREEZE)
    assert len(other.memories) == 1
    await recall.reset("s")
    reset = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert reset.session_bytes == other.session_bytes


async def test_silence_when_nothing_fits(recall: Recall) -> None:
    """A prompt that no memory helps with brings none, and no gate is to blame."""
    found = await ask(recall, PROJECT, Settings(), session="s", query="thanks, looks good")
    assert (found.memories, found.skipped, found.block) == ((), "", "")


async def test_gates_name_themselves(recall: Recall) -> None:
    """Each gate skips under its own name and tells the session's bytes."""
    limited = Settings(recall=RecallSettings(session_bytes=0))
    off = replace(PROJECT, enabled=False)
    empty = replace(PROJECT, memory_dir="/empty")
    for project, settings, query, reason in (
        (off, Settings(), FREEZE, "memory_off"),
        (PROJECT, Settings(recall=RecallSettings(enabled=False)), FREEZE, "recall_off"),
        (PROJECT, Settings(), " ", "no_text"),
        (PROJECT, Settings(), "freeze", "single_word"),
        (PROJECT, limited, FREEZE, "session_budget"),
        (empty, Settings(), FREEZE, "no_candidates"),
    ):
        found = await ask(recall, project, settings, session="s", query=query)
        assert (found.skipped, found.memories, found.session_bytes) == (reason, (), 0)


async def test_the_session_budget_holds(recall: Recall) -> None:
    """What would pass the budget does not go out and is not marked."""
    small = Settings(recall=RecallSettings(session_bytes=10))
    found = await ask(recall, PROJECT, small, session="s", query=FREEZE)
    assert (found.memories, found.session_bytes, found.block) == ((), 0, "")
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories


async def test_asking_for_a_model_without_one_says_so(recall: Recall) -> None:
    """The local ranker answers in its place and the answer tells."""
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, strategy="model")
    assert (len(found.memories), found.strategy) == (1, "local")
    assert "no model" in found.note


async def test_what_the_client_read_is_left_out(
    shelf: Shelf, database: Database, tmp_path: Path
) -> None:
    """A path that was read counts through a link to the directory as well."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    shelf.put("freeze.md", "Merge freeze for the mobile release", directory=str(link))
    recall = remembering(shelf, Ledger(database))
    project = replace(PROJECT, memory_dir=str(link))
    found = await ask(
        recall, project, Settings(), session="s", query=FREEZE, read_paths=[f"{real}/freeze.md"]
    )
    assert found.skipped == "no_candidates"


async def test_tools_just_used_need_no_usage_notes(recall: Recall, shelf: Shelf) -> None:
    """A usage reference for a tool of this conversation is left out."""
    shelf.put("kubectl.md", "Usage of the kubectl tool with flags")
    query = "which flags for kubectl?"
    used = await ask(
        recall, PROJECT, Settings(), session="s", query=query, recent_tools=["kubectl"]
    )
    assert used.memories == ()
    assert (await ask(recall, PROJECT, Settings(), session="s", query=query)).memories


async def test_only_changed_files_are_read_again(recall: Recall, shelf: Shelf) -> None:
    """An unchanged directory is not read again to rank it; what is gone is forgotten."""
    await recall.search(PROJECT, "nosuchword", 5)
    assert sorted(shelf.read) == ["freeze.md", "pnpm.md"]
    shelf.read.clear()
    shelf.put("pnpm.md", "User prefers yarn")
    assert await recall.search(PROJECT, "installs", 5) == ()
    assert [hit.path for hit in await recall.search(PROJECT, "yarn", 5)] == ["pnpm.md"]
    assert shelf.read.count("freeze.md") == 0
    shelf.drop("freeze.md")
    assert await recall.search(PROJECT, "freeze", 5) == ()


async def test_search_shows_where(recall: Recall, shelf: Shelf) -> None:
    """A search finds single words and damaged files, shows the line, and marks nothing."""
    shelf.put("raw.md", "", "---\nname: [\n---\nThe quorum is three.", damaged=True)
    (hit,) = await recall.search(PROJECT, "quorum", 5)
    assert (hit.path, hit.name, hit.snippet) == ("raw.md", "raw", "The quorum is three.")
    assert hit.score > 0
    await recall.search(PROJECT, FREEZE, 5)
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories


async def test_a_file_that_cannot_be_read(recall: Recall, shelf: Shelf) -> None:
    """One too large to load is known by its header, and left out of answers."""
    shelf.unreadable.add("freeze.md")
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories == ()
    assert await recall.search(PROJECT, "freeze", 5) == ()
    shelf.unreadable.clear()
    assert await recall.search(PROJECT, "freeze", 5)


async def test_two_at_once_never_bring_the_same(recall: Recall) -> None:
    """Of several prefetches of one session at once, one brings the memory."""
    found = []

    async def one() -> None:
        found.append(await ask(recall, PROJECT, Settings(), session="s", query=FREEZE))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert sum(len(answer.memories) for answer in found) == 1


class Impatient(Ledger):
    """A ledger whose mark is cancelled by the client in the very instant it is made."""

    scope: anyio.CancelScope

    def mark(self, *arguments: Any) -> Any:
        """Mark, and let the client lose patience."""
        marked = super().mark(*arguments)
        self.scope.cancel()
        return marked


async def test_a_cancelled_prefetch_marks_nothing(shelf: Shelf, database: Database) -> None:
    """Cancelled before or in the instant of the mark, the memory may come again."""
    ledger = Impatient(database)
    recall = remembering(shelf, ledger)
    with anyio.CancelScope() as ledger.scope:
        await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.scope.cancelled_caught
    with anyio.CancelScope() as early:
        early.cancel()
        await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.surfaced("s").bytes == 0


class Stuck(Shelf):
    """A directory on a disk that answers once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.freed = threading.Event()

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Wait for the disk."""
        self.freed.wait(10)
        return super().catalogue(directory, since)


async def test_a_stuck_disk_holds_no_prompt(database: Database) -> None:
    """A prompt has its answer at its deadline, the next one as well, and nothing is marked."""
    shelf = Stuck()
    shelf.put("freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.")
    ledger = Ledger(database)
    recall = Recall(shelf, ledger, SystemClock(), Indexes(shelf, Lock))
    try:
        for _ in range(2):
            late = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, seconds=0.05)
            assert (late.skipped, late.memories) == ("deadline", ())
        assert ledger.surfaced("s").bytes == 0
    finally:
        shelf.freed.set()
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories


async def test_without_a_ledger_nothing_comes(shelf: Shelf, tmp_path: Path) -> None:
    """A state file that cannot be used costs the memories of a prompt, never the turn."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    database.close()
    recall = remembering(shelf, Ledger(database))
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert (found.memories, found.skipped) == ((), "ledger_unavailable")
    assert (await ask(recall, PROJECT, Settings(), session="s", query="")).skipped == "no_text"


async def test_an_unreadable_directory_costs_no_turn(recall: Recall, shelf: Shelf) -> None:
    """Whatever the store refuses, the answer is an empty one that says why."""
    shelf.refuses = True
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert (found.memories, found.skipped) == ((), "directory_unreadable")
    assert found.note == "no access"


async def test_any_session_name_will_do(recall: Recall) -> None:
    """A name with a lone surrogate is a session like others."""
    for expected in (1, 0):
        found = await ask(recall, PROJECT, Settings(), session="\ud800", query=FREEZE)
        assert len(found.memories) == expected
    await recall.reset("\ud800")
    assert (await ask(recall, PROJECT, Settings(), session="\ud800", query=FREEZE)).memories


class Deaf:
    """Events that nobody listens to."""

    def publish(self, event: Event) -> None:
        """Drop the event."""


async def test_through_the_real_store(tmp_path: Path) -> None:
    """Memories on disk are found: nested and flat, CRLF, damaged ones, and the team's by scope."""
    memories = tmp_path / "memory"
    (memories / "team").mkdir(parents=True)
    (memories / "MEMORY.md").write_text("- [Freeze](freeze.md) - quorum lease shard\n")
    (memories / "freeze.md").write_bytes(
        b"---\r\nname: freeze\r\ndescription: Merge freeze for the release\r\n"
        b"type: project\r\n---\r\n\r\nFrom 2026-03-05.\r\n"
    )
    (memories / "team" / "quorum.md").write_text(
        "---\nname: quorum\ndescription: The quorum is three\n"
        "metadata:\n  type: reference\n---\n\nX.\n"
    )
    (memories / "raw.md").write_text("---\nname: [[[\n---\n\nThe lease renewal takes a minute.\n")
    database = open_database(str(tmp_path / "state.db"), [SCHEMA, journal.SCHEMA])
    configuration = Configuration(str(tmp_path / "memd.toml"))
    clock = FakeClock(memories.stat().st_mtime + 60)
    store = Store(database, configuration, clock, Deaf(), home=str(tmp_path), environ={})
    recall = Recall(store.reading, Ledger(database), clock, Indexes(store.reading, Lock))
    project = replace(PROJECT, memory_dir=str(memories))
    before = {path: path.read_bytes() for path in memories.rglob("*.md")}
    alone = await ask(recall, project, Settings(), session="t", query="how many make a quorum?")
    assert alone.memories == ()  # team memory is off
    team = replace(Settings(), team=TeamSettings(enabled=True))
    surfaced = {}
    for query in (FREEZE, "how many make a quorum?", "what does the lease renewal take?"):
        found = await ask(recall, project, team, session="s", query=query)
        (memory,) = found.memories
        surfaced[memory.path] = (memory.type, memory.scope, memory.content)
    assert surfaced == {
        f"{memories}/freeze.md": ("project", "private", "From 2026-03-05."),
        f"{memories}/team/quorum.md": ("reference", "team", "X."),
        f"{memories}/raw.md": (None, "private", "The lease renewal takes a minute."),
    }
    assert {path: path.read_bytes() for path in memories.rglob("*.md")} == before
    database.close()


class Chooser:
    """A model that answers as it is told, or fails; keeps what it was asked."""

    def __init__(self, *answers: str | MemdError) -> None:
        self.answers = list(answers)
        self.asked: list[Ask] = []

    def for_(self, settings: Settings) -> "Chooser":  # noqa: ARG002 - one for all
        """Return the model."""
        return self

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - one for all
        """Return its name."""
        return f"small-{kind}"

    async def ask(self, ask: Ask, on_usage: object = None) -> Reply:  # noqa: ARG002 - the port's shape
        """Answer, or wait for ever when there is nothing to say."""
        self.asked.append(ask)
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
    assert (silent.memories, silent.strategy, silent.skipped) == ((), "model", "")
    again = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert [memory.name for memory in again.memories] == ["freeze"]
    assert model.asked[0].model == "small-recall"
    assert "pnpm.md" not in str(model.asked[2].messages)  # the session has it


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
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ([memory.name for memory in found.memories], found.strategy) == (["freeze"], "local")
    assert said in found.note


async def test_a_model_that_hangs_is_left_at_the_deadline(shelf: Shelf, database: Database) -> None:
    """The local answer is there when the time is up; with too little time nobody is asked."""
    model = Chooser()
    recall = Recall(shelf, Ledger(database), SystemClock(), Indexes(shelf, Lock), model)
    for seconds, asked in ((0.5, 1), (0.2, 1)):
        found = await ask(
            recall, PROJECT, Settings(), session=f"{seconds}", query=FREEZE, seconds=seconds
        )
        assert (len(found.memories), found.strategy, len(model.asked)) == (1, "local", asked)
        assert "no time to ask the model" in found.note
    local = await ask(recall, PROJECT, Settings(), session="l", query=FREEZE, strategy="local")
    assert (local.strategy, local.note, len(model.asked)) == ("local", "", 1)


async def test_a_model_with_nothing_to_choose_from_is_not_asked(
    shelf: Shelf, database: Database
) -> None:
    """Where every memory is known to the client, the model is left in peace."""
    model = Chooser()
    recall = remembering(shelf, Ledger(database), model)
    read = ["freeze.md", "pnpm.md"]
    found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, read_paths=read)
    assert (found.skipped, model.asked) == ("no_candidates", [])


async def test_an_explanation_marks_nothing(recall: Recall) -> None:
    """Asked to explain, the answer has its reasons, twice the same, and nothing is marked."""
    for _ in range(2):
        found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, explain=True)
        assert found.explanation is not None
        (row,) = [row for row in found.explanation.rows if row.kept]
        assert (row.path, row.last_surfaced, found.session_bytes) == ("freeze.md", None, 0)
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories
    small = Settings(recall=RecallSettings(session_bytes=10))
    poor = await ask(recall, PROJECT, small, session="t", query=FREEZE, explain=True)
    assert poor.explanation is not None
    (row,) = poor.explanation.rows
    assert (row.kept, row.reason) == (False, "does not fit the session's budget")
    assert (poor.memories, poor.block, poor.explanation.cap) == ((), "", 10)
    closed = await ask(
        recall,
        PROJECT,
        Settings(),
        session="s",
        query=FREEZE,
        read_paths=["pnpm.md"],
        explain=True,
    )
    assert closed.skipped == "no_candidates"
    assert closed.explanation is not None


async def test_indexing_goes_on_in_the_background(shelf: Shelf, database: Database) -> None:
    """A directory that is warmed is indexed without a prompt; one that cannot be read waits."""
    shelf.put("a.md", "quorum", directory="/n")
    recall = remembering(shelf, Ledger(database))
    async with anyio.create_task_group() as group:
        await group.start(recall.run)
        recall.warm("/m")
        while "pnpm.md" not in shelf.read:
            await anyio.lowlevel.checkpoint()
        shelf.refuses = True
        recall.warm("/n")
        while recall._unindexed:
            await anyio.lowlevel.checkpoint()
        shelf.refuses = False
        recall.warm("/n")
        while "a.md" not in shelf.read:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_what_was_surfaced_outlives_the_daemon(shelf: Shelf, database: Database) -> None:
    """A restarted daemon brings nothing that the session has been given."""
    first = remembering(shelf, Ledger(database))
    async with anyio.create_task_group() as group:
        await group.start(first.run)
        assert (await ask(first, PROJECT, Settings(), session="s", query=FREEZE)).memories
        group.cancel_scope.cancel()
    again = remembering(shelf, Ledger(database))
    assert not (await ask(again, PROJECT, Settings(), session="s", query=FREEZE)).memories


class Full(Ledger):
    """A ledger whose state file takes nothing once it was read."""

    def flush(self) -> None:
        """Refuse when there is something to write."""
        if self._unwritten:
            raise StateUnusableError(self._database.path, str(OSError(errno.ENOSPC, "full")))


async def test_marks_that_cannot_be_written_still_count(shelf: Shelf, database: Database) -> None:
    """A full disk costs neither the memories of a prompt nor the rule that they come once."""
    recall = remembering(shelf, Full(database))
    for expected in (1, 0):
        found = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
        assert len(found.memories) == expected


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), st.booleans()), min_size=1, max_size=8)
)
@hypothesis_settings(max_examples=25, deadline=None)
def test_nothing_comes_twice_whoever_asks(rounds: list[tuple[int, int, bool]]) -> None:
    """Two sessions, several prompts at once, resets: once a session, and within its bytes."""

    async def run() -> None:
        shelf = Shelf()
        for number in range(12):
            shelf.put(f"{number}.md", f"the merge freeze of release {number}", "x" * 900)
        folder = tempfile.TemporaryDirectory()
        database = open_database(f"{folder.name}/state.db", [SCHEMA])
        recall = remembering(shelf, Ledger(database))
        limited = Settings(recall=RecallSettings(session_bytes=4000))
        given_to: dict[str, list[tuple[str, int]]] = {"0": [], "1": []}

        async def one(session: str, count: int) -> None:
            found = await ask(recall, PROJECT, limited, session=session, query=FREEZE, limit=count)
            given_to[session] += [(memory.path, memory.bytes) for memory in found.memories]

        for session, count, reset in rounds:
            if reset:
                await recall.reset(f"{session}")
                given_to[f"{session}"] = []
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(one, f"{session}", count)
            for sent in given_to.values():
                assert len({path for path, _ in sent}) == len(sent)
                assert sum(size for _, size in sent) <= 4000
        database.close()
        folder.cleanup()

    anyio.run(run)
