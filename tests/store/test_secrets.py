"""The secret scanner. Each token is put together at run time: none stands in this file."""

import random
import string
import tomllib
from collections.abc import Mapping
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.store import secret
from tests.store.secret_samples import LINES, SENTENCES, Make
from tests.store.secret_samples import ORDINARY as NOTES
from tests.store.secret_samples import TOKENS as VENDORS

_RANDOM = random.Random(7)  # noqa: S311 - made-up tokens, the same in every run
ALNUM = string.ascii_letters + string.digits


def chars(count: int, alphabet: str = ALNUM) -> str:
    """Return made-up characters that hold a letter and a digit."""
    return "a7" + "".join(_RANDOM.choice(alphabet) for _ in range(count - 2))


HEX = "0123456789abcdef"
TOKENS = [
    ("aws-access-key-id", "AK" + "IA" + "QWERTZ3IO4PLKJ5M"),
    ("google-api-key", "AI" + "za" + chars(35)),
    ("digitalocean-token", "dop" + "_v1_" + chars(64, HEX)),
    ("databricks-token", "da" + "pi" + chars(32, HEX)),
    ("github-token", "gh" + "p_" + chars(36)),
    ("github-fine-grained-token", "github" + "_pat_" + chars(82)),
    ("gitlab-token", "gl" + "pat-" + chars(20)),
    ("npm-token", "np" + "m_" + chars(36)),
    ("pypi-token", "py" + "pi-AgEIcHlwaS5vcmc" + chars(80)),
    ("docker-token", "dckr" + "_pat_" + chars(27)),
    ("anthropic-key", "sk-" + "ant-api03-" + chars(93) + "AA"),
    ("openai-key", "sk-" + "proj-" + chars(60)),
    ("huggingface-token", "h" + "f_" + "DadQyDoMNlXMEJykZgqWWVCftDnSaefflx"),
    ("slack-token", "xo" + "xb-781236542736-2364535789652-" + chars(24)),
    ("slack-webhook", "https://hooks.slack.com/" + "services/" + chars(44)),
    ("telegram-bot-token", "16467500" + ":A" + chars(34)),
    ("twilio-key", "S" + "K" + chars(32, HEX)),
    ("sendgrid-key", "S" + "G." + chars(66)),
    ("stripe-key", "sk" + "_live_" + chars(24)),
    ("shopify-token", "shp" + "at_" + chars(32, HEX)),
    ("square-token", "sq0" + "atp-" + chars(22)),
    ("linear-key", "lin" + "_api_" + chars(40)),
    ("vault-token", "hv" + "s." + chars(90)),
    ("grafana-token", "gl" + "sa_" + chars(32) + "_" + chars(8, HEX)),
    ("jwt", "ey" + chars(30) + ".ey" + chars(30) + "." + chars(20)),
    ("url-credentials", "postgres://app:" + chars(12) + "@db.internal/app"),
    ("spoken-password", "the database password is hunter" + "2x9"),
    ("spoken-password", "数据库密码是 hunter" + "2x9"),
    ("spoken-key", "my API key for the billing service is " + chars(28)),
    ("assigned-secret", "client_secret = " + chars(32)),
    ("private-key", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + chars(64) + "\n" + chars(64)),
]
ORDINARY = [
    "token: see vault",
    "The session token expires after 15 minutes.",
    "password = ${DB_PASSWORD}",
    "export API_KEY=<your token>",
    "api_key = xxxxxxxxxxxxxxxxxxxxxxxx",
    "AWS_ACCESS_KEY_ID=AKIA" + "IOSFODNN7EXAMPLE",
    "commit 5c3bb68f6e9f7a27e6b9f0a4b9a5f54e1f4d8c1e fixed the parser",
    "the password is stored in the vault",
    "request id 0b6a4a1e-62cc-4ad0-9e49-7f5a3f0f1c52",
    "the key is to write small commits",
    "public_key = " + chars(40),
    "https://grafana.internal/d/oncall-latency?orgId=1",
    "密码保存在 Vault 里",
    "max_tokens: 128000",
    "primary key: customer_id_2024_region",
    "auth: oauth2-pkce-s256",
    "flag key: checkout-v2-2024-rollout",
]
SEED = st.integers(0, 2**32)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_passes(text: str) -> None:
    """Placeholders, hashes, identifiers and prose are not credentials."""
    assert secret.find(text) == ()
    assert secret.scrub(text) == text


def test_disguises_do_not_help() -> None:
    """A token in full-width letters or with zero-width joints is found and scrubbed."""
    token = "gh" + "p_" + chars(36)
    wide = "".join(chr(ord(letter) + 0xFEE0) if letter.isalnum() else letter for letter in token)
    joined = "\u200b".join(token)
    for disguised in (wide, joined, f"\u00e9 {token}"):
        assert secret.Finding("github-token", 1) in secret.find(disguised)
        assert secret.find(secret.scrub(disguised)) == ()


