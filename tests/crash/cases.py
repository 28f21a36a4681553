"""What a crash, a fault or a power cut is judged by: the directory is as before or as after."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from memd.core.names import INDEX, INDEXES
from memd.core.team import Base
from memd.core.values import CursorMove
from memd.documents import index
from memd.state.cursors import Cursors
from memd.state.suggestions import SuggestionTable
from memd.state.teams import TeamTable
from tests.changes import history
from tests.crash.operation import OPERATIONS, prepare
from tests.store.bench import Bench, open_bench

State = tuple[dict[str, bytes], dict[str, int], CursorMove | None, list[str], dict[str, Base]]
# The files whose times an operation sets or must bring back.
TIMES = {
    "dream": ("a.md",),
    "undo": ("b.md", "c.md"),
    "import": ("a-2.md", "an odd n\u00e4me.md", "team/t.md"),
}
RECOVERED_AT = 2.0


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


def state(bench: Bench, name: str) -> State:
    """Return what must be before or after: every file, the times that matter, what moved."""
    kept = {path: at for path, at in bench.times().items() if path in TIMES.get(name, ())}
    filed = [each.text for each in SuggestionTable(bench.database).open_in(bench.directory, 0)]
    cursor = Cursors(bench.database).get(bench.directory, "session")
    return bench.tree(), kept, cursor, filed, TeamTable(bench.database).bases(bench.directory)


def make_case(name: str, folder: Path) -> Case:
    """Prepare an operation and learn what its before and after are."""
    root, template = folder / "root", folder / "template"
    root.mkdir()
    with open_bench(root) as bench:
        prepare(bench)
    shutil.copytree(root, template)
    with open_bench(root) as bench:
        before = state(bench, name)
        OPERATIONS[name](bench)
        after = state(bench, name)
        changes = len(history(bench.journal, bench.directory))
    assert before != after
    return Case(name, template, root, before, after, changes)


def restore(template: Path, root: Path) -> None:
    """Put a state back under the same path, times included."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root)


def decision(case: Case, *, acknowledged: bool) -> str:
    """Recover, judge what is there, send the request again, judge again; "" when all is well."""
    with open_bench(case.root) as bench:
        bench.changes.recover(RECOVERED_AT)
        results = state(bench, case.name)
        listed = [
            path.removesuffix(INDEX) + entry.path
            for path in INDEXES
            for entry in index.entries(results[0].get(path, b""))
        ]
        recovered = {
            "neither before nor after": results not in (case.before, case.after),
            "acknowledged and lost": acknowledged and results != case.after,
            "index and files disagree": sorted(listed) != sorted(set(results[0]) - {*INDEXES}),
            "a set is still open": bool(bench.journal.pending()),
        }
        OPERATIONS[case.name](bench)
        changes = len(history(bench.journal, bench.directory))
        retried = {
            "the retry did not end in after": state(bench, case.name) != case.after,
            "the retry was a second change": changes != case.changes,
        }
    return "; ".join(words for words, wrong in (recovered | retried).items() if wrong)
