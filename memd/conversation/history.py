"""A conversation as a list of messages of the Messages API: its size, its units, its end. Pure."""

from memd.conversation.counting import (
    ContextMeter,
    Thresholds,
    TokenCount,
    count,
    counted,
    estimate,
    estimate_text,
    thresholds,
)

__all__ = [
    "ContextMeter",
    "Thresholds",
    "TokenCount",
    "count",
    "counted",
    "estimate",
    "estimate_text",
    "thresholds",
]
