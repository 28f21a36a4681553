"""Values beside a credential's name: generated secrets, passwords and identifiers."""

import random

import pytest

from memd.documents import secret_values
from tests.documents.secret_samples import ALNUM, some

SLUGS = [
    "customer_id_2024_region",
    "oauth2-pkce-s256",
    "checkout-v2-2024-rollout",
    "GoogleOAuth2Provider",
    "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
    "config/production/v2/settings",
]


@pytest.mark.parametrize("value", SLUGS)
def test_identifiers_are_no_assigned_secrets(value: str) -> None:
    """Words, numbers, versions and algorithms put together are the name of something."""
    assert not secret_values.may_be_key(value)
    assert not secret_values.may_be_password_of_login(value)


@pytest.mark.parametrize("count", [16, 24, 40])
def test_random_characters_may_be_assigned_secrets(count: int) -> None:
    """What a generator makes is not taken for words, with or without joints."""
    draw = random.Random(3)  # noqa: S311 - made-up values, the same in every run
    values = [some(draw, ALNUM, count) for _ in range(300)]
    values += [f"{some(draw, ALNUM, count)}-{some(draw, ALNUM, count)}" for _ in range(300)]
    assert sum(map(secret_values.may_be_key, values)) >= 0.99 * len(values)


@pytest.mark.parametrize(
    ("value", "after_colon", "after_blank", "after_login"),
    [
        ("hunter2-Prod-9981", True, True, True),
        ("hunter2-prod-9981", True, True, False),
        ("Tr0ub4dor&3", True, True, True),
        ("sunshine42", True, True, False),
        ("Sommer2024!", True, True, True),
        ("hunter2", True, True, False),
        ("field2", True, False, False),
        ("numpy==1.26.4", False, False, False),
        ("/home/bob/project2", False, False, False),
        ("env(DB_PASS1)", False, False, False),
        ("argon2id", False, False, False),
        ("oauth2-pkce-s256", False, False, False),
        ("PROJ-1234", False, False, False),
        ("PR#482", False, False, False),
        ("bob7@corp.example", False, False, False),
        ("--stdin2", True, False, False),
        ("0b6a4a1e-62cc-4ad0-9e49-7f5a3f0f1c52", True, False, False),
    ],
)
def test_passwords_are_told_from_words(
    value: str,
    after_colon: bool,  # noqa: FBT001 - columns of the table
    after_blank: bool,  # noqa: FBT001
    after_login: bool,  # noqa: FBT001
) -> None:
    """The less the words before it say, the more a value must look like a password."""
    assert secret_values.may_be_password(value) is after_colon
    assert secret_values.may_be_password_in_prose(value) is after_blank
    assert secret_values.may_be_password_of_login(value) is after_login


def test_a_session_is_no_identifier() -> None:
    """A cookie's value is a session unless it is a UUID or words."""
    draw = random.Random(4)  # noqa: S311 - made-up values, the same in every run
    assert secret_values.may_be_session(some(draw, ALNUM, 32))
    assert not secret_values.may_be_session("0b6a4a1e-62cc-4ad0-9e49-7f5a3f0f1c52")
    assert not secret_values.may_be_session("dark-mode-2024")
