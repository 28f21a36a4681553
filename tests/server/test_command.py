"""memd-team as its operator runs it."""

import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from memd.server.command import main, parser
from memd.server.operations import COMMANDS
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


def test_a_team_is_set_up_seen_and_taken_away(run: Run) -> None:
    """Repositories, members, roles, codes and tokens are made, listed and taken away."""
    assert run("repo", "add", REMOTE)[1]["remote"] == REMOTE
    assert [each["remote"] for each in run("repo", "list")[1]] == [REMOTE]
    assert run("invite", "anna", "--repo", REMOTE, "--hours", "1")[1]["code"]
    assert run("member", "add", "bert", "--admin") == (0, {"member": "bert", "admin": True})
    run("member", "grant", "bert", REMOTE, "maintainer")
    assert run("member", "list")[1] == [
        {"member": "anna", "admin": False, "roles": {REMOTE: "member"}},
        {"member": "bert", "admin": True, "roles": {REMOTE: "maintainer"}},
    ]
    run("member", "grant", "bert", REMOTE, "none")
    assert run("token", "issue", "bert", "prometheus")[1]["token"]
    [token] = run("token", "list")[1]
    assert (token["member"], token["device"], token["revoked"]) == ("bert", "prometheus", None)
    run("token", "revoke", str(token["number"]))
    assert run("token", "list")[1][0]["revoked"].endswith("+00:00")
    run("member", "remove", "anna")
    assert [each["member"] for each in run("member", "list")[1]] == ["bert"]
    acts = [each["act"] for each in run("audit", "--limit", "3")[1]]
    assert acts == ["remove_member", "revoke", "join"]


def test_data_is_copied_checked_and_moved(run: Run, tmp_path: Path) -> None:
    """A backup fills an empty storage with a new epoch, migrate moves all, neither replaces any."""
    run("repo", "add", REMOTE)
    file = str(tmp_path / "backup.db")
    assert run("backup", file)[0] == 0
    assert run("backup", file)[0] == 73
    assert run("restore", file)[0] == 73
    assert run("restore", file, data="new")[0] == 0
    [old], [new] = run("repo", "list")[1], run("repo", "list", data="new")[1]
    assert (new["id"], new["remote"]) == (old["id"], REMOTE)
    assert new["epoch"] != old["epoch"]
    assert run("migrate", str(tmp_path / "moved.db"))[0] == 0
    assert run("check") == (0, [])
    with pytest.raises(SystemExit) as ended:
        run("restore", str(tmp_path / "none"), data="more")
    assert ended.value.code == 2
    assert not (tmp_path / "more").exists()  # no storage is made of nothing


def test_damage_is_seen(run: Run, tmp_path: Path) -> None:
    """A changed byte of a text is a line of check, whose status is 1."""
    run("repo", "add", REMOTE)
    with serving(tmp_path / "data") as (url, _):
        run("member", "add", "anna")
        token = run("token", "issue", "anna", "laptop")[1]["token"]
        run("member", "grant", "anna", REMOTE, "member")
        number = run("repo", "list")[1][0]["id"]
        put(url, token, number)
    file = tmp_path / "data" / "team.db"
    file.write_bytes(file.read_bytes().replace(b"On Tuesdays.", b"On Wednesda."))
    status, problems = run("check")
    assert (status, len(problems)) == (1, 1)
    assert "a.md" in problems[0]["problem"]


