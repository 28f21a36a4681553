"""A real store and state file for dreams, with a clock that stands still."""

import os
from pathlib import Path
from typing import Any

from memd.agent.runs import Runs
from memd.base.names import is_temporary
from memd.base.settings import Settings
from memd.base.values import MemoryType, Project
from memd.dream.service import Dreams, Work
from memd.dream.values import DreamReport
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.jobs import JobTable
from memd.state.proposals import ProposalTable
from memd.store import lock, memory
from tests.scripted_model import Answer, ScriptedModel
from tests.stores import Sink, store_in
from tests.support.clock import FakeClock

NOW = 1_772_450_000.0  # 2026-03-02, a Monday
DAY = 86_400.0
NS = 1_000_000_000


class NoModel:
    """A source of models that has none."""

    def for_(self, settings: Settings) -> None:
        """Return no model."""

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - there is none
        """Return no name."""
        return ""


class Taught(ScriptedModel):
    """A model that is the one that the settings name."""

    def for_(self, settings: Settings) -> "Taught":  # noqa: ARG002 - one for all
        """Return itself."""
        return self

    def name(self, settings: Settings, kind: str) -> str:  # noqa: ARG002 - one for all
        """Return its name."""
        return f"claude-opus-5-5-{kind}"


class Bench:
    """A real store and state file in a folder, with a clock that stands still."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.memory = folder / "memory"
        self.memory.mkdir(mode=0o700)
        self.database = database
        self.clock = FakeClock(now=NOW)
        self.sink = Sink()
        self.proposals = ProposalTable(database)
        self.jobs = JobTable(database)
        self.runs = Runs(Docs(database))
        self.phases: list[str] = []
        self.reported: list[dict[str, Any]] = []
        self.noted: list[str] = []
        self.store = store_in(database, self.clock, events=self.sink)
        self.project = Project(
            cwd=str(folder / "repo" / "sub"),
            root=str(folder / "repo"),
            memory_dir=str(self.memory),
            source="test",
            transcripts=str(folder / "projects"),
            enabled=True,
        )

    def dreams(self, work: Work | None = None, *, alive: bool = False) -> Dreams:
        return Dreams(
            self.store,
            self.database,
            self.proposals,
            self.clock,
            models=NoModel(),
            runs=self.runs,
            work=work,
            is_alive=lambda _pid, _since: alive,
        )

    def taught(self, *answers: Answer) -> tuple[Dreams, Taught]:
        """Return dreams by a model with a script."""
        model = Taught(answers)
        dreaming = Dreams(
            self.store,
            self.database,
            self.proposals,
            self.clock,
            models=model,
            runs=self.runs,
            is_alive=lambda _pid, _since: False,
            note=lambda event, **_facts: self.noted.append(event),
        )
        return dreaming, model

    def write(self, path: str, body: str, kind: MemoryType = MemoryType.REFERENCE) -> Path:
        content = memory.new(
            "a-name", "How deploys go", kind, body, session="s", modified="2026-03-02T10:00:00Z"
        )
        file = self.memory / path
        file.write_bytes(content)
        os.utime(file, (NOW - DAY, NOW - DAY))
        return file

    def job(self) -> str:
        job, _ = self.jobs.add("dream", str(self.memory), "", {}, NOW)
        self.jobs.start(job, NOW)
        return job

    async def run(
        self,
        dreaming: Dreams,
        job: str = "",
        settings: Settings | None = None,
        *,
        allow_model: bool = True,
    ) -> DreamReport:
        return await dreaming.run(
            self.project,
            settings or Settings(),
            job=job or self.job(),
            client="c",
            session="s1",
            progress=self.progress,
            allow_model=allow_model,
        )

    def progress(self, phase: str, **facts: Any) -> None:
        self.phases.append(phase)
        self.reported.append(facts)

    def lock(self, mtime: float, body: bytes = b"") -> Path:
        path = self.memory / lock.LOCK
        path.write_bytes(body)
        os.utime(path, (mtime, mtime))
        return path

    def content(self) -> dict[str, tuple[bytes, int]]:
        return {
            path.name: (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.memory.iterdir()
            if path.name != lock.GUARD and not is_temporary(path.name)
        }
