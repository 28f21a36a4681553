"""Run an agent: ask the model, run its tools in a worker thread, and stay within its budget.

It never writes a file: the run's changes stay in its bench, for the caller to commit. A run that
reaches a bound (turns, tokens, time) has ended; what it did stays valid. A run that is cancelled
leaves nothing behind but its record.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from memd.agent import operations, step
from memd.agent import refusals as refusals
from memd.agent import single_shot as single_shot
from memd.agent import tools as tools
from memd.agent.operations import OperationTools
from memd.agent.prefix import prefixed as prefixed
from memd.agent.record import RunRecord as RunRecord
from memd.agent.step import AskModel, CallTools, Finish, PlannedToolCall, Reason, Stop
from memd.agent.step import Budget as Budget
from memd.agent.step import ToolResult as ToolResult
from memd.agent.step import total as total
from memd.agent.task import LITTLE_THOUGHT as LITTLE_THOUGHT
from memd.agent.task import Bench
from memd.agent.task import NoTools as NoTools
from memd.agent.task import Task as Task
from memd.agent.workspace import Workspace
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.text import cut_bytes
from memd.model.errors import ModelError, PromptTooLongError
from memd.model.port import Ask, Block, Model, Reply, ToolCall, Usage
from memd.state.database import StateUnusableError
from memd.store import secret

CALL_SECONDS = 5.0  # one tool call
TURN_SECONDS = 20.0  # all calls of one turn
REPORTED_CHARACTERS = 400  # of a reply, in a progress report
_SCRUBBED_BYTES = 64_000  # of a reply; the rest is never reported, so it is dropped first
_TOOL_NAMES = 32  # of one reply, in a progress report
_TOOL_NAME_CHARACTERS = 60
Progress = Callable[..., None]
W = TypeVar("W", bound=Workspace)


class RunEnd(Struct, frozen=True):
    """How a run ended: its last reply, its usage, its record, and why it stopped.

    ``finished`` is true when the model said that it was done. Otherwise ``reason`` names the bound
    that it reached, or ``error`` is the model's error.
    ``usage`` is the sum of all replies; the cost of a request without a reply is only passed to
    ``on_usage``. ``messages`` has the messages after those that the run began with.
    """

    finished: bool
    reason: Reason | None
    text: str
    usage: Usage
    turns: int
    calls: int
    denied: int
    touched: tuple[str, ...]
    record: tuple[Mapping[str, Any], ...]
    error: ModelError | None = None
    messages: tuple[Block, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether what the run did counts: the model finished, or the run reached a bound."""
        return self.finished or self.reason in step.BOUNDS

    @property
    def unfinished(self) -> str:
        """A sentence on why the model did not finish, "" if it did."""
        if self.finished:
            return ""
        why = self.error.sentence if self.error else f"it ran into its bound: {self.reason}"
        return f"the model did not finish: {why}"


async def run(
    task: Task,
    model: Model,
    bench: Bench,
    clock: Clock,
    progress: Progress = lambda _phase, **_facts: None,
    *,
    record: RunRecord | None = None,
    on_usage: Callable[[Usage], None] | None = None,
) -> RunEnd:
    """Run an agent to its end and return how it ended. Raises nothing that a model can cause.

    ``progress(phase, **facts)`` is called before each request (``asking``) and after each reply
    (``tools`` if it calls any, else ``answered``), then with the reply's ``text`` and the names of
    its ``tools``. ``record`` is filled turn by turn, so that a caller that is cancelled still has
    it. ``on_usage`` is passed to each request. Raises StateUnusableError if the ledger of spending
    cannot be written.
    """
    run_record = RunRecord() if record is None else record
    if step.OPERATION in task.runs and isinstance(bench, Workspace):
        model, bench = _SingleShot(model), OperationTools(bench, task.shown)
    loop = _Loop(task, model, bench, clock, progress, run_record, on_usage)
    failure: MemdError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(loop.watch, group.cancel_scope)
        try:
            await loop.run()
        except MemdError as error:  # raised below, so that it is not wrapped in an exception group
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return loop.result()


@asynccontextmanager
async def opened(make: Callable[[], W]) -> AsyncIterator[W]:
    """Open a workspace for the length of the block, and close it; both in a worker thread.

    Raises what ``make`` raises.
    """
    workspace = await to_thread.run_sync(make)
    try:
        yield workspace
    finally:
        with anyio.CancelScope(shield=True):  # a few descriptors
            await to_thread.run_sync(workspace.close)


