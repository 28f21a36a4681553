"""setup: connect clients to memd or disconnect them, or show the changes that it would make."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from glob import escape, glob
from typing import Any

from memd.base import limits
from memd.base.errors import Invalid, MemdError
from memd.cli import output, service_unit
from memd.cli.asking import can_ask, person_agrees
from memd.cli.commands import service
from memd.cli.invocation import Invocation
from memd.cli.setup.checks import client_checks, enabled_plugin, memory_switch
from memd.cli.setup.clients import ClientRow, MachineFacts, table
from memd.cli.setup.hooks import MESSAGES, RULES, WAIT
from memd.cli.setup.parts import ABSENT, INSTALLED, SettingsPart
from memd.cli.setup.plan import (
    ClientEdit,
    can_have_extra,
    edits,
    has_extra,
    is_connected,
    leaves_traces,
    state,
    tidy,
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
_NO_SETTINGS = "{} has no settings file that could be another one"
_EXTRA_REFUSED = {
    MESSAGES: "memd cannot bring messages into the turns of {}",
    RULES: "{} cannot ask memd before a tool runs",
}
_EXTRA_HINTS = {
    MESSAGES: "its tools read messages: list_agents, send_message, read_messages of memctl mcp",
    RULES: "docs/rules.md names the clients that can",
}
_ALL_ALONE = "--all goes with --remove, and without a client's name"
_REMOVE_ALL = (
    "take memd out of every client, end its service and its daemon, and delete its hook, what "
    "waits in the spool and the tokens of teams? Memories and history stay."
)
_NOBODY_TO_ASK = "nobody is here to be asked; --yes removes all that memd set up"


class SetupReport:
    """The result for one client; ``lines`` are printed for a person."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.changed = False
        self.files: list[dict[str, Any]] = []
        self.error = ""
        self.lines: list[str] = []

    def as_json(self) -> dict[str, Any]:
        """Return the report as ``--json`` shows it."""
        return {name: getattr(self, name) for name in ("client", "changed", "files", "error")}


def setup(invocation: Invocation) -> int:
    """Connect or disconnect the named client or all in use; return 78 if one failed."""
    options, screen = invocation.options, invocation.screen
    rows = table(_machine_facts(invocation))
    named = [
        _with_settings_file(row, options.settings) for row in rows if row.name == options.client
    ]
    if options.all and not _may_remove_all(invocation):
        screen.note("nothing was removed")
        return 1
    extras = _extras(invocation, named)
    if named and named[0].snippet and not (options.remove and named[0].parts):
        return _print_snippet(invocation, named[0])
    if options.status:
        return _print_status(invocation, named or clients(invocation))
    removes = _removes_all(invocation)
    chosen = named or _choose(invocation, rows)
    chosen = [row for row in chosen if all(can_have_extra(row, extra) for extra in extras)]
    if options.remove and extras:
        chosen = [row for row in chosen if is_connected(row)]
    if not removes:
        extras |= _measured_wait(invocation, chosen)
    reports = [_set_up_client(invocation, client, extras) for client in chosen]
    changed = [row for row, report in zip(chosen, reports, strict=True) if report.changed]
    if removes and not _is_rehearsal(invocation):
        _remove_hook_if_unused(invocation, [*rows, *named])
    if changed and not (removes or _is_rehearsal(invocation)):
        _check_chain(invocation, changed)
    if any(report.files and not report.changed for report in reports):
        screen.note("memctl setup --yes connects all that are here; --diff shows the changes")
    lines = [line for report in reports for line in report.lines]
    result: dict[str, Any] = {"clients": [report.as_json() for report in reports]}
    if options.all:
        result["removed"] = _remove_rest(invocation)
        word = "would remove" if _is_rehearsal(invocation) else "removed"
        lines += [f"{word} {path}" for path in result["removed"]]
    screen.answer(result, "\n".join(lines))
    _settle_reader(invocation, chosen, changed=bool(changed))
    return 78 if any(report.error for report in reports) else 0


def clients(invocation: Invocation) -> tuple[ClientRow, ...]:
    """Return the clients that memd sets up, with their files for this user."""
    return tuple(row for row in table(_machine_facts(invocation)) if not row.snippet)


