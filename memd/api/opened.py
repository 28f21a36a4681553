"""Counting the memories that an assistant opens, whichever way it does."""

import os
from contextlib import suppress

from anyio import to_thread

from memd.api.dialects import Payload, named_memories
from memd.api.services import Services
from memd.core.names import in_catalogue
from memd.core.values import Project
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError

_SECONDS = 0.02  # that an answer waits until its use is written
# What shows memories to a person is no assistant, and who does not say its name may be a shell.
_PERSONS = ("", "memctl", "ui")
_READERS = ("Read", "read_file", "read_many_files")  # what clients call their tools


async def read(
    services: Services, call: Call, project: Project, *paths: str, session: str = ""
) -> None:
    """Count that an assistant has read memories; what a person is shown does not count.

    A slow disk holds nobody up.
    """
    client = call.caller.client.partition(" ")[0]
    memories = [path for path in paths if in_catalogue(path)]
    if client in _PERSONS or not memories:
        return
    at = services.clock.now()

    def count() -> None:
        for path in memories:
            if os.path.isfile(f"{project.memory_dir}/{path}"):  # a tool may look for one in vain
                services.usage.read(project.memory_dir, path, session, at)

    with services.clock.move_on_after(_SECONDS), suppress(StateUnusableError):
        await to_thread.run_sync(count, abandon_on_cancel=True)


async def by_tool(services: Services, call: Call, project: Project, payload: Payload) -> None:
    """Count the memories that a client's own tool has read, as its hook tells."""
    if payload.tool_name in _READERS:
        paths = sorted(named_memories(payload, project.memory_dir))
        await read(services, call, project, *paths, session=payload.session_id)
