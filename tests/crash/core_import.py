"""An import into the core under the crash kit, as the room ``portable`` plans it."""

from collections.abc import Mapping
from functools import partial

from memd.base.values import Draft, Tree
from memd.portable.merging import plan_import
from memd.portable.plan import Incoming
from memd.portable.values import ReadFile
from tests.crash.core import Core


def take_in(core: Core, files: Mapping[str, bytes], mtime_ns: int, request: str) -> None:
    """Take files with their times in."""
    made = [ReadFile(path, body, mtime_ns, exact=True) for path, body in files.items()]

    def plan(tree: Tree) -> Draft:
        was_imported = partial(core.past.was_imported, core.directory)
        return plan_import(Incoming(made, mtime_ns, was_imported), tree).draft()

    core.commit_draft(plan, request)
