"""team.*: join a project's team, send and receive memories, and decide conflicts.

A path is that of a memory, with or without ``team/`` before it.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec

from memd.api.memory import ChangeMade, by_client, check_team, project_of, writable
from memd.api.method import Limit, Result, method
from memd.api.services import Services
from memd.core.names import TEAM, check_name
from memd.rpc.connection import Call
from memd.team.service import (
    Joined,
    JoinPreview,
    LeftTeam,
    SyncResult,
    TeamMember,
    TeamStatus,
    TeamVersion,
    TextDiff,
)

Word = Annotated[str, msgspec.Meta(max_length=1000)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Revision = Annotated[int, msgspec.Meta(ge=1, lt=10**17)]  # a server reads 18 digits


class TeamJoin(Result):
    """What joining would send, and its result; ``joined`` is null for a preview."""

    preview: JoinPreview
    joined: Joined | None


class TeamDiff(Result):
    """The differences that are sent next, and both texts of each conflict."""

    files: tuple[TextDiff, ...]


class TeamVersions(Result):
    """Versions of an entry, newest first."""

    versions: tuple[TeamVersion, ...]


class TeamMembers(Result):
    """The members whose memories are here, those with the most first."""

    members: tuple[TeamMember, ...]


class Shared(ChangeMade):
    """The change that moved a memory, and its new path."""

    path: str


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
    project = await writable(services, call, cwd)
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
    project = await project_of(services, call, cwd)
    return await services.team.leave(project.memory_dir, remove=remove)


@method("team.status", "read")
async def team_status(services: Services, call: Call, *, cwd: str) -> TeamStatus:
    """How far a project is in step with its team, and what waits for a person; asks no server."""
    return await services.team.status((await project_of(services, call, cwd)).memory_dir)


@method("team.pull", "write")
async def team_pull(services: Services, call: Call, *, cwd: str) -> SyncResult:
    """Fetch the memories that other members wrote, now.

    Progress has the number of ``files`` that came so far.
    """
    directory = (await writable(services, call, cwd)).memory_dir
    return await services.team.pull(directory, partial(_report_files, call))


@method("team.push", "write")
async def team_push(services: Services, call: Call, *, cwd: str) -> SyncResult:
    """Send the changed memories now, even those that the server refused before."""
    return await services.team.push((await writable(services, call, cwd)).memory_dir)


@method("team.diff", "read")
async def team_diff(services: Services, call: Call, *, cwd: str, path: str = "") -> TeamDiff:
    """The differences between the team's memories here and as last fetched; asks no server."""
    directory = (await project_of(services, call, cwd)).memory_dir
    return TeamDiff(files=await services.team.diff(directory, _path(path) if path else ""))


@method("team.log", "read")
async def team_log(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    limit: Limit = 50,
    before: Revision | None = None,
) -> TeamVersions:
    """The versions of one memory on the server, newest first, those ``before`` a revision."""
    directory = (await project_of(services, call, cwd)).memory_dir
    versions = await services.team.log(directory, _path(path), before=before, limit=limit)
    return TeamVersions(versions=versions)


@method("team.share", "write")
async def team_share(
    services: Services, call: Call, *, cwd: str, path: str, request_id: str = ""
) -> Shared:
    """Move a private memory below ``team/``, as one change."""
    project = await writable(services, call, cwd)
    await check_team(services, project)
    by = by_client(call, "team.share")
    result = await services.memories.share(project, path, by, request_id=request_id)
    return Shared(change=result.change, path=f"{TEAM}{path}")


@method("team.remove", "write")
async def team_remove(
    services: Services, call: Call, *, cwd: str, path: str, reason: Reason
) -> SyncResult:
    """Remove a memory for all members; it stays in the server's history."""
    directory = (await writable(services, call, cwd)).memory_dir
    return await services.team.remove(directory, _path(path), reason)


@method("team.restore", "write")
async def team_restore(
    services: Services, call: Call, *, cwd: str, path: str, revision: Revision | None = None
) -> SyncResult:
    """Write an older version of a memory from the server's history here and send it.

    By default it is the last one before a removal, else that of the ``revision``.
    """
    directory = (await writable(services, call, cwd)).memory_dir
    return await services.team.restore(directory, _path(path), revision)


@method("team.resolve", "write")
async def team_resolve(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    how: Literal["theirs", "ours", "edit"],
    text: str | None = None,
) -> SyncResult:
    """Decide a conflict.

    With ``theirs`` the server's text stays; ``ours`` replaces it, or with ``edit`` the ``text``.
    """
    directory = (await writable(services, call, cwd)).memory_dir
    return await services.team.resolve(directory, _path(path), how, text)


@method("team.keep", "write")
async def team_keep(services: Services, call: Call, *, cwd: str, path: str) -> SyncResult:
    """Send a held file although it was removed, or check again whether it may be sent."""
    return await services.team.keep((await writable(services, call, cwd)).memory_dir, _path(path))


@method("team.drop", "write")
async def team_drop(services: Services, call: Call, *, cwd: str, path: str) -> SyncResult:
    """Delete a held file here, as a change."""
    return await services.team.drop((await writable(services, call, cwd)).memory_dir, _path(path))


@method("team.accept", "write")
async def team_accept(services: Services, call: Call, *, cwd: str) -> SyncResult:
    """Continue with a server that removed many memories or looked wrong, and was paused for it."""
    return await services.team.accept((await writable(services, call, cwd)).memory_dir)


@method("team.members", "read")
async def team_members(services: Services, call: Call, *, cwd: str) -> TeamMembers:
    """The members whose memories are here; asks no server."""
    directory = (await project_of(services, call, cwd)).memory_dir
    return TeamMembers(members=await services.team.members(directory))


async def _report_files(call: Call, files: int) -> None:
    """Report how many files came so far."""
    await call.progress({"files": files})


def _path(path: str) -> str:
    """Return a memory's path below ``team/``. Raises NameRefusedError."""
    team_path = path if path.startswith(TEAM) else f"{TEAM}{path}"
    return check_name(team_path)


METHODS = (
    team_join,
    team_leave,
    team_status,
    team_pull,
    team_push,
    team_diff,
    team_log,
    team_share,
    team_remove,
    team_restore,
    team_resolve,
    team_keep,
    team_drop,
    team_accept,
    team_members,
)
