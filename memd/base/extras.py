"""The command that adds optional packages of memd to the installation that runs."""

import os
import shlex
import sys
from importlib.util import find_spec

_PACKAGE = "memdir-daemon"


def install_command(*extras: str) -> str:
    """Return the shell command that installs these extras beside the running memd.

    It fits the installer: pipx, uv, or pip of this Python.
    """
    package = f"'{_PACKAGE}[{','.join(extras)}]'"
    if os.path.exists(f"{sys.prefix}/pipx_metadata.json"):
        # The folder is named as pipx names the environment, with its suffix if it has one.
        return f"pipx inject {shlex.quote(os.path.basename(sys.prefix))} {package}"
    if os.path.exists(f"{sys.prefix}/uv-receipt.toml"):
        return f"uv tool install {package}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {package}"
    return f"{python} -m pip install {package}"
