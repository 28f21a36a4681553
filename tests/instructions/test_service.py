"""Instruction files as the daemon answers for them."""

import threading
from pathlib import Path

import pytest

from memd.core.settings import Settings
from memd.core.values import Project
from memd.instructions.service import (
    InstructionRequest,
    Instructions,
    InstructionsTimeoutError,
)
from memd.projects.projects import ClientFolders
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, Approvals

pytestmark = pytest.mark.anyio


async def test_a_disk_that_hangs_costs_no_prompt(tmp_path: Path) -> None:
    """Beside a prompt there is a sentence, a list is an error that names the time, and it ends."""
    released = threading.Event()
    home = str(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("Use pnpm.")

    def folders(_project: Project, _environment: object) -> ClientFolders:
        released.wait(60)
        return ClientFolders(home, home, f"{home}/c", f"{home}/x", f"{home}/g", f"{home}/m", ())

    database = open_database(f"{home}/state.db", SCHEMAS)
    project = Project(home, home, f"{home}/memory", "default", home, enabled=True)
    request = InstructionRequest(project, Settings(), {})
    hanging = Instructions(Approvals(database), folders, 0.01)
    for _ in range(5):  # more than there are threads for it
        text = await hanging.text(request)
        assert (text.text, text.files) == ("", ())
        assert text.problems == ("the instruction files could not be read within 0.01 s",)
    with pytest.raises(InstructionsTimeoutError):
        await hanging.list(request)
    released.set()
    fine = Instructions(Approvals(database), folders)
    assert "Use pnpm." in (await fine.text(request)).text
    database.close()
