"""OpenMetrics text as another program reads it."""

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def parsed(text: str) -> dict[str, Any]:
    """Return the families of a text by name; raises ValueError for what the format forbids."""
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {family.name: family for family in families}