def test_mistakes_are_told_in_a_sentence(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name, a missing place and an address that others could read have their status."""
    assert run("repo", "add", "https://github.com/Acme/app.git")[0] == 65
    assert run("invite", "anna", "--repo", "github.com/none/none")[0] != 0
    assert run("purge", REMOTE, "a.md")[0] != 0
    for words in (
        ["repo", "list"],
        [],
        ["serve", "--data", "x", "--tls-key", "k.pem"],
        ["serve", "--data", "x", "--listen", "nowhere"],
        ["serve", "--data", "x", "--behind-proxy", "10.0.0.1/8"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_only_what_sets_a_server_up_makes_a_storage(run: Run, tmp_path: Path) -> None:
    """A misspelt folder is no empty storage that is well, and a backup makes no folder."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "team.db").touch()
    for data in ("typo", "empty"):
        for words in (
            ["check"],
            ["audit"],
            ["token", "list"],
            ["invite", "anna"],
            ["backup", str(tmp_path / "b.db")],
        ):
            status, sentence = run(*words, data=data)
            assert (status, "there is none at" in sentence) == (78, True)
    assert not (tmp_path / "typo").exists()
    run("member", "add", "anna")
    assert run("backup", str(tmp_path / "unmounted" / "x.db"))[0] == 73
    assert not (tmp_path / "unmounted").exists()


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["invite", "anna", f"--hours={hours}"]
            for hours in ("99999999", "inf", "nan", "-3", "0")
        ),
        ["audit", "--limit", "-1"],
        ["token", "revoke", "9" * 5000],
    ],
)
def test_numbers_have_bounds(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """A number that means nothing makes no invitation; the sentence says which are taken."""
    run("member", "add", "bert")
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err
    assert [member["member"] for member in run("member", "list")[1]] == ["bert"]


def test_a_token_is_for_a_member_who_is_there(run: Run) -> None:
    """A misspelt name gets no token and makes no member."""
    run("member", "add", "ops", "--admin")
    assert run("token", "issue", "nobody", "prometheus")[0] == 1
    assert [member["member"] for member in run("member", "list")[1]] == ["ops"]
    assert run("token", "issue", "ops", "prometheus")[0] == 0


def test_plain_http_stays_on_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond loopback it needs a certificate or a proxy."""
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        assert main(["serve", "--data", str(tmp_path), "--listen", address]) == 1
        assert "--tls-cert" in capsys.readouterr().err


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command's help says what it does, and all of its arguments have words."""
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            parser().parse_args([*command.words, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert (command.run.__doc__ or "").split("\n")[0] in text
        assert all(each["help"] and name.strip("-") in text for name, each in command.arguments)
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--help"])
    assert "--behind-proxy" in capsys.readouterr().out


def test_the_environment_says_where_the_data_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option goes before the environment, and of the environment the database."""
    for name in ("given", "folder", "file"):
        monkeypatch.setenv("MEMD_TEAM_DATA", str(tmp_path / "folder"))
        if name == "file":
            monkeypatch.setenv("MEMD_TEAM_DATABASE", str(tmp_path / "file.db"))
        given = ["--data", str(tmp_path / "given")] if name == "given" else []
        assert main(["repo", "add", f"example.com/{name}", *given]) == 0
    assert (tmp_path / "given" / "team.db").is_file()
    assert (tmp_path / "folder" / "team.db").is_file()
    assert (tmp_path / "file.db").is_file()


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


def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    """With a certificate it speaks TLS alone; without its key it does not start."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes a certificate, is not on PATH")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    name = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key]
    subprocess.run([*make, *name], check=True, capture_output=True)
    given = ["--listen", "127.0.0.1:0", "--tls-cert", cert]
    assert main(["serve", "--data", str(tmp_path / "data"), *given]) == 1
    with serving(tmp_path / "data", *given, "--tls-key", key) as (url, _):
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=cert)
        with httpx2.Client(base_url=url, verify=trusted) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(url.replace("https", "http") + "/healthz")


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


def put(url: str, token: str, repository: str) -> None:
    """Write an entry."""
    text = "---\nname: a\ndescription: b\ntype: project\n---\nOn Tuesdays.\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(uuid.uuid4())}
    with httpx2.Client(base_url=url, headers=headers) as client:
        body = {"entries": [{"key": "a.md", "content": text, "hash": digest, "base": None}]}
        assert client.put(f"/v1/repos/{repository}/entries", json=body).status_code == 200
