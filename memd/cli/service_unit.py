"""The unit files that run memd under systemd or launchd, and the commands for these supervisors.

The templates in ``units/`` are complete units; the folders ``systemd/`` and ``launchd/`` of the
repository hold the same bytes for packagers. Installing fills in the path of the Python that runs
memctl, so that the service is the version that the user has.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from memd.base.errors import Refused

LABEL = "dev.memd.memd"
UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "units")
MARK = "Written by memctl service install; memctl service uninstall removes it."

# The unit's limits that a model's program, which inherits them, would exceed.
_LIMIT_LINES = r"^(MemoryDenyWriteExecute|MemoryHigh|MemoryMax|TasksMax)=.*\n"
# What stands in place of these lines; a limit that is not here is removed.
_WIDER_LIMITS = {
    "MemoryHigh": "MemoryHigh=2G\n",
    "MemoryMax": "MemoryMax=4G\n",
    "TasksMax": "TasksMax=512\n",
}

Argv = tuple[str, ...]


class Service(NamedTuple):
    """The unit files of one supervisor by path, and the commands to control it.

    ``reach_command`` succeeds if the supervisor answers, ``active_command`` if it runs memd now.
    The commands of a list are run in order. ``restart_command`` applies new files,
    ``reset_commands`` clear recorded failures and may fail, ``forget_commands`` are run after the
    files were removed.
    """

    supervisor: str
    files: Mapping[str, bytes]
    reach_command: Argv
    active_command: Argv
    enable_commands: tuple[Argv, ...]
    restart_command: Argv
    disable_commands: tuple[Argv, ...]
    reset_commands: tuple[Argv, ...] = ()
    forget_commands: tuple[Argv, ...] = ()


def provider(config: str) -> str:
    """Return the model's provider in the user's settings, or "" if they have no [model]."""
    model = settings_table(config, "model")
    return "" if model is None else str(model.get("provider", "messages"))


def settings_table(config: str, name: str) -> Mapping[str, Any] | None:
    """Return a table of the user's settings file, or ``None`` if there is none to be read."""
    import tomllib  # noqa: PLC0415 - not every run needs it

    try:
        with open(config, "rb") as opened:
            table = tomllib.load(opened).get(name)
    except (OSError, ValueError):
        return None
    return table if isinstance(table, dict) else None


def systemd(
    python: str, environ: Mapping[str, str], home: str, *, runs_program: bool = False
) -> Service:
    """Return systemd's user units; ``runs_program`` widens the limits for a model's program."""
    config = environ.get("XDG_CONFIG_HOME", "")
    if not config.startswith("/"):  # XDG says to ignore relative paths
        config = f"{home}/.config"
    folder = f"{config}/systemd/user"
    service = _template("memd.service").decode()
    command = f"ExecStart={_quote(python)} -P -m memd serve"
    service = re.sub(r"^ExecStart=.*$", lambda _: command, service, flags=re.MULTILINE)
    if runs_program:  # the program inherits the unit's limits, and most compile code as they run
        service = re.sub(
            _LIMIT_LINES, lambda line: _WIDER_LIMITS.get(line[1], ""), service, flags=re.MULTILINE
        )
    mark = f"# {MARK}\n".encode()
    user = ("systemctl", "--user")
    units = ("memd.socket", "memd.service")
    return Service(
        supervisor="systemd",
        files={
            f"{folder}/memd.socket": mark + _template("memd.socket"),
            f"{folder}/memd.service": mark + service.encode(),
        },
        reach_command=(*user, "show-environment"),
        active_command=(*user, "is-active", "--quiet", "memd.service"),
        enable_commands=((*user, "daemon-reload"), (*user, "enable", "--now", *units)),
        restart_command=(*user, "restart", "memd.service"),
        disable_commands=((*user, "disable", "--now", *units),),
        reset_commands=((*user, "reset-failed", *units),),
        forget_commands=((*user, "daemon-reload"),),
    )


def launchd(python: str, home: str, uid: int) -> Service:
    """Return the launch agent of macOS."""
    path = f"{home}/Library/LaunchAgents/{LABEL}.plist"
    import plistlib  # noqa: PLC0415 - not every run needs it

    agent = plistlib.loads(_template(f"{LABEL}.plist"))
    # -P: a file in the working directory must not replace a module of memd.
    agent["ProgramArguments"] = [python, "-P", "-m", "memd", "serve"]
    agent["StandardErrorPath"] = f"{home}/Library/Logs/memd.log"
    text = plistlib.dumps(agent, sort_keys=False)
    # plistlib writes no comments, so the mark is put into its text.
    text = text.replace(b"<plist ", f"<!-- {MARK} -->\n<plist ".encode(), 1)
    domain, service_name = f"gui/{uid}", f"gui/{uid}/{LABEL}"
    return Service(
        supervisor="launchd",
        files={path: text},
        reach_command=("launchctl", "print", domain),
        active_command=("launchctl", "print", service_name),
        enable_commands=(("launchctl", "bootstrap", domain, path),),
        restart_command=("launchctl", "kickstart", "-k", service_name),
        disable_commands=(("launchctl", "bootout", service_name),),
    )


def states(service: Service) -> dict[str, str]:
    """Return for each file whether it is installed, outdated, foreign or absent."""
    state_by_path = {}
    for path, content in service.files.items():
        present = _read(path)
        if present is None:
            state_by_path[path] = "absent"
        elif present == content:
            state_by_path[path] = "installed"
        else:
            state_by_path[path] = "outdated" if MARK.encode() in present else "foreign"
    return state_by_path


def write(service: Service) -> tuple[str, ...]:
    """Put the files in place and return those that changed.

    Raises Refused before anything is written, and OSError.
    """
    current = states(service)
    for path, state in current.items():
        if state == "foreign":
            raise Refused(
                f"{path} was not written by memctl; nothing was changed",
                hint="move the file away first",
                path=path,
            )
    changed = tuple(path for path, state in current.items() if state != "installed")
    for path in changed:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Renamed into place, so that the supervisor never reads half a file.
        draft = f"{path}.memd-{os.getpid()}"
        with open(draft, "wb") as file:
            file.write(service.files[path])
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, path)
    return changed


def remove(service: Service) -> tuple[str, ...]:
    """Remove the files that memctl wrote and return them; raises OSError."""
    removed = tuple(
        path for path, state in states(service).items() if state in {"installed", "outdated"}
    )
    for path in removed:
        os.unlink(path)
    return removed


def _read(path: str) -> bytes | None:
    """Return the bytes of a file, ``None`` if it does not exist."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


def _template(name: str) -> bytes:
    """Return the bytes of a complete unit in ``units/``."""
    with open(os.path.join(UNITS, name), "rb") as file:
        return file.read()


def _quote(path: str) -> str:
    """Return a path quoted as one word of a systemd command, with its specifiers escaped."""
    signs = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n"})
    return f'"{path.translate(signs)}"'
