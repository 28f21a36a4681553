"""What tokens cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.prices import Price, price, problem


def test_an_unknown_model_is_the_dearest() -> None:
    """A name that no line fits costs at least what any other does."""
    unknown = price("somebodys-model")
    for name in ("claude-fable-5", "claude-opus-5", "claude-haiku-5-5"):
        known = price(name)
        assert unknown.input >= known.input
        assert unknown.output >= known.output
    assert price("claude-sonnet-50") == unknown


@pytest.mark.parametrize("line", ["model", "model 1 2 3", "m 1 2 3 x", "m 1 2 3 nan", "m -1 0 0 0"])
def test_a_wrong_line_is_named_and_passed_over(line: str) -> None:
    """The line's number is told, and the other lines count."""
    assert "line 2" in problem(f"good 1 1 1 1\n{line}\n")
    assert price("good", f"good 1 1 1 1\n{line}\n") == Price(1, 1, 1, 1)
    assert problem("good 1 1 1 1\n") == ""


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_text_gives_a_price(table: str, model: str) -> None:
    """Whatever the settings hold, every model has a price that is not negative."""
    results = price(model, table)
    assert min(results.input, results.output, results.cache_read, results.cache_created) >= 0
