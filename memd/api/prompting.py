"""session.end: a session is over, and a due dream may begin."""

from memd.api import notes
from memd.api.services import Services
from memd.api.work import visit_of
from memd.methods.method import Done, SessionId, method
from memd.notes.service import NotesRequest
from memd.rpc.call import Call


@method("session.end", "write")
async def session_end(services: Services, call: Call, *, cwd: str, session_id: SessionId) -> Done:
    """Note that a client session ended, though it may be resumed; a due dream may begin.

    A resumed session still has the memories that it was given, so its ledger stays.
    """
    await over(services, call, await notes.notes_request(services, call, cwd, session_id))
    return Done()


async def over(services: Services, call: Call, session: NotesRequest) -> None:
    """Let a due dream begin after a session's end."""
    visit = visit_of(call, session.project.cwd, session.session)
    await services.starter.consider(session.project, session.settings, visit)
