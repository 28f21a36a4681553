"""rule.add, list, test and off, and the answer to a client's hook before a tool runs."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from memd.api.dialects import Dialect, Payload, decided
from memd.api.services import Services
from memd.base.errors import Invalid, MemdError, Refused
from memd.methods.callers import by_client
from memd.methods.method import method
from memd.rpc.call import Call
from memd.rules.values import (
    PlannedCall,
    RuleAdded,
    RuleAnswer,
    RuleList,
    ToolRule,
)

_STARTED_IN = "CLAUDE_PROJECT_DIR"  # where the session began, even if it changed directory since
Words = Annotated[str, msgspec.Meta(max_length=10_000)]


def rule_refused() -> Refused:
    """Return the error that a program that an assistant started tried to switch a rule."""
    return Refused(
        "which rules hold is for the person to say",
        hint="run memctl rule in a terminal of your own",
    )


@method("rule.list", "read")
async def rule_list(services: Services, call: Call, *, cwd: str) -> RuleList:
    """The rules of a project, and memories that could be made rules.

    A rule holds while its ``state`` is ``on``; it changes when its memory's text differs from the
    one that the person consented to. A candidate is a memory with a line ``check:``.
    """
    return await services.rules.list((await services.callers.project(call, cwd)).memory_dir)


@method("rule.add", "write")
async def rule_add(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    check: Words = "",
    answer: Literal["ask", "deny"] = "ask",
    request_id: str = "",
) -> RuleAdded:
    """Switch the rule of a memory on, with the memory's present text.

    If ``check`` is given, it is written into the memory first. A program that an assistant started
    is refused.
    """
    project = await services.callers.writable(call, cwd)
    if await services.callers.started_by_an_assistant(call):
        raise rule_refused()
    by = by_client(call, "rule.add")
    directory = project.memory_dir
    return await services.rules.add(directory, path, check, answer, by, request_id=request_id)


@method("rule.test", "read")
async def rule_test(
    services: Services, call: Call, *, cwd: str, tool: str, input_: dict[str, Any]
) -> RuleAnswer:
    """The answer of a project's rules to a tool call. Nothing is run and nothing is counted.

    ``input`` is what an assistant gives the tool, such as ``{"command": "git push"}`` for Bash.
    """
    directory = (await services.callers.project(call, cwd)).memory_dir
    return await services.rules.test(directory, PlannedCall(tool, input_, cwd))


@method("rule.off", "write")
async def rule_off(services: Services, call: Call, *, cwd: str, rule: str) -> ToolRule:
    """Switch a rule off; its line stays in the memory. Programs that assistants start are refused.

    A rule whose memory is gone is deleted.
    """
    project = await services.callers.project(call, cwd)
    if await services.callers.started_by_an_assistant(call):
        raise rule_refused()
    return await services.rules.off(project.memory_dir, rule)


async def before_a_tool(
    services: Services, call: Call, dialect: Dialect, name: str, payload: Payload, *, until: float
) -> dict[str, Any] | None:
    """Return the hook output that refuses a tool call or asks about it, ``None`` to allow it.

    The rules are those of the projects of the tool's directory and of the session's first one.
    """
    try:
        if not await services.rules.any_on():
            return None
    except MemdError:  # rules that cannot be read stop no tool
        return None
    environment = call.caller.environment
    cwds = {payload.cwd, environment.get(_STARTED_IN, payload.cwd)}
    directories = partial(_memory_directories, services, environment, cwds)
    about = PlannedCall(payload.tool_name, payload.tool_input, payload.cwd)
    seconds = max(0.0, until - services.clock.monotonic())
    answer = await services.rules.answer(directories, about, seconds)
    return decided(dialect, name, answer.answer, answer.words)


def _memory_directories(
    services: Services, environment: Mapping[str, str], cwds: set[str]
) -> tuple[str, ...]:
    """Return the memory directories of working directories, without duplicates. Blocks."""
    result = []
    for cwd in sorted(cwds):
        with suppress(Invalid):
            project, *_ = services.projects.where(cwd, environment)  # on or off
            result.append(project.memory_dir)
    return tuple(dict.fromkeys(result))
