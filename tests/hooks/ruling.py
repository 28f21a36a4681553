"""A memory that carries a rule, and the event of a tool that is about to run."""

from typing import Any

from tests.support.caller import Caller

FILE = "no-force.md"
FORCE: dict[str, Any] = {"command": "cd app && git push --force origin main"}
WORDS = "the person's rule no-force says: Never force-push a shared branch"
ASKED = {
    "hookEventName": "PreToolUse",
    "permissionDecision": "ask",
    "permissionDecisionReason": WORDS,
}


async def remember(caller: Caller, path: str = FILE, **changes: Any) -> Any:
    """Write the memory that carries the rule."""
    parts = {
        "name": path.removesuffix(".md"),
        "description": "Never force-push a shared branch",
        "body": "Use `git push --force-with-lease` on your own ones, never `git push --force`.",
    }
    return await caller.write(path, **(parts | changes))


async def add(
    caller: Caller, path: str = FILE, check: str = "git push --force", **more: Any
) -> Any:
    """Write the memory and switch its rule on."""
    await remember(caller, path)
    return await caller.call("rule.add", path=path, check=check, **more)


async def before(
    caller: Caller,
    given: dict[str, Any] | None = None,
    tool: str = "Bash",
    client: str = "claude-code",
    **members: Any,
) -> Any:
    """Send the event of a tool that is about to run, as a client does."""
    event = "BeforeTool" if client == "gemini" else "PreToolUse"
    environment = members.pop("environment", {})
    payload: dict[str, Any] = {"session_id": "s", "cwd": caller.cwd, "tool_name": tool}
    payload |= {"tool_input": FORCE if given is None else given, **members}
    asked = {"client": client, "event": event, "payload": payload, "environment": environment}
    return await caller.plain("hook", **asked, deadline_ms=20_000)


async def states(caller: Caller) -> list[str]:
    """Return the state of each rule of the project."""
    return [rule["state"] for rule in (await caller.call("rule.list"))["rules"]]
