"""Format the daemon's metrics as OpenMetrics text. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_SUFFIXES = {"counter": "_total", "info": "_info"}


def text(families: Iterable[Mapping[str, Any]]) -> str:
    """Return the families of the method ``metrics`` as text, with ``# EOF`` as the last line."""
    return "\n".join(
        [line for family in families for line in _family_lines(family)] + ["# EOF", ""]
    )


def _family_lines(family: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one metric family: its description, then its samples."""
    name = family["name"]
    yield f"# TYPE {name} {family['type']}"
    if family["unit"]:
        yield f"# UNIT {name} {family['unit']}"
    yield f"# HELP {name} {_escaped(family['help'])}"
    for sample in family["samples"]:
        if family["type"] == "histogram":
            yield from _histogram_lines(name, sample, family["bounds"])
        else:
            yield f"{name}{_SUFFIXES.get(family['type'], '')}{_labels(sample)} {sample['value']}"


def _histogram_lines(
    name: str, sample: Mapping[str, Any], bounds: Iterable[float]
) -> Iterator[str]:
    """Yield the lines of a histogram's sample: cumulative buckets, count and sum."""
    total = 0
    for bound, count in zip((*map(float, bounds), "+Inf"), sample["counts"], strict=True):
        # The buckets of OpenMetrics are cumulative.
        total += count
        yield f"{name}_bucket{_labels(sample, le=str(bound))} {total}"
    yield f"{name}_count{_labels(sample)} {total}"
    yield f"{name}_sum{_labels(sample)} {sample['value']}"


def _labels(sample: Mapping[str, Any], **more: str) -> str:
    """Return a sample's labels in braces, with ``more`` added, or "" if there are none."""
    pairs = [f'{key}="{_escaped(value)}"' for key, value in {**sample["labels"], **more}.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
