"""Paths of this user's socket, state and settings, computed from the environment alone.

It has no slow imports, since the command line and the hook's set-up import it at their start.
"""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from memd.base import limits
from memd.base.errors import Refused

SOCKET = "MEMD_SOCKET"
STATE_DIR = "MEMD_STATE_DIR"
CONFIG = "MEMD_CONFIG"
BASE_DIR = "MEMD_BASE_DIR"
SYSTEM_POLICY = "/etc/memd/memd.toml"
# The variables that a client forwards from its environment; no others are read.
FORWARDED = (
    "MEMD_MEMORY_PATH",
    "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
    "CLAUDE_CODE_REMOTE_MEMORY_DIR",
    BASE_DIR,
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "MEMD_DISABLE",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "DISABLE_COMPACT",
    "DISABLE_AUTO_COMPACT",
    "MEMD_CONTEXT_WINDOW",
    "MEMD_EXTRA_GUIDELINES",
    "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES",
)


# The variables that a daemon gets from the client that starts it: user, paths, language and time
# zone. The client's keys and switches are left out, since the daemon serves other clients too.
_INHERITED = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_INHERITED_PREFIXES = ("LC_", "MEMD_", "XDG_")


def socket_path_too_long(path: str, limit: int) -> Refused:
    """Return the error that a socket's path does not fit the kernel's ``sun_path``."""
    size = len(path.encode(errors="surrogateescape"))
    return Refused(
        f"the socket path {path} is {size} bytes long; this system takes {limit}: "
        f"set {SOCKET} to a shorter one",
        kind="server_refused",
        exit_status=78,
        hint=f"set {SOCKET} to a shorter path",
        path=path,
        limit=limit,
    )


class Places(NamedTuple):
    """Absolute paths: the socket, the state directory, the user's settings, the home.

    ``data_dir`` is the user's own, wherever the state directory is.
    """

    home: str
    socket: str
    state_dir: str
    config: str
    data_dir: str = ""

    @property
    def database(self) -> str:
        """The state file."""
        return f"{self.state_dir}/state.db"

    @property
    def lock(self) -> str:
        """The file whose lock the running daemon has; it is never removed."""
        return f"{self.state_dir}/memd.lock"

    @property
    def spool(self) -> str:
        """The folder of events that a hook stored because no daemon answered."""
        return f"{self.state_dir}/spool"

    @property
    def env_file(self) -> str:
        """Variables for the daemon alone, such as a key; beside the settings."""
        return f"{os.path.dirname(self.config)}/env"

    @property
    def log(self) -> str:
        """Where a daemon that was started by a client writes its log."""
        return f"{self.state_dir}/memd.log"


def find(environ: Mapping[str, str], home: str, platform: str = sys.platform) -> Places:
    """Return the places of the user with this environment and home directory.

    Relative values of XDG variables are ignored, as the XDG specification asks.
    Raises Refused where the socket's path does not fit ``sun_path``.
    """
    if platform == "darwin":
        state_dir = data_dir = f"{home}/Library/Application Support/memd"
        config = f"{state_dir}/memd.toml"
        runtime, limit = "", limits.SOCKET_PATH_BYTES_MACOS
    else:
        state_dir = f"{_xdg(environ, 'XDG_STATE_HOME', f'{home}/.local/state')}/memd"
        data_dir = f"{_xdg(environ, 'XDG_DATA_HOME', f'{home}/.local/share')}/memd"
        config = f"{_xdg(environ, 'XDG_CONFIG_HOME', f'{home}/.config')}/memd/memd.toml"
        runtime = _xdg(environ, "XDG_RUNTIME_DIR", "")
        limit = limits.SOCKET_PATH_BYTES_LINUX
    state_dir = environ.get(STATE_DIR) or state_dir
    config = environ.get(CONFIG) or config
    run_dir = f"{runtime}/memd" if runtime else f"{state_dir}/run"
    socket = environ.get(SOCKET) or f"{run_dir}/memd.sock"
    if len(socket.encode(errors="surrogateescape")) > limit:
        raise socket_path_too_long(socket, limit)
    return Places(home=home, socket=socket, state_dir=state_dir, config=config, data_dir=data_dir)


def forwarded(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the recognised variables that are set in a client's environment."""
    return {name: environ[name] for name in FORWARDED if name in environ}


def for_daemon(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a client starts a daemon.

    Variables that a client forwards are left out as well: they are about that client's own session.
    """
    left_out = {*FORWARDED} - {BASE_DIR}
    return {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith(_INHERITED_PREFIXES)) and name not in left_out
    }


def _xdg(environ: Mapping[str, str], name: str, default: str) -> str:
    """Return the absolute path in an XDG variable, else the default."""
    value = environ.get(name, "")
    return value.rstrip("/") if value.startswith("/") else default
