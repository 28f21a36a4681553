"""setup: connect clients to memd or disconnect them, or show the changes that it would make."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import Invalid, MemdError
from memd.cli import output, service_unit
from memd.cli.asking import can_ask, person_agrees
from memd.cli.commands import reader
from memd.cli.invocation import Invocation
from memd.cli.setup.checks import client_checks, enabled_plugin, memory_switch
from memd.cli.setup.clients import ClientRow, MachineFacts, Snippet, snippets, table
from memd.cli.setup.hooks import MESSAGES, RULES
from memd.cli.setup.pieces import ABSENT, FOREIGN, INSTALLED, Copy, JsonFile
from memd.cli.setup.plan import (
    ClientEdit,
    can_have_duty,
    changes,
    has_copies,
    has_duty,
    hooks_are_used,
    in_use,
    state,
    tidy,
    uses_hooks,
)
from memd.client import hook_file
from memd.client.errors import DaemonUnavailableError

_STYLES = {"installed": "green", "outdated": "yellow", "foreign": "red", "failed": "red"}
# What a model is measured with: a prompt that marks nothing, and as long as a model may take.
_MEASURED: dict[str, Any] = {
    "session_id": "memctl setup",
    "query": "Which of these helps with running the tests?",
    "strategy": "model",
    "explain": True,
    "deadline_ms": 4_000,
}
_LEAST_SECONDS = 0.3  # a prompt leaves a model so much time at least
_SPREAD = 1.5  # most replies take up to so many times as long as a measured one
_STEP_MS = 500  # so that a second set-up, which measures a little else, changes nothing
_SEVERAL_FILES = "{} is set up in several files, so none of them can be named"
_DUTY_REFUSED = {
    MESSAGES: "memd cannot bring messages into the turns of {}",
    RULES: "{} cannot ask memd before a tool runs",
}
_DUTY_HINTS = {
    MESSAGES: "its tools read messages: list_agents, send_message, read_messages of memctl mcp",
    RULES: "docs/rules.md names the clients that can",
}


class SetupReport(Struct):
    """The result for one client; ``lines`` are printed for a person."""

    client: str
    changed: bool = False
    files: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    lines: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report as ``--json`` shows it."""
        return {name: getattr(self, name) for name in ("client", "changed", "files", "error")}


def setup(invocation: Invocation) -> int:
    """Connect or disconnect the named client or all in use, or print what a client needs."""
    others = snippets(_machine_facts(invocation))
    if snippet := others.get(invocation.options.client):
        return _print_snippet(invocation, snippet)
    if invocation.options.remove and not invocation.options.client:
        for name in (name for name, other in others.items() if other.is_there()):
            sentence = f"{others[name].path} still names memctl; see memctl setup {name} --remove"
            invocation.screen.note(f"{others[name].title}: {sentence}")
    return _set_up(invocation)


def _set_up(invocation: Invocation) -> int:
    """Connect or disconnect the named client or all in use; return 78 if one failed."""
    options, screen = invocation.options, invocation.screen
    removes = _removes_all(invocation)
    all_clients = clients(invocation)
    named = [
        _with_settings_file(row, options.settings)
        for row in all_clients
        if row.name == options.client
    ]
    if options.status:
        return _print_status(invocation, named or all_clients)
    if named:
        chosen = named
    elif options.remove:
        chosen = [row for row in all_clients if _is_connected(row) or has_copies(row)]
    else:
        chosen = [client for client in all_clients if in_use(client, invocation.environ)]
    if not chosen and removes:
        screen.note("no client is set up")
    elif not chosen:
        names = ", ".join(client.name for client in all_clients)
        screen.note(f"no client is here that memd knows; memctl setup CLIENT takes one of {names}")
    chosen = _with_duties(invocation, chosen, named)
    if not removes:
        chosen = _with_deadline(invocation, chosen)
    reports = [_set_up_client(invocation, client) for client in chosen]
    pairs = zip(chosen, reports, strict=True)
    changed = [client for client, report in pairs if report.changed]
    # All clients share the hook file: it is deleted with the last set-up that names it.
    if removes and not options.dry_run and not hooks_are_used([*all_clients, *named]):
        hook_file.remove(invocation.places)
    if changed and not (removes or options.dry_run):
        _check_chain(invocation, changed)
    if any(report.files and not report.changed for report in reports):
        screen.note("memctl setup --yes connects all that are here; --dry-run shows the changes")
    lines = [line for report in reports for line in report.lines]
    screen.answer({"clients": [report.as_json() for report in reports]}, "\n".join(lines))
    _settle_reader(invocation, chosen, changed=bool(changed))
    return 78 if any(report.error for report in reports) else 0


