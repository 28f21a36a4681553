"""Whoever answers for a model can summarise: a program that a person has, a server of chats."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.testing.chat import ScriptedChatServer
from memd.testing.clock import FakeClock
from memd.testing.daemon import daemon_here, throw_away_home
from memd.testing.messages import messages_server, text
from tests.promises.test_compaction import SUMMARY, all_said, applied, talk

pytestmark = pytest.mark.anyio


async def compacted(model: str) -> Any:
    """Return the answer about a conversation, with a model named in the settings."""
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True)
        config.write_text(f"[model]\n{model}\n[spend]\ndollars_per_day = 100\n")
        config.chmod(0o600)
        params = {"cwd": home.project(), "session_id": "s", "messages": talk()}
        async with (
            daemon_here(home, FakeClock(1_772_528_400.0)),
            AsyncClient(home.places.socket, name="test", environment={}) as client,
        ):
            return await client.call("context.compact", {**params, "strategy": "model"})


async def test_a_program_summarises(tmp_path: Path) -> None:
    """It is asked in one text and answers with one."""
    request = tmp_path / "request"
    script = f"cat > {request}; cat <<'END'\n{SUMMARY}\nEND"
    answer = await compacted(f'provider = "command"\nargv = {json.dumps(["sh", "-c", script])}')
    assert "part7.py is half done." in answer["messages"][0]["content"]
    assert all_said(applied(talk(), answer))
    assert "Nobody reads that part." in request.read_text(encoding="utf-8")


async def test_a_server_of_chats_summarises() -> None:
    """A local model answers as any other."""
    with messages_server(text(SUMMARY), kind=ScriptedChatServer) as server:
        answer = await compacted(f'provider = "openai"\nbase_url = "{server.url}"')
    assert "part7.py is half done." in answer["messages"][0]["content"]
    assert all_said(applied(talk(), answer))
