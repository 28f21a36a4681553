"""After a power cut at any instant the directory is as before or as after, whatever was written."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from tests.crash import kill, power
from tests.crash.cases import decision, make_case, restore
from tests.crash.conftest import FIGURE
from tests.crash.operation import OPERATIONS


def texts(image: power.Image) -> dict[str, bytes]:
    """Return path and content of everything in an image."""
    return dict(image.key())


def test_the_model_forgets_what_was_not_synced(tmp_path: Path) -> None:
    """A name may be there without its bytes, and the bytes without the name, until both are."""
    (tmp_path / "a").write_bytes(b"old")
    disk = power.Disk(tmp_path)
    disk.make("t")
    node = disk.find("t")
    assert node is not None
    disk.change(power.Change(node, 0, b"new!"))
    disk.rename("t", t=None, a=node)
    results = [texts(image) for image in disk.cuts()]
    for state in (
        {"a": b"old"},
        {"a": b"old", "t": b""},
        {"a": b""},
        {"a": b"ne"},
        {"a": b"\0\0\0\0"},
        {"a": b"new!"},
    ):
        assert state in results
    disk.sync("a")
    disk.sync("")
    assert [texts(image) for image in disk.cuts()] == [{"a": b"new!"}]


def test_many_pending_changes_are_sampled() -> None:
    """Beyond 256 subsets the prefixes, those with one or without one, and a sample are taken."""
    assert len(list(power._subsets(8))) == 256
    some = set(power._subsets(12))
    assert {(), tuple(range(12)), (3,), tuple(n for n in range(12) if n != 3)} <= some
    assert len(some) < 256


@pytest.mark.crash
@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_power_cut_leaves_before_or_after(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each state that a cut may leave is recovered, and what was acknowledged is there."""
    case = make_case(name, tmp_path)
    restore(case.template, case.root)
    log = tmp_path / "log"
    done = kill.run(case.root, name, "run", *power.ARGUMENTS, "-o", str(log))
    assert done.returncode == 0, done.stderr
    restore(case.template, case.root)
    states, bad = 0, []
    disks = power.replay(log.read_text(), case.root)
    first = next(disks)  # reads the real directory, which is written over from here on
    for image, acknowledged in power.distinct(chain([first], disks)):
        image.write(case.root)
        states += 1
        wrong = decision(case, acknowledged=acknowledged)
        if wrong:
            bad.append((wrong, acknowledged, sorted(image.files())))
    record_property(FIGURE, f"G3 {name}: {states} states after a power cut, {len(bad)} bad")
    assert states > 40
    assert bad == []
