"""The crash kit knows the core that it tries through one door (docs/reliability.md)."""

import re

from tests.house.source import Files

# What is about other rooms than the store, or about the inside of today's state file.
OTHERS = str.split(
    "checkpointing creating dreaming exporting gate_driver messaging server_operation teaming "
    "test_checkpoint test_creation test_export test_gate_cost"
)
CLOCKS = {"tests.support.clock", "tests.support.countdown"}


def test_one_file_knows_the_core() -> None:
    """Only the door, of at most 170 lines, and its neighbours import memd or other tests."""
    tests = Files("tests")
    kit = {s.path: s for s in tests if re.match(r"tests/(crash/|soak/store_machine)", s.path)}
    wrong = [
        f"{path} imports {name}"
        for path, source in kit.items()
        if not path.startswith("tests/crash/core") and path[12:-3] not in OTHERS
        for name in source.imports
        if re.match(r"memd\b|tests\.(?!crash\b)", name) and name not in CLOCKS
    ]
    assert wrong == []
    assert len(kit["tests/crash/core.py"].lines) <= 170
