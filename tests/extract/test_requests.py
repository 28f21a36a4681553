"""What an extraction answers."""

from memd.extract.requests import ExtractionResult


def test_facts_hold_what_the_wire_shows() -> None:
    """Empty members are left out; refusals are a count with the rules' names."""
    facts = ExtractionResult("completed", saved=("a.md",), refused=("jwt", "jwt")).facts()
    assert facts["refused"] == 2
    assert facts["refused_rules"] == ["jwt"]
    assert facts["passed_over"] == {}
    assert "reason" not in facts
    over = ExtractionResult("completed", passed_over=("structure", "code", "structure")).facts()
    assert over["passed_over"] == {"code": 1, "structure": 2}
    assert ExtractionResult("skipped", "nothing_new", change="c").facts()["change"] == "c"
