"""Clients of the socket, each in its own way, and the snippets for editors and shells."""

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.programs import HERE, INSTALLED, ROOT, program, run
from tests.e2e.relay import Relay, Run, Step, environment

_ABSENT = 1001


def scripted(name: str, seen: str, *arguments: str, **extra: str) -> Run:
    """Return a run of a program with one of our scripts, which prints what it saw as JSON."""

    def follow(relay: Relay, step: Step) -> str:
        command = [program(name), *arguments]
        given = environment(relay, step, name) | extra
        answer = json.loads(run(command, relay.home, given).strip().splitlines()[-1])
        assert step.recalls.said(answer["recalled"])
        assert answer["refused"] is True
        assert answer["saved"] == relay.stored(step.saves).name
        return seen

    return follow


def piped(name: str, seen: str, framed: Callable[[bytes], bytes], *arguments: str) -> Run:
    """Return a run of a program that passes standard input to the socket and prints the answer."""

    def follow(relay: Relay, step: Step) -> str:
        given = environment(relay, step, name)
        command = [program(name), *(part.format(given["E2E_SOCKET"]) for part in arguments)]

        def call(method: str, params: str) -> Any:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(params)}
            sent = framed(json.dumps(message).encode()).decode()
            return json.loads(run(command, relay.home, given=sent).splitlines()[-1])

        recalled = call("prefetch", given["E2E_RECALL"])["result"]["block"]
        assert step.recalls.said(recalled)
        assert call("memory.read", given["E2E_ABSENT"])["error"]["code"] == _ABSENT
        saved = call("memory.write", given["E2E_SAVE"])["result"]["path"]
        assert saved == relay.stored(step.saves).name
        return seen

    return follow


def packaged(package: str, name: str) -> Run:
    """Return a run of a package of ``clients/``: its own tests, which can take part in a relay.

    ``name`` is that of the program, or of the folder with the libraries that it is built with.
    """

    def follow(relay: Relay, step: Step) -> str:
        folder = INSTALLED / name
        place = str(folder) if (folder / "package.json").exists() else program(name)
        command = [str(ROOT / "clients" / package / "test" / "run"), place]
        given = {
            "MEMD_SOCKET": relay.home.places.socket,
            "MEMD_TEST_EXPECT": step.recalls.word,
            "MEMD_TEST_SAVE": step.saves.statement,
        }
        run(command, relay.home, given, cwd=relay.project)
        relay.stored(step.saves)
        return f"clients/{package}: its own tests; search, save, read, an error"

    return follow


def snippet(folder: str, name: str, *arguments: str) -> Run:
    """Return a run of a program with the snippet of a folder and the script that checks it."""

    def follow(relay: Relay, step: Step) -> str:
        given = {
            "MEMD_CALL": str(ROOT / "clients" / "shell" / "memd-call"),
            "MEMD_TEST_EXPECT": step.recalls.word,
            "MEMD_TEST_SAVE": step.saves.statement,
        }
        run([program(name), *arguments], relay.home, given, cwd=relay.project)
        relay.stored(step.saves)
        return f"clients/{folder}: search, save, read, an error"

    return follow


def _lines(body: bytes) -> bytes:
    return body + b"\n"


def _headers(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def _client(name: str) -> str:
    return str(ROOT / "clients" / name)


def _script(name: str) -> str:
    return str(HERE / "scripts" / name)


_CALLS = "prefetch, an error, memory.write"
nc = piped("nc", f"headers through `nc -U -N`: {_CALLS}", _headers, "-U", "-N", "{}")
socat = piped("socat", f"one JSON line each: {_CALLS}", _lines, "-t5", "-", "UNIX-CONNECT:{}")
vscode_jsonrpc = scripted(
    "node24",
    f"its MessageConnection: {_CALLS}, a cancelled request",
    _script("vscode_jsonrpc.js"),
    NODE_PATH=str(INSTALLED / "vscode-jsonrpc" / "node_modules"),
)
pylsp = scripted("python", f"its Endpoint: {_CALLS}", _script("pylsp.py"))
vscode = packaged("vscode", "vscode")
bash, zsh, fish = (snippet("shell", name, _script("check.sh")) for name in ("bash", "zsh", "fish"))
_QUIET = ("-Nes", "-u", "NONE", "-i", "NONE", "--not-a-term")
vim = snippet("vim", "vim", *_QUIET, "-S", _client("vim/memd.vim"), "-S", _script("check.vim"))
_LOADED = ("-l", _client("emacs/memd.el"), "-l", _script("check.el"))
emacs = snippet("emacs", "emacs", "-Q", "--batch", *_LOADED, "-f", "ert-run-tests-batch-and-exit")
neovim, neovim7 = packaged("neovim", "nvim"), packaged("neovim", "nvim7")