def _settle_reader(invocation: Invocation, chosen: Sequence[ClientRow], *, changed: bool) -> None:
    """Store the answer of ``--reader``, or ask the question where hooks tell of sessions' ends."""
    options = invocation.options
    if options.reader:
        reader.answer(invocation)
    elif not (options.remove or options.dry_run) and any(map(_has_hooks, chosen)):
        reader.ask(invocation, changed=changed)


def clients(invocation: Invocation) -> tuple[ClientRow, ...]:
    """Return the clients that memd sets up, with their files for this user."""
    return table(_machine_facts(invocation))


def _machine_facts(invocation: Invocation) -> MachineFacts:
    """Return the facts that decide what is written into the files of clients."""
    home = invocation.surroundings.home
    hook = hook_file.hook_path(invocation.places)
    context = service_unit.settings_table(invocation.places.config, "context") or {}
    spills = context.get("hook_spill") is True
    agents = service_unit.settings_table(invocation.places.config, "agents") or {}
    memctl, subagents = _memctl_path(home), bool(agents.get("memory"))
    return MachineFacts(invocation.environ, home, invocation.cwd, hook, memctl, spills, subagents)


def _print_snippet(invocation: Invocation, snippet: Snippet) -> int:
    """Print what a person adds to, or takes out of, a file that memd does not write."""
    options, screen = invocation.options, invocation.screen
    for duty in (MESSAGES, RULES):
        if getattr(options, duty):
            sentence, hint = _DUTY_REFUSED[duty], _DUTY_HINTS[duty]
            raise Invalid(sentence.format(snippet.title), hint=hint)
    path = options.settings or snippet.path
    verb = "take out of" if options.remove else "add to"
    if options.remove and os.path.exists(copy := f"{path}.memd-backup"):
        screen.note(f"{snippet.title}: delete {copy}, a copy of the file from before memd")
    screen.note(f"{snippet.title}: memd does not write its file; {verb} {path}:")
    screen.answer({"client": options.client, "path": path, "text": snippet.text}, snippet.text)
    return 0


def check(invocation: Invocation) -> list[dict[str, str]]:
    """Return the rows of ``doctor`` about the clients in use."""
    places, environ = invocation.places, invocation.environ
    rows: list[dict[str, str]] = []
    for client in clients(invocation):
        rows += client_checks(client, places, environ)
    no_client = {"name": "clients", "state": "off", "detail": "none is here"}
    return rows or [{**no_client, "remedy": "memctl setup"}]


def _set_up_client(invocation: Invocation, client: ClientRow) -> SetupReport:
    """Plan one client's set-up or removal, carry it out if wanted, and return the report."""
    options, report = invocation.options, SetupReport(client.name)
    try:
        removes = _removes_all(invocation)
        plan = changes(client, remove=removes)
        needs_hook = not removes and uses_hooks(client)
        # A plugin does without the set-up, but it asks before no tool.
        plugin_sentence = "" if options.rules else enabled_plugin(client)
        if not removes and state(client) == ABSENT and plugin_sentence:
            report.lines.append(f"{client.title}: {plugin_sentence}, nothing else is needed")
        elif plan or (needs_hook and not hook_file.is_current(invocation.places)):
            _apply_plan(invocation, client, plan, report)
        else:
            words = "nothing of memd is there" if removes else "already set up"
            report.lines.append(f"{client.title}: {words}")
        if not options.dry_run and (report.changed or not plan):
            report.lines += [f"{client.title}: deleted {copy}" for copy in tidy(client)]
        switch = "" if removes else memory_switch(client, invocation.places.config)
        if switch:
            invocation.screen.note(f"{client.title}: {switch}")
    except MemdError as error:
        if options.client:
            raise
        report.error = str(error)
        report.lines.append(f"{client.title}: {error}")
    return report


