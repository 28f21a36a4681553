"""The errors of team memory."""

from memd.core.errors import MemdError
from memd.team.errors import (
    TeamHeldError,
    TeamNotJoinedError,
    TeamRefusedError,
    TeamUnreachableError,
)


def test_each_error_is_told_apart() -> None:
    """Each kind of failure has a code and a kind of its own, as the protocol lists them."""
    errors: list[MemdError] = [
        TeamNotJoinedError("/m"),
        TeamUnreachableError("https://team", "no connection"),
        TeamRefusedError("team/a.md", "not allowed", status=403),
        TeamHeldError("team/a.md", "removed"),
    ]
    assert [(each.code, each.kind) for each in errors] == [
        (1024, "team_not_joined"),
        (1025, "team_unreachable"),
        (1026, "team_refused"),
        (1027, "team_held"),
    ]
    assert [each.retryable for each in errors] == [False, True, False, False]
