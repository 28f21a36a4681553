"""Count the memories that an assistant reads, with a method of memd or with its own tools."""

import os
from contextlib import suppress

from anyio import to_thread

from memd.api.dialects import Payload, named_memories
from memd.api.services import Services
from memd.core.names import in_catalogue
from memd.core.values import Project
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError

_STORE_SECONDS = 0.02  # that an answer waits until its use is stored
# Clients that show memories to a person. One without a name may be a script of the person.
_PERSONS_CLIENTS = ("", "memctl", "ui")
_READING_TOOLS = ("Read", "read_file", "read_many_files")  # tools of clients that read files


async def read(
    services: Services, call: Call, project: Project, *paths: str, session: str = ""
) -> None:
    """Count that an assistant has read memories; reads by a person do not count.

    It waits 20 ms at most; a count that a slow disk delays is stored later.
    """
    client = call.caller.client.partition(" ")[0]
    memories = [path for path in paths if in_catalogue(path)]
    if client in _PERSONS_CLIENTS or not memories:
        return
    at = services.clock.now()

    def count() -> None:
        """Count one use of each memory. Blocks."""
        for path in memories:
            if os.path.isfile(f"{project.memory_dir}/{path}"):  # a tool may name a missing file
                services.usage.read(project.memory_dir, path, session, at)

    with services.clock.move_on_after(_STORE_SECONDS), suppress(StateUnusableError):
        await to_thread.run_sync(count, abandon_on_cancel=True)


async def by_tool(services: Services, call: Call, project: Project, payload: Payload) -> None:
    """Count the memories that a client's own tool has read, according to its hook's payload."""
    if payload.tool_name in _READING_TOOLS:
        paths = sorted(named_memories(payload, project.memory_dir))
        await read(services, call, project, *paths, session=payload.session_id)
