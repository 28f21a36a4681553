"""The model that says what it is told to."""

import anyio
import pytest

from memd.model.errors import ModelUnavailableError
from memd.model.port import Ask, Reply, Usage
from memd.testing.scripted_model import HANG, ScriptedModel, calls, says

pytestmark = pytest.mark.anyio

ASK = Ask(kind="extract", model="m", messages=(), max_tokens=5, seconds=1.0)


async def test_answers_come_in_their_order() -> None:
    """Replies, functions and failures come one after the other, and the last one for ever."""

    def counted(ask: Ask) -> Reply:
        return says(f"{ask.max_tokens} tokens")

    model = ScriptedModel([says("one"), counted, ModelUnavailableError("gone")])
    heard: list[Usage] = []
    assert (await model.ask(ASK, heard.append)).text == "one"
    assert (await model.ask(ASK)).text == "5 tokens"
    for _ in range(2):
        with pytest.raises(ModelUnavailableError):
            await model.ask(ASK)
    assert heard == [Usage(100, 20)]
    assert model.asked == [ASK] * 4


async def test_a_hanging_model_hangs() -> None:
    """Where the script says so, no answer comes until the caller gives up."""
    with anyio.move_on_after(0.01) as scope:
        await ScriptedModel([HANG]).ask(ASK)
    assert scope.cancelled_caught


async def test_what_is_no_answer_is_a_fault_of_the_script() -> None:
    """A word that stands for nothing is told at once."""
    with pytest.raises(TypeError):
        await ScriptedModel(["hello"]).ask(ASK)


def test_calls_have_ids_and_blocks() -> None:
    """Each call has an id of its own and a block to send back."""
    reply = calls(("Read", {"file_path": "a"}), ("Bash", {"command": "ls"}), first=7)
    assert [call.id for call in reply.calls] == ["toolu_7", "toolu_8"]
    assert [block["id"] for block in reply.content] == ["toolu_7", "toolu_8"]
    assert reply.stop == "tool_use"
