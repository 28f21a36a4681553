"""Make the HTTP requests of a sync, as docs/team-protocol.md describes them. Pure."""

import json
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from memd.base.team import Outgoing
from memd.remote.link import HttpRequest
from memd.team.wire import PAGE_ENTRIES

_JSON = {"Content-Type": "application/json"}
_ENTRIES_BODY = b'{"entries":[%s]}'


def join(code: str, device: str) -> HttpRequest:
    """Return the request that exchanges an invitation's code for a token of a device."""
    body = json.dumps({"code": code, "device": device}).encode()
    return HttpRequest("POST", "/v1/join", _JSON, body)


def repositories(remote: str) -> HttpRequest:
    """Return the request that lists the repositories of a remote, such as github.com/acme/app."""
    return HttpRequest("GET", f"/v1/repos?{urlencode({'remote': remote})}")


def leave() -> HttpRequest:
    """Return the request that revokes the token with which it is sent."""
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
    """Return the request for a page of at most ``entries`` that changed since a mark.

    Without a mark (``since``) it asks for all entries. With ``hashes`` texts are left out of the
    page. With ``known`` the answer is an empty 304 if nothing changed.
    """
    options = {"since": since, "cursor": cursor, "view": "hashes" if hashes else ""}
    query = urlencode({name: text for name, text in options.items() if text})
    headers = {"If-None-Match": f'"{since}"'} if known and since else {}
    path = f"/v1/repos/{repository}/entries?limit={entries}"
    return HttpRequest("GET", f"{path}&{query}" if query else path, headers)


def entry(outgoing: Outgoing, text: str) -> bytes:
    """Return one entry as JSON for the body of a batch."""
    members = {"key": outgoing.key, "content": text, "hash": outgoing.hash, "base": outgoing.base}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def put(repository: str, batch: str, entries: Iterable[bytes]) -> HttpRequest:
    """Return the request that sends a batch under its id."""
    headers = {**_JSON, "Idempotency-Key": batch}
    body = _ENTRIES_BODY % b",".join(entries)
    return HttpRequest("PUT", f"/v1/repos/{repository}/entries", headers, body)


def remove(repository: str, key: str, etag: str, reason: str, *, request: str) -> HttpRequest:
    """Return the request that removes an entry if its version still has this ETag.

    ``request`` is the id that lets the server carry out a repeated request once.
    """
    path = f"/v1/repos/{repository}/entries/{quote(key)}?{urlencode({'reason': reason})}"
    return HttpRequest("DELETE", path, {"If-Match": etag, "Idempotency-Key": request})


def history(repository: str, key: str, *, before: int | None = None, limit: int) -> HttpRequest:
    """Return the request for versions of a key older than the revision ``before``, newest first."""
    options = {"key": key, "limit": str(limit)} | ({"before": str(before)} if before else {})
    return HttpRequest("GET", f"/v1/repos/{repository}/history?{urlencode(options)}")
