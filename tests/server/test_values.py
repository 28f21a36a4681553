"""The nouns of the server."""

from memd.server.values import Role


def test_roles_are_told_apart_by_their_names() -> None:
    """The roles on the wire are these three."""
    assert [role.value for role in Role] == ["reader", "member", "maintainer"]
