"""doctor: self-checks, each with a remedy where it is not ok."""

import os
import sys
from collections.abc import Sequence

import msgspec
from anyio import to_thread

from memd.base import limits
from memd.base.errors import MemdError, Off
from memd.base.names import INDEX, printable
from memd.base.settings import Settings
from memd.base.text import decode, sha256
from memd.base.values import Project, Snapshot
from memd.daemon.core import Daemon
from memd.instructions.service import InstructionRequest
from memd.jobs.service import Jobs
from memd.methods.method import Result, method
from memd.model.breaker import PROMPTS
from memd.model.configured import COMMAND, NOT_NAMED, OFF
from memd.projects.agents import missing_ignore_line
from memd.projects.projects import Projects
from memd.rpc.call import Call
from memd.state.jobs import Job, JobState
from memd.store.store import Store

CLAUDE_CODE_CHECK = "Claude Code"  # of what holds where the person switched its memory off
_FULL_SHARE = 0.9  # of the bytes that stored results may use; a warning above it
_DAY = 86_400
_NEWEST_JOBS = 100  # that are looked at for extractions that fail
_FAILURES = 2  # of a session in a row, at least, for a warning
_NAMED_LINES = 5  # of an index that are named
_SHOWN_FAULTS = 3  # of instruction files; the others are only counted
_FAULT_CHARACTERS = 400  # of each
_MORE_TIME = "memctl setup claude-code measures it and gives prompts more time"
_NOT_RUN = "it is there; looking costs no run of your plan"


class Fix(msgspec.Struct):
    """A call that applies a remedy, as one change that undo takes back, or without a change."""

    method: str
    params: dict[str, str]


class Check(msgspec.Struct):
    """One self-check: ``state`` is ok, warning or failed; ``remedy`` says what helps.

    ``fix`` is the call that applies the remedy where that can be undone.
    """

    name: str
    state: str
    detail: str
    remedy: str = ""
    fix: Fix | None = None


class Diagnosis(Result):
    """All self-checks; ``ok`` when none failed."""

    ok: bool
    checks: list[Check]


@method("doctor", "read")
async def doctor(daemon: Daemon, call: Call, *, cwd: str | None = None) -> Diagnosis:
    """Self-checks, each with a remedy.

    With ``cwd`` that project is checked too.
    """
    settings, problems = await daemon.projects.settings(None)
    checks = [
        Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}"),
        await _model_check(daemon, settings),
        await _notes_check(daemon, call),
        *await quick_checks(daemon, call, settings, problems),
    ]
    if cwd is not None:
        checks += await _project_checks(daemon, call, cwd, problems)
    return Diagnosis(ok=all(check.state != "failed" for check in checks), checks=checks)


async def quick_checks(
    daemon: Daemon, call: Call, settings: Settings, problems: tuple[str, ...]
) -> list[Check]:
    """Return the checks that ask no server and read no project; they take milliseconds.

    ``problems`` are sentences about faults in the settings.
    """
    noticed = "what others do to memories is noticed at once"
    is_off = Check(
        "memory", "warning", "enabled is false in the settings", "memctl config shows it"
    )
    failing = Check(
        "services",
        "failed",
        "; ".join(daemon.failing.values()),
        "memctl logs shows why; memd starts it again by itself",
    )
    return [
        *([] if settings.enabled else [is_off]),
        *([failing] if daemon.failing else []),
        *await to_thread.run_sync(_claude_code_checks, daemon.projects, call),
        await state_check(daemon.jobs, daemon.places.database),
        await to_thread.run_sync(_socket_check, daemon.places.socket),
        _problems_check("settings", daemon.places.config, problems),
        await _stored_check(daemon),
        _problems_check("recovery", "nothing was left half done", tuple(daemon.notes)),
        _problems_check("watching", noticed, daemon.store.watch_problems()),
        await _memberships_check(daemon),
        await _extraction_check(daemon),
    ]


def _claude_code_checks(projects: Projects, call: Call) -> list[Check]:
    """Return a check of what holds in Claude Code if the person switched its memory off. Blocks."""
    path, is_silent = projects.claude_code_switch(call.caller.environment)
    if not path:
        return []
    detail = f"you switched its memory off (autoMemoryEnabled is false in {path})"
    if is_silent:
        remedy = "claude_code.bring_memory = true in memd.toml has memd bring memory there"
        return [Check(CLAUDE_CODE_CHECK, "warning", f"{detail}, so memd is silent there", remedy)]
    detail += "; memd brings memory there, since claude_code.bring_memory is set"
    return [Check(CLAUDE_CODE_CHECK, "ok", detail)]


