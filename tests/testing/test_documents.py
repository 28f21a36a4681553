"""The generated documents."""

import pytest

from memd.testing import documents


@pytest.mark.parametrize("name", sorted(documents.GENERATED))
def test_documents_say_what_the_code_says(name: str) -> None:
    """A generated document equals what the code would write now; `make docs` mends it."""
    found = (documents.DOCS / name).read_text(encoding="utf-8")
    assert found == documents.expected(name)
