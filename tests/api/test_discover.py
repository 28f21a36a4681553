"""The table as documents."""

from memd.api.discover import markdown
from memd.api.table import methods
from memd.core.errors import MemdError
from memd.store.door import ConflictError


def test_the_markdown_lists_methods_and_errors() -> None:
    """Each method has a section, each error code a row."""
    text = markdown(methods(), [MemdError, ConflictError])
    for row in methods():
        assert f"### `{row.name}`" in text
    assert "- `base_hash`: string or null, optional" in text
    assert "- `memories`: list of MemoryFacts" in text
    assert "Parameters: none." in text
    assert "| 1002 | `conflict` |" in text
    assert "| -32800 |" in text
