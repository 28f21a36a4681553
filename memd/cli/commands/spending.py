"""spend: what models used and cost."""

from collections.abc import Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import Invocation

_HEAD = ("requests", "input", "output", "cached", "dollars")


def spend(invocation: Invocation) -> None:
    """Print what was used, a row for each day, kind, project or model, and the sum."""
    options = invocation.options
    found = invocation.call("spend", days=options.days, by=options.by)
    screen = invocation.screen
    today = found["today"]
    rows: list[tuple[str, ...]] = [(found["by"], *_HEAD)]
    rows += [(row["label"], *_cells(row)) for row in found["rows"]]
    rows.append(("all", *_cells(found["total"])))
    lines = [output.table(rows, screen.width), f"today: {bounded(today)}"]
    lines += standing_still(today)
    screen.answer(found, "\n".join(lines))


def bounded(today: Mapping[str, Any]) -> str:
    """Return today's money with its bound."""
    used = today["used"]
    return f"${used['dollars']:.4f} of ${today['dollars_per_day']:.2f}, {used['requests']} requests"


def standing_still(today: Mapping[str, Any]) -> list[str]:
    """Return a line for each kind of work that a cap has stopped."""
    return [f"{kind} stands still until tomorrow: {cap}" for kind, cap in today["caps"].items()]


def _cells(used: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(used["requests"]),
        str(used["input"] + used["cache_created"]),
        str(used["output"]),
        str(used["cache_read"]),
        f"{used['dollars']:.4f}",
    )
