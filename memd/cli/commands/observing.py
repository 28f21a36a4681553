"""metrics: the daemon in numbers."""

from memd.cli import open_metrics
from memd.cli.invocation import Invocation


def metrics(invocation: Invocation) -> None:
    """Print the metrics as OpenMetrics text."""
    answer = invocation.request(cwd=None)
    invocation.screen.answer(answer, open_metrics.text(answer["families"]))
