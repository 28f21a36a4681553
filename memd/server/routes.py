"""The one table of routes: paths, what they take, and their handlers, which block."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memd.base.text import sha256
from memd.server import requests
from memd.server.errors import REPOSITORY, MalformedRequestError, NotThereError, RequestPart
from memd.server.requests import TeamCall
from memd.server.storage import ABOVE_ALL, PAGE_ENTRIES, Storage
from memd.server.values import PutEntry, Repository, Role, Version

_MOST_VERSIONS = 100


class RouteAnswer(Struct, frozen=True):
    """An answer: ``content`` is a value for JSON, ``mark`` the text of its ETag, "" for none."""

    status: int = 200
    content: Any = None
    mark: str = ""


class TeamRoute(Struct, frozen=True):
    """A route: ``query`` are the names that it knows, ``token`` and ``body`` what it needs."""

    method: str
    path: str
    handler: Callable[[Storage, TeamCall], RouteAnswer]
    token: bool = True
    query: tuple[str, ...] = ()
    body: bool = False


class _JoinBody(Struct, forbid_unknown_fields=True):
    """The body of a request to join."""

    code: str
    device: str


class _EntryBody(Struct, forbid_unknown_fields=True):
    """One entry in the body of a put."""

    key: str
    content: str
    hash: str
    base: int | None


class _PutBody(Struct, forbid_unknown_fields=True):
    """The body of a put."""

    entries: list[_EntryBody]


def _healthz(_: Storage, __: TeamCall) -> RouteAnswer:
    """Answer that the process runs."""
    return RouteAnswer(content={"status": "ok"})


def _readyz(storage: Storage, _: TeamCall) -> RouteAnswer:
    """Answer that the storage can be used. Raises StorageUnavailableError."""
    storage.ready()
    return RouteAnswer(content={"status": "ok"})


def _join(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Exchange an invitation's code for a token."""
    joining = requests.body(call.body, _JoinBody)
    token, member = storage.join(joining.code, joining.device, now=call.now)
    return RouteAnswer(201, {"token": token, "member": member})


def _leave(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Revoke the token of the request."""
    storage.revoke(call.require_session().token, now=call.now)
    return RouteAnswer(204)


def _repositories(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Answer the repositories in which the member has a role; the query may name one remote."""
    remote = call.query.get("remote")
    rows = [
        {
            "id": repository.id,
            "remote": repository.remote,
            "role": role,
            "epoch": repository.epoch,
            "revision": repository.revision,
            "limits": asdict(storage.limits),
        }
        for repository, role in storage.repositories(call.require_session().member)
        if remote in (None, repository.remote)
    ]
    return RouteAnswer(content={"repos": rows})


def _entries(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Answer a page of a repository's entries, 304 if nothing changed since the client's mark."""
    repository, _ = _repository_and_role(storage, call)
    if requests.mark(call.headers, "if-none-match") == repository.mark:
        return RouteAnswer(304, mark=repository.mark)
    view = call.query.get("view", "")
    if view not in ("", "hashes"):
        raise MalformedRequestError(RequestPart.VIEW)
    page = storage.page(
        repository.id,
        since=call.query.get("since", ""),
        cursor=call.query.get("cursor", ""),
        limit=requests.number(call.query, RequestPart.LIMIT, PAGE_ENTRIES),
        hashes=view == "hashes",
    )
    content = {
        "epoch": page.epoch,
        "revision": page.revision,
        "limits": asdict(storage.limits),
        "entries": [_version(each) for each in page.entries],
        "removed": [_version(each) for each in page.removed],
        "next": page.next,
    }
    return RouteAnswer(content=content, mark=f"{page.epoch}.{page.revision}")


def _put(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Store entries in a repository, all or none."""
    entries = [
        PutEntry(entry.key, entry.content.encode(), entry.hash, entry.base)
        for entry in requests.body(call.body, _PutBody).entries
    ]
    content = storage.put(
        call.require_session(),
        call.path["id"],
        entries,
        id=call.headers.get("idempotency-key", ""),
        body_hash=sha256(call.body),
        now=call.now,
    )
    return RouteAnswer(content=content)


def _remove(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Remove one entry, if it is still as the client's mark says."""
    mark = requests.mark(call.headers, "if-match")
    if mark is None:
        raise MalformedRequestError(RequestPart.CONDITION_MISSING)
    repository, _ = _repository_and_role(storage, call)
    epoch, _, revision = mark.rpartition(".")
    content = storage.remove(
        call.require_session(),
        repository.id,
        call.path["key"],
        # In another epoch it is no revision, so the answer names the entry's present one.
        int(revision) if epoch == repository.epoch else 0,
        call.query.get("reason", ""),
        id=call.headers.get("idempotency-key", ""),
        now=call.now,
    )
    return RouteAnswer(content=content)


def _history(storage: Storage, call: TeamCall) -> RouteAnswer:
    """Answer the versions of one key."""
    repository, role = _repository_and_role(storage, call)
    if "key" not in call.query:
        raise MalformedRequestError(RequestPart.KEY)
    versions = storage.history(
        repository.id,
        call.query["key"],
        before=requests.number(call.query, RequestPart.BEFORE, ABOVE_ALL),
        limit=requests.number(call.query, RequestPart.LIMIT, _MOST_VERSIONS),
        maintainer=role == Role.MAINTAINER,
    )
    return RouteAnswer(content={"versions": [_version(each) for each in versions]})


def _repository_and_role(storage: Storage, call: TeamCall) -> tuple[Repository, Role]:
    """Return a repository and the member's role in it. Raises NotThereError."""
    for repository, role in storage.repositories(call.require_session().member):
        if repository.id == call.path["id"]:
            return repository, role
    raise NotThereError(REPOSITORY)


def _version(version: Version) -> dict[str, Any]:
    """Return a version as it is sent: only with the members that it has."""
    result: dict[str, Any] = {
        "key": version.key,
        "revision": version.revision,
        "at": version.at,
        "member": version.member,
    }
    if not version.hash:
        return result | {"reason": version.reason}
    result |= {"hash": version.hash, "size": version.size, "device": version.device}
    if version.content is not None:
        result["content"] = version.content.decode()
    return result


ROUTES = (
    TeamRoute("POST", "/v1/join", _join, token=False, body=True),
    TeamRoute("GET", "/v1/repos", _repositories, query=("remote",)),
    TeamRoute(
        "GET",
        "/v1/repos/{id}/entries",
        _entries,
        query=("since", "cursor", "limit", "view"),
    ),
    TeamRoute("PUT", "/v1/repos/{id}/entries", _put, body=True),
    TeamRoute("DELETE", "/v1/repos/{id}/entries/{key:path}", _remove, query=("reason",)),
    TeamRoute("GET", "/v1/repos/{id}/history", _history, query=("key", "before", "limit")),
    TeamRoute("DELETE", "/v1/token", _leave),
    TeamRoute("GET", "/healthz", _healthz, token=False),
    TeamRoute("GET", "/readyz", _readyz, token=False),
)
