"""metrics."""

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.metrics_text import parsed
from tests.support.scripted_daemon import ScriptedDaemon

FAMILIES = [
    {
        "name": "memd_jobs",
        "type": "gauge",
        "unit": "",
        "help": "Jobs.",
        "bounds": [],
        "samples": [{"labels": {"state": "queued"}, "value": 2, "counts": []}],
    }
]


def test_metrics_are_text_for_other_programs(home: Home) -> None:
    """Without a switch it is OpenMetrics text, with --json what the daemon answered."""
    with ScriptedDaemon(home.places.socket, {"metrics": {"families": FAMILIES}}):
        ran = memctl(home, "metrics")
        plain = memctl(home, "metrics", "--json")
    assert parsed(ran.out)["memd_jobs"].samples[0].value == 2
    assert (ran.status, plain.json) == (0, {"families": FAMILIES})
