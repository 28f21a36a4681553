"""session: what a client tells of its conversation with a person."""

from typing import Literal

from memd.base.threads import in_thread
from memd.daemon.core import Daemon
from memd.methods.method import Done, SessionId, hidden, method
from memd.projects.known import Visit
from memd.rpc.call import Call


@method("session", "write")
async def session(
    daemon: Daemon,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    event: Literal["start", "compacted", "cleared", "end"],
    parent: SessionId = "",
) -> Done:
    """Note what happened to a session: it started, was compacted or cleared, or ended.

    A new session that was forked from ``parent`` begins with what that one was given. After
    ``compacted`` and ``cleared`` memories may come again. An ended session may be resumed, so what
    it was given stays; a due dream may begin.
    """
    project, settings, _ = await in_thread(daemon.callers.where, call, cwd)
    if event == "end":
        await daemon.dreams.consider(
            project, settings, Visit.of(call.caller, project.cwd, session_id)
        )
    elif event == "start":
        daemon.callers.visited(call, project, session_id)
        if parent:
            await daemon.recall.begin(session_id, lambda: frozenset({hidden(parent)}))
    else:
        await daemon.recall.reset(session_id)
    return Done()
