"""Credentials as people say them; what is written by hand is checked by other rules."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import Message
from memd.extract import credentials
from memd.extract.candidates import find
from memd.store import secret
from tests.store.secret_samples import ORDINARY, Make

HEX = "e3b91d26ab4a829a95249f512c17b8ed"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("stated-key", f"Remember: the key for staging is {HEX}"),
        ("stated-password", "Remember that the wifi password here is correct-horse-battery"),
        ("stated-password", "Remember the passphrase of the backup is 'blue monkeys eat rice'"),
        ("stated-password", "запомни: пароль от базы Qwerty" + "!2345z"),
        ("stated-password", "Remember my PIN is 4821"),
        ("stated-password", "Remember, the PIN for the alarm is 482113."),
        ("stated-login", "always log in to the admin panel with admin / Sommer" + "2024!"),
        ("card-number", "Remember my credit card is 4539 1488 0343 6467, exp 04/29, cvv 123"),
        ("social-security-number", "Remember my social security number is 078-05-1120"),
        ("assigned-secret", "Always set API_KEY=a8f5f167f44f4964e6c998dee" + "1234567890"),
    ],
)
def test_a_spoken_credential_is_refused(rule: str, text: str) -> None:
    """It is neither saved nor suggested, and its rule is counted."""
    found = find([Message("1", "user", text, "user", 0.0)], 0.0)
    assert (found.candidates, found.suggestions, found.refused) == ((), (), (rule,))


@pytest.mark.parametrize(
    "text",
    [
        "Remember that the password is stored in the vault.",
        "Remember that the admin password is case-sensitive.",
        "Remember the password has to be at least 12 characters long.",
        "Always log in with your own account and never with root.",
        "Remember that the order number on the card is 4539 1488 0343 6468.",
        "Remember that ticket 078-05-1120 is about social media.",
        f"Remember that the release was cut from commit {HEX}.",
        "Remember that the cache key is made of tenant and region.",
        "Remember that the primary key is customer_id_2024_region.",
        "Always use API_KEY=1234567890 as a placeholder in the docs.",
        "Remember: always pin the base image: python:3.12-slim.",
        "Always pin the toolchain: rust-1.78.0",
        "Remember that the password hash algorithm is argon2id.",
        "Remember the password manager is 1Password.",
        "Remember, the password policy is rotate-every-quarter",
        "The default password is never-to-be-changed",
        'Always label the password field: "Enter your password"',
        "Remember: always log in with oauth2/github2 on staging.",
        f"Remember that the key commit is {HEX}.",
        "Remember that the key class is AbstractSingletonProxyFactoryBean2",
    ],
)
def test_words_about_credentials_pass(text: str) -> None:
    """Where a secret is kept, how it must look, and numbers of other things may be saved."""
    assert credentials.find(text) == ()


@given(st.integers(0, 2**32), st.sampled_from([*ORDINARY.values()]))
def test_ordinary_notes_pass(seed: int, make: Make) -> None:
    """What the general rules let pass in lines of ordinary notes passes here too."""
    text = make(random.Random(seed))  # noqa: S311 - made-up notes
    assert credentials.find(text) == tuple(found.rule for found in secret.find(text))
