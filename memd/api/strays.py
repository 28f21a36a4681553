"""agent.merge: move sub-agents' memories from where a client was started to the project's root."""

from anyio import to_thread

from memd.api.memory import MemoryOffError, by_client, of_agent, writable
from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.core.values import ASSISTANT
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call


class StrayMerged(Result):
    """A misplaced memory directory of a sub-agent, and what was moved from it to ``target``.

    ``merged`` are the memories that were moved, ``left`` those that were not, or the reason.
    """

    directory: str
    agent: str
    scope: str
    target: str
    merged: tuple[str, ...]
    left: tuple[str, ...]


class StraysMerged(Result):
    """The misplaced memory directories of sub-agents."""

    strays: list[StrayMerged]


@method("agent.merge", "write", NoProjectError, MemoryOffError)
async def agent_merge(
    services: Services, call: Call, *, cwd: str, dry_run: bool = False
) -> StraysMerged:
    """Move memories of sub-agents to the project's root from where their client was started.

    Each move is a change of both directories, which can be undone. A memory that differs from one
    of the same name gets a name with a number.
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
                gathered = await services.memories.gather(stray.directory, target, by)
                merged, left = gathered.merged, gathered.left
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
