"""Clients of ``memctl mcp``, the bridge of the Model Context Protocol."""

import json
from typing import Any

from tests.e2e.programs import HERE, MEMCTL, program, run
from tests.e2e.relay import Fact, Relay, Run, Step

_INDEX = "memory://index"


def inspector(relay: Relay, step: Step) -> str:
    """Run the MCP Inspector in its command-line mode, once for each call."""

    def call(method: str, *arguments: str) -> Any:
        command = [program("inspector"), "--cli", MEMCTL, "mcp", "--cwd", relay.project]
        return json.loads(
            run([*command, "--method", method, *arguments], relay.home, cwd=relay.project)
        )

    def tool(name: str, given: dict[str, Any]) -> Any:
        pairs = [f"{key}={value}" for key, value in given.items()]
        return call("tools/call", "--tool-name", name, "--tool-arg", *pairs)

    names = {each["name"] for each in call("tools/list", "--strict")["tools"]}
    assert {"search", "read", "save", "forget", "history", "undo", "suggestions"} <= names
    found = tool("search", _search(step.recalls))
    assert step.recalls.said(found["content"][0]["text"])
    made = tool("save", saved(step.saves))["structuredContent"]
    assert made["path"] == relay.stored(step.saves).name
    assert _INDEX in {each["uri"] for each in call("resources/list")["resources"]}
    return f"`--cli`: the {len(names)} tools, search, save, the index among the resources"


def _scripted(script: str, seen: str) -> Run:
    def follow(relay: Relay, step: Step) -> str:
        given = {
            "E2E_SEARCH": json.dumps(_search(step.recalls)),
            "E2E_READ": json.dumps({"path": "no.md"}),
            "E2E_TOOL": json.dumps(saved(step.saves)),
        }
        command = [program("python"), str(HERE / "scripts" / script), MEMCTL]
        words = run(command, relay.home, given, cwd=relay.project)
        answer = json.loads(words.strip().splitlines()[-1])
        assert step.recalls.said(answer["recalled"])
        assert answer["refused"]
        assert answer["saved"] == relay.stored(step.saves).name
        assert answer["prompts"]
        assert _INDEX in answer["resources"]
        return seen

    return follow


_CALLS = "search, an error, save, prompts, resources"
sdk = _scripted("mcp_client.py", f"`Client` over stdio: {_CALLS}")
fastmcp = _scripted("fastmcp_client.py", f"`Client` over stdio: {_CALLS}")


def _search(fact: Fact) -> dict[str, Any]:
    return {"query": fact.question}


def saved(fact: Fact) -> dict[str, Any]:
    """Return the arguments of the tool ``save`` for a fact."""
    return {
        "name": "-".join(fact.statement.rstrip(".").lower().split()[:5]),
        "description": fact.question,
        "type": "project",
        "body": fact.statement,
    }
