"""service install|uninstall|status: memd under the user's supervisor."""

import os
import shlex
import shutil
import sys

from memd.base import places
from memd.base.errors import Refused
from memd.cli import output, service_unit
from memd.cli.invocation import Invocation
from memd.cli.service_unit import Argv, Service
from memd.client.launch import failure_of_command

_NO_PROGRAM = "there is no "
_FAILED = "{} failed: {}"
_SUPERVISOR_SECONDS = 90  # a supervisor waits for the end of the old daemon before it answers
_STYLES = {"installed": "green", "outdated": "yellow", "foreign": "red", "absent": "dim"}


def install(invocation: Invocation) -> int:
    """Write the unit files and start the service; return 1 if the supervisor cannot run it."""
    options, screen = invocation.options, invocation.screen
    service = find(invocation)
    if options.dry_run:
        texts = {path: content.decode() for path, content in service.files.items()}
        shown = "\n".join(f"# {path}\n{text}" for path, text in texts.items())
        screen.answer({"supervisor": service.supervisor, "files": texts}, shown)
        return 0
    problem = "" if options.no_enable else _failure_of(invocation, service.reach_command)
    # Without its program there is no such supervisor, so no files are written for it.
    changed = () if problem.startswith(_NO_PROGRAM) else service_unit.write(service)
    path_variables = (places.SOCKET, places.STATE_DIR, places.CONFIG)
    variables = [name for name in path_variables if invocation.environ.get(name)]
    if variables:
        names = ", ".join(variables)
        screen.note(f"the service does not see {names} of this shell; it uses the defaults")
    lines = [f"wrote {path}" for path in changed] or ["no file was written anew"]
    enables = not problem and not options.no_enable
    if problem:
        lines.append(f"memd does not run as a service: {problem}")
        _suggest_start(invocation, service, problem)
    elif enables:
        _enable(invocation, service, files_changed=bool(changed))
        lines.append("memd runs as a service")
    result = {"supervisor": service.supervisor, "written": list(changed), "started": enables}
    screen.answer(result | {"problem": problem}, "\n".join(lines))
    return 1 if problem else 0


def uninstall(invocation: Invocation) -> None:
    """Stop the service and remove the units that memctl wrote."""
    rehearses = invocation.options.dry_run
    paths = take_out(invocation, rehearses=rehearses)
    word = "would remove" if rehearses else "removed"
    text = "\n".join(f"{word} {path}" for path in paths)
    result = {"supervisor": find(invocation).supervisor, "removed": paths}
    invocation.screen.answer(result, text or "nothing to remove")


def take_out(invocation: Invocation, *, rehearses: bool) -> list[str]:
    """Stop the service, remove the units that memctl wrote and return them, or only return them."""
    service = find(invocation)
    states = service_unit.states(service)
    own_files = [path for path, state in states.items() if state in {"installed", "outdated"}]
    if rehearses or not own_files:
        return own_files
    is_reachable = _failure_of(invocation, service.reach_command) == ""
    if is_reachable:
        for command in service.disable_commands:
            # A service that never ran cannot be stopped; its files are removed anyway.
            _failure_of(invocation, command)
    service_unit.remove(service)
    if is_reachable:
        for command in service.forget_commands:
            _failure_of(invocation, command)
    return own_files


def status(invocation: Invocation) -> int:
    """Print each file's state and whether memd runs; return 1 unless all files are installed."""
    service = find(invocation)
    states = service_unit.states(service)
    active = runs(invocation, service)
    rows = [
        (path, invocation.screen.paint(state, _STYLES[state])) for path, state in states.items()
    ]
    rows.append((service.supervisor, "runs memd" if active else "does not run memd"))
    result = {"supervisor": service.supervisor, "files": states, "active": active}
    invocation.screen.answer(result, output.table(rows))
    return 0 if set(states.values()) == {"installed"} else 1


def check(invocation: Invocation) -> dict[str, str]:
    """Return a check for ``doctor``: whether the service is installed, current and running."""
    service = find(invocation)
    states = set(service_unit.states(service).values())
    state, detail, remedy = "warning", "", "memctl service install"
    if states == {"absent"}:
        state, detail = "off", "memd is no service; clients start it"
    elif states != {"installed"}:
        detail = "the service's files are not this version's"
    elif problem := _failure_of(invocation, service.reach_command):
        detail = f"its files are in place, but {service.supervisor} does not run them: {problem}"
        remedy = "clients start memd all the same; memctl service uninstall removes the files"
    elif _failure_of(invocation, service.active_command):
        detail = f"its files are in place, but {service.supervisor} does not run memd"
    else:
        state, detail, remedy = "ok", f"{service.supervisor} runs memd", ""
    return {"name": "service", "state": state, "detail": detail, "remedy": remedy}


def find(invocation: Invocation, platform: str = sys.platform) -> Service:
    """Return the service for this system's supervisor: launchd on macOS, else systemd."""
    home = invocation.surroundings.home
    if platform == "darwin":
        return service_unit.launchd(sys.executable, home, os.getuid())
    runs_program = service_unit.provider(invocation.places.config) == "command"
    return service_unit.systemd(sys.executable, invocation.environ, home, runs_program=runs_program)


def _suggest_start(invocation: Invocation, service: Service, problem: str) -> None:
    """Print what to do when the supervisor does not answer."""
    screen = invocation.screen
    screen.note("clients start memd by themselves, so nothing is lost")
    if problem.startswith(_NO_PROGRAM):
        words = shlex.join((sys.executable, "-P", "-m", "memd", "serve"))
        screen.note(f"to have it run earlier, let your session start: {words}")
        return
    screen.note("to have it as a service, run in a session of your own (not over sudo or su):")
    for command in service.enable_commands:
        screen.note(f"  {shlex.join(command)}")


def _enable(invocation: Invocation, service: Service, *, files_changed: bool) -> None:
    """Start the service, or restart it if its files changed; first end a daemon outside of it."""
    is_running = runs(invocation, service)
    if not is_running:
        invocation.stop()
    elif not files_changed:
        return  # it runs already, as these files say
    for command in service.reset_commands:  # its failure does not matter
        _failure_of(invocation, command)
    if not is_running:
        commands = service.enable_commands
    elif service.supervisor == "launchd":
        commands = (*service.disable_commands, *service.enable_commands)
    else:
        commands = (*service.enable_commands, service.restart_command)
    for command in commands:
        run_or_fail(invocation, command)


def run_or_fail(invocation: Invocation, command: Argv) -> None:
    """Run a command of the supervisor. Raises Refused."""
    failure = _failure_of(invocation, command)
    if failure:
        raise Refused(_FAILED.format(shlex.join(command), failure))


def runs(invocation: Invocation, service: Service) -> bool:
    """Return whether the supervisor runs memd now."""
    return _failure_of(invocation, service.active_command) == ""


def _failure_of(invocation: Invocation, command: Argv) -> str:
    """Run a command of the supervisor and return why it failed, or "" if it succeeded."""
    environ = invocation.environ
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        return f"{_NO_PROGRAM}{command[0]}"
    return failure_of_command([program, *command[1:]], environ, _SUPERVISOR_SECONDS)
