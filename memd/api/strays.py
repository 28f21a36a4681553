"""agent.merge: memories of sub-agents that lie where their client was started, taken home."""

from anyio import to_thread

from memd.api.memory import MemoryOffError, by_client, of_agent, writable
from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.core.values import ASSISTANT
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call


class StrayMerged(Result):
    """A stray memory of a sub-agent, where it belongs, what was taken there and what was not."""

    directory: str
    agent: str
    scope: str
    target: str
    merged: tuple[str, ...]
    left: tuple[str, ...]


class StraysMerged(Result):
    """The memories of sub-agents that lay astray."""

    strays: list[StrayMerged]


@method("agent.merge", "write", NoProjectError, MemoryOffError)
async def agent_merge(
    services: Services, call: Call, *, cwd: str, dry_run: bool = False
) -> StraysMerged:
    """Take memories of sub-agents that lie below launch directories to the project's root.

    Each memory is a change of both directories, which can be undone. What differs from a memory of
    the same name gets a name with a number.
    """
    project = await writable(services, call, cwd)
    by = by_client(call, "agent.merge", origin=ASSISTANT)
    results = []
    for stray in await to_thread.run_sync(services.store.projects.strays, project):
        target, merged, left = "", tuple[str, ...](), tuple[str, ...]()
        try:
            home = await of_agent(project, stray.agent, stray.scope, call.caller.environment)
            target = home.memory_dir
            if not dry_run:
                done = await services.memories.gather(stray.directory, target, by)
                merged, left = done.merged, done.left
        except MemdError as error:
            left = (error.sentence,)
        results.append(
            StrayMerged(
                directory=stray.directory,
                agent=stray.agent,
                scope=stray.scope,
                target=target,
                merged=merged,
                left=left,
            )
        )
    return StraysMerged(strays=results)


METHODS = (agent_merge,)
