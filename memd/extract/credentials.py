"""Find what a person should not have saved: credentials as they are spoken. Pure.

Rules of this file
- This is stricter than ``store/secret.py``, which also checks what people write by hand: here
  a false alarm costs one sentence that nobody asked to check.
- A password in plain words must stand at the end of its sentence or in quotation marks, so that
  "the password is stored in the vault" passes.
"""

import re
from collections.abc import Iterator

from memd.store import secret

_CARD, _SOCIAL_SECURITY = "card-number", "social-security-number"
_PASSWORD, _LOGIN, _KEY = "stated-password", "stated-login", "stated-key"

# The long patterns are compiled by ``re`` at the first use, which is a job's.
_CARD_WORD = (
    r"(?i)"
    r"\b(?:cards?|visa|mastercard|amex|cvv|cvc|\w*karten?|tarjetas?|cartes?|cart(?:ão|ões)|carta"
    r"|карт\w*)\b|卡|カード|카드"
)
_CARD_NUMBER = r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])"
_SOCIAL = r"(?i)\b(?:ssn|social security)\b[^\n]{0,60}?(?<![\w-])\d{3}-\d\d-\d{4}(?![\w-])"
_NOUN = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|passwort|kennwort|contraseña|mot de passe|senha"
    r"|wachtwoord|парол[ья])"
)
# Behind one of these stands a fact about passwords or keys: "the password policy is …".
_ABOUT = (
    r"hash\w*|algorithm|manager|polic(?:y|ies)|rules?|fields?|label|length|reset|vault|files?"
    r"|class|commit|names?|format|strength|prompt|storage"
)
_WORDS = rf"(?:\s+(?!(?:is|was|ist|{_ABOUT})\b)[^\s,;.]{{1,30}}){{0,5}}?"
_IS = r"\s*(?:\s(?:is|was|ist|lautet|es|est|é|это)\s|[:=]|\s[\u2013\u2014-]\s)\s*"
_QUOTED = (
    r"(?i)"
    rf"\b{_NOUN}{_WORDS}{_IS}(?:'[^'$<{{\n]{{6,}}'|\"[^\"$<{{\n]{{6,}}\"|`[^`\n]{{6,}}`|“[^”\n]{{6,}}”)"
)
_STATED = rf"(?i)\b{_NOUN}{_WORDS}{_IS}(\S{{5,64}}?)[.,;!)]*\Z"
_FOLLOWING = rf"(?i)\b{_NOUN}(?:\s+(?:от|для|к|на|for|of|to)\s+\S{{1,30}})?\s+(\S{{6,64}})"
_PIN = (
    r"(?i)\bpin(?:[ -]?(?:code|number))?\b(?:\s+(?:for|of|to)\s[^\n.;:]{1,40}?)?"
    r"\s*(?:\s(?:is|was|ist)\s|[:=])\s*\d{4,8}\b"
)
_LOGIN_PAIR = (
    r"(?i)\b(?:log(?:ging)?[ -]?in|sign[ -]?in|anmelden|einloggen|войти|войди)\b[^\n]{0,60}?"
    r"\b(?:with|as|using|mit|als|как)\s+[^\s/:]{2,40}\s*[/:]\s*([^\s/]{6,64})"
)
_LONG_KEY = (
    rf"(?i)\b(?:key|token|secret|schlüssel|ключ|токен)\b{_WORDS}{_IS}[\"'`]?"
    r"([A-Za-z0-9_+/=-]{20,200})"
)
_HEX = r"(?i)[0-9a-f]{24,}"
# A value that only ends in such a run is none of the placeholders that are nothing but the run.
_RUN_AT_END = r"(?<=[A-Za-z0-9]{11})1234567890(?![A-Za-z0-9])"
_OTHER_RUN = "1357924680"
_SIGN = r"\w[^\w\s.,;:/=()\[\]{}<>'\"`-]+\w|[!$%&#*^~?+@]\Z"
_LEAST_PARTS = 3  # of a password of words with dashes between them
_DISTINCT = 10  # characters of a long key, at least; a placeholder has fewer
_LEAST_DIGITS = 2  # of what is no word or name with a number behind it
_TEN, _NINE = 10, 9


def find(text: str) -> tuple[str, ...]:
    """Return the rules by which a sentence holds a credential. Reads lists at the first call."""
    known = [finding.rule for finding in secret.find(re.sub(_RUN_AT_END, _OTHER_RUN, text))]
    return tuple(known or dict.fromkeys(_spoken(text)))


def _spoken(text: str) -> Iterator[str]:
    """Yield the rules of this file that a sentence meets."""
    if re.search(_CARD_WORD, text) and any(map(_is_card_number, re.findall(_CARD_NUMBER, text))):
        yield _CARD
    if re.search(_SOCIAL, text):
        yield _SOCIAL_SECURITY
    stated, following = re.search(_STATED, text), re.search(_FOLLOWING, text)
    if (
        re.search(_QUOTED, text)
        or (stated and _may_be_stated(stated.group(1)))
        or (following and _is_mixed(following.group(1)) and re.search(_SIGN, following.group(1)))
        or re.search(_PIN, text)
    ):
        yield _PASSWORD
    if any(map(_is_pair_s_password, re.findall(_LOGIN_PAIR, text))):
        yield _LOGIN
    if any(map(_is_key, re.findall(_LONG_KEY, text))):
        yield _KEY


def _is_card_number(digits: str) -> bool:
    """Return whether a number has the checksum of cards (ISO/IEC 7812, Luhn)."""
    numbers = [int(digit) for digit in digits if digit.isdigit()][::-1]
    doubled = [2 * number for number in numbers[1::2]]
    total = sum(numbers[::2]) + sum(number - _NINE * (number > _NINE) for number in doubled)
    return total % _TEN == 0 and len(set(numbers)) > 1


def _may_be_stated(value: str) -> bool:
    """Return whether the last word of "the password is …" may be one: no common word, no place."""
    if value.startswith(("/", "~", "$", "<", "{", "http")):
        return False
    if _is_mixed(value):
        return True
    parts = value.lower().split("-")
    is_phrase = parts[0] in ("never", "always", "not", "rotate", "case")
    return len(parts) >= _LEAST_PARTS and all(part.isalpha() for part in parts) and not is_phrase


def _is_mixed(value: str) -> bool:
    """Return whether a value has both letters and digits."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_pair_s_password(value: str) -> bool:
    """Return whether the second word of "log in with NAME / WORD" may be a password."""
    digits = sum(map(str.isdigit, value))
    return _is_mixed(value) and (digits >= _LEAST_DIGITS or re.search(_SIGN, value) is not None)


def _is_key(value: str) -> bool:
    """Return whether a long value is hexadecimal, or has letters of both cases and digits."""
    if not _is_mixed(value):
        return False
    has_both_cases = value != value.lower() and value != value.upper()
    has_digits = sum(map(str.isdigit, value)) >= _LEAST_DIGITS  # a name of a class may have one
    is_random = value.isalnum() and has_both_cases and len(set(value)) >= _DISTINCT and has_digits
    return re.fullmatch(_HEX, value) is not None or is_random
