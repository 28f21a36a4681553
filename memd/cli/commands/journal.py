"""log, diff, undo, why and restore: the journal of a project."""

import os
from typing import Any

from memd.cli import output
from memd.cli.invocation import Invocation
from memd.core.text import iso_time


def log(invocation: Invocation) -> None:
    """List changes, newest first, one line each."""
    options, screen = invocation.options, invocation.screen
    found = invocation.ask(
        "memory.history",
        path=options.path,
        actor=options.actor,
        session=options.session,
        client=options.client,
        since=options.since,
        until=options.until,
        all_projects=options.all or None,
        limit=options.limit,
        before=options.before,
    )
    rows = []
    for change in found["changes"]:
        files = ", ".join(_touched(file) for file in change["files"])
        where = [change["directory"]] if options.all else []
        reason = change["reason"] or "-"
        name = screen.paint(change["id"], "bold")
        rows.append((name, output.ago(change["at"]), _who(change), reason, *where, files))
    if not rows:
        screen.note("no changes")
    screen.answer(found, output.table(rows, screen.width))


def diff(invocation: Invocation) -> None:
    """Print the unified diffs of one change, or of two versions of a memory."""
    options = invocation.options
    found = invocation.ask(
        "memory.diff",
        change=options.change,
        path=options.path,
        **{"from": options.from_, "to": options.to},
    )
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
    """Take changes back; 1 when a file was left because newer work stands there."""
    options = invocation.options
    if options.as_of is not None:
        invocation.screen.note(f"everything after {iso_time(options.as_of)}")
    done = invocation.ask(
        "memory.undo",
        change=options.change,
        as_of=options.as_of,
        dry_run=options.dry_run or None,
        request_id=os.urandom(16).hex(),
        **{"from": options.from_, "to": options.to},
    )
    return _undone(invocation, done, "nothing to undo")


def restore(invocation: Invocation) -> int:
    """Bring back a version of one memory."""
    options = invocation.options
    done = invocation.ask(
        "memory.restore",
        path=options.path,
        change=options.change,
        dry_run=options.dry_run or None,
        request_id=os.urandom(16).hex(),
    )
    return _undone(invocation, done, f"{options.path} is so already")


def why(invocation: Invocation) -> None:
    """Say where a memory comes from and when it was last used."""
    found = invocation.ask("memory.why", path=invocation.options.path)
    pairs = [
        ("memory", found["path"] + ("" if found["exists"] else " (not there any more)")),
        ("first", _written(found["first"])),
        ("last", _written(found["last"]) if found["last"] != found["first"] else ""),
        ("changes", " ".join(found["changes"])),
        ("surfaced", _surfaced(found["surfaced"])),
    ]
    if found["first"] is None:
        invocation.screen.note("the journal knows no change of it")
    invocation.screen.answer(found, output.facts(pairs))


def _surfaced(seen: dict[str, Any] | None) -> str:
    """Return in words when a memory last came to a prompt."""
    if seen is None:
        return "never, as far back as memd remembers"
    return f"last {output.ago(seen['at'])}, in session {seen['session']}"


def _undone(invocation: Invocation, done: dict[str, Any], nothing: str) -> int:
    would = "would be " if invocation.options.dry_run else ""
    lines = [f"{would}{file['action']} {file['path']}" for file in done["files"]]
    lines += [f"merged with newer work: {path}" for path in done.get("merged") or ()]
    if done.get("change"):
        lines.append(f"undo the undo with: memctl undo {done['change']}")
    for conflict in done["conflicts"]:
        invocation.screen.error(f"left alone: {conflict}")
    invocation.screen.answer(done, "\n".join(lines) or nothing)
    return 1 if done["conflicts"] else 0


def _touched(file: dict[str, Any]) -> str:
    purged = " (purged)" if file.get("purged") else ""
    return f"{file['action']} {file['path']}{purged}"


def _who(change: dict[str, Any]) -> str:
    client = change.get("client")
    return f"{change['actor']} ({client})" if client else str(change["actor"])


def _written(by: dict[str, Any] | None) -> str:
    """Return one version's maker in words."""
    if by is None:
        return ""
    parts = [f"{by['change']}, {output.ago(by['at'])}: {by['action']} by {_who(by)}"]
    names = ("session", "model", "message", "transcript", "reason")
    parts += [f"{name} {by[name]}" for name in names if by.get(name)]
    return ", ".join(parts)
