"""What the views take and return."""

from memd.instructions.values import UnknownViewError, View


def test_an_unknown_view_is_told_the_known_ones() -> None:
    """Whoever names a view that does not exist hears which ones do."""
    assert all(view in str(UnknownViewError("emacs")) for view in View)
