"""ui: the page on which a person looks at their memories, served in the foreground."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping

from memd.base.errors import Invalid, Refused
from memd.base.extras import install_command
from memd.cli.invocation import Invocation

_PORTS = 65_536
_NO_PORT = "{} is no port; ports are below {}"
_DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY")


def _page_missing(name: str) -> Refused:
    return Refused(
        f"the page needs {name}, which is not installed",
        exit_status=78,
        hint=install_command("ui"),
        name=name,
    )  # it fits this installation


def ui(invocation: Invocation) -> None:
    """Serve the page until it ends; its address is printed once it can be opened."""
    try:
        # Imported here: they need an optional extra.
        from memd.ui.link import SocketLink  # noqa: PLC0415
        from memd.ui.serving import IDLE_MINUTES, Served, serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise _page_missing(error.name or "") from None
    options = invocation.options
    if (options.port or 0) >= _PORTS:
        raise Invalid(_NO_PORT.format(options.port, _PORTS))
    socket = invocation.client().socket_path
    cwd = invocation.cwd
    invocation.close()  # the page has connections of its own

    def show_address(address: str) -> None:
        """Print the page's address, and open it in a browser unless ``--no-open`` is given."""
        if invocation.screen.as_json:
            invocation.screen.data({"address": address})
        else:
            invocation.screen.line(address)
            invocation.screen.note("it works once, within two minutes; Ctrl-C ends the page")
        if not options.no_open:
            _open_in_browser(address, invocation.surroundings.environ)

    link = SocketLink(socket, dict(invocation.environ))
    idle_minutes = float(options.idle or IDLE_MINUTES)
    page = Served(link, cwd, show_address, options.write, options.port or 0, idle_minutes)
    if not serve(page):
        invocation.screen.note("nobody opened it; memctl ui gives a new address")


def _open_in_browser(address: str, environ: Mapping[str, str]) -> None:
    """Open an address in the person's browser, if one is found; errors are ignored."""
    command = _browser(environ)
    if not command:
        return
    try:
        process = subprocess.Popen(
            [*command, address],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is meant for the page, not for the browser
        )
    except OSError:
        return
    threading.Thread(target=process.wait, daemon=True).start()  # no zombie stays


def _browser(environ: Mapping[str, str]) -> list[str]:
    """Return the command that opens an address, empty without a browser or a display."""
    browsers = environ.get("BROWSER", "")
    if browsers:  # a list with colons; "%s" stands for the address
        first_browser = browsers.partition(":")[0]
        return first_browser.replace("%s", "").split()
    has_display = any(environ.get(name) for name in _DISPLAY_VARIABLES)
    if sys.platform != "darwin" and not has_display:
        return []
    program = "open" if sys.platform == "darwin" else "xdg-open"
    path = shutil.which(program, path=environ.get("PATH", os.defpath))
    return [path] if path else []
