"""A conversation as a list of messages of the Messages API: its size, its units, its end. Pure."""

from memd.conversation.counting import (
    Thresholds,
    TokenCount,
    count,
    counted,
    estimate,
    estimate_text,
    thresholds,
)

__all__ = [
    "Thresholds",
    "TokenCount",
    "count",
    "counted",
    "estimate",
    "estimate_text",
    "thresholds",
]
