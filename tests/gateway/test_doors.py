"""The gateway is a room of its own."""

import memd.gateway


def test_the_room_is_entered_by_one_door() -> None:
    """The room names its door."""
    assert "``command``" in str(memd.gateway.__doc__)
