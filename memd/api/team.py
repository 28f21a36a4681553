"""team.*: join a project's team, send and receive memories, and decide conflicts.

A path is that of a memory, with or without ``team/`` before it.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec

from memd.api.services import Services
from memd.base.names import TEAM, check_name
from memd.methods.method import Limit, Result, method
from memd.rpc.call import Call
from memd.team.service import (
    Joined,
    JoinPreview,
    LeftTeam,
    SyncResult,
    TeamMember,
    TeamStatus,
    TeamVersion,
)

Word = Annotated[str, msgspec.Meta(max_length=1000)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Revision = Annotated[int, msgspec.Meta(ge=1, lt=10**17)]  # a server reads 18 digits


class TeamJoin(Result):
    """What joining would send, and its result; ``joined`` is null for a preview."""

    preview: JoinPreview
    joined: Joined | None


class TeamLog(Result):
    """The versions of an entry, newest first, or without a path the members whose entries are here.

    The member with the most entries comes first.
    """

    versions: tuple[TeamVersion, ...] = ()
    members: tuple[TeamMember, ...] = ()


@method("team.join", "write")
async def team_join(
    services: Services,
    call: Call,
    *,
    cwd: str,
    url: Word,
    code: Word = "",
    repo: Word = "",
    preview: bool = False,
) -> TeamJoin:
    """Join the team of a project's repository, or say what that would do.

    ``repo`` is the repository, by default the one that ``origin`` names in ``.git/config``. The
    ``code`` of an invitation is needed where this device has no token for the server. The project's
    memory directory joins; no file of a repository can make it join.
    """
    project = await services.callers.writable(call, cwd)
    expected = await services.team.preview(project, url, repo)
    if preview:
        return TeamJoin(preview=expected, joined=None)
    joined = await services.team.join(project, url, repo, code, partial(_report_files, call))
    return TeamJoin(preview=expected, joined=joined)


@method("team.leave", "write")
async def team_leave(services: Services, call: Call, *, cwd: str, remove: bool = False) -> LeftTeam:
    """Leave the team; this device's token is revoked unless another directory needs it.

    The team's files stay here, or with ``remove`` are deleted, as a change.
    """
    project = await services.callers.project(call, cwd)
    return await services.team.leave(project.memory_dir, remove=remove)


@method("team.status", "read")
async def team_status(services: Services, call: Call, *, cwd: str, path: str = "") -> TeamStatus:
    """How far a project is in step with its team, and what waits for a person; asks no server.

    With ``path`` it also says in ``files`` how that memory differs from what was fetched last.
    """
    directory = (await services.callers.project(call, cwd)).memory_dir
    return await services.team.status(directory, _path(path) if path else "")


@method("team.sync", "write")
async def team_sync(services: Services, call: Call, *, cwd: str) -> SyncResult:
    """Fetch what other members wrote and send what changed here, now.

    Also what the server refused before is sent. Progress has the number of ``files`` that came.
    """
    directory = (await services.callers.writable(call, cwd)).memory_dir
    return await services.team.sync(directory, partial(_report_files, call))


@method("team.log", "read")
async def team_log(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str = "",
    limit: Limit = 50,
    before: Revision | None = None,
) -> TeamLog:
    """The versions of one memory on the server, newest first, those ``before`` a revision.

    Without ``path`` the members whose memories are here; that asks no server.
    """
    directory = (await services.callers.project(call, cwd)).memory_dir
    if not path:
        return TeamLog(members=await services.team.members(directory))
    versions = await services.team.log(directory, _path(path), before=before, limit=limit)
    return TeamLog(versions=versions)


@method("team.remove", "write")
async def team_remove(
    services: Services, call: Call, *, cwd: str, path: str, reason: Reason
) -> SyncResult:
    """Remove a memory for all members; it stays in the server's history."""
    directory = (await services.callers.writable(call, cwd)).memory_dir
    return await services.team.remove(directory, _path(path), reason)


@method("team.resolve", "write")
async def team_resolve(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str = "",
    how: Literal["ours", "theirs", "edit", "restore", "accept"],
    text: str | None = None,
    revision: Revision | None = None,
) -> SyncResult:
    """Decide what waits for a person, and sync.

    Of a conflict or a held file ``ours`` sends the text here, ``theirs`` takes the server's state,
    and ``edit`` sends the ``text``. ``restore`` brings back an older version from the server's
    history: the last one before a removal, or that of the ``revision``. ``accept`` needs no path:
    it goes on with a server that removes many memories or looks wrong.
    """
    directory = (await services.callers.writable(call, cwd)).memory_dir
    if how == "accept":
        return await services.team.accept(directory)
    return await services.team.resolve(directory, _path(path), how, text, revision)


async def _report_files(call: Call, files: int) -> None:
    """Report how many files came so far."""
    await call.progress({"files": files})


def _path(path: str) -> str:
    """Return a memory's path below ``team/``. Raises Refused."""
    team_path = path if path.startswith(TEAM) else f"{TEAM}{path}"
    return check_name(team_path)
