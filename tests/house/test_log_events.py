"""What the daemon's log is about."""

import ast

from memd.base.events import LOG_EVENTS
from tests.house.source import sources

_ROOMS = ("memd/cli/", "memd/ui/", "memd/server/")
_CALLS = {"note", "warning", "_log", "_note", "error"}


def test_each_line_of_the_log_has_a_known_event() -> None:
    """Every name that the program logs is in the table, and nothing else is."""
    names = {
        node.args[0].value
        for s in sources("memd")
        if not s.path.startswith(_ROOMS)
        for node in s.nodes
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
        and ast.unparse(node.func).rsplit(".", 1)[-1] in _CALLS
        and ast.unparse(node.func) not in {"database.note", "self.note", "file.note"}
    }
    assert names == set(LOG_EVENTS)
