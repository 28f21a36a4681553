"""suggestion.list, accept, dismiss and offer: statements that may become memories."""

from typing import Annotated, Literal

import msgspec

from memd.api.services import Services
from memd.methods.method import Result, SessionId, method
from memd.rpc.call import Call
from memd.state.suggestions import OpenSuggestion
from memd.suggestions.service import Taken

Words = Annotated[str, msgspec.Meta(max_length=10_000)]
Kind = Literal["user", "feedback", "project", "reference"]
_SURFACE_SECONDS = 1.0  # that suggestion.offer may take; its caller names no time


class Waiting(Result):
    """The open suggestions of a project, newest first; ``at`` is in seconds since 1970."""

    suggestions: tuple[OpenSuggestion, ...]


class Dismissed(Result):
    """The suggestion that was dismissed."""

    suggestion: str


class Offered(Result):
    """A text to add to the conversation, "" where there is nothing to show."""

    block: str


@method("suggestion.list", "read")
async def suggestion_list(services: Services, call: Call, *, cwd: str) -> Waiting:
    """The open suggestions of a project: statements that may be worth remembering.

    A suggestion with the ``origin`` ``user`` is a quotation. Any other is a model's wording without
    evidence in the conversation, or with the origin ``outside`` perhaps another's text.
    """
    project = await services.callers.readable(call, cwd)
    return Waiting(suggestions=await services.suggestions.waiting(project.memory_dir))


@method("suggestion.accept", "write")
async def suggestion_accept(
    services: Services,
    call: Call,
    *,
    cwd: str,
    suggestion: str,
    text: Words = "",
    type_: Kind | None = None,
) -> Taken:
    """Make a memory of a suggestion, as one change.

    ``text`` replaces the suggested wording and ``type`` the guessed type. The quotation stays in
    the memory.
    """
    directory = (await services.callers.writable(call, cwd)).memory_dir
    return await services.suggestions.accept(
        directory, suggestion, client=call.caller.client, text=text, kind=type_ or ""
    )


@method("suggestion.dismiss", "write")
async def suggestion_dismiss(
    services: Services, call: Call, *, cwd: str, suggestion: str
) -> Dismissed:
    """Drop a suggestion; the same text is not suggested again."""
    directory = (await services.callers.project(call, cwd)).memory_dir
    await services.suggestions.dismiss(directory, suggestion)
    return Dismissed(suggestion=suggestion)


@method("suggestion.offer", "read")
async def suggestion_surface(
    services: Services, call: Call, *, cwd: str, session_id: SessionId
) -> Offered:
    """Suggestions that a client may add to a session's conversation for its assistant to decide.

    They are at most three in 600 characters, and each is shown to at most two sessions. A hook gets
    them with its own answer and need not call this.
    """
    project, settings, _ = await services.callers.find(call, cwd)
    block = await services.suggestions.surface(project, settings, session_id, _SURFACE_SECONDS)
    return Offered(block=block)
