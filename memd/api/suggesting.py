"""suggestion.list, accept, edit, dismiss and offer: what was said and is not remembered yet."""

from typing import Annotated, Literal

import msgspec

from memd.api.memory import MemoryOffError, project_of, writable
from memd.api.method import Result, SessionId, method
from memd.api.services import Services
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call
from memd.state.tables import OpenSuggestion
from memd.store.drafts import SecretRefusedError
from memd.store.service import StorageFailedError
from memd.suggestions.service import SuggestionNotFoundError, Taken

Words = Annotated[str, msgspec.Meta(max_length=10_000)]
Kind = Literal["user", "feedback", "project", "reference"]
_ERRORS = (
    NoProjectError,
    MemoryOffError,
    SuggestionNotFoundError,
    SecretRefusedError,
    StorageFailedError,
)
_SECONDS = 1.0  # that an offer may take where nobody says how long it waits


class Waiting(Result):
    """The open suggestions of a project, newest first; ``at`` is in seconds since 1970."""

    suggestions: tuple[OpenSuggestion, ...]


class Dismissed(Result):
    """The suggestion that was dismissed."""

    suggestion: str


class Offered(Result):
    """A text for the conversation, "" where nothing is to be shown."""

    block: str


@method("suggestion.list", "read", NoProjectError)
async def suggestion_list(services: Services, call: Call, *, cwd: str) -> Waiting:
    """What was said in a project, may be worth remembering and is not decided.

    One whose ``origin`` is ``user`` is a quotation; any other is a model's wording for which the
    conversation had no evidence.
    """
    project = await project_of(services, call, cwd)
    return Waiting(suggestions=await services.suggestions.waiting(project.memory_dir))


@method("suggestion.accept", "write", *_ERRORS)
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

    With a ``text`` or ``type`` of its own instead of what was said and what was guessed; the
    quotation stays with the memory.
    """
    directory = (await writable(services, call, cwd)).memory_dir
    return await services.suggestions.accept(
        directory, suggestion, client=call.caller.client, text=text, kind=type_ or ""
    )


@method("suggestion.edit", "write", *_ERRORS)
async def suggestion_edit(
    services: Services,
    call: Call,
    *,
    cwd: str,
    suggestion: str,
    text: Words = "",
    type_: Kind | None = None,
) -> Taken:
    """Make a memory of a suggestion in other words, as ``suggestion.accept`` does."""
    return await suggestion_accept(
        services, call, cwd=cwd, suggestion=suggestion, text=text, type_=type_
    )


@method("suggestion.dismiss", "write", NoProjectError, SuggestionNotFoundError)
async def suggestion_dismiss(
    services: Services, call: Call, *, cwd: str, suggestion: str
) -> Dismissed:
    """Drop a suggestion; the same text is not suggested again."""
    directory = (await project_of(services, call, cwd)).memory_dir
    await services.suggestions.dismiss(directory, suggestion)
    return Dismissed(suggestion=suggestion)


@method("suggestion.offer", "read", NoProjectError)
async def suggestion_surface(
    services: Services, call: Call, *, cwd: str, session_id: SessionId
) -> Offered:
    """What a client may add to a session's conversation for its assistant to decide.

    At most three suggestions in 600 characters, each to at most two sessions. The hook gets this
    with its own answer and need not call.
    """
    project, settings, _ = await services.store.where(cwd, call.caller.environment)
    block = await services.suggestions.surface(project, settings, session_id, _SECONDS)
    return Offered(block=block)


METHODS = (
    suggestion_list,
    suggestion_accept,
    suggestion_edit,
    suggestion_dismiss,
    suggestion_surface,
)
