"""Instruction files as the daemon answers for them."""

import threading
from functools import partial
from pathlib import Path

import anyio
import pytest

from memd.base.errors import Busy
from memd.base.values import Project
from memd.base.yielding import yield_to_requests
from memd.daemon.app import SCHEMAS
from memd.instructions.reading import Approval
from memd.instructions.service import InstructionRequest, Instructions
from memd.projects.projects import ClientFolders
from memd.state.database import open_database
from memd.state.docs import Docs
from tests.support.calls import callers_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_disk_that_hangs_costs_no_prompt(tmp_path: Path) -> None:
    """Beside a prompt there is a sentence, a list is an error that names the time, and it ends."""
    released = threading.Event()
    home = str(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("Use pnpm.")

    def folders(_project: Project, _environment: object) -> ClientFolders:
        released.wait(60)
        return ClientFolders(home, home, f"{home}/c", f"{home}/m", ())

    database = open_database(f"{home}/state.db", SCHEMAS)
    project = Project(home, home, f"{home}/memory", "default", home, enabled=True)
    request = InstructionRequest(project, {})
    callers = callers_in(home, database, FakeClock())
    hanging = Instructions(Docs(database), folders, callers, 0.01)
    for _ in range(5):  # more than there are threads for it
        text = await hanging.text(project, {})
        assert (text.text, text.files) == ("", ())
        assert text.problems == ("the instruction files could not be read within 0.01 s",)
    with pytest.raises(Busy):
        await hanging.list(request)
    released.set()
    fine = Instructions(Docs(database), folders, callers)
    assert "Use pnpm." in (await fine.text(project, {})).text
    database.close()


async def test_work_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """What takes too long gives its thread back, and nothing was allowed; a no always counts."""
    home = str(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("Use pnpm.")

    def folders(_project: Project, environment: object) -> ClientFolders:
        while environment:
            yield_to_requests()
        return ClientFolders(home, home, f"{home}/c", f"{home}/m", ())

    database = open_database(f"{home}/state.db", SCHEMAS)
    project = Project(home, home, f"{home}/memory", "default", home, enabled=True)
    endless = InstructionRequest(project, {"endless": "1"})
    approvals = Docs(database)
    files = Instructions(approvals, folders, callers_in(home, database, FakeClock()), 1.0)

    async def decide(*, allowed: bool) -> None:
        with pytest.raises(Busy):
            await files.list(endless, allow=allowed)

    async with anyio.create_task_group() as tasks:  # as many as there are threads for it
        for _ in range(2):
            tasks.start_soon(partial(decide, allowed=True))
    assert approvals.get(Approval, home) is None
    assert "Use pnpm." in (await files.text(project, {})).text
    await decide(allowed=False)
    assert approvals.get(Approval, home) == Approval(allowed=False)
    database.close()
