"""Plan how a private memory is moved to the team. Pure."""

from memd.base.names import TEAM
from memd.base.values import Draft, FileEdit, Plan, Tree
from memd.memories.writing import already_shared, nothing_there
from memd.store import memory
from memd.store.check import check_shared


def plan_share(path: str, modified: str) -> Plan:
    """Return the plan that moves a memory below ``team/``, without the session it came from.

    The plan raises NotFound, Conflict, Invalid and Invalid.
    """

    def plan(tree: Tree) -> Draft:
        """Return the change set that writes the shared file and removes the private one."""
        old = tree.read(path)
        if old is None:
            raise nothing_there(path)
        if path.startswith(TEAM):
            raise already_shared(path)
        parsed = memory.validate(old.content, path)
        check_shared(f"{TEAM}{path}", old.content)
        content = memory.new(
            parsed.name, parsed.description, parsed.type, parsed.body, session="", modified=modified
        )
        target = f"{TEAM}{path}"
        if tree.read(target) is not None:
            raise already_shared(target)
        shared = FileEdit(target, content, base="")
        return Draft(edits=(shared, FileEdit(path, None, base=old.hash)))

    return plan
