"""doctor's line for the model, over the socket."""

from typing import Any

import pytest

from memd.testing.messages import messages_server, text
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]


async def line(caller: Caller) -> Any:
    """Return doctor's line for the model."""
    checks = (await caller.plain("doctor"))["checks"]
    return next(check for check in checks if check["name"] == "model")


async def test_an_address_that_is_refused_is_told(caller: Caller) -> None:
    """Plain http to another machine and an address without a key are worth a remedy."""
    for option in ('base_url = "http://gate.example"', 'base_url = "https://gate.example"'):
        configure(caller, f"[model]\n{option}\n")
        results = await line(caller)
        assert (results["state"], "gate.example" in results["detail"]) == ("warning", True)
        assert results["remedy"]


async def test_a_server_is_asked_whether_it_answers(caller: Caller) -> None:
    """Host and source of the key are told, silence and a wrong key with a remedy; the key never."""
    with messages_server(text("x"), keys=["sk-hidden"]) as server:
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-hidden"\n')
        results = await line(caller)
        assert (results["state"], "it answers" in results["detail"]) == ("ok", True)
        assert "by model.api_key of memd.toml" in results["detail"]
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-wrong"\n')
        refused = await line(caller)
        assert (refused["state"], "credentials" in refused["detail"]) == ("warning", True)
        assert server.messages == []
    silent = await line(caller)
    assert (silent["state"], "no connection" in silent["detail"]) == ("warning", True)
    assert silent["remedy"]
    assert "sk-" not in str((results, refused, silent))
    used = (await caller.plain("status"))["spend"]["used"]
    assert used["requests"] == 0


async def test_a_model_without_time_is_told(caller: Caller) -> None:
    """A model can be measured; when prompts never leave it time, doctor names what helps."""
    with messages_server(text('{"selected_memories": []}'), keys=["sk-x"]) as server:
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-x"\n')
        probe = await caller.plain("recall.probe")
        assert (probe["problem"], probe["seconds"] is not None) == ("", True)
        assert 300 <= probe["deadline_ms"] <= 2_500
        await caller.write()
        for number in range(3):
            assert (await line(caller))["state"] == "ok"
            answer = await caller.call(
                "prefetch", session_id=f"{number}", query="mock the database?", deadline_ms=200
            )
            assert "no time to ask the model" in answer["note"]
        slow = await line(caller)
    assert (slow["state"], "never in the time" in slow["detail"]) == ("warning", True)
    assert "memctl setup claude-code" in slow["remedy"]
