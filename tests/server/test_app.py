"""The server through its socket: what it answers to whom."""

import gzip
import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.servers import REMOTE, TeamServer, team_server

TEXT = "---\nname: deploys\ndescription: When deploys happen\ntype: project\n---\nOn Tuesdays.\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TeamServer]:
    """Return a server with a repository."""
    with team_server(tmp_path / "team.db") as running:
        yield running


def entry(key: str, content: str = TEXT, base: int | None = None) -> dict[str, Any]:
    """Return an entry of a PUT."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    return {"key": key, "content": content, "hash": digest, "base": base}


def put(client: httpx2.Client, server: TeamServer, *entries: dict[str, Any]) -> httpx2.Response:
    """Send entries as one write."""
    return client.put(
        f"/v1/repos/{server.repository}/entries",
        json={"entries": entries},
        headers={"Idempotency-Key": str(uuid.uuid4())},
    )


def test_a_device_joins_writes_reads_removes_and_leaves(server: TeamServer) -> None:
    """Every route does what the protocol says, from the code to the revoked token."""
    client = server.client()
    joined = client.post("/v1/join", json={"code": server.invite("anna"), "device": "laptop"})
    assert (joined.status_code, joined.json()["member"]) == (201, "anna")
    client.headers["Authorization"] = f"Bearer {joined.json()['token']}"
    [repository] = client.get("/v1/repos", params={"remote": REMOTE}).json()["repos"]
    assert (repository["role"], repository["revision"]) == ("member", 0)
    assert repository["limits"]["put_entries"] == 100

    written = put(client, server, entry("deploys.md"), entry("a/b.md")).json()
    assert [each["status"] for each in written["entries"]] == ["created", "created"]
    page = client.get(f"/v1/repos/{server.repository}/entries")
    assert {each["key"]: each["content"] for each in page.json()["entries"]} == {
        "deploys.md": TEXT,
        "a/b.md": TEXT,
    }
    etag = page.headers["etag"]
    assert etag == f'"{repository["epoch"]}.{written["revision"]}"'
    unchanged = client.get(
        f"/v1/repos/{server.repository}/entries", headers={"If-None-Match": etag}
    )
    assert (unchanged.status_code, unchanged.content) == (304, b"")

    removed = client.delete(
        f"/v1/repos/{server.repository}/entries/a/b.md",
        params={"reason": "it moved"},
        headers={"If-Match": etag, "Idempotency-Key": str(uuid.uuid4())},
    )
    assert removed.json() == {"revision": 2}
    since = client.get(f"/v1/repos/{server.repository}/entries", params={"since": etag[1:-1]})
    [tombstone] = since.json()["removed"]
    assert (tombstone["key"], tombstone["reason"]) == ("a/b.md", "it moved")
    assert since.json()["entries"] == []
    versions = client.get(
        f"/v1/repos/{server.repository}/history", params={"key": "a/b.md"}
    ).json()["versions"]
    assert [each["revision"] for each in versions] == [2, 1]
    assert "content" not in versions[1]

    assert client.delete("/v1/token").status_code == 204
    assert client.get("/v1/repos").status_code == 401


def test_a_page_of_hashes_is_small_and_zipped(server: TeamServer) -> None:
    """A page without contents has no content, and is packed for whoever takes that."""
    client = server.client("anna")
    put(client, server, *(entry(f"n{number}.md") for number in range(50)))
    with client.stream(
        "GET", f"/v1/repos/{server.repository}/entries", params={"view": "hashes"}
    ) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    entries = json.loads(gzip.decompress(raw))["entries"]
    assert len(entries) == 50
    assert all("content" not in each for each in entries)
    assert len(raw) < 50 * 100


def test_what_is_there_already_matches_whatever_its_base(server: TeamServer) -> None:
    """Bytes that the server has are accepted again, and nothing changes."""
    client = server.client("anna")
    put(client, server, entry("a.md"))
    again = put(client, server, entry("a.md", base=7))
    assert again.json() == {
        "revision": 1,
        "entries": [{"key": "a.md", "revision": 1, "status": "unchanged"}],
    }


def test_the_servers_figures_are_for_admins(server: TeamServer) -> None:
    """An admin's token reads OpenMetrics, in which every request counted."""
    server.storage.add_member("ops", now=server.clock(), admin=True)
    client = server.client("ops")
    client.get("/v1/repos")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    lines = answer.text.splitlines()
    assert lines[-1] == "# EOF"
    assert 'memd_team_requests_total{route="GET /v1/repos",status="200"} 1' in lines
    assert 'memd_team_request_seconds_bucket{le="+Inf"} 1' in lines
    types = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    samples = {line.partition("{")[0].split()[0] for line in lines if not line.startswith("#")}
    assert all(any(name.startswith(each) for each in types) for name in samples)


def test_a_storage_that_fails_is_told(server: TeamServer) -> None:
    """Without its storage the server lives, is not ready, and says so with 503."""
    client = server.client("anna")
    with server.storage.driver.writing() as transaction:
        transaction.run("ALTER TABLE format RENAME TO gone")
    try:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
    finally:
        with server.storage.driver.writing() as transaction:
            transaction.run("ALTER TABLE gone RENAME TO format")
    assert client.get("/readyz").status_code == 200
