"""The table of all views, and the values for the frame of every page. Pure."""

import re
from collections import defaultdict
from collections.abc import Mapping

from memd.ui import deciding, memories, memory, notes, operation, recall
from memd.ui.views import Context, PageQuery, PageView

VIEWS: Mapping[str, PageView] = {
    view.path: view
    for module in (memories, memory, recall, deciding, notes, operation)
    for view in module.VIEWS
}
# The parts of a project, in the order of their tabs.
_TABS = (
    ("project", "Memories"),
    ("search", "Search"),
    ("review", "To decide"),
    ("dreams", "Dreams"),
    ("notes", "Notes"),
)
_FORM_RESULT = re.compile(r"yes|c[0-9]{1,12}")  # "yes", or the id of the change that was made
# The pages that belong to no project.
_DAEMON_TABS = (("report", "Report"), ("health", "Health"))


def frame(view: PageView, query: PageQuery) -> Context:
    """Return the values for a page's frame: its title, project, tabs and a form's result."""
    address_values = {name: value for name, value in query.values.items() if name != "here"}
    project = query.project if view.tab and query.get("cwd") else None
    result = query.get("done")
    return {
        "title": view.title,
        "path": view.path,
        "project": project,
        "tab": view.tab,
        "tabs_": _TABS if project else (),
        "whole": _DAEMON_TABS,
        "at": query.at,
        "done": result if _FORM_RESULT.fullmatch(result) else "",
        "values": defaultdict(str, address_values),
    }
