"""Find the working directory of calls: the client's first root that is a directory, or ours."""

import os
import threading
from typing import Any
from urllib.parse import unquote, urlsplit


class WorkingDirectory:
    """The working directory of calls. With ``fixed`` the client's roots are ignored.

    It is ``vague`` while it is ``home`` or a directory above it, where desktop clients start.
    ``is_known`` is not set while the client's answer with its roots is awaited.
    """

    def __init__(self, path: str, home: str, *, fixed: bool) -> None:
        self.path = path
        self.fixed = fixed
        is_home_or_above = f"{home}/".startswith(f"{path.rstrip('/')}/")
        self.vague = is_home_or_above and not fixed
        self.is_known = threading.Event()
        self.is_known.set()

    def roots_request(self) -> dict[str, Any]:
        """Return a request for the client's roots; ``is_known`` is set when it is answered."""
        self.is_known.clear()
        return {"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}

    def adopt(self, result: Any) -> None:
        """Use the first root in a client's answer that is a directory on this machine, if any."""
        self.is_known.set()
        self.vague = False  # even without a usable root the client is not asked again
        roots = result.get("roots") if isinstance(result, dict) else None
        for root in roots if isinstance(roots, list) else ():
            uri = root.get("uri") if isinstance(root, dict) else None
            path = _path(uri) if isinstance(uri, str) else ""
            if path and os.path.isdir(path):
                self.path = path
                return


def _path(uri: str) -> str:
    """Return the path of a file URI, "" for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path)
    return path if parts.scheme == "file" and "\0" not in path else ""
