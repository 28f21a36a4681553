"""Kill -9 of the team server's storage at every system call that changes something."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import kill
from tests.crash.cases import restore
from tests.crash.conftest import FIGURE
from tests.crash.server_operation import OPERATIONS, judged, prepare, reopened, state

DRIVER = Path(__file__).with_name("server_operation.py")


@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
@pytest.mark.crash
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_any_call_leaves_before_or_after(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """After a kill anywhere the storage is as before or after, and after once it is repeated."""
    root, template = tmp_path / "root", tmp_path / "template"
    root.mkdir()
    prepare(root)
    shutil.copytree(root, template)
    with reopened(root) as desk:
        before = state(desk)
        OPERATIONS[name](desk)
        after = state(desk)
    assert before != after
    restore(template, root)
    every = kill.points(root, name, "run", driver=DRIVER)
    bad = []
    for point in every:
        restore(template, root)
        said = kill.killed(root, name, "run", point, driver=DRIVER)
        if wrong := judged(root, name, before, after, acknowledged="acknowledged" in said):
            bad.append((point, wrong))
    record_property(FIGURE, f"server {name}: {len(every)} points, {len(bad)} bad")
    assert len(every) > 10
    assert bad == []
