"""The one table of routes: paths, what they take and answer, and their handlers, which block.

``docs/team-protocol.md`` is made of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from memd.core.text import sha256
from memd.server import requests
from memd.server.errors import REPOSITORY, MalformedRequestError, NotThereError, RequestPart
from memd.server.requests import TeamCall
from memd.server.storage import PAGE_BYTES, PAGE_ENTRIES, Storage
from memd.server.values import PutEntry, Repository, Role, Version

_MOST_VERSIONS = 100
_ABOVE_ALL_REVISIONS = 2**62  # above every revision


class RouteAnswer(Struct, frozen=True):
    """An answer: ``content`` is a value for JSON, ``mark`` the text of its ETag, "" for none."""

    status: int = 200
    content: Any = None
    mark: str = ""


class TeamRoute(Struct, frozen=True):
    """A route of the table.

    ``answer``, ``body`` and the values of ``query`` and ``headers`` (by name) describe them in the
    documentation. ``errors`` are the statuses beyond those that every route may have. ``token``
    says whether a request needs a token.
    """

    method: str
    path: str
    handler: Callable[[Storage, TeamCall], RouteAnswer]
    answer: str
    token: bool = True
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    errors: tuple[int, ...] = ()


class _JoinBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to join."""

    code: str
    device: str


class _EntryBody(msgspec.Struct, forbid_unknown_fields=True):
    """One entry in the body of a put."""

    key: str
    content: str
    hash: str
    base: int | None


class _PutBody(msgspec.Struct, forbid_unknown_fields=True):
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
        view=view,
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
        if_match=requests.mark(call.headers, "if-match"),
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
    """Answer the versions of one key, or of all keys."""
    repository, role = _repository_and_role(storage, call)
    versions = storage.history(
        repository.id,
        call.query.get("key", ""),
        before=requests.number(call.query, RequestPart.BEFORE, _ABOVE_ALL_REVISIONS),
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


_SINCE = "the text of an ETag: only what changed after it; 410 if too old or of another epoch"
_ID = "a UUID: repeated, the request has no second effect and gets the first answer (newest 200)"
_LIMIT = "at most so many: 1 to"
_REPOSITORY_FIELDS = "{id, remote, role, epoch, revision, limits}"
_ENTRY_FIELDS = "{key, revision, hash, size, at, member, device, content}"
_TOMBSTONE_FIELDS = "{key, revision, at, member, reason}"

ROUTES = (
    TeamRoute(
        "POST",
        "/v1/join",
        _join,
        "201 `{token, member}`. The token is told once and lasts 365 days.",
        token=False,
        body="`{code, device}`: the code of an invitation, good once and for 72 hours, and a name "
        "for this device",
        errors=(413, 415),
    ),
    TeamRoute(
        "GET",
        "/v1/repos",
        _repositories,
        f"`{{repos: [{_REPOSITORY_FIELDS}]}}`: those in which the member has a role.",
        query={"remote": "only that of this normalised remote, as `github.com/acme/app`"},
    ),
    TeamRoute(
        "GET",
        "/v1/repos/{id}/entries",
        _entries,
        f"`{{epoch, revision, limits, entries: [{_ENTRY_FIELDS}], removed: [{_TOMBSTONE_FIELDS}], "
        "next}`, by revision and key, with the repository's ETag. `next` is the cursor of the next "
        "page, null on the last; what changes meanwhile comes on a later page. 304 where "
        "`If-None-Match` is the repository's ETag.",
        query={
            "since": _SINCE,
            "cursor": "`next` of the page before, with the same other parameters",
            "limit": f"{_LIMIT} {PAGE_ENTRIES}; a page has {PAGE_BYTES >> 20} MiB of contents",
            "view": "`hashes`: no content",
        },
        headers={"If-None-Match": "the repository's ETag"},
        errors=(404, 410),
    ),
    TeamRoute(
        "PUT",
        "/v1/repos/{id}/entries",
        _put,
        "`{revision, entries: [{key, revision, status}]}`; `status` is `created`, `updated` or "
        "`unchanged`.",
        headers={"Idempotency-Key": _ID, "If-Match": "optional: the repository's ETag"},
        body="`{entries: [{key, content, hash, base}]}`: written all or none, other keys stay. "
        "`base` is the revision of the entry or the tombstone that it is based on, null for none; "
        "bytes that are there already match whatever the base. `hash` is the SHA-256 of the "
        "content in UTF-8, as hex",
        errors=(403, 404, 409, 412, 413, 415, 422),
    ),
    TeamRoute(
        "DELETE",
        "/v1/repos/{id}/entries/{key:path}",
        _remove,
        "`{revision}`: a tombstone is in the entry's place, its body in the history.",
        query={"reason": "why, in one line; others read it"},
        headers={"Idempotency-Key": _ID, "If-Match": 'the entry\'s ETag, `"<epoch>.<revision>"`'},
        errors=(403, 404, 409, 412, 422, 428),
    ),
    TeamRoute(
        "GET",
        "/v1/repos/{id}/history",
        _history,
        "`{versions: [...]}`, the newest first, entries and tombstones as in a page. Bodies of "
        "removed entries are for maintainers.",
        query={
            "key": "only of this entry",
            "before": "only below this revision",
            "limit": f"{_LIMIT} {_MOST_VERSIONS}",
        },
        errors=(404,),
    ),
    TeamRoute("DELETE", "/v1/token", _leave, "204: the token is worth nothing from now on."),
    TeamRoute("GET", "/healthz", _healthz, "`{status}`: the process is alive.", token=False),
    TeamRoute("GET", "/readyz", _readyz, "`{status}`: the storage answers, else 503.", token=False),
)