def check(invocation: Invocation) -> list[dict[str, str]]:
    """Return the rows of ``doctor`` about the clients in use."""
    places, environ = invocation.places, invocation.environ
    rows: list[dict[str, str]] = []
    for client in clients(invocation):
        rows += client_checks(client, places, environ)
    no_client = {"name": "clients", "state": "off", "detail": "none is here"}
    return rows or [{**no_client, "remedy": "memctl setup"}]


def _choose(invocation: Invocation, rows: Sequence[ClientRow]) -> list[ClientRow]:
    """Return the clients that are meant where none is named; say so if there is none."""
    if invocation.options.remove:
        for row in rows:
            if row.snippet and not row.parts and _names_memctl(row.snippet[1]):
                sentence = f"{row.snippet[1]} names memctl: memctl setup {row.name} --remove"
                invocation.screen.note(f"{row.title}: {sentence}")
        chosen = [row for row in rows if leaves_traces(row)]
        if not chosen:
            invocation.screen.note("no client is set up")
        return chosen
    known = [row for row in rows if not row.snippet]
    chosen = [row for row in known if row.is_in_use(invocation.environ)]
    if not chosen:
        programs = ", ".join(row.program for row in known if row.program)
        names = ", ".join(row.name for row in rows)
        invocation.screen.note(
            f"none of {programs} was found on PATH; memctl setup CLIENT takes one of {names}"
        )
    return chosen


def _extras(invocation: Invocation, named: Sequence[ClientRow]) -> dict[str, int]:
    """Return the extras that are switched on, or with ``--remove`` off.

    Raise Invalid if a named client cannot have one of them.
    """
    options = invocation.options
    extras = {extra: not options.remove for extra in (MESSAGES, RULES) if getattr(options, extra)}
    for extra in extras:
        for client in named:
            if not can_have_extra(client, extra):
                sentence = _EXTRA_REFUSED[extra].format(client.title)
                raise Invalid(sentence, hint=_EXTRA_HINTS[extra])
    return dict(extras)


def _removes_all(invocation: Invocation) -> bool:
    """Return whether all of memd is removed, and not only ``--messages`` or ``--rules``."""
    options = invocation.options
    return bool(options.remove and not (options.messages or options.rules))


def _is_rehearsal(invocation: Invocation) -> bool:
    """Return whether changes are only shown."""
    return bool(invocation.options.dry_run or invocation.options.diff)


def _settle_reader(invocation: Invocation, chosen: Sequence[ClientRow], *, changed: bool) -> None:
    """Store the answer of ``--reader``, or ask the question where hooks tell of sessions' ends."""
    from memd.cli.commands import reader  # noqa: PLC0415 - doctor and --status do without

    options = invocation.options
    if options.reader:
        reader.answer(invocation)
    elif not (options.remove or _is_rehearsal(invocation)) and any(
        row.has_hooks and is_connected(row, by_hooks=True) for row in chosen
    ):
        reader.ask(invocation, changed=changed)


def _machine_facts(invocation: Invocation) -> MachineFacts:
    """Return the facts that decide what is written into the files of clients."""
    home = invocation.surroundings.home
    hook = hook_file.hook_path(invocation.places)
    context = service_unit.settings_table(invocation.places.config, "context") or {}
    spills = context.get("hook_spill") is True
    agents = service_unit.settings_table(invocation.places.config, "agents") or {}
    memctl, subagents = _memctl_path(home), bool(agents.get("memory"))
    return MachineFacts(invocation.environ, home, invocation.cwd, hook, memctl, spills, subagents)


def _print_snippet(invocation: Invocation, client: ClientRow) -> int:
    """Print what a person adds to, or takes out of, a file that memd does not write."""
    options, screen = invocation.options, invocation.screen
    text, path = client.snippet or ("", "")
    path = options.settings or path
    verb = "take out of" if options.remove else "add to"
    screen.note(f"{client.title}: memd does not write its file; {verb} {path}:")
    screen.answer({"client": client.name, "path": path, "text": text}, text)
    return 0


def _names_memctl(path: str) -> bool:
    """Return whether a file names memctl: an older memd, or the person, wrote it there."""
    with suppress(OSError), open(path, "rb") as file:
        return b"memctl" in file.read()
    return False


