"""spend."""

from typing import Any

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import memctl
from tests.cli.home import Home

USED = {
    "requests": 3,
    "input": 1000,
    "output": 20,
    "cache_read": 5000,
    "cache_created": 200,
    "dollars": 0.0123,
}
FOUND: dict[str, Any] = {
    "days": 7,
    "by": "kind",
    "rows": [{"label": "recall", **USED}],
    "total": USED,
    "today": {
        "used": USED,
        "dollars_per_day": 1.0,
        "caps": {"recall": "spend.recall_share"},
    },
}


def test_spending_reads_like_a_bill(home: Home) -> None:
    """A row each, the sum, today with its bound, and what stands still."""
    with ScriptedDaemon(home.places.socket, {"spend": FOUND}) as daemon:
        ran = memctl(home, "spend", "--days", "7", "--by", "kind")
        assert daemon.params("spend") == {"days": 7, "by": "kind"}
        plain = memctl(home, "spend", "--json")
        assert daemon.params("spend") == {}
    assert ran.out.splitlines() == [
        "kind    requests  input  output  cached  dollars",
        "recall  3         1200   20      5000    0.0123",
        "all     3         1200   20      5000    0.0123",
        "",
        "today: $0.0123 of $1.00, 3 requests",
        "recall stands still until tomorrow: spend.recall_share",
    ]
    assert plain.json == FOUND
