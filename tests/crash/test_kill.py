"""Kill -9 at every system call that changes something, in every kind of commit and in recovery."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memd.core.values import CursorMove
from memd.state.cursors import Cursors
from memd.store import index
from memd.store.names import INDEX
from tests.crash import kill
from tests.crash.conftest import FIGURE
from tests.crash.operation import OPERATIONS, prepare
from tests.store.bench import Bench, open_bench

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works"),
]
# Of each operation: every n-th first kill, and how many double kills at most, spread evenly.
SAMPLES = {"dream": (1, 220), "extraction": (3, 70), "undo": (3, 70), "write": (3, 70)}

State = tuple[dict[str, bytes], dict[str, int], CursorMove | None]


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


def state(bench: Bench, *times: str) -> State:
    """Return what must be before or after: every file, the times that matter, the cursor."""
    kept = {path: at for path, at in bench.times().items() if path in times}
    return bench.tree(), kept, Cursors(bench.database).get(bench.directory, "session")


TIMES = {"dream": ("a.md",), "undo": ("b.md", "c.md"), "write": (), "extraction": ()}


@pytest.fixture(params=OPERATIONS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """Prepare an operation and learn what its before and after are."""
    root, template = tmp_path / "root", tmp_path / "template"
    root.mkdir()
    with open_bench(root) as bench:
        prepare(bench)
    shutil.copytree(root, template)
    name = request.param
    with open_bench(root) as bench:
        before = state(bench, *TIMES[name])
        OPERATIONS[name](bench)
        after = state(bench, *TIMES[name])
    assert before != after
    return Case(name, template, root, before, after)


def verdict(case: Case, *, acknowledged: bool) -> str:
    """Recover, judge what is there, send the request again, judge again; "" when all is well."""
    with open_bench(case.root) as bench:
        bench.changes.recover(2.0)
        found = state(bench, *TIMES[case.name])
        listed = [entry.path for entry in index.entries(found[0][INDEX])]
        recovered = {
            "neither before nor after": found not in (case.before, case.after),
            "acknowledged and lost": acknowledged and found != case.after,
            "index and files disagree": sorted(listed) != sorted(set(found[0]) - {INDEX}),
            "a set is still open": bool(bench.journal.pending()),
        }
        OPERATIONS[case.name](bench)
        changes = len(bench.journal.history(bench.directory))
        retried = {
            "the retry did not end in after": state(bench, *TIMES[case.name]) != case.after,
            "the retry was a second change": changes != 3,
        }
    return "; ".join(words for words, wrong in (recovered | retried).items() if wrong)


def test_a_kill_at_any_call_leaves_before_or_after(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    """After a kill anywhere in a commit the directory is whole, and a retry completes it once."""
    kill.restore(case.template, case.root)
    every = kill.points(case.root, case.name, "run")
    bad = []
    for point in every:
        kill.restore(case.template, case.root)
        said = kill.killed(case.root, case.name, "run", point)
        wrong = verdict(case, acknowledged="acknowledged" in said)
        if wrong:
            bad.append((point, wrong))
    record_property(FIGURE, f"{case.name}: {len(every)} points, {len(bad)} bad")
    assert len(every) > 20
    assert bad == []


def test_a_kill_in_recovery_changes_nothing(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    """After a kill in a commit and another in its recovery, the next recovery still succeeds."""
    kill.restore(case.template, case.root)
    half = case.root.with_name("half")
    pairs = []
    every, most = SAMPLES[case.name]
    for first in kill.points(case.root, case.name, "run")[::every]:
        kill.restore(case.template, case.root)
        said = kill.killed(case.root, case.name, "run", first)
        saved = half / f"{first.call}-{first.number}"
        shutil.copytree(case.root, saved)
        pairs += [
            (first, second, saved, "acknowledged" in said)
            for second in kill.points(case.root, case.name, "recover")
        ]
    stride = -(-len(pairs) // most)
    bad = []
    for first, second, saved, acknowledged in pairs[::stride]:
        kill.restore(saved, case.root)
        kill.killed(case.root, case.name, "recover", second)
        wrong = verdict(case, acknowledged=acknowledged)
        if wrong:
            bad.append((first, second, wrong))
    tried = f"{len(pairs[::stride])} of {len(pairs)} double kills"
    record_property(FIGURE, f"{case.name}: {tried}, {len(bad)} bad")
    assert pairs
    assert bad == []
