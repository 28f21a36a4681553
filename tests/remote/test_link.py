"""One bounded request."""

from memd.remote.link import HttpRequest


def test_a_request_has_no_credentials_of_its_own() -> None:
    """What is sent besides method and path is empty unless it is given."""
    request = HttpRequest("GET", "/healthz")
    assert (dict(request.headers), request.body) == ({}, b"")
