"""Tells the figures of the long proofs at the end of a run, wherever its workers were."""

import pytest

from tests.soak.figures import FIGURE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each figure that a test recorded."""
    for result in ("passed", "failed"):
        for report in terminalreporter.getreports(result):
            if isinstance(report, pytest.TestReport):
                for name, value in report.user_properties:
                    if name == FIGURE:
                        terminalreporter.write_line(str(value))
