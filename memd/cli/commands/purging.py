"""purge: what must not be kept goes for good."""

from typing import Any

from memd.cli.invocation import Invocation

_SECONDS = 600.0  # a state file of some hundred MiB is written anew


def purge(invocation: Invocation) -> int:
    """Remove texts from the history for good; 2 where nobody confirmed it."""
    options, screen = invocation.options, invocation.screen
    sure = options.yes or options.dry_run
    pattern = options.pattern
    if pattern == "-":
        pattern = invocation.read("-").rstrip("\n")
    done = invocation.ask(
        "memory.purge",
        seconds=_SECONDS,
        change=options.change,
        path=options.path,
        pattern=pattern,
        regex=options.regex or None,
        dry_run=not options.yes or options.dry_run,
    )
    screen.answer(done, "\n".join(_lines(done)) or "nothing is kept of it")
    for path in done["live"]:
        screen.error(f"it still stands in {path}, which is yours to change")
    if done["running"]:
        screen.note(f"{done['running']} jobs have not ended: purge again when they have")
    if not sure:
        screen.error("nothing was removed; --yes removes it for good")
        return 2
    return 0


def _lines(done: dict[str, Any]) -> list[str]:
    """Return what was removed, one thing a line, each by its hash."""
    would = "would be " if done["dry_run"] else ""
    lines = [
        f"{would}purged {body['hash']} {', '.join(body['paths'])} ({' '.join(body['changes'])})"
        for body in done["bodies"]
    ]
    lines += [f"{would}cleaned {rows} rows of {table}" for table, rows in done["texts"].items()]
    lines += [f"{would}removed from {file['path']} ({file['hash']})" for file in done["files"]]
    return lines
