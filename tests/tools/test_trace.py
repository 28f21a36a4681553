"""The functions that run for a request."""

import pytest

from tools import trace


def test_each_request_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Each request has a line with its functions, and looks up its project once, its job once."""
    assert trace.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert names == ["load_prompt", "prefetch", "memory.write", "extract"]
    assert all(int(line.split()[1]) > 0 for line in lines)
    assert not any("times" in line for line in lines)