def _set_up_client(
    invocation: Invocation, client: ClientRow, extras: dict[str, int]
) -> SetupReport:
    """Plan one client's set-up or removal, carry it out if wanted, and return the report."""
    options, report = invocation.options, SetupReport(client.name)
    try:
        removes = _removes_all(invocation)
        plan = edits(client, extras, remove=removes)
        needs_hook = not removes and client.has_hooks
        # A plugin does without the set-up, but it asks before no tool.
        plugin_sentence = "" if options.rules else enabled_plugin(client)
        if not removes and state(client) == ABSENT and plugin_sentence:
            report.lines.append(f"{client.title}: {plugin_sentence}, nothing else is needed")
        elif plan or (needs_hook and not hook_file.is_current(invocation.places)):
            _carry_out(invocation, client, plan, report)
        else:
            words = "nothing of memd is there" if removes else "already set up"
            report.lines.append(f"{client.title}: {words}")
        if not _is_rehearsal(invocation) and (report.changed or not plan):
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


def _carry_out(
    invocation: Invocation, client: ClientRow, plan: tuple[ClientEdit, ...], report: SetupReport
) -> None:
    """Apply a plan and report it; only report in a rehearsal or if the person says no."""
    options, screen, removes = invocation.options, invocation.screen, _removes_all(invocation)
    report.files = [{"path": edit.part.path, "diff": edit.diff} for edit in plan]
    if _is_rehearsal(invocation):
        report.changed = True
        report.lines += _preview(invocation, client, plan)
        return
    if not (options.client or options.yes or removes):  # the person did not ask for this client
        for line in _preview(invocation, client, plan) if can_ask(invocation) else ():
            screen.line(line)
        if not person_agrees(invocation, f"set up {client.title}?"):
            report.lines.append(f"{client.title}: not set up; memctl setup {client.name} does it")
            return
    report.changed = True
    if client.has_hooks and not removes:
        hook_file.write(invocation.places)
    words = "took memd out of" if removes else "wrote"
    for edit, file in zip(plan, report.files, strict=True):
        file["backup"] = edit.apply()
        report.lines.append(f"{client.title}: {words} {edit.part.path}")
        if file["backup"]:
            screen.note(f"as it was before: {file['backup']}")
    if not plan:
        report.lines.append(f"{client.title}: wrote its hook anew")
    note = client.keeps if removes else client.next_step
    if note:
        screen.note(f"{client.title}: {note}")


def _preview(invocation: Invocation, client: ClientRow, plan: tuple[ClientEdit, ...]) -> list[str]:
    """Return what a plan would change, in two lines at most, or whole with ``--diff``."""
    diffs = [edit.diff for edit in plan]
    if invocation.options.diff:
        return [invocation.screen.diff(diff).removesuffix("\n") for diff in diffs]
    if not plan:
        return [f"{client.title}: its hook would be written anew"]
    paths = [edit.part.path for edit in plan]
    more = f" and {len(paths[2:])} more" if paths[2:] else ""
    changed = [
        line for diff in diffs for line in diff.splitlines() if line[:3] not in {"---", "+++"}
    ]
    added, removed = (sum(line[:1] == sign for line in changed) for sign in "+-")
    given = [name for name in (MESSAGES, RULES, "remove") if getattr(invocation.options, name)]
    whole = " ".join(["memctl setup", client.name, *(f"--{name}" for name in given), "--diff"])
    return [
        f"{client.title}: would change {', '.join(paths[:2])}{more}",
        f"  {added} line{'s' * (added != 1)} more, {removed} less; the whole change: {whole}",
    ]


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


def _measured_wait(invocation: Invocation, chosen: Sequence[ClientRow]) -> dict[str, int]:
    """Return how long prompts may wait for the model, by its measured speed, as an extra.

    It is none in a rehearsal, without hooks or a model, or if the measuring failed.
    """
    screen = invocation.screen
    if _is_rehearsal(invocation) or not any(client.has_hooks for client in chosen):
        return {}
    try:
        if service_unit.provider(invocation.places.config) in {"", "command"}:
            return {}  # no model chooses memories
        began = time.monotonic()
        answer = invocation.call("prefetch", cwd=invocation.cwd, **_MEASURED)
        took = time.monotonic() - began
    except MemdError as error:
        screen.note(f"the model was not measured: {error}")
        return {}
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
    return {WAIT: wait}


