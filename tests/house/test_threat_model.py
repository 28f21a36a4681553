"""docs/threat-model.md: each control names tests that exist."""

import re
from pathlib import Path

from tests.house.source import ROOT, sources

_NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)(?:::(\w+))?`")


def test_every_control_names_tests_that_exist() -> None:
    """A test that is renamed or removed takes its line in the threat model along."""
    text = Path(ROOT, "docs", "threat-model.md").read_text(encoding="utf-8")
    names = {s.path: {f.name for f in s.functions} for s in sources("tests")}
    rows = [line for line in text.split("## Controls")[1].splitlines() if line.startswith("| ")][1:]
    missing = [
        match[0]
        for match in _NAMED.finditer(text)
        if match[1] not in names or (match[2] and match[2] not in names[match[1]])
    ]
    assert missing == []
    assert [row for row in rows if not _NAMED.search(row)] == []
