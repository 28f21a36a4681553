"""What rules cost a tool's call: the hook's process, and the daemon alone, beside an event that
does nothing, in turns within one run.
"""  # noqa: D205 - one sentence

import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import background, corpus
from benchmarks.hooks import MEMORIES, Clients
from benchmarks.measures import Line, Series, each, table
from memd.cli.setup.hooks import Hooks
from memd.client import hook_file
from tests.support.daemon import Home, daemon_process, throw_away_home

ROUNDS, SOCKET_ROUNDS = 300, 2_000
NOTHING, TOOL = "Notification", "PreToolUse"
COMMAND = "cd app && git add -A && git commit -m 'x y' && git -C app push origin main 2>&1 | tail"
HEAD = "---\nname: rule-{0}\ndescription: rule {0}\ntype: feedback\ncheck: {1}\n---\n\nNo.\n"
COUNTS = (0, 1, 200)
_WARM = 5
_HOSTILE = "git -a x; " * (1024 * 1024 // 10)


def run() -> None:
    """Measure and print."""
    with throw_away_home() as home:
        cwd = home.project()
        folder = Path(background.folder(home, cwd))
        corpus.write(str(folder), MEMORIES)
        hook_file.write(home.places)
        payload = _payload(cwd, COMMAND)
        rows: list[tuple[str, ...]] = [
            ("rules", "hook's process: nothing", "tool", "of it", "socket: nothing", "tool")
        ]
        with daemon_process(home), Line(home.places.socket) as line:
            line.call("memory.list", {"cwd": cwd})
            for count in COUNTS:
                _switch_on(line, folder, cwd, count)
                processes = _processes(home, cwd, payload)
                requests = [_requests(line, event, payload) for event in (NOTHING, TOOL)]
                rows.append(_row(count, processes, requests))
            hostile = _requests(line, TOOL, _payload(cwd, _HOSTILE), 5)
    print(f"rules, {MEMORIES:,} memories, no rule fits; p50 ms, ratio of the p50s of pairs")
    print(table(rows))
    print(f"a hostile line of 1 MiB with {COUNTS[-1]} rules: {hostile.p50:.0f} ms")
    print("aim: 1.05 of the event that does nothing where there is no rule")


def _payload(cwd: str, command: str) -> dict[str, Any]:
    given = {"command": command, "description": "Work"}
    return {"session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": given}


def _switch_on(line: Line, folder: Path, cwd: str, count: int) -> None:
    """Make so many rules, words and patterns by turns, none of which fits."""
    for number in range(count):
        words = f"git push --x{number}" if number % 2 else rf"Bash /forbidden-{number}\b.*x/"
        path = f"rule-{number}.md"
        if not (folder / path).exists():
            (folder / path).write_text(HEAD.format(number, words))
            line.call("rule.add", {"cwd": cwd, "path": path})


def _processes(home: Home, cwd: str, payload: dict[str, Any]) -> tuple[Series, Series]:
    """Return what both events take as a client runs them, in turns."""
    clients, hook = Clients(home, cwd), hook_file.hook_path(home.places)
    hooks = Hooks("claude-code", hook, {NOTHING: None, TOOL: None})
    commands = [hooks.group(event)["hooks"][0]["command"] for event in (NOTHING, TOOL)]
    given = json.dumps(payload).encode()
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + _WARM):
        for at in (0, 1) if number % 2 else (1, 0):
            took = each(partial(_shell, clients, commands[at], given), 1).times
            times[at].extend(took if number >= _WARM else ())
    return Series(tuple(times[0])), Series(tuple(times[1]))


def _shell(clients: Clients, command: str, given: bytes, _: int) -> None:
    clients.shell(command, given)


def _requests(
    line: Line, event: str, payload: dict[str, Any], rounds: int = SOCKET_ROUNDS
) -> Series:
    """Return what an event takes on an open connection."""
    params = {"client": "claude-code", "event": event, "payload": payload, "deadline_ms": 20_000}
    return each(lambda _: line.call("hook", params), rounds)


def _row(count: int, processes: tuple[Series, Series], requests: list[Series]) -> tuple[str, ...]:
    nothing, tool = processes
    pairs = Series(tuple(b / a for a, b in zip(nothing.times, tool.times, strict=True)))
    return (
        str(count),
        f"{nothing.p50:.2f}",
        f"{tool.p50:.2f}",
        f"{tool.p50 / nothing.p50:.3f} (pairs {pairs.p50:.3f})",
        *(f"{one.p50:.2f}" for one in requests),
    )


if __name__ == "__main__":
    run()