def _print_status(invocation: Invocation, chosen: Sequence[ClientRow]) -> int:
    """Print how each client is set up; return 1 unless all named or used ones are, and work."""
    rows, result, complete = [], [], True
    for client in chosen:
        is_in_use = client.is_in_use(invocation.environ)
        try:
            set_up = state(client)
        except MemdError as error:
            set_up = "failed"
            invocation.screen.note(str(error))
        if is_in_use or invocation.options.client:
            complete = complete and set_up == INSTALLED
        remarks: list[str] = []
        if set_up not in {"failed", ABSENT}:
            remarks += [f"with {extra}" for extra in (MESSAGES, RULES) if has_extra(client, extra)]
        if set_up != ABSENT:
            checks = client_checks(client, invocation.places, invocation.environ)
            problems = [row["detail"] for row in checks if row["state"] != "ok"]
            remarks = [*problems, *remarks]
            complete = complete and not problems
        remarks += filter(None, [memory_switch(client, invocation.places.config)])
        paths = [part.path for part in client.parts]
        facts = {"here": is_in_use, "state": set_up, "files": paths, "remarks": remarks}
        result.append({"client": client.name, **facts})
        painted = invocation.screen.paint(set_up, _STYLES.get(set_up, "dim"))
        words = "; ".join([*paths[:1], *remarks])
        rows.append((client.name, painted, "here" if is_in_use else "", words))
    invocation.screen.answer({"clients": result}, output.table(rows, invocation.screen.width))
    return 0 if complete else 1


def _may_remove_all(invocation: Invocation) -> bool:
    """Return whether the person agrees to ``--remove --all``. Raise Invalid if nobody can."""
    options = invocation.options
    if not options.remove or options.client or options.messages or options.rules:
        raise Invalid(_ALL_ALONE, hint="memctl setup --remove --all")
    if options.yes or _is_rehearsal(invocation):
        return True
    if not can_ask(invocation):
        raise Invalid(_NOBODY_TO_ASK, hint="memctl setup --remove --all --yes")
    return person_agrees(invocation, _REMOVE_ALL)


def _remove_rest(invocation: Invocation) -> list[str]:
    """Remove the service, the spool and the tokens of teams, and end the daemon; return paths."""
    places, screen = invocation.places, invocation.screen
    rehearses = _is_rehearsal(invocation)
    units = service.take_out(invocation, rehearses=rehearses)
    tokens = sorted(glob(f"{escape(os.path.dirname(places.config))}/team-*.token"))
    spool = [places.spool] if os.path.isdir(places.spool) else []
    if not rehearses:
        try:
            invocation.stop()
        except MemdError as error:
            screen.note(str(error))
        for token in tokens:
            with suppress(FileNotFoundError):
                os.unlink(token)
        for folder in spool:
            shutil.rmtree(folder)
    if tokens:
        screen.note("a team's server takes this device's token until somebody there revokes it")
    screen.note(
        f"your memories stay, with their history in {places.state_dir} and your settings in "
        f"{os.path.dirname(places.config)}"
    )
    return [*units, *spool, *tokens]


def _remove_hook_if_unused(invocation: Invocation, rows: Sequence[ClientRow]) -> None:
    """Delete the hook file, which all clients share, with the last set-up that names it."""
    if not any(row.has_hooks and is_connected(row, by_hooks=True) for row in rows):
        hook_file.remove(invocation.places)


def _with_settings_file(client: ClientRow, path: str | None) -> ClientRow:
    """Return a client with another settings file, the first that it has. Raise Invalid."""
    if not path or (client.snippet and not client.parts):
        return client
    parts = list(client.parts)
    for index, part in enumerate(parts):
        if isinstance(part, SettingsPart):
            parts[index] = SettingsPart(os.path.abspath(path), part.values, part.hooks)
            return client._replace(parts=tuple(parts))
    raise Invalid(_NO_SETTINGS.format(client.title), hint="leave --settings out")


def _memctl_path(home: str) -> str:
    """Return the path of this memctl, by the link in ~/.local/bin, which outlives an upgrade."""
    installed = os.path.join(os.path.dirname(sys.executable), "memctl")
    linked = f"{home}/.local/bin/memctl"
    try:
        return linked if os.path.samefile(linked, installed) else installed
    except OSError:
        return installed