async def state_check(jobs: Jobs, path: str) -> Check:
    """Return a check of whether the state file can be read."""
    try:
        await to_thread.run_sync(jobs.list, "", 1)
    except MemdError as error:
        return Check("state", "failed", error.sentence, error.hint)
    return Check("state", "ok", path)


async def _extraction_check(daemon: Daemon) -> Check:
    """Return a check of whether extractions of a session fail again and again, within a day."""
    name, since = "extraction", daemon.clock.now() - _DAY
    try:
        jobs = await to_thread.run_sync(daemon.jobs.list, "", _NEWEST_JOBS)
    except MemdError as error:
        return Check(name, "failed", error.sentence, error.hint)
    failures: dict[tuple[str, str], list[Job]] = {}  # those after the last success, newest first
    worked: set[tuple[str, str]] = set()
    for job in jobs:
        session = (job.directory, job.session)
        if job.kind != "extract" or session in worked or (job.ended or 0) < since:
            continue
        if job.state is JobState.COMPLETED:
            worked.add(session)
        elif job.state is JobState.FAILED:
            failures.setdefault(session, []).append(job)
    failing = [failed for failed in failures.values() if len(failed) >= _FAILURES]
    if not failing:
        return Check(name, "ok", "no session's conversation fails to be read again and again")
    newest = failing[0][0]
    more = f" ({len(failing) - 1} more sessions)" if len(failing) > 1 else ""
    message = (newest.error or {}).get("message", "")
    detail = f"the last {len(failing[0])} of session {printable(newest.session)} failed: {message}"
    remedy = f"memctl job show {newest.job} says more; nothing new is learned until one works"
    return Check(name, "warning", f"{detail}{more}", remedy)


def _socket_check(path: str) -> Check:
    """Return a check of whether only this user can open the socket and its directory. Blocks."""
    try:
        mode = os.stat(path).st_mode & 0o777
        folder = os.stat(os.path.dirname(path)).st_mode & 0o777
    except OSError as error:
        remedy = "restart memd; something removed its socket"
        return Check("socket", "failed", f"{path}: {error.strerror}", remedy)
    detail = f"{path} has mode {mode:04o} in a directory of mode {folder:04o}"
    if mode & 0o177 or folder & 0o077:  # more than 0600 for the socket, 0700 for its directory
        return Check("socket", "failed", detail, "chmod 700 the directory and restart memd")
    return Check("socket", "ok", detail)


def _problems_check(name: str, fine: str, problems: Sequence[str]) -> Check:
    """Return a check that is ok, with the detail ``fine``, where there are no problems."""
    if not problems:
        return Check(name, "ok", fine)
    remedy = "mend what the sentence names, if anything; no restart is needed"
    return Check(name, "warning", "; ".join(problems), remedy)


async def _project_checks(
    daemon: Daemon, call: Call, cwd: str, known_problems: tuple[str, ...]
) -> list[Check]:
    """Return the checks of a project, or a failed one where it or its memories cannot be read.

    ``known_problems`` are faults in the settings that were reported already.
    """
    try:
        project = await to_thread.run_sync(daemon.callers.place, call, cwd)
        snapshot = await to_thread.run_sync(daemon.store.reading.snapshot, project.memory_dir)
    except MemdError as error:
        return [Check("project", "failed", error.sentence, error.hint)]
    count = len(snapshot.headers)
    memories = "1 memory" if count == 1 else f"{count} memories"
    detail = f"{memories} in {project.memory_dir} ({project.source})"
    switch = "the sentence names the switch; a repository's own goes for everybody there"
    environment = call.caller.environment
    find_problems = daemon.projects.switch_problems
    switches = await to_thread.run_sync(find_problems, cwd, environment)
    _, problems = await daemon.projects.settings(project)
    own_problems = [problem for problem in problems if problem not in known_problems]
    project_check = Check("project", "ok", detail)
    if not project.enabled:
        project_check = Check("project", "warning", f"memory is off: {project.reason}", switch)
    return [
        project_check,
        _problems_check("project settings", "they can be used", own_problems),
        _problems_check("Claude Code's switches", "they can be read", switches),
        _problems_check("paths", project.memory_dir, project.problems),
        _client_check(project),
        await to_thread.run_sync(_files_check, project.memory_dir, snapshot),
        await to_thread.run_sync(_index_check, daemon.store, project),
        await _history_check(daemon.store, cwd, project),
        await _instructions_check(daemon, call, cwd),
        await _rules_check(daemon, project.memory_dir),
        *await _team_checks(daemon, project.memory_dir),
        *await to_thread.run_sync(_agent_checks, project.root),
    ]


