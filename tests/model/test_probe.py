"""What a server may not know of a request."""

from hypothesis import given
from hypothesis import strategies as st

from memd.model import probe

PARTS = ("between_tools", "thinking", "effort", "format", "metadata", "cache_control")


@given(st.sets(st.sampled_from(PARTS)), st.text(max_size=30))
def test_leaving_out_comes_to_an_end(dropped: set[str], words: str) -> None:
    """Each refusal takes away one part that was there; with none left nothing is tried."""
    part = probe.next_part(PARTS, dropped, words)
    assert part == "" or part in set(PARTS) - dropped
    assert probe.next_part(PARTS, set(PARTS), words) == ""
