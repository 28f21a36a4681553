"""Which directory's project is meant: the client's first root that is one, else our own."""

import os
import threading
from typing import Any
from urllib.parse import unquote, urlsplit


class WorkingDirectory:
    """The directory that calls are about. Where it is ``fixed`` clients' roots do not count.

    It is ``vague`` where it is the ``home`` or above: clients of the desktop start there.
    """

    def __init__(self, path: str, home: str, *, fixed: bool) -> None:
        self.path = path
        self.fixed = fixed
        self.vague = not fixed and f"{home}/".startswith(f"{path.rstrip('/')}/")
        self.known = threading.Event()
        self.known.set()

    def request(self) -> dict[str, Any]:
        """Return a request for the client's roots; ``known`` is set when it is answered."""
        self.known.clear()
        return {"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}

    def adopt(self, result: Any) -> None:
        """Take over the first root that is a directory here."""
        self.known.set()
        self.vague = False
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
