"""Tells the figures of the long proofs at the end of a run, wherever its workers were."""

import pytest

from tests.soak.figures import FIGURE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each figure that a test recorded."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            if isinstance(report, pytest.TestReport):
                for name, value in report.user_properties:
                    if name == FIGURE:
                        terminalreporter.write_line(str(value))
