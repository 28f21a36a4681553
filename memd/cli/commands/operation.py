"""doctor and stop: commands about the daemon itself."""

import os
from typing import Any

from memd.cli.invocation import TAKE_OVER, Invocation
from memd.client.errors import DaemonUnavailableError

_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(invocation: Invocation) -> int:
    """Print each check with its remedy, after the fixes; return non-zero when one failed."""
    # The home directory is no project, so no check of a project is asked for there.
    is_home = os.path.realpath(invocation.cwd) == os.path.realpath(invocation.surroundings.home)
    try:
        cwd = None if is_home else invocation.cwd
        answer = invocation.call("doctor", cwd=cwd)
        if invocation.options.fix and _apply_fixes(invocation, answer["checks"]):
            answer = invocation.call("doctor", cwd=cwd)
        checks, failure_status = list(answer["checks"]), 1
        checks += _version_checks(invocation)
    except DaemonUnavailableError as error:  # the checks that memctl makes itself still help
        failure_status = error.exit_status
        checks = [{"name": "daemon", "state": "failed", "detail": str(error), "remedy": error.hint}]
    checks += _local_checks(invocation)
    ok = all(check["state"] != "failed" for check in checks)
    lines = []
    for check in checks:
        state = invocation.screen.paint(f"{check['state']:<8}", _STYLES.get(check["state"], "dim"))
        lines.append(f"{state}{check['name']}: {check['detail']}")
        if check["remedy"]:
            lines.append(f"        → {check['remedy']}")
    invocation.screen.answer({"ok": ok, "checks": checks}, "\n".join(lines))
    return 0 if ok else failure_status


def _apply_fixes(invocation: Invocation, checks: list[dict[str, Any]]) -> bool:
    """Make the calls that apply remedies, and say how each is undone; return if there were any."""
    fixes = [(check["name"], check["fix"]) for check in checks if check.get("fix")]
    for name, fix in fixes:
        answer = invocation.call(fix["method"], **fix["params"])
        undo = f" (undo: memctl undo {answer['change']})" if answer.get("change") else ""
        invocation.screen.note(f"{name}: mended{undo}")
    return bool(fixes)


def stop(invocation: Invocation) -> None:
    """Ask the daemon to end, if there is one, and wait until it hangs up."""
    answer = invocation.stop()
    if answer is None:
        invocation.screen.note("no memd is running")
        invocation.screen.answer({"stopping": False}, "")
    else:
        invocation.screen.answer(answer, "stopped")


def _local_checks(invocation: Invocation) -> list[dict[str, str]]:
    """Return the checks that only memctl can make: the clients' hooks and the service."""
    from memd.cli.commands import service, setup  # noqa: PLC0415 - doctor alone needs both here

    return [*setup.check(invocation), service.check(invocation)]


def _version_checks(invocation: Invocation) -> list[dict[str, str]]:
    """Return a check that warns of a daemon of another version, or no check."""
    versions = invocation.other_version()
    row = {"name": "version", "state": "warning", "detail": versions, "remedy": TAKE_OVER}
    return [row] if versions else []
