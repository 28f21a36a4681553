"""A dream without a model loses no fact, and what it did can be taken back to the byte."""

import pytest

from benchmarks.damage import measure
from benchmarks.planted import SMALL, Shape, plant


@pytest.mark.parametrize(
    "shape", [SMALL, pytest.param(Shape(), marks=pytest.mark.soak)], ids=["small", "whole"]
)
def test_planted_facts_survive_a_dream(shape: Shape) -> None:
    """Every bar of the benchmark is met: facts, copies, index, links, a second dream, undo."""
    missed = [check for check in measure(plant(shape)) if not check.met]
    assert missed == []


def test_as_much_is_planted_as_is_said() -> None:
    """There are 150 memories and 400 facts, each stands where it was put, and all differ."""
    planted = plant()
    assert len(planted.files) == 151
    assert len(planted.facts) == len({fact.text for fact in planted.facts}) == 400
    for fact in planted.facts:
        assert fact.text.encode() in planted.files[fact.path]
