"""OpenMetrics text."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memd.cli.open_metrics import text
from tests.metrics_text import parsed


def family(name: str, type_: str, *samples: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a family as ``metrics`` answers it."""
    unit = {"unit": "", "help": "What it is.", "bounds": []} | more
    return {"name": name, "type": type_, "samples": list(samples), **unit}


def test_each_type_has_its_own_form() -> None:
    """Counters end in total, infos in info, and a histogram counts what is at most each bound."""
    seconds = {"labels": {"method": "hello"}, "value": 0.5, "counts": [1, 0, 2]}
    families = [
        family("a_seconds", "histogram", seconds, unit="seconds", bounds=[0.001, 1]),
        family("b", "counter", {"labels": {}, "value": 3, "counts": []}),
        family("c", "gauge", {"labels": {"kind": 'x"\\\n'}, "value": 0.25, "counts": []}),
        family("d", "info", {"labels": {"version": "1"}, "value": 1, "counts": []}),
    ]
    shown = text(families)
    assert shown.splitlines()[:8] == [
        "# TYPE a_seconds histogram",
        "# UNIT a_seconds seconds",
        "# HELP a_seconds What it is.",
        'a_seconds_bucket{method="hello",le="0.001"} 1',
        'a_seconds_bucket{method="hello",le="1.0"} 1',
        'a_seconds_bucket{method="hello",le="+Inf"} 3',
        'a_seconds_count{method="hello"} 3',
        'a_seconds_sum{method="hello"} 0.5',
    ]
    assert "b_total 3" in shown
    assert shown.endswith("# EOF\n")
    read = parsed(shown)
    assert list(read) == ["a_seconds", "b", "c", "d"]
    assert read["c"].samples[0].labels == {"kind": 'x"\\\n'}


@given(st.dictionaries(st.text(max_size=20), st.floats(0, 1e12), max_size=5))
def test_no_label_breaks_the_text(values: dict[str, float]) -> None:
    """Whatever a label holds, a parser finds the same again, and so it does with a help text."""
    words = 'A "word", a \\ and\ntwo lines.'
    samples = [{"labels": {"one": key}, "value": v, "counts": []} for key, v in values.items()]
    found = parsed(text([family("a", "gauge", *samples, help=words)]))["a"]
    assert {sample.labels["one"]: sample.value for sample in found.samples} == values
    assert found.documentation == words
