"""Real clients, unchanged, against a real daemon (``make e2e`` installs them)."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.testing.daemon import Home, daemon_process, throw_away_home

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".venv" / "e2e"
LIBRARIES = INSTALLED / "unpacked" / "usr" / "lib" / "x86_64-linux-gnu"
LOADER = LIBRARIES / "ld-linux-x86-64.so.2"

pytestmark = pytest.mark.e2e


@pytest.fixture
def home() -> Iterator[Home]:
    """Run a daemon on a home of its own."""
    with throw_away_home() as made, daemon_process(made):
        yield made


def unpacked(program: str) -> list[str]:
    """Return the command of a program that was unpacked with libraries of its own."""
    path = INSTALLED / "unpacked" / "usr" / "bin" / program
    if not path.exists():
        pytest.skip(f"{program} is not there; tests/e2e/install.sh needs apt-get to bring it")
    return [str(LOADER), "--library-path", str(LIBRARIES), str(path)]


def frame(home: Home) -> bytes:
    """Return the README's request."""
    params = {"cwd": home.project()}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "load_prompt", "params": params}
    ).encode()


def test_netcat_gets_its_line(home: Home) -> None:
    """The README's one-liner through nc -U -N prints one JSON line with the prompt."""
    command = [*unpacked("nc.openbsd"), "-U", "-N", home.places.socket]
    done = subprocess.run(command, input=frame(home) + b"\n", capture_output=True, check=True)
    assert "MEMORY.md" in json.loads(done.stdout)["result"]["prompt"]


def test_netcat_gets_headers_where_it_sent_headers(home: Home) -> None:
    """The same request in Content-Length framing is answered in that framing."""
    body = frame(home)
    sent = b"Content-Length: %d\r\n\r\n" % len(body) + body
    command = [*unpacked("nc.openbsd"), "-U", "-N", home.places.socket]
    done = subprocess.run(command, input=sent, capture_output=True, check=True)
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(answer)
    assert json.loads(answer)["id"] == 1


def test_vscode_jsonrpc_works_unchanged(home: Home) -> None:
    """A request is answered, an error has its code, and a cancelled request ends."""
    node = shutil.which("node")
    if node is None or not (INSTALLED / "node_modules").exists():
        pytest.skip("node or vscode-jsonrpc is not there; tests/e2e/install.sh needs npm")
    environ = os.environ | {"NODE_PATH": str(INSTALLED / "node_modules")}
    command = [node, str(HERE / "vscode.js"), home.places.socket, home.project()]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    answer = json.loads(done.stdout)
    assert answer["name"] == "memd"
    assert answer["prompt"] > 1000
    assert answer["refused"] == 1001
    assert answer["waiting"] in {1001, -32800}


def test_neovims_client_works_unchanged(home: Home) -> None:
    """vim.lsp.rpc.connect gets an answer and an error over the socket."""
    command = [*unpacked("nvim"), "--headless", "-u", "NONE", "-l", str(HERE / "neovim.lua")]
    environ = dict(home.environ) | {
        "VIMRUNTIME": str(INSTALLED / "unpacked" / "usr" / "share" / "nvim" / "runtime"),
        "E2E_SOCKET": home.places.socket,
        "E2E_CWD": home.project(),
    }
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    answer = json.loads((done.stdout + done.stderr).strip().splitlines()[-1])
    assert answer["prompt"] > 1000
    assert answer["refused"] == 1001