async def _history_check(store: Store, cwd: str, project: Project) -> Check:
    """Return a check of whether a moved directory left its history behind."""
    former = await to_thread.run_sync(store.former_history, project.memory_dir)
    if former is None:
        return Check("history", "ok", "no other path has a history of these memories")
    detail = f"{former.changes} changes of these memories are kept for {former.directory}"
    remedy = "memctl doctor --fix takes them over: the directory was moved"
    return Check("history", "warning", detail, remedy, Fix("memory.take_over", {"cwd": cwd}))


def _files_check(directory: str, snapshot: Snapshot) -> Check:
    """Return a check of whether memories can be read and written. Blocks."""
    problems = [*snapshot.problems]
    for header in snapshot.headers:
        if header.damaged:
            problems.append(f"{header.path} has broken frontmatter")
        if header.size > limits.READ_BYTES:
            problems.append(f"{header.path} is too large to be loaded: {header.size:,} bytes")
    if os.path.isdir(directory) and not os.access(directory, os.W_OK | os.X_OK):
        problems.append(f"memd may not write in {directory}")
    return _problems_check("files", "every memory can be read", problems)


def _index_check(store: Store, project: Project) -> Check:
    """Return a check of whether each line of the index leads to something. Blocks."""
    try:
        with store.reading.tree(project.memory_dir) as tree:
            dangling, content = tree.dangling(), tree.index() or b""
    except MemdError:  # of a directory that does not exist or cannot be read, named by others
        dangling, content = (), b""
    if not dangling:
        return Check("index", "ok", "every line of MEMORY.md leads to a file")
    lines = content.splitlines(keepends=True)
    named = "; ".join(
        f"{printable(decode(lines[number]).strip())} (line {number + 1})"
        for number in dangling[:_NAMED_LINES]
    )
    more = len(dangling) - _NAMED_LINES
    rest = f"; and {more} more" if more > 0 else ""
    detail = f"lines of {INDEX} in {project.memory_dir} lead to no file: {named}{rest}"
    gone = frozenset(dangling)
    remaining = b"".join(line for number, line in enumerate(lines) if number not in gone)
    try:
        params = {"cwd": project.cwd, "path": INDEX, "content": remaining.decode()}
    except UnicodeDecodeError:
        return Check("index", "warning", detail, "take these lines out with an editor")
    fix = Fix("memory.write", {**params, "base_hash": sha256(content)}) if project.enabled else None
    remedy = "memctl doctor --fix takes these lines out, or the next dream; undo brings them back"
    return Check("index", "warning", detail, remedy, fix)


async def _instructions_check(daemon: Daemon, call: Call, cwd: str) -> Check:
    """Return a check of which instruction files are too long, broken or include a missing one."""
    name = "instruction files"
    try:
        project, *_ = await to_thread.run_sync(daemon.callers.where, call, cwd)
        request = InstructionRequest(project, call.caller.environment)
        listed = await daemon.instructions.list(request)
    except MemdError as error:
        return Check(name, "warning", error.sentence, error.hint)
    if not listed.problems:
        loaded = [file.chars for file in listed.files if file.loaded]
        return Check(name, "ok", f"{len(loaded)} with {sum(loaded):,} characters")
    words = [printable(problem, _FAULT_CHARACTERS) for problem in listed.problems]
    more = f"; and {len(words) - _SHOWN_FAULTS} more" if len(words) > _SHOWN_FAULTS else ""
    detail = "; ".join(words[:_SHOWN_FAULTS]) + more
    return Check(name, "warning", detail, "memctl instructions names them all")


async def _rules_check(daemon: Daemon, directory: str) -> Check:
    """Return a check of whether the rules that a person switched on still hold."""
    try:
        listed = await to_thread.run_sync(daemon.rules.list_in, directory)
    except MemdError as error:
        return Check("rules", "warning", error.sentence, error.hint)
    states = [rule.state for rule in listed.rules]
    unused_checks = len(listed.candidates)
    detail = f"{states.count('on')} hold"
    if unused_checks:
        detail += f"; {unused_checks} memories have a line check: that is not switched on"
    if {"changed", "gone"}.isdisjoint(states):
        return Check("rules", "ok", detail)
    detail += f"; off: {states.count('changed')} whose memory says something else now"
    detail += f", {states.count('gone')} whose memory is gone"
    return Check("rules", "warning", detail, "memctl rule list names them")


