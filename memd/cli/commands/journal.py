"""history, diff and undo: the journal of a project."""

import os

from memd.cli import output
from memd.cli.invocation import Invocation

_STAMP = len("2026-11-21T10:00:00")


def history(invocation: Invocation) -> None:
    """List the changes of the project, newest first."""
    options = invocation.options
    found = invocation.ask(
        "memory.history", path=options.path, limit=options.limit, before=options.before
    )
    screen = invocation.screen
    rows = []
    for change in found["changes"]:
        files = ", ".join(f"{file['action']} {file['path']}" for file in change["files"])
        who = change["actor"]
        if change.get("client"):
            who += f" ({change['client']})"
        at = str(change["at"])[:_STAMP].replace("T", " ")
        rows.append((screen.paint(change["id"], "bold"), at, who, change["reason"] or "-", files))
    if not rows:
        screen.note("no changes")
    screen.answer(found, output.table(rows, screen.width))


def diff(invocation: Invocation) -> None:
    """Print the unified diffs of one change."""
    found = invocation.ask("memory.diff", change=invocation.options.change)
    text = "".join(
        file["diff"] if file["diff"].endswith("\n") or not file["diff"] else f"{file['diff']}\n"
        for file in found["files"]
    )
    invocation.screen.answer(found, painted(invocation, text))


def painted(invocation: Invocation, text: str) -> str:
    """Return a unified diff with its lines in colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return "".join(
        f"{invocation.screen.paint(line.rstrip(chr(10)), styles[line[0]])}\n"
        if line[:1] in styles
        else line
        for line in text.splitlines(keepends=True)
    )


def undo(invocation: Invocation) -> int:
    """Take one change back; 1 when a file was left because newer work stands there."""
    done = invocation.ask(
        "memory.undo", change=invocation.options.change, request_id=os.urandom(16).hex()
    )
    lines = [f"{file['action']} {file['path']}" for file in done["files"]]
    if done.get("change"):
        lines.append(f"undo the undo with: memctl undo {done['change']}")
    for conflict in done["conflicts"]:
        invocation.screen.error(f"left alone: {conflict}")
    invocation.screen.answer(done, "\n".join(lines) or "nothing to undo")
    return 1 if done["conflicts"] else 0
