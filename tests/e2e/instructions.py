"""What the real Claude Code, Codex CLI and Gemini CLI load of the tree of marked files.

``python -m tests.e2e.instructions`` writes ``tests/instructions/expected/*.json`` anew, from the
clients in MEMD_E2E_PREFIX.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memd.instructions.values import View
from tests.e2e.claude import environment
from tests.e2e.hooks import CODEX, CODEX_CONFIG
from tests.e2e.models import GeminiServer, ResponsesServer
from tests.e2e.programs import ProgramFailedError, program, run, version
from tests.instructions.fixture_tree import (
    CASES,
    EXPECTED,
    Case,
    git_root,
    make_tree,
    marks,
    sorted_rules,
)
from tests.support.daemon import Home, throw_away_home
from tests.support.messages import messages_server, text, tools
from tests.support.steps import Raw, ReceivedMessage, Step

_PROMPT = "Go on."
# In a namespace of its own, where /etc is another folder.
_WITH_ETC = 'mount --bind "$1" /etc && shift && exec "$@"'
_ETC = ("group", "hosts", "nsswitch.conf", "passwd")
_NAMES = {
    View.CLAUDE: ("Claude Code", "claude"),
    View.CODEX: ("Codex CLI", "codex"),
    View.GEMINI: ("Gemini CLI", "gemini"),
}


def sent_marks(case: Case) -> list[list[str]]:
    """Return the marks that the real client of a case sent: at the start, then after each file."""
    with throw_away_home() as home:
        base = Path(home.path).resolve() / "tree"
        base.mkdir()
        make_tree(base)
        requests = _RUN[case.view](case, home, base)
    result: list[list[str]] = []
    before: list[str] = []
    for request in requests:
        system_first = sorted(
            (request.json or {}).items(), key=lambda each: "system" not in each[0]
        )
        now = marks("\n".join(texts_of(dict(system_first))))
        assert now[: len(before)] == before, "a request lacks what the one before it had"
        result.append(sorted_rules(now[len(before) :]))
        before = now
    assert len(result) == len(case.touched) + 1
    return result


def _claude(case: Case, home: Home, base: Path) -> Sequence[ReceivedMessage]:
    reads = [tools(("Read", {"file_path": str(base / path)})) for path in case.touched]
    folder = base / case.home / ".claude"
    folder.mkdir(exist_ok=True)
    exclude = [glob.replace("{base}", str(base)) for glob in case.exclude]
    (folder / "settings.json").write_text(json.dumps({"claudeMdExcludes": exclude}))
    root = str(git_root(base / case.cwd))
    allowed = {"hasClaudeMdExternalIncludesApproved": case.external}
    (base / case.home / ".claude.json").write_text(json.dumps({"projects": {root: allowed}}))
    etc = base / "etc"
    etc.mkdir()
    for name in _ETC:
        shutil.copy(f"/etc/{name}", etc)
    shutil.copytree(base / "managed", etc / "claude-code")
    command = [*_with_etc(home), str(etc)]
    command += [program("claude"), "-p", _PROMPT, "--allowedTools", "Read"]
    with messages_server([*reads, text("Done.")]) as server:
        extra = {**environment(server), "HOME": str(base / case.home)}
        if case.folder:
            extra["CLAUDE_CONFIG_DIR"] = str(base / case.folder)
        run(command, home, extra, cwd=str(base / case.cwd))
        return server.messages


def _with_etc(home: Home) -> list[str]:
    """Return what runs a command with another /etc; skip the test where that cannot be."""
    try:
        run(["unshare", "-rm", "true"], home)
    except (OSError, ProgramFailedError):
        pytest.skip("no namespace for mounts can be made here")
    return ["unshare", "-rm", "sh", "-c", _WITH_ETC, "sh"]


def _codex(case: Case, home: Home, base: Path) -> Sequence[ReceivedMessage]:
    folder = base / (case.folder or f"{case.home}/.codex")
    place = folder / "config.toml"
    with messages_server(text("Done."), kind=ResponsesServer) as server:
        config = place.read_text() if place.exists() else ""
        place.write_text(config + CODEX_CONFIG.format(url=server.url))
        extra = {"HOME": str(base / case.home), "CODEX_HOME": str(folder), "LOCAL_KEY": "dummy"}
        run([program("codex"), *CODEX, _PROMPT], home, extra, cwd=str(base / case.cwd))
        return server.messages


def _gemini(case: Case, home: Home, base: Path) -> Sequence[ReceivedMessage]:
    place = base / case.home / ".gemini" / "settings.json"
    login = '"security": {"auth": {"selectedType": "gemini-api-key"}}'
    written = place.read_text() if place.exists() else "{}"
    place.write_text(f"{{{login}{',' if written != '{}' else ''}{written[1:]}")
    reads = [_gemini_call("read_file", {"file_path": str(base / path)}) for path in case.touched]
    with messages_server([*reads, text("Done.")], kind=GeminiServer) as server:
        extra = {
            "HOME": str(base / case.home),
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        options = ("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", _PROMPT)
        run([program("gemini"), *options], home, extra, cwd=str(base / case.cwd))
        return server.messages


_RUN: Mapping[View, Callable[[Case, Home, Path], Sequence[ReceivedMessage]]] = {
    View.CLAUDE: _claude,
    View.CODEX: _codex,
    View.GEMINI: _gemini,
}


def _gemini_call(name: str, arguments: Mapping[str, str]) -> Step:
    """Return an answer of Gemini that calls a tool."""
    part = {"functionCall": {"name": name, "args": arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    body = json.dumps({"candidates": [candidate], "usageMetadata": {}}).encode()
    return Raw(b"data: " + body + b"\r\n\r\n", content_type="text/event-stream")


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts in a request's body, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)


def main() -> None:
    """Write the lists."""
    with throw_away_home() as home:
        for view, (client, name) in _NAMES.items():
            cases = {case.name: sent_marks(case) for case in CASES if case.view is view}
            seen = version(home, [program(name), "--version"])
            content = {"client": client, "version": seen, "cases": cases}
            lines = json.dumps(content, indent=1, ensure_ascii=False)
            (EXPECTED / f"{view}.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
