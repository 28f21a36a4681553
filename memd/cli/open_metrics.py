"""Format the daemon's metrics as OpenMetrics text. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_SUFFIXES = {"counter": "_total", "info": "_info"}


def text(families: Iterable[Mapping[str, Any]]) -> str:
    """Return the families of the method ``metrics`` as text, with ``# EOF`` as the last line."""
    lines = [line for family in families for line in _family_lines(family)]
    return "\n".join([*lines, "# EOF", ""])


def _family_lines(family: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one metric family: its description, then its samples."""
    name = family["name"]
    yield f"# TYPE {name} {family['type']}"
    if family["unit"]:
        yield f"# UNIT {name} {family['unit']}"
    yield f"# HELP {name} {_escape(family['help'])}"
    suffix = _SUFFIXES.get(family["type"], "")
    for sample in family["samples"]:
        if family["type"] == "histogram":
            yield from _histogram_lines(name, sample, family["bounds"])
        else:
            yield f"{name}{suffix}{_labels(sample)} {sample['value']}"


def _histogram_lines(
    name: str, sample: Mapping[str, Any], bounds: Iterable[float]
) -> Iterator[str]:
    """Yield the lines of a histogram's sample: cumulative buckets, count and sum."""
    total = 0
    upper_bounds = [*(str(float(bound)) for bound in bounds), "+Inf"]
    for upper_bound, count in zip(upper_bounds, sample["counts"], strict=True):
        total += count
        yield f"{name}_bucket{_labels(sample, le=upper_bound)} {total}"
    yield f"{name}_count{_labels(sample)} {total}"
    yield f"{name}_sum{_labels(sample)} {sample['value']}"


def _labels(sample: Mapping[str, Any], **more_labels: str) -> str:
    """Return a sample's labels in braces, with ``more_labels`` added, or "" if there are none."""
    labels = {**sample["labels"], **more_labels}
    pairs = [f'{name}="{_escape(value)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escape(text: str) -> str:
    """Return a text with the escapes that OpenMetrics asks for."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