def _apply_plan(
    invocation: Invocation, client: ClientRow, plan: tuple[ClientEdit, ...], report: SetupReport
) -> None:
    """Apply a plan and report it; only report with ``--dry-run`` or if the person says no."""
    options, screen, removes = invocation.options, invocation.screen, _removes_all(invocation)
    diffs = [screen.diff(edit.diff).removesuffix("\n") for edit in plan]
    report.files = [{"path": edit.piece.path, "diff": edit.diff} for edit in plan]
    if options.dry_run:
        report.changed = True
        report.lines += diffs
        return
    needs_consent = not (options.client or options.yes or removes)
    if needs_consent and not _ask_person(invocation, client, diffs):
        report.lines.append(f"{client.title}: not set up; memctl setup {client.name} does it")
        return
    report.changed = True
    if uses_hooks(client) and not removes:
        hook_file.write(invocation.places)
    words = "took memd out of" if removes else "wrote"
    for edit, file in zip(plan, report.files, strict=True):
        file["backup"] = edit.apply()
        report.lines.append(f"{client.title}: {words} {edit.piece.path}")
        if file["backup"]:
            screen.note(f"as it was before: {file['backup']}")
    if not plan:
        report.lines.append(f"{client.title}: wrote its hook anew")
    if not removes:
        screen.note(f"{client.title}: {client.next_step}")


def _ask_person(invocation: Invocation, client: ClientRow, diffs: list[str]) -> bool:
    """Show the diffs and return whether the person agrees; ``False`` without a terminal."""
    if not can_ask(invocation):
        return False
    for diff in diffs:
        invocation.screen.line(diff)
    return person_agrees(invocation, f"set up {client.title}?")


def _check_chain(invocation: Invocation, changed: list[ClientRow]) -> None:
    """Print what still keeps these clients from working, and whether a daemon answers."""
    screen, places = invocation.screen, invocation.places
    for client in changed:
        for row in client_checks(client, places, invocation.environ):
            if row["state"] != "ok":
                screen.note(f"{row['name']}: {row['detail']}\n  → {row['remedy']}")
    try:
        invocation.client(start=False)
        answer = invocation.call("status")
    except DaemonUnavailableError:
        screen.note("no memd runs yet: the first prompt, or memctl status, starts one")
    except MemdError as error:
        screen.note(f"{error}\n  → memctl doctor")
    else:
        screen.note(f"memd {answer['version']} answers at {places.socket}")


def _with_deadline(invocation: Invocation, chosen: list[ClientRow]) -> list[ClientRow]:
    """Return the clients with a prompt deadline that suits the model's measured speed.

    They are unchanged with ``--dry-run``, without hooks or a model, or if the measuring failed.
    """
    screen = invocation.screen
    if invocation.options.dry_run or not any(map(uses_hooks, chosen)):
        return chosen
    try:
        if service_unit.provider(invocation.places.config) in {"", "command"}:
            return chosen  # no model chooses memories
        began = time.monotonic()
        answer = invocation.call("prefetch", cwd=invocation.cwd, **_MEASURED)
        took = time.monotonic() - began
    except MemdError as error:
        screen.note(f"the model was not measured: {error}")
        return chosen
    wait = limits.HOOK_DEADLINE_MS
    if answer["strategy"] == "model":
        steps = 1000 * (_LEAST_SECONDS + _SPREAD * took) // _STEP_MS + 1
        wait = min(wait, int(steps) * _STEP_MS)
        screen.note(f"the model chose in {took:.1f} s: prompts wait {wait} ms at most")
    elif answer["note"]:
        wait = 0
        screen.note(f"prompts get their memories without a model: {answer['note']}")
    else:
        screen.note(f"no memory here to measure the model with: prompts wait {wait} ms at most")
    return [_with_pieces(client, JsonFile, wait=wait) for client in chosen]


