"""A real store and a model with a script, for tests of extraction."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memd.agent.runs import Runs
from memd.base.settings import Settings
from memd.base.values import Project
from memd.daemon.app import SCHEMAS
from memd.extract.cursors import ExtractionCursor, read_cursor
from memd.extract.service import ExtractionResult, Extractions, ExtractRequest
from memd.model.port import ModelSource
from memd.review.suggestions import Suggestions
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.state.jobs import JobTable
from memd.state.suggestions import SuggestionTable
from memd.store.store import Store
from tests.scripted_model import Answer, ScriptedModel, says
from tests.stores import Sink, projects_in
from tests.support.clock import FakeClock

NOW = 1_772_528_400.0  # 2026-03-03, a Tuesday


class Taught(ScriptedModel):
    """A model that is the one that the settings name."""

    def then(self, *answers: Answer) -> None:
        """Go on with another script."""
        self._answers = list(answers)
        self.requested.clear()

    def for_(self, settings: Settings) -> "Taught":  # noqa: ARG002 - one for all
        """Return itself."""
        return self

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - one for all
        """Return its name."""
        return f"small-{kind}"


def quiet(*_: object, **__: object) -> None:
    """Tell nobody."""


class NoModel:
    """Settings that name no model."""

    def for_(self, settings: Settings) -> None:
        """Return none."""

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - none for all
        """Return no name."""
        return ""


class Bench:
    """A real store and state file in a folder, and a model with a script."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.database = database
        self.memory = folder / "memory"
        self.table = JobTable(database)
        self.cursors = Docs(database)
        self.runs = Runs(Docs(database))
        self.config = folder / "memd.toml"
        self.joined = False
        self.store = self.make(Store)
        root = str(folder / "repo")
        self.project = Project(root, root, str(self.memory), "test", str(folder), enabled=True)
        self.model = Taught([says("nothing new")])
        self.teach()

    def make(self, kind: type[Store]) -> Store:
        """Return a store over this folder."""
        return kind(self.database, FakeClock(NOW), Sink())

    def without_model(self) -> None:
        """Extract with the local extractor alone, as after a start."""
        self.teach()
        self.extract = self.extractions(NoModel())

    def teach(self, *answers: Answer) -> None:
        """Give the model a script, and begin with a daemon that was just started."""
        self.model = Taught(answers or [says("nothing new")])
        self.log: list[tuple[str, dict[str, Any]]] = []
        clock, table = FakeClock(NOW), SuggestionTable(self.database)
        self.suggestions = Suggestions(self.store, table, clock)
        self.extract = self.extractions(self.model)

    def extractions(self, models: ModelSource) -> Extractions:
        """Return extraction by a model, as after a start."""
        waiting = self.suggestions.new_quotations
        store, cursors, clock = self.store, self.cursors, FakeClock(NOW)
        return Extractions(
            *(store, cursors, clock, models, self.runs),
            waiting=waiting,
            note=self.note,
            joined=lambda _: self.joined,
        )

    def note(self, event: str, **facts: Any) -> None:
        """Take what belongs into the log."""
        self.log.append((event, facts))

    async def run(
        self, *messages: Any, job: str = "", session: str = "s", **request: Any
    ) -> ExtractionResult:
        """Run one extraction of a session; texts are messages of the person's."""
        if messages:
            request["messages"] = [
                {"role": "user", "content": m} if isinstance(m, str) else m for m in messages
            ]
        requested = ExtractRequest(session=session, **request)
        settings, _ = await projects_in(self.folder, self.database).settings(self.project)
        return await self.extract.run(
            self.project, settings, requested, job=job, client="test", progress=quiet
        )

    def job(self) -> str:
        """Return a job that runs."""
        job, _ = self.table.add("extract", str(self.memory), "s", {}, NOW)
        self.table.start(job, NOW)
        return job

    def cursor(self) -> ExtractionCursor | None:
        """Return the cursor of session s."""
        return read_cursor(self.cursors, str(self.memory), "s")

    def names(self) -> list[str]:
        """Return the memories on the disk."""
        return sorted(path.name for path in self.memory.glob("*.md"))


@contextmanager
def opened(folder: Path) -> Iterator[Bench]:
    """Set up a store without memories for the length of the block."""
    database = open_database(str(folder / "state.db"), SCHEMAS)
    try:
        yield Bench(folder, database)
    finally:
        database.close()
