"""log, diff, undo, why and purge: the journal of a project."""

import os
import time
from typing import Any

from memd.base.errors import Invalid
from memd.base.events import MEMORY_CHANGED
from memd.base.instants import written
from memd.base.names import printable
from memd.base.recent import Recent
from memd.base.text import iso_time
from memd.base.values import PERSON, Actor
from memd.cli import output
from memd.cli.following import follow
from memd.cli.grammar import CHANGE_ID
from memd.cli.invocation import Invocation

_PAST_CHANGES = 10  # that --follow shows first
_PAGE_LIMIT = 100  # changes
_MAX_REMEMBERED = 2_000  # printed changes, so that none is printed twice
_FOLLOW_OR_BEFORE = "--follow shows what comes, and --before what was: give one of them"
_PURGE_SECONDS = 600.0  # a state file of some hundred MiB is written anew


def log(invocation: Invocation) -> None:
    """List changes, newest first, or with ``--follow`` print each new one below the last."""
    screen = invocation.screen
    if invocation.options.follow:
        if invocation.options.before:
            raise Invalid(_FOLLOW_OR_BEFORE)
        follow(invocation, [MEMORY_CHANGED], _FollowedChanges(invocation).step)
        return
    answer = invocation.request()
    rows = [
        _change_row(invocation, change, output.ago(change["at"])) for change in answer["changes"]
    ]
    if not rows:
        screen.note("no changes")
    if answer["former"]:
        former = printable(answer["former"])
        screen.note(f"more is kept for {former}, from where these memories were moved;")
        screen.note("memctl doctor --fix takes it over")
    screen.answer(answer, output.table(rows, screen.width))


