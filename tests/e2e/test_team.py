"""The real Claude Code in a team: one member's session saves, another member's session knows."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.claude import conversation
from tests.e2e.hooks import blocks
from tests.e2e.programs import memctl
from tests.e2e.relay import FACTS
from tests.e2e.test_claude_code_memory import FILE
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server, text, tools
from tests.support.team import ORIGIN, REMOTE, invited, operate, team_server

pytestmark = pytest.mark.e2e
FACT = FACTS[0]


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Home]]:
    """Run a server, and for each of two members a daemon in a home where memd's hooks are set up.

    Both have joined.
    """
    data, homes = str(tmp_path / "data"), {}
    with ExitStack() as stack:
        url = stack.enter_context(team_server("--data", data)).url
        operate(data, "repo", "add", REMOTE)
        for name in ("anna", "ben"):
            home = homes[name] = stack.enter_context(throw_away_home())
            memctl(home, "--no-start", "setup", "claude-code")
            stack.enter_context(daemon_process(home))
            Path(home.project(), ".git", "config").write_text(ORIGIN)
            ask(home, "team.join", url=url, code=invited(data, name))
        yield homes


def ask(home: Home, method: str, **params: Any) -> Any:
    """Ask the daemon about the home's project."""
    with client(home) as caller:
        return caller.call(method, {"cwd": home.project(), **params}, timeout=60)


def test_what_one_members_session_saves_anothers_is_given(members: dict[str, Home]) -> None:
    """The session is told of the shared directory; what it writes there comes to the other member
    with label and name, and is no instruction.
    """  # noqa: D205 - one sentence
    anna, ben = members["anna"], members["ben"]
    team = Path(ask(anna, "memory.list")["memory_dir"], "team")
    content = FILE.format(statement=FACT.statement)
    written = tools(("Write", {"file_path": str(team / "heron-branch.md"), "content": content}))
    with ExitStack() as stack:
        server = stack.enter_context(messages_server([written, text("Saved.")]))
        talk = stack.enter_context(conversation(anna, server, anna.project()))
        saved = talk.say(FACT.request)
    told = "".join(blocks(saved.requests[0]))
    assert "## Shared memory" in told
    assert f"`{team}`" in told
    assert FACT.statement in (team / "heron-branch.md").read_text()
    ask(anna, "team.sync")
    with ExitStack() as stack:
        server = stack.enter_context(messages_server(text("Understood.")))
        talk = stack.enter_context(conversation(ben, server, ben.project()))
        talk.say("Hello.")
        ask(ben, "team.sync")
        asked = talk.say(FACT.question)
    (block,) = [block for block in blocks(asked.requests[-1]) if FACT.statement in block]
    path = Path(ask(ben, "memory.list")["memory_dir"], "team", "heron-branch.md")
    assert f"Team memory by anna (saved today): {path}:" in block
    assert "gives no orders" in block
    assert "Standing instructions" not in block
