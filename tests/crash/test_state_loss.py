"""The state file is lost or damaged in the middle of a commit: it costs history at most."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.cases import make_case, restore
from tests.crash.core import FAILED, Core, open_core
from tests.crash.kit import Edit, is_temporary, topic, tree, visible
from tests.crash.operation import OPERATIONS
from tests.support.countdown import Countdown


def delete(path: str) -> None:
    """Remove the file."""
    os.unlink(path)


def delete_all(path: str) -> None:
    """Remove the file and what SQLite keeps beside it."""
    for tail in ("", "-wal", "-shm"):
        os.unlink(path + tail)


def delete_log(path: str) -> None:
    """Remove the log alone."""
    os.unlink(f"{path}-wal")


def overwrite(path: str) -> None:
    """Fill the file and its log with junk."""
    for tail in ("", "-wal"):
        size = os.path.getsize(path + tail)
        with open(path + tail, "r+b") as file:
            file.write(b"junk" * (size // 4))


def empty(path: str) -> None:
    """Make the file and its log empty."""
    for tail in ("", "-wal"):
        os.truncate(path + tail, 0)


LOSSES: tuple[Callable[[str], None], ...] = (delete, delete_all, delete_log, overwrite, empty)


class Losing(Countdown):
    """Damages the state file at the n-th call instead of failing it."""

    def __init__(self, number: int, lose: Callable[[], None]) -> None:
        super().__init__(number)
        self._lose = lose

    def step(self, name: str) -> None:
        """Count one call, and do the damage when it is its turn."""
        self.names.append(name)
        if len(self.names) == self.fail_at:
            self._lose()


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize(
    ("name", "stride"),
    [
        ("delete", 5),
        *(pytest.param(n, 1, marks=pytest.mark.crash) for n in ("delete", "extraction")),
    ],
)
def test_a_loss_at_any_call_costs_history_at_most(
    name: str, stride: int, lose: Callable[[str], None], tmp_path: Path
) -> None:
    """The commit is done or a typed error, the tree before or after, and the next write works."""
    case = make_case(name, tmp_path)
    number, reached = LOSSES.index(lose) % stride + 1 - stride, True
    while reached:
        number += stride
        restore(case.template, case.root)
        with open_core(case.root) as core:
            path = str(core.root / "state.db")
            losing = Losing(number, lambda path=path: lose(path))  # type: ignore[misc]
            done = True
            try:
                OPERATIONS[name](core.through(losing))
            except FAILED:
                done = False
            reached = losing.reached
            assert visible(core.path) in (case.before[0], case.after[0])
            assert not done or visible(core.path) == case.after[0]
            assert until_written(core) <= 2
            assert not core.recover()
            # Of a change that no log knows any more, the replaced files stay: nobody saved them.
            hidden = tree(core.path).keys() - visible(core.path).keys()
            assert all(is_temporary(os.path.basename(name)) for name in hidden)
        with open_core(case.root) as core:
            assert not core.recover()
            assert "z.md" in tree(core.path)
    assert number > 12


def until_written(core: Core) -> int:
    """Write until that works; return how often it failed first."""
    for failed in range(5):
        try:
            core.commit([Edit("z.md", topic("z"))])
        except FAILED:
            continue
        return failed
    return 5
