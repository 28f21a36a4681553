"""rm: delete a memory, or with --purge remove a text from everything that memd keeps."""

import os
from typing import Any

from memd.base.errors import Invalid, NotFound
from memd.cli.asking import can_ask, person_agrees
from memd.cli.invocation import Invocation

_PURGE_SECONDS = 600.0  # a state file of some hundred MiB is written anew
_PURGE_ONLY = ("pattern", "regex", "dry_run")  # options that only --purge has
_REPLACED = ".tmp"  # the end of the name of a file that a change replaced
_USAGE = 2


def remove(invocation: Invocation) -> int:
    """Delete one memory, or with ``--purge`` also its history, or what holds a pattern."""
    options = invocation.options
    if options.purge:
        return _purge(invocation)
    for name in _PURGE_ONLY:
        if getattr(options, name):
            raise Invalid(f"--{name.replace('_', '-')} goes with --purge")
    if not options.path:
        raise Invalid("rm needs the memory", hint="see memctl rm --help")
    result = invocation.request(request_id=os.urandom(16).hex())
    undo = invocation.command("undo", result["change"])
    words = f"deleted {options.path}; undo with: {undo}"
    invocation.screen.answer(result, words)
    return 0


def _purge(invocation: Invocation) -> int:
    """Remove texts for good after a question; where nobody says yes show them and return 2."""
    options, screen = invocation.options, invocation.screen
    if bool(options.path) == bool(options.pattern):
        raise Invalid("--purge needs a memory or a --pattern, one of the two")
    pattern = options.pattern
    if pattern == "-":
        pattern = invocation.read("-").rstrip("\n")
    given = {"path": options.path, "pattern": pattern, "regex": options.regex}
    is_wanted = options.yes and not options.dry_run
    # A pattern is searched in all of the history: once is enough where nobody is asked. For a
    # memory the answer says whether this caller may purge at all, before the memory is deleted.
    planned = {} if is_wanted and pattern else _ask_purge(invocation, given, dry_run=True)
    if not is_wanted and not options.dry_run and can_ask(invocation):
        screen.error("\n".join(_purge_lines(planned)) or "nothing is kept of it")
        is_wanted = person_agrees(invocation, "Remove it for good? Nothing brings it back.")
        if not is_wanted:
            screen.note("nothing was removed")
            return _USAGE
    if not is_wanted:
        _print_purged(invocation, planned)
        if options.dry_run:
            return 0
        screen.error("nothing was removed; --yes removes it for good")
        return _USAGE
    if options.path:
        _delete_if_there(invocation)
    _print_purged(invocation, _ask_purge(invocation, given, dry_run=False))
    return 0


def _delete_if_there(invocation: Invocation) -> None:
    """Delete the memory whose history goes; one that is deleted already may be purged too."""
    options = invocation.options
    try:
        change = invocation.ask(
            "memory.delete",
            path=options.path,
            base_hash=options.base_hash,
            request_id=os.urandom(16).hex(),
        )["change"]
        invocation.screen.note(f"deleted {options.path} as {change}")
    except NotFound:
        return


def _ask_purge(
    invocation: Invocation, given: dict[str, object], *, dry_run: bool
) -> dict[str, Any]:
    """Return what was purged, or would be."""
    given = {name: value for name, value in given.items() if value}
    answer: dict[str, Any] = invocation.ask(
        "memory.purge", seconds=_PURGE_SECONDS, dry_run=dry_run, **given
    )
    return answer


def _print_purged(invocation: Invocation, result: dict[str, Any]) -> None:
    """Print what was purged, or would be, and where the text still stands."""
    screen = invocation.screen
    screen.answer(result, "\n".join(_purge_lines(result)) or "nothing is kept of it")
    for path in result["live"]:
        if path.endswith(_REPLACED):
            screen.error(f"{path} has it until no program has that file open; memd removes it then")
        elif not (invocation.options.path and path.endswith(f"/{invocation.options.path}")):
            screen.error(f"it still stands in {path}, which is yours to change")


def _purge_lines(result: dict[str, Any]) -> list[str]:
    """Return a line for the removed texts of each memory, and for each removed state file."""
    would = "would be " if result["dry_run"] else ""
    changes_of: dict[str, dict[str, None]] = {}
    for body in result["bodies"]:
        changes = changes_of.setdefault(", ".join(body["paths"]), {})
        changes.update(dict.fromkeys(body["changes"]))
    lines = [f"{would}purged {paths} ({' '.join(ids)})" for paths, ids in changes_of.items()]
    return [*lines, *(f"{would}removed {path}" for path in result["files"])]