@given(
    st.lists(
        st.tuples(st.sampled_from(TOKENS), st.sampled_from(("plain", "wide", "joined", "beside"))),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from((" ", "\n", " \u00e9 ", "\u200b\n")),
)
def test_disguises_beside_each_other_are_all_scrubbed(
    tokens: list[tuple[tuple[str, str], str]], between: str
) -> None:
    """A token that one form of a text shows does not come back with that of another token."""

    def disguised(token: str, disguise: str) -> str:
        wide = chr(ord(token[0]) + 0xFEE0) + token[1:]
        joined = f"{token[:6]}\u200b{token[6:]}"
        return {"plain": token, "wide": wide, "joined": joined, "beside": f"{wide}\u200b x"}[
            disguise
        ]

    text = between.join(disguised(token, disguise) for (_, token), disguise in tokens)
    assert secret.find(secret.scrub(text)) == ()
    assert secret.find(secret.blank(text)) == ()
    assert secret.blank(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("token", [token for _, token in TOKENS if "\n" not in token])
def test_each_of_several_lines_is_named(token: str) -> None:
    """Of credentials on lines that follow each other each is found with its line."""
    findings = secret.find("\n".join([token] * 7))
    assert {finding.line for finding in findings} == set(range(1, 8))


@pytest.mark.parametrize("end", ["/Prod9981Key x", " password: x"])
def test_what_is_put_in_is_no_credential(end: str) -> None:
    """The words in place of a credential are not replaced, nor what stands behind them."""
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = f"url: https://{token}{end}"
    assert secret.scrub(text) == f"url: https://[secret: github-token]{end}"
    assert [finding.rule for finding in secret.find(text)] == ["github-token"]


def test_a_credential_in_front_of_a_replaced_one_goes_too() -> None:
    """What touches a word that was put in is replaced up to it."""
    token = "gh" + "p_" + chars(36)
    text = secret.scrub(f"pwd Ku8iS2G8NP1:{token}:postgres://u:pw@h/db")
    assert "Ku8iS2G8NP1" not in text
    assert token not in text


def test_a_disguise_is_found_far_from_other_lines() -> None:
    """A disguised token keeps its line however long the text around it is."""
    token = "\u200b".join("gh" + "p_" + chars(36))
    text = "plain words\n" * 40 + token + "\nplain\u2026 words" * 40
    assert secret.find(text) == (secret.Finding("github-token", 41),)


def test_a_key_on_short_lines_is_found_with_an_invisible_sign() -> None:
    """A private key of a few characters a line is found wherever an invisible one hides it."""
    body = [chars(3) for _ in range(30)]
    lines = ["-----BEGIN RSA PRIV" + "ATE KEY-----", *body, "-----END RSA PRIV" + "ATE KEY-----"]
    for at in (4, 20, 30):
        hidden = [*lines[:at], f"\u200b{lines[at]}", *lines[at + 1 :]]
        assert secret.find("\n".join(hidden)) == (secret.Finding("private-key", 1),)


def test_published_samples_pass() -> None:
    """A value that a vendor's documentation shows to everybody is no secret."""
    sample = "6fe4476ee5a18328" + "82e326b506d14126"
    assert secret.find(f'apiKey: "{sample}"') == ()
    assert secret.find(f'apiKey: "{sample[::-1]}"') != ()


def test_only_what_hides_changes_its_form() -> None:
    """Beside a credential that stands as it is, full-width punctuation stays as it was."""
    token = "sk_" + "live_51Hq8vK2eZvKYlo2C0aBcDeFgH"
    assert secret.scrub(f"测试用 {token}，今天有效。") == "测试用 [secret: stripe-key]，今天有效。"


def test_blanking_keeps_the_lines() -> None:
    """A key of several lines is gone, and what stands behind it keeps its line number."""
    key = "-----BEGIN RSA PRIVATE" + " KEY-----\n" + "\n".join(chars(64) for _ in range(5))
    key += "\n-----END RSA PRIVATE" + " KEY-----"
    token = TOKENS[0][1]
    text = f"one\n{key}\n# after {token} and {token}\nlast"
    results = secret.blank(text)
    assert results.split("\n")[-1] == "last"
    assert results.count("\n") == text.count("\n")
    assert token not in results
    assert not secret.find(results)
    assert secret.blank("nothing\nhere") == "nothing\nhere"


@given(st.text())
def test_any_text_passes_through(text: str) -> None:
    """No text crashes the scanner, lone surrogates included."""
    secret.find(text + "\ud800 token=")
    secret.scrub(text)


@given(st.sampled_from(sorted(VENDORS | LINES)), SEED)
def test_documented_shapes_are_found(kind: str, seed: int) -> None:
    """Any token of a vendor's form, and any line of a format that holds a password, is found."""
    made = (VENDORS | LINES)[kind](random.Random(seed))  # noqa: S311 - made-up tokens
    assert secret.find(f"First line.\n{made}\nLast line.") != (), made
    assert secret.find(secret.scrub(made)) == (), made


@pytest.mark.parametrize(
    ("table", "least", "most"),
    [(SENTENCES, 0.98, 1.0), (NOTES, 0.0, 0.001)],
    ids=["sentences", "ordinary"],
)
def test_sentences_are_told_from_ordinary_lines(
    table: Mapping[str, Make], least: float, most: float
) -> None:
    """Of sentences with a password 98 % are found; of ordinary lines one in a thousand at most."""
    draw = random.Random(9)  # noqa: S311 - made-up lines, the same in every run
    texts = [make(draw) for make in table.values() for _ in range(100)]
    assert least <= sum(bool(secret.find(text)) for text in texts) / len(texts) <= most


@pytest.mark.parametrize(
    "text", ["db password hunter2-Prod-9981", "db-password-hunter2-prod-9981.md"]
)
def test_a_spoken_password_is_found_in_a_name_too(text: str) -> None:
    """What becomes of a sentence when it is made a file's name gives the password no shelter."""
    assert secret.find(text) != ()


def test_every_rule_says_what_it_follows() -> None:
    """Beside each rule stands the page or the rule of gitleaks that its shape is from."""
    source = resources.files("memd.store").joinpath("secret_rules.toml").read_text()
    rules = tomllib.loads(source)["rule"]
    assert [rule["id"] for rule in rules if len(rule.get("follows", "")) < len("RFC 7519")] == []
    assert len({rule["id"] for rule in rules}) == len(rules)