class _FollowedChanges:
    """Prints each change once, also after a restart of the daemon."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        # The id and the time of each printed change.
        self._printed: Recent[tuple[str, str], None] = Recent(_MAX_REMEMBERED)
        self._has_started = False  # whether ``step`` was called before

    def step(self) -> None:
        """Print the new changes, oldest first; the first call prints only the newest few."""
        new = self._unprinted_changes()
        for change in new:
            self._printed[change["id"], change["at"]] = None
        if not self._has_started:
            new = new[-(self._invocation.options.limit or _PAST_CHANGES) :]
        self._has_started = True
        screen = self._invocation.screen
        for change in new:
            if screen.as_json:
                screen.record(change)
            else:  # an age would be wrong a minute later
                moment = time.localtime(written(change["at"]) or 0)
                at = time.strftime("%Y-%m-%d %H:%M:%S", moment)
                row = _change_row(self._invocation, change, at)
                screen.line(output.table([row], screen.width).removesuffix("\n"))

    def _unprinted_changes(self) -> list[dict[str, Any]]:
        """Return the changes not printed yet, oldest first; the first call reads one page."""
        result: list[dict[str, Any]] = []
        before = None
        while True:
            page = self._invocation.request(limit=_PAGE_LIMIT, before=before)["changes"]
            page = [change for change in page if change["id"]]  # an imported one has none
            new = [change for change in page if (change["id"], change["at"]) not in self._printed]
            result += new
            # A page with a printed change ends the search: all older changes were printed too.
            is_last_page = not page or len(new) < len(page)
            if is_last_page or not self._has_started:
                return result[::-1]
            before = page[-1]["id"]


def _change_row(invocation: Invocation, change: dict[str, Any], at: str) -> tuple[str, ...]:
    """Return the cells of a change in the list: id, time, author, reason and files."""
    files = ", ".join(_file_words(file) for file in change["files"])
    where = [change["directory"]] if invocation.options.all else []
    reason = printable(change["reason"]) or "-"
    name = invocation.screen.paint(change["id"] or "-", "bold")
    return (name, at, _author(change), reason, *where, files)


def diff(invocation: Invocation) -> None:
    """Print the unified diffs of one change, or of two versions of a memory."""
    answer = invocation.request()
    text = "".join(invocation.screen.diff(file["diff"]) for file in answer["files"])
    invocation.screen.answer(answer, text)


def undo(invocation: Invocation) -> int:
    """Undo changes, by default the newest; return 1 if a file was left as newer work is in it.

    What is no id of a change is a memory, which gets its last version back.
    """
    options = invocation.options
    if options.as_of is not None:
        invocation.screen.note(f"everything after {iso_time(options.as_of)}")
    change, path = options.change, None
    if options.what and CHANGE_ID.fullmatch(options.what):
        change = options.what
    elif options.what:
        path = invocation.memory(options.what)
    result = invocation.request(change=change, path=path, request_id=os.urandom(16).hex())
    if result.get("undone"):
        would = "would take" if invocation.options.dry_run else "takes"
        invocation.screen.note(f"{would} back {result['undone']}")
    return _print_undone(invocation, result, f"{path} is so already" if path else "nothing to undo")


def why(invocation: Invocation) -> None:
    """Print where a memory comes from and when it was last used."""
    answer = invocation.request()
    pairs = [
        ("memory", answer["path"] + ("" if answer["exists"] else " (not there any more)")),
        ("words of", _origin_words(answer)),
        ("shared by", _shared_words(answer.get("shared"))),
        ("first", _version_words(answer["first"])),
        ("last", _version_words(answer["last"]) if answer["last"] != answer["first"] else ""),
        ("changes", " ".join(answer["changes"])),
        ("surfaced", _surfaced_words(answer["surfaced"])),
    ]
    if answer["first"] is None:
        invocation.screen.note("the journal knows no change of it")
    invocation.screen.answer(answer, output.facts(pairs))


def _origin_words(answer: dict[str, Any]) -> str:
    """Return whose words a memory holds, and what that is worth where another program wrote it."""
    origin = str(answer.get("origin", ""))
    last = answer["last"]
    if origin != PERSON or last is None or last["actor"] not in (Actor.EXTERNAL, Actor.ASSISTANT):
        return origin
    return f"{origin}, it says; a note in prompts, since memd did not write it last (memctl edit)"


def purge(invocation: Invocation) -> int:
    """Remove texts from the history for good; without ``--yes`` only show that and return 2."""
    options, screen = invocation.options, invocation.screen
    pattern = options.pattern
    if pattern == "-":
        pattern = invocation.read("-").rstrip("\n")
    is_dry_run = not options.yes or options.dry_run
    result = invocation.request(seconds=_PURGE_SECONDS, pattern=pattern, dry_run=is_dry_run)
    screen.answer(result, "\n".join(_purge_lines(result)) or "nothing is kept of it")
    for path in result["live"]:
        screen.error(f"it still stands in {path}, which is yours to change")
    if not options.yes and not options.dry_run:  # nobody has said what to do
        screen.error("nothing was removed; --yes removes it for good")
        return 2
    return 0


def _shared_words(version: dict[str, Any] | None) -> str:
    """Return in words which member a team memory is from, or "" for ``None``."""
    if version is None:
        return ""
    author = f"{version['member']} by {version['device']}"
    return f"{author}, {output.ago(version['at'])}, revision {version['revision']}"


def _surfaced_words(sighting: dict[str, Any] | None) -> str:
    """Return in words when a memory was last added to a prompt."""
    if sighting is None:
        return "never, as far back as memd remembers"
    return f"last {output.ago(sighting['at'])}, in session {sighting['session']}"


def _print_undone(invocation: Invocation, result: dict[str, Any], empty_text: str) -> int:
    """Print the result of an undo; return 1 if a file was left alone.

    ``empty_text`` is printed if no file was changed.
    """
    would = "would be " if invocation.options.dry_run else ""
    lines = [f"{would}{file['action']} {file['path']}" for file in result["files"]]
    lines += [f"merged with newer work: {path}" for path in result.get("merged") or ()]
    if result.get("change"):
        lines.append(f"undo the undo with: {invocation.command('undo', result['change'])}")
    for conflict in result["conflicts"]:
        invocation.screen.error(f"left alone: {conflict}")
    invocation.screen.answer(result, "\n".join(lines) or empty_text)
    return 1 if result["conflicts"] else 0


def _file_words(file: dict[str, Any]) -> str:
    """Return what a change did to a file, as "updated notes.md"."""
    purged = " (purged)" if file.get("purged") else ""
    return f"{file['action']} {file['path']}{purged}"


def _author(change: dict[str, Any]) -> str:
    """Return who made a change, made printable since an imported history may hold any text."""
    actor, client = printable(change["actor"]), printable(change.get("client") or "")
    return f"{actor} ({client})" if client else actor


def _version_words(version: dict[str, Any] | None) -> str:
    """Return in words who wrote a version and when, or "" for ``None``."""
    if version is None:
        return ""
    action = f"{version['action']} by {_author(version)}"
    parts = [f"{version['change']}, {output.ago(version['at'])}: {action}"]
    names = ("session", "model", "message", "transcript", "reason")
    parts += [f"{name} {version[name]}" for name in names if version.get(name)]
    return ", ".join(parts)


def _purge_lines(result: dict[str, Any]) -> list[str]:
    """Return a line for each removed text with its hash, and for each removed state file."""
    would = "would be " if result["dry_run"] else ""
    lines = [
        f"{would}purged {body['hash']} {', '.join(body['paths'])} ({' '.join(body['changes'])})"
        for body in result["bodies"]
    ]
    return [*lines, *(f"{would}removed {path}" for path in result["files"])]
