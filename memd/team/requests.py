"""The requests of a sync, as a server's protocol has them. Pure."""

import json
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from memd.core.team import Outgoing
from memd.remote.link import HttpRequest
from memd.team.wire import PAGE_ENTRIES

_JSON = {"Content-Type": "application/json"}
_AROUND = b'{"entries":[%s]}'


def join(code: str, device: str) -> HttpRequest:
    """Return the request that takes an invitation's code for a token."""
    body = json.dumps({"code": code, "device": device}).encode()
    return HttpRequest("POST", "/v1/join", _JSON, body)


def repositories(remote: str) -> HttpRequest:
    """Return the request for the repositories of a remote."""
    return HttpRequest("GET", f"/v1/repos?{urlencode({'remote': remote})}")


def leave() -> HttpRequest:
    """Return the request that revokes the token it goes with."""
    return HttpRequest("DELETE", "/v1/token")


def page(
    repository: str,
    since: str,
    cursor: str = "",
    entries: int = PAGE_ENTRIES,
    *,
    hashes: bool = False,
    known: bool = False,
) -> HttpRequest:
    """Return the request for a page of what changed since a mark, all of it without one.

    ``known``: there is no need of an answer where nothing changed.
    """
    given = {"since": since, "cursor": cursor, "view": "hashes" if hashes else ""}
    wanted = urlencode({name: text for name, text in given.items() if text})
    headers = {"If-None-Match": f'"{since}"'} if known and since else {}
    path = f"/v1/repos/{repository}/entries?limit={entries}"
    return HttpRequest("GET", f"{path}&{wanted}" if wanted else path, headers)


def entry(outgoing: Outgoing, text: str) -> bytes:
    """Return one entry as it stands in the body of a batch."""
    members = {"key": outgoing.key, "content": text, "hash": outgoing.hash, "base": outgoing.base}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def put(repository: str, batch: str, entries: Iterable[bytes]) -> HttpRequest:
    """Return the request that sends a batch under its id."""
    headers = {**_JSON, "Idempotency-Key": batch}
    return HttpRequest("PUT", f"/v1/repos/{repository}/entries", headers, _body(entries))


def remove(repository: str, key: str, etag: str, reason: str, *, request: str) -> HttpRequest:
    """Return the request that puts a tombstone in an entry's place."""
    path = f"/v1/repos/{repository}/entries/{quote(key)}?{urlencode({'reason': reason})}"
    return HttpRequest("DELETE", path, {"If-Match": etag, "Idempotency-Key": request})


def history(repository: str, key: str, *, before: int | None = None, limit: int) -> HttpRequest:
    """Return the request for a key's versions below a revision, newest first."""
    given = {"key": key, "limit": str(limit)} | ({"before": str(before)} if before else {})
    return HttpRequest("GET", f"/v1/repos/{repository}/history?{urlencode(given)}")


def _body(entries: Iterable[bytes]) -> bytes:
    return _AROUND % b",".join(entries)
