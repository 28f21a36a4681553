"""What a crash, a fault or a power cut is judged by: the directory is as before or as after."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.crash.core import Core, open_core
from tests.crash.kit import INDEX, INDEXES, listed, tree
from tests.crash.operation import OPERATIONS, prepare

State = tuple[dict[str, bytes], dict[str, int], object]
# The files whose times an operation sets or must bring back.
TIMES = {
    "dream": ("a.md",),
    "undo": ("b.md", "c.md"),
    "import": ("a-2.md", "an odd n\u00e4me.md", "team/t.md"),
}


@dataclass(frozen=True)
class Case:
    """An operation with its start state, kept in ``template``, and what is before and after.

    It always runs below the same ``root``, since the journal knows directories by path.
    """

    name: str
    template: Path
    root: Path
    before: State
    after: State
    changes: int


def state(core: Core, name: str) -> State:
    """Return what must be before or after: every file, the times that matter, what moved."""
    files = tree(core.path)
    times = [path for path in TIMES.get(name, ()) if path in files]
    kept = {path: (core.path / path).stat().st_mtime_ns for path in times}
    return files, kept, core.effects()


def make_case(name: str, folder: Path) -> Case:
    """Prepare an operation and learn what its before and after are."""
    root, template = folder / "root", folder / "template"
    root.mkdir()
    with open_core(root) as core:
        prepare(core)
    shutil.copytree(root, template)
    with open_core(root) as core:
        before = state(core, name)
        OPERATIONS[name](core)
        after = state(core, name)
        changes = len(core.history())
    assert before != after
    return Case(name, template, root, before, after, changes)


def restore(template: Path, root: Path) -> None:
    """Put a state back under the same path, times included."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root)


def decision(case: Case, *, acknowledged: bool) -> str:
    """Recover, judge what is there, send the request again, judge again; "" when all is well."""
    with open_core(case.root) as core:
        core.recover()
        results = state(core, case.name)
        found = [
            path.removesuffix(INDEX) + name
            for path in INDEXES
            for name in listed(results[0].get(path, b""))
        ]
        recovered = {
            "neither before nor after": results not in (case.before, case.after),
            "acknowledged and lost": acknowledged and results != case.after,
            "index and files disagree": sorted(found) != sorted(set(results[0]) - {*INDEXES}),
            "a set is still open": core.is_open(),
        }
        OPERATIONS[case.name](core)
        changes = len(core.history())
        retried = {
            "the retry did not end in after": state(core, case.name) != case.after,
            "the retry was a second change": changes != case.changes,
        }
    return "; ".join(words for words, wrong in (recovered | retried).items() if wrong)
