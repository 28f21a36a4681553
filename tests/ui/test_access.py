"""Who is let in: nothing but the browser that entered, and its own pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.ui.access import TOKEN_SECONDS, PageAccess, PageGate, RequestHead

HOST = "127.0.0.1:4321"
NAVIGATED = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FORM = {"origin": f"http://{HOST}", "content-type": "application/x-www-form-urlencoded"}


def entered() -> tuple[PageAccess, RequestHead]:
    """Return an access that was entered, and the head of a request for its first page."""
    access = PageAccess(HOST, 0.0)
    token = RequestHead("GET", f"/enter/{access.token}", {"host": HOST, **NAVIGATED})
    assert access.gate(token, 1.0) is PageGate.ENTERED
    cookie = access.cookie.partition(";")[0]
    return access, RequestHead("GET", access.root, {"host": HOST, "cookie": cookie, **OWN})


def changed(head: RequestHead, **headers: str | None) -> RequestHead:
    """Return a head with other headers; ``None`` leaves one out."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {**head.headers, **named}
    return replace(head, headers={n: v for n, v in merged.items() if v is not None})


def test_whoever_entered_is_let_in() -> None:
    """The session's path and cookie open its pages, also without the browser's own word."""
    access, head = entered()
    bare = changed(head, sec_fetch_site=None, sec_fetch_mode=None, sec_fetch_dest=None)
    among_others = changed(head, cookie=f"a=b; memd=other; {head.headers['cookie']}; c")
    by_hand = changed(head, **{n.replace("-", "_"): v for n, v in NAVIGATED.items()})
    style = replace(changed(head, sec_fetch_mode="no-cors", sec_fetch_dest="style"))
    for one in (head, bare, among_others, by_hand, style, replace(head, method="HEAD")):
        assert access.gate(one, 10.0) is PageGate.OPEN
    form = replace(
        changed(head, **{n.replace("-", "_"): v for n, v in FORM.items()}), method="POST"
    )
    assert access.gate(form, 10.0) is PageGate.OPEN


@pytest.mark.parametrize(
    "headers",
    [
        {"host": None},
        {"host": "localhost:4321"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:4322"},
        {"host": "127.0.0.1:4321."},
        {"host": "evil.example:4321"},
        {"host": "127.0.0.1.nip.example:4321"},
        {"host": ""},
        {"cookie": None},
        {"cookie": ""},
        {"cookie": "memd="},
        {"cookie": "memd=AAAAAAAAAAAAAAAAAAAAAA"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": ""},
        {"sec_fetch_site": "none", "sec_fetch_mode": "cors"},
        {"sec_fetch_site": "none", "sec_fetch_dest": "iframe"},
        {"sec_fetch_dest": "iframe"},
        {"sec_fetch_dest": "frame"},
        {"sec_fetch_dest": "embed"},
        {"sec_fetch_dest": "object"},
        {"sec_fetch_dest": "worker"},
    ],
)
def test_any_other_head_is_refused(headers: dict[str, str | None]) -> None:
    """A name that was bound to the address, another port, a frame, another site: nothing."""
    access, head = entered()
    assert access.gate(changed(head, **headers), 10.0) is PageGate.REFUSED


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "PUT", "DELETE", "TRACE", "CONNECT", "BREW"])
def test_without_the_session_every_method_is_refused(method: str) -> None:
    """No method of a stranger learns that there is one that would do."""
    access, head = entered()
    stranger = replace(changed(head, cookie=None), method=method)
    assert access.gate(stranger, 10.0) is PageGate.REFUSED
    elsewhere = replace(head, method=method, path="/s/AAAAAAAAAAAAAAAAAAAAAA/")
    assert access.gate(elsewhere, 10.0) is PageGate.REFUSED
    own = access.gate(replace(head, method=method), 10.0)
    assert own is (PageGate.REFUSED if method == "POST" else PageGate.METHOD)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": None},
        {"origin": "null"},
        {"origin": "http://localhost:4321"},
        {"origin": "https://127.0.0.1:4321"},
        {"origin": f"http://{HOST}/"},
        {"origin": "http://evil.example"},
        {"content_type": None},
        {"content_type": "text/plain"},
        {"content_type": "application/json"},
        {"content_type": "multipart/form-data; boundary=x"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "cross-site"},
    ],
)
def test_a_form_of_somebody_else_is_refused(headers: dict[str, str | None]) -> None:
    """What changes something comes with our Origin, as a form, from a page of ours."""
    access, head = entered()
    form = replace(
        changed(head, **{n.replace("-", "_"): v for n, v in FORM.items()}), method="POST"
    )
    assert access.gate(changed(form, **headers), 10.0) is PageGate.REFUSED
    assert not access.is_form("")
    assert not access.is_form("é")
    assert access.is_form(access.form_token)


def test_the_token_works_once_and_not_for_long() -> None:
    """The printed address lets one in, within two minutes, and nobody after that."""
    access = PageAccess(HOST, 0.0)
    path = access.address.removeprefix(f"http://{HOST}")
    head = RequestHead("GET", path, {"host": HOST})
    for other in (
        replace(head, path="/enter/"),
        replace(head, path=path[:-1]),
        replace(head, path=f"{path}/"),
        replace(head, method="HEAD"),
        replace(head, method="POST"),
        changed(head, sec_purpose="prefetch"),
        changed(head, sec_purpose="prefetch;prerender"),
        changed(head, purpose="prefetch"),
        changed(head, host="localhost:4321"),
        changed(head, sec_fetch_site="cross-site"),
    ):
        assert access.gate(other, 1.0) is PageGate.REFUSED
    assert access.gate(head, 1.0) is PageGate.ENTERED
    assert access.gate(head, 1.0) is PageGate.REFUSED
    assert access.gate(replace(head, path="/enter/"), 1.0) is PageGate.REFUSED
    late = PageAccess(HOST, 0.0)
    head = RequestHead("GET", f"/enter/{late.token}", {"host": HOST})
    assert late.gate(head, TOKEN_SECONDS + 1) is PageGate.REFUSED
    assert late.gate(head, 1.0) is PageGate.REFUSED


def test_the_cookie_is_for_the_session_s_path_alone() -> None:
    """No script reads it, no other site sends it, and no other path gets it."""
    access, _ = entered()
    _, path, *rest = access.cookie.split("; ")
    assert path == f"Path={access.root}"
    assert rest == ["HttpOnly", "SameSite=Strict"]
    secrets = {access.cookie.partition(";")[0], access.root, access.form_token}
    assert len(secrets) == 3


@given(
    st.sampled_from(["GET", "POST", "HEAD", "OPTIONS"]),
    st.text(max_size=60),
    st.dictionaries(
        st.sampled_from(["host", "cookie", "origin", "sec-fetch-site", "content-type"]),
        st.one_of(st.text(max_size=30), st.sampled_from([HOST, f"http://{HOST}", "none"])),
    ),
)
def test_no_guess_is_let_in(method: str, path: str, headers: dict[str, str]) -> None:
    """Whatever a stranger sends, no page is open and nothing is raised."""
    access, _ = entered()
    guess = RequestHead(method, path, headers)
    below = replace(guess, path=access.root + path)
    assert access.gate(guess, 1.0) is PageGate.REFUSED
    assert access.gate(below, 1.0) is PageGate.REFUSED