def _removes_all(invocation: Invocation) -> bool:
    """Return whether all of memd is removed, and not only ``--messages`` or ``--rules``."""
    options = invocation.options
    return bool(options.remove and not (options.messages or options.rules))


def _with_duties(
    invocation: Invocation, chosen: list[ClientRow], named: Sequence[ClientRow]
) -> list[ClientRow]:
    """Return the clients that support the wanted duties, with these switched on or off.

    The duties are ``--messages`` and ``--rules``. Raises Invalid if a named client lacks
    one of them.
    """
    switches_on = not invocation.options.remove
    duties = [duty for duty in (MESSAGES, RULES) if getattr(invocation.options, duty)]
    for duty in duties:
        for client in named:
            if not can_have_duty(client, duty):
                raise Invalid(_DUTY_REFUSED[duty].format(client.title), hint=_DUTY_HINTS[duty])
        chosen = [client for client in chosen if can_have_duty(client, duty)]
        if not switches_on:
            chosen = [client for client in chosen if _is_connected(client)]
    extras = dict.fromkeys(duties, switches_on)
    return [_with_pieces(client, JsonFile | Copy, extras=extras) for client in chosen]


def _is_connected(client: ClientRow) -> bool:
    """Return whether memd is in a client's files; ``True`` if they cannot be read."""
    try:
        return bool(client.pieces) and state(client) not in {ABSENT, FOREIGN}
    except MemdError:
        return True


def _has_hooks(client: ClientRow) -> bool:
    """Return whether a client has hooks of memd's; ``True`` if its files cannot be read."""
    return uses_hooks(client) and _is_connected(client)


def _print_status(invocation: Invocation, chosen: Sequence[ClientRow]) -> int:
    """Print how each client is set up; return 1 unless all named or used ones are, and work."""
    rows, result, complete = [], [], True
    for client in chosen:
        is_in_use = in_use(client, invocation.environ)
        try:
            set_up = state(client)
        except MemdError as error:
            set_up = "failed"
            invocation.screen.note(str(error))
        if is_in_use or invocation.options.client:
            complete = complete and set_up == INSTALLED
        remarks: list[str] = []
        if set_up not in {"failed", ABSENT}:
            remarks += [f"with {duty}" for duty in (MESSAGES, RULES) if has_duty(client, duty)]
        if set_up != ABSENT:
            checks = client_checks(client, invocation.places, invocation.environ)
            problems = [row["detail"] for row in checks if row["state"] != "ok"]
            remarks = [*problems, *remarks]
            complete = complete and not problems
        remarks += filter(None, [memory_switch(client, invocation.places.config)])
        paths = [piece.path for piece in client.pieces]
        result.append(
            {
                "client": client.name,
                "here": is_in_use,
                "state": set_up,
                "files": paths,
                "remarks": remarks,
            }
        )
        painted = invocation.screen.paint(set_up, _STYLES.get(set_up, "dim"))
        words = "; ".join([*paths[:1], *remarks])
        rows.append((client.name, painted, "here" if is_in_use else "", words))
    invocation.screen.answer({"clients": result}, output.table(rows, invocation.screen.width))
    return 0 if complete else 1


def _with_settings_file(client: ClientRow, path: str | None) -> ClientRow:
    """Return a client with ``path`` as its only file. Raises Invalid for several."""
    if path and len(client.pieces) != 1:
        raise Invalid(_SEVERAL_FILES.format(client.name), hint="leave --settings out")
    return _with_pieces(client, JsonFile, path=os.path.abspath(path)) if path else client


def _with_pieces(client: ClientRow, kinds: Any, **values: Any) -> ClientRow:
    """Return a client with these values set in its pieces of the given kinds."""
    pieces = [
        replace(piece, **values) if isinstance(piece, kinds) else piece for piece in client.pieces
    ]
    return replace(client, pieces=tuple(pieces))


def _memctl_path(home: str) -> str:
    """Return the path of this memctl, by the link in ~/.local/bin, which outlives an upgrade."""
    installed = os.path.join(os.path.dirname(sys.executable), "memctl")
    linked = f"{home}/.local/bin/memctl"
    try:
        return linked if os.path.samefile(linked, installed) else installed
    except OSError:
        return installed
