"""What a server may not know of a request."""

from hypothesis import given
from hypothesis import strategies as st

from memd.model import probe
from memd.model.port import Ask

EVERYTHING = Ask(
    kind="recall",
    model="m",
    messages=(
        {
            "role": "user",
            "content": [{"type": "text", "text": "x", "cache_control": {"type": "x"}}],
        },
    ),
    max_tokens=1,
    seconds=1,
    schema={"type": "object"},
    extra={
        "metadata": {},
        "thinking": {"type": "between_tools"},
        "output_config": {"effort": "low"},
    },
)
PARTS = ("between_tools", "thinking", "effort", "format", "metadata", "cache_control")


def test_the_parts_are_what_the_request_has() -> None:
    """Each part that not all servers know is listed once, the newest first."""
    assert probe.parts(EVERYTHING) == PARTS
    bare = Ask("recall", "m", ({"role": "user", "content": "x"},), 1, 1)
    assert probe.parts(bare) == ()
    system = Ask("dream", "m", (), 1, 1, system=({"type": "text", "cache_control": {}},))
    assert probe.parts(system) == ("cache_control",)
    old = Ask(
        "dream", "m", (), 1, 1, extra={"thinking": {"type": "disabled"}, "output_config": None}
    )
    assert probe.parts(old) == ("thinking",)


def test_what_the_refusal_names_goes_first() -> None:
    """A refusal's words choose the part; without a hint the order does."""
    assert probe.next_part(PARTS, (), "cache_control: unexpected") == "cache_control"
    assert probe.next_part(PARTS, (), "Metadata is unknown") == "metadata"
    assert probe.next_part(PARTS, (), "response_format is not supported") == "format"
    assert probe.next_part(PARTS, {"between_tools"}, "bad thinking") == "thinking"
    assert probe.next_part(PARTS, (), "output_config.format: Extra inputs") == "format"
    assert probe.next_part(PARTS, (), "output_config: Extra inputs") == "effort"
    assert probe.next_part(PARTS, ("effort",), "output_config: Extra inputs") == "format"
    assert probe.next_part(PARTS, (), "bad request") == "between_tools"


@given(st.sets(st.sampled_from(PARTS)), st.text(max_size=30))
def test_leaving_out_comes_to_an_end(dropped: set[str], words: str) -> None:
    """Each refusal takes away one part that was there; with none left nothing is tried."""
    part = probe.next_part(PARTS, dropped, words)
    assert part == "" or part in set(PARTS) - dropped
    assert probe.next_part(PARTS, set(PARTS), words) == ""
