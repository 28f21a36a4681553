"""memd-team as its operator runs it."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from memd.server.command import main
from memd.server.storage import open_storage
from tests.server.servers import server_process as serving

Run = Callable[..., tuple[int, Any]]
REMOTE = "github.com/acme/app"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs a command on a folder of data and returns its status and its JSON."""
    for name in ("DATA", "DATABASE"):
        monkeypatch.delenv(f"MEMD_TEAM_{name}", raising=False)

    def run_one(*words: str, data: str = "data") -> tuple[int, Any]:
        status = main([*words, "--json", "--data", str(tmp_path / data)])
        output = capsys.readouterr()
        return status, json.loads(output.out) if output.out else output.err

    return run_one


def test_a_team_is_set_up_seen_and_taken_away(run: Run, tmp_path: Path) -> None:
    """Repositories, members, roles, codes and tokens are made, listed and taken away."""
    assert run("repo", "add", REMOTE)[1]["remote"] == REMOTE
    assert [each["remote"] for each in run("repo", "list")[1]] == [REMOTE]
    for name in ("anna", "bert"):
        assert run("invite", name, "--repo", REMOTE)[1]["code"]
    run("member", "grant", "bert", REMOTE, "maintainer")
    assert run("member", "list")[1] == [
        {"member": "anna", "roles": {REMOTE: "member"}},
        {"member": "bert", "roles": {REMOTE: "maintainer"}},
    ]
    run("member", "grant", "bert", REMOTE, "none")
    with closing(open_storage(str(tmp_path / "data" / "team.db"))) as storage:
        storage.join(storage.invite("bert", {}, now=time.time()), "laptop", now=time.time())
    [token] = run("token", "list")[1]
    assert (token["member"], token["device"], token["revoked"]) == ("bert", "laptop", None)
    run("token", "revoke", str(token["number"]))
    assert run("token", "list")[1][0]["revoked"].endswith("+00:00")
    run("member", "remove", "anna")
    assert [each["member"] for each in run("member", "list")[1]] == ["bert"]
    [before] = run("repo", "list")[1]
    assert run("renew") == (0, {"renewed": True})
    assert run("repo", "list")[1][0]["epoch"] != before["epoch"]


def test_mistakes_are_told_in_a_sentence(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name, a missing place and an address that others could read have their status."""
    assert run("repo", "add", "https://github.com/Acme/app.git")[0] == 65
    assert run("invite", "anna", "--repo", "github.com/none/none")[0] != 0
    assert run("purge", REMOTE, "a.md")[0] != 0
    for words in (
        ["repo", "list"],
        [],
        ["serve", "--data", "x", "--listen", "nowhere"],
        ["token", "revoke", "9" * 5000],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "replacement"),
    [
        (["audit"], "log"),
        (["backup", "x.db"], "sqlite3"),
        (["restore", "x.db", "--data", "x"], "renew"),
        (["check"], "integrity_check"),
        (["migrate", "postgresql://x"], "join anew"),
        (["token", "issue", "anna", "x"], "/metrics"),
        (["member", "add", "anna"], "invite"),
        (["invite", "anna", "--hours", "1"], "72 hours"),
        (["serve", "--admin"], "/metrics"),
        (["serve", "--tls-cert=c.pem"], "reverse proxy"),
        (["serve", "--behind-proxy", "127.0.0.0/8"], "this machine"),
    ],
)
def test_what_is_gone_names_its_replacement(
    words: list[str], replacement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command or option of the version before ends with 2 and says what to use instead."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert replacement in capsys.readouterr().err


def test_only_what_sets_a_server_up_makes_a_storage(run: Run, tmp_path: Path) -> None:
    """A misspelt folder is no empty storage that is well."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "team.db").touch()
    for data in ("typo", "empty"):
        for words in (["renew"], ["token", "list"], ["invite", "anna"]):
            status, sentence = run(*words, data=data)
            assert (status, "there is none at" in sentence) == (78, True)
    assert not (tmp_path / "typo").exists()


def test_plain_http_stays_on_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond loopback it does not listen, and names the proxy."""
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        assert main(["serve", "--data", str(tmp_path), "--listen", address]) == 1
        assert "reverse proxy" in capsys.readouterr().err


def test_a_server_finishes_what_was_begun(tmp_path: Path) -> None:
    """A request that is half there at SIGTERM is answered, and the process ends with status 0."""
    with serving(tmp_path / "data") as (url, process):
        body = b'{"code": "none", "device": "laptop"}'
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        head = f"POST /v1/join HTTP/1.1\r\nHost: a\r\n{kind}".encode()
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
            connection.sendall(head + body[:10])
            with httpx2.Client(base_url=url) as client:
                assert client.get("/readyz").status_code == 200  # so the head was read, too
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            connection.sendall(body[10:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        assert process.wait(60) == 0
    assert not (tmp_path / "data" / "team.db-wal").exists()


def test_a_unix_socket_is_taken_over_from_the_dead(tmp_path: Path) -> None:
    """A socket that nobody serves is replaced, one that is served is not."""
    path = str(tmp_path / "http.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    with serving(tmp_path / "data", "--uds", path) as (address, _):
        assert address == f"unix:{path}"
        assert os.stat(path).st_mode & 0o777 == 0o660
        transport = httpx2.HTTPTransport(uds=path)
        with httpx2.Client(transport=transport, base_url="http://team") as client:
            assert client.get("/healthz").json() == {"status": "ok"}
        assert main(["serve", "--data", str(tmp_path / "other"), "--uds", path]) == 1
    assert not os.path.exists(path)
