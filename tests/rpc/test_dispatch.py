"""The dispatch edge."""

import json
from typing import Any

import anyio
import pytest

from memd.base.errors import MemdError
from memd.base.values import Caller
from memd.rpc.call import Call, Connection
from memd.rpc.dispatch import Dispatcher, contain
from memd.rpc.messages import RpcRequest
from tests.wire_server import RecordingLog


class TakenError(MemdError):
    """A failure with facts."""

    code = 1002
    kind = "taken"
    retryable = True
    hint = "choose another"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is taken", name=name)


GROUP = "several"
CYCLE: list[Any] = []
CYCLE.append(CYCLE)
RESULTS: dict[str, Any] = {
    "object": object(),
    "surrogate": "\udc80",
    "cycle": CYCLE,
    "big": "x" * 4_190_000,
}


async def give(_call: Call, params: dict[str, Any]) -> Any:
    """Return one of the results above."""
    return RESULTS[params["which"]]


async def echo(call: Call, params: dict[str, Any]) -> Any:
    """Return what came."""
    return {"id": call.request.id if call.request else None, "params": params}


async def fail(_call: Call, params: dict[str, Any]) -> None:
    """Fail in the way that is asked for."""
    if params["how"] == "expected":
        raise TakenError(params["name"])
    if params["how"] == "grouped":
        raise ExceptionGroup(GROUP, [ExceptionGroup(GROUP, [TakenError("x")])])
    if params["how"] == "two":
        raise ExceptionGroup(GROUP, [TakenError("x"), TakenError("y")])
    if params["how"] == "memory":
        raise MemoryError
    if params["how"] == "memory in a group":
        raise ExceptionGroup(GROUP, [MemoryError()])
    raise ValueError(params["name"])


def call(method: str, params: dict[str, Any]) -> Call:
    """Return a call on a connection that nobody serves."""
    return Call(Connection(Caller(connection=1, uid=0, pid=0)), RpcRequest(method, params, 7))


async def answered(method: str, *, log: RecordingLog | None = None, **params: Any) -> Any:
    """Return the answer to one request as a JSON value."""
    table = {"give": give, "echo": echo, "fail": fail}
    dispatcher = Dispatcher(table, log or RecordingLog())
    return json.loads(await dispatcher.answer(call(method, params)))


@pytest.mark.anyio
async def test_params_reach_the_handler_as_they_came() -> None:
    """Any name may be a parameter, also those that Python or the library uses."""
    params: dict[str, Any] = {
        "self": 1,
        "call": 2,
        "_call": 3,
        "context": 4,
        "with space": 5,
        "": 6,
    }
    assert await answered("echo", **params) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"id": 7, "params": params},
    }


@pytest.mark.anyio
@pytest.mark.parametrize("which", ["object", "surrogate", "cycle"])
async def test_a_result_that_is_no_json_is_an_internal_error(which: str) -> None:
    """It goes to the log and the client gets the id of the entry, nothing else."""
    log = RecordingLog()
    error = (await answered("give", log=log, which=which))["error"]
    assert (error["code"], error["data"]["error"]) == (-32603, "error-1")
    assert len(log.errors) == 1
    assert log.facts == [{"method": "give", "client": ""}]


@pytest.mark.anyio
async def test_a_result_that_could_not_be_sent_is_an_error() -> None:
    """What the reply queue could not hold is refused with the limit."""
    error = (await answered("give", which="big"))["error"]
    assert (error["code"], error["data"]["kind"]) == (1007, "too_large")


class FullLog(RecordingLog):
    """A log that has no memory to write with."""

    def unexpected(self, error: BaseException, **_facts: str) -> str:
        """Fail."""
        raise MemoryError from error

    def note(self, event: str, **_facts: str | float | bool | None) -> None:
        """Fail."""
        raise MemoryError(event)


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["memory", "memory in a group", ""])
@pytest.mark.parametrize("log", [RecordingLog, FullLog])
async def test_short_memory_costs_the_request(how: str, log: type[RecordingLog]) -> None:
    """It is answered as such, also where the log has none left; nothing is raised."""
    error = (await answered("fail", log=log(), how=how, name="x"))["error"]
    internal = log is RecordingLog and not how
    assert (error["data"]["kind"]) == ("internal" if internal else "busy")


@pytest.mark.anyio
async def test_a_failure_does_not_hold_the_request() -> None:
    """Through a traceback the parameters would stay until the collector finds the cycle."""

    async def work() -> None:
        raise TakenError(name="x") from ValueError()

    error = await contain(RecordingLog(), work)
    assert isinstance(error, TakenError)
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


@pytest.mark.anyio
async def test_a_failure_in_a_task_group_is_the_failure() -> None:
    """A group of one is what it holds; a group of several is unexpected."""
    assert (await answered("fail", how="grouped", name=""))["error"]["code"] == 1002
    assert (await answered("fail", how="two", name=""))["error"]["code"] == -32603


@pytest.mark.anyio
async def test_an_unexpected_exception_stays_in_the_log() -> None:
    """Nothing of its text reaches the client."""
    log = RecordingLog()
    answer = json.dumps(await answered("fail", log=log, how="x", name="hunter2 in /etc/passwd"))
    assert "hunter2" not in answer
    assert "ValueError" not in answer
    assert str(log.errors[0]) == "hunter2 in /etc/passwd"


@pytest.mark.anyio
async def test_a_cancelled_request_finishes_its_shielded_part() -> None:
    """Cancelling the call's scope stops at a shield of the handler, and is then an answer."""
    steps: list[str] = []
    entered = anyio.Event()

    async def write(_call: Call, _params: dict[str, Any]) -> None:
        with anyio.CancelScope(shield=True):
            entered.set()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            steps.append("written")
        await anyio.lowlevel.checkpoint()
        steps.append("never")

    dispatcher = Dispatcher({"write": write}, RecordingLog())
    asked, answers = call("write", {}), list[bytes]()

    async def answer() -> None:
        answers.append(await dispatcher.answer(asked))

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        await entered.wait()
        asked.scope.cancel()
    assert steps == ["written"]
    assert json.loads(answers[0])["error"]["code"] == -32800
