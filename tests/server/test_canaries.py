"""Credentials that members try to send: no byte of them stays or comes back."""

import gzip
import hashlib
import json
import uuid
from itertools import chain, islice
from pathlib import Path

from memd.documents import secrets
from tests import corpora
from tests.server.servers import team_server

_PIECE = 16  # characters of a credential that would be too many


def test_no_canary_is_stored_answered_or_logged(tmp_path: Path) -> None:
    """A credential in a key, a text, a reason, a code, a device or a query leaves no trace."""
    rows = json.loads(gzip.decompress(_file().read_bytes()))
    found = [list(islice(filter(secrets.find, row["tps"]), 2)) for row in rows]
    canaries = [*chain(*(each[:1] for each in found), *(each[1:] for each in found))][:222]
    assert len(canaries) == 222
    clock = iter(range(10**9, 10**10, 60))
    with team_server(tmp_path / "team.db", clock=lambda: float(next(clock))) as server:
        client, path = server.client("anna"), f"/v1/repos/{server.repository}"
        answers = []
        for canary in canaries:
            text = f"---\nname: a\ndescription: b\ntype: project\n---\n{canary}\n"
            digest = hashlib.sha256(text.encode()).hexdigest()
            entry = {"key": "a.md", "content": text, "hash": digest, "base": None}
            named = entry | {"key": f"{canary}.md"}
            write = {"Idempotency-Key": str(uuid.uuid4()), "If-Match": '"a.1"'}
            answers += [
                client.put(f"{path}/entries", json={"entries": [entry, named]}, headers=write),
                client.delete(
                    f"{path}/entries/a.md", params={"reason": canary[:400]}, headers=write
                ),
                client.get(f"{path}/history", params={"key": canary[:2000]}),
                client.post("/v1/join", json={"code": canary, "device": canary[:60]}),
            ]
        assert {answer.status_code for answer in answers} <= {200, 400, 401, 404, 412, 422}
        assert client.get(f"{path}/entries").json()["entries"] == []
        said = "".join(answer.text for answer in answers) + server.log.getvalue()
        said += "".join(map(repr, server.storage.audit(limit=10_000)))
    said += "".join(
        file.read_bytes().decode("latin-1") for file in tmp_path.iterdir() if file.is_file()
    )
    values = {value for canary in canaries for value in _values(canary)}
    assert [value for value in values if value in said] == []


def _file() -> Path:
    return corpora.folder("secrets") / "tps_fps.json.gz"


def _values(canary: str) -> set[str]:
    """Return what the scanner takes out of a canary, in pieces that say enough to be told."""
    left = secrets.scrub(canary)
    before, _, rest = left.partition("[secret: ")
    after = rest.partition("]")[2]
    value = canary[len(before) : len(canary) - len(after) if after else None]
    return {value[:_PIECE]} if len(value) >= _PIECE else set()
