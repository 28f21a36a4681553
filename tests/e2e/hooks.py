"""Assistants that run hooks: two conversations each, with a scripted model on loopback.

In the first one the person asks what the last program saved, and the answer must be in the request
that the model gets. In the second one they ask to remember something.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.mcp import saved
from tests.e2e.models import GeminiServer, ResponsesServer
from tests.e2e.programs import ROOT, memctl, program, run
from tests.e2e.relay import Relay, Step
from tests.support.daemon import Home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.steps import ReceivedMessage, ScriptedReply

CLAUDE = {
    "ANTHROPIC_API_KEY": "sk-ant-dummy",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}
# memd's own tag, and the one that Gemini CLI puts around what its hooks bring.
_BLOCK = re.compile(r"<(memd-context|hook_context)>(.*?)</\1>", re.DOTALL)


def blocks(request: ReceivedMessage) -> list[str]:
    """Return memd's blocks in a request's body, wherever the client put them."""
    return [words for _, words in _BLOCK.findall(request.body.decode())]


def claude_code(relay: Relay, step: Step) -> str:
    """Run Claude Code with the hooks that ``memctl setup`` writes."""
    memctl(relay.home, "setup", "claude-code")
    with messages_server(text("Understood.")) as server:
        extra = {**CLAUDE, "ANTHROPIC_BASE_URL": server.url}
        _converse(relay, step, server, [program("claude"), "-p"], extra)
        assert "mcp__memd__search" in server.messages[-1].body.decode()
    return "hooks of `memctl setup`: recalled, tools offered, learnt from its transcript"


def claude_plugin(relay: Relay, step: Step) -> str:
    """Run Claude Code with memd's plugin beside the hooks, and a model that saves by its tool."""
    save = "mcp__plugin_memd_memd__save"

    def model(request: ReceivedMessage) -> ScriptedReply:
        body = request.body.decode()
        wanted = step.saves.request in body and "tool_result" not in body
        memory = {**saved(step.saves), "said": step.saves.request}
        return tools((save, memory)) if wanted else text("Understood.")

    with messages_server(model) as server:
        extra = {**CLAUDE, "ANTHROPIC_BASE_URL": server.url}
        options = ("--plugin-dir", str(ROOT / "clients" / "claude-code"), "--allowedTools", save)
        _converse(relay, step, server, [program("claude"), *options, "-p"], extra)
        last = server.messages[-1].body.decode()
        assert "tool_result" in last
        assert '"is_error":true' not in last
        first = "".join(blocks(server.messages[0]))
    assert first.count(step.recalls.statement) == 1
    assert f'**Said:** "{step.saves.request}"' in relay.stored(step.saves).read_text()
    return "clients/claude-code beside the hooks: recalled once, saved by its tool with evidence"


def codex(relay: Relay, step: Step) -> str:
    """Run Codex CLI with the hooks that ``memctl setup`` writes."""
    memctl(relay.home, "setup", "codex")
    with messages_server(text("Understood."), kind=ResponsesServer) as server:
        place = Path(relay.home.path) / ".codex" / "config.toml"
        with _changed(place, CODEX_CONFIG.format(url=server.url)):
            _converse(relay, step, server, [program("codex"), *CODEX], {"LOCAL_KEY": "dummy"})
        assert "mcp__memd" in server.messages[-1].body.decode()
    return "hooks of `memctl setup`: recalled, tools offered, learnt from its rollout"


def gemini(relay: Relay, step: Step) -> str:
    """Run Gemini CLI with the hooks that ``memctl setup`` writes."""
    place = Path(relay.home.path) / ".gemini" / "settings.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    memctl(relay.home, "setup", "gemini")
    with messages_server(text("Understood."), kind=GeminiServer) as server:
        extra = {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        # A model by its name: otherwise another model is asked first which one to take.
        # Without a person to say yes it offers no tools of others, unless it need not ask.
        options = ("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p")
        _converse(relay, step, server, [program("gemini"), *options], extra)
        assert "mcp_memd_search" in server.messages[-1].body.decode()
    return "hooks of `memctl setup`: recalled, tools offered, learnt from its chat"


def opencode(relay: Relay, step: Step) -> str:
    """Run OpenCode with the plugin that ``memctl setup`` puts in its place."""
    with messages_server(text("Understood.")) as server:
        set_up_opencode(relay.home, server)
        _converse(relay, step, server, [program("opencode"), "run"], {})
        assert any("memd_search" in request.body.decode() for request in server.messages)
    return "plugin of `memctl setup`: recalled, tools offered, learnt from when idle"


def set_up_opencode(home: Home, server: MessagesServer, **model: Any) -> None:
    """Let OpenCode ask a scripted model, and put memd's plugin in its place."""
    place = Path(home.path) / ".config" / "opencode" / "opencode.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    # OpenCode brings a library for plugins from npm and waits for it; ours needs none.
    (Path(home.path) / ".npmrc").write_text("offline=true\nfetch-retries=0\n")
    name = "claude-haiku-5-5"
    options = {"baseURL": f"{server.url}/v1", "apiKey": "dummy"}
    local = {"npm": "@ai-sdk/anthropic", "options": options, "models": {name: model}}
    names = dict.fromkeys(("model", "small_model"), f"local/{name}")
    place.write_text(json.dumps({"autoupdate": False, **names, "provider": {"local": local}}))
    memctl(home, "setup", "opencode")


CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust")
CODEX_CONFIG = """\
model = "gpt-5.2-codex"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
"""


def _converse(
    relay: Relay, step: Step, server: MessagesServer, command: Sequence[str], extra: dict[str, str]
) -> None:
    run([*command, step.recalls.question], relay.home, extra, cwd=relay.project)
    recalled = [block for request in server.messages for block in blocks(request)]
    assert any(step.recalls.said(block) for block in recalled)
    run([*command, step.saves.request], relay.home, extra, cwd=relay.project)
    relay.stored(step.saves)


@contextmanager
def _changed(place: Path, beginning: str) -> Iterator[None]:
    """Put text before what a file has, while the block runs."""
    before = place.read_text() if place.exists() else ""
    place.write_text(beginning + before)
    yield
    place.write_text(before)