def _client_check(project: Project) -> Check:
    """Return a check of whether Claude Code and memd use the same memory directory."""
    name, theirs, ours = "client memory", project.client_dir, project.memory_dir
    if not theirs:
        return Check(name, "ok", "Claude Code loads no memory here by itself")
    if theirs == ours:
        return Check(name, "ok", "Claude Code loads the same directory by itself")
    detail = f"Claude Code keeps its memory in {theirs}, memd in {ours} ({project.source})"
    remedy = "set autoMemoryDirectory of Claude Code and memd's directory alike, or switch one off"
    return Check(name, "warning", detail, remedy)


def _agent_checks(root: str) -> list[Check]:
    """Return a warning if no ignore file names a project's local memories of agents. Blocks."""
    missing_line = missing_ignore_line(root)
    if not missing_line:
        return []
    detail = f"{root}{missing_line} is for this machine alone, and .gitignore does not name it"
    remedy = f"add the line {missing_line} to {root}/.gitignore"
    return [Check("sub-agents' local memory", "warning", detail, remedy)]


async def _memberships_check(daemon: Daemon) -> Check:
    """Return a check of whether the files that record team memberships and tokens can be used."""
    problems = await to_thread.run_sync(daemon.team.memberships.problems)
    return _problems_check("teams", daemon.team.memberships.folder, problems)


async def _team_checks(daemon: Daemon, directory: str) -> list[Check]:
    """Return a check of how far a project is in step with its team, or [] if it joined none."""
    name = "team"
    try:
        team = await daemon.team.status_of(directory)
    except Off:
        return []
    except MemdError as error:
        return [Check(name, "failed", error.sentence, error.hint)]
    waiting = len(team.conflicts) + len(team.held)
    detail = f"{team.remote} on {team.server}: {team.state}"
    reason = team.waits or team.paused
    if reason:
        detail += f", {reason}"
    if waiting:
        detail += f", {waiting} files wait for you"
    if reason or waiting:
        return [Check(name, "warning", detail, "memctl team status says more")]
    return [Check(name, "ok", detail)]


async def _notes_check(daemon: Daemon, call: Call) -> Check:
    """Return a check of whether the person's own template and prompt of notes can be used."""
    problems = await daemon.session_notes.problems(call.caller.environment)
    return _problems_check("notes", "template and prompt of session notes can be used", problems)


async def _stored_check(daemon: Daemon) -> Check:
    """Return a check of how much disk the stored tool results use; a warning above 90 %."""
    name = "stored results"
    try:
        totals = await daemon.contexts.totals()
    except MemdError as error:
        return Check(name, "failed", error.sentence, error.hint)
    detail = f"{totals.results} with {totals.bytes:,} of at most {limits.STORED_BYTES:,} bytes"
    if totals.bytes <= _FULL_SHARE * limits.STORED_BYTES:
        return Check(name, "ok", detail)
    remedy = "beyond it the session that stored longest ago loses its results"
    return Check(name, "warning", detail, remedy)


async def _model_check(daemon: Daemon, settings: Settings) -> Check:
    """Return a check of whether the configured model can be asked; it costs no paid request.

    It warns as well where prompts do without the model for a while, and where a file is ignored.
    """
    models = daemon.models
    error = await models.reach(settings)
    problem = models.problem(settings)
    if models.for_(settings) is None:
        # A model is optional: only one that is configured and cannot be used is a warning.
        detail, is_bad = f"none ({problem})", problem not in (NOT_NAMED, OFF)
        remedy = "mend what the sentence names, or set model.enabled = false"
    else:
        # An error of this moment comes first, then the problem that the last request had.
        fine = _NOT_RUN if settings.model.provider == COMMAND else "it answers"
        words = error.sentence if error else problem or fine
        detail = f"{models.host(settings)}, by {models.endpoint_source(settings)}: {words}"
        breakers = (await daemon.jobs.state()).breakers
        failed = next((each.why for each in breakers if each.work == PROMPTS), "")
        is_bad = bool(problem or error or failed)
        remedy = error.hint if error else "look at the model's name in [model] of memd.toml"
        if failed and not (problem or error):
            detail, remedy = f"{detail}, but prompts do without it: {failed}", _MORE_TIME
    if models.ignored:
        detail, remedy = f"{detail}; {models.ignored}", "do that, or remove the file"
    if is_bad or models.ignored:
        return Check("model", "warning", detail, remedy)
    return Check("model", "ok", detail)
