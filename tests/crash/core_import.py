"""An import into the core under the crash kit, as the room ``portable`` plans it."""

from collections.abc import Mapping
from functools import partial

from memd.core.values import Draft, Tree
from memd.portable.importing import remember_originals
from memd.portable.merging import plan_import
from memd.portable.plan import Incoming, KnownFiles
from memd.portable.values import ProposedMemory
from memd.state.tables import ImportTable
from tests.crash.core import Core


def take_in(core: Core, files: Mapping[str, bytes], mtime_ns: int, request: str) -> None:
    """Take files with their times in."""
    made = [ProposedMemory(path, body, mtime_ns, exact=True) for path, body in files.items()]
    table = ImportTable(core.database)

    def plan(tree: Tree) -> Draft:
        versions = partial(core.journal.versions, core.directory)
        known = KnownFiles(table.of_directory(core.directory), versions, core.journal.blob)
        planned = plan_import(Incoming(made, "memd", mtime_ns), tree, known)
        remember_originals(table, core.directory, planned, core.clock.now())
        return planned.draft()

    core.commit_draft(plan, request)
