"""The figures of the crash tests, told at the end of a run wherever its workers were."""

import pytest

FIGURE = "figure"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each figure that a test recorded."""
    reports = [
        report
        for result in ("passed", "failed")
        for report in terminalreporter.getreports(result)
        if isinstance(report, pytest.TestReport)
    ]
    for report in reports:
        for name, value in report.user_properties:
            if name == FIGURE:
                terminalreporter.write_line(str(value))
