"""Members, invitations and tokens, the same on both databases."""

import re

import pytest

from memd.core.text import sha256
from memd.server.access import INVITATION_SECONDS, TOKEN_SECONDS
from memd.server.errors import MalformedRequestError, NotThereError, UnauthorisedError
from memd.server.values import Role
from tests.server.desk import Desk, entry


def test_a_code_is_good_once(desk: Desk) -> None:
    """A code lets one device join, as the member and with the role that it was made for."""
    roles = {desk.repository.id: Role.READER}
    code = desk.storage.invite("anna", roles, now=desk.now)
    token, member = desk.storage.join(code, "laptop", now=desk.now, address="10.0.0.1")
    assert member == "anna"
    assert desk.storage.repositories("anna") == ((desk.repository, Role.READER),)
    for wrong in (code, "", "x", token, "\ud800", "\0"):
        with pytest.raises(UnauthorisedError):
            desk.storage.join(wrong, "laptop", now=desk.now)
    [join] = desk.storage.audit(member="anna")
    assert (join.act, join.device, join.address) == ("join", "laptop", "10.0.0.1")


def test_a_code_ends(desk: Desk) -> None:
    """A code is worth nothing after its time, and a join that fails uses none up."""
    code = desk.storage.invite("anna", {}, now=desk.now)
    with pytest.raises(MalformedRequestError):
        desk.storage.join(code, "a\nb", now=desk.now)
    with pytest.raises(UnauthorisedError):
        desk.storage.join(code, "laptop", now=desk.now + INVITATION_SECONDS)
    assert desk.storage.join(code, "laptop", now=desk.now + INVITATION_SECONDS - 1)[1] == "anna"


def test_a_token_is_a_session(desk: Desk) -> None:
    """A token says whose request it is for a year, until it is revoked."""
    code = desk.storage.invite("anna", {}, now=desk.now)
    token, _ = desk.storage.join(code, "laptop", now=desk.now)
    assert re.fullmatch(r"[\w-]{43}", token)
    session = desk.storage.session(token, now=desk.now + TOKEN_SECONDS - 1, address="10.0.0.1")
    assert session is not None
    assert (session.member, session.device, session.admin) == ("anna", "laptop", False)
    assert session.address == "10.0.0.1"
    assert desk.storage.session(token, now=desk.now + TOKEN_SECONDS) is None
    for wrong in ("", token[:-1], f"{token} ", sha256(token.encode()), "\ud800", "\0"):
        assert desk.storage.session(wrong, now=desk.now) is None
    desk.storage.revoke(session.token, now=desk.now, by=session)
    assert desk.storage.session(token, now=desk.now) is None
    assert [each.revoked for each in desk.storage.tokens()] == [desk.now]
    with pytest.raises(NotThereError):
        desk.storage.revoke(99, now=desk.now)


def test_each_device_has_its_own_token(desk: Desk) -> None:
    """Revoking the token of one device leaves the member's other ones."""
    laptop = desk.join("anna", device="laptop")
    phone = desk.join("anna", device="phone")
    desk.storage.revoke(laptop.token, now=desk.now)
    assert [token.revoked is None for token in desk.storage.tokens()] == [False, True]
    assert phone.token != laptop.token


def test_a_member_goes(desk: Desk) -> None:
    """A removed member has no role, token or invitation; what they wrote stays."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    code = desk.storage.invite("anna", {}, now=desk.now)
    desk.storage.remove_member("anna", now=desk.now)
    with pytest.raises(UnauthorisedError):
        desk.storage.join(code, "laptop", now=desk.now)
    with pytest.raises(NotThereError):
        desk.put("anna", entry("b.md"))
    assert desk.storage.members() == ()
    assert desk.storage.repositories("anna") == ()
    assert [each.revoked for each in desk.storage.tokens()] == [desk.now]
    assert set(desk.live()) == {"a.md"}
    with pytest.raises(NotThereError):
        desk.storage.remove_member("anna", now=desk.now)
    with pytest.raises(NotThereError):
        desk.storage.grant("anna", desk.repository.id, Role.READER, now=desk.now)


def test_roles_change(desk: Desk) -> None:
    """A later grant or invitation says what the role is from then on; other places are not hers."""
    desk.storage.add_repository("github.com/acme/other", now=desk.now)
    desk.join("anna")
    desk.storage.grant("anna", desk.repository.id, Role.MAINTAINER, now=desk.now)
    assert desk.storage.repositories("anna") == ((desk.repository, Role.MAINTAINER),)
    desk.join("anna", Role.READER)
    [anna] = desk.storage.members()
    assert anna.roles == {desk.repository.id: Role.READER}
    with pytest.raises(NotThereError):
        desk.storage.invite("anna", {"0" * 16: Role.READER}, now=desk.now)


def test_an_admin_is_named(desk: Desk) -> None:
    """A member is an admin where it was said so last."""
    desk.join("anna")
    desk.storage.add_member("anna", admin=True, now=desk.now)
    desk.storage.add_member("ben", now=desk.now)
    assert [(each.name, each.admin) for each in desk.storage.members()] == [
        ("anna", True),
        ("ben", False),
    ]
    for name in ("", "a\nb", "x" * 65):
        with pytest.raises(MalformedRequestError):
            desk.storage.add_member(name, now=desk.now)
        with pytest.raises(MalformedRequestError):
            desk.storage.invite(name, {}, now=desk.now)


def test_no_token_or_code_is_stored(desk: Desk) -> None:
    """Of a token or a code nothing but its SHA-256 is in the database."""
    code = desk.storage.invite("anna", {}, now=desk.now)
    other = desk.storage.invite("ben", {}, now=desk.now)
    token, _ = desk.storage.join(code, "laptop", now=desk.now)
    with desk.storage.driver.reading() as transaction:
        rows = [
            transaction.rows(f"SELECT * FROM {table}")  # noqa: S608 - our own names
            for table in ("tokens", "invitations", "members", "grants", "audit")
        ]
    assert not [text for text in (code, other, token) if text in repr(rows)]
    assert sha256(token.encode()) in repr(rows)