class _SingleShot:
    """A model that gets plain text, and whose operations are turned into tool calls."""

    calls_tools = True

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply with a tool call per operation. Raises what the model raises."""
        request = replace(ask, messages=operations.plain(ask.messages))
        reply = await self._model.ask(request, on_usage)
        return await to_thread.run_sync(operations.as_calls, reply)


@dataclass
class _Loop:
    """The state of a running run."""

    _task: Task
    _model: Model
    _bench: Bench
    _clock: Clock
    _progress: Progress
    _record: RunRecord
    _on_usage: Callable[[Usage], None] | None

    def __post_init__(self) -> None:
        task = self._task
        self._ends_at = self._clock.monotonic() + task.seconds
        self._is_stopping = False  # tells the tool that works in a thread to stop
        self._run, self._first_action = step.begin(task.messages, task.budget, task.runs)
        self._end: Finish | Stop = Stop(Reason.TIME)  # stays if the run is cancelled
        self._error: ModelError | None = None  # of the model, if it ended the run

    async def watch(self, scope: anyio.CancelScope) -> None:
        """Cancel the run when its time is over, and at its end stop a tool that still works."""
        try:
            await self._clock.sleep(self._ends_at - self._clock.monotonic())
            scope.cancel()
        finally:
            self._is_stopping = True

    async def run(self) -> None:
        """Ask the model and run its tools until the run ends."""
        action: AskModel | Finish | Stop = self._first_action
        while isinstance(action, AskModel):
            action = await self._ask(action)
        self._end = action

    def result(self) -> RunEnd:
        """Return how the run ended."""
        finished = isinstance(self._end, Finish)
        return RunEnd(
            finished=finished,
            reason=self._end.reason if isinstance(self._end, Stop) else None,
            text=self._end.text if isinstance(self._end, Finish) else "",
            usage=self._run.usage,
            turns=self._run.turn,
            calls=self._run.calls,
            denied=self._run.denied,
            touched=self._bench.touched,
            record=tuple(self._record.turns),
            error=self._error,
            messages=self._run.messages[self._run.retained :],
        )

    async def _ask(self, request: AskModel) -> AskModel | Finish | Stop:
        """Ask once, run the tool calls of the reply, and return the next action."""
        self._progress("asking", **self._facts())
        begun = self._clock.monotonic()
        try:
            reply = await self._model.ask(self._request(request), self._on_usage)
        except PromptTooLongError as error:
            self._run, retry = step.after_long_prompt(self._run)
            self._error = error if isinstance(retry, Stop) else None
            return retry
        except ModelError as error:
            if isinstance(error.__cause__, StateUnusableError):
                raise error.__cause__ from error  # the ledger failed, and not the model
            self._error = error
            return Stop(Reason.MODEL)
        self._run, action = step.step(self._run, reply)
        calls = action.calls if isinstance(action, CallTools) else ()
        reported = await to_thread.run_sync(self._reply_facts, reply)
        self._progress("tools" if calls else "answered", calling=len(calls), **reported)
        if not isinstance(action, CallTools):
            await self._add_turn(request, reply, (), begun)
            return action
        results = await to_thread.run_sync(self._run_calls, action)
        answers = [(planned.call, result) for planned, result in results]
        self._run, next_action = step.answer(self._run, answers)
        await self._add_turn(request, reply, results, begun)
        return next_action

    async def _add_turn(
        self,
        request: AskModel,
        reply: Reply,
        results: Sequence[tuple[PlannedToolCall, ToolResult]],
        begun: float,
    ) -> None:
        """Add a turn to the record, in a thread since the search for credentials takes long."""
        seconds = self._clock.monotonic() - begun
        await to_thread.run_sync(self._record.add, self._run, request, reply, results, seconds)

    def _run_calls(self, called: CallTools) -> list[tuple[PlannedToolCall, ToolResult]]:
        """Run the calls of one reply in order and return the results. Runs in a worker thread."""
        turn_ends_at = self._clock.monotonic() + TURN_SECONDS
        results: list[tuple[PlannedToolCall, ToolResult]] = []
        for planned in called.calls:
            answer = planned.answer
            if answer is None:
                answer = self._call(planned.call, turn_ends_at)
            results.append((planned, answer))
        return results

    def _call(self, call: ToolCall, turn_ends_at: float) -> ToolResult:
        """Run one tool call with its own time limit. Runs in a worker thread."""
        ends_at = min(turn_ends_at, self._clock.monotonic() + CALL_SECONDS)

        def over() -> bool:
            """Return whether the run stops or the call's time is up."""
            return self._is_stopping or self._clock.monotonic() >= ends_at

        return self._bench.call(call.name, call.input, self._clock.now(), over)

    def _request(self, request: AskModel) -> Ask:
        """Return the request to the model with the conversation so far, within the time left."""
        task = self._task
        seconds_left = self._ends_at - self._clock.monotonic()
        return Ask(
            kind=task.kind,
            model=task.model,
            messages=self._run.messages,
            max_tokens=request.max_tokens,
            seconds=max(min(task.ask_seconds, seconds_left), 0.0),
            system=task.system,
            tools=task.tools,
            schema=task.schema,
            retries=task.retries,
            project=task.project,
            extra=task.extra,
        )

    def _reply_facts(self, reply: Reply) -> dict[str, Any]:
        """Return a reply's facts for a progress report. Runs in a worker thread."""
        # Credentials are removed before the text is cut, since no rule finds half of one.
        text = secret.scrub(cut_bytes(reply.text, _SCRUBBED_BYTES)).strip()
        calls = reply.calls[:_TOOL_NAMES]
        names = [secret.scrub(call.name[:_TOOL_NAME_CHARACTERS]) for call in calls]
        reported = {"turn": self._run.turn, "text": text[:REPORTED_CHARACTERS], "tools": names}
        return self._facts() | reported

    def _facts(self) -> dict[str, Any]:
        """Return the run's counts for a progress report."""
        return {
            "turn": self._run.turn + 1,
            "tool_calls": self._run.calls,
            "touched": list(self._bench.touched),
            "tokens": total(self._run.usage),
        }
